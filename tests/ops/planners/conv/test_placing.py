"""What is refused of the places that a config asks for, and which of several mistakes is told."""

import re
from dataclasses import replace
from typing import Any

import pytest

from device.errors import ArgumentError
from device.memory.memory_config import BufferType, ShardOrientation
from device.numbers.formats import BFLOAT16
from ops.planners.conv.arguments import ConvConfig, SliceConfig, SliceType
from ops.planners.conv.conv_transpose2d import validate
from tests.ops.planners.conv.good_call import call, height_sharded, operand
from tests.shards import HEIGHT, WIDTH, box, in_box

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
        validate(call(conv_config=config, **given))


def test_more_slices_than_there_can_be_are_left_to_the_plan():
    config = ConvConfig(act_block_h_override=17, override_output_sharding_config=True)
    validate(call(conv_config=config, slice_config=SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=500)))
