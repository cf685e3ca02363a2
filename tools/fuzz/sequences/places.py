"""Random shapes, data types and places of tensors, as Python text."""

from collections.abc import Sequence
from math import prod
from typing import Final

from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up, round_up
from tools.fuzz.sequences.state import BLOCKS, FLOATS, INTEGERS, Draft, Shadow

KINDS: Final = ("HEIGHT", "WIDTH", "BLOCK")
SIDES: Final = (32, 1, 2, 3, 8, 16, 24, 31, 33, 40, 64, 96, 100, 128)
DRAM: Final = "ttsim.DRAM_MEMORY_CONFIG"
L1: Final = "ttsim.L1_MEMORY_CONFIG"
UNSPECIFIED: Final = tuple(f"ttsim.L1_{kind}_SHARDED_MEMORY_CONFIG" for kind in KINDS)
MOST_ELEMENTS: Final = 60_000


def shape(draft: Draft) -> tuple[int, ...]:
    """A shape of one to five sides, mostly an image."""
    choices = draft.choices
    rank = choices.pick((4, 4, 4, 4, 3, 2, 2, 5, 1))
    sides = [choices.pick((1, 1, 2, 3, 4)) for _ in range(rank - 2)]
    sides += [choices.pick(SIDES) for _ in range(min(rank, 2))]
    if rank == 4 and choices.chance(0.5):
        sides = [choices.pick((1, 1, 2, 3)), choices.between(1, 16), choices.between(1, 16), sides[-1]]
    while prod(sides) > MOST_ELEMENTS:
        largest = max(sides)
        sides[sides.index(largest)] = max(1, largest // 2)
    return tuple(sides)


def dtype(draft: Draft, *, rare: float = 0.03) -> str:
    """A data type: floats, and rarely integers."""
    if draft.choices.chance(rare):
        return draft.choices.pick(INTEGERS)
    return draft.choices.pick(("bfloat16", "bfloat16", "bfloat16", "bfloat16", *FLOATS[1:], *FLOATS[1:3]))


def layout(draft: Draft, data_type: str) -> str:
    """The name of a layout that a data type may have."""
    return "TILE_LAYOUT" if data_type in BLOCKS else draft.choices.pick(("TILE_LAYOUT", "ROW_MAJOR_LAYOUT"))


def matrix(sides: Sequence[int], *, tiled: bool) -> tuple[int, int]:
    """Rows and columns of a tensor as the device stores it."""
    *most, rows, columns = (1, 1, *sides)
    if tiled:
        rows, columns = round_up(rows, TILE), round_up(columns, TILE)
    return prod(most) * rows, columns


def rectangles(draft: Draft) -> list[tuple[int, int, int, int]]:
    """Cores: mostly one rectangle from the corner, rarely one elsewhere or several."""
    choices, (columns, rows) = draft.choices, draft.grid
    x, y = choices.below(columns), choices.below(rows)
    form = choices.below(100)
    if form < 70:
        return [(0, 0, x, y)]
    if form < 85:
        left, top = choices.between(0, x), choices.between(0, y)
        return [(left, top, x, y)]
    if form < 95:
        full = choices.between(1, rows - 1)
        return [(0, 0, columns - 1, full - 1), (0, full, x, full)]
    return [(0, 0, x, 0), (0, 2, x, 2)]


def shards(draft: Draft, sides: Sequence[int], *, tiled: bool, buffers: Sequence[str] = ("L1", "L1", "DRAM")) -> str:
    """A sharded memory config that holds a tensor, as text; rarely one whose shards are larger than they must be."""
    choices = draft.choices
    kind, buffer = choices.pick(KINDS), choices.pick(buffers)
    turned = choices.chance(0.15)
    if buffer == "DRAM":
        banks = choices.between(1, 7)
        where = [(0, 0, banks - 1, 0)]
    else:
        where = rectangles(draft)
        where = where[:1] if kind == "BLOCK" else where
    rows, columns = matrix(sides, tiled=tiled)
    x0, y0, x1, y1 = where[0]
    count = sum((x1 - x0 + 1) * (y1 - y0 + 1) for x0, y0, x1, y1 in where)
    across, down = x1 - x0 + 1, y1 - y0 + 1
    high, wide = {"HEIGHT": (count, 1), "WIDTH": (1, count), "BLOCK": (across, down) if turned else (down, across)}[
        kind
    ]
    row_unit = TILE if tiled else 1
    column_unit = TILE if tiled else 1 if kind == "HEIGHT" else choices.pick((8, 8, 8, 16, 1))
    shard = [round_up(div_up(rows, high), row_unit), round_up(div_up(columns, wide), column_unit)]
    if choices.chance(0.1):
        shard[0] += row_unit * choices.between(0, 2)
    text = f'shards("{kind}", ({shard[0]}, {shard[1]}), {", ".join(map(str, where))}'
    text += ', orientation="COL_MAJOR"' if turned else ""
    return text + (', buffer="DRAM")' if buffer == "DRAM" else ")")


def place(draft: Draft, sides: Sequence[int], *, tiled: bool, sharded: float = 0.4) -> str:
    """A memory config as text."""
    if draft.choices.chance(sharded):
        return shards(draft, sides, tiled=tiled)
    return draft.choices.pick((DRAM, DRAM, L1))


def maybe_place(draft: Draft, sides: Sequence[int], *, tiled: bool, probability: float = 0.3) -> str:
    """A memory config for a result as text; empty to let the library choose."""
    if not draft.choices.chance(probability):
        return ""
    if draft.choices.chance(0.05):
        return draft.choices.pick(UNSPECIFIED)
    return place(draft, sides, tiled=tiled, sharded=0.3)


def asked(draft: Draft, text: str) -> object:
    """The memory config that a result must have, where the text gives one whole; else None."""
    if not text or text in UNSPECIFIED:
        return None
    return draft.evaluated(text)


def named(**arguments: str | None) -> str:
    """Keyword arguments as text, each after a comma; empty ones are left out."""
    return "".join(f", {name}={text}" for name, text in arguments.items() if text)


def in_rows(data_type: str) -> str:
    """The data type that a tensor has in rows: block floats become bfloat16."""
    return "bfloat16" if data_type in BLOCKS else data_type


def twin(draft: Draft, like: Shadow, probability: float = 0.05) -> Shadow | None:
    """Rarely a live tensor that may take a result: of the same shape, data type and layout, with another buffer."""
    if not draft.choices.chance(probability):
        return None

    def takes(other: Shadow) -> bool:
        same = (other.shape, other.dtype, other.layout) == (like.shape, like.dtype, like.layout)
        return same and other.tensor._storage is not like.tensor._storage

    return draft.tensor(takes)
