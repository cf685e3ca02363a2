"""Blocks of wide tensors, against what the real library's planner answers (ttnn 0.81.1)."""

from dataclasses import replace

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.movement.movement import Access
from ops.programs.movement.movements import tensor_copy_movement
from ops.programs.movement.tile_blocks import tile_blocks
from ops.programs.movement.work import Conversion

N150 = load_spec("wormhole_n150")


def of(shape, layout, data_format=BFLOAT16):
    return TensorSpec(shape, data_format, layout, DRAM_MEMORY_CONFIG)


def blocks_of(conversion, shape, data_format=BFLOAT16, spec=N150, **options):
    """The blocks of one shape, tilized or untilized."""
    ends = [of(shape, layout, data_format) for layout in (Layout.ROW_MAJOR, Layout.TILE)]
    if conversion in (Conversion.UNTILIZE, Conversion.UNTILIZE_WITH_UNPADDING):
        ends.reverse()
    return tile_blocks(conversion, *ends, spec, **options)


@pytest.mark.parametrize(
    ("shape", "side", "cores"),
    [
        ((1, 1, 32, 1024), None, None),  # 32 tiles across: not wide
        ((1, 1, 32, 1280), 1, "{[0-0 - 4-7]}"),
        ((1, 1, 32, 2048), 2, "{[0-0 - 3-7]}"),  # 64 blocks of a tile would leave no core over
        ((1, 2, 32, 2048), 2, "{[0-0 - 3-7]}"),  # the same blocks of two images
        ((1, 1, 64, 1280), 2, "{[0-0 - 1-7], [2-0 - 2-3]}"),
        ((1, 1, 4096, 4096), None, None),  # rows of tiles occupy all 64 cores
    ],
)
def test_wide_rows_are_tilized_in_blocks(shape, side, cores):
    blocks = blocks_of(Conversion.TILIZE, shape)
    if side is None:
        assert blocks is None
        return
    assert blocks.side == side
    merged = blocks.cores_by_width(N150)
    assert list(merged) == [side]
    assert sum(one.num_cores() for one in merged.values()) == blocks.num_cores
    wanted = {core for part in cores.strip("{}").split("], ") for core in _cores(part)}
    assert {(core.x, core.y) for core in merged[side].cores()} == wanted


def _cores(text):
    """The cores of a range such as ``[2-0 - 2-3``."""
    (left, top), (right, bottom) = (map(int, corner.split("-")) for corner in text.strip("[]").split(" - "))
    return [(x, y) for x in range(left, right + 1) for y in range(top, bottom + 1)]


def test_blocks_at_the_right_edge_have_cores_of_their_own():
    blocks = blocks_of(Conversion.TILIZE, (1, 1, 1088, 1088))  # 34 tiles: six blocks of five, and one of four
    by_width = {width: str(cores) for width, cores in blocks.cores_by_width(N150).items()}
    assert by_width == {
        5: "{[0-0 - 5-0], [0-1 - 4-1], [0-2 - 3-2], [0-3 - 2-3], [0-4 - 1-4], [0-5 - 0-5], [0-7 - 5-7], [1-6 - 5-6], "
        "[2-5 - 5-5], [3-4 - 5-4], [4-3 - 5-3], [5-2 - 5-2]}",
        4: "{[0-6 - 0-6], [1-5 - 1-5], [2-4 - 2-4], [3-3 - 3-3], [4-2 - 4-2], [5-1 - 5-1], [6-0 - 6-0]}",
    }


def test_untilize_deals_blocks_row_by_row():
    blocks = blocks_of(Conversion.UNTILIZE, (1, 1, 96, 1088), FLOAT32)
    assert {width: str(cores) for width, cores in blocks.cores_by_width(N150).items()} == {
        2: "{[0-0 - 7-3], [0-4 - 1-4]}"
    }


@pytest.mark.parametrize(
    ("images", "in_blocks"), [(47, True), (48, False), (53, True), (54, False), (59, True), (60, False)]
)
def test_untilize_counts_the_blocks_of_all_images(images, in_blocks):
    """48 rows of 34 tiles would be 6x8 blocks of six, no more cores than rows; 53 would be 6x9, which is more."""
    blocks = blocks_of(Conversion.UNTILIZE, (images, 1, 32, 1088), FLOAT32)
    assert (blocks is not None) == in_blocks
    assert blocks is None or (blocks.side, blocks.num_cores) == (1, 34)


def test_rows_that_fill_l1_are_cut():
    """512 tiles of two formats take 2 MiB; rows would occupy all 64 cores, 60 blocks do not."""
    blocks = blocks_of(Conversion.TILIZE, (1, 1, 4096, 16384))
    assert (blocks.side, blocks.num_cores, blocks.last_wide) == (35, 60, 22)


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_a_grid_too_small_for_blocks_has_rows(grid):
    spec = replace(N150, grid=replace(N150.grid, cols=grid[0], rows=grid[1]))
    blocks = blocks_of(Conversion.TILIZE, (1, 1, 32, 1280), spec=spec)
    assert blocks is None or blocks.num_cores <= spec.grid.cores


def test_one_core_has_no_blocks():
    assert blocks_of(Conversion.TILIZE, (1, 1, 32, 1280), on_one_core=True) is None


def test_a_core_moves_the_parts_of_sticks_and_the_tiles_of_its_block():
    """2x2 tiles of each of two images: 64 parts of sticks of 128 B an image, and four tiles."""
    source, target = (of((2, 1, 64, 1280), layout) for layout in (Layout.ROW_MAJOR, Layout.TILE))
    movement = tensor_copy_movement(Conversion.TILIZE, source, target, N150)
    assert movement.cores.num_cores() == 20
    reads, writes = movement.reads, movement.writes
    assert (reads.access, reads.core_pages, reads.page_bytes, reads.all_pages) == (Access.BOUNCE, 128, 128, 2560)
    assert (writes.access, writes.core_pages, writes.page_bytes) == (Access.WAIT, 8, 2048)
    assert (movement.blocks, movement.tilized_tiles, movement.width_tiles) == (4, 8, 2)


def test_a_core_fills_the_padding_below_its_block():
    """13 rows of 64 B below the 19 of each image, four bytes at a time."""
    source, target = (of((1, 1, 19, 1280), layout) for layout in (Layout.ROW_MAJOR, Layout.TILE))
    movement = tensor_copy_movement(Conversion.TILIZE_WITH_VAL_PADDING, source, target, N150)
    assert (movement.cores.num_cores(), movement.reads.core_pages, movement.stores) == (40, 19, 13 * 16)
