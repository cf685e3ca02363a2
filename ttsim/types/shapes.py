"""Shapes and layouts as ttnn shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import SupportsIndex

import numpy as np

from device.errors import ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import TILE, Layout

ROW_MAJOR_LAYOUT = Layout.ROW_MAJOR
TILE_LAYOUT = Layout.TILE
TILE_SIZE = TILE


class Shape(tuple[int, ...]):
    """Sides of a tensor; equal to a list or tuple of the same numbers."""

    __slots__ = ()

    @property
    def rank(self) -> int:
        """How many sides."""
        return len(self)

    def to_rank(self, rank: int) -> "Shape":
        """The shape with sides of 1 before it, or without them; raises DeviceError where a larger one would go."""
        missing = rank - len(self)
        if missing < 0 and prod(self[:-rank] if rank else self) != 1:
            raise DeviceError(
                f"Can't convert shape rank {len(self)} to {rank}\nto_rank: {self} has no sides of 1 to leave out"
            )
        return Shape((1,) * missing + tuple(self)) if missing >= 0 else Shape(tuple(self)[-missing:])

    def __eq__(self, other: object) -> bool:
        """Whether the other is a sequence of the same numbers."""
        return isinstance(other, list | tuple) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        """Whether it is not."""
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        """As the real library prints it: ``Shape([1, 1, 4, 4])``."""
        return f"Shape({list(self)})"


@dataclass(frozen=True, slots=True)
class Tile:
    """The tiles of a tensor.

    Attributes:
        tile_shape: Rows and columns; 32 x 32 alone are simulated.
    """

    tile_shape: Sequence[int] = (TILE, TILE)

    def __post_init__(self) -> None:
        """Refuses other sizes."""
        if tuple(self.tile_shape) != (TILE, TILE):
            raise DeviceError(f"Tile: tiles of {shown(self.tile_shape)} are not simulated; {TILE} x {TILE} are")

    def __repr__(self) -> str:
        """As the real library prints it."""
        return f"Tile with shape: {list(self.tile_shape)}"


def resolved_shape(sides: Sequence[SupportsIndex | Sequence[int]], volume: int) -> tuple[int, ...]:
    """The shape asked of a reshape: numbers one by one or as one sequence, at most one of them -1.

    Raises:
        ArgumentTypeError: These are no integers.
        DeviceError: The volume does not fit; the first line is the real library's.
    """
    first = sides[0] if len(sides) == 1 else sides
    try:
        if isinstance(first, str | bytes):
            raise TypeError("text")
        wanted = [index(side) for side in (first if isinstance(first, Sequence | np.ndarray) else [first])]  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"reshape: the shape must be integers, not {shown(first)}") from None
    if wanted.count(-1) == 1:
        rest = prod(side for side in wanted if side != -1)
        if rest:
            wanted[wanted.index(-1)] = volume // rest
    if any(side < 0 for side in wanted) or prod(wanted) != volume:
        raise DeviceError(
            f"Invalid arguments to reshape\nreshape: a tensor of {volume} elements cannot take the shape "
            f"{shown(wanted)}, which has {prod(wanted)}"
        )
    return tuple(wanted)
