"""Copies: blocks of tiles, what a core moves of them, the values of operations that move."""

from dataclasses import replace

import numpy as np
import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from device.spec.device_spec import load_spec
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.copy import Conversion, CopyTensor, tile_blocks
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.movement import Access
from ops.programs.data_movement.pad import FillPad, PadWith, around_image
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import Cut, PaddedSlice, SliceWrite, Window
from tests.build import op_cycles, op_values, tensor_spec

N150 = load_spec("wormhole_n150")


def blocks_of(name, shape, spec=N150, **options):
    """The blocks of one shape, tilized from bfloat16, or untilized from float32."""
    conversion, data_format = Conversion(name), "float32" if name == "Untilize" else ""
    ends = [tensor_spec(f"{shape} {layout} {data_format}") for layout in ("rows", "tile")]
    return tile_blocks(conversion, *(reversed(ends) if name == "Untilize" else ends), spec, **options)


@pytest.mark.parametrize(
    ("conversion", "shape", "by_width"),
    [
        ("Tilize", "32x1024", None),  # 32 tiles across: not wide
        ("Tilize", "32x1280", {1: "{[0-0 - 4-7]}"}),
        ("Tilize", "32x2048", {2: "{[0-0 - 3-7]}"}),  # 64 blocks of a tile would leave no core over
        ("Tilize", "2x32x2048", {2: "{[0-0 - 3-7]}"}),  # the same blocks of two images
        ("Tilize", "64x1280", {2: "{[0-0 - 2-3], [0-4 - 1-7]}"}),
        ("Tilize", "4096x4096", None),  # rows of tiles occupy all 64 cores
        (  # 34 tiles: six blocks of five, and one of four
            "Tilize",
            "1088x1088",
            {
                5: "{[0-0 - 5-0], [0-1 - 4-1], [0-2 - 3-2], [0-3 - 2-3], [0-4 - 1-4], [0-5 - 0-5], [0-7 - 5-7], "
                "[1-6 - 5-6], [2-5 - 5-5], [3-4 - 5-4], [4-3 - 5-3], [5-2 - 5-2]}",
                4: "{[0-6 - 0-6], [1-5 - 1-5], [2-4 - 2-4], [3-3 - 3-3], [4-2 - 4-2], [5-1 - 5-1], [6-0 - 6-0]}",
            },
        ),
        ("Untilize", "96x1088", {2: "{[0-0 - 7-3], [0-4 - 1-4]}"}),  # row by row
    ],
)
def test_wide_rows_are_cut_into_blocks(conversion, shape, by_width):
    blocks = blocks_of(conversion, shape)
    if by_width is None:
        assert blocks is None
        return
    cores = blocks.cores_by_width(N150)
    assert {width: str(of_width) for width, of_width in cores.items()} == by_width
    assert sum(of_width.num_cores() for of_width in cores.values()) == blocks.num_cores


@pytest.mark.parametrize(
    ("images", "in_blocks"), [(47, True), (48, False), (53, True), (54, False), (59, True), (60, False)]
)
def test_untilize_counts_the_blocks_of_all_images(images, in_blocks):
    """48 rows of 34 tiles would be 6x8 blocks of six, no more cores than rows; 53 would be 6x9, which is more."""
    blocks = blocks_of("Untilize", f"{images}x1x32x1088")
    assert (blocks and (blocks.side, blocks.num_cores)) == ((1, 34) if in_blocks else None)


def test_rows_that_fill_l1_are_cut():
    """512 tiles of two formats take 2 MiB; rows would occupy all 64 cores, 60 blocks do not."""
    blocks = blocks_of("Tilize", "4096x16384")
    assert (blocks.side, blocks.num_cores, list(blocks.cores_by_width(N150))) == (35, 60, [35, 22])


@pytest.mark.parametrize("grid", [(1, 1), (2, 1)])
def test_a_grid_too_small_for_blocks_has_rows(grid):
    spec = replace(N150, grid=replace(N150.grid, cols=grid[0], rows=grid[1]))
    blocks = blocks_of("Tilize", "32x1280", spec=spec)
    assert blocks is None or blocks.num_cores <= spec.grid.cores
    assert blocks_of("Tilize", "32x1280", on_one_core=True) is None


def test_a_core_moves_the_parts_of_its_block_and_fills_the_padding_below():
    """2x2 tiles of each of two images: 64 parts of sticks of 128 B an image, and four tiles; 13 rows of 64 B."""
    ends = (tensor_spec(f"2x1x64x1280 {layout}") for layout in ("rows", "tile"))
    movement = CopyTensor(Conversion.TILIZE).movement(*ends, N150)
    reads, writes = movement.sides
    assert (reads.access, reads.core_pages, reads.page_bytes, reads.all_pages) == (Access.BOUNCE, 128, 128, 2560)
    assert (writes.access, writes.core_pages, writes.page_bytes) == (Access.WAIT, 8, 2048)
    assert (movement.cores.num_cores(), movement.blocks, movement.tilized_tiles, movement.width_tiles) == (20, 4, 8, 2)
    ends = (tensor_spec(f"19x1280 {layout}") for layout in ("rows", "tile"))
    padded = CopyTensor(Conversion.TILIZE_WITH_VAL_PADDING).movement(*ends, N150)
    assert (padded.cores.num_cores(), padded.reads.core_pages, padded.stores) == (40, 19, 13 * 16)


@pytest.mark.parametrize(
    ("conversion", "formats", "measured_as"),
    [
        ("Tilize", (BFLOAT16, BFLOAT16), "Tilize"),
        ("Tilize", None, "Tilize"),
        ("Tilize", (BFLOAT16, BFLOAT8_B), ""),  # changes the format on the way
        ("Typecast", (BFLOAT16, BFLOAT8_B), "Typecast"),
        ("UntilizeCodegen", None, ""),
        ("Pad", None, ""),
    ],
)
def test_a_program_is_measured_as_it_is_around_convolutions(conversion, formats, measured_as):
    assert CopyTensor(Conversion(conversion), formats).measured_as == measured_as


def image(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_what_only_moves_changes_nothing():
    x = image(1, 1, 6, 4)
    for conversion in Conversion:
        assert op_values(CopyTensor(conversion), x) is x
        assert op_values(CopyTensor(conversion), x, None) is x  # into a tensor that was allocated before
    assert op_values(FillPad(), x) is x
    assert op_values(Reshape((2, 3, 4)), x).tolist() == x.reshape(2, 3, 4).tolist()


@pytest.mark.parametrize(
    ("source", "target", "kept", "values", "wanted"),
    [
        (FLOAT32, FLOAT32, (1, 2), [[0, 1, 2], [3, 4, 5]], [[0, 1]]),  # from the first element on
        # 64 shares its exponent with 1.25 no more once it is cut off
        (FLOAT32, BFLOAT8_B, None, [[1.25, 1.25, 64.0]], [[1, 1, 64]]),
        (FLOAT32, BFLOAT8_B, (1, 2), [[1.25, 1.25, 64.0]], [[1.25, 1.25]]),
    ],
)
def test_another_format_rounds_what_is_kept_alone(source, target, kept, values, wanted):
    op = CopyTensor(Conversion.UNTILIZE_WITH_UNPADDING, (source, target), kept)
    assert op_values(op, np.float32(values)).astype(np.float32).tolist() == wanted


def test_padding_goes_around_each_image_and_windows_become_channels_row_by_row():
    padded = PadWith(shape=(2, 3, 2, 4), padding=around_image((1, 0, 0, 2))).moved(image(1, 1, 12, 4))
    assert padded.shape == (2, 4, 4, 4)
    assert padded[:, 1:, :2].tolist() == image(2, 3, 2, 4).tolist()
    assert not padded[:, 0].any()
    assert not padded[:, :, 2:].any()
    x = image(2, 4, 6, 5)
    folded = FoldWindows(window=(2, 3), image=x.shape, data_format=BFLOAT16).moved(x.reshape(1, 1, 48, 5))
    assert folded.shape == (2, 2, 2, 30)
    assert folded[1, 0, 1].astype(np.float32).tolist() == quantize(x[1, :2, 3:].ravel(), BFLOAT16).tolist()


def test_block_floats_survive_the_way_through_bfloat16():
    x = quantize(np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32), BFLOAT8_B)
    wide = op_values(CopyTensor(Conversion.TYPECAST, (BFLOAT8_B, BFLOAT16)), x)
    back = op_values(CopyTensor(Conversion.TYPECAST, (BFLOAT16, BFLOAT8_B)), wide.reshape(5, 1, 40))
    assert wide.dtype == BFLOAT16.storage
    np.testing.assert_array_equal(back.reshape(5, 40), x)


@pytest.mark.parametrize(
    ("axis", "groups", "arrays", "result"),
    [
        (1, 1, [[[1, 2]], [[3]]], [[1, 2, 3]]),
        (0, 1, [[[1, 2]], [[3, 4]]], [[1, 2], [3, 4]]),
        (1, 2, [[[1, 2, 3, 4]], [[5, 6]]], [[1, 2, 5, 3, 4, 6]]),  # groups in turn
    ],
)
def test_one_behind_the_other(axis, groups, arrays, result):
    values = [np.float32(array) for array in arrays]
    op = Concatenate(axis=axis, shapes=tuple(array.shape for array in values), groups=groups)
    assert op_values(op, *values).tolist() == result


def test_a_box_and_that_it_takes_as_long_as_a_copy_of_it():
    array = np.arange(24.0).reshape(2, 3, 4)
    op = Cut(shape=(2, 3, 4), begins=(1, 0, 1), ends=(2, 3, 4), steps=(1, 2, 2))
    assert np.array_equal(op.moved(array), array[1:2, ::2, 1::2])
    for layout in ("rows", "tile"):
        op = Cut(shape=(1, 8, 64, 64), begins=(0, 0, 0, 0), ends=(1, 2, 64, 64), steps=(1, 1, 1, 1))
        source, result = (tensor_spec(f"1x{images}x64x64 {layout} l1") for images in (8, 2))
        assert op_cycles(op, source, result) == op_cycles(op, result, result)


@pytest.mark.parametrize(("rows", "columns"), [((0, 4), (0, 5)), ((1, 3), (0, 5)), ((0, 1), (4, 5)), ((3, 4), (1, 4))])
def test_a_slice_written_back_is_where_it_was(rows, columns):
    shape, (begins, ends) = (2, 4, 5, 3), zip(rows, columns, strict=True)
    window, x = Window(shape=shape, begins=(0, *begins, 0), ends=(2, *ends, 3)), image(*shape)
    part = PaddedSlice(window).moved(x.reshape(1, 1, -1, 3))
    assert part.shape == window.window_shape
    blank = np.full_like(x, -1)
    result = op_values(SliceWrite(window, part.shape[2]), part.reshape(1, 1, -1, 3), blank)
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
    unwritten = op_values(op, image(1, 1, pixels, 1), None)[0, :, :, 0]
    assert np.isnan(unwritten).tolist() == (np.array(result) == -1).tolist()
