"""What is refused before anything is planned, and what is not."""

import re
from dataclasses import replace
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.conv_transpose2d import validate
from tests.ops.planners.conv.good_call import L1_FULL, TWO_SLICES, bias, call, height_sharded, operand
from tests.shards import BLOCK, HEIGHT, WIDTH, box

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
        validate(call(**changes))
    lines = str(raised.value).splitlines()
    assert len(lines) == 2, "the real library's line, then ours: argument, value, way out"
    assert ":" in lines[1]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("a good call", {}),
    ("with bias", {"bias": bias(1, 1, 1, 32)}),
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
        validate(replace(made, input=flat))


def test_a_matmul_makes_tiles_whatever_its_config_says():
    rows = ConvConfig(output_layout=Layout.ROW_MAJOR)
    plain = {"kernel_size": (1, 1), "stride": (1, 1), "padding": (0, 0, 0, 0)}
    validate(call(out_format=BFLOAT8_B, conv_config=rows, slice_config=L1_FULL, **plain))
