"""Runs of padding in closed form are those that looking at every stick finds."""

import numpy as np
from hypothesis import given, strategies as st

from ops.programs.halo.traffic import ListedPadding, PaddingRuns, padding_runs
from ops.programs.halo.transfers import list_padding, stick_ranges
from ops.window import PaddedInput, data_sticks, frame_sources, transposed_axis
from tests.ops.window.drawn_frames import frames


def copies(sticks):
    return sticks // 4 + sticks % 4


@given(frames(), st.integers(1, 20))
def test_runs_are_those_of_all_sticks(frame, cores):
    ranges = stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
    runs, listed = padding_runs(frame), list_padding(frame, ranges)
    low, high = runs.within(ranges)
    assert np.array_equal(high - low, np.bincount(listed.core, minlength=cores))
    for core in range(cores):
        own = np.arange(low[core], high[core])
        begin = np.maximum(runs.begins(own), ranges.starts[core])
        end = np.minimum(runs.ends(own), ranges.stops[core])
        mine = listed.core == core
        assert np.array_equal(begin - ranges.starts[core], listed.stick[mine])
        assert np.array_equal(end - begin, listed.length[mine])


@given(frames())
def test_all_below_a_number_is_the_sum_of_runs(frame):
    runs = padding_runs(frame)
    count = frame.data // runs.span + 1 if isinstance(runs, PaddingRuns) else len(runs.begin)
    numbers = np.arange(count)
    lengths = runs.ends(numbers) - runs.begins(numbers)
    assert lengths.sum() == (frame_sources(frame, 0, frame.sticks) < 0).sum() or frame.replicate
    found = runs.below(np.arange(count + 1), copies)
    for below, each in zip(found, (lengths, copies(lengths)), strict=True):
        assert below.tolist() == [0, *np.cumsum(each).tolist()]


def test_by_hand():
    """Two rows of two inputs, two apart, and a zero around: 5x5 sticks with data at 6, 8, 16 and 18."""
    axis = transposed_axis(input_length=2, kernel=2, stride=2, padding=(0, 0), output_padding=0, dilation=1)
    frame = PaddedInput(batch=1, rows=axis, columns=axis)
    assert data_sticks(frame, np.arange(4)).tolist() == [6, 8, 16, 18]
    runs = padding_runs(frame)
    assert isinstance(runs, PaddingRuns)
    assert runs.begins(np.arange(5)).tolist() == [0, 7, 9, 17, 19]
    assert runs.ends(np.arange(5)).tolist() == [6, 8, 16, 18, 25]
    sticks, filled = runs.below(np.arange(6), copies).tolist()
    assert sticks == [0, 6, 7, 14, 15, 21]
    assert filled == [0, 3, 4, 8, 9, 12]  # four sticks at a time, then one by one
    assert isinstance(padding_runs(PaddedInput(batch=1, rows=axis, columns=axis, replicate=True)), ListedPadding)
