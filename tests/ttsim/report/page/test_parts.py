"""Operations along the time, cores of a grid: the halo and the convolution of conftest, and one that is untimed."""

from dataclasses import replace

import pytest

from tests.ttsim.report.ran_operations import runs_of, untimed
from ttsim.report.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.page_parts import excesses, grid_of, grid_of_cores, roofs, stages_of, steps, times


@pytest.fixture
def found(halo, conv, spec):
    """A halo, a move that no model knows, and a convolution."""
    l1 = [{"l1": (60, 40)}, {"l1": (0, 50)}, {"l1": (150, 50)}]
    return runs_of(spec, halo, untimed(), conv, facts=l1)


def test_operations_of_one_name_are_told_apart_by_their_places(halo, conv, spec) -> None:
    """The second of three moves is the one that no model knows; names alone would make it the first."""
    moves = [replace(one, name="MoveDeviceOperation") for one in (halo, conv)]
    first, second, third = runs_of(spec, moves[0], untimed(), moves[1])
    assert [one.time and one.time.cycles for one in (first, second, third)] == [1000, None, 4000]
    assert [one.untimed for one in (first, second, third)] == ["", "nobody knows", ""]


def test_operations_without_cycles_say_so(spec) -> None:
    (only,) = runs_of(spec, untimed(), taken=None)
    assert (only.time, only.untimed, only.cycles) == (None, "no cycles", 0)


def test_operations_stand_one_after_the_other(found, spec) -> None:
    halo, move, conv = found
    assert (halo.left_share, halo.width_share) == (0.0, 0.2)  # 1000 and 4000 cycles
    assert (move.left_share, move.width_share, move.untimed, move.time) == (0.2, 0.0, "nobody knows", None)
    assert (conv.left_share, conv.width_share, conv.l1_share) == (0.2, 0.8, 200 / spec.l1.usable_bytes)
    assert conv.start_nanoseconds == 1000.0


def test_only_stages_that_take_time_have_a_lane(report, found) -> None:
    assert stages_of(found) == ("start", "reader", "math", "network", "dram")


def test_the_longest_operations_come_first(report, found) -> None:
    longest, other = roofs(found)
    assert (longest.op.name, other.op.name) == ("Conv2dDeviceOperation", "HaloDeviceOperation")
    assert longest.math_share == report.operations[1].roofline.math_cycles / 4000


def test_every_core_has_its_time_and_its_circular_buffers(report, spec) -> None:
    first = Held(name="a", kind=CIRCULAR, address=0, size_bytes=64, ranges=((0, 0, 1, 0),))
    second = replace(first, name="b", ranges=((1, 0, 1, 0),))
    grid = grid_of(spec, report.total.cores, l1_map([(first, second), (second,)], spec))
    assert (grid.columns, grid.rows, len(grid.cells)) == (8, 8, 64)
    here, beside, last = grid.cells[0], grid.cells[1], grid.cells[63]
    assert (here.core.cycles, here.core.busy_cycles, here.core.stall_cycles) == (1000 + 4000, 900 + 3000, 1500)
    assert (here.core.share, here.core.busy_share, here.core.stall_share) == (1.0, 0.78, 0.3)
    assert (beside.core.cycles, beside.core.busy_cycles) == (400 + 4000, 400 + 3000)
    assert (here.circular_bytes, beside.circular_bytes) == (64, 128)
    assert (last.core.cycles, last.circular_bytes) == (0, 0)
    assert (here.core.dram_bytes, here.core.network_bytes) == (100_000 / 32, 12_000 / 4 + 48_000 / 32)
    assert (last.core.dram_bytes, last.core.network_bytes) == (0, 0)


def test_pictures_of_cores_say_what_is_most_and_least(report, spec) -> None:
    maps = {one.name: one for one in grid_of(spec, report.total.cores, l1_map([], spec)).maps}
    assert list(maps) == [
        "at work",
        "busiest stage",
        "waiting",
        "from and to DRAM",
        "over the networks",
    ]  # none held any
    op, sent = maps["at work"], maps["over the networks"]
    assert (op.least, op.most, op.unit, op.whole) == (0, 5000, "cycles", "of all cycles")
    assert (op.figures[1], op.shares[1]) == (4400, 0.88)
    assert (sent.most, sent.figures[8], sent.shares[8]) == (4500, 1500, 1500 / 4500)


def test_without_a_device_the_grid_is_as_large_as_what_worked(report) -> None:
    grid = grid_of_cores(report.total.cores)
    assert (grid.columns, grid.rows, len(grid.cells)) == (8, 4, 32)
    assert grid_of_cores(()).maps == ()


def test_the_farthest_above_their_roofs_come_first(report, found) -> None:
    conv, halo = excesses(found)
    roof = report.operations[1].roofline.cycles
    assert (conv.op.name, conv.cycles, conv.share) == ("Conv2dDeviceOperation", 4000 - roof, (4000 - roof) / 5000)
    assert (conv.stages, conv.does) == (("math",), "the matrix unit multiplies")
    assert halo.cycles < conv.cycles


@pytest.mark.parametrize(
    ("operations", "expected"),
    [(0, []), (1, ["#0"]), (3, ["#0", "#1", "#2"]), (13, ["#0", "#2", "#4", "#6", "#8", "#10", "#12"])],
)
def test_an_axis_of_operations_has_few_marks(operations, expected) -> None:
    found = steps(operations)
    assert [one.text for one in found] == expected
    assert [one.share for one in found] == [int(name[1:]) / operations for name in expected]
    assert len(steps(12_345)) <= 12


@pytest.mark.parametrize(
    ("nanoseconds", "expected"),
    [
        (0.0, []),
        (3.0, ["0 ns", "1 ns", "2 ns", "3 ns"]),
        (1500.0, ["0 ns", "500 ns", "1000 ns", "1500 ns"]),
        (4_778_570.0, ["0 ms", "1 ms", "2 ms", "3 ms", "4 ms"]),
    ],
)
def test_an_axis_of_time_has_round_marks(nanoseconds, expected) -> None:
    found = times(nanoseconds)
    assert [one.text for one in found] == expected
    for one in found:
        assert one.share == pytest.approx(int(one.text[:-3]) * UNIT[one.text[-2:]] / nanoseconds)


UNIT = {"ns": 1, "ms": 1e6}
