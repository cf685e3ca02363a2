"""The L1 path: where a call and its weights lie, and the steps it takes."""

from dataclasses import replace

import numpy as np
import pytest

from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES, ConvConfig
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.operands import partition_call, read_layout
from ops.planners.conv.plan import builder_of, plan_convolution
from ops.programs.conv2d.weights import prepare_weights
from tests.build import sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH

SPEC = load_spec("wormhole_n150")
USUAL = {"stride": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1), "shard_layout": HEIGHT}


def call(place=L1_MEMORY_CONFIG, *, bias=False, out_channels=64, **changes):
    """8x8 pixels of 64 channels become 16x16 of 64."""
    return sized_call((8, 8), (64, out_channels), place=place, with_bias=bias, **USUAL | changes)


def test_activations_are_reused_by_conv2d_alone_and_then_from_single_buffers():
    """On 64 cores of two tiles of rows, which images of one tile of columns leave to reuse."""
    reuse = {"enable_activation_reuse": True, "enable_act_double_buffer": True, "shard_layout": HEIGHT}
    made = sized_call((128, 32), (64, 64), place=L1_MEMORY_CONFIG, padding=(1, 1, 1, 1), **reuse)
    plain, reusing = (partition_call(changed, SPEC).options for changed in (made, replace(made, rules=CONV2D)))
    assert (plain.activation_reuse, plain.act_double_buffer) == (False, True)
    assert (reusing.activation_reuse, reusing.act_double_buffer) == (True, False)


def operations(made, spec=SPEC):
    """The operations of the path by their names."""
    builder = builder_of(made, spec)
    l1_path(builder, made, builder.tensor("input"))
    return {step.name.removesuffix("DeviceOperation"): step for step in builder.steps if isinstance(step, Operation)}


BIG = 1 << 20


def phase_call(*, stride=(2, 2), kernel=(2, 2), place=L1_MEMORY_CONFIG, channels=(64, 32), phases=True, **more):
    rules = CONV_TRANSPOSE2D_BY_PHASES if phases else CONV_TRANSPOSE2D
    return sized_call((16, 16), channels, kernel, rules=rules, place=place, stride=stride, **more)


def planned(arguments):
    return plan_convolution(arguments, SPEC, free_l1_bytes=BIG)


def steps(plan):
    """What a plan does, without how: names of operations, of what is allocated and of what is released."""
    return [
        step.name.removeprefix("Phase") if isinstance(step, Operation) else (type(step).__name__, step.tensor)
        for step in plan.steps
    ]


def test_block_floats_have_no_rows():
    config = ConvConfig(output_layout=Layout.ROW_MAJOR)
    plan = planned(replace(phase_call(conv_config=config), out_format=BFLOAT8_B))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert refused.startswith("Only TILE layout is supported for BFLOAT8_B dtype!")


def test_width_blocks_are_whole_tiles():
    config = ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED, act_block_w_div=2)
    plan = planned(phase_call(kernel=(4, 4), conv_config=config))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert "whole tiles" in refused


def row_call(channels, *, taps=3, columns=8192, **changes):
    """A row of which each channel is convolved by itself."""
    return sized_call(
        (1, columns), (channels, channels), (1, taps), rules=CONV2D, place=L1_MEMORY_CONFIG, groups=channels, **changes
    )


@pytest.mark.parametrize(
    ("made", "rows", "tiles"),
    [
        # Neighboring taps of whole tiles are read at once, and the others one after the other
        (row_call(64), 384, (24, 24, 24)),
        (row_call(20), 384, (4, 4, 4)),
        (row_call(32, dilation=(1, 2), padding=(0, 0, 2, 2)), 384, (4, 4, 4)),
        (row_call(1024, taps=5, columns=64), 160, (32, 32, 32)),  # more than a packet
        # Weights of several blocks, of which two taps are in flight
        (row_call(24, taps=4, act_block_h_override=32), 128, (5, 1, 1)),
        (row_call(64, act_block_h_override=64), 192, (12, 12, 12)),
        (row_call(512, columns=512, shard_layout=BLOCK), 256, (4, 12, 12)),
        (row_call(33, taps=5, columns=6000, stride=(1, 3), shard_layout=BLOCK), 1280, (8, 16, 16)),
    ],
)
def test_channels_of_a_row_are_convolved_by_themselves(made, rows, tiles):
    plan = plan_convolution(made, SPEC, free_l1_bytes=BIG)
    program = next(step for step in plan.steps if isinstance(step, Operation) and step.name.startswith("Conv2d"))
    own = {buffer.name: buffer.size_bytes // 2048 for buffer in program.circular_buffers if buffer.view_of is None}
    assert plan.tensors["weight.prepared"].padded_shape[-2] == rows
    assert (own["weights"], own["act"], own["act_tilized"]) == tiles
    assert "partials" not in {buffer.name for buffer in program.circular_buffers}
    assert plan.without_values is not None
    assert "element by element" in plan.without_values


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (32, "Calculated CB size 20544 does not match with the actual CB size 24640"),
        (64, "The width of tensor a needs to match the height of tensor b"),
    ],
)
def test_a_width_program_does_not_know_channels_by_themselves(columns, line):
    plan = plan_convolution(row_call(32, columns=columns, shard_layout=WIDTH), SPEC, free_l1_bytes=BIG)
    program = plan.steps[-1] if isinstance(plan.steps[-1], Operation) else plan.steps[-2]
    assert (program.refused or program.unfinished).startswith(line)


def test_weights_of_channels_by_themselves_are_repeated_for_a_block_of_rows():
    layout = read_layout(partition_call(row_call(4, taps=2, columns=32), SPEC))
    weights = np.arange(8, dtype=np.float32).reshape(4, 1, 1, 2)
    matrix = prepare_weights(weights, layout)
    assert matrix.shape == (64, 32)
    np.testing.assert_array_equal(matrix[:, :4], np.repeat([[0, 2, 4, 6], [1, 3, 5, 7]], 32, axis=0))
