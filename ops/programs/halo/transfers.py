"""Which sticks each core needs, who sends them, and what is left to fill with the padding value.

Every core pushes sticks of its input shard into the output shards of the cores that need them (its own among them). A
transfer is a run of sticks that lie next to each other at both ends.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from device.numbers.formats import Integers, div_up
from ops.window import PaddedInput, count_breaks, data_before, data_breaks, frame_sources, window_starts


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
    """The ranges from ``starts`` to ``stops`` (not included), [cores] each, of which neither ever falls."""
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

    def take(self, order: Integers) -> "Transfers":
        """The transfers of these numbers, in this order."""
        return Transfers(
            source_core=self.source_core[order],
            source_stick=self.source_stick[order],
            destination_core=self.destination_core[order],
            destination_stick=self.destination_stick[order],
            length=self.length[order],
        )


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Pairs of cores between which sticks travel, by destination and then by source."""

    source_core: Integers  # [pairs] core that sends
    source_block: Integers  # Block of its shard that it sends from; a pair of cores is listed for each of them
    destination_core: Integers
    transfers: Integers  # Transfers between the two
    sticks: Integers


@dataclass(frozen=True, slots=True)
class Padding:
    """Runs of padding sticks, by core and, in each, by stick."""

    core: Integers  # [runs] core whose output shard is filled
    stick: Integers
    length: Integers


def ordinals(counts: Integers) -> Integers:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    ends = counts.cumsum()
    return np.arange(ends[-1] if len(ends) else 0, dtype=np.int64) - (ends - counts).repeat(counts)


def count_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> PairCounts:
    """Transfers between every two cores, counted without listing them.

    Args:
        frame: The frame; it does not replicate.
        block_rows: If positive, no transfer crosses a multiple of so many sticks of its source shard.
    """
    block_rows = block_rows or input_rows
    shard_blocks = div_up(input_rows, block_rows)
    first, last = ranges.first_data, ranges.stop_data
    ends = np.array([first, last - 1])
    numbers = ends // input_rows
    if shard_blocks > 1:
        numbers = numbers * shard_blocks + ends % input_rows // block_rows
    first_block, last_block = numbers
    blocks = (last_block - first_block + 1) * (last > first)
    destination = np.arange(len(blocks), dtype=np.int64).repeat(blocks)
    source, block = first_block[destination] + ordinals(blocks), np.zeros_like(destination)
    if shard_blocks > 1:
        source, block = np.divmod(source, shard_blocks)
    block_begin = source * input_rows
    block_end = block_begin + input_rows
    if shard_blocks > 1:
        block_begin += block * block_rows
        block_end = np.minimum(block_begin + block_rows, block_end)
    begin, end = np.maximum(first[destination], block_begin), np.minimum(last[destination], block_end)
    breaks = count_breaks(frame, np.array([begin, end - 1]))
    return PairCounts(
        source_core=source,
        source_block=block,
        destination_core=destination,
        transfers=breaks[1] - breaks[0] + 1,
        sticks=end - begin,
    )


def count_padding(frame: PaddedInput, ranges: StickRanges) -> Integers:
    """[cores] runs of padding sticks in the range of every core, counted without listing them."""
    cores = len(ranges.starts)
    breaks = count_breaks(frame, np.concatenate([ranges.first_data, ranges.last_stick_data]))
    return breaks[cores:] - breaks[:cores] + ranges.begins_with_padding


def list_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> Transfers:
    """All transfers.

    Args:
        block_rows: If positive, no transfer crosses a multiple of so many sticks of its source shard.
    """
    sources = frame_sources(frame, 0, frame.sticks)
    follows = (sources[1:] == sources[:-1] + 1) & (sources[1:] % input_rows % (block_rows or input_rows) != 0)
    core, begin, end = _runs_of_cores(~follows, sources >= 0, ranges)
    source_core, source_stick = np.divmod(sources[begin], input_rows)
    return Transfers(
        source_core=source_core,
        source_stick=source_stick,
        destination_core=core,
        destination_stick=begin - ranges.starts[core],
        length=end - begin,
    )


def list_padding(frame: PaddedInput, ranges: StickRanges) -> Padding:
    """All runs of padding sticks."""
    padding = frame_sources(frame, 0, frame.sticks) < 0
    core, begin, end = _runs_of_cores(padding[1:] != padding[:-1], padding, ranges)
    return Padding(core=core, stick=begin - ranges.starts[core], length=end - begin)


def _runs_of_cores(
    cuts: NDArray[np.bool_], wanted: NDArray[np.bool_], ranges: StickRanges
) -> tuple[Integers, Integers, Integers]:
    """Core, first stick and last stick + 1 of every run of wanted sticks that a core needs.

    Args:
        cuts: [sticks - 1] whether a run ends between a stick and the next.
    """
    begin = np.concatenate([[0], np.flatnonzero(cuts) + 1])
    end = np.append(begin[1:], len(wanted))
    kept = wanted[begin]
    begin, end = begin[kept], end[kept]
    low = np.searchsorted(end, ranges.starts, side="right")
    runs = np.maximum(np.searchsorted(begin, ranges.stops, side="left") - low, 0)
    core = np.repeat(np.arange(len(runs), dtype=np.int64), runs)
    run = low[core] + ordinals(runs)
    return core, np.maximum(begin[run], ranges.starts[core]), np.minimum(end[run], ranges.stops[core])


class Runs(NamedTuple):
    """Runs of sticks of the frame: first stick, last stick + 1."""

    begin: Integers
    end: Integers


class _Pieces(NamedTuple):
    """Parts of runs that cores need: core, number of the run, first stick, last stick + 1."""

    core: Integers
    run: Integers
    begin: Integers
    end: Integers


def run_transfers(frame: PaddedInput, ranges: StickRanges, *, input_rows: int) -> Transfers:
    """What `list_transfers` lists, in the same order."""
    data = _data_runs(frame)
    if data is None:
        return list_transfers(frame, ranges, input_rows=input_rows)
    return _transfers(data, _pieces(data, ranges), ranges, input_rows)


def run_length(frame: PaddedInput) -> int | None:
    """Data sticks of each run of neighboring ones; None where they are left to the slow truth."""
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


def _data_runs(frame: PaddedInput) -> Runs | None:
    """All runs of neighboring data sticks; None where they are left to the slow truth."""
    length = run_length(frame)
    if length is None:
        return None
    rows, columns = frame.rows, frame.columns
    images = np.arange(frame.batch, dtype=np.int64) * rows.length
    lines = images[:, None] + rows.before + np.arange(rows.input_length, dtype=np.int64) * rows.input_dilation
    begin = (lines * columns.length + columns.before).ravel()
    if length < columns.input_length:
        begin = (begin[:, None] + np.arange(columns.input_length, dtype=np.int64) * columns.input_dilation).ravel()
    else:
        begin = begin[:: length // columns.input_length]
    return Runs(begin, begin + length)


def _pieces(runs: Runs, ranges: StickRanges) -> _Pieces:
    """The parts of runs that lie in each core's range."""
    low = np.searchsorted(runs.end, ranges.starts, side="right")
    count = np.maximum(np.searchsorted(runs.begin, ranges.stops, side="left") - low, 0)
    core = np.repeat(np.arange(len(count), dtype=np.int64), count)
    run = low[core] + ordinals(count)
    begin = np.maximum(runs.begin[run], ranges.starts[core])
    return _Pieces(core, run, begin, np.minimum(runs.end[run], ranges.stops[core]))


def _transfers(data: Runs, needed: _Pieces, ranges: StickRanges, input_rows: int) -> Transfers:
    """Pieces of data runs, cut where a source shard ends."""
    length = int(data.end[0] - data.begin[0])
    if length == 1:
        source_core, source_stick = np.divmod(needed.run, input_rows)
        return Transfers(
            source_core=source_core,
            source_stick=source_stick,
            destination_core=needed.core,
            destination_stick=needed.begin - ranges.starts[needed.core],
            length=np.ones_like(needed.run),
        )
    first = needed.run * length + needed.begin - data.begin[needed.run]
    last = first + (needed.end - needed.begin) - 1
    count = last // input_rows - first // input_rows + 1
    piece = np.repeat(np.arange(len(count), dtype=np.int64), count)
    source_core = first[piece] // input_rows + ordinals(count)
    begin = np.maximum(first[piece], source_core * input_rows)
    end = np.minimum(last[piece] + 1, (source_core + 1) * input_rows)
    core = needed.core[piece]
    return Transfers(
        source_core=source_core,
        source_stick=begin - source_core * input_rows,
        destination_core=core,
        destination_stick=needed.begin[piece] + begin - first[piece] - ranges.starts[core],
        length=end - begin,
    )
