"""The L1 path: where a call and its weights lie, and the steps it takes."""

from dataclasses import replace

from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES, ConvConfig
from ops.planners.conv.l1_path import l1_path
from ops.planners.conv.operands import partition_call
from ops.planners.conv.plan import builder_of, plan_convolution
from tests.build import sized_call
from tests.shards import HEIGHT

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
