"""The lists that tell the cores of a sharded upsample which sticks to gather, and how long they are.

A core's two processors gather half of its output rows each, counted before pixels are repeated across. A list is
intervals (x and y of a core, first and last stick), as many for every processor of every core as the longest needs.
Source: tt-metal 0.81.1 (upsample, multicore sharded), compared with recorded plans.
"""

import numpy as np

PROCESSORS = 2  # that gather the sticks of a core
INTERVAL_WORDS = 4  # uint16: the column and the row of a core, its first stick and its last


def interval_words(rows: int, width: int, repeats: int, shard_rows: int) -> int:
    """uint16 words of a core's lists.

    Args:
        rows: Rows of pixels of all images.
        width: Pixels of a row.
        repeats: How often a row is repeated.
        shard_rows: Pixels of a shard of the source.
    """
    row, column = np.divmod(np.arange(rows * repeats * width, dtype=np.int64), width)
    row, again = np.divmod(row, repeats)
    begins = (row * width + column) % shard_rows == 0
    begins |= (column == 0) & (again > 0)
    core_rows = shard_rows * repeats
    core, stick = np.divmod(np.arange(len(begins), dtype=np.int64), core_rows)
    first_half = (core_rows + 1) // PROCESSORS
    begins |= (stick == 0) | (stick == first_half)
    processor = PROCESSORS * core + (stick >= first_half)
    longest = int(np.bincount(processor[begins]).max())
    return PROCESSORS * INTERVAL_WORDS * longest
