"""Cores that all do the same."""

from device.cores import first_cores
from device.spec.device_spec import load_spec
from device.time.stages import Stage, StageCycles
from ops.programs.buffer_shapes import alike_cycles, pipelined_cycles

SPEC = load_spec("wormhole_n150").replace(movement_costs_start_cycles=1000.0)
CORES = first_cores(3, 8, 8)


def test_pieces_pass_the_slowest_part_one_behind_the_other():
    """30 through all parts, then four times 20."""
    assert pipelined_cycles((5, 20, 5), 1) == 30
    assert pipelined_cycles((5, 20, 5), 5) == 30 + 4 * 20


def test_cores_start_and_do_the_same():
    busy = {Stage.READER: 40.0, Stage.MATH: 70.0, Stage.WRITER: 0.0}
    made = alike_cycles(CORES, 100.0, busy, SPEC, dram_read_bytes=64, contention_cycles=25.0)
    assert (made.cycles, made.cores, made.dram_read_bytes, made.contention_cycles) == (1100.0, 3, 64, 25.0)
    (group,) = made.groups
    assert group.stages == (
        StageCycles(Stage.START, 1000.0),
        StageCycles(Stage.READER, 40.0),
        StageCycles(Stage.MATH, 70.0),
    )


def test_the_start_binds_nothing():
    assert alike_cycles(CORES, 100.0, {Stage.READER: 40.0, Stage.MATH: 70.0}, SPEC).bound_by is Stage.MATH
