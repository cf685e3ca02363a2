"""The sticks that each core needs, their senders, and the padding to fill.

Every core pushes sticks of its input shard into the output shards of the cores that need them (including its own). A
transfer is a run of sticks that are contiguous at both ends. Plans count transfers (`count_transfers`); only
cycles, and frames that replicate, need a list of them (`list_transfers`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.numbers.formats import Integers, div_up
from ops.window import (
    PaddedInput,
    count_breaks,
    data_before,
    data_breaks,
    data_sticks,
    frame_sources,
    window_starts,
)

BOUNDS: Final = 16  # that are remembered: the choice of a scheme asks for those that the halo then has


class StickRanges(NamedTuple):
    """The sticks of every core that splits the rows, in core order. An empty range begins after the whole frame."""

    starts: Integers  # [cores] first stick
    stops: Integers  # Last stick + 1
    first_data: Integers  # Data sticks of the frame below ``starts``
    last_stick_data: Integers  # Data sticks below the last stick
    stop_data: Integers  # Data sticks below ``stops``
    begins_with_padding: NDArray[np.bool_]  # Whether the first stick is padding

    @property
    def max_sticks(self) -> int:
        """Sticks of the core with the most of them: the height of every core's shard."""
        return int((self.stops - self.starts).max())


def most_sticks(frame: PaddedInput, *, output_rows: int, cores: int) -> int:
    """`max_sticks` of the `stick_ranges` of these arguments."""
    if cores == 1:  # the first window begins the frame: plain integers do
        return window_starts(frame, min(output_rows, frame.outputs) - 1) + frame.reach + 1
    starts, stops = _bounds(frame, output_rows, cores)
    return int(np.maximum.reduce(stops - starts))


def stick_ranges(frame: PaddedInput, *, output_rows: int, cores: int) -> StickRanges:
    """The sticks between the first and the last that a core's outputs read (docs/reference/planning.md, Halo).

    Columns outside the windows are included, which makes the range contiguous. A core after the last output gets the
    range of the last output again, or nothing if there is only one output, as in the real library.
    """
    return ranges_between(frame, *_bounds(frame, output_rows, cores))


def ranges_between(frame: PaddedInput, starts: Integers, stops: Integers) -> StickRanges:
    """The ranges from ``starts`` to ``stops`` (not included), [cores] each."""
    below = data_before(frame, np.concatenate([starts, starts + 1, stops - 1, stops])).reshape(4, len(starts))
    filled = starts < stops
    return StickRanges(
        starts=starts,
        stops=stops,
        first_data=below[0],
        last_stick_data=np.where(filled, below[2], below[0]),
        stop_data=below[3],
        begins_with_padding=filled & (below[0] == below[1]),
    )


@lru_cache(BOUNDS)
def _bounds(frame: PaddedInput, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First stick, and last stick + 1, of every core; not to be changed."""
    outputs = np.arange(0, cores * output_rows, output_rows) + np.array([[0], [output_rows - 1]])
    first, last = window_starts(frame, np.minimum(outputs, frame.outputs - 1))
    stops = last + (frame.reach + 1)
    if frame.outputs == 1:  # the real library tells an idle core by a window that begins at stick 0
        first[1:] = stops[1:] = frame.sticks
    first.flags.writeable = stops.flags.writeable = False
    return first, stops


def upsampled_bounds(
    frame: PaddedInput, scale: tuple[int, int], *, output_rows: int, cores: int
) -> tuple[Integers, Integers]:
    """First stick, and last stick + 1, of the pixels that bilinear upsampling reads on every core, [cores] each.

    An output reads the windows of ``frame``; the window of a later output may begin at an earlier stick, because
    several rows of outputs read the same rows of pixels. Source: tt-metal 0.81.1, which adds float32 steps.
    """
    rows, columns = (
        _upsampled_places(axis.input_length, factor)
        for axis, factor in zip((frame.rows, frame.columns), scale, strict=True)
    )
    image = np.add.outer(rows * frame.columns.length, columns).ravel()
    pixels = frame.rows.length * frame.columns.length
    places = np.add.outer(np.arange(frame.batch, dtype=np.int64) * pixels, image).ravel()
    begins = np.arange(0, len(places), output_rows)
    first, stops = np.full((2, cores), frame.sticks, dtype=np.int64)
    first[: len(begins)] = np.minimum.reduceat(places, begins)
    stops[: len(begins)] = np.maximum.reduceat(places, begins) + frame.reach + 1
    return first, stops


def _upsampled_places(length: int, factor: int) -> Integers:
    """[length * factor] position in a frame of the first of the two neighbor pixels of each output."""
    half, step = np.float32(0.5), np.float32(1) / np.float32(factor)
    steps = np.full(length * factor, step, np.float32)
    steps[0] = half * step + half
    return np.floor(np.add.accumulate(steps, dtype=np.float32)).astype(np.int64)


class Transfers(NamedTuple):
    """Transfers, or counts of them, as columns of a table: by destination core and, in each, by source."""

    source: Integers  # Core whose input shard is read
    stick: Integers  # First stick in that shard
    destination: Integers  # Core whose output shard is written
    sticks: Integers
    counts: Integers  # Transfers


def ordinals(counts: Integers) -> Integers:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    ends = counts.cumsum()
    return np.arange(ends[-1] if len(ends) else 0, dtype=np.int64) - (ends - counts).repeat(counts)


def changes(values: Integers) -> NDArray[np.bool_]:
    """Whether each value differs from the value before; True for the first."""
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


def _cut(
    first: Integers, stop: Integers, input_rows: int, block_rows: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """Ranges of input sticks, which may be empty, split where a source shard or a block of it ends.

    The result is, for each piece, the number of its range, the core of its shard, its first input stick and its last
    stick + 1.
    """
    blocks, ends = div_up(input_rows, block_rows) if block_rows else 1, np.array([first, stop - 1])
    pieces = ends // input_rows
    if blocks > 1:
        pieces = pieces * blocks + ends % input_rows // block_rows
    counts = (pieces[1] - pieces[0] + 1) * (stop > first)
    number = np.arange(len(counts), dtype=np.int64).repeat(counts)
    core = piece = pieces[0, number] + ordinals(counts)
    begin = piece * input_rows
    end = begin + input_rows
    if blocks > 1:
        core, block = np.divmod(piece, blocks)
        begin = core * input_rows + block * block_rows
        end = np.minimum(begin + block_rows, (core + 1) * input_rows)
    return number, core, np.maximum(first[number], begin), np.minimum(stop[number], end)


def count_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> Transfers:
    """Transfers between every two cores, counted without listing them, in a frame that does not replicate.

    If `block_rows` is positive, no transfer crosses a multiple of this number of sticks of its source shard, and a pair
    of cores is counted for each block.
    """
    destination, core, begin, end = _cut(ranges.first_data, ranges.stop_data, input_rows, block_rows)
    before, last = count_breaks(frame, np.array([begin, end - 1]))
    return Transfers(core, begin - core * input_rows, destination, end - begin, last - before + 1)


def count_padding(frame: PaddedInput, ranges: StickRanges) -> Integers:
    """[cores] runs of padding sticks in the range of every core, counted without listing them."""
    first, last = count_breaks(frame, np.array([ranges.first_data, ranges.last_stick_data]))
    runs: Integers = last - first + ranges.begins_with_padding
    return runs


def list_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> Transfers:
    """All transfers, for any frame; arguments as in `count_transfers`."""
    runs = _data_runs(frame)
    low = np.searchsorted(runs.end, ranges.starts, side="right")
    counts = np.maximum(np.searchsorted(runs.begin, ranges.stops, side="left") - low, 0)
    core = np.arange(len(counts), dtype=np.int64).repeat(counts)
    run = low[core] + ordinals(counts)
    begin = np.maximum(runs.begin[run], ranges.starts[core])
    first = runs.source[run] + begin - runs.begin[run]
    stop = first + np.minimum(runs.end[run], ranges.stops[core]) - begin
    number, source, begin, end = _cut(first, stop, input_rows, block_rows)
    return Transfers(source, begin - source * input_rows, core[number], end - begin, np.ones_like(source))


class _DataRuns(NamedTuple):
    """Runs of sticks of the frame that hold neighboring inputs."""

    begin: Integers  # First stick
    end: Integers  # Last stick + 1
    source: Integers  # The input that the first stick holds


def _data_runs(frame: PaddedInput) -> _DataRuns:
    """All runs of neighboring data sticks: rows of an image, or single sticks between inserted zeros, then joined."""
    if frame.replicate:
        sources = frame_sources(frame, 0, frame.sticks)
        begin, length = np.flatnonzero(sources >= 0), 1
        source = sources[begin]
    else:
        (data_rows, data_columns), rows, columns = frame.data_shape, frame.rows, frame.columns
        length = data_columns if columns.input_dilation == 1 else 1
        row = rows.before + np.arange(data_rows, dtype=np.int64) * rows.input_dilation
        line = np.add.outer(np.arange(frame.batch, dtype=np.int64) * rows.length, row)
        column = columns.before + np.arange(0, data_columns, length or 1, dtype=np.int64) * columns.input_dilation
        begin = np.add.outer(line * columns.length, column).ravel()
        source = np.arange(len(begin), dtype=np.int64) * length
    first = np.ones(len(begin) + 1, np.bool_)  # and one after the last
    first[1:-1] = (begin[1:] != begin[:-1] + length) | (source[1:] != source[:-1] + length)
    return _DataRuns(begin[first[:-1]], begin[first[1:]] + length, source[first[:-1]])


Amounts: TypeAlias = Callable[[Integers], Integers]  # [2, ...] of runs with this number of sticks each


class PaddingRuns(NamedTuple):
    """Runs of neighboring padding sticks; the last is the end of the frame, even if it has no padding."""

    begin: Integers  # [runs] first stick
    end: Integers  # Last stick + 1

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """[cores] the first run in a core's range, and the last run + 1."""
        low = np.searchsorted(self.end, ranges.starts, side="right")
        return low, np.maximum(np.searchsorted(self.begin, ranges.stops, side="left"), low)

    def edges(self, numbers: Integers) -> tuple[Integers, Integers]:
        """The first stick of each run, and the last stick + 1."""
        known = np.minimum(numbers, len(self.begin) - 1)
        return self.begin[known], self.end[known]

    def below(self, numbers: Integers, amounts: Amounts) -> Integers:
        """[2, ...] amounts of all runs below each number."""
        total = np.zeros((2, len(self.begin) + 1), np.int64)
        np.cumsum(amounts(self.end - self.begin), axis=1, out=total[:, 1:])
        return total[:, numbers]


class EvenPaddingRuns(NamedTuple):
    """Padding runs before the data, after every ``span`` data sticks, and after the last; the ends may be empty."""

    frame: PaddedInput
    span: int  # Data sticks between two runs

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """As `PaddingRuns.within`."""
        low = -(-(ranges.first_data + ~ranges.begins_with_padding) // self.span)
        return low, np.maximum(ranges.last_stick_data // self.span + 1, low)

    def edges(self, numbers: Integers) -> tuple[Integers, Integers]:
        """As `PaddingRuns.edges`."""
        frame, data = self.frame, numbers * self.span
        last, first = data_sticks(frame, np.array([data - 1, data]))  # of the data before and after a run
        return np.where(numbers > 0, last + 1, 0), np.where(data < frame.data, first, frame.sticks)

    def below(self, numbers: Integers, amounts: Amounts) -> Integers:
        """As `PaddingRuns.below`: before the data, between data of a row, after rows, after images, at the end."""
        rows, columns, runs = self.frame.rows, self.frame.columns, self.frame.data // self.span
        before = np.minimum(np.maximum(numbers - 1, 0), runs - 1)  # runs between data
        data = before * self.span
        images = data // (columns.input_length * rows.input_length) if self.frame.batch > 1 else np.zeros_like(data)
        lines = data // columns.input_length - images
        inner = before - lines - images
        first = rows.before * columns.length + columns.before
        data_row = (columns.input_length - 1) * columns.input_dilation + 1
        row_end = rows.input_dilation * columns.length - data_row
        image_end = (rows.length - (rows.input_length - 1) * rows.input_dilation) * columns.length - data_row
        lengths = np.array([first, columns.input_dilation - 1, row_end, image_end, image_end - first])
        counts = np.array([numbers > 0, inner, lines, images, numbers > runs])
        below: Integers = (amounts(lengths) @ counts.reshape(len(lengths), -1)).reshape(-1, *numbers.shape)
        return below


def padding_runs(frame: PaddedInput) -> PaddingRuns | EvenPaddingRuns:
    """All runs of contiguous padding sticks between the data, in closed form if the runs are even."""
    rows, columns, (in_row, at_row_end, at_image_end) = frame.rows, frame.columns, data_breaks(frame)
    cuts = any(axis.before < 0 or axis.after < 0 for axis in (rows, columns))
    # Inputs apart within a row, but not from row to row (a kernel of one column, say), or likewise rows and images
    uneven = (in_row and not at_row_end) or (frame.batch > 1 and at_row_end and not at_image_end)
    if not (frame.replicate or cuts or uneven):
        image = columns.input_length * rows.input_length
        whole = image if at_image_end else image * frame.batch
        return EvenPaddingRuns(frame, 1 if in_row else columns.input_length if at_row_end else whole)
    data = _data_runs(frame)
    begin, end = np.append(0, data.end), np.append(data.begin, frame.sticks)
    filled = end > begin
    filled[-1] = True
    return PaddingRuns(begin[filled], end[filled])
