"""What reports say of every stage of every device operation is said by its program, and is true."""

import pytest

from device.time.stages import Stage
from ops.op_models import load_spec
from ops.passes.cycles import run_cycles
from ops.sensitivity.samples import planners_samples, samples

ALIKE = {Stage.START, Stage.MATH, Stage.TILIZE, Stage.NETWORK}  # the same, whatever the program: `DOES` has their words


@pytest.mark.parametrize("device", ["wormhole_n150", "blackhole_p150"])
def test_every_stage_is_told_by_its_program_and_takes_a_part_of_its_time(device):
    """A movement's reader and writer name DRAM where they move its bytes: ReshapeView once gathered from L1 unnamed."""
    spec = load_spec(device)
    calls = (*samples(), *planners_samples())
    timed = [op for sample in calls for op in run_cycles(sample.plan(spec), spec).operations if op.cycles is not None]
    assert len({op.name for op in timed}) >= 14
    for op in timed:
        words, cycles = op.description.stages, op.cycles
        for group in cycles.groups:
            assert group.cycles <= cycles.cycles + 0.5
            for stage in group.stages:
                assert stage.stage in ALIKE | set(words), (op.name, stage.stage)
                assert 0 <= stage.critical_cycles <= cycles.cycles * (1 + 1e-9)
                assert 0 <= stage.busy_cycles <= cycles.cycles * (1 + 1e-9), (op.name, stage)
        if "in other movements" in op.description.composed_of:
            busy = {stage.stage: words.get(stage.stage, "") for stage in cycles.slowest.stages if stage.busy_cycles}
            assert ("from DRAM" in busy.get(Stage.READER, "")) == bool(cycles.dram_read_bytes), op
            assert ("to DRAM" in busy.get(Stage.WRITER, "")) == bool(cycles.dram_written_bytes), op
