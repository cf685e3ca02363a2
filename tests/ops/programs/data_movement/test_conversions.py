"""Which program makes tiles of rows, or rows of tiles."""

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.programs.data_movement.conversions import (
    copied,
    in_other_layout,
    tilized_by,
    unpadded_by,
    unpadded_place,
    unpadding_refusal,
    untilized_by,
)
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.copy_buffers import images_of_shard
from tests.shards import BLOCK, HEIGHT, WIDTH, high, in_box, wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


@pytest.mark.parametrize(
    ("columns", "before", "asked", "after", "views"),
    [
        # stays on its two cores
        (64, wide((50, 32), 2), wide((64, 64), 1), wide((64, 32), 2), [None, "output", None]),
        # 48 columns become 64: dealt anew
        (48, wide((50, 24), 2), wide((64, 64), 1), wide((64, 64), 1), [None, None]),
    ],
)
def test_width_shards_stay_where_only_rows_are_padded(columns, before, asked, after, views):
    rows = TensorSpec((1, 1, 50, columns), BFLOAT16, ROWS, before)
    builder = PlanBuilder(SPEC, {"input": rows})
    made = tilized_by(builder, builder.tensor("input"), "output", place=asked, whole=False)
    assert made.spec.memory_config == after
    (program,) = [one for one in builder.finish({"output": made.name}).steps if hasattr(one, "circular_buffers")]
    assert [one.view_of for one in program.circular_buffers] == views


def test_columns_that_fill_their_shards_of_half_a_tile_are_refused():
    rows = TensorSpec((1, 1, 50, 64), BFLOAT16, ROWS, wide((50, 16), 4))
    builder = PlanBuilder(SPEC, {"input": rows})
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(64, 16\) must be tile \{32, 32\} sized!"):
        tilized_by(builder, builder.tensor("input"), "output", place=wide((64, 64), 1), whole=False)


def planned(make, source):
    """The one step of a plan that makes "output" of a tensor, and the tensor."""
    builder = PlanBuilder(SPEC, {"input": source})
    made = make(builder, builder.tensor("input"))
    (step,) = builder.finish({"output": made.name}).steps
    return step, made.spec


@pytest.mark.parametrize(
    ("shape", "data_format", "layout", "place", "name", "made"),
    [
        ((1, 1, 64, 64), BFLOAT16, ROWS, DRAM_MEMORY_CONFIG, "Tilize", BFLOAT16),
        ((1, 1, 50, 64), BFLOAT16, ROWS, DRAM_MEMORY_CONFIG, "TilizeWithValPadding", BFLOAT16),
        ((1, 1, 64, 64), BFLOAT16, TILES, DRAM_MEMORY_CONFIG, "UntilizeCodegen", BFLOAT16),
        ((1, 1, 64, 64), FLOAT32, TILES, DRAM_MEMORY_CONFIG, "Untilize", FLOAT32),  # has no program of its own
        ((1, 1, 64, 64), BFLOAT16, TILES, high((32, 64), 2), "Untilize", BFLOAT16),  # nor have shards
        ((1, 1, 64, 64), BFLOAT8_B, TILES, DRAM_MEMORY_CONFIG, "UntilizeCodegen", BFLOAT16),  # no rows of block floats
        ((1, 1, 50, 64), BFLOAT16, TILES, DRAM_MEMORY_CONFIG, "UntilizeWithUnpadding", BFLOAT16),
    ],
)
def test_a_program_for_each_change_of_layout(shape, data_format, layout, place, name, made):
    other = ROWS if layout is TILES else TILES
    source = TensorSpec(shape, data_format, layout, place)
    step, spec = planned(lambda builder, tensor: in_other_layout(builder, tensor, other, "output"), source)
    assert step.name == f"{name}DeviceOperation"
    assert (spec.shape, spec.layout, spec.data_format, spec.memory_config) == (shape, other, made, place)


def test_a_tensor_in_its_layout_is_itself():
    builder = PlanBuilder(SPEC, {"input": TensorSpec((1, 1, 50, 64), BFLOAT16, ROWS)})
    given = builder.tensor("input")
    assert in_other_layout(builder, given, ROWS, "output", place=L1_MEMORY_CONFIG) is given
    assert not builder.steps


def test_shards_without_whole_tiles_are_no_tiles():
    builder = PlanBuilder(SPEC, {"input": TensorSpec((1, 1, 40, 64), BFLOAT16, ROWS, high((20, 64), 2))})
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(20, 64\) must be tile"):
        in_other_layout(builder, builder.tensor("input"), TILES, "output", place=DRAM_MEMORY_CONFIG)


def test_one_core_takes_no_shards_and_no_program_that_was_generated():
    def tilized(builder, tensor):
        return tilized_by(builder, tensor, "output", place=shards, whole=True, on_one_core=True)

    def untilized(builder, tensor):
        return untilized_by(builder, tensor, TensorSpec((1, 1, 64, 64), BFLOAT16, ROWS), "output", on_one_core=True)

    shards = high((32, 64), 2)
    step, _ = planned(tilized, TensorSpec((1, 1, 64, 64), BFLOAT16, ROWS, shards))
    assert (step.refused or "").partition("\n")[0] == "Multicore must be enabled for sharded input"
    step, _ = planned(untilized, TensorSpec((1, 1, 64, 64), BFLOAT16, TILES))
    assert (step.name, step.op.on_one_core) == ("UntilizeDeviceOperation", True)


@pytest.mark.parametrize(("columns", "aligned_bytes", "refused"), [(24, 16, False), (20, 16, True), (24, 32, True)])
def test_rows_of_shards_that_are_padded_lie_on_what_l1_aligns(columns, aligned_bytes, refused):
    """Three shards of 24 columns are 48 bytes a row, of 20 columns 40."""
    spec = SPEC.replace(l1_alignment_bytes=aligned_bytes)
    builder = PlanBuilder(spec, {"input": TensorSpec((1, 1, 50, 3 * columns), BFLOAT16, ROWS, wide((50, columns), 3))})
    tilized_by(builder, builder.tensor("input"), "output", place=DRAM_MEMORY_CONFIG, whole=False)
    (step,) = builder.finish({"output": "output"}).steps
    assert (step.refused is not None, bool(step.circular_buffers)) == (refused, not refused)
    assert not refused or step.refused.startswith(
        f"Input row-major shard width {columns} gives page size {2 * columns} bytes, which must be aligned to "
        f"{aligned_bytes} bytes L1 SRAM buffer alignment requirement\n"
    )


@pytest.mark.parametrize(
    ("padded", "text"),
    [
        ((1, 1, 64, 40), "Input tensor width (40) must be divisible by tile width (32)"),
        ((1, 1, 40, 64), "Input tensor height (40) must be divisible by tile height (32)"),
    ],
)
def test_whole_tiles_are_required_of_columns_then_of_rows(padded, text):
    def tilized(builder, rows):
        return tilized_by(builder, rows, "output", place=DRAM_MEMORY_CONFIG, whole=True)

    assert planned(tilized, TensorSpec((1, 1, 64, 32), BFLOAT16, ROWS))[0].refused is None
    assert planned(tilized, TensorSpec(padded, BFLOAT16, ROWS))[0].refused.partition("\n")[0] == text


@pytest.mark.parametrize(
    ("shape", "before", "asked", "after"),
    [
        ((1, 1, 50, 64), high((25, 64), 2), high((64, 64), 1), high((64, 64), 1)),  # other schemes are dealt anew
        ((1, 1, 50, 100), wide((50, 64), 3), wide((64, 32), 4), wide((64, 64), 3)),  # 100 columns fill 128 of 192
        ((100,), wide((1, 64), 2), wide((32, 32), 4), wide((32, 32), 4)),  # a vector in two axes
    ],
)
def test_rows_that_are_padded_stay_in_width_shards_of_as_many_columns(shape, before, asked, after):
    rows, padded = TensorSpec(shape, BFLOAT16, ROWS, before), (32, 128) if len(shape) == 1 else None
    builder = PlanBuilder(SPEC, {"input": rows})
    tensor = builder.tensor("input")
    made = tilized_by(builder, tensor, "output", place=asked, padded_shape=padded, whole=False)
    assert made.spec.memory_config == after


def test_what_is_kept_stands_in_the_work():
    """Rows of tiles are cut to their shape; a copy of all keeps all."""
    source = TensorSpec((1, 1, 64, 64), BFLOAT16, TILES)
    step, spec = planned(
        lambda builder, tensor: unpadded_by(builder, tensor, (1, 1, 40, 50), DRAM_MEMORY_CONFIG, "output"), source
    )
    assert (spec.shape, step.op.kept) == ((1, 1, 40, 50), (1, 1, 40, 50))
    made = TensorSpec((1, 1, 64, 64), BFLOAT8_B, TILES, L1_MEMORY_CONFIG)
    step, _ = planned(lambda builder, tensor: copied(builder, Conversion.COPY, tensor, made, "output"), source)
    assert (step.name, step.op.kept) == ("CopyDeviceOperation", None)
    assert step.op.formats == (BFLOAT16, BFLOAT8_B)


PLACES = {
    "HEIGHT": in_box(HEIGHT, (64, 128), 2),
    "WIDTH": in_box(WIDTH, (128, 32), 4),
    "BLOCK": in_box(BLOCK, (64, 64), 2, 2),
    "WIDE BLOCK": in_box(BLOCK, (64, 32), 4, 2),
    "DRAM": DRAM_MEMORY_CONFIG,
}


def tiles(place, shape=(1, 1, 100, 100)):
    return TensorSpec(shape, BFLOAT16, Layout.TILE, place)


@pytest.mark.parametrize(
    ("scheme", "columns", "shard"),
    [("HEIGHT", 100, (64, 100)), ("WIDTH", 100, (100, 32)), ("BLOCK", 100, (64, 64)), ("BLOCK", 40, (64, 32))],
)
def test_cores_share_rows_in_whole_tiles(scheme, columns, shard):
    place = PLACES[scheme]
    assert unpadded_place(tiles(place), (1, 1, 100, columns), place).shard_spec.shape == list(shard)


def test_shards_stay_on_the_cores_of_the_tiles():
    elsewhere = in_box(HEIGHT, (16, 100), 8)
    found = unpadded_place(tiles(PLACES["HEIGHT"]), (1, 1, 100, 100), elsewhere)
    assert found.shard_spec.grid == PLACES["HEIGHT"].shard_spec.grid
    assert unpadded_place(tiles(DRAM_MEMORY_CONFIG), (1, 1, 100, 100), elsewhere).shard_spec.shape == [32, 100]


def test_wide_shards_and_blocks_of_one_width_go_where_they_are_asked_for():
    blocks, wide = PLACES["WIDE BLOCK"], in_box(WIDTH, (100, 32), 6)
    assert unpadded_place(tiles(blocks), (1, 1, 100, 100), wide) == wide
    assert unpadded_place(tiles(PLACES["WIDTH"]), (1, 1, 100, 100), blocks) == blocks


def test_shards_of_interleaved_tiles_are_as_wide_as_asked_for():
    wider = in_box(HEIGHT, (16, 128), 8)
    assert unpadded_place(tiles(DRAM_MEMORY_CONFIG), (1, 1, 100, 100), wider).shard_spec.shape == [32, 128]
    assert unpadded_place(tiles(PLACES["HEIGHT"]), (1, 1, 100, 100), wider).shard_spec.shape == [64, 100]


@pytest.mark.parametrize(
    ("shape", "rows", "images"),
    [
        ((1, 4, 50, 100), 128, 2),
        ((1, 6, 7, 130), 64, 2),
        ((1, 2, 50, 100), 64, 0),
        ((1, 3, 33, 64), 96, 0),
        ((1, 5, 50, 32), 160, 2),
    ],
)
def test_shards_of_several_whole_images_keep_as_many(shape, rows, images):
    columns = -(-shape[3] // 32) * 32
    source = tiles(in_box(HEIGHT, (rows, columns), 3), shape)
    assert images_of_shard(source) == images
    kept = unpadded_place(source, shape, source.memory_config).shard_spec.shape[0]
    assert kept == (images * shape[2] or 64)


@pytest.mark.parametrize(
    ("before", "after", "batch", "text"),
    [
        ("HEIGHT", "HEIGHT", 1, None),
        ("HEIGHT", "WIDTH", 1, "Output memory config layout must be HEIGHT_SHARDED when output is sharded but got"),
        ("WIDTH", "BLOCK", 1, "WIDTH_SHARDED -> BLOCK_SHARDED requires matching column shard width; got input=32"),
        ("WIDTH", "WIDE BLOCK", 2, "Can only write unbatched output for WIDTH_SHARDED -> BLOCK_SHARDED"),
        ("WIDTH", "WIDE BLOCK", 1, "shards of one width that are dealt in another scheme are not simulated"),
        ("WIDTH", "HEIGHT", 1, "Output memory config layout (TensorMemoryLayout::HEIGHT_SHARDED) must match input"),
        ("WIDTH", "DRAM", 2, "Can only write unbatched output interleaved"),
        ("BLOCK", "BLOCK", 1, None),
        ("BLOCK", "BLOCK", 2, "Can only write unbatched output for BLOCK_SHARDED -> BLOCK_SHARDED"),
        (
            "BLOCK",
            "HEIGHT",
            1,
            "Output memory config layout (TensorMemoryLayout::HEIGHT_SHARDED) must be BLOCK_SHARDED",
        ),
        ("DRAM", "BLOCK", 2, None),
    ],
)
def test_the_first_line_is_the_librarys(before, after, batch, text):
    shape = (1, batch, 100 // batch, 100)
    source = tiles(PLACES[before], shape)
    place = unpadded_place(source, shape, PLACES[after]) if before == after else PLACES[after]
    rows = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, unpadded_place(tiles(DRAM_MEMORY_CONFIG), shape, place))
    found = unpadding_refusal(source, rows, PLACES[after])
    assert (found is None) if text is None else found.startswith(text)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (PLACES["WIDTH"], "Input tensor width (128) must equal output width (64) or output width / shard width"),
        (DRAM_MEMORY_CONFIG, "Input tensor width difference (88) must be less than shard width (32)"),
    ],
)
def test_width_shards_are_cut_within_the_last_of_them(place, text):
    rows = TensorSpec((1, 1, 100, 40), BFLOAT16, Layout.ROW_MAJOR, unpadded_place(tiles(place), (1, 1, 100, 40), place))
    assert unpadding_refusal(tiles(PLACES["WIDTH"]), rows, place).startswith(text)
