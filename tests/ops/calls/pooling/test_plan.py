"""What the plan of a pool says of its halo."""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from ops.calls.pooling.arguments import PoolArguments
from ops.calls.pooling.plan import plan_max_pool2d
from ops.meanings import load_spec
from ops.programs.halo.plan import HaloWork


def test_padding_is_the_least_number_and_copied_stick_by_stick():
    call = PoolArguments(
        source=TensorSpec((1, 1, 256, 32), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG),
        batch=1,
        image=(16, 16),
        channels=32,
        kernel=(3, 3),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        dilation=(1, 1),
    )
    steps = plan_max_pool2d(call, load_spec("wormhole_n150")).steps
    works = [step.work for step in steps if isinstance(step, Operation)]
    assert [work.filled_by_stick for work in works if isinstance(work, HaloWork)] == [True]
