"""Two reports side by side, by hand: matching, differences, sums, and the table."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from device.errors import ArgumentError
from ttsim.report import comparison
from ttsim.report.comparison import (
    BOUND,
    CORES,
    FIDELITY,
    Reported,
    ReportedOperation,
    causes_of,
    compare,
    kind_of,
    matched,
)
from ttsim.report.formatting import cells_of

ONE = ReportedOperation(
    name="A", cycles=5, nanoseconds=5.0, stages={"math": 3, "reader": 2, "pack": 9},
    figures={CORES: "8", FIDELITY: "HiFi4", BOUND: "math", ("shapes", "INPUT_0 {} -> {}"): "1x1x64x32"},
)  # fmt: skip


def operation(name: str, cycles: int | None, *, cores: int = 8, bound: str = "math", **stages: int):
    figures = {CORES: f"{cores}", BOUND: bound}
    nanoseconds = None if cycles is None else float(cycles)
    return ReportedOperation(name=name, cycles=cycles, nanoseconds=nanoseconds, figures=figures, stages=stages)


def report(*operations: ReportedOperation, clock_hz: int = 1_000_000_000, arch: str = "") -> Reported:
    return Reported(device="d", arch=arch, clock_hz=clock_hz, operations=operations)


BEFORE = report(operation("Halo", 100), operation("Conv", 400, math=300, reader=100), operation("Move", None))
AFTER = report(
    operation("Halo", 100),
    operation("Pad", 30),
    operation("Conv", 500, cores=4, bound="reader", math=250, reader=250),
    operation("Move", None),
)


def test_each_difference_is_named_as_far_as_both_sides_tell_it() -> None:
    changed = dict(zip(ONE.figures, ("4", "LoFi", "pack", "1x1x32x32"), strict=True))
    after = replace(ONE, figures=changed, stages={"math": 4, "reader": 2, "pack": 5, "halo": 2})
    assert causes_of(ONE, after) == (
        ("cores", "8 -> 4 cores"),
        ("fidelity", "HiFi4 -> LoFi"),
        ("bound", "bound by math -> pack"),
        ("shapes", "INPUT_0 1x1x64x32 -> 1x1x32x32"),
        ("stages", "pack -4"),
        ("stages", "halo +2"),
    )
    assert causes_of(ONE, after, stages=False)[-1][0] == "shapes"
    silent = ReportedOperation(name="A", cycles=None, nanoseconds=5.0, figures={CORES: ""})
    assert causes_of(ONE, silent) == causes_of(silent, ONE) == causes_of(ONE, ONE) == ()
    assert causes_of(None, ONE) == (("matched", "only after"),)
    assert causes_of(ONE, None) == (("matched", "only before"),)
    assert causes_of(ONE, replace(ONE, nanoseconds=None)) == (("known times", "no time after"),)
    assert causes_of(replace(ONE, nanoseconds=None), ONE) == (("known times", "no time before"),)


def longest(before: str, after: str) -> int:
    """The length of the longest common subsequence, by trying all."""
    for count in range(min(len(before), len(after)), 0, -1):
        if set(combinations(before, count)) & set(combinations(after, count)):
            return count
    return 0


def test_as_many_as_can_be_are_matched_and_the_others_stand_between(monkeypatch: pytest.MonkeyPatch) -> None:
    assert matched("abc", "abc") == [(0, 0), (1, 1), (2, 2)]
    assert matched("axc", "ayc") == [(0, 0), (1, None), (None, 1), (2, 2)]
    assert matched("", "ab") == [(None, 0), (None, 1)]
    assert matched("aa", "a") == [(0, 0), (1, None)]
    random.seed(3)
    for _ in range(60):
        before, after = ("".join(random.choices("abc", k=random.randrange(8))) for _ in range(2))
        found = matched(before, after)
        both = [(row, column) for row, column in found if row is not None and column is not None]
        assert all(before[row] == after[column] for row, column in both)
        assert len(both) == longest(before, after)
        for side, length in ((0, len(before)), (1, len(after))):
            assert [pair[side] for pair in found if pair[side] is not None] == list(range(length))
    monkeypatch.setattr(comparison, "MOST_CELLS", 8)
    assert len(matched("a" * 1000, "a" * 1000)) == 1000  # nothing differs
    with pytest.raises(ArgumentError, match="compare: 2 and 2 operations that differ are too many to match"):
        matched("ab", "ba")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("HaloDeviceOperation", "Halo"),
        ("UntilizeWithHaloV2", "Halo"),
        ("OptimizedConvNew", "Conv2d"),
        ("GridSampleOperation", "GridSample"),
        ("UntilizeCodegenDeviceOperation", "Untilize"),
        ("Operation", "Operation"),
    ],
)
def test_versions_of_a_name_are_one_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_operations_and_kinds_are_summed() -> None:
    found = compare(BEFORE, AFTER)
    assert [(pair.name, pair.change.more, pair.change.share) for pair in found.pairs] == [
        ("Halo", 0, 0.0), ("Pad", 30, None), ("Conv", 100, 0.25), ("Move", 0, None)
    ]  # fmt: skip
    assert (found.unit, found.change, found.change.more, found.change.share) == ("cycles", (500, 630), 130, 0.26)
    assert [(kind.name, kind.counts, *kind.change, kind.change.more) for kind in found.kinds] == [
        ("Halo", (1, 1), 100, 100, 0), ("Conv", (1, 1), 400, 500, 100), ("Move", (1, 1), 0, 0, 0),
        ("Pad", (0, 1), 0, 30, 30),
    ]  # fmt: skip
    assert [found.fails(share) for share in (0.25, 0.26)] == [True, False]
    assert compare(report(), AFTER).fails(10.0)
    assert not compare(AFTER, BEFORE).fails(0.0)


def test_the_table_tells_sums_causes_and_leaves_out_what_is_the_same() -> None:
    assert str(compare(BEFORE, AFTER)).splitlines() == [
        "500 -> 630 cycles (+26.0 %), d before, d after",
        "3 operations are in both, 2 of them the same, 1 only after.",
        "What differs: cores in 1.",
        "Without a time before, and in no sum: 1 operation.",
        "Without a time after, and in no sum: 1 operation.",
        "",
        "kind       count  before  after  change    of it",
        "Conv           1     400    500    +100  +25.0 %",
        "Pad       0 -> 1       0     30     +30",
        "Halo           1     100    100      +0   +0.0 %",
        "Move           1       0      0      +0",
        "together             500    630    +130  +26.0 %",
        "",
        "operation  before  after  change    of it",
        "Pad                   30     +30",
        "    only after",
        "Conv          400    500    +100  +25.0 %",
        "    8 -> 4 cores, bound by math -> reader, reader +150, math -50",
    ]


def test_another_clock_counts_as_time() -> None:
    faster = replace(operation("A", 110, math=110), nanoseconds=55.0)
    found = compare(report(operation("A", 100, math=100)), report(faster, clock_hz=2_000_000_000))
    assert (found.change, found.unit, found.fails(0.0)) == ((100, 55), "ns", False)
    assert found.pairs[0].causes == ()  # cycles of two clocks do not compare
    assert found.notes == ("Clocks differ: 1 GHz before, 2 GHz after.",)


def test_a_card_is_compared_by_time() -> None:
    """By whatever name its version of tt-metal calls an operation."""
    rows = (("UntilizeWithHaloV2", 110.0), ("OptimizedConvNew", 900.0), ("Sort", None))
    operations = (ReportedOperation(name=name, cycles=None, nanoseconds=time) for name, time in rows)
    card = report(*operations, clock_hz=0, arch="blackhole")
    card = replace(card, left_out=("2 signposts", "1 other row"))
    ours = report(operation("HaloDeviceOperation", 100), operation("Conv2dDeviceOperation", 800), arch="wormhole_b0")
    found = compare(card, ours)
    assert [(pair.name, pair.change.more) for pair in found.pairs] == [
        ("UntilizeWithHaloV2", -10), ("OptimizedConvNew", -100), ("Sort", 0)
    ]  # fmt: skip
    assert found.notes == (
        "Architectures differ: blackhole before, wormhole_b0 after.",
        "Left out before: 2 signposts and 1 other row.",
        "Without a time before, and in no sum: 1 operation.",
    )
    assert "1.01 -> 0.90 us (-10.9 %)" in str(found)


def test_an_operation_without_a_time_in_one_is_in_no_sum() -> None:
    """Or one whose model is lost would make a slower network pass."""
    found = compare(report(operation("A", 100), operation("B", 900)), report(operation("A", 150), operation("B", None)))
    assert (found.change, found.pairs[1].change.more, found.fails(0.4)) == ((100, 150), 0, True)
    assert found.pairs[1].causes == (("known times", "no time after"),)
    (gone,) = compare(report(operation("A", 5)), report()).pairs
    assert (gone.change.more, gone.change.share) == (-5, -1.0)


@pytest.mark.parametrize("name", ["[red]x", "a\nb\x1b[31m", "\u202e\u2028", "層" * 5000])
def test_a_hostile_name_stays_on_its_row(name: str) -> None:
    hostile = Reported(device=name, arch=name, clock_hz=10**9, operations=(operation(name, 1_234_567, cores=3),))
    same = Reported(device="d", arch="b", clock_hz=10**9, operations=(operation(name, 1_000_000, bound=name),))
    for found in (compare(hostile, same), compare(report(), hostile)):
        lines = found.table(80).split("\n")
        assert not set("".join(lines)) & set("\x1b\r\u202e\u2028")
        rows = [line for line in lines if "1,234,567" in line]
        assert len(rows) >= 3
        assert max(map(cells_of, rows)) <= 80
