"""What is refused before anything is planned, and what is not."""

import re
from dataclasses import replace
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    ShardOrientation,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, INT32
from device.plan import Operation, Refuse
from device.spec.device_spec import load_spec
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.checks import check_arguments, check_strict, image_refusals
from ops.planners.conv.operand_checks import operand_refusals, view_refusal
from ops.planners.conv.plan import plan_convolution
from tests.build import L1_FULL, TWO_SLICES, call, height_sharded, operand, sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, box, in_box

GRID = box(4, 4)

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
        "row-major bfloat8_b from DRAM",
        {"out_format": BFLOAT8_B, "conv_config": ConvConfig(output_layout=Layout.ROW_MAJOR)},
        "Conv output can't be in Row Major if output dtype is BFloat8_B.",
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
        check_arguments(call(**changes))
    lines = str(raised.value).splitlines()
    assert len(lines) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in lines[1]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("a good call", {}),
    ("with bias", {"bias": operand(1, 1, 1, 32)}),
    ("a smaller image", {"input_height": 7}),
    (
        "sharded DRAM where the number of slices may be one",
        {
            "input": height_sharded(BufferType.DRAM),
            "slice_config": SliceConfig(slice_type=SliceType.DRAM_HEIGHT),
            "conv_config": ConvConfig(weights_format=BFLOAT16, shard_layout=HEIGHT),
        },
    ),
    (
        "sharded DRAM of a matmul",
        {
            "input": height_sharded(BufferType.DRAM),
            "weight": operand(32, 32, 1, 1),
            "kernel_size": (1, 1),
            "stride": (1, 1),
            "padding": (0, 0, 0, 0),
            "output_padding": (0, 0),
        },
    ),
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
    check_arguments(call(**changes))


def test_refusals_are_runtime_errors_and_value_errors() -> None:
    with pytest.raises(RuntimeError):
        check_arguments(call(stride=(0, 1)))
    with pytest.raises(ValueError, match="stride"):
        check_arguments(call(stride=(0, 1)))


def test_the_input_is_looked_at_before_the_weights_and_these_before_blocks() -> None:
    bad_blocks = {"conv_config": ConvConfig(act_block_h_override=16)}
    with pytest.raises(ArgumentError, match=r"^MeshBuffer"):
        check_arguments(call(batch_size=2, weight=operand(32, 32, 3), **bad_blocks))
    with pytest.raises(ArgumentError, match=r"^ShapeBase"):
        check_arguments(call(weight=operand(32, 32, 3), bias=operand(1, 1, 1, 16), **bad_blocks))
    with pytest.raises(ArgumentError, match=r"^Config Error"):
        check_arguments(call(bias=operand(1, 1, 1, 16), **bad_blocks))


@pytest.mark.parametrize(
    ("shape", "place", "text"),
    [
        ((1, 64, 32), L1_MEMORY_CONFIG, "ShapeBase[] index out of range. 3 not in [-4, 3)"),
        ((64, 32), L1_MEMORY_CONFIG, "ShapeBase[] index out of range. 2 not in [-4, 2)"),
        ((1, 1, 1, 64, 32), L1_MEMORY_CONFIG, "Expected 4D shape"),
    ],
)
def test_an_input_in_l1_has_four_axes(shape, place, text):
    made = call()
    flat = replace(made.input, spec=TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, place))
    with pytest.raises(ArgumentError, match=rf"^{re.escape(text)}\n"):
        check_arguments(replace(made, input=flat))


def test_a_matmul_makes_tiles_whatever_its_config_says():
    rows = ConvConfig(output_layout=Layout.ROW_MAJOR)
    plain = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0)}
    check_arguments(call(out_format=BFLOAT8_B, conv_config=rows, slice_config=L1_FULL, **plain))


SPEC = load_spec("wormhole_n150")
FREE = 1360544

REFUSED_OPERANDS: list[tuple[str, dict[str, Any], str]] = [
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
            "bias": operand(1, 1, 1, 32),
        },
        "Device Operations expect device tensors as inputs",
    ),
    ("bias length", {"bias": operand(1, 1, 1, 16)}, "Bias must have the same length as output channels"),
    ("bias turned", {"bias": operand(32, 1, 1, 1)}, "Bias must have the same length as output channels"),
    ("bias of rank 1", {"bias": operand(32)}, "ShapeBase[] index out of range. 3 not in [-4, 1)"),
    ("bias of rank 2", {"bias": operand(1, 32)}, "ShapeBase[] index out of range. 3 not in [-4, 2)"),
    ("bias of rank 5", {"bias": operand(1, 1, 1, 32, 1)}, "Host conv bias should be 4D tensor"),
    (
        "bias in tiles",
        {"bias": operand(1, 1, 1, 32, layout=Layout.TILE)},
        "Host conv bias layout should be in row_major layout",
    ),
    ("bias with rows", {"bias": operand(1, 1, 2, 32)}, "Host conv bias shape is not correct"),
]


@pytest.mark.parametrize(
    ("changes", "first_line"), [row[1:] for row in REFUSED_OPERANDS], ids=[row[0] for row in REFUSED_OPERANDS]
)
def test_operands_are_refused_as_the_real_library_does(changes: dict[str, Any], first_line: str) -> None:
    made = call(**changes)
    check_arguments(made)
    check_strict(made)
    lines = next(operand_refusals(made)).splitlines()
    assert lines[0] == first_line
    assert len(lines) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in lines[1]


@pytest.mark.parametrize(
    ("made", "ran"),
    [
        (call(input=operand(1, 1, 64, 32, place=L1_MEMORY_CONFIG)), ["InterleavedToShardedDeviceOperation"]),
        (call(slice_config=TWO_SLICES), ["PaddedSliceDeviceOperation"]),
        (call(), ["InterleavedToShardedDeviceOperation"]),
        (sized_call((8, 8), (32, 32), (1, 1), place=L1_MEMORY_CONFIG), []),  # tiles are made afterwards
    ],
    ids=["l1", "slices", "dram", "matmul"],
)
def test_the_programs_before_have_run(made: Any, ran: list[str]) -> None:
    bad = replace(made, weight=operand(*made.weight.spec.shape, data_format=INT32))
    steps = plan_convolution(bad, SPEC, free_l1_bytes=FREE).steps
    assert [step.name for step in steps if isinstance(step, Operation)] == ran
    assert isinstance(steps[-1], Refuse)
    assert steps[-1].error is ArgumentError
    assert steps[-1].text.startswith("Unsupported data type for transform_weights_for_conv_transpose2d\n")


def test_weights_that_the_first_slice_prepared_are_not_looked_at_again() -> None:
    assert not plan_convolution(call(slice_config=TWO_SLICES), SPEC, free_l1_bytes=FREE).refused


def rows(shape, layout, shard, columns, lines):
    return TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, in_box(layout, shard, columns, lines))


@pytest.mark.parametrize(
    ("spec", "image", "text"),
    [
        (
            rows((7, 3, 3, 576), BLOCK, (13, 116), 5, 5),
            (7, 3, 3, 576),
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            "last dimension. Input shape: Shape([7, 3, 3, 580]), New shape: Shape([7, 3, 3, 576]), Shard width: 116",
        ),
        (
            rows((1, 1, 900, 3), WIDTH, (900, 8), 4, 1),
            (1, 30, 30, 3),
            "Shard height 2400 must match physical height 900 for width sharded",
        ),
        (
            rows((1, 1, 48, 403), HEIGHT, (32, 408), 7, 4),
            (1, 24, 2, 403),
            "For valid non-interleaved buffers page size 806 must equal buffer size 39168. For interleaved-buffers, "
            "buffer size should be divisible by the page size",
        ),
    ],
)
def test_padded_rows_are_no_image(spec, image, text):
    refusal = view_refusal(spec, image)
    assert refusal is not None
    assert refusal.splitlines()[0] == text


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (rows((1, 1, 48, 408), HEIGHT, (32, 408), 7, 4), (1, 24, 2, 408)),
        (rows((1, 1, 48, 4), HEIGHT, (32, 8), 7, 4), (1, 24, 2, 4)),  # a buffer of whole narrow rows
    ],
)
def test_rows_that_can_be_seen_as_an_image(spec, image):
    assert view_refusal(spec, image) is None


@pytest.mark.parametrize(
    ("data_format", "size", "first_line"),
    [
        (BFLOAT8_B, (31, 101), "Input tensor must be in L1"),
        (BFLOAT8_B, (32, 32), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),  # a view
        (BFLOAT16, (31, 101), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),
    ],
)
def test_block_floats_are_made_an_image_from_shards_in_l1_alone(data_format, size, first_line):
    """They are taken out of their shards first, by a program that reads L1; first lines of the real library."""
    made = sized_call(size, (28, 4), layout=Layout.TILE)
    place = replace(in_box(HEIGHT, (1088, 32), 3), buffer_type=BufferType.DRAM)
    spec = replace(made.input.spec, data_format=data_format, memory_config=place)
    refused = next(image_refusals(replace(made, input=replace(made.input, spec=spec))))
    assert refused.splitlines()[0] == first_line


COLUMN_MAJOR = in_box(HEIGHT, (8, 32), 8, orientation=ShardOrientation.COL_MAJOR)


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
                "core_grid": box(8),
            },
            "If override_sharding_config is set, shard_layout must be set as well.",
        ),
    ],
)
def test_shards_that_must_be_dealt_anew_need_a_layout(config: dict[str, Any], first_line: str) -> None:
    """Read from the real library: height shards dealt by columns never suit."""
    made = call(input=operand(1, 1, 64, 32, place=COLUMN_MAJOR), conv_config=ConvConfig(**config))
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)):
        check_arguments(made)


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
        check_arguments(made)
        return
    with pytest.raises(ArgumentError, match="^" + re.escape(first_line)):
        check_arguments(made)


def test_slices_are_looked_for_before_the_input_is_looked_at() -> None:
    search = SliceConfig(slice_type=SliceType.DRAM_WIDTH)
    made = call(input=operand(1, 1, 64, 32, place=COLUMN_MAJOR), slice_config=search)
    with pytest.raises(ArgumentError, match=r"^get_cb_info expects conv_config\.weights_dtype to be already set"):
        check_arguments(made)
    with pytest.raises(ArgumentError, match=r"^Config Error: act_block_h_override"):
        check_arguments(replace(made, conv_config=ConvConfig(act_block_h_override=17)))
    with pytest.raises(ArgumentError, match=r"^Conv DRAM expects the input tensor to be in DRAM\."):
        check_arguments(
            replace(made, conv_config=ConvConfig(weights_format=BFLOAT16), slice_config=replace(search, num_slices=2))
        )


OUTPUT_GRID = "When override_output_sharding_config is set to true, core_grid must have a value."
NO_GRID = "Core grid must be provided when overriding sharding config"
NO_SHARD_GRID = "If override_sharding_config is set, core_grid must be set as well."
BAD_HEIGHT = "Config Error: act_block_h_override (17) must be a multiple of 32 (tile height)."
BAD_WIDTH = "Config Error: act_block_w_div must be greater than 0."
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
        ({"slice_config": WHOLE}, WIDTH, "height width grid output", BAD_HEIGHT),
        ({"slice_config": WHOLE}, WIDTH, "width grid output", NO_GRID),
        ({"slice_config": WHOLE}, WIDTH, "width output", OUTPUT_GRID),
        # Slices come in shards, if their scheme is given.
        ({"slice_config": HALVES}, None, "height grid output", BAD_HEIGHT),
        ({"slice_config": HALVES}, WIDTH, "height width grid output", NO_SHARD_GRID),
        ({"slice_config": HALVES}, WIDTH, "height width output", OUTPUT_GRID),
        # Shards that stay are asked for their cores first.
        ({"input": IN_SHARDS}, None, "height width grid output", NO_SHARD_GRID),
        ({"input": IN_SHARDS}, None, "height width output", OUTPUT_GRID),
        # While a number of slices is looked for, nobody asks for the cores of a scheme that is given.
        ({}, None, "width grid output", OUTPUT_GRID),
        ({}, WIDTH, "width grid output", BAD_WIDTH),
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
        check_arguments(call(conv_config=config, **given))


def test_more_slices_than_there_can_be_are_left_to_the_plan():
    config = ConvConfig(act_block_h_override=17, override_output_sharding_config=True)
    check_arguments(
        call(conv_config=config, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=500))
    )
