"""Rows of files: predicted, or listed with the reason; what is no file of rows ends the program in a line."""

import csv
import sys
from collections import Counter, defaultdict
from functools import cache, partial
from itertools import combinations
from statistics import median

import pytest

from device.spec.device_spec import load_spec
from ops.passes.cycles import ExpectedError, expected_error, expected_errors
from tools.validate.__main__ import main
from tools.validate.prediction import NotPredictedError, Prediction
from tools.validate.report import sum_up
from tools.validate.rows import MEASURED, read_rows, require_plausible, validate

GENERATIONS = ("wormhole_b0", "blackhole")
FILES = ("conv", "conv_segformer", "conv_sweep", "halo", "halo_segformer", "halo_sweep", "gemm", "gemm_profiled",
         "matmul_segformer", "matmul_autoport", "matmul_decoder", "layout_ops", "ops")  # fmt: skip
SHAPE = ("arch", "batch", "in_c", "out_c", "in_h", "in_w", "k_h", "k_w", "s_h", "s_w")  # of a convolution, in rows
validated = cache(lambda name: validate(MEASURED / f"{name}.csv"))


def written(path, kind, *changes, first=None):
    """A file of a good row (the first one that can be predicted) and others that are changed."""
    first = first or validated(kind)[0][0].row
    target = path / f"{kind}.csv"
    with target.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(first))
        writer.writeheader()
        writer.writerows([first, *({**first, **change} for change in changes)])
    return target


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["tools.validate", *map(str, arguments)])
    main()


@pytest.mark.parametrize(
    ("name", "mean"), [("conv", 0.05), ("halo", 0.07), ("gemm", 0.04), ("layout_ops", 0.12), ("dispatch", 0.03)]
)
def test_errors_are_as_claimed(name, mean):
    predicted, skipped = validated(name)
    counted = [row for row in predicted if row.architecture in GENERATIONS and row.counted]
    assert sum_up(counted).mean < mean
    assert len(predicted) + len(skipped) == len(read_rows(MEASURED / f"{name}.csv"))
    assert all(reason for _, reason in skipped)
    assert abs(sum_up(counted).bias) < 0.05
    for architecture in GENERATIONS if name == "conv" else ():
        own = sum_up([row for row in counted if row.architecture == architecture])
        assert own.mean <= mean
        assert abs(own.bias) <= 0.02
        assert own.worst <= 0.2
    if name == "layout_ops":
        for kind in {row.group[0] for row in counted}:
            own = [row for row in counted if row.group[0] == kind and row.architecture == "blackhole"]
            assert len({row.configuration for row in own}) < 5 or sum_up(own).mean < 0.13, kind


def covered(names):
    """Rows with a bar within and beyond twice the bar, by architecture."""
    found = Counter()
    for row in (row for name in names for row in validated(name)[0]):
        bar = expected_errors().get((row.evidence[0], row.spec.arch, row.evidence[1]))
        if row.counted and bar is not None:
            found[row.spec.arch, abs(row.error) <= 2 * bar.share] += 1
    return [[found[architecture, inside] for inside in (True, False)] for architecture in GENERATIONS]


def test_rows_lie_within_twice_the_bars_that_reports_state():
    """Nine of ten unseen configurations lie within twice their bar; of those that the fit has seen hardly fewer."""
    for inside, outside in covered(["conv", "halo", "gemm", "layout_ops"]):
        assert inside > 0.85 * (inside + outside) > 20


@pytest.mark.slow
def test_rows_of_all_files_lie_within_twice_their_bars():
    for inside, outside in covered(FILES):
        assert inside > 0.85 * (inside + outside) > 100


@pytest.mark.slow
def test_every_bar_has_rows_of_its_own_architecture():
    rows = [row for name in FILES for row in validated(name)[0] if row.counted]
    configurations = defaultdict(set)
    for row in rows:
        for kind, place in (row.evidence, *((row.later.evidence,) if row.later else ())):
            configurations[kind, row.spec.arch, place].add((row.configuration, row.group))
    assert set(expected_errors()) <= set(configurations)
    for key, bar in expected_errors().items():
        assert bar.configurations <= len(configurations[key])


def convolutions_by_shape():
    """Of every way in which a shape was measured: its shards and block height, and the median of both times."""
    shapes = defaultdict(lambda: defaultdict(list))
    for row in (row for name in ("conv", "conv_segformer", "conv_sweep") for row in validated(name)[0] if row.counted):
        shape = tuple(row.row[column] for column in SHAPE)
        layout = row.program.layout
        way = layout.scheme, layout.blocks.act_h_tiles
        shapes[shape][way, row.configuration].append((row.measured_ns, row.predicted_ns))
    for (architecture, *_), ways in shapes.items():
        yield architecture, [(way, *map(median, zip(*times, strict=True))) for (way, _), times in ways.items()]


def test_the_faster_of_two_layouts_or_block_heights_is_told():
    """Of pairs of one shape that silicon parts by more than 10 %, 95 of 100 on each architecture."""
    order = Counter()
    for architecture, ways in convolutions_by_shape():
        for (way, first, ours), (other, second, theirs) in combinations(ways, 2):
            if way != other and max(first, second) > 1.1 * min(first, second):
                order[architecture, (first < second) == (ours < theirs)] += 1
    for architecture in GENERATIONS:
        assert order[architecture, True] >= 19 * order[architecture, False]
    assert order.total() >= 4


def test_nothing_stands_in_where_nothing_was_measured():
    assert expected_error("Conv2d, BLOCK_SHARDED", "wormhole_b0", "shards").configurations > 5
    assert expected_error("Conv2d, BLOCK_SHARDED", "wormhole_b0", "DRAM") is None
    assert expected_error("Conv2d, BLOCK_SHARDED", "my own", "shards") is None
    assert expected_error("Sort", "blackhole", "DRAM") is None


def test_a_bar_is_the_mean_or_half_of_what_nine_of_ten_do_not_exceed():
    bar = partial(ExpectedError, configurations=10)
    assert bar(mean=0.05, within=0.12).share == 0.06
    assert bar(mean=0.07, within=0.12).share == 0.07


def test_configurations_count_once_with_their_median_row():
    def row(name, cycles):
        return Prediction(
            row={}, spec=load_spec("wormhole_n150"), program=None, measured_ns=100, cycles_on=lambda spec: (cycles,),
            group=("g",), architecture="a", configuration=(name,),
        )  # fmt: skip

    errors = sum_up([row("x", 110), row("x", 120), row("x", 300), row("y", 90)])
    assert (errors.rows, errors.configurations) == (4, 2)
    figures = (errors.mean, errors.median, errors.bias, errors.worst)
    assert figures == pytest.approx((0.15, 0.15, 0.05, 0.2))


@pytest.mark.parametrize(
    ("kind", "column"),
    [("conv", "in_h"), ("gemm", "M"), ("layout_ops", "in_shape"), ("dram_noc", "num_transactions"), ("conv", "value")],
)
def test_a_size_or_a_measurement_that_is_none_is_a_row_not_predicted(kind, column, tmp_path, monkeypatch, capsys):
    values = ["x", "nan", "-1", "0", ""]
    values += ["inf"] if column == "value" else ["99999999999999999999", "4000000", "[/]", "\x1b[31m"]
    path = written(tmp_path, kind, *({column: value} for value in values))
    predicted, skipped = validate(path)
    assert (len(predicted), len(skipped)) == (1, len(values))
    run(monkeypatch, path)
    shown = capsys.readouterr().out
    assert "not predicted" in shown
    assert "\x1b" not in shown


def test_sizes_that_cannot_be_are_refused_by_name():
    row = read_rows(MEASURED / "layout_ops.csv")[0] | {"commit": "10216031"}  # a hash that is a number
    require_plausible(row)
    for name, value, text in [("cores", "10216031", "at most 1048576"), ("batch", "00", "at least 1, not 00")]:
        with pytest.raises(NotPredictedError, match=f"{name} must be {text}"):
            require_plausible(row | {name: value})


def test_shards_that_do_not_fit_their_grid_are_not_predicted(tmp_path):
    """12x40x128 in BLOCK shards on cores 5 wide and 4 high, where it takes 5 rows of them."""
    row = next(row for row in read_rows(MEASURED / "halo.csv") if row["shard"] == "BLOCK_SHARDED")
    sizes = {"batch": "1", "in_h": "12", "in_w": "40", "in_c": "128", "in_rows": "480", "cores_nhw": "5"}
    grid = {"cores": "20", "grid": "{[(x=0;y=0) - (x=4;y=3)]}", "cores_c": "4", "transpose_mcast": "true"}
    predicted, ((_, reason),) = validate(written(tmp_path, "halo", {**sizes, **grid}, first=row))
    assert len(predicted) == 1
    assert "DeviceError: Number of shards along height 5 must not exceed number of rows 4" in reason


def test_a_mistake_of_a_model_is_no_row_that_is_not_understood(tmp_path, monkeypatch):
    def broken(op, spec):
        raise ValueError("a mistake")

    path = written(tmp_path, "conv")
    monkeypatch.setattr("tools.validate.conv.time_conv", broken)
    with pytest.raises(ValueError, match="a mistake"):
        validate(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *(("conv.csv", text, "conv.csv: ") for text in ("", "a,b\n", "a,b\n1,2\n", "a,b\n1\n", "\0\n\0")),
        ("convolution.csv", "", "no validator for rows of that name; name it conv"),
        ("conv_new.csv", None, "no such file"),
    ],
)
def test_a_file_that_is_no_file_of_rows_ends_it_in_a_line(tmp_path, name, text, message, monkeypatch, capsys):
    path = tmp_path / name
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, path)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert not shown.out
    assert "Traceback" not in shown.err


def test_command(tmp_path, capsys, monkeypatch):
    every = read_rows(MEASURED / "conv.csv")
    kinds = ("kernel=main", "kernel=helper_sbm", "target", "(device profiler)")
    some = [row for kind in kinds for row in [row for row in every if kind in row["config"] + row["kind"]][:2]]
    path = written(tmp_path, "conv", *some[1:], first=some[0])
    run(monkeypatch, path)
    printed = capsys.readouterr().out
    for text in ("errors with the constants of the catalog", "worst configurations", "target, no measurement"):
        assert text in printed
    assert "is a proposal, not the released one" in printed
    run(monkeypatch, path, "--overall")
    printed = capsys.readouterr().out
    assert "conv.csv, blackhole" in printed
    assert "worst configurations" not in printed
