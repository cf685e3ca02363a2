"""Recorded calls in the planner's words."""

import pytest

from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.planners.conv.arguments import ComputeConfig, SliceConfig, SliceType
from tools.recorded.arguments import planner_arguments

CASE = {"name": "one", "H": 4, "W": 6, "in_channels": 16, "out_channels": 8, "kernel": [3, 2]}


def test_defaults_are_those_of_the_records():
    made = planner_arguments(CASE)
    assert made.input.spec.shape == (1, 1, 24, 16)
    assert (made.kernel_size, made.stride, made.padding, made.output_padding) == ((3, 2), (1, 1), (0,) * 4, (0, 0))
    assert (made.input.spec.data_format, made.bias, made.compute_config, made.slice_config) == (BFLOAT16,) + (None,) * 3


def test_two_paddings_are_vertical_and_horizontal():
    assert planner_arguments(CASE | {"padding": [1, 0]}).padding == (1, 1, 0, 0)
    assert planner_arguments(CASE | {"padding": [1, 0, 2, 3]}).padding == (1, 0, 2, 3)


def test_fields():
    made = planner_arguments(
        CASE
        | {"batch": 2, "input_4d": True, "has_bias": True, "weights_in_dtype": "float32", "weights_dtype": "bfloat8_b"}
        | {"math_fidelity": "HiFi2", "packer_l1_acc": True, "slice": ["W", None], "activation": "RELU"}
        | {"input_spec": ["HEIGHT", [32, 16], [1, 0]], "conv_config": {"padding_mode": "Replicate"}}
    )
    memory = made.input.spec.memory_config
    assert made.input.spec.shape == (2, 4, 6, 16)
    assert (memory.memory_layout, memory.buffer_type) == (TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
    assert (made.weight.spec.data_format, made.conv_config.weights_format) == (FLOAT32, BFLOAT8_B)
    assert (made.conv_config.replicate_padding, made.conv_config.activation) == (True, ("relu", ()))
    assert made.compute_config == ComputeConfig(fidelity_phases=2, packer_l1_acc=True)
    assert made.slice_config == SliceConfig(slice_type=SliceType.DRAM_WIDTH)


def test_an_unknown_field_is_not_passed_over():
    with pytest.raises(ValueError, match=r"^one: conv_config has fields that are not read here: \['speed'\]$"):
        planner_arguments(CASE | {"conv_config": {"speed": 1}})
