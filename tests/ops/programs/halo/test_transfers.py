"""What each core needs of the frame, who sends it, and how long the lists are that say so: against every stick."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.programs.halo.plan import CoreOrder, config_words
from ops.programs.halo.transfers import (
    PaddingRuns,
    count_padding,
    count_transfers,
    list_transfers,
    most_sticks,
    padding_runs,
    stick_ranges,
)
from ops.window import PaddedInput, convolution_axis, data_sticks, frame_sources, transposed_axis
from tests.ops.window.drawn_frames import frames

BLOCK = 32  # sticks of a source that one processor sends before the other one's turn


def copies(sticks):
    return sticks // 4 + sticks % 4


@st.composite
def halos(draw, *, replicates=True):
    """A frame, sticks of an input shard, and what each core needs."""
    frame, input_rows = draw(frames(replicates=replicates)), draw(st.integers(1, 80))
    cores = max(-(-frame.data // input_rows), draw(st.integers(1, 20)))
    return frame, input_rows, stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)


def transfers_by_stick(frame, ranges, input_rows, block_rows):
    """(source core, source stick, destination core, destination stick, length) of every transfer."""
    sources, result = frame_sources(frame, 0, frame.sticks).tolist(), []
    for core, (start, stop) in enumerate(zip(ranges.starts.tolist(), ranges.stops.tolist(), strict=True)):
        before = -2
        for stick in range(start, stop):
            here = sources[stick]
            if here >= 0 and here == before + 1 and here % input_rows % block_rows:
                result[-1][-1] += 1
            elif here >= 0:
                result.append([*divmod(here, input_rows), core, stick - start, 1])
            before = here if here >= 0 else -2
    return result


def padding_by_stick(frame, ranges):
    """For each core (first stick, length) of its runs of padding."""
    padding = (frame_sources(frame, 0, frame.sticks) < 0).tolist()
    for start, stop in zip(ranges.starts.tolist(), ranges.stops.tolist(), strict=True):
        groups = [(key, list(own)) for key, own in groupby(range(start, stop), lambda stick: padding[stick])]
        yield [(own[0] - start, len(own)) for key, own in groups if key]


def gather_words(transfers, order, cores, *, tiled):
    """Words of both gather lists, as the real library deals transfers."""
    words = [[1] * cores, [1] * cores]
    for core in range(cores):
        own = [transfer for transfer in transfers if transfer[0] == core]
        if tiled:
            own.sort(key=lambda one: (one[1], order.x[one[2]], order.y[one[2]]))
            turns = [one[1] // BLOCK % 2 for one in own]
        else:
            own.sort(key=lambda one: (one[2] != core, one[2]))
            turns = [number % 2 for number in range(len(own))]
        for processor in (0, 1):
            receivers = [one[2] for one, turn in zip(own, turns, strict=True) if turn == processor]
            words[processor][core] += 3 * len(receivers) + 3 * len(list(groupby(receivers)))
    return tuple(-(-max(of_all) // 2) * 2 for of_all in words)


@given(halos(), st.booleans(), st.data())
def test_lists(halo, tiled, data):
    frame, input_rows, ranges = halo
    cores, block_rows = len(ranges.starts), BLOCK if tiled else 0
    wanted = transfers_by_stick(frame, ranges, input_rows, block_rows or input_rows)
    listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    names = ("source_core", "source_stick", "destination_core", "destination_stick", "length")
    assert np.array([getattr(listed, name) for name in names]).T.tolist() == wanted
    y, x = np.divmod(np.arange(cores), data.draw(st.integers(1, cores)))
    order, most = CoreOrder(x, y), max(map(len, padding_by_stick(frame, ranges)))
    assert config_words(frame, ranges, order, input_rows=input_rows, tiled=tiled) == (
        most // 2 * 2 + 2, (most - most // 2) * 2 + 2, *gather_words(wanted, order, cores, tiled=tiled))  # fmt: skip


@given(halos(replicates=False), st.sampled_from([0, 3, 8]))
def test_what_is_counted_without_a_list(halo, block_rows):
    frame, input_rows, ranges = halo
    found = {}
    for source, stick, destination, _, length in transfers_by_stick(
        frame, ranges, input_rows, block_rows or input_rows
    ):
        transfers, sticks = found.get((source, stick // (block_rows or input_rows), destination), (0, 0))
        found[source, stick // (block_rows or input_rows), destination] = transfers + 1, sticks + length
    counted = count_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    table = (counted.source_core, counted.source_block, counted.destination_core, counted.transfers, counted.sticks)
    assert {tuple(row[:3]): tuple(row[3:]) for row in np.array(table).T.tolist()} == found
    assert len(counted.source_core) == len(found)
    assert count_padding(frame, ranges).tolist() == list(map(len, padding_by_stick(frame, ranges)))


@given(halos())
def test_runs_of_padding(halo):
    frame, _, ranges = halo
    runs = padding_runs(frame)
    low, high = runs.within(ranges)
    for core, wanted in enumerate(padding_by_stick(frame, ranges)):
        own, start = np.arange(low[core], high[core]), ranges.starts[core]
        begin, end = np.maximum(runs.begins(own), start), np.minimum(runs.ends(own), ranges.stops[core])
        assert list(zip((begin - start).tolist(), (end - begin).tolist(), strict=True)) == wanted
    numbers = np.arange(frame.data // runs.span + 1 if isinstance(runs, PaddingRuns) else len(runs.begin))
    lengths = runs.ends(numbers) - runs.begins(numbers)
    assert lengths.sum() == (frame_sources(frame, 0, frame.sticks) < 0).sum() or frame.replicate
    for below, each in zip(runs.below(np.arange(len(numbers) + 1), copies), (lengths, copies(lengths)), strict=True):
        assert below.tolist() == [0, *np.cumsum(each).tolist()]


def test_runs_of_padding_by_hand():
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


@pytest.mark.parametrize(
    ("size", "kernel", "padding", "output_rows", "starts", "stops"),
    [
        (8, 3, 1, 32, [0, 40], [60, 100]),  # frame 10x10; 32 outputs end at stick 37, a window reaches 22 further
        (2, 1, 0, 4, [0, 3], [4, 4]),  # a core without outputs repeats the last window
    ],
)
def test_ranges_by_hand(size, kernel, padding, output_rows, starts, stops):
    axis = convolution_axis(input_length=size, kernel=kernel, stride=1, padding=(padding, padding), dilation=1)
    ranges = stick_ranges(PaddedInput(batch=1, rows=axis, columns=axis), output_rows=output_rows, cores=2)
    assert (ranges.starts.tolist(), ranges.stops.tolist(), ranges.max_sticks) == (starts, stops, stops[0])


def test_cores_beside_a_single_output_need_nothing():
    """A 6x2 window with padding (3, 1) on one pixel: a frame of 7x3, of which the only window reads 17 sticks."""
    rows, columns = (
        convolution_axis(input_length=1, kernel=kernel, stride=3, padding=(pad, pad), dilation=1)
        for kernel, pad in ((6, 3), (2, 1))
    )
    ranges = stick_ranges(PaddedInput(batch=1, rows=rows, columns=columns), output_rows=64, cores=3)
    assert (ranges.starts.tolist(), ranges.stops.tolist()) == ([0, 21, 21], [17, 21, 21])


@given(frames(), st.integers(1, 200), st.integers(1, 20))
def test_most_sticks_is_the_height_of_the_largest_range(frame, output_rows, cores):
    ranges = stick_ranges(frame, output_rows=output_rows, cores=cores)
    assert most_sticks(frame, output_rows=output_rows, cores=cores) == ranges.max_sticks
    assert ((ranges.first_data <= ranges.last_stick_data) & (ranges.last_stick_data <= ranges.stop_data)).all()
