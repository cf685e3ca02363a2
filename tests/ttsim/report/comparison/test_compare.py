"""Two reports by hand."""

from ttsim.report.comparison.compare import compare
from ttsim.report.comparison.read import ReportedOperation


def operation(name: str, cycles: int | None, *, cores: int = 8, bound: str = "math", **stages: int):
    return ReportedOperation(name=name, cycles=cycles, bound_by=bound, core_count=cores, stages=tuple(stages.items()))


BEFORE = [operation("Halo", 100), operation("Conv", 400, math=300, reader=100), operation("Move", None)]
AFTER = [
    operation("Halo", 100),
    operation("Pad", 30),
    operation("Conv", 500, cores=4, bound="reader", math=250, reader=250),
    operation("Move", None),
]


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
    (lost,) = compare([operation("A", 5)], [operation("A", None)]).pairs
    assert lost.causes == ("no model after",)
    (gone,) = compare([operation("A", 5)], []).pairs
    assert (gone.causes, gone.change, gone.share) == (("only before",), -5, -1.0)


def test_it_fails_over_a_share() -> None:
    found = compare(BEFORE, AFTER)
    assert found.fails(0.25)
    assert not found.fails(0.26)
    assert compare([], AFTER).fails(10.0)
    assert not compare(AFTER, BEFORE).fails(0.0)


def test_the_table_leaves_out_what_is_the_same() -> None:
    text = str(compare(BEFORE, AFTER))
    assert "Halo" not in text
    assert "2 operations are the same in both." in text
    assert "+26.0 %" in text
    assert "\x1b" not in str(compare([], [operation("\x1b[31m", 5)]))
