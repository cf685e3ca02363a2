import re
from dataclasses import replace
from typing import Any

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32
from ops.calls.conv_transpose2d.rules import CONV_TRANSPOSE2D
from ops.calls.conv_transpose2d.validation import (
    output_size,
    require_possible,
    require_sane,
    validate,
    validate_bias_preparation,
    validate_weights_preparation,
)
from ops.calls.convolution.arguments import ConvArguments, ConvConfig, Operand, SliceConfig, SliceType

HEIGHT, WIDTH, BLOCK = (
    TensorMemoryLayout.HEIGHT_SHARDED,
    TensorMemoryLayout.WIDTH_SHARDED,
    TensorMemoryLayout.BLOCK_SHARDED,
)
L1_FULL = SliceConfig(slice_type=SliceType.L1_FULL)
TWO_SLICES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
AUTO_SLICES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT)
GRID = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(3, 3)))


def operand(
    *shape: int, place: MemoryConfig | None = None, data_format: Any = BFLOAT16, layout: Layout = Layout.ROW_MAJOR
) -> Operand:
    """A tensor on the device if it has a place, else on the host."""
    return Operand(spec=TensorSpec(shape, data_format, layout, place or DRAM_MEMORY_CONFIG), on_host=place is None)


def height_sharded(buffer_type: BufferType) -> Operand:
    place = MemoryConfig(HEIGHT, buffer_type, ShardSpec(first_cores(2, 8, 8), (32, 32)))
    return operand(1, 1, 64, 32, place=place)


def call(**changes: Any) -> ConvArguments:
    """An 8x8 image of 32 channels, kernel 3, stride 2, that every check accepts, with changes."""
    good = ConvArguments(
        rules=CONV_TRANSPOSE2D,
        input=operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG),
        weight=operand(32, 32, 3, 3),
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        output_padding=(1, 1),
    )
    return replace(good, **changes)


def bias(*shape: int, **how: Any) -> Operand:
    return operand(*shape, **how)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("stride 0", {"stride": (0, 1)}, "stride must be greater than 0, got (0, 1)"),
    (
        "act_block_h_override",
        {"conv_config": ConvConfig(act_block_h_override=16)},
        "Config Error: act_block_h_override (16) must be a multiple of 32 (tile height).",
    ),
    (
        "act_block_w_div, width",
        {"conv_config": ConvConfig(act_block_w_div=0, shard_layout=WIDTH)},
        "Config Error: act_block_w_div must be greater than 0.",
    ),
    (
        "act_block_w_div, auto",
        {"conv_config": ConvConfig(act_block_w_div=0)},
        "Config Error: act_block_w_div must be greater than 0.",
    ),
    ("channels", {"in_channels": 16}, "Attempting to reshape between two shapes with different volumes"),
    (
        "tiles of another volume",
        {"input": operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE), "input_height": 7},
        "Attempting to reshape between two shapes with different volumes",
    ),
    ("batch", {"batch_size": 2}, "MeshBuffer must be large enough to hold the tensor."),
    ("height", {"input_height": 9}, "MeshBuffer must be large enough to hold the tensor."),
    ("height on the host", {"input": operand(1, 1, 64, 32), "input_height": 9}, "MeshBuffer must be large enough"),
    ("empty", {"batch_size": 0}, "Tensor volume is not 0, but shape volume is 0"),
    ("weights of rank 3", {"weight": operand(32, 32, 3)}, "ShapeBase[] index out of range. 3 not in [-4, 3)"),
    (
        "weights of integers",
        {"weight": operand(32, 32, 3, 3, data_format=INT32)},
        "Unsupported data type for transform_weights_for_conv_transpose2d",
    ),
    (
        "weights of block floats",
        {"weight": operand(32, 32, 3, 3, data_format=BFLOAT8_B, layout=Layout.TILE)},
        "Unsupported data type for transform_weights_for_conv_transpose2d",
    ),
    (
        "raw weights on the device",
        {"weight": operand(32, 32, 3, 3, place=DRAM_MEMORY_CONFIG)},
        "Weights should be in TILE layout.",
    ),
    (
        "prepared weights, raw bias",
        {
            "weight": operand(1, 1, 288, 32, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE),
            "bias": bias(1, 1, 1, 32),
        },
        "Device Operations expect device tensors as inputs",
    ),
    ("bias length", {"bias": bias(1, 1, 1, 16)}, "Bias must have the same length as output channels"),
    ("bias turned", {"bias": bias(32, 1, 1, 1)}, "Bias must have the same length as output channels"),
    ("bias of rank 1", {"bias": bias(32)}, "ShapeBase[] index out of range. 3 not in [-4, 1)"),
    ("bias of rank 2", {"bias": bias(1, 32)}, "ShapeBase[] index out of range. 3 not in [-4, 2)"),
    ("bias of rank 5", {"bias": bias(1, 1, 1, 32, 1)}, "Host conv bias should be 4D tensor"),
    (
        "bias in tiles",
        {"bias": bias(1, 1, 1, 32, layout=Layout.TILE)},
        "Host conv bias layout should be in row_major layout",
    ),
    ("bias with rows", {"bias": bias(1, 1, 2, 32)}, "Host conv bias shape is not correct"),
    (
        "row-major bfloat8_b from DRAM",
        {"out_format": BFLOAT8_B, "conv_config": ConvConfig(output_layout=Layout.ROW_MAJOR)},
        "Conv output can't be in Row Major if output dtype is BFloat8_B.",
    ),
    (
        "row-major bfloat8_b of a matmul in L1",
        {
            "out_format": BFLOAT8_B,
            "conv_config": ConvConfig(output_layout=Layout.ROW_MAJOR),
            "slice_config": L1_FULL,
            "kernel_size": (1, 1),
            "stride": (1, 1),
            "padding": (0, 0, 0, 0),
        },
        "Only TILE layout is supported for BFLOAT8_B dtype!",
    ),
    (
        "override without a grid, in slices",
        {
            "conv_config": ConvConfig(override_sharding_config=True, shard_layout=HEIGHT),
            "slice_config": SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2),
        },
        "If override_sharding_config is set, core_grid must be set as well.",
    ),
    (
        "override without a grid",
        {
            "conv_config": ConvConfig(override_sharding_config=True, shard_layout=HEIGHT),
            "slice_config": SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=1),
        },
        "Core grid must be provided when overriding sharding config",
    ),
    (
        "override without a grid, sharded input",
        {
            "input": height_sharded(BufferType.L1),
            "conv_config": ConvConfig(override_sharding_config=True),
        },
        "If override_sharding_config is set, core_grid must be set as well.",
    ),
    (
        "output override without a grid",
        {"slice_config": L1_FULL, "conv_config": ConvConfig(override_output_sharding_config=True, shard_layout=BLOCK)},
        "When override_output_sharding_config is set to true, core_grid must have a value.",
    ),
    (
        "output override of height shards",
        {"conv_config": ConvConfig(override_output_sharding_config=True, shard_layout=HEIGHT, core_grid=GRID)},
        "Output sharding config override is only supported for BLOCK_SHARDED layout.",
    ),
    (
        "interleaved shards",
        {"conv_config": ConvConfig(shard_layout=TensorMemoryLayout.INTERLEAVED)},
        "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::INTERLEAVED",
    ),
    (
        "ND shards",
        {"conv_config": ConvConfig(shard_layout=TensorMemoryLayout.ND_SHARDED), "slice_config": L1_FULL},
        "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::ND_SHARDED",
    ),
    (
        "resharding to nothing",
        {"input": height_sharded(BufferType.L1), "conv_config": ConvConfig(reshard_if_not_optimal=True)},
        "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::INTERLEAVED",
    ),
    (
        "slices of L1",
        {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "slice_config": TWO_SLICES},
        "Conv DRAM expects the input tensor to be in DRAM.",
    ),
    (
        "sharded DRAM",
        {"input": height_sharded(BufferType.DRAM)},
        "Input Tensor to Conv DRAM should be in Interleaved Memory Layout",
    ),
]


@pytest.mark.parametrize(("changes", "first_line"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refusals_begin_as_the_real_library_does(changes: dict[str, Any], first_line: str) -> None:
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)) as raised:
        validate(call(**changes))
    lines = str(raised.value).splitlines()
    assert len(lines) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in lines[1]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("a good call", {}),
    ("with bias", {"bias": bias(1, 1, 1, 32)}),
    ("a smaller image", {"input_height": 7}),
    ("NCHW", {"input": operand(1, 32, 8, 8, place=DRAM_MEMORY_CONFIG)}),
    ("a larger image in L1", {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "input_height": 9}),
    ("other weights", {"weight": operand(16, 32, 2, 2)}),
    ("act_block_w_div, height", {"conv_config": ConvConfig(act_block_w_div=0, shard_layout=HEIGHT)}),
    ("a grid without override", {"conv_config": ConvConfig(core_grid=GRID)}),
    ("one slice of L1", {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "slice_config": L1_FULL}),
    (
        "shards that are kept",
        {
            "input": height_sharded(BufferType.L1),
            "conv_config": ConvConfig(shard_layout=TensorMemoryLayout.INTERLEAVED),
        },
    ),
    ("dilation 0", {"dilation": (0, 0)}),
    ("too much padding", {"padding": (3, 3, 3, 3)}),
    ("much output padding", {"output_padding": (2, 2)}),
]


@pytest.mark.parametrize("changes", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_what_the_real_library_accepts(changes: dict[str, Any]) -> None:
    validate(call(**changes))


def test_refusals_are_runtime_errors_and_value_errors() -> None:
    with pytest.raises(RuntimeError):
        validate(call(stride=(0, 1)))
    with pytest.raises(ValueError, match="stride"):
        validate(call(stride=(0, 1)))


def test_the_input_is_looked_at_before_the_weights_and_these_before_blocks() -> None:
    bad_blocks = {"conv_config": ConvConfig(act_block_h_override=16)}
    with pytest.raises(ArgumentError, match=r"^MeshBuffer"):
        validate(call(batch_size=2, weight=operand(32, 32, 3), **bad_blocks))
    with pytest.raises(ArgumentError, match=r"^ShapeBase"):
        validate(call(weight=operand(32, 32, 3), bias=bias(1, 1, 1, 16), **bad_blocks))
    with pytest.raises(ArgumentError, match=r"^Config Error"):
        validate(call(bias=bias(1, 1, 1, 16), **bad_blocks))


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


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"in_channels": 0}, "in_channels must be at least 1, not 0"),
    ({"kernel_size": (0, 3)}, "kernel_size must be at least (1, 1), not (0, 3)"),
    ({"groups": 3}, "groups must divide in_channels, but 32 is no multiple of 3"),
    ({"groups": 8, "out_channels": 36}, "groups must divide out_channels, but 36 is no multiple of 8"),
    ({"padding": (9, 9, 1, 1), "output_padding": (0, 0)}, "padding (9, 9, 1, 1) leaves no output: it would be -1 high"),
]


@pytest.mark.parametrize(("changes", "text"), IMPOSSIBLE)
def test_calls_that_crash_the_real_library(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(f"conv_transpose2d: {text}")):
        require_possible(call(**changes))


SILENT: list[tuple[str, dict[str, Any], str]] = [
    ("groups 0", {"groups": 0}, "groups must be at least 1, not 0"),
    ("dilation 0", {"dilation": (1, 0)}, "dilation must be at least (1, 1), not (1, 0)"),
    (
        "padding",
        {"padding": (1, 3, 1, 1)},
        "padding must not exceed dilation * (kernel_size - 1), which is 2 here, not 3",
    ),
    (
        "1x1",
        {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0), "weight": operand(32, 32, 1, 1)},
        "output_padding (1, 1) is ignored by a 1x1",
    ),
    ("smaller image", {"input_height": 7}, "input_height=7, input_width=8, in_channels=32 are 1792 elements"),
    (
        "larger image in L1",
        {"input": operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG), "batch_size": 2},
        "are 4096 elements, but input_tensor has 2048",
    ),
    ("NCHW", {"input": operand(1, 32, 8, 8)}, "input_tensor must be channels-last"),
    ("integers", {"input": operand(1, 1, 64, 32, data_format=INT32)}, "input_tensor must be a floating-point type"),
    ("integer weights_dtype", {"conv_config": ConvConfig(weights_format=INT32)}, "conv_config.weights_dtype must be a"),
    ("weights I", {"weight": operand(16, 32, 3, 3)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights kernel", {"weight": operand(32, 32, 2, 2)}, "weight_tensor must have the shape [32, 32, 3, 3]"),
    ("weights not grouped", {"groups": 2}, "weight_tensor must have the shape [32, 16, 3, 3]"),
    ("weights in tiles", {"weight": operand(32, 32, 3, 3, layout=Layout.TILE)}, "weight_tensor on the host must be in"),
    (
        "prepared for another call",
        {"weight": operand(1, 1, 288, 64, place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32",
    ),
    (
        "weights without axes",
        {"weight": operand(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "weight_tensor on the device must be prepared for out_channels = 32, the size of its last axis, not have the "
        "shape []",
    ),
    (
        "bias without axes",
        {"bias": bias(place=DRAM_MEMORY_CONFIG, layout=Layout.TILE)},
        "bias_tensor on the device must be prepared for out_channels = 32: it is TILE with shape []",
    ),
    (
        "raw bias on the device",
        {"bias": bias(1, 1, 1, 32, place=DRAM_MEMORY_CONFIG)},
        "bias_tensor on the device must be prepared for out_channels = 32",
    ),
]


@pytest.mark.parametrize(("changes", "text"), [row[1:] for row in SILENT], ids=[row[0] for row in SILENT])
def test_calls_that_the_real_library_gets_wrong(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(text)):
        require_sane(call(**changes))


def test_a_sane_call() -> None:
    require_possible(call())
    require_sane(call())
    require_sane(call(output_padding=(2, 2)))  # the real library computes this rightly
    require_sane(call(conv_config=ConvConfig(full_inner_dim=True)))  # it is wrong for some plans: soundness


def test_output_size() -> None:
    assert output_size(call()) == (16, 16)
    assert output_size(call(padding=(0, 1, 2, 3), dilation=(2, 1))) == (19, 13)


ONE_ROW = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(7, 0))])
COLUMN_MAJOR = MemoryConfig(
    TensorMemoryLayout.HEIGHT_SHARDED,
    BufferType.L1,
    ShardSpec(ONE_ROW, (8, 32), orientation=ShardOrientation.COL_MAJOR),
)


@pytest.mark.parametrize(
    ("config", "first_line"),
    [
        ({}, "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::INTERLEAVED"),
        (
            {"act_block_h_override": 17},
            "Config Error: act_block_h_override (17) must be a multiple of 32 (tile height).",
        ),
        ({"override_sharding_config": True}, "If override_sharding_config is set, core_grid must be set as well."),
        (
            {
                "override_sharding_config": True,
                "core_grid": ONE_ROW,
            },
            "If override_sharding_config is set, shard_layout must be set as well.",
        ),
    ],
)
def test_shards_that_must_be_dealt_anew_need_a_layout(config: dict[str, Any], first_line: str) -> None:
    """Read from the real library: height shards dealt by columns never suit."""
    made = call(input=operand(1, 1, 64, 32, place=COLUMN_MAJOR), conv_config=ConvConfig(**config))
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)):
        validate(made)


@pytest.mark.parametrize(
    ("slices", "kernel", "first_line"),
    [
        (2, 3, "If override_sharding_config is set, core_grid must be set as well."),
        (2, 1, "Core grid must be provided when overriding sharding config"),
        (1, 3, "Core grid must be provided when overriding sharding config"),
        (99, 3, None),  # too many: the plan says so
    ],
)
def test_a_missing_core_grid_is_told_as_slices_see_it(slices: int, kernel: int, first_line: str | None) -> None:
    made = call(
        conv_config=ConvConfig(override_sharding_config=True),
        slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=slices),
        kernel_size=(kernel, kernel),
        stride=(1, 1),
        padding=(kernel // 2,) * 4,
        weight=operand(32, 32, kernel, kernel),
    )
    if first_line is None:
        validate(made)
        return
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)):
        validate(made)


def test_slices_are_looked_for_before_the_input_is_looked_at() -> None:
    search = SliceConfig(slice_type=SliceType.DRAM_WIDTH)
    made = call(input=operand(1, 1, 64, 32, place=COLUMN_MAJOR), slice_config=search)
    with pytest.raises(ArgumentError, match=r"^get_cb_info expects conv_config\.weights_dtype to be already set"):
        validate(made)
    with pytest.raises(ArgumentError, match=r"^Config Error: act_block_h_override"):
        validate(replace(made, conv_config=ConvConfig(act_block_h_override=17)))
    with pytest.raises(ArgumentError, match=r"^Conv DRAM expects the input tensor to be in DRAM\."):
        validate(
            replace(made, conv_config=ConvConfig(weights_format=BFLOAT16), slice_config=replace(search, num_slices=2))
        )


OUTPUT_GRID = "When override_output_sharding_config is set to true, core_grid must have a value."
NO_GRID = "Core grid must be provided when overriding sharding config"
NO_SHARD_GRID = "If override_sharding_config is set, core_grid must be set as well."
BAD_HEIGHT = "Config Error: act_block_h_override (17) must be a multiple of 32 (tile height)."
BAD_WIDTH = "Config Error: act_block_w_div must be greater than 0."
WIDTH_SHARDED = TensorMemoryLayout.WIDTH_SHARDED
WHOLE = SliceConfig(slice_type=SliceType.L1_FULL, num_slices=0)
HALVES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)
IN_SHARDS = height_sharded(BufferType.L1)


@pytest.mark.parametrize(
    ("given", "shard_layout", "wrong", "first_line"),
    [
        # A scheme that is chosen is estimated before its cores are looked at.
        ({"slice_config": WHOLE}, None, "height width grid output", BAD_HEIGHT),
        ({"slice_config": WHOLE}, None, "width grid output", OUTPUT_GRID),
        ({"slice_config": WHOLE}, None, "width grid", BAD_WIDTH),
        ({"slice_config": WHOLE}, None, "grid", NO_GRID),
        # One that is given is not.
        ({"slice_config": WHOLE}, WIDTH_SHARDED, "height width grid output", BAD_HEIGHT),
        ({"slice_config": WHOLE}, WIDTH_SHARDED, "width grid output", NO_GRID),
        ({"slice_config": WHOLE}, WIDTH_SHARDED, "width output", OUTPUT_GRID),
        # Slices come in shards, if their scheme is given.
        ({"slice_config": HALVES}, None, "height grid output", BAD_HEIGHT),
        ({"slice_config": HALVES}, WIDTH_SHARDED, "height width grid output", NO_SHARD_GRID),
        ({"slice_config": HALVES}, WIDTH_SHARDED, "height width output", OUTPUT_GRID),
        # Shards that stay are asked for their cores first.
        ({"input": IN_SHARDS}, None, "height width grid output", NO_SHARD_GRID),
        ({"input": IN_SHARDS}, None, "height width output", OUTPUT_GRID),
        # While a number of slices is looked for, nobody asks for the cores of a scheme that is given.
        ({}, None, "width grid output", OUTPUT_GRID),
        ({}, WIDTH_SHARDED, "width grid output", BAD_WIDTH),
    ],
)
def test_which_of_several_wrong_placements_is_told(given, shard_layout, wrong, first_line):
    """As the real library answers these calls."""
    config = ConvConfig(
        shard_layout=shard_layout,
        act_block_h_override=17 if "height" in wrong else 0,
        act_block_w_div=0 if "width" in wrong else 1,
        override_sharding_config="grid" in wrong,
        override_output_sharding_config="output" in wrong,
    )
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)):
        validate(call(conv_config=config, **given))


def test_more_slices_than_there_can_be_are_left_to_the_plan():
    config = ConvConfig(act_block_h_override=17, override_output_sharding_config=True)
    validate(call(conv_config=config, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=500)))
