"""The closed forms of the frame against a frame that is written out."""

import numpy as np
from hypothesis import given

from device.cores import first_cores
from ops.window import (
    PaddedAxis,
    PaddedInput,
    count_breaks,
    data_before,
    frame_sources,
    ranges_text,
    sliding_window_text,
    window_starts,
)
from tests.ops.window.drawn_frames import frames


def data_mask(frame):
    """Whether each stick is data, written out stick by stick."""
    mask = np.zeros((frame.batch, frame.rows.length, frame.columns.length), dtype=bool)
    if frame.rows.before >= 0 and frame.columns.before >= 0:
        rows, columns = (
            np.arange(axis.input_length) * axis.input_dilation + axis.before for axis in (frame.rows, frame.columns)
        )
        inside = np.ix_(rows[rows < frame.rows.length], columns[columns < frame.columns.length])
        for image in mask:
            image[inside] = True
    return mask.ravel()


@given(frames(replicates=False))
def test_sources_number_the_data(frame):
    mask = data_mask(frame)
    assert frame.data == mask.sum()
    assert np.array_equal(frame_sources(frame, 0, frame.sticks), np.where(mask, np.cumsum(mask) - 1, -1))


@given(frames())
def test_data_before_counts(frame):
    counts = np.concatenate([[0], np.cumsum(data_mask(frame))])
    assert np.array_equal(data_before(frame, np.arange(frame.sticks + 1)), counts)


@given(frames())
def test_breaks_lie_where_padding_follows(frame):
    sticks = np.flatnonzero(data_mask(frame))
    followed = np.zeros(len(sticks) + 1, dtype=int)
    followed[1:-1] = np.diff(sticks) > 1
    numbers = np.arange(len(sticks))
    assert np.array_equal(count_breaks(frame, numbers), np.cumsum(followed)[:-1])


@given(frames())
def test_windows_start_where_the_definition_says(frame):
    rows = np.arange(frame.rows.outputs) * frame.rows.stride
    columns = np.arange(frame.columns.outputs) * frame.columns.stride
    images = np.arange(frame.batch) * frame.rows.length
    expected = np.add.outer(np.add.outer(images, rows) * frame.columns.length, columns).ravel()
    assert np.array_equal(window_starts(frame, np.arange(frame.outputs)), expected)
    assert expected[-1] + frame.reach < frame.sticks


def test_replicating_frame_repeats_the_border_and_keeps_inserted_zeros():
    axis = PaddedAxis(input_length=2, before=1, after=1, input_dilation=2, kernel=2)
    frame = PaddedInput(batch=1, rows=axis, columns=axis, replicate=True)
    line = np.array([0, 0, -1, 1, 1])
    second = np.where(line < 0, -1, line + 2)
    gap = np.full(5, -1)
    assert np.array_equal(frame_sources(frame, 0, 25).reshape(5, 5), [line, line, gap, second, second])


CORES = first_cores(10, 8, 8)


def told(axis: PaddedAxis) -> str:
    return sliding_window_text(PaddedInput(batch=2, rows=axis, columns=axis), CORES, nhw_cores=10, channel_cores=1)


def test_inserted_zeros_are_the_stride_of_a_transposed_convolution():
    """Kernel 3, stride 2, padding 1, output padding 1: 3 - 1 - 1 zeros ahead, and one more behind."""
    axis = PaddedAxis(input_length=16, before=1, after=1, input_dilation=2, trailing=1, kernel=3)
    assert told(axis) == (
        "SlidingWindowConfig(batch_size=2, input_hw=(16,16), window_hw=(3,3), stride_hw=(2,2), "
        "padding=((1, 1), (1, 1)), output_padding=(1, 1), dilation_hw=(1,1), num_cores_nhw=10, num_cores_c=1, "
        "core_range_set_={[(x=0,y=0) - (x=7,y=0)], [(x=0,y=1) - (x=1,y=1)]}, is_transpose=true)"
    )


def test_a_frame_without_them_is_that_of_a_convolution():
    text = told(PaddedAxis(input_length=16, before=1, after=0, kernel=3, stride=2, dilation=2))
    assert "stride_hw=(2,2), padding=((1, 0), (1, 0)), output_padding=(0, 0), dilation_hw=(2,2)" in text
    assert text.endswith("is_transpose=false)")


def test_cores_have_named_coordinates():
    assert ranges_text(first_cores(64, 8, 8)) == "{[(x=0,y=0) - (x=7,y=7)]}"
