"""What stands between the brackets of a tensor: an index of each axis, as the real library reads it."""

from dataclasses import dataclass
from operator import index as integer
from typing import Any

from device.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """The part of a tensor that an index names."""

    begins: tuple[int, ...]  # First index on each axis
    ends: tuple[int, ...]  # One past the last index on each axis
    steps: tuple[int, ...]  # From index to index
    gone: tuple[int, ...]  # Axes that a single index takes away

    @property
    def corners(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Begins, ends and steps, in the order of ttnn.slice."""
        return self.begins, self.ends, self.steps


def box_of(asked: Any, shape: tuple[int, ...]) -> Box:
    """The box that an index names: integers, slices and one `...`, as in numpy; what it does not name is whole.

    Raises:
        ArgumentError: There are two `...`.
        ArgumentIndexError: There are more indices than axes, or an integer lies beyond its axis.
        ArgumentTypeError: An index is something else.
    """
    single = asked is Ellipsis or isinstance(asked, slice) or not isinstance(asked, tuple | list)
    given = [asked] if single else list(asked)
    if sum(one is Ellipsis for one in given) > 1:
        raise ArgumentError("Only one ellipsis ('...') is allowed in a slice.\nwrite out the axes of the other")
    at = next((place for place, one in enumerate(given) if one is Ellipsis), len(given))
    given = [one for one in given if one is not Ellipsis]
    if len(given) > len(shape):
        raise ArgumentIndexError(f"Too many indices for tensor of dimension {len(shape)}\n{len(given)} are given")
    given[at:at] = [slice(None)] * (len(shape) - len(given))
    begins, ends, steps = zip(*(_one(one, axis, shape[axis]) for axis, one in enumerate(given)), strict=True)
    gone = tuple(axis for axis, one in enumerate(given) if not isinstance(one, slice))
    return Box(begins=begins, ends=ends, steps=steps, gone=gone)


def _one(given: Any, axis: int, side: int) -> tuple[int, int, int]:
    """First index, one past the last, and step of an axis."""
    if isinstance(given, slice):
        begin = 0 if given.start is None else integer(given.start)
        end = side if given.stop is None else integer(given.stop)
        return begin, end, 1 if given.step is None else integer(given.step)
    try:
        asked = integer(given)
    except TypeError:
        raise ArgumentTypeError(f"Invalid slice type: {shown(given)}\ngive integers, slices and one '...'") from None
    at = asked + side if asked < 0 else asked
    if not 0 <= at < side:
        raise ArgumentIndexError(
            f"Index {asked} (converted to {at}) is out of bounds for dimension {axis} of size {side}\n"
            "index: count from 0, or from -1 backwards"
        )
    return at, at + 1, 1
