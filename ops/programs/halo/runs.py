"""Transfers and padding of a halo, listed run by run: the fast twin of `ops.programs.halo.transfers`.

That module looks at every stick of the frame; this one knows where runs of data lie, and touches each run once. Frames
that replicate, cut inputs off or have runs of several lengths are left to the slow truth.
"""

from typing import NamedTuple

import numpy as np

from device.numbers.integers import Integers
from ops.frame.frame import Breaks, Frame, data_breaks
from ops.programs.halo.transfers import Padding, StickRanges, Transfers, list_padding, list_transfers, ordinals


class _Runs(NamedTuple):
    """Runs of sticks of the frame: first stick, last stick + 1."""

    begin: Integers
    end: Integers


class _Pieces(NamedTuple):
    """Parts of runs that cores need: core, number of the run, first stick, last stick + 1."""

    core: Integers
    run: Integers
    begin: Integers
    end: Integers


def transfers_and_padding(
    frame: Frame, ranges: StickRanges, *, input_rows: int, block_rows: int = 0
) -> tuple[Transfers, Padding]:
    """What `list_transfers` and `list_padding` list, in the same order.

    Args:
        frame: The frame.
        ranges: What every core needs.
        input_rows: Sticks of an input shard.
        block_rows: If positive, no transfer crosses a multiple of so many sticks of its source shard.
    """
    cuts = any(axis.before < 0 or axis.after < 0 for axis in (frame.rows, frame.columns))
    breaks = data_breaks(frame)
    # Inputs apart within a row, but not from row to row (a kernel of one column, say), or likewise rows and images.
    uneven_rows = breaks.in_row and not breaks.at_row_end
    uneven_images = frame.batch > 1 and breaks.at_row_end and not breaks.at_image_end
    if frame.replicate or cuts or uneven_rows or uneven_images:
        return (
            list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows),
            list_padding(frame, ranges),
        )
    data = _data_runs(frame, breaks)
    gaps = _Runs(np.append(0, data.end), np.append(data.begin, frame.sticks))
    filled = np.flatnonzero(gaps.end > gaps.begin)
    padding = _pieces(_Runs(gaps.begin[filled], gaps.end[filled]), ranges)
    return (
        _transfers(data, _pieces(data, ranges), ranges, input_rows, block_rows or input_rows),
        Padding(
            core=padding.core, stick=padding.begin - ranges.starts[padding.core], length=padding.end - padding.begin
        ),
    )


def _data_runs(frame: Frame, breaks: Breaks) -> _Runs:
    """All runs of neighboring data sticks."""
    rows, columns = frame.rows, frame.columns
    images = np.arange(frame.batch, dtype=np.int64) * rows.length
    lines = images[:, None] + rows.before + np.arange(rows.input_length, dtype=np.int64) * rows.insertion
    length = columns.input_length
    begin = lines * columns.length + columns.before
    if breaks.in_row:
        begin = begin[..., None] + np.arange(length, dtype=np.int64) * columns.insertion
        length = 1
    elif not breaks.at_row_end:
        begin, length = begin[:, :1], length * rows.input_length
        if not breaks.at_image_end:
            begin, length = begin[:1], length * frame.batch
    begin = begin.ravel()
    return _Runs(begin, begin + length)


def _pieces(runs: _Runs, ranges: StickRanges) -> _Pieces:
    """The parts of runs that lie in each core's range."""
    low = np.searchsorted(runs.end, ranges.starts, side="right")
    count = np.maximum(np.searchsorted(runs.begin, ranges.stops, side="left") - low, 0)
    core = np.repeat(np.arange(len(count), dtype=np.int64), count)
    run = low[core] + ordinals(count)
    begin = np.maximum(runs.begin[run], ranges.starts[core])
    return _Pieces(core, run, begin, np.minimum(runs.end[run], ranges.stops[core]))


def _transfers(data: _Runs, needed: _Pieces, ranges: StickRanges, input_rows: int, block_rows: int) -> Transfers:
    """Pieces of data runs, cut where a source shard or one of its blocks ends."""
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
    per_shard = -(-input_rows // block_rows)
    first_block = first // input_rows * per_shard + first % input_rows // block_rows
    last_block = last // input_rows * per_shard + last % input_rows // block_rows
    count = last_block - first_block + 1
    piece = np.repeat(np.arange(len(count), dtype=np.int64), count)
    block = first_block[piece] + ordinals(count)
    block_begin = block // per_shard * input_rows + block % per_shard * block_rows
    block_end = np.minimum(block_begin + block_rows, (block // per_shard + 1) * input_rows)
    begin = np.maximum(first[piece], block_begin)
    end = np.minimum(last[piece] + 1, block_end)
    core = needed.core[piece]
    source_core, source_stick = np.divmod(begin, input_rows)
    return Transfers(
        source_core=source_core,
        source_stick=source_stick,
        destination_core=core,
        destination_stick=needed.begin[piece] + begin - first[piece] - ranges.starts[core],
        length=end - begin,
    )
