"""What a program of output phases tells of itself, worked by hand."""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.op_model import Ends
from ops.op_models import OP_MODELS
from ops.programs.phase_conv2d.cycles import phase_cycles
from ops.programs.phase_conv2d.plan import PhaseConv2dOp


def description(made):
    tensor = TensorSpec((1, 1, 32, 32), BFLOAT16, Layout.ROW_MAJOR)
    return OP_MODELS[PhaseConv2dOp].describe(made.op, Ends(read=tensor, written=tensor), made.spec)


def facts(made):
    return {fact.name: fact.value for fact in description(made).facts}


def test_phases_and_their_groups_are_counted(planned):
    """8x8 pixels become 256 outputs, 32 of a core; a row of phases meets the same inputs where no window overlaps."""
    assert facts(planned()) == {"scheme": "HEIGHT_SHARDED", "output_cores": 8, "phases": 4, "groups": 2}
    assert facts(planned(kernel=(4, 4), padding=(1, 1, 1, 1)))["groups"] == 4
    assert facts(planned(kernel=(3, 3), stride=(3, 3)))["phases"] == 9
    joined = facts(planned((16, 16), channels=(512, 512), scheme="BLOCK_SHARDED"))  # two rows of two phases
    assert (joined["phases"], joined["groups"]) == (4, 1)


def test_cores_are_those_that_hold_the_output(planned):
    """64 outputs of 2 tiles of channels on 8x8 cores: two columns of cores hold them, all eight gather."""
    result = planned((16, 16), channels=(256, 64), scheme="BLOCK_SHARDED")
    assert result.op.layout.config.cores.num_cores() == 64
    assert facts(result)["output_cores"] == 16
    assert description(result).facts[1].text == "output on 16 of 64 cores"


def test_every_stage_is_told(planned):
    for result in (planned(bias=True), planned(channels=(128, 64), scheme="BLOCK_SHARDED", bias=True)):
        stages = {stage.stage for group in phase_cycles(result.op, result.spec).groups for stage in group.stages}
        text = description(result).stages
        assert stages - {Stage.START, Stage.MATH} <= set(text)  # these mean the same in all programs
        assert text[Stage.WRITER] == "the second processor copies finished sticks to their rows of the output shard"


def test_what_it_is_composed_of_is_measured_and_the_whole_is_not(planned):
    found = description(planned())
    assert (found.measured_as, found.composed_of) == ("", "the steps of the measured convolution program")
