"""What is refused before weights and a bias are prepared."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.conv_transpose2d import validate_bias_preparation, validate_weights_preparation
from tests.ops.planners.conv.good_call import AUTO_SLICES, L1_FULL, TWO_SLICES, bias, call, operand
from tests.shards import HEIGHT


def test_preparing_weights() -> None:
    known = ConvConfig(weights_format=FLOAT32)
    validate_weights_preparation(call(conv_config=known))
    validate_weights_preparation(call(slice_config=TWO_SLICES))
    validate_weights_preparation(call(input=operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG)))
    text = "^get_cb_info expects conv_config.weights_dtype to be already set"
    with pytest.raises(ArgumentError, match=text):
        validate_weights_preparation(call())
    with pytest.raises(ArgumentError, match=text):
        validate_weights_preparation(call(slice_config=AUTO_SLICES))
    with pytest.raises(ArgumentError, match=r"^ShapeBase"):
        validate_weights_preparation(call(conv_config=known, weight=operand(32, 32, 3)))


def test_preparing_a_bias() -> None:
    known = ConvConfig(weights_format=BFLOAT8_B)
    validate_bias_preparation(call(conv_config=replace(known, weights_format=BFLOAT16), bias=bias(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
        validate_bias_preparation(call(conv_config=known, bias=bias(1, 1, 1, 32)))
    resharded = ConvConfig(weights_format=BFLOAT16, reshard_if_not_optimal=True)
    with pytest.raises(ArgumentError, match=r"^bad optional access\nconv_config.shard_layout"):
        validate_bias_preparation(call(conv_config=resharded, bias=bias(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        validate_bias_preparation(call(bias=bias(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^conv bias should be placed on host"):
        validate_bias_preparation(call(conv_config=known, bias=bias(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)))
    with pytest.raises(ArgumentError, match=r"^Bias must have the same length"):
        validate_bias_preparation(call(conv_config=replace(known, weights_format=BFLOAT16), bias=bias(1, 1, 1, 16)))


def test_preparing_weights_for_shards_of_no_layout() -> None:
    resharded = ConvConfig(weights_format=BFLOAT16, reshard_if_not_optimal=True)
    with pytest.raises(ArgumentError, match=r"^bad optional access\nconv_config.shard_layout"):
        validate_weights_preparation(call(conv_config=resharded))
    validate_weights_preparation(call(conv_config=resharded, slice_config=L1_FULL))
    many = SliceConfig(slice_type=SliceType.DRAM_WIDTH, num_slices=500)
    with pytest.raises(ArgumentError, match=r"^Number of slices 500 should be less or equal than the dimension being"):
        validate_weights_preparation(call(conv_config=replace(resharded, shard_layout=HEIGHT), slice_config=many))


def test_preparing_counts_output_padding_only_where_there_is_nothing_else() -> None:
    # One row, k 3, s 2, padding 1 and 2: no rows but the one of the output padding.
    one_row = call(
        input=operand(1, 1, 117, 32, place=DRAM_MEMORY_CONFIG),
        input_height=1,
        input_width=117,
        padding=(1, 2, 1, 1),
        output_padding=(1, 1),
        conv_config=ConvConfig(weights_format=BFLOAT16),
    )
    halves = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
    with pytest.raises(ArgumentError, match=r"^Number of slices 2 .* the dimension being sliced 1 "):
        validate_weights_preparation(replace(one_row, slice_config=halves))
