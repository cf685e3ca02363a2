"""Which programs fold shards whose images get zeros around them."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.shape.fold import plan_fold
from tests.shards import high


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_zeros_around_shards_are_a_halo_of_sticks_as_the_device_aligns_them(alignment_bytes, stick_bytes):
    """Two images of 8x12 pixels of 24 channels, 48 bytes, on three cores; a row above and one below."""
    spec = load_spec("wormhole_n150").replace(l1_alignment_bytes=alignment_bytes)
    images = TensorSpec((2, 8, 12, 24), BFLOAT16, Layout.ROW_MAJOR, high((64, 24), 3))
    plan = plan_fold(images, (2, 2), ((1, 1), (0, 0), (0, 0)), spec)
    first, *others = [step for step in plan.steps if isinstance(step, Operation)]
    assert (first.name, others[-1].name) == ("HaloDeviceOperation", "Fold")
    assert {buffer.name: buffer.page_bytes for buffer in first.circular_buffers}["padding_stick_0"] == stick_bytes
