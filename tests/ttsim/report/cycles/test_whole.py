import json
import math
from dataclasses import fields
from fractions import Fraction

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import OperationTime, whole, whole_operation


@pytest.mark.parametrize(("cycles", "expected"), [(0.4, 0), (0.5, 0), (1.5, 2), (2.5, 2), (7.6, 8)])
def test_the_nearest_whole_number(cycles, expected):
    assert whole(cycles) == expected


def test_the_order_of_additions_decides_nothing():
    """Half a cycle, summed up with and without rounding in between, as versions of Python do."""
    plain = 0.0
    for _ in range(15):
        plain += 0.1
    assert plain != math.fsum([0.1] * 15) == float(Fraction(3, 2))
    assert whole(plain + 1) == whole(math.fsum([0.1] * 15) + 1) == 2


COUNTS = ("dram_read_bytes", "dram_written_bytes", "network_bytes", "issued_flops", "useful_flops")


def operation():
    stages = (
        StageCycles(Stage.READER, 40.4, critical_cycles=33.4),
        StageCycles(Stage.MATH, 60.5, stall_cycles=1.2, critical_cycles=33.4),
        StageCycles(Stage.WRITER, 70.0, critical_cycles=33.4),
    )
    apart = CoreRangeSet(CoreRange(CoreCoord(x, y), CoreCoord(x, y)) for x in range(1, 4) for y in range(2))
    return OperationCycles(
        cycles=100.2,
        groups=(
            CoreGroupCycles(cores=apart, cycles=101.0, stages=stages),
            CoreGroupCycles(cores=first_cores(1, 8, 8), cycles=50.0, stages=stages[:1]),
        ),
        bound_by=Stage.WRITER,
        contention_cycles=0.7,
    )


def test_an_operation_in_whole_cycles():
    found = whole_operation(operation())
    assert (found.cycles, found.contention_cycles) == (100, 1)
    assert [group.cycles for group in found.groups] == [100, 50]  # none ends after the operation
    critical = [stage.critical_cycles for stage in found.groups[0].stages]
    assert critical == [33, 34, 33]
    assert sum(critical) == found.cycles


def test_cores_are_rectangles(spec):
    context = TimedOperation(name="Op", cycles=whole_operation(operation()))
    group = OperationTime(timed=context, spec=spec, call_cycles=100).groups[0]
    assert (group.cores, group.ranges) == ("{[1-0 - 3-1]}", ((1, 0, 3, 1),))
    assert group.coordinates == ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1))


def test_json_has_whole_cycles_alone(call, spec):
    found = []

    def visit(value, name=""):
        if isinstance(value, dict):
            for key, item in value.items():
                visit(item, key)
        elif isinstance(value, list):
            for item in value:
                visit(item, name)
        elif name.endswith("cycles"):
            found.append(value)
        elif name.endswith("share") and value is not None:
            assert 0 <= value <= 1

    visit(json.loads(cycle_report([call], spec).to_json()))
    assert found
    assert all(isinstance(value, int) for value in found)


def test_all_that_is_no_cycles_stays_as_it_is():
    told = operation()
    of_all = {one.name: getattr(told, one.name) for one in fields(OperationCycles)}
    given = OperationCycles(**of_all | {one: number for number, one in enumerate(COUNTS, 7)} | {"cores": 5})
    made = whole_operation(given)
    rounded = {"cycles", "groups", "slowest", "contention_cycles"}
    assert {name for name in of_all if getattr(made, name) != getattr(given, name)} <= rounded
    assert [getattr(made, one) for one in COUNTS] == [7, 8, 9, 10, 11]
