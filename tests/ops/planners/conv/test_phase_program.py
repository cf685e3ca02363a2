"""The L1 path by output phases: what it shares with the frame lowering, and what it does in its place."""

from dataclasses import replace

import pytest

from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES, ConvConfig
from ops.planners.conv.plan import plan_convolution
from ops.programs.phase_conv2d.plan import PhaseConv2dOp
from tests.build import sized_call

SPEC = load_spec("wormhole_n150")
BIG = 1 << 20


def call(*, stride=(2, 2), kernel=(2, 2), place=L1_MEMORY_CONFIG, channels=(64, 32), phases=True, **more):
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


@pytest.mark.parametrize("place", [L1_MEMORY_CONFIG, DRAM_MEMORY_CONFIG], ids=["L1", "DRAM"])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3)])
def test_a_stride_of_one_has_the_plan_of_the_frame(place, kernel):
    frame, phase = (planned(call(stride=(1, 1), kernel=kernel, place=place, phases=one)) for one in (False, True))
    assert phase == frame


@pytest.mark.parametrize("scheme", [None, *("HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED")])
@pytest.mark.parametrize("layout", [Layout.TILE, Layout.ROW_MAJOR])
def test_steps_and_output_are_those_of_the_frame(scheme, layout):
    config = ConvConfig(shard_layout=scheme and TensorMemoryLayout[scheme], output_layout=layout)
    frame, phase = (planned(call(phases=one, conv_config=config)) for one in (False, True))
    assert steps(phase) == steps(frame)
    assert phase.tensors["output"] == frame.tensors["output"]
    assert phase.tensors["halo"].shape[-2] < frame.tensors["halo"].shape[-2]
    assert any(isinstance(step.op, PhaseConv2dOp) for step in phase.steps if isinstance(step, Operation))


def test_block_floats_have_no_rows():
    config = ConvConfig(output_layout=Layout.ROW_MAJOR)
    plan = planned(replace(call(conv_config=config), out_format=BFLOAT8_B))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert refused.startswith("Only TILE layout is supported for BFLOAT8_B dtype!")


def test_width_blocks_are_whole_tiles():
    config = ConvConfig(shard_layout=TensorMemoryLayout.WIDTH_SHARDED, act_block_w_div=2)
    plan = planned(call(kernel=(4, 4), conv_config=config))
    (refused,) = (step.refused for step in plan.steps if getattr(step, "name", "") == "PhaseConv2dDeviceOperation")
    assert "whole tiles" in refused
