"""The readers of activations: how many there are, and the list that tells each where its windows begin.

Words are uint16. For every activation block (for every half of one, with two readers): the number of segments as
uint32, then (first stick, last stick) for each. Sticks are those of the core's halo shard, in which the windows of one
segment lie ``step`` apart. All cores' lists are as long as the longest.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.errors import DeviceError, SpecError
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import DataFormat, Integers, round_up
from device.spec.parts import ReaderRates, TransferRate
from ops.programs.conv2d.parallel_config import BLOCK, WIDTH
from ops.window import PaddedInput, window_starts

Words: TypeAlias = NDArray[np.uint16]

WORD_BYTES = 2
HEADER_WORDS = 2
SEGMENT_WORDS = 2


class UnknownRatesError(DeviceError):
    """No rate of the device tells how long tilizing takes, on which the number of readers depends."""


def reader_index_words(frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]) -> int:
    """Words of the list of one core.

    Args:
        output_rows: Output rows of a core; the last cores may have fewer, or none.
        block_rows: Rows that a reader takes at a time: one number, or two that alternate between two readers.
    """
    begin, end = _blocks(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    breaks = _breaks_before(frame, np.array([begin, end - 1]))
    segments = breaks[1] - breaks[0] + 1
    words = (HEADER_WORDS + SEGMENT_WORDS * segments) * (begin < end)
    return int(words.sum(axis=1).max())


def reader_indices(frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]) -> Words:
    """The lists, [cores, words]; arguments as of `reader_index_words`."""
    begin, end = _blocks(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    core, block = (begin < end).nonzero()
    begin = begin[core, block]
    outputs = np.arange(frame.outputs, dtype=np.int64)
    sticks = window_starts(frame, outputs)
    new_block = np.zeros(frame.outputs, dtype=np.bool_)
    new_block[begin] = True
    new_segment = new_block.copy()
    new_segment[1:] |= np.diff(sticks) != frame.columns.stride
    first = np.flatnonzero(new_segment)
    last = np.append(first[1:], frame.outputs) - 1
    owner = first // output_rows
    opens = new_block[first]
    used = np.where(opens, HEADER_WORDS + SEGMENT_WORDS, SEGMENT_WORDS)
    per_core = np.bincount(owner, weights=used, minlength=cores).astype(np.int64)
    at = np.cumsum(used) - SEGMENT_WORDS - (np.cumsum(per_core) - per_core)[owner]
    words = np.zeros((cores, int(per_core.max())), dtype=np.uint16)
    base = sticks[owner * output_rows]
    words[owner, at] = sticks[first] - base
    words[owner, at + 1] = sticks[last] - base
    heads = np.flatnonzero(opens)
    words[core, at[heads] - HEADER_WORDS] = np.diff(heads, append=len(first))
    return words


def reader_indices_refusal(page_bytes: int, *, output_rows: int) -> str | None:
    """Why the real library has no room for a list, in its words and ours: one index per output row, in whole tiles.

    Args:
        page_bytes: Bytes of the list of one core.
    """
    room = round_up(output_rows, TILE) * WORD_BYTES
    if page_bytes <= room:
        return None
    return (
        f"Reader indices buffer page size {page_bytes} exceeds worst-case CB size {room} "
        "(config tensor layout changed?)\n"
        "shard_layout: every row of the image that a core computes takes 4 bytes, and the real library reserves 2 "
        f"for each of its {output_rows} outputs; use wider images or another shard_layout"
    )


def _blocks(
    frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]
) -> tuple[Integers, Integers]:
    """[cores, blocks] first output, and last output + 1, of every block; no more than the first where it has none."""
    ends = [0]
    while ends[-1] < output_rows:
        ends.append(ends[-1] + block_rows[(len(ends) - 1) % len(block_rows)])
    ends[-1] = output_rows
    bounds = np.arange(0, cores * output_rows, output_rows)[:, None] + np.array(ends)
    return bounds[:, :-1], np.minimum(bounds[:, 1:], frame.outputs)


def _breaks_before(frame: PaddedInput, outputs: Integers) -> Integers:
    """How many outputs, up to each of ``outputs``, do not lie one step behind the output before them."""
    rows, columns = frame.rows, frame.columns
    row, image = columns.outputs, columns.outputs * rows.outputs
    to_row = rows.stride * columns.length - (columns.outputs - 1) * columns.stride
    to_image = to_row + (rows.length - rows.outputs * rows.stride) * columns.length
    # A row that begins an image is one of the latter
    at_rows, at_images = to_row != columns.stride, to_image != columns.stride
    count = outputs // row if at_rows else np.zeros_like(outputs)
    if frame.batch > 1 and at_rows != at_images:
        count += outputs // image * (at_images - at_rows)
    return count


SMALLEST_TRANSFER_BYTES = 16  # the rates grow linearly from here to their peak


def transfer_rate(rate: TransferRate, transfer_bytes: int) -> float:
    """Bytes per nanosecond of transfers of one size: linear between the floor at 16 bytes and the peak."""
    size = min(max(transfer_bytes, SMALLEST_TRANSFER_BYTES), rate.peak_at_bytes)
    slope = (rate.peak_bytes_per_ns - rate.floor_bytes_per_ns) / (rate.peak_at_bytes - SMALLEST_TRANSFER_BYTES)
    return rate.floor_bytes_per_ns + slope * (size - SMALLEST_TRANSFER_BYTES)


def uses_split_reader(
    scheme: TensorMemoryLayout,
    rates: ReaderRates,
    *,
    act_h_tiles: int,
    act_w_tiles: int,
    out_w_tiles: int,
    padded_channels: int,
    kernel_w: int,
    dilation_w: int,
    act_format: DataFormat,
    weight_format: DataFormat,
    out_format: DataFormat,
    fp32_dest: bool,
    forced: bool | None,
) -> bool:
    """Whether both data-movement processors read activations.

    Args:
        act_h_tiles: Height of an activation block; a single tile row cannot be split.
        dilation_w: Dilation along the width; above 1 a window row is not contiguous.
        forced: `force_split_reader` of the config; None lets the rates decide.

    Raises:
        UnknownRatesError: There is no rate for these formats.
    """
    if scheme is WIDTH or act_h_tiles == 1:
        return False
    if scheme is BLOCK:
        return True if forced is None else forced
    try:  # the real library asks for the rates even if they do not decide
        tile_cycles = rates.tilize_cycles(act_format.name, out_format.name, fp32_dest=fp32_dest)
    except SpecError as error:
        raise UnknownRatesError(str(error)) from error
    if forced is not None:
        return forced
    stick_bytes = (act_format.element_bytes or 0) * padded_channels
    act_bytes = stick_bytes * act_h_tiles * TILE * kernel_w
    burst_bytes = stick_bytes * (kernel_w if dilation_w == 1 else 1)
    act_cycles = rates.clock_ghz * act_bytes / transfer_rate(rates.local, burst_bytes)
    weight_bytes = out_w_tiles * act_w_tiles * weight_format.tile_bytes
    ns_per_byte = 1 / transfer_rate(rates.dram, weight_format.tile_bytes) + 1 / transfer_rate(
        rates.multicast, weight_bytes
    )
    weight_cycles = rates.clock_ghz * weight_bytes * ns_per_byte
    tilize_cycles = act_w_tiles * act_h_tiles * tile_cycles
    return act_cycles / 2 + max(weight_cycles, tilize_cycles) < max(act_cycles + tilize_cycles, weight_cycles)
