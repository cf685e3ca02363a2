"""The closed forms of the frame against a frame that is written out."""

import numpy as np
from hypothesis import given

from ops.window import PaddedAxis, PaddedInput, count_breaks, data_before, frame_sources, window_starts
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
