"""What the plan of a pool says of its halo."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from ops.calls.pooling.arguments import PoolArguments
from ops.calls.pooling.plan import plan_max_pool2d
from ops.meanings import load_spec
from ops.programs.halo.plan import HaloWork

SPEC = load_spec("wormhole_n150")


def halos(spec, channels=32):
    """The halos of a pool of 16x16 pixels, and the names of its tensors."""
    call = PoolArguments(
        source=TensorSpec((1, 1, 256, channels), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG),
        batch=1,
        image=(16, 16),
        channels=channels,
        kernel=(3, 3),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        dilation=(1, 1),
    )
    steps = plan_max_pool2d(call, spec).steps
    return [step for step in steps if isinstance(step, Operation) and isinstance(step.work, HaloWork)]


def test_padding_is_the_least_number_and_copied_stick_by_stick():
    assert [step.work.filled_by_stick for step in halos(SPEC)] == [True]


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_what_sticks_are_aligned_to_is_a_figure_of_the_device(alignment_bytes, stick_bytes):
    """24 channels of bfloat16 are 48 bytes."""
    (halo,) = halos(SPEC.replace(l1_alignment_bytes=alignment_bytes), channels=24)
    assert {one.name: one.page_bytes for one in halo.circular_buffers}["padding_stick_0"] == stick_bytes
