"""Recorded calls in the planner's words."""

from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.planners.conv.arguments import ComputeConfig, SliceConfig, SliceType
from tools.recorded.arguments import planner_arguments

CASE = {"name": "one", "H": 4, "W": 6, "in_channels": 16, "out_channels": 8, "kernel": [3, 2]}


def test_defaults_are_those_of_the_records():
    call = planner_arguments(CASE)
    assert call.input.spec.shape == (1, 1, 24, 16)
    assert (call.kernel_size, call.stride, call.padding, call.output_padding) == ((3, 2), (1, 1), (0,) * 4, (0, 0))
    assert (call.input.spec.data_format, call.bias, call.compute_config, call.slice_config) == (BFLOAT16,) + (None,) * 3
    assert planner_arguments(CASE | {"padding": [1, 0]}).padding == (1, 1, 0, 0)
    assert planner_arguments(CASE | {"padding": [1, 0, 2, 3]}).padding == (1, 0, 2, 3)


def test_fields():
    call = planner_arguments(
        CASE
        | {"batch": 2, "input_4d": True, "has_bias": True, "weights_in_dtype": "float32", "weights_dtype": "bfloat8_b"}
        | {"math_fidelity": "HiFi2", "packer_l1_acc": True, "slice": ["W", None], "activation": "RELU", "prep": True}
        | {"input_spec": ["HEIGHT", [24, 16], [1, 0]], "conv_config": {"padding_mode": "Replicate"}}
    )
    memory = call.input.spec.memory_config
    assert call.input.spec.shape == (2, 4, 6, 16)
    assert (memory.memory_layout, memory.buffer_type) == (TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
    assert (call.weight.spec.data_format, call.conv_config.weights_format) == (FLOAT32, BFLOAT8_B)
    assert (call.conv_config.replicate_padding, call.conv_config.activation) == (True, ("relu", ()))
    assert call.compute_config == ComputeConfig(fidelity_phases=2, packer_l1_acc=True)
    assert call.slice_config == SliceConfig(slice_type=SliceType.DRAM_WIDTH)
