"""Copies: buffers, blocks of tiles, values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.spec.device_spec import load_spec
from ops.programs.data_movement.copy import Conversion, tensor_copy_movement, tile_blocks
from ops.programs.data_movement.copy_buffers import copy_buffers, move_buffers
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.movement import Access
from ops.programs.data_movement.pad import PadImage
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window
from ops.programs.data_movement.typecast import Typecast
from tests.shards import wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def rows(place, columns=70):
    return TensorSpec((1, 1, 50, columns), BFLOAT16, ROWS, place)


def sizes(buffers):
    return [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in buffers]


def test_two_tiles_of_each_format_are_on_their_way():
    source = TensorSpec((1, 1, 64, 96), BFLOAT16, TILES)
    made = TensorSpec((1, 1, 64, 96), BFLOAT8_B, TILES, L1_MEMORY_CONFIG)
    assert sizes(copy_buffers(source, made, SPEC)) == [(4096, 6, False), (2176, 6, False)]
    assert sizes(copy_buffers(source, source, SPEC)) == [(4096, 6, False)]


def test_rows_are_put_together_in_a_scratchpad():
    """Rows of 140 bytes; pages of 48 bytes in shards of 24 columns."""
    shards = rows(wide((50, 24), 3))
    assert sizes(copy_buffers(rows(DRAM_MEMORY_CONFIG), shards, SPEC)) == [(96, 50, False), (140, 50, True)]
    assert sizes(copy_buffers(rows(DRAM_MEMORY_CONFIG), rows(L1_MEMORY_CONFIG), SPEC))[0] == (2 * 144, 50, False)


def test_a_move_takes_two_pages_or_all_of_a_core():
    """130 rows on 64 cores: three each, of 144 bytes with what aligns them."""
    source = TensorSpec((1, 1, 130, 70), BFLOAT16, ROWS, L1_MEMORY_CONFIG)
    apart, (whole,) = move_buffers(source, source, SPEC)
    assert sizes(apart) == [(2 * 144, 64, False)]
    assert (whole.size_bytes, whole.page_bytes) == (3 * 144, 144)


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
    assert (list(blocks.cores_by_width(N150)), blocks.num_cores) == ([35, 22], 60)


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


def written(op, source, target):
    return op.values([source, target], None)


def image(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_padding_goes_around_each_image():
    padded = PadImage(image=(2, 3, 2, 4), padding=(1, 0, 0, 2)).moved(image(1, 1, 12, 4))
    assert padded.shape == (2, 4, 4, 4)
    assert padded[:, 1:, :2].tolist() == image(2, 3, 2, 4).tolist()
    assert not padded[:, 0].any()
    assert not padded[:, :, 2:].any()


def test_windows_become_channels_row_by_row():
    x = image(2, 4, 6, 5)
    folded = FoldWindows(window=(2, 3), image=x.shape, data_format=BFLOAT16).moved(x.reshape(1, 1, 48, 5))
    assert folded.shape == (2, 2, 2, 30)
    assert folded[1, 0, 1].astype(np.float32).tolist() == quantize(x[1, :2, 3:].ravel(), BFLOAT16).tolist()


def test_block_floats_survive_the_way_through_bfloat16():
    x = quantize(np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32), BFLOAT8_B)
    wide = Typecast(BFLOAT8_B, BFLOAT16).moved(x)
    back = Typecast(BFLOAT16, BFLOAT8_B).moved(wide.reshape(5, 1, 40))
    np.testing.assert_array_equal(back.reshape(5, 40), x)


@given(st.data())
def test_a_slice_written_back_is_where_it_was(data):
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(4))
    begins = (0, *(data.draw(st.integers(0, side - 1)) for side in shape[1:3]), 0)
    ends = (
        shape[0],
        *(data.draw(st.integers(b + 1, s)) for b, s in zip(begins[1:3], shape[1:3], strict=True)),
        shape[3],
    )
    window, x = Window(shape=shape, begins=begins, ends=ends), image(*shape)
    part = PaddedSlice(window).moved(x.reshape(1, 1, -1, shape[3]))
    assert part.shape == window.window_shape
    blank = np.where(np.ones_like(x, bool), np.float32(-1), x)
    result = written(SliceWrite(window, part.shape[2]), part.reshape(1, 1, -1, shape[3]), blank)
    box = tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))
    np.testing.assert_array_equal(result[box], x[box])
    assert (result == -1).sum() == x.size - part.size
    assert result is blank  # in place: the image is the plan's own


def test_columns_beyond_the_window_are_dropped():
    window = Window(shape=(1, 2, 3, 1), begins=(0, 0, 1, 0), ends=(1, 2, 3, 1))
    wide = image(1, 1, 8, 1)  # two rows of four columns, of which two count
    result = written(SliceWrite(window, 4), wide, np.full((1, 2, 3, 1), -1, np.float32))
    np.testing.assert_array_equal(result[0, :, :, 0], [[-1, 0, 1], [-1, 4, 5]])


def test_rows_that_a_slice_lacks_keep_what_was_there():
    window = Window(shape=(1, 3, 2, 1), begins=(0, 0, 0, 0), ends=(1, 3, 2, 1))
    result = written(SliceWrite(window, 2), image(1, 1, 4, 1), np.full((1, 3, 2, 1), -1, np.float32))
    np.testing.assert_array_equal(result[0, :, :, 0], [[0, 1], [2, 3], [-1, -1]])


def test_what_no_slice_has_written_is_nan():
    window = Window(shape=(1, 2, 1, 1), begins=(0, 1, 0, 0), ends=(1, 2, 1, 1))
    result = written(SliceWrite(window, 1), np.full((1, 1, 1, 1), 5, np.float32), None)
    assert np.isnan(result[0, 0, 0, 0])
    assert result[0, 1, 0, 0] == 5
