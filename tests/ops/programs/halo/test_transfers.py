"""What each core needs of the frame, who sends it, and how long the lists are that say so: against every stick."""

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT16
from ops.programs.halo.plan import HEIGHT, HaloArguments, config_words, reader_index_words, reader_indices_refusal
from ops.programs.halo.transfers import (
    count_padding,
    count_transfers,
    list_transfers,
    most_sticks,
    padding_runs,
    stick_ranges,
)
from ops.window import PaddedInput, convolution_axis, frame_sources, transposed_axis, window_starts
from tests.ops.window.drawn_frames import axes, frames

BLOCK = 32  # sticks of a source that one processor sends before the other one's turn


def amounts(sticks):
    return np.array([sticks, sticks // 4 + sticks % 4])


@st.composite
def halos(draw, *, replicates=True):
    """A frame, sticks of an input shard, and what each core needs."""
    frame, input_rows = draw(frames(replicates=replicates)), draw(st.integers(1, 80))
    cores = max(-(-frame.data // input_rows), draw(st.integers(1, 20)))
    return frame, input_rows, stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)


def transfers_by_stick(frame, ranges, input_rows, block_rows):
    """(source core, source stick, destination core, length) of every transfer."""
    sources, result = frame_sources(frame, 0, frame.sticks).tolist(), []
    for core, (start, stop) in enumerate(zip(ranges.starts.tolist(), ranges.stops.tolist(), strict=True)):
        before = -2
        for here in sources[start:stop]:
            if here >= 0 and here == before + 1 and here % input_rows % (block_rows or input_rows):
                result[-1][-1] += 1
            elif here >= 0:
                result.append([*divmod(here, input_rows), core, 1])
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
            own.sort(key=lambda transfer: (transfer[1], order.x[transfer[2]], order.y[transfer[2]]))
            turns = [transfer[1] // BLOCK % 2 for transfer in own]
        else:
            own.sort(key=lambda transfer: (transfer[2] != core, transfer[2]))
            turns = [number % 2 for number in range(len(own))]
        for processor in (0, 1):
            receivers = [transfer[2] for transfer, turn in zip(own, turns, strict=True) if turn == processor]
            words[processor][core] += 3 * len(receivers) + 3 * len(list(groupby(receivers)))
    return tuple(-(-max(of_all) // 2) * 2 for of_all in words)


@given(halos(), st.booleans(), st.data())
def test_lists(halo, tiled, data):
    frame, input_rows, ranges = halo
    cores, block_rows = len(ranges.starts), BLOCK if tiled else 0
    wanted = transfers_by_stick(frame, ranges, input_rows, block_rows)
    listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    table = (listed.source, listed.stick, listed.destination, listed.sticks)
    assert np.array(table).T.tolist() == wanted
    arguments = HaloArguments(
        frame=frame, scheme=HEIGHT, orientation=ShardOrientation.ROW_MAJOR,
        cores=first_cores(cores, data.draw(st.integers(1, cores)), 100), nhw_cores=cores, channel_cores=1,
        input_rows=input_rows, output_rows=1, shard_width=32, data_format=BFLOAT16, stick_alignment_bytes=16,
        tiled=tiled,
    )  # fmt: skip
    most = max(map(len, padding_by_stick(frame, ranges)))
    assert config_words(arguments, ranges) == (
        most // 2 * 2 + 2, (most - most // 2) * 2 + 2, *gather_words(wanted, arguments.order, cores, tiled=tiled)
    )  # fmt: skip


@given(halos(replicates=False), st.sampled_from([0, 3, 8]))
def test_what_is_counted_without_a_list(halo, block_rows):
    frame, input_rows, ranges = halo
    wanted = {}
    for source, stick, destination, length in transfers_by_stick(frame, ranges, input_rows, block_rows):
        pair = source, stick // (block_rows or input_rows), destination
        transfers, sticks = wanted.get(pair, (0, 0))
        wanted[pair] = transfers + 1, sticks + length
    counted = count_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    block = counted.stick // (block_rows or input_rows)
    table = (counted.source, block, counted.destination, counted.counts, counted.sticks)
    assert {tuple(row[:3]): tuple(row[3:]) for row in np.array(table).T.tolist()} == wanted
    assert len(counted.source) == len(wanted)
    assert count_padding(frame, ranges).tolist() == list(map(len, padding_by_stick(frame, ranges)))


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


def test_runs_of_padding_by_hand():
    """Two rows of two inputs, two apart, and a zero around: 5x5 sticks with data at 6, 8, 16 and 18."""
    axis = transposed_axis(input_length=2, kernel=2, stride=2, padding=(0, 0), output_padding=0, dilation=1)
    runs = padding_runs(PaddedInput(batch=1, rows=axis, columns=axis))
    assert np.array(runs.edges(np.arange(5))).tolist() == [[0, 7, 9, 17, 19], [6, 8, 16, 18, 25]]
    sticks, filled = runs.below(np.arange(6), amounts).tolist()
    assert sticks == [0, 6, 7, 14, 15, 21]
    assert filled == [0, 3, 4, 8, 9, 12]  # four sticks at a time, then one by one


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


def index_words(frame, outputs, block_rows):
    """Words of the reader indices of a core: a header for each block, a pair for each run of windows a stride apart."""
    result, block = 0, 0
    while outputs:
        rows, outputs = outputs[: block_rows[block % len(block_rows)]], outputs[block_rows[block % len(block_rows)] :]
        starts = [int(window_starts(frame, output)) for output in rows]
        segments = 1 + sum(second - first != frame.columns.stride for first, second in pairwise(starts))
        result, block = result + 2 + 2 * segments, block + 1
    return result


@given(st.integers(1, 3), axes(), axes(), st.integers(1, 6), st.data())
def test_reader_indices_are_as_long_as_the_longest_list(batch, rows, columns, cores, data):
    frame = PaddedInput(batch=batch, rows=rows, columns=columns)
    output_rows = -(-frame.outputs // cores)
    block_rows = tuple(data.draw(st.lists(st.integers(1, output_rows), min_size=1, max_size=2)))
    shares = [range(core * output_rows, min((core + 1) * output_rows, frame.outputs)) for core in range(cores)]
    counted = reader_index_words(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    assert counted == max(index_words(frame, list(share), block_rows) for share in shares)


def test_a_list_longer_than_the_real_library_reserves():
    assert reader_indices_refusal(64, output_rows=20) is None  # rounded up to a tile: 32 rows of 2 bytes
    refused = reader_indices_refusal(68, output_rows=32) or ""
    assert refused.startswith("Reader indices buffer page size 68 exceeds worst-case CB size 64 (")
