"""How long the lists are that tell the readers of activations where their windows begin.

Words are uint16. For every activation block (for every half of one, with two readers): the number of segments as
uint32, then (first stick, last stick) for each. Sticks are those of the core's halo shard, in which the windows of one
segment lie ``step`` apart. All cores' lists are as long as the longest.
"""

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Integers, round_up
from ops.window import PaddedInput

WORD_BYTES = 2
HEADER_WORDS = 2
SEGMENT_WORDS = 2


def reader_index_words(frame: PaddedInput, *, output_rows: int, cores: int, block_rows: tuple[int, ...]) -> int:
    """Words of the list of one core, counted without writing a list.

    Each core has `output_rows`; the last cores may have fewer, or none. A reader takes `block_rows` at a time: one
    number, or two that alternate between two readers.
    """
    begin, end = _blocks(frame, output_rows=output_rows, cores=cores, block_rows=block_rows)
    breaks = _breaks_before(frame, np.array([begin, end - 1]))
    segments = breaks[1] - breaks[0] + 1
    words = (HEADER_WORDS + SEGMENT_WORDS * segments) * (begin < end)
    return int(words.sum(axis=1).max())


def reader_indices_refusal(page_bytes: int, *, output_rows: int) -> str | None:
    """Why the real library has no room for a list, in its words and ours: one index per output row, in whole tiles."""
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
    """[cores, blocks] first output and last output + 1 of every block; the latter is no larger in an empty block."""
    ends = [0]
    while ends[-1] < output_rows:
        ends.append(ends[-1] + block_rows[(len(ends) - 1) % len(block_rows)])
    ends[-1] = output_rows
    bounds = np.arange(0, cores * output_rows, output_rows)[:, None] + np.array(ends)
    return bounds[:, :-1], np.minimum(bounds[:, 1:], frame.outputs)


def _breaks_before(frame: PaddedInput, outputs: Integers) -> Integers:
    """The number of outputs, up to each of ``outputs``, that do not lie one step behind the output before them."""
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
