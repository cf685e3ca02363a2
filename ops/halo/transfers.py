"""Who sends which sticks to whom, and what is left to fill with the padding value.

Every core pushes sticks of its input shard into the output shards of the cores that need them (its own among them). A transfer is
a run of sticks that lie next to each other at both ends.
"""

from dataclasses import dataclass

import numpy as np

from ops.halo.frame import Frame, Integers, count_breaks, data_breaks, data_sticks
from ops.halo.ranges import StickRanges


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers as columns of a table, by destination core and, in each, by destination stick.

    Attributes:
        source_core: [transfers] core whose input shard is read.
        source_stick: First stick in that shard.
        destination_core: Core whose output shard is written.
        destination_stick: First stick in that shard.
        length: Sticks.
    """

    source_core: Integers
    source_stick: Integers
    destination_core: Integers
    destination_stick: Integers
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
    """Pairs of cores between which sticks travel, by destination and then by source.

    Attributes:
        source_core: [pairs] core that sends.
        destination_core: Core that receives.
        transfers: Transfers between the two.
    """

    source_core: Integers
    destination_core: Integers
    transfers: Integers


@dataclass(frozen=True, slots=True)
class Padding:
    """Runs of padding sticks, by core and, in each, by stick.

    Attributes:
        core: [runs] core whose output shard is filled.
        stick: First stick.
        length: Sticks.
    """

    core: Integers
    stick: Integers
    length: Integers


def ordinals(counts: Integers) -> Integers:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, and so on."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0, dtype=np.int64) - np.repeat(ends - counts, counts)


def count_transfers(frame: Frame, ranges: StickRanges, *, input_rows: int) -> PairCounts:
    """Transfers between every two cores, counted without listing them.

    Args:
        frame: The frame.
        ranges: What every core needs.
        input_rows: Sticks of an input shard.
    """
    first, last = ranges.first_data, ranges.stop_data
    first_source = first // input_rows
    sources = np.where(last > first, (last - 1) // input_rows - first_source + 1, 0)
    destination = np.repeat(np.arange(len(sources), dtype=np.int64), sources)
    source = first_source[destination] + ordinals(sources)
    begin = np.maximum(first[destination], source * input_rows)
    end = np.minimum(last[destination], (source + 1) * input_rows)
    breaks = count_breaks(frame, np.concatenate([begin, end - 1]), also_every=input_rows)
    return PairCounts(
        source_core=source, destination_core=destination, transfers=breaks[len(begin) :] - breaks[: len(begin)] + 1
    )


def list_transfers(frame: Frame, ranges: StickRanges, *, input_rows: int, block_rows: int = 0) -> Transfers:
    """All transfers.

    Args:
        frame: The frame.
        ranges: What every core needs.
        input_rows: Sticks of an input shard.
        block_rows: If positive, no transfer crosses a multiple of so many sticks of its source shard.
    """
    cuts = _cuts(frame, input_rows=input_rows, block_rows=block_rows)
    first, last = ranges.first_data, ranges.stop_data
    low = np.searchsorted(cuts, first, side="right")
    runs = np.where(last > first, np.searchsorted(cuts, last, side="left") - low + 1, 0)
    core = np.repeat(np.arange(len(runs), dtype=np.int64), runs)
    place = low[core] + ordinals(runs)
    begin = np.maximum(cuts[place - 1], first[core])
    end = np.minimum(cuts[place], last[core])
    source = begin // input_rows
    return Transfers(
        source_core=source,
        source_stick=begin - source * input_rows,
        destination_core=core,
        destination_stick=data_sticks(frame, begin) - ranges.starts[core],
        length=end - begin,
    )


def _cuts(frame: Frame, *, input_rows: int, block_rows: int) -> Integers:
    """Data numbers at which a transfer begins, 0 first, and the end of the data."""
    data_rows, data_columns = frame.data_shape
    row, image, total = data_columns, data_rows * data_columns, frame.data
    if not total:
        return np.zeros(1, dtype=np.int64)
    shards = -(-total // input_rows)
    begins = np.zeros(shards * input_rows, dtype=np.bool_)
    breaks = data_breaks(frame)
    begins[:] = breaks.in_row
    begins[::row] = breaks.at_row_end
    begins[::image] = breaks.at_image_end
    by_shard = begins.reshape(shards, input_rows)
    by_shard[:, :: block_rows or input_rows] = True
    return np.append(np.flatnonzero(begins[:total]), total)


def count_padding(frame: Frame, ranges: StickRanges) -> Integers:
    """[cores] runs of padding sticks in the range of every core."""
    cores = len(ranges.starts)
    breaks = count_breaks(frame, np.concatenate([ranges.first_data, ranges.last_stick_data]))
    inside = breaks[cores:] - breaks[:cores]
    return inside + ranges.begins_with_padding


def list_padding(frame: Frame, ranges: StickRanges) -> Padding:
    """All runs of padding sticks."""
    cuts = _cuts(frame, input_rows=max(frame.data, 1), block_rows=0)
    if frame.data:
        runs_start, runs_stop = data_sticks(frame, cuts[:-1]), data_sticks(frame, cuts[1:] - 1) + 1
    else:
        runs_start = runs_stop = np.zeros(0, dtype=np.int64)
    gap_start = np.concatenate([[0], runs_stop])
    gap_stop = np.concatenate([runs_start, [frame.sticks]])
    full = gap_stop > gap_start
    gap_start, gap_stop = gap_start[full], gap_stop[full]
    low = np.searchsorted(gap_stop, ranges.starts, side="right")
    high = np.searchsorted(gap_start, ranges.stops, side="left")
    counts = np.maximum(high - low, 0)
    core = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    gap = low[core] + ordinals(counts)
    begin = np.maximum(gap_start[gap], ranges.starts[core])
    end = np.minimum(gap_stop[gap], ranges.stops[core])
    return Padding(core=core, stick=begin - ranges.starts[core], length=end - begin)
