from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand, SliceConfig, SliceType
from ops.planners.conv.conv_transpose2d import CONV_TRANSPOSE2D, check_slices
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.strict import plan_fault

SPEC = load_spec("wormhole_n150")


def call(side, kernel, stride=1, padding=0, slices=1):
    image = TensorSpec((1, 1, side * side, 32), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    weight = TensorSpec((32, 32, kernel, kernel), BFLOAT16, Layout.ROW_MAJOR)
    return ConvCall(
        rules=CONV_TRANSPOSE2D,
        input=Operand(spec=image, on_host=False),
        weight=Operand(spec=weight, on_host=True),
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=side,
        input_width=side,
        kernel_size=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding,) * 4,
        conv_config=ConvConfig(output_layout=Layout.ROW_MAJOR, shard_layout=TensorMemoryLayout.HEIGHT_SHARDED),
        slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=slices),
    )


def plan(made):
    return plan_convolution(made, SPEC, free_l1_bytes=1300000)


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_common_slices_are_whole(slices):
    made = call(16, 3, stride=2, padding=1, slices=slices)
    check_slices(made)
    assert plan_fault(plan(made), made) is None


def test_a_slice_with_too_few_rows_is_found():
    """Seen on the real library: the third slice of four gives two of its three rows."""
    made = call(8, 4, slices=4)
    check_slices(made)
    assert "a slice that stands for 3 x 11 outputs computes 2 x 11, so" in (plan_fault(plan(made), made) or "")


def test_a_slice_without_rows_is_refused():
    """Seen on the real library: the process dies."""
    with pytest.raises(ArgumentError, match=r"slice 4 of 6 has no outputs of its own, which the real library crashes"):
        check_slices(call(8, 4, slices=6))
    with pytest.raises(ArgumentError, match=r"of 10 has no outputs"):
        check_slices(call(8, 5, stride=2, slices=10))


def test_slices_that_read_nothing_are_found():
    made = call(3, 1, stride=3, slices=7)
    assert "of 49 outputs are never written, because a slice reads no input" in (plan_fault(plan(made), made) or "")


def test_what_is_not_sliced_is_not_looked_at():
    for kind, count in ((SliceType.L1_FULL, 0), (SliceType.DRAM_HEIGHT, 0), (SliceType.DRAM_HEIGHT, 1000)):
        check_slices(replace(call(8, 4), slice_config=SliceConfig(slice_type=kind, num_slices=count)))
    check_slices(replace(call(8, 4), slice_config=None))
