"""What is refused of slices, and before weights and a bias are prepared."""

from dataclasses import replace

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.checks import check_slices
from ops.planners.conv.operand_checks import refuse_first
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.plan_checks import plan_fault
from ops.planners.conv.preparation import transposed_checks
from tests.build import AUTO_SLICES, L1_FULL, TWO_SLICES, call, operand, sized_call
from tests.shards import HEIGHT


def validate_weights_preparation(made):
    refuse_first(made, transposed_checks(made, "weight"))


def validate_bias_preparation(made):
    refuse_first(made, transposed_checks(made, "bias"))


SPEC = load_spec("wormhole_n150")


def rows_call(side, kernel, stride=1, padding=0, slices=1):
    return sized_call(
        (side, side),
        (32, 32),
        (kernel, kernel),
        stride=(stride, stride),
        padding=(padding,) * 4,
        conv_config=ConvConfig(output_layout=Layout.ROW_MAJOR, shard_layout=HEIGHT),
        slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=slices),
    )


def plan(made):
    return plan_convolution(made, SPEC, free_l1_bytes=1300000)


@pytest.mark.parametrize("slices", [1, 2, 4])
def test_common_slices_are_whole(slices):
    made = rows_call(16, 3, stride=2, padding=1, slices=slices)
    check_slices(made)
    assert plan_fault(plan(made), made) is None


def test_a_slice_with_too_few_rows_is_found():
    """Seen on the real library: the third slice of four gives two of its three rows."""
    made = rows_call(8, 4, slices=4)
    check_slices(made)
    assert "a slice that stands for 3 x 11 outputs computes 2 x 11, so" in (plan_fault(plan(made), made) or "")


def test_a_slice_without_rows_is_refused():
    """Seen on the real library: the process dies."""
    with pytest.raises(ArgumentError, match=r"slice 4 of 6 has no outputs of its own, which the real library crashes"):
        check_slices(rows_call(8, 4, slices=6))
    with pytest.raises(ArgumentError, match=r"of 10 has no outputs"):
        check_slices(rows_call(8, 5, stride=2, slices=10))


def test_slices_that_read_nothing_are_found():
    made = rows_call(3, 1, stride=3, slices=7)
    assert "of 49 outputs are never written, because a slice reads no input" in (plan_fault(plan(made), made) or "")


def test_what_is_not_sliced_is_not_looked_at():
    for kind, count in ((SliceType.L1_FULL, 0), (SliceType.DRAM_HEIGHT, 0), (SliceType.DRAM_HEIGHT, 1000)):
        check_slices(replace(rows_call(8, 4), slice_config=SliceConfig(slice_type=kind, num_slices=count)))
    check_slices(replace(rows_call(8, 4), slice_config=None))


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
    validate_bias_preparation(call(conv_config=replace(known, weights_format=BFLOAT16), bias=operand(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^Only TILE layout is supported for BFLOAT8_B dtype!"):
        validate_bias_preparation(call(conv_config=known, bias=operand(1, 1, 1, 32)))
    resharded = ConvConfig(weights_format=BFLOAT16, reshard_if_not_optimal=True)
    with pytest.raises(ArgumentError, match=r"^bad optional access\nconv_config.shard_layout"):
        validate_bias_preparation(call(conv_config=resharded, bias=operand(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^bad optional access"):
        validate_bias_preparation(call(bias=operand(1, 1, 1, 32)))
    with pytest.raises(ArgumentError, match=r"^conv bias should be placed on host"):
        validate_bias_preparation(call(conv_config=known, bias=operand(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)))
    with pytest.raises(ArgumentError, match=r"^Bias must have the same length"):
        validate_bias_preparation(call(conv_config=replace(known, weights_format=BFLOAT16), bias=operand(1, 1, 1, 16)))


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
