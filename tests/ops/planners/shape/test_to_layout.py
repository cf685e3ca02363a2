"""Programs of to_layout, with figures of the real planner on a mock device."""

import re
from contextlib import nullcontext
from dataclasses import replace
from operator import gt

import pytest

from device.errors import DeviceError
from device.memory.memory_config import Layout
from device.plan import Free, Operation
from ops.planners.shape.to_layout import plan_to_layout
from ops.planners.to_config import plan_tilize, plan_untilize, plan_untilize_with_unpadding
from tests.build import N150, buffer_rows, place, programs, tensor_spec


def buffers_of(plan, *more):
    return [buffer_rows(step.circular_buffers, *more) for step in plan.steps if isinstance(step, Operation)]


@pytest.mark.parametrize("memory", ["l1", "dram"])
def test_height_shards_that_do_not_fill_their_tiles_are_padded_first(memory):
    """200 rows in four shards of 64 become 224 rows in the same shards, and these 7 x 2 tiles."""
    source = tensor_spec(f"200x64 height/64x64/4 {memory}")
    plan = plan_to_layout(source, Layout.TILE, N150)
    pad, tilize, free = plan.steps
    assert programs(plan) == ["Pad", "Tilize"]
    assert free == Free(pad.outputs[0].tensor)
    assert pad.op.padding == ((0, 24), (0, 0))
    result = plan.tensors[plan.results["output"]]
    assert (result.padded_shape, result.memory_config) == ((224, 64), source.memory_config)
    assert [buffer.view_of is not None for buffer in tilize.circular_buffers] == [memory == "l1"] * 2


@pytest.mark.parametrize("memory", ["l1", "dram"])
def test_block_shards_are_padded_by_the_program_that_tilizes(memory):
    source = tensor_spec(f"200x64 block/224x32/2x1 {memory}")
    assert programs(plan_to_layout(source, Layout.TILE, N150)) == ["TilizeWithValPadding"]


@pytest.mark.parametrize(
    ("source", "rows"),
    [  # a core has a row of tiles, as of interleaved rows: 96 rows on three cores, 4 tiles of bfloat16 or float32 wide
        ("96x100 height/32x128/4 dram", [("argument", 4 * 2048, 3), ("result", 4 * 2048, 3)]),
        ("96x100 width/96x32/4 dram", [("argument", 4 * 2048, 3), ("result", 4 * 2048, 3)]),
        ("64x64 float32 block/64x32/2x1 dram", [("argument", 2 * 4096, 2), ("result", 2 * 4096, 2)]),
    ],
)
def test_shards_in_dram_are_tilized_row_by_row(source, rows):
    plan = plan_tilize(tensor_spec(source), N150)
    assert buffers_of(plan) == [rows]
    assert not any(buffer.view_of for step in plan.steps for buffer in step.circular_buffers)


def test_tiles_stay_in_the_wanted_place_in_dram():
    """In L1 they would stay in the shards that they have, whatever place is wanted."""
    source, wanted = tensor_spec("64x32 height/32x32/2 l1"), place("height/64x32/1 dram")
    plan = plan_tilize(source, N150, place=wanted)
    assert plan.tensors["output"].memory_config == wanted


@pytest.mark.parametrize(
    ("source", "rows"),
    [  # the shard's row of tiles, twice where it has several
        ("64x2 tile height/32x32/2 dram", [("argument", 2048, 2), ("result", 2048, 2)]),
        ("96x70 tile width/96x32/3 dram", [("argument", 2 * 2048, 3), ("result", 2 * 2048, 3)]),
        ("64x2 tile bfloat8_b height/32x32/2 dram", [("argument", 1088, 2), ("result", 2048, 2)]),
    ],
)
def test_shards_in_dram_are_untilized_in_passing(source, rows):
    plan = plan_untilize(tensor_spec(source), N150)
    assert buffers_of(plan, "view_of") == [[(*row, None) for row in rows]]


def test_rows_are_not_dealt_to_blocks_in_dram():
    (step,) = plan_untilize(tensor_spec("64x64 tile block/64x32/2x1 dram"), N150).steps
    assert step.refused.startswith("We don't support DRAM block sharding")


def test_wide_interleaved_rows_are_tilized_into_shards_by_blocks():
    """48 tiles across a row of tiles: blocks of one on 48 cores; a stick has 64 B, and room for two of 32."""
    plan = plan_tilize(tensor_spec("32x1536"), N150, place=place("width/32x384/4"))
    assert buffers_of(plan) == [[("argument", 2048, 48), ("result", 2048, 48), ("sticks", 128, 48)]]


def test_the_shards_of_a_vector_are_looked_at_before_its_padding():
    with pytest.raises(DeviceError, match=re.escape("Physical shard shape (1, 8) must be tile {32, 32} sized!")):
        plan_tilize(tensor_spec("64 block/1x8/8x1"), N150, padded_shape=(64,), pads=True)
    with pytest.raises(
        DeviceError, match=re.escape("To be tilizable output tensor shape Shape([64]) must be divisible")
    ):
        plan_tilize(tensor_spec("64"), N150, padded_shape=(64,), pads=True)


def test_rows_of_five_axes_that_shards_pad_are_tilized_with_their_padding():
    """320 columns in shards of 96 have 384, so the shards are whole tiles; those of 112 are refused."""
    assert programs(plan_tilize(tensor_spec("1x2x1x64x320 width/128x96/4"), N150)) == ["Tilize"]
    with pytest.raises(DeviceError, match=re.escape("Physical shard shape (128, 112) must be tile {32, 32} sized!")):
        plan_tilize(tensor_spec("1x2x1x64x320 width/128x112/3"), N150)


@pytest.mark.parametrize(
    ("shape", "padded"), [("1x3x160x256", (1, 3, 192, 256)), ("1x1x3x160x256", (1, 1, 3, 160, 256))]
)
def test_tiles_of_five_axes_are_seen_without_padding_that_was_asked_for(shape, padded):
    """The library tilizes four axes, in a buffer of 3 x 6 x 8 tiles, and views the result in five."""
    source = tensor_spec(shape)
    plan = plan_tilize(source, N150, padded_shape=(*source.shape[:-2], 192, 256), pads=True)
    assert plan.tensors["output"].padded_shape == padded
    assert plan.steps[0].outputs[0].buffer.size_bytes == 144 * 2048


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("2x1x1x64x310 width/128x96/4", True),  # five axes are viewed as four, without the padding of shards
        ("1x2x1x64x310 width/128x96/4", False),  # a first axis of one element is left out
        ("1x2x1x1x64x310 width/128x96/4", True),
    ],
)
def test_rows_of_more_axes_than_four_are_viewed_unless_the_first_are_ones(source, refused):
    with pytest.raises(DeviceError, match="Changing the last dimension") if refused else nullcontext():
        plan_to_layout(tensor_spec(source), Layout.TILE, N150)


@pytest.mark.parametrize(
    ("source", "shape", "wanted", "result"),
    [
        ("96x160 uint16 tile l1", (97, 161), None, (97, 161)),  # more than there is
        ("96x160 uint16 tile l1", (1, 97, 160), None, (1, 97)),  # more axes than the tensor has
        ("2x1x3x96x160 uint16 tile l1", (2, 1, 6, 96, 151), None, (2, 1, 6, 96, 151)),
        ("96x250 tile width/96x64/8 l1", (96, 251), None, (96, 256)),  # of shards as wide as they are
        ("96x160 tile width/96x32/5 l1", (96, 160), "width", (96, 160)),  # a place that says no shards
    ],
)
def test_rows_have_any_shape_of_as_many_axes(source, shape, wanted, result):
    source = tensor_spec(source)
    where = wanted and replace(source.memory_config, shard_spec=None)
    plan = plan_untilize_with_unpadding(source, shape, N150, place=where)
    rows = plan.tensors["output"]
    assert rows.padded_shape == result
    assert (plan.without_values is not None) is any(map(gt, rows.shape, source.shape))
    if source.memory_config.is_sharded():
        assert rows.shards.shape == source.shards.shape


def test_tiles_lie_in_the_wanted_shards_where_some_cores_tilize():
    wanted = place("width/32x64/2")
    rows = tensor_spec("32x64 width/32x32/2 l1")
    plan = plan_tilize(rows, N150, place=wanted, cores=wanted.shard_spec.grid)
    assert plan.tensors["output"].memory_config == wanted


def test_a_place_of_rows_need_not_hold_the_padding_of_tiles():
    """Four images of 8 rows, which are 128 rows in tiles."""
    plan = plan_to_layout(tensor_spec("4x8x96 tile"), Layout.ROW_MAJOR, N150, place=place("height/32x96/1"))
    assert plan.tensors["output"].memory_config == place("height/32x96/1")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("2x1x4x2x64x8 rows block/1024x32/1 dram", "Input tensor width (8) must be divisible by tile width (32)"),
        ("2x1x4x2x64x8 rows width/1024x32/1", "Shard height 4096 must match physical height 1024 for width sharded"),
        ("2x1x4x2x64x8 rows width/1024x16/1", "Physical shard shape (1024, 16) must be tile {32, 32} sized!"),
    ],
)
def test_rows_that_shards_pad_are_seen_without_their_padding_in_four_axes(source, message):
    with pytest.raises(DeviceError, match=re.escape(message)):
        plan_to_layout(tensor_spec(source), Layout.TILE, N150)


def test_tilize_pads_rows_of_four_axes():
    """Rows of 16 in one shard of 32 columns, seen as twice as many rows of 16 without padding."""
    rows = tensor_spec("2x2x2x4x16 width/32x32/1")
    with pytest.raises(DeviceError, match="Shard height 64 must match physical height 32 for width sharded"):
        plan_tilize(rows, N150, pads=True, place=place("l1"))
    rows = tensor_spec("2x2x2x8x16 block/64x32/1x1")
    plan = plan_tilize(rows, N150, pads=True, place=place("l1"))
    assert (plan.tensors["output"].padded_shape, plan.without_values is None) == ((2, 2, 2, 32, 32), False)


def test_columns_grow_with_the_padding_of_images():
    """Two images of 16 rows are 64 rows as tiles, in shards as high."""
    plan = plan_to_layout(tensor_spec("1x2x16x64 width/32x32/2"), Layout.TILE, N150)
    assert plan.tensors[plan.results["output"]].memory_config == place("width/64x32/2")


def test_high_shards_that_are_no_tiles_do_not_stay():
    (step,) = plan_tilize(tensor_spec("2x160 height/8x160/1"), N150, place=place("height/32x160/1")).steps
    assert step.refused.startswith("Input tensor height (2) must be divisible by tile height (32)")


def test_a_vector_in_columns_of_tiles_is_no_vector_again():
    with pytest.raises(DeviceError, match=re.escape("Input shape: Shape([32, 96]), New shape: Shape([65])")):
        plan_to_layout(tensor_spec("65"), Layout.TILE, N150, place=place("width/32x32/3"))


def test_tilize_looks_at_the_shards_of_four_axes():
    with pytest.raises(DeviceError, match=re.escape("Physical shard shape (4096, 8) must be tile {32, 32} sized!")):
        plan_tilize(tensor_spec("2x1x4x2x64x8 rows block/1024x32/1 dram"), N150)


def test_untilize_views_four_axes_before_it_refuses_rows():
    with pytest.raises(DeviceError, match="Shard height 512 must match physical height 128 for width sharded"):
        plan_untilize(tensor_spec("4x4x2x4x1x2 rows width/128x8/1"), N150)


def test_columns_go_to_another_scheme_through_rows_of_tiles():
    """Three columns of two tiles each, twice, on the cores of the tiles."""
    plan = plan_to_layout(
        tensor_spec("64x65 tile width/64x32/3"), Layout.ROW_MAJOR, N150, place=place("block/32x32/3x2")
    )
    assert buffers_of(plan, "view_of") == [[("argument", 2 * 2048, 3, "input"), ("rows", 2 * 2 * 2048, 3, None)]]


def test_rows_of_more_axes_than_four_show_the_padding_of_their_shard():
    plan = plan_to_layout(tensor_spec("1x1x1x64x8 tile"), Layout.ROW_MAJOR, N150, place=place("block/32x32/1x2"))
    assert plan.tensors[plan.results["output"]].memory_config == place("block/128x8/1x2")
    assert plan.without_values is not None
