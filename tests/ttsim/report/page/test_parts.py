"""Operations along the time, cores of a grid: the halo and the convolution of conftest, and one that is untimed."""

from dataclasses import replace

import pytest

from ttsim.report.cycles import UntimedOperation
from ttsim.report.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.page_parts import deeds, excesses, grid_of, grid_of_cores, roofs, stages_of, steps, times

RAN = [("HaloDeviceOperation", 60, 40), ("MoveDeviceOperation", 0, 50), ("Conv2dDeviceOperation", 150, 50)]


def told(report):
    missing = UntimedOperation(name="MoveDeviceOperation", reason="nobody knows", position=1)
    return deeds(RAN, [replace(report.calls[0], untimed=(missing,))], 1000)


def test_operations_of_one_name_are_told_apart_by_their_places(report) -> None:
    """The second of three moves is the one that no model knows; names alone would make it the first."""
    (call,) = report.calls
    moves = [replace(one, name="MoveDeviceOperation") for one in call.operations]
    missing = UntimedOperation(name="MoveDeviceOperation", reason="nobody knows", position=1)
    ran = [("MoveDeviceOperation", 0, 50)] * 3
    found = deeds(ran, [replace(call, operations=tuple(moves), untimed=(missing,))], 1000)
    assert [one.time for one in found] == [moves[0], None, moves[1]]
    assert [one.untimed for one in found] == ["", "nobody knows", ""]


def test_operations_without_cycles_say_so() -> None:
    assert [(one.time, one.untimed) for one in deeds(RAN, None, 1000)] == [(None, "no cycles")] * 3


def test_operations_stand_one_after_the_other(report) -> None:
    halo, move, conv = told(report)
    assert (halo.left_share, halo.width_share) == (0.0, 0.2)  # 1000 and 4000 cycles
    assert (move.left_share, move.width_share, move.untimed, move.time) == (0.2, 0.0, "nobody knows", None)
    assert (conv.left_share, conv.width_share, conv.l1_share) == (0.2, 0.8, 0.2)
    assert conv.start_nanoseconds == 1000.0


def test_only_stages_that_take_time_have_a_lane(report) -> None:
    assert stages_of(told(report)) == ("start", "reader", "math", "network", "dram")


def test_the_longest_operations_come_first(report) -> None:
    longest, other = roofs(told(report))
    assert (longest.deed.name, other.deed.name) == ("Conv2dDeviceOperation", "HaloDeviceOperation")
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
    work, sent = maps["at work"], maps["over the networks"]
    assert (work.least, work.most, work.unit, work.whole) == (0, 5000, "cycles", "of all cycles")
    assert (work.figures[1], work.shares[1]) == (4400, 0.88)
    assert (sent.most, sent.figures[8], sent.shares[8]) == (4500, 1500, 1500 / 4500)


def test_without_a_device_the_grid_is_as_large_as_what_worked(report) -> None:
    grid = grid_of_cores(report.total.cores)
    assert (grid.columns, grid.rows, len(grid.cells)) == (8, 4, 32)
    assert grid_of_cores(()).maps == ()


def test_the_farthest_above_their_roofs_come_first(report) -> None:
    conv, halo = excesses(told(report))
    roof = report.operations[1].roofline.cycles
    assert (conv.deed.name, conv.cycles, conv.share) == ("Conv2dDeviceOperation", 4000 - roof, (4000 - roof) / 5000)
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
