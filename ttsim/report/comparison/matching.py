"""Which operations of two reports are the same ones: the longest common subsequence of their names."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from device.errors import ArgumentError
from ttsim.report.export.spelling import operation_name

MOST_CELLS: Final = 100_000_000  # of the table of names that is looked through, two bytes each
ENDING: Final = re.compile(r"(?<=.)(Device)?Operation$")
# What operations were called before: tt-metal of 2025 and earlier.
FORMER: Final = {"OptimizedConvNew": "Conv2d", "UntilizeWithHaloV2": "Halo", "UntilizeWithHalo": "Halo"}


def kind_of(name: str) -> str:
    """An operation's kind, by whatever name a version of tt-metal calls it: Conv2d, Halo ..."""
    short = ENDING.sub("", operation_name(name))
    return FORMER.get(short, short)


def matched(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Numbers of operations of equal kinds, in order, as many as can be; between them those that have no other.

    Raises:
        ArgumentError: Both are so long, and so different, that it would take too much memory.
    """
    same = min(len(before), len(after))
    head = next((at for at in range(same) if before[at] != after[at]), same)
    tail = next((at for at in range(same - head) if before[-1 - at] != after[-1 - at]), same - head)
    inner = _common(before[head : len(before) - tail], after[head : len(after) - tail])
    middle = [(head + one, head + other) for one, other in inner]
    ends = [(len(before) - at, len(after) - at) for at in range(tail, 0, -1)]
    both = [*((at, at) for at in range(head)), *middle, *ends]
    return _with_the_others(both, len(before), len(after))


def _common(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest common subsequence, as numbers in both."""
    if (len(before) + 1) * (len(after) + 1) > MOST_CELLS or min(len(before), len(after)) > np.iinfo(np.int16).max:
        raise ArgumentError(
            f"compare: {len(before):,} and {len(after):,} operations that differ are too many to match; compare parts"
        )
    codes = {name: number for number, name in enumerate(dict.fromkeys((*before, *after)))}
    others = np.array([codes[name] for name in after], np.int64)
    longest = np.zeros((len(before) + 1, len(after) + 1), np.int16)  # [row, column]: of all behind both
    for row in range(len(before) - 1, -1, -1):
        below = longest[row + 1]
        found = np.maximum(below[:-1], below[1:] + (others == codes[before[row]]))
        longest[row, :-1] = np.maximum.accumulate(found[::-1])[::-1]
    pairs, row, column = [], 0, 0
    while row < len(before) and column < len(after):
        if before[row] == after[column]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif longest[row + 1, column] >= longest[row, column + 1]:
            row += 1
        else:
            column += 1
    return pairs


def _with_the_others(both: Sequence[tuple[int, int]], before: int, after: int) -> list[tuple[int | None, int | None]]:
    """Pairs, and in front of each what has none: first that of the one, then that of the other."""
    found: list[tuple[int | None, int | None]] = []
    first = second = 0
    for one, other in (*both, (before, after)):
        found += [(at, None) for at in range(first, one)]
        found += [(None, at) for at in range(second, other)]
        first, second = one + 1, other + 1
        found.append((one, other))
    return found[:-1]
