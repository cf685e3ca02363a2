"""Where rows go that were padded tiles, and what is refused."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.programs.tiling.unpadding import images_of_shard, unpadded_place, unpadding_refusal
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

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
