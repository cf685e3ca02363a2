"""Copies: blocks of tiles, what a core moves of them, values."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.spec.device_spec import load_spec
from ops.programs.data_movement.copy import Conversion, CopyTensor, tile_blocks
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.movement import Access
from ops.programs.data_movement.pad import PadWith, around_image
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window
from tests.build import op_cycles, op_values, tensor_spec

N150 = load_spec("wormhole_n150")


def blocks_of(conversion, shape, spec=N150, **options):
    """The blocks of one shape, tilized from bfloat16, or untilized from float32."""
    untilizes = conversion is Conversion.UNTILIZE
    ends = [tensor_spec(f"{shape} {layout} {'float32' if untilizes else ''}") for layout in ("rows", "tile")]
    return tile_blocks(conversion, *(reversed(ends) if untilizes else ends), spec, **options)


@pytest.mark.parametrize(
    ("shape", "side", "cores"),
    [
        ("32x1024", None, None),  # 32 tiles across: not wide
        ("32x1280", 1, "{[0-0 - 4-7]}"),
        ("32x2048", 2, "{[0-0 - 3-7]}"),  # 64 blocks of a tile would leave no core over
        ("2x32x2048", 2, "{[0-0 - 3-7]}"),  # the same blocks of two images
        ("64x1280", 2, "{[0-0 - 1-7], [2-0 - 2-3]}"),
        ("4096x4096", None, None),  # rows of tiles occupy all 64 cores
    ],
)
def test_wide_rows_are_tilized_in_blocks(shape, side, cores):
    blocks = blocks_of(Conversion.TILIZE, shape)
    if side is None:
        assert blocks is None
        return
    merged = blocks.cores_by_width(N150)
    assert (blocks.side, list(merged), merged[side].num_cores()) == (side, [side], blocks.num_cores)
    wanted = {core for part in cores.strip("{}").split("], ") for core in _cores(part)}
    assert {(core.x, core.y) for core in merged[side].cores()} == wanted


def _cores(text):
    """The cores of a range such as ``[2-0 - 2-3``."""
    (left, top), (right, bottom) = (map(int, corner.split("-")) for corner in text.strip("[]").split(" - "))
    return [(x, y) for x in range(left, right + 1) for y in range(top, bottom + 1)]


@pytest.mark.parametrize(
    ("conversion", "shape", "by_width"),
    [
        (  # 34 tiles: six blocks of five, and one of four
            Conversion.TILIZE,
            "1088x1088",
            {
                5: "{[0-0 - 5-0], [0-1 - 4-1], [0-2 - 3-2], [0-3 - 2-3], [0-4 - 1-4], [0-5 - 0-5], [0-7 - 5-7], "
                "[1-6 - 5-6], [2-5 - 5-5], [3-4 - 5-4], [4-3 - 5-3], [5-2 - 5-2]}",
                4: "{[0-6 - 0-6], [1-5 - 1-5], [2-4 - 2-4], [3-3 - 3-3], [4-2 - 4-2], [5-1 - 5-1], [6-0 - 6-0]}",
            },
        ),
        (Conversion.UNTILIZE, "96x1088", {2: "{[0-0 - 7-3], [0-4 - 1-4]}"}),  # row by row
    ],
)
def test_cores_of_blocks(conversion, shape, by_width):
    blocks = blocks_of(conversion, shape)
    assert {width: str(cores) for width, cores in blocks.cores_by_width(N150).items()} == by_width


@pytest.mark.parametrize(
    ("images", "in_blocks"), [(47, True), (48, False), (53, True), (54, False), (59, True), (60, False)]
)
def test_untilize_counts_the_blocks_of_all_images(images, in_blocks):
    """48 rows of 34 tiles would be 6x8 blocks of six, no more cores than rows; 53 would be 6x9, which is more."""
    blocks = blocks_of(Conversion.UNTILIZE, f"{images}x1x32x1088")
    assert (blocks is not None) == in_blocks
    assert blocks is None or (blocks.side, blocks.num_cores) == (1, 34)


def test_rows_that_fill_l1_are_cut():
    """512 tiles of two formats take 2 MiB; rows would occupy all 64 cores, 60 blocks do not."""
    blocks = blocks_of(Conversion.TILIZE, "4096x16384")
    assert (blocks.side, blocks.num_cores, list(blocks.cores_by_width(N150))) == (35, 60, [35, 22])


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_a_grid_too_small_for_blocks_has_rows(grid):
    spec = replace(N150, grid=replace(N150.grid, cols=grid[0], rows=grid[1]))
    blocks = blocks_of(Conversion.TILIZE, "32x1280", spec=spec)
    assert blocks is None or blocks.num_cores <= spec.grid.cores
    assert blocks_of(Conversion.TILIZE, "32x1280", on_one_core=True) is None


def test_a_core_moves_the_parts_of_sticks_and_the_tiles_of_its_block():
    """2x2 tiles of each of two images: 64 parts of sticks of 128 B an image, and four tiles."""
    source, target = (tensor_spec(f"2x1x64x1280 {layout}") for layout in ("rows", "tile"))
    movement = CopyTensor(Conversion.TILIZE).movement(source, target, N150)
    reads, writes = movement.reads, movement.writes
    assert (reads.access, reads.core_pages, reads.page_bytes, reads.all_pages) == (Access.BOUNCE, 128, 128, 2560)
    assert (writes.access, writes.core_pages, writes.page_bytes) == (Access.WAIT, 8, 2048)
    assert (movement.cores.num_cores(), movement.blocks, movement.tilized_tiles, movement.width_tiles) == (20, 4, 8, 2)


def test_a_core_fills_the_padding_below_its_block():
    """13 rows of 64 B below the 19 of each image, four bytes at a time."""
    source, target = (tensor_spec(f"19x1280 {layout}") for layout in ("rows", "tile"))
    movement = CopyTensor(Conversion.TILIZE_WITH_VAL_PADDING).movement(source, target, N150)
    assert (movement.cores.num_cores(), movement.reads.core_pages, movement.stores) == (40, 19, 13 * 16)


@pytest.mark.parametrize(
    ("op", "measured_as"),
    [
        (CopyTensor(Conversion.TILIZE, (BFLOAT16, BFLOAT16)), "Tilize"),
        (CopyTensor(Conversion.TILIZE), "Tilize"),
        (CopyTensor(Conversion.TILIZE, (BFLOAT16, BFLOAT8_B)), ""),  # changes the format on the way
        (CopyTensor(Conversion.UNTILIZE_CODEGEN), ""),
        (CopyTensor(Conversion.PAD), ""),
    ],
)
def test_a_program_is_measured_as_it_is_around_convolutions(op, measured_as):
    assert op.measured_as == measured_as


def test_one_core_takes_as_long_as_all_rows():
    tiles, rows = (tensor_spec(f"4096x128 float32 {layout} l1") for layout in ("tile", "rows"))
    formats = (FLOAT32, FLOAT32)
    many, alone = (
        op_cycles(CopyTensor(Conversion.UNTILIZE, formats, on_one_core=one), tiles, rows) for one in (False, True)
    )
    assert (many.cores, alone.cores) == (64, 1)
    assert alone.cycles > 32 * many.cycles


def image(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def unpadded(source, formats, kept=None):
    return op_values(CopyTensor(Conversion.UNTILIZE_WITH_UNPADDING, formats, kept), source)


def test_what_is_kept_begins_with_the_first_element():
    source = image(2, 3, 4)
    assert unpadded(source, (FLOAT32, FLOAT32), (1, 2, 3)).tolist() == [[[0, 1, 2], [4, 5, 6]]]
    assert unpadded(source, (FLOAT32, FLOAT32)) is source


def test_another_format_rounds_what_is_kept_alone():
    """64 shares its exponent with 1.25 no more once it is cut off."""
    source = np.float32([[1.25, 1.25, 64.0]])
    assert unpadded(source, (FLOAT32, BFLOAT8_B)).astype(np.float32).tolist() == [[1, 1, 64]]
    assert unpadded(source, (FLOAT32, BFLOAT8_B), (1, 2)).astype(np.float32).tolist() == [[1.25, 1.25]]


def test_padding_goes_around_each_image():
    padded = PadWith(shape=(2, 3, 2, 4), padding=around_image((1, 0, 0, 2))).moved(image(1, 1, 12, 4))
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
    wide = CopyTensor(Conversion.TYPECAST, (BFLOAT8_B, BFLOAT16)).moved(x)
    back = CopyTensor(Conversion.TYPECAST, (BFLOAT16, BFLOAT8_B)).moved(wide.reshape(5, 1, 40))
    np.testing.assert_array_equal(back.reshape(5, 40), x)


@given(st.data())
def test_a_slice_written_back_is_where_it_was(data):
    shape = tuple(data.draw(st.integers(1, 5)) for _ in range(4))
    begins = (0, *(data.draw(st.integers(0, side - 1)) for side in shape[1:3]), 0)
    inner = (data.draw(st.integers(b + 1, s)) for b, s in zip(begins[1:3], shape[1:3], strict=True))
    window, x = Window(shape=shape, begins=begins, ends=(shape[0], *inner, shape[3])), image(*shape)
    part = PaddedSlice(window).moved(x.reshape(1, 1, -1, shape[3]))
    assert part.shape == window.window_shape
    blank = np.full_like(x, -1)
    result = op_values(SliceWrite(window, part.shape[2]), part.reshape(1, 1, -1, shape[3]), blank)
    np.testing.assert_array_equal(result[window.box], x[window.box])
    assert (result == -1).sum() == x.size - part.size
    assert result is blank  # in place: the image is the plan's own


@pytest.mark.parametrize(
    ("shape", "begins", "source_width", "pixels", "result"),
    [
        ((1, 2, 3, 1), (0, 0, 1, 0), 4, 8, [[-1, 0, 1], [-1, 4, 5]]),  # columns beyond the window are dropped
        ((1, 3, 2, 1), (0, 0, 0, 0), 2, 4, [[0, 1], [2, 3], [-1, -1]]),  # rows that a slice lacks stay
    ],
)
def test_a_slice_that_does_not_fill_its_window(shape, begins, source_width, pixels, result):
    op = SliceWrite(Window(shape=shape, begins=begins, ends=shape), source_width)
    assert op_values(op, image(1, 1, pixels, 1), np.full(shape, -1, np.float32))[0, :, :, 0].tolist() == result


def test_what_no_slice_has_written_is_nan():
    op = SliceWrite(Window(shape=(1, 2, 1, 1), begins=(0, 1, 0, 0), ends=(1, 2, 1, 1)), 1)
    result = op_values(op, np.full((1, 1, 1, 1), 5, np.float32), None)
    assert np.isnan(result[0, 0, 0, 0])
    assert result[0, 1, 0, 0] == 5
