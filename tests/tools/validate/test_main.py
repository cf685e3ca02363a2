"""python -m tools.validate, from a file of rows to a table and to JSON."""

import csv
import json
import sys
from pathlib import Path

import pytest

from tools.validate.__main__ import main, validate
from tools.validate.registry import VALIDATORS, validator_of

DATA = Path(__file__).resolve().parents[2] / "data" / "measured" / "conv.csv"


@pytest.fixture
def rows(tmp_path):
    """A few rows of every kind."""
    with DATA.open(encoding="utf-8", newline="") as lines:
        every = list(csv.DictReader(lines))
    kinds = ("kernel=main", "kernel=helper_sbm", "target", "(device profiler)")
    some = [row for kind in kinds for row in [row for row in every if kind in row["config"] + row["kind"]][:2]]
    path = tmp_path / "conv_some.csv"
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, fieldnames=list(every[0]))
        writer.writeheader()
        writer.writerows(some)
    return path


def test_every_row_is_predicted_or_listed():
    predicted, skipped = validate(DATA)
    with DATA.open(encoding="utf-8", newline="") as lines:
        assert len(predicted) + len(skipped) == len(list(csv.DictReader(lines)))
    assert all(one.reason for one in skipped)


def test_command(rows, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["tools.validate", str(rows), "--json", str(out)])
    main()
    printed = capsys.readouterr().out
    assert "errors with the constants of the catalog" in printed
    assert "is a proposal, not the released one" in printed
    written = json.loads(out.read_text(encoding="utf-8"))
    assert len(written) == 8
    for row in written:
        assert row["file"] == "conv_some.csv"
        assert row["source_path"]
        assert ("predicted_ns" in row) != ("not_predicted" in row)
        if "predicted_ns" in row:
            assert row["predicted_ns"] > 0
            assert row["measured_ns"] == pytest.approx(float(row["value"]) * (1000 if row["unit"] == "us" else 1))


def test_the_name_of_a_file_says_who_predicts_it():
    assert validator_of(Path("somewhere/conv.csv")) is VALIDATORS["conv"]
    assert validator_of(Path("conv_held_back.csv")) is VALIDATORS["conv"]
    with pytest.raises(ValueError, match=r"convolution\.csv: no validator for rows of that name; name it conv"):
        validator_of(Path("convolution.csv"))


def test_overall_is_one_table_by_architecture(rows, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tools.validate", str(rows), "--overall"])
    main()
    printed = capsys.readouterr().out
    assert "conv_some.csv, blackhole" in printed
    assert "worst configurations" not in printed
    assert "is a proposal" not in printed


@pytest.mark.parametrize(("name", "message"), [("convolution.csv", "no validator"), ("conv_new.csv", "no such file")])
def test_files_that_can_not_be_read_end_it_before_any_work(rows, name, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tools.validate", str(rows), str(tmp_path / name)])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
