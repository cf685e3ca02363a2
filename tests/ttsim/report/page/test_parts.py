"""Operations along the time, cores of a grid: the halo and the convolution of conftest, and one that is untimed."""

from dataclasses import replace

from ttsim.report.cycles.figures import UntimedOperation
from ttsim.report.memory.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.page.parts import deeds, grid_of, roofs, stages_of

RAN = [("HaloDeviceOperation", 60, 40), ("MoveDeviceOperation", 0, 50), ("Conv2dDeviceOperation", 150, 50)]


def told(report):
    call = replace(report.calls[0], untimed=(UntimedOperation(name="MoveDeviceOperation", reason="nobody knows"),))
    return deeds(RAN, call.operations, [call], 1000)


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
    assert (here.cycles, here.busy_cycles, here.stall_cycles) == (1000 + 4000, 900 + 3000, 1500)
    assert (here.share, here.busy_share, here.stall_share) == (1.0, 0.78, 0.3)
    assert (beside.cycles, beside.busy_cycles) == (400 + 4000, 400 + 3000)
    assert (here.circular_bytes, beside.circular_bytes) == (64, 128)
    assert (last.cycles, last.circular_bytes) == (0, 0)
