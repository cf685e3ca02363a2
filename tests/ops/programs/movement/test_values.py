import numpy as np
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT8_B, BFLOAT16, quantize
from ops.programs.movement.values import converted, folded_windows, padded_image, padded_slice, written_slice
from ops.programs.movement.work import FoldWindows, PaddedSlice, PadImage, SliceWrite, Typecast, Window


def image(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_padding_goes_around_each_image():
    padded = padded_image(PadImage(image=(2, 3, 2, 4), padding=(1, 0, 0, 2)), image(1, 1, 12, 4))
    assert padded.shape == (2, 4, 4, 4)
    assert padded[:, 1:, :2].tolist() == image(2, 3, 2, 4).tolist()
    assert not padded[:, 0].any()
    assert not padded[:, :, 2:].any()


def test_windows_become_channels_row_by_row():
    x = image(2, 4, 6, 5)
    folded = folded_windows(FoldWindows(window=(2, 3), image=x.shape, data_format=BFLOAT16), x.reshape(1, 1, 48, 5))
    assert folded.shape == (2, 2, 2, 30)
    assert folded[1, 0, 1].astype(np.float32).tolist() == quantize(x[1, :2, 3:].ravel(), BFLOAT16).tolist()


def test_block_floats_survive_the_way_through_bfloat16():
    x = quantize(np.random.default_rng(0).standard_normal((5, 40)).astype(np.float32), BFLOAT8_B)
    wide = converted(Typecast(BFLOAT8_B, BFLOAT16), x)
    back = converted(Typecast(BFLOAT16, BFLOAT8_B), wide.reshape(5, 1, 40))
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
    part = padded_slice(PaddedSlice(window), x.reshape(1, 1, -1, shape[3]))
    assert part.shape == window.window_shape
    blank = np.where(np.ones_like(x, bool), np.float32(-1), x)
    written = written_slice(SliceWrite(window, part.shape[2]), part.reshape(1, 1, -1, shape[3]), blank)
    box = tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))
    np.testing.assert_array_equal(written[box], x[box])
    assert (written == -1).sum() == x.size - part.size
    assert written is blank  # in place: the image is the plan's own


def test_columns_beyond_the_window_are_dropped():
    window = Window(shape=(1, 2, 3, 1), begins=(0, 0, 1, 0), ends=(1, 2, 3, 1))
    wide = image(1, 1, 8, 1)  # two rows of four columns, of which two count
    written = written_slice(SliceWrite(window, 4), wide, np.full((1, 2, 3, 1), -1, np.float32))
    np.testing.assert_array_equal(written[0, :, :, 0], [[-1, 0, 1], [-1, 4, 5]])


def test_rows_that_a_slice_lacks_keep_what_was_there():
    window = Window(shape=(1, 3, 2, 1), begins=(0, 0, 0, 0), ends=(1, 3, 2, 1))
    written = written_slice(SliceWrite(window, 2), image(1, 1, 4, 1), np.full((1, 3, 2, 1), -1, np.float32))
    np.testing.assert_array_equal(written[0, :, :, 0], [[0, 1], [2, 3], [-1, -1]])


def test_what_no_slice_has_written_is_nan():
    window = Window(shape=(1, 2, 1, 1), begins=(0, 1, 0, 0), ends=(1, 2, 1, 1))
    written = written_slice(SliceWrite(window, 1), np.full((1, 1, 1, 1), 5, np.float32), None)
    assert np.isnan(written[0, 0, 0, 0])
    assert written[0, 1, 0, 0] == 5
