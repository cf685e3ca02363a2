"""What each core needs of the frame, who sends it, and how long the lists are that say so: against every stick."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.programs.halo.plan import reader_indices_refusal
from ops.programs.halo.transfers import most_sticks, padding_runs, stick_ranges
from ops.window import PaddedInput, convolution_axis, frame_sources
from tests.ops.programs.halo.halos import halos
from tests.ops.window.drawn_frames import frames


def amounts(sticks):
    return np.array([sticks, sticks // 4 + sticks % 4])


def padding_by_stick(frame, ranges):
    """For each core (first stick, length) of its runs of padding."""
    padding = (frame_sources(frame, 0, frame.sticks) < 0).tolist()
    for start, stop in zip(ranges.starts.tolist(), ranges.stops.tolist(), strict=True):
        groups = [(key, list(own)) for key, own in groupby(range(start, stop), lambda stick: padding[stick])]
        yield [(own[0] - start, len(own)) for key, own in groups if key]


@given(halos())
def test_runs_of_padding(halo):
    frame, _, ranges = halo
    runs = padding_runs(frame)
    low, high = runs.within(ranges)
    for core, wanted in enumerate(padding_by_stick(frame, ranges)):
        own, start = np.arange(low[core], high[core]), ranges.starts[core]
        begin, end = runs.edges(own)
        begin, end = np.maximum(begin, start), np.minimum(end, ranges.stops[core])
        assert list(zip((begin - start).tolist(), (end - begin).tolist(), strict=True)) == wanted
    numbers = np.arange(int(high.max()))
    begin, end = runs.edges(numbers)
    below = runs.below(np.arange(len(numbers) + 1), amounts)
    assert below.tolist() == [[0, *np.cumsum(each).tolist()] for each in amounts(end - begin)]


@pytest.mark.parametrize(
    ("size", "kernel", "padding", "output_rows", "starts", "stops"),
    [
        (8, 3, 1, 32, [0, 40], [60, 100]),  # frame 10x10; 32 outputs end at stick 37, a window reaches 22 further
        (2, 1, 0, 4, [0, 3], [4, 4]),  # a core without outputs repeats the last window
        (1, 3, 1, 32, [0, 9], [9, 9]),  # beside a single output, a core without outputs needs nothing
    ],
)
def test_ranges_by_hand(size, kernel, padding, output_rows, starts, stops):
    axis = convolution_axis(input_length=size, kernel=kernel, stride=1, padding=(padding, padding), dilation=1)
    ranges = stick_ranges(PaddedInput(batch=1, rows=axis, columns=axis), output_rows=output_rows, cores=2)
    assert (ranges.starts.tolist(), ranges.stops.tolist(), ranges.max_sticks) == (starts, stops, stops[0])


@given(frames(), st.integers(1, 200), st.integers(1, 20))
def test_most_sticks_is_the_height_of_the_largest_range(frame, output_rows, cores):
    ranges = stick_ranges(frame, output_rows=output_rows, cores=cores)
    assert most_sticks(frame, output_rows=output_rows, cores=cores) == ranges.max_sticks
    assert ((ranges.first_data <= ranges.last_stick_data) & (ranges.last_stick_data <= ranges.stop_data)).all()


def test_a_list_longer_than_the_real_library_reserves():
    assert reader_indices_refusal(64, output_rows=20) is None  # rounded up to a tile: 32 rows of 2 bytes
    refused = reader_indices_refusal(68, output_rows=32) or ""
    assert refused.startswith("Reader indices buffer page size 68 exceeds worst-case CB size 64 (")
