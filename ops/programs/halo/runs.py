"""Transfers of a halo, listed run by run: the fast twin of `ops.programs.halo.transfers`.

That module looks at every stick of the frame; this one knows where runs of data lie, and touches each run once. Frames
that replicate, cut inputs off or have runs of several lengths are left to the slow truth.
"""

from typing import NamedTuple

import numpy as np

from device.numbers.integers import Integers
from ops.frame.frame import Frame, data_breaks
from ops.programs.halo.transfers import StickRanges, Transfers, list_transfers, ordinals


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


def run_transfers(frame: Frame, ranges: StickRanges, *, input_rows: int) -> Transfers:
    """What `list_transfers` lists, in the same order.

    Args:
        ranges: What every core needs.
        input_rows: Sticks of an input shard.
    """
    data = _data_runs(frame)
    if data is None:
        return list_transfers(frame, ranges, input_rows=input_rows)
    return _transfers(data, _pieces(data, ranges), ranges, input_rows)


def run_length(frame: Frame) -> int | None:
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


def _data_runs(frame: Frame) -> Runs | None:
    """All runs of neighboring data sticks; None where they are left to the slow truth."""
    length = run_length(frame)
    if length is None:
        return None
    rows, columns = frame.rows, frame.columns
    images = np.arange(frame.batch, dtype=np.int64) * rows.length
    lines = images[:, None] + rows.before + np.arange(rows.input_length, dtype=np.int64) * rows.insertion
    begin = (lines * columns.length + columns.before).ravel()
    if length < columns.input_length:
        begin = (begin[:, None] + np.arange(columns.input_length, dtype=np.int64) * columns.insertion).ravel()
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
