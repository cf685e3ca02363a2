"""Sides of meshes of devices, and places in them."""

from collections.abc import Iterator, Sequence
from math import prod
from operator import index

from device.errors import ArgumentTypeError, shown


class _Sides:
    """Numbers along the axes of a mesh, given one by one or as one sequence."""

    __slots__ = ("_sides",)

    def __init__(self, *sides: int | Sequence[int]) -> None:
        """Takes the numbers; raises ArgumentTypeError for what is no integer."""
        given = sides[0] if len(sides) == 1 and not isinstance(sides[0], int) else sides
        try:
            self._sides: tuple[int, ...] = tuple(index(one) for one in given)  # type: ignore[arg-type]
        except TypeError:
            raise ArgumentTypeError(f"{type(self).__name__}: sides must be integers, not {shown(sides)}") from None

    def dims(self) -> int:
        """How many axes."""
        return len(self._sides)

    def __getitem__(self, axis: int) -> int:
        return self._sides[axis]

    def __iter__(self) -> Iterator[int]:
        return iter(self._sides)

    def __len__(self) -> int:
        return len(self._sides)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._sides == other._sides

    def __hash__(self) -> int:
        return hash(self._sides)

    def __repr__(self) -> str:
        """As the real library prints it: ``MeshShape([1, 1])``."""
        return f"{type(self).__name__}({list(self._sides)})"


class MeshShape(_Sides):
    """Rows and columns of a mesh."""

    __slots__ = ()

    def mesh_size(self) -> int:
        """Devices."""
        return prod(self)


class MeshCoordinate(_Sides):
    """The place of a device in a mesh."""

    __slots__ = ()
