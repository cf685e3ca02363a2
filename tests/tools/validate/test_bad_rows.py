"""A bad row is a row of what was not predicted; a file without rows ends the program in a line."""

import csv
import sys
from pathlib import Path

import pytest

from tools.validate.__main__ import main, validate
from tools.validate.prediction import NotPredictedError, Row
from tools.validate.registry import VALIDATORS, Validator

DATA = Path("tests/data/measured")


def is_predicted(validator: Validator, row: Row) -> bool:
    """Whether a row can be predicted."""
    try:
        validator(row)
    except NotPredictedError:
        return False
    return True


def written(path: Path, kind: str, **changed: str) -> Path:
    """A file of one good row and one that is changed."""
    with (DATA / f"{kind}.csv").open(encoding="utf-8", newline="") as lines:
        row = next(row for row in csv.DictReader(lines) if is_predicted(VALIDATORS[kind], row))
    target = path / f"{kind}.csv"
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerows([row, {**row, **changed}])
    return target


@pytest.mark.parametrize("value", ["0", "00", "-1"])
def test_there_is_at_least_one_batch(tmp_path: Path, value: str) -> None:
    """Which may be left out, where there is one."""
    (skipped,) = validate(written(tmp_path, "gemm", batch=value))[1]
    assert skipped.reason == f"batch must be at least 1, not {value}"


@pytest.mark.parametrize("value", ["x", "nan", "-1", "0", "", "99999999999999999999", "4000000", "[/]", "\x1b[31m"])
@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("conv", "in_h"),
        ("halo", "in_h"),
        ("gemm", "M"),
        ("layout_ops", "in_shape"),
        ("dram_noc", "num_transactions"),
    ],
)
def test_a_size_that_is_none_is_a_row_not_predicted(
    tmp_path: Path,
    kind: str,
    column: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = written(tmp_path, kind, **{column: value})
    predicted, skipped = validate(path)
    assert (len(predicted), len(skipped)) == (1, 1)
    monkeypatch.setattr(sys, "argv", ["tools.validate", str(path)])
    main()
    shown = capsys.readouterr().out
    assert "not predicted" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("value", ["x", "nan", "-1", "0", "inf", ""])
def test_a_measurement_that_is_none_is_a_row_not_predicted(tmp_path: Path, value: str) -> None:
    predicted, skipped = validate(written(tmp_path, "conv", value=value))
    assert (len(predicted), len(skipped)) == (1, 1)


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1,2\n", "a,b\n1\n", "\0\n\0"])
def test_a_file_without_a_row_to_predict_ends_it_in_a_line(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conv.csv"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["tools.validate", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_row_whose_shards_do_not_fit_its_grid_is_not_predicted(tmp_path: Path) -> None:
    """12x40x128 in BLOCK shards on cores 5 wide and 4 high, where it takes 5 rows of them."""
    with (DATA / "halo.csv").open(encoding="utf-8", newline="") as lines:
        row = next(row for row in csv.DictReader(lines) if row["shard"] == "BLOCK_SHARDED")
    sizes = {"batch": "1", "in_h": "12", "in_w": "40", "in_c": "128", "in_rows": "480", "cores_nhw": "5"}
    grid = {"cores": "20", "grid": "{[(x=0;y=0) - (x=4;y=3)]}", "cores_c": "4", "transpose_mcast": "true"}
    path = tmp_path / "halo.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerows([row, {**row, **sizes, **grid}])
    predicted, (skipped,) = validate(path)
    assert len(predicted) == 1
    assert "DeviceError: Number of shards along height 5 must not exceed number of rows 4" in skipped.reason


def test_a_mistake_of_a_model_is_no_row_that_is_not_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(op: object, spec: object) -> None:
        raise ValueError("a mistake")

    path = written(tmp_path, "conv")
    monkeypatch.setattr("tools.validate.conv.conv_cycles", broken)
    with pytest.raises(ValueError, match="a mistake"):
        validate(path)
