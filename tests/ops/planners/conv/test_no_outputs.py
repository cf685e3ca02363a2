"""The buffer that the real library, version 0.81.1, allocates for an output that there is not, in bytes."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B
from device.plan import Allocate, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig
from ops.planners.conv.conv2d import CONV2D
from ops.planners.conv.plan import plan_convolution, wrapped_output
from tests.ops.planners.conv.good_call import sized_call

SPEC = load_spec("wormhole_n150")
PADDED = sized_call((33, 5), (16, 32), (4, 15), stride=(7, 3), padding=(0, 0, 14, 14))
IN_ROWS = ConvConfig(output_layout=Layout.ROW_MAJOR)


@pytest.mark.parametrize(
    ("call", "size_bytes"),
    [
        (PADDED, 1_099_511_627_776),
        (
            sized_call((2, 12), (128, 128), (6, 1), batch=32, stride=(2, 1), padding=(14, 14, 0, 0), dilation=(3, 3)),
            8_796_090_400_768,
        ),
        (
            sized_call((1, 8), (4096, 32), (3, 3), rules=CONV2D, stride=(1, 4), conv_config=IN_ROWS),
            274_877_906_816,
        ),
        (
            sized_call((6, 4), (32, 144), (5, 5), rules=CONV2D, stride=(3, 4), out_format=BFLOAT8_B),
            182_536_110_080,
        ),
    ],
)
def test_bytes_of_an_output_that_wraps(call, size_bytes):
    assert wrapped_output(call).buffer(SPEC).size_bytes == size_bytes


def test_a_plan_without_outputs_ends_behind_their_buffer():
    plan = plan_convolution(PADDED, SPEC, free_l1_bytes=2**20)
    *_, made, refusal = plan.steps
    assert isinstance(made, Allocate)
    assert isinstance(refusal, Refuse)
    assert refusal.error is ArgumentError
    assert refusal.text == (
        "conv_transpose2d: there is no output of 228 x -1 pixels, which the real library takes for 228 x 4294967295; "
        "change padding or kernel_size"
    )


def test_rows_of_block_floats_are_refused_before_the_buffer():
    rows = replace(PADDED, conv_config=IN_ROWS, out_format=BFLOAT8_B)
    with pytest.raises(ArgumentError, match=r"^Conv output can't be in Row Major if output dtype is BFloat8_B\."):
        plan_convolution(rows, SPEC, free_l1_bytes=2**20)
