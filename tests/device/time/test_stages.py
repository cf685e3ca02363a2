"""What an operation takes, in words of the report."""

from dataclasses import asdict, dataclass, replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.time.stages import (
    CoreGroupCycles,
    Lazy,
    MovedBytes,
    OperationCycles,
    Stage,
    StageCycles,
    binding_stage,
    nanoseconds,
)


def cores(first, last):
    return CoreRangeSet([CoreRange(CoreCoord(first, 0), CoreCoord(last, 0))])


def test_most_critical_stage_binds_and_the_busiest_among_equals():
    stages = [StageCycles(Stage.READER, 9), StageCycles(Stage.MATH, 5, critical_cycles=5), StageCycles(Stage.PACK, 7)]
    assert binding_stage(stages) is Stage.MATH
    assert binding_stage([stages[0], stages[2]]) is Stage.READER


def test_slowest_group_and_number_of_cores():
    groups = tuple(
        CoreGroupCycles(cores=cores(*span), cycles=c, stages=()) for span, c in (((0, 0), 5.0), ((1, 3), 9.0))
    )
    operation = OperationCycles(cycles=9.0, groups=groups, bound_by=Stage.MATH)
    assert operation.slowest is groups[1]
    assert operation.cores == 4


def test_bytes_that_no_model_tells_apart_are_moved_by_all_cores_alike():
    groups = tuple(CoreGroupCycles(cores=cores(*span), cycles=9.0, stages=()) for span in ((0, 0), (1, 3)))
    operation = OperationCycles(
        cycles=9.0, groups=groups, bound_by=Stage.MATH, dram_read_bytes=64, dram_written_bytes=32, network_bytes=8
    )
    assert operation.moved == (MovedBytes(cores(0, 3), dram_bytes=96, network_bytes=8),)


def test_a_higher_clock_shortens_time_and_not_cycles():
    assert nanoseconds(1350, 1_350_000_000) == pytest.approx(1000)
    assert nanoseconds(1000, 2_000_000_000) == 500 < nanoseconds(1000, 1_000_000_000) == 1000
    assert nanoseconds(0, 2_000_000_000) == nanoseconds(0, 1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class Drawer:
    """Two figures, one of them late."""

    label: str
    figures: Lazy[tuple[int, ...]] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    total: Lazy[int] = Lazy(lambda drawer: sum(drawer.figures))  # noqa: RUF009


def counting(calls):
    """A function that gives (3, 4), and notes that it was called."""

    def figures():
        calls.append(1)
        return 3, 4

    return figures


def test_computed_once_and_not_before():
    calls = []
    drawer = Drawer(label="a", figures=counting(calls))
    assert not calls
    assert drawer.figures == drawer.figures == Drawer(label="a", figures=(3, 4)).figures == (3, 4)
    assert drawer.total == drawer.total == 7
    assert len(calls) == 1
    assert Drawer(label="a", figures=counting(calls), total=8).total == 8
    assert len(calls) == 1


def test_copies_comparisons_and_dictionaries_have_the_value():
    drawer = Drawer(label="a", figures=counting([]))
    assert asdict(drawer) == {"label": "a", "figures": (3, 4), "total": 7}
    assert replace(Drawer(label="a", figures=counting([])), label="b") == Drawer(label="b", figures=(3, 4))
    assert repr(Drawer(label="a", figures=counting([]))) == "Drawer(label='a', figures=(3, 4), total=7)"


def test_without_a_rule_it_has_no_default():
    with pytest.raises(TypeError, match="figures"):
        Drawer(label="a")
