"""What data movement programs make of numbers, by hand: copies, padding, boxes, windows, joined, repeated tensors."""

import numpy as np
import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from ops.programs.data_movement.concat import Concatenate
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.fold import FoldWindows
from ops.programs.data_movement.pad import FillPad, FillTiles, PadWith, around_image, ragged_tiles, writes_halves
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import Cut, PaddedSlice, SliceWrite, Window
from ops.programs.data_movement.upsample import Upsample, UpsampleProgram, upsampled_shape
from tests.build import op_cycles, op_values, tensor_spec


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


def test_a_number_of_32_bits_is_written_as_two_of_16():
    op = PadWith(shape=(1, 1), padding=((0, 0), (0, 1)), value=1.5, in_halves=True)
    assert op.moved(np.zeros((1, 1), np.float32)).view(np.uint32).tolist() == [[0, 0x3FC03FC0]]
    assert writes_halves(tensor_spec("8x8 float32"), tensor_spec("8x16 float32"))
    assert not writes_halves(tensor_spec("32x32 float32 tile"), tensor_spec("64x32 float32 tile"))
    assert not writes_halves(tensor_spec("8x8"), tensor_spec("8x16"))


def test_the_number_stands_behind_every_image():
    op = FillTiles(shape=(2, 1, 3), padded_shape=(2, 32, 32), value=2.0)
    values = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    full = op.moved(values)
    assert np.array_equal(full[:, :1, :3], values)
    assert full.sum() == values.sum() + 2 * (2 * 1024 - 6)
    assert np.array_equal(op.moved(full), full)


def test_only_tiles_with_padding_count():
    """Three of four tiles of each of five images: a copy of 15 tiles."""
    sizes = [ragged_tiles(shape) for shape in ((1, 1, 1024, 24), (1, 5, 33, 47), (2, 64, 32), (39,))]
    assert sizes == [32, 15, 0, 2]  # a vector is one row of tiles
    tensor = tensor_spec("1x5x33x47 tile")
    op = FillTiles(shape=tensor.shape, padded_shape=tensor.padded_shape, value=0.0)
    cycles = op_cycles(op, tensor)
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (15 * 2048, 15 * 2048)


def upsample(scale, program=UpsampleProgram.STICKS, shape=(1, 2, 3, 1), source=BFLOAT16, target=BFLOAT16):
    return Upsample(program=program, shape=shape, scale=scale, source_format=source, data_format=target)


def test_pixels_come_several_times_and_sides_are_rounded_down():
    image = np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1)
    assert upsample((2.0, 1.0)).moved(image).reshape(4, 3).tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert upsample((1.0, 1.5), UpsampleProgram.PAGES).moved(image).reshape(2, 4).tolist() == [
        [0, 0, 1, 2],
        [3, 3, 4, 5],
    ]
    assert upsample((0.5, 0.5), UpsampleProgram.PAGES).moved(image).reshape(-1).tolist() == [0]
    assert upsampled_shape((2, 7, 5, 24), (1.5, 0.5)) == (2, 10, 2, 24)


@pytest.mark.parametrize(
    ("program", "source", "target", "expected"),
    [
        (UpsampleProgram.STICKS, FLOAT32, FLOAT32, 1.00390625),
        (UpsampleProgram.TILES, FLOAT32, FLOAT32, 1.0),  # a 16-bit Dst has 7 bits of fraction
        (UpsampleProgram.TILES, BFLOAT8_B, BFLOAT16, 1.015625),
    ],
)
def test_tiles_pass_the_matrix_unit(program, source, target, expected):
    given = np.full((1, 2, 32, 32), 1.015625 if source is BFLOAT8_B else 1.00390625, np.float32)
    result = upsample((1.0, 1.0), program, given.shape, source, target).moved(given)
    assert float(result[0, 0, 0, 0]) == expected
