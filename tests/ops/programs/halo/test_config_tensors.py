"""The config tensors of a halo: replaying them builds the frame, and their sizes are counted right."""

import numpy as np
from hypothesis import given, strategies as st

from ops.programs.halo.config_tensors import CoreOrder, config_tensors, config_words
from ops.programs.halo.transfers import stick_ranges
from ops.window import PaddedInput, frame_sources, transposed_axis

small = st.integers(0, 3)
positive = st.integers(1, 3)
NOTHING, PADDING = -2, -1


@st.composite
def axes(draw):
    kernel, dilation = draw(positive), draw(st.integers(1, 2))
    padding = st.integers(0, dilation * (kernel - 1))
    return transposed_axis(
        input_length=draw(st.integers(1, 12)),
        kernel=kernel,
        stride=draw(positive),
        padding=(draw(padding), 0),
        output_padding=draw(small),
        dilation=dilation,
    )


@st.composite
def halos(draw):
    """A frame, what every core needs, sticks of an input shard, and the cores."""
    frame = PaddedInput(batch=draw(positive), rows=draw(axes()), columns=draw(axes()), replicate=draw(st.booleans()))
    input_rows = draw(st.integers(1, 80))
    cores = max(-(-frame.data // input_rows), draw(st.integers(1, 20)))
    ranges = stick_ranges(frame, output_rows=-(-frame.outputs // cores), cores=cores)
    y, x = np.divmod(np.arange(cores), draw(st.integers(1, cores)))
    return frame, ranges, input_rows, CoreOrder(x, y)


def replay(made, order, shape, input_rows):
    """What every stick of every output shard holds: an input stick's number, PADDING or NOTHING."""
    shards = np.full(shape, NOTHING)

    def write(core, begin, values):
        assert np.all(shards[core, begin : begin + len(values)] == NOTHING), "a stick is written twice"
        shards[core, begin : begin + len(values)] = values

    for words in made.padding:
        for core, pairs in enumerate(words.astype(int).reshape(len(words), -1, 2)):
            assert not pairs[-1].any(), "the list has no end"
            for begin, length in pairs:
                write(core, begin, np.full(length, PADDING))
    places = {place: core for core, place in enumerate(zip(order.x.tolist(), order.y.tolist(), strict=True))}
    for words in made.gather:
        for core, row in enumerate(words.astype(int)):
            routes, at = row[0], 1
            for _ in range(routes):
                (x, y, transfers), at = row[at : at + 3], at + 3
                for source, destination, length in row[at : at + 3 * transfers].reshape(-1, 3):
                    sticks = core * input_rows + np.arange(source, source + length)
                    write(places[x, y], destination, sticks)
                at += 3 * transfers
    return shards


@given(halos(), st.booleans())
def test_replay_builds_the_frame_once(halo, tiled):
    frame, ranges, input_rows, order = halo
    made = config_tensors(frame, ranges, order, input_rows=input_rows, tiled=tiled)
    shards = replay(made, order, (len(ranges.starts), ranges.max_sticks), input_rows)
    for shard, start, stop in zip(shards, ranges.starts, ranges.stops, strict=True):
        assert np.array_equal(shard[: stop - start], frame_sources(frame, start, stop))
        assert np.all(shard[stop - start :] == NOTHING)


@given(halos(), st.booleans())
def test_sizes_are_counted_without_lists(halo, tiled):
    frame, ranges, input_rows, order = halo
    made = config_tensors(frame, ranges, order, input_rows=input_rows, tiled=tiled)
    words = config_words(frame, ranges, order, input_rows=input_rows, tiled=tiled)
    assert words.padding == tuple(one.shape[1] for one in made.padding)
    assert words.gather == tuple(one.shape[1] for one in made.gather)


def test_ranges_are_those_of_the_reference():
    """8x8 image, kernel 3, padding 1: frame 10x10; 32 outputs end at stick 37, and a window reaches 22 further."""
    axis = transposed_axis(input_length=8, kernel=3, stride=1, padding=(1, 1), output_padding=0, dilation=1)
    ranges = stick_ranges(PaddedInput(batch=1, rows=axis, columns=axis), output_rows=32, cores=2)
    assert (ranges.starts.tolist(), ranges.stops.tolist(), ranges.max_sticks) == ([0, 40], [60, 100], 60)


def test_core_without_outputs_repeats_the_last_window():
    axis = transposed_axis(input_length=2, kernel=1, stride=1, padding=(0, 0), output_padding=0, dilation=1)
    ranges = stick_ranges(PaddedInput(batch=1, rows=axis, columns=axis), output_rows=4, cores=2)
    assert (ranges.starts.tolist(), ranges.stops.tolist()) == ([0, 3], [4, 4])
