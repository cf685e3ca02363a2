"""What each core needs of the frame."""

from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from ops.programs.halo.transfers import (
    count_padding,
    count_transfers,
    list_padding,
    list_transfers,
    most_sticks,
    stick_ranges,
)
from ops.window import PaddedInput, convolution_axis, transposed_axis

lengths = st.integers(1, 12)
positive = st.integers(1, 4)


@st.composite
def frames(draw):
    rows, columns = (
        transposed_axis(
            input_length=draw(lengths),
            kernel=draw(positive),
            stride=draw(positive),
            padding=(0, 0),
            output_padding=0,
            dilation=draw(positive),
        )
        for _ in range(2)
    )
    return PaddedInput(batch=draw(positive), rows=rows, columns=columns)


@given(frames(), st.integers(1, 200), st.integers(1, 20))
def test_most_sticks_is_the_height_of_the_largest_range(frame, output_rows, cores):
    ranges = stick_ranges(frame, output_rows=output_rows, cores=cores)
    assert most_sticks(frame, output_rows=output_rows, cores=cores) == ranges.max_sticks


@given(frames(), st.integers(1, 20))
def test_ranges_cover_what_is_read_and_are_counted(frame, cores):
    output_rows = -(-frame.outputs // cores)
    ranges = stick_ranges(frame, output_rows=output_rows, cores=cores)
    assert ranges.starts[0] == 0
    assert ranges.stops.max() == frame.sticks
    assert ((ranges.starts < ranges.stops) | (ranges.starts == frame.sticks)).all()
    assert ranges.stop_data.max() == frame.data
    assert ((ranges.first_data <= ranges.last_stick_data) & (ranges.last_stick_data <= ranges.stop_data)).all()


def test_cores_beside_a_single_output_need_nothing():
    """A 6x2 window with padding (3, 1) on one pixel: a frame of 7x3, of which the only window reads 17 sticks."""
    rows, columns = (
        convolution_axis(input_length=1, kernel=kernel, stride=3, padding=(pad, pad), dilation=1)
        for kernel, pad in ((6, 3), (2, 1))
    )
    frame = PaddedInput(batch=1, rows=rows, columns=columns)
    ranges = stick_ranges(frame, output_rows=64, cores=3)
    assert (ranges.starts.tolist(), ranges.stops.tolist()) == ([0, 21, 21], [17, 21, 21])
    listed = list_transfers(frame, ranges, input_rows=1)
    assert (listed.source_core.tolist(), listed.destination_core.tolist()) == ([0], [0])
    assert np.array_equal(count_padding(frame, ranges), np.bincount(list_padding(frame, ranges).core, minlength=3))


@given(frames(), st.integers(1, 20), st.integers(1, 80), st.sampled_from([0, 3, 8]))
def test_transfers_are_counted_as_they_are_listed(frame, cores, input_rows, block_rows):
    ranges = stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
    listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    transfers, sticks = Counter(), Counter()
    columns = (listed.source_core, listed.source_stick, listed.destination_core, listed.length)
    for source, stick, destination, length in zip(*(column.tolist() for column in columns), strict=True):
        between = source, stick // (block_rows or input_rows), destination
        transfers[between] += 1
        sticks[between] += length
    counted = count_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    columns = (counted.source_core, counted.source_block, counted.destination_core)
    between = list(zip(*(column.tolist() for column in columns), strict=True))
    assert dict(zip(between, counted.transfers.tolist(), strict=True)) == transfers
    assert dict(zip(between, counted.sticks.tolist(), strict=True)) == sticks
    assert len(between) == len(transfers)
