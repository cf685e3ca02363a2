import pytest

from device.memory.memory_config import Layout, TensorMemoryLayout
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceWidth,
    Conv2dL1FullSliceConfig,
    MathFidelity,
    PaddingMode,
    UnaryOpType,
)
from ttsim.runtime.types.layer import Layer
from ttsim.runtime.types.tensors import DataType
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import compute_config, conv_config, slice_config

SMALL = {"in_channels": 32, "out_channels": 16, "input_height": 4, "input_width": 5}


def layer(**fields):
    return Layer(**SMALL, **fields)


def test_nothing_set_is_none():
    assert conv_config(layer()) is None
    assert compute_config(layer(), "any") is None
    assert slice_config(layer()) is None


def test_names_become_members():
    config = conv_config(
        layer(
            config={
                "weights_dtype": "bfloat8_b",
                "activation": "relu",
                "shard_layout": "HEIGHT_SHARDED",
                "output_layout": "ROW_MAJOR",
                "padding_mode": "Replicate",
                "act_block_h_override": 64,
                "enable_act_double_buffer": True,
            }
        )
    )
    assert config.weights_dtype is DataType.BFLOAT8_B
    assert config.activation.op_type is UnaryOpType.RELU
    assert config.shard_layout is TensorMemoryLayout.HEIGHT_SHARDED
    assert config.output_layout is Layout.ROW_MAJOR
    assert config.padding_mode is PaddingMode.Replicate
    assert config.act_block_h_override == 64
    assert config.enable_act_double_buffer is True


def test_a_core_grid_is_columns_by_rows_and_is_used():
    config = conv_config(layer(config={"core_grid": "8x4"}))
    assert str(config.core_grid) == "{[0-0 - 7-3]}"
    assert config.override_sharding_config is True
    assert conv_config(layer(config={"core_grid": "8x4", "override_sharding_config": False})) == Conv2dConfig(
        core_grid=config.core_grid
    )


@pytest.mark.parametrize("given", ["8", "0x4", "8x", "8x4x1", "-8x4", "8 x 4", "٨x4", "9999x1", "", 8, True])
def test_a_wrong_core_grid(given):
    with pytest.raises(ValueError, match=r"^core_grid must be COLUMNSxROWS of at least 1x1, not .*; such as '8x4'$"):
        conv_config(layer(config={"core_grid": given}))


def test_compute_names_become_members():
    config = compute_config(layer(compute={"math_fidelity": "lofi", "fp32_dest_acc_en": True}), "any")
    assert config.math_fidelity is MathFidelity.LoFi
    assert config.fp32_dest_acc_en is True


def test_slices():
    assert slice_config(layer(slice="l1_full")) is Conv2dL1FullSliceConfig
    config = slice_config(layer(slice="w:4"))
    assert (config.slice_type, config.num_slices) == (Conv2dDRAMSliceWidth, 4)


@pytest.mark.parametrize("text", ["4", "H", "H:x", "X:2", ""])
def test_a_wrong_slice(text):
    with pytest.raises(ValueError, match=r"^slice must be 'l1_full', 'H:n' or 'W:n' with n slices"):
        slice_config(layer(slice=text))


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(
        ValueError, match=r"^math_fidelity must be one of LoFi, HiFi2, HiFi3, HiFi4, Invalid, not 'HiFi5'$"
    ):
        compute_config(layer(compute={"math_fidelity": "HiFi5"}), "any")
    with pytest.raises(ValueError, match=r"^activation must be a name of UnaryOpType, not 'relux'$"):
        conv_config(layer(config={"activation": "relux"}))


def test_an_unknown_field_names_the_nearest():
    with pytest.raises(TypeError, match="did you mean 'shard_layout'"):
        conv_config(layer(config={"shard_layot": "HEIGHT_SHARDED"}))


@pytest.mark.parametrize("given", read_layers(DEFAULT_LAYERS), ids=lambda given: given.name)
def test_the_default_layers_are_understood(given):
    assert conv_config(given).weights_dtype is DataType.BFLOAT8_B
    assert compute_config(given, "any").math_fidelity is MathFidelity.LoFi
