"""Two reports by hand."""

import pytest

from ttsim.report.comparison import Reported, ReportedOperation, compare
from ttsim.report.formatting import cells_of


def operation(name: str, cycles: int | None, *, cores: int = 8, bound: str = "math", **stages: int):
    nanoseconds = None if cycles is None else float(cycles)
    return ReportedOperation(
        name=name, cycles=cycles, nanoseconds=nanoseconds, bound_by=bound, core_count=cores, stages=(*stages.items(),)
    )


def row(name: str, nanoseconds: float | None):
    """As a card's profiler tells it."""
    return ReportedOperation(name=name, cycles=None, nanoseconds=nanoseconds, bound_by="", core_count=8)


def report(*operations: ReportedOperation, clock_hz: int = 1_000_000_000, arch: str = "") -> Reported:
    return Reported(device="d", arch=arch, clock_hz=clock_hz, operations=operations)


BEFORE = report(operation("Halo", 100), operation("Conv", 400, math=300, reader=100), operation("Move", None))
AFTER = report(
    operation("Halo", 100),
    operation("Pad", 30),
    operation("Conv", 500, cores=4, bound="reader", math=250, reader=250),
    operation("Move", None),
)


def test_operations_are_matched_in_order() -> None:
    found = compare(BEFORE, AFTER)
    assert [(one.name, one.change.more, one.change.share) for one in found.pairs] == [
        ("Halo", 0, 0.0), ("Pad", 30, None), ("Conv", 100, 0.25), ("Move", 0, None)
    ]  # fmt: skip
    assert (found.unit, found.change, found.change.more, found.change.share) == ("cycles", (500, 630), 130, 0.26)


def test_kinds_are_summed() -> None:
    kinds = compare(BEFORE, AFTER).kinds
    assert [(one.kind, one.counts, *one.change, one.change.more) for one in kinds] == [
        ("Halo", (1, 1), 100, 100, 0), ("Conv", (1, 1), 400, 500, 100), ("Move", (1, 1), 0, 0, 0),
        ("Pad", (0, 1), 0, 30, 30),
    ]  # fmt: skip


def test_it_fails_over_a_share() -> None:
    found = compare(BEFORE, AFTER)
    assert found.fails(0.25)
    assert not found.fails(0.26)
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
    after = operation("A", 110, math=110)
    faster = report(ReportedOperation(name="A", cycles=110, nanoseconds=55.0, bound_by="math", core_count=8,
                                      stages=after.stages), clock_hz=2_000_000_000)  # fmt: skip
    found = compare(report(operation("A", 100, math=100)), faster)
    assert (found.change, found.unit) == ((100, 55), "ns")
    assert not found.fails(0.0)
    assert found.pairs[0].causes == ()  # cycles of two clocks do not compare
    assert "Clocks differ: 1 GHz before, 2 GHz after." in found.notes
    assert "100" not in str(compare(BEFORE, AFTER).notes)


def test_a_card_is_compared_by_time() -> None:
    """By whatever name its version of tt-metal calls an operation."""
    card = report(row("UntilizeWithHaloV2", 110.0), row("OptimizedConvNew", 900.0), row("Sort", None), clock_hz=0,
                  arch="blackhole")  # fmt: skip
    ours = report(operation("HaloDeviceOperation", 100), operation("Conv2dDeviceOperation", 800), arch="wormhole_b0")
    found = compare(card, ours)
    assert [(one.name, one.change.more) for one in found.pairs] == [
        ("UntilizeWithHaloV2", -10), ("OptimizedConvNew", -100), ("Sort", 0)
    ]  # fmt: skip
    assert found.notes == (
        "Architectures differ: blackhole before, wormhole_b0 after.",
        "Without a time before, and in no sum: 1 operation.",
    )
    assert "1.01 -> 0.90 us (-10.9 %)" in str(found)


def test_an_operation_without_a_time_in_one_is_in_no_sum() -> None:
    """Or one whose model is lost would make a slower network pass."""
    found = compare(report(operation("A", 100), operation("B", 900)), report(operation("A", 150), operation("B", None)))
    assert (found.change, found.pairs[1].change.more, found.fails(0.4)) == ((100, 150), 0, True)
    assert [one.text for one in found.pairs[1].causes] == ["no time after"]
    (gone,) = compare(report(operation("A", 5)), report()).pairs
    assert (gone.change.more, gone.change.share) == (-5, -1.0)


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("name", ["[red]x", "a\nb\x1b[31m", "<b>'\"", "\u202e\u2028", "x" * 10_000, "層" * 5000])
def test_a_hostile_name_stays_on_its_row(name: str, width: int) -> None:
    hostile = Reported(device=name, arch=name, clock_hz=10**9, operations=(operation(name, 1_234_567, cores=3),))
    same = Reported(device="d", arch="b", clock_hz=10**9, operations=(operation(name, 1_000_000, bound=name),))
    for found in (compare(hostile, same), compare(report(), hostile)):
        lines = found.table(width).split("\n")
        assert not set("".join(lines)) & set("\x1b\r\u202e\u2028")
        assert sum("1,234,567" in line for line in lines) >= 3
        rows = [line for line in lines if "1,234,567" in line]
        assert max(map(cells_of, rows)) <= width
