"""Two reports side by side, by hand: matching, differences, sums, and the table."""

import random
from dataclasses import replace
from itertools import combinations

import pytest

from device.errors import ArgumentError
from tests.ttsim.report.test_approved import approve
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


HALO, MOVE = operation("Halo", 100), operation("Move", None)
BEFORE = report(HALO, operation("Conv", 400, math=300, reader=100), MOVE)
CONV = operation("Conv", 500, cores=4, bound="reader", math=250, reader=250)
AFTER = report(HALO, operation("Pad", 30), CONV, MOVE)


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
    at_two_clocks = causes_of(ONE, after, clocks_hz=(500_000_000, 1_000_000_000))  # 2 ns a cycle, then 1 ns
    assert at_two_clocks[-2:] == (("stages", "pack -13 ns"), ("stages", "math -2 ns"))
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


def test_versions_of_a_name_are_one_kind() -> None:
    names = ("HaloDeviceOperation", "UntilizeWithHaloV2", "OptimizedConvNew", "GridSampleOperation",
             "UntilizeCodegenDeviceOperation", "Operation")  # fmt: skip
    assert list(map(kind_of, names)) == ["Halo", "Halo", "Conv2d", "GridSample", "Untilize", "Operation"]


def test_tables_tell_sums_and_causes() -> None:
    """Of layers; on another clock; of a card with old names; of operations that a report has not, or without a time."""
    faster = replace(operation("A", 110, math=110), nanoseconds=55.0)
    rows = (("UntilizeWithHaloV2", 110.0), ("OptimizedConvNew", 900.0), ("Sort", None))
    card = report(*(ReportedOperation(name=name, cycles=None, nanoseconds=time) for name, time in rows), clock_hz=0,
                  arch="blackhole")  # fmt: skip
    ours = report(operation("HaloDeviceOperation", 100), operation("Conv2dDeviceOperation", 800), arch="wormhole_b0")
    pairs = [
        (BEFORE, AFTER),
        (report(operation("A", 100, math=100)), report(faster, clock_hz=2_000_000_000)),
        (replace(card, left_out=("2 signposts", "1 other row")), ours),
        (report(operation("A", 100), operation("B", 900)), report(operation("A", 150), operation("B", None))),
        (report(operation("A", 5)), report()),
        (report(), report()),
    ]
    approve("comparison.txt", "\n\n".join(str(compare(*pair)) for pair in pairs) + "\n")


def test_a_device_that_is_known_by_its_architecture_alone_is_told_so() -> None:
    ours = report(operation("A", 100), arch="wormhole_b0")
    card = replace(ours, device="wormhole_b0")
    nowhere = replace(ours, device="", arch="")
    assert f"{ours.device} before, a wormhole_b0 device after" in str(compare(ours, card))
    assert "an unknown device before, an unknown device after" in str(compare(nowhere, nowhere))


def test_a_slower_report_fails() -> None:
    found = compare(BEFORE, AFTER)
    assert (found.unit, found.change, found.change.more, found.change.share) == ("cycles", (500, 630), 130, 0.26)
    assert [found.fails(share) for share in (0.25, 0.26)] == [True, False]
    assert compare(report(), AFTER).fails(10.0)
    assert not compare(AFTER, BEFORE).fails(0.0)


@pytest.mark.parametrize("name", ["[red]x", "a\nb\x1b[31m\u202e\u2028", "層" * 5000])
def test_a_hostile_name_stays_on_its_row(name: str) -> None:
    hostile = Reported(device=name, arch=name, clock_hz=10**9, operations=(operation(name, 1_234_567, cores=3),))
    for found in (compare(hostile, report(operation(name, 1_000_000, bound=name))), compare(report(), hostile)):
        lines = found.table(80).split("\n")
        assert not set("".join(lines)) & set("\x1b\r\u202e\u2028")
        rows = [line for line in lines if "1,234,567" in line]
        assert len(rows) >= 3
        assert max(map(cells_of, rows)) <= 80
