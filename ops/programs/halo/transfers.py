"""Which sticks each core needs, who sends them, and what is left to fill with the padding value.

Every core pushes sticks of its input shard into the output shards of the cores that need them (its own among them). A
transfer is a run of sticks that lie next to each other at both ends.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

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


@dataclass(frozen=True, slots=True)
class StickRanges:
    """The sticks of every core that splits the rows, in core order. An empty range lies behind the whole frame."""

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
    starts, stops = _bounds(frame, output_rows=output_rows, cores=cores)
    return int((stops - starts).max())


def stick_ranges(frame: PaddedInput, *, output_rows: int, cores: int) -> StickRanges:
    """The sticks between the first and the last that a core's outputs read (docs/planning.md, Halo).

    Columns outside the windows are included, which makes the range contiguous. A core behind the last output gets the
    range of the last output once more, or nothing where there is one output only, as in the real library.
    """
    return ranges_between(frame, *_bounds(frame, output_rows=output_rows, cores=cores))


def ranges_between(frame: PaddedInput, starts: Integers, stops: Integers) -> StickRanges:
    """The ranges from ``starts`` to ``stops`` (not included), [cores] each, neither of which decreases."""
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


def _bounds(frame: PaddedInput, *, output_rows: int, cores: int) -> tuple[Integers, Integers]:
    """First stick, and last stick + 1, of every core."""
    outputs = np.arange(0, cores * output_rows, output_rows) + np.array([[0], [output_rows - 1]])
    first, last = window_starts(frame, np.minimum(outputs, frame.outputs - 1))
    stops = last + (frame.reach + 1)
    if frame.outputs == 1:  # the real library tells an idle core by a window that begins at stick 0
        first[1:] = stops[1:] = frame.sticks
    return first, stops


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers as columns of a table, by destination core and, in each, by destination stick."""

    source_core: Integers  # [transfers] core whose input shard is read
    source_stick: Integers  # First stick in that shard
    destination_core: Integers  # Core whose output shard is written
    destination_stick: Integers  # First stick in that shard
    length: Integers


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Pairs of cores between which sticks travel, by destination and then by source."""

    source_core: Integers  # [pairs] core that sends
    source_block: Integers  # Block of its shard that it sends from; a pair of cores is listed for each of them
    destination_core: Integers
    transfers: Integers  # Transfers between the two
    sticks: Integers


def ordinals(counts: Integers) -> Integers:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    ends = counts.cumsum()
    return np.arange(ends[-1] if len(ends) else 0, dtype=np.int64) - (ends - counts).repeat(counts)


def changes(values: Integers) -> NDArray[np.bool_]:
    """Whether each value differs from the value before; True for the first."""
    changed = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changed[1:])
    return changed


class _Pieces(NamedTuple):
    """Ranges of input sticks, cut where a source shard or a block of it ends."""

    range: Integers  # [pieces] number of the range that a piece is of
    core: Integers  # Core whose shard it lies in
    block: Integers  # Block of the shard
    begin: Integers  # First input stick
    end: Integers  # Last input stick + 1


def _cut(first: Integers, stop: Integers, input_rows: int, block_rows: int) -> _Pieces:
    """The pieces of ranges from ``first`` to ``stop`` (not included), each of which may be empty."""
    block_rows = block_rows or input_rows
    blocks, ends = div_up(input_rows, block_rows), np.array([first, stop - 1])
    numbers = ends // input_rows
    if blocks > 1:
        numbers = numbers * blocks + ends % input_rows // block_rows
    counts = (numbers[1] - numbers[0] + 1) * (stop > first)
    number = np.arange(len(counts), dtype=np.int64).repeat(counts)
    core, block = numbers[0][number] + ordinals(counts), np.zeros_like(number)
    if blocks > 1:
        core, block = np.divmod(core, blocks)
    begin = core * input_rows
    end = begin + input_rows
    if blocks > 1:
        begin += block * block_rows
        end = np.minimum(begin + block_rows, end)
    return _Pieces(number, core, block, np.maximum(first[number], begin), np.minimum(stop[number], end))


def count_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> PairCounts:
    """Transfers between every two cores, counted without listing them, in a frame that does not replicate.

    If `block_rows` is positive, no transfer crosses a multiple of so many sticks of its source shard.
    """
    cuts = _cut(ranges.first_data, ranges.stop_data, input_rows, block_rows)
    breaks = count_breaks(frame, np.array([cuts.begin, cuts.end - 1]))
    return PairCounts(
        source_core=cuts.core,
        source_block=cuts.block,
        destination_core=cuts.range,
        transfers=breaks[1] - breaks[0] + 1,
        sticks=cuts.end - cuts.begin,
    )


def count_padding(frame: PaddedInput, ranges: StickRanges) -> Integers:
    """[cores] runs of padding sticks in the range of every core, counted without listing them."""
    cores = len(ranges.starts)
    breaks = count_breaks(frame, np.concatenate([ranges.first_data, ranges.last_stick_data]))
    return breaks[cores:] - breaks[:cores] + ranges.begins_with_padding


def list_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> Transfers:
    """All transfers; arguments as of `count_transfers`, but for any frame."""
    runs = _data_runs(frame)
    low = np.searchsorted(runs.end, ranges.starts, side="right")
    counts = np.maximum(np.searchsorted(runs.begin, ranges.stops, side="left") - low, 0)
    core = np.arange(len(counts), dtype=np.int64).repeat(counts)
    run = low[core] + ordinals(counts)
    begin = np.maximum(runs.begin[run], ranges.starts[core])
    first = runs.source[run] + begin - runs.begin[run]
    cuts = _cut(first, first + np.minimum(runs.end[run], ranges.stops[core]) - begin, input_rows, block_rows)
    core, stick = core[cuts.range], (begin - first)[cuts.range] + cuts.begin
    return Transfers(
        source_core=cuts.core,
        source_stick=cuts.begin - cuts.core * input_rows,
        destination_core=core,
        destination_stick=stick - ranges.starts[core],
        length=cuts.end - cuts.begin,
    )


class _DataRuns(NamedTuple):
    """Runs of sticks of the frame that hold neighboring inputs."""

    begin: Integers  # First stick
    end: Integers  # Last stick + 1
    source: Integers  # The input that the first stick holds


def run_length(frame: PaddedInput) -> int | None:
    """Data sticks of each run of neighboring sticks; None where runs differ and must be searched."""
    rows, columns, breaks = frame.rows, frame.columns, data_breaks(frame)
    cuts = any(axis.before < 0 or axis.after < 0 for axis in (rows, columns))
    # Inputs apart within a row, but not from row to row (a kernel of one column, say), or likewise rows and images.
    uneven_rows = breaks.in_row and not breaks.at_row_end
    uneven_images = frame.batch > 1 and breaks.at_row_end and not breaks.at_image_end
    if frame.replicate or cuts or uneven_rows or uneven_images:
        return None
    if breaks.in_row:
        return 1
    if breaks.at_row_end:
        return columns.input_length
    return columns.input_length * rows.input_length * (1 if breaks.at_image_end else frame.batch)


def _data_runs(frame: PaddedInput) -> _DataRuns:
    """All runs of neighboring data sticks, in closed form where the runs are equal."""
    length = run_length(frame)
    if length is None:
        sources = frame_sources(frame, 0, frame.sticks)
        data = sources >= 0
        starts, ends = data.copy(), data.copy()
        starts[1:] &= (sources[1:] != sources[:-1] + 1) | ~data[:-1]
        ends[:-1] &= starts[1:] | ~data[1:]
        begin = np.flatnonzero(starts)
        return _DataRuns(begin, np.flatnonzero(ends) + 1, sources[begin])
    rows, columns = frame.rows, frame.columns
    images = np.arange(frame.batch, dtype=np.int64) * rows.length
    lines = images[:, None] + rows.before + np.arange(rows.input_length, dtype=np.int64) * rows.input_dilation
    begin = (lines * columns.length + columns.before).ravel()
    if length < columns.input_length:
        begin = (begin[:, None] + np.arange(columns.input_length, dtype=np.int64) * columns.input_dilation).ravel()
    else:
        begin = begin[:: length // columns.input_length]
    return _DataRuns(begin, begin + length, np.arange(len(begin), dtype=np.int64) * length)


Copies: TypeAlias = Callable[[Integers], Integers]  # copies that fill runs of so many sticks each


@dataclass(frozen=True, slots=True)
class PaddingRuns:
    """Padding ahead of the data, behind every ``span`` data sticks, and behind the last; the ends may be empty."""

    frame: PaddedInput  # The frame; it neither replicates nor cuts inputs off
    span: int  # Data sticks between two runs

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """[cores] the first run that a core's range reaches, and the last one + 1."""
        low = -(-(ranges.first_data + ~ranges.begins_with_padding) // self.span)
        return low, np.maximum(ranges.last_stick_data // self.span + 1, low)

    def begins(self, numbers: Integers) -> Integers:
        """The first stick of each run."""
        return np.where(numbers > 0, data_sticks(self.frame, numbers * self.span - 1) + 1, 0)

    def ends(self, numbers: Integers) -> Integers:
        """The last stick + 1 of each run."""
        data = numbers * self.span
        return np.where(data < self.frame.data, data_sticks(self.frame, data), self.frame.sticks)

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """[2, ...] sticks of all runs below each number, and copies that fill them."""
        frame, before = self.frame, numbers - 1
        row, runs = frame.columns.input_length, frame.data // self.span
        between = np.minimum(np.maximum(before, 0), runs - 1)
        after_image = between * self.span // (row * frame.rows.input_length)
        after_row = between * self.span // row - after_image
        first, inner, row_end, image_end, last = copies(self._lengths()).tolist()
        filled = first + inner * (between - after_row - after_image) + row_end * after_row + image_end * after_image
        any_below = numbers > 0
        sticks = any_below * (self.ends(before) - before * self.span)
        return np.array([sticks, any_below * filled + last * (numbers > runs)])

    def _lengths(self) -> Integers:
        """Sticks ahead of the data, between data of a row, behind a row, behind an image, and behind the data."""
        rows, columns = self.frame.rows, self.frame.columns
        first = rows.before * columns.length + columns.before
        data_row = (columns.input_length - 1) * columns.input_dilation + 1
        row_end = rows.input_dilation * columns.length - data_row
        image_end = (rows.length - (rows.input_length - 1) * rows.input_dilation) * columns.length - data_row
        return np.array([first, columns.input_dilation - 1, row_end, image_end, image_end - first])


@dataclass(frozen=True, slots=True)
class ListedPadding:
    """Runs of any frame; the last is the end of the frame, even if it has no padding."""

    begin: Integers  # [runs] first stick
    end: Integers  # Last stick + 1

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """As `PaddingRuns.within`."""
        low = np.searchsorted(self.end, ranges.starts, side="right")
        return low, np.maximum(np.searchsorted(self.begin, ranges.stops, side="left"), low)

    def begins(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.begins`."""
        return self.begin[np.minimum(numbers, len(self.begin) - 1)]

    def ends(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.ends`."""
        return self.end[np.minimum(numbers, len(self.end) - 1)]

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """As `PaddingRuns.below`."""
        lengths = self.end - self.begin
        total = np.zeros((2, len(lengths) + 1), np.int64)
        np.cumsum([lengths, copies(lengths)], axis=1, out=total[:, 1:])
        return total[:, numbers]


def padding_runs(frame: PaddedInput) -> PaddingRuns | ListedPadding:
    """All runs of neighboring padding sticks."""
    span = run_length(frame)
    if span is not None:
        return PaddingRuns(frame, span)
    data = np.flatnonzero(frame_sources(frame, 0, frame.sticks) >= 0)
    begin, end = np.append(0, data + 1), np.append(data, frame.sticks)
    filled = end > begin
    filled[-1] = True
    return ListedPadding(begin[filled], end[filled])
