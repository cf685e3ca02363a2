"""Two reports by hand."""

from ttsim.report.comparison.compare import compare
from ttsim.report.comparison.read import Reported, ReportedOperation


def operation(name: str, cycles: int | None, *, cores: int = 8, bound: str = "math", **stages: int):
    return ReportedOperation(name=name, cycles=cycles, bound_by=bound, core_count=cores, stages=tuple(stages.items()))


def report(*operations: ReportedOperation, clock_hz: int = 1_000_000_000) -> Reported:
    return Reported(device="d", clock_hz=clock_hz, operations=operations)


BEFORE = report(operation("Halo", 100), operation("Conv", 400, math=300, reader=100), operation("Move", None))
AFTER = report(
    operation("Halo", 100),
    operation("Pad", 30),
    operation("Conv", 500, cores=4, bound="reader", math=250, reader=250),
    operation("Move", None),
)


def test_operations_are_matched_in_order() -> None:
    found = compare(BEFORE, AFTER)
    assert [(one.name, one.change, one.share) for one in found.pairs] == [
        ("Halo", 0, 0.0), ("Pad", 30, None), ("Conv", 100, 0.25), ("Move", 0, None)
    ]  # fmt: skip
    assert (found.before, found.after, found.change, found.share) == (500, 630, 130, 0.26)


def test_causes_are_told() -> None:
    causes = [one.causes for one in compare(BEFORE, AFTER).pairs]
    assert causes == [
        (), ("only after",), ("8 -> 4 cores", "bound by math -> reader", "reader +150", "math -50"), ()
    ]  # fmt: skip
    (lost,) = compare(report(operation("A", 5)), report(operation("A", None))).pairs
    assert lost.causes == ("no model after",)
    (gone,) = compare(report(operation("A", 5)), report()).pairs
    assert (gone.causes, gone.change, gone.share) == (("only before",), -5, -1.0)


def test_stages_that_one_report_does_not_tell_are_no_cause() -> None:
    (pair,) = compare(report(operation("A", 5)), report(operation("A", 5, math=5))).pairs
    assert pair.causes == ()


def test_it_fails_over_a_share() -> None:
    found = compare(BEFORE, AFTER)
    assert found.fails(0.25)
    assert not found.fails(0.26)
    assert compare(report(), AFTER).fails(10.0)
    assert not compare(AFTER, BEFORE).fails(0.0)


def test_the_table_leaves_out_what_is_the_same() -> None:
    text = str(compare(BEFORE, AFTER))
    assert "Halo" not in text
    assert "2 operations are the same in both." in text
    assert "+26.0 %" in text
    assert "\x1b" not in str(compare(report(), report(operation("\x1b[31m", 5))))


def test_another_clock_is_told_and_counts_as_time() -> None:
    found = compare(report(operation("A", 100)), report(operation("A", 110), clock_hz=2_000_000_000))
    assert (found.before_nanoseconds, found.after_nanoseconds, found.same_clock) == (100.0, 55.0, False)
    assert not found.fails(0.0)
    assert "Clocks differ, cycles are those of each: 0.10 us before, 0.06 us after." in str(found)
    assert "Clocks" not in str(compare(BEFORE, AFTER))
