"""Operators of tensors, which call functions of the library as in ttnn.

The functions are looked up in the package when an operator is used, so this module does not import them.
"""

import sys
from collections.abc import Callable
from operator import index as integer
from typing import Any, NamedTuple, Self, TypeVar, cast

from device.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError, DeviceError, shown
from device.memory.layouts import TensorSpec
from device.numbers.formats import quantize


class Box(NamedTuple):
    """The slices of an index."""

    corners: tuple[tuple[int, ...], ...]  # First indices, indices behind the last, and steps, as in ttnn.slice
    gone: tuple[int, ...]  # Axes that a single index takes away


def box_of(index: Any, shape: tuple[int, ...]) -> Box:
    """The slices of an index of integers, slices and one `...`, as in numpy; axes without an index are whole."""
    single = index is Ellipsis or isinstance(index, slice) or not isinstance(index, tuple | list)
    items = [index] if single else list(index)
    if sum(item is Ellipsis for item in items) > 1:
        raise ArgumentError("Only one ellipsis ('...') is allowed in a slice.\nwrite out the axes of the other")
    at = next((place for place, item in enumerate(items) if item is Ellipsis), len(items))
    items = [item for item in items if item is not Ellipsis]
    if len(items) > len(shape):
        raise ArgumentIndexError(f"Too many indices for tensor of dimension {len(shape)}\n{len(items)} are given")
    items[at:at] = [slice(None)] * (len(shape) - len(items))
    begins, ends, steps = zip(*(_span(item, axis, shape[axis]) for axis, item in enumerate(items)), strict=True)
    gone = tuple(axis for axis, item in enumerate(items) if not isinstance(item, slice))
    return Box((begins, ends, steps), gone)


def _span(part: Any, axis: int, side: int) -> tuple[int, int, int]:
    """First index, end (excluded) and step of an axis."""
    if isinstance(part, slice):
        begin = 0 if part.start is None else integer(part.start)
        end = side if part.stop is None else integer(part.stop)
        return begin, end, 1 if part.step is None else integer(part.step)
    try:
        position = integer(part)
    except TypeError:
        raise ArgumentTypeError(f"Invalid slice type: {shown(part)}\ngive integers, slices and one '...'") from None
    at = position + side if position < 0 else position
    if not 0 <= at < side:
        raise ArgumentIndexError(
            f"Index {position} (converted to {at}) is out of bounds for dimension {axis} of size {side}\n"
            "index: count from 0, or from -1 backwards"
        )
    return at, at + 1, 1


T = TypeVar("T")
FACE = __name__.partition(".")[0]  # the package whose functions the operators are


def _binary(name: str, *, swapped: bool = False) -> Callable[[T, object], T]:
    """The operator that calls a function of the package."""

    def operator(self: T, other: object) -> T:
        result: T = library_function(name)(*((other, self) if swapped else (self, other)))
        return result

    return operator


class Operators:
    """Arithmetic and comparison operators and indexing of tensors.

    As in ttnn, a comparison returns a tensor; use `is` for identity.
    """

    __slots__ = ()
    __add__ = __radd__ = _binary("add")
    __sub__ = _binary("subtract")
    __rsub__ = _binary("subtract", swapped=True)
    __mul__ = __rmul__ = _binary("multiply")
    __truediv__ = _binary("div")
    __rtruediv__ = _binary("rdiv")
    __eq__ = _binary("eq")  # type: ignore[assignment]
    __ne__ = _binary("ne")  # type: ignore[assignment]
    __lt__ = _binary("lt")
    __le__ = _binary("le")
    __gt__ = _binary("gt")
    __ge__ = _binary("ge")
    __hash__ = object.__hash__
    __matmul__ = _binary("matmul")

    def __getitem__(self, index: Any) -> Self:
        """The indexed part of the tensor, by the functions `slice` and `squeeze`; see `box_of`."""
        tensor: Any = self
        box = box_of(index, tuple(tensor.shape))
        part = _on_host(tensor, box) if tensor.device() is None else library_function("slice")(tensor, *box.corners)
        for passed, axis in enumerate(box.gone):
            part = library_function("squeeze")(part, axis - passed)
        return cast("Self", part)


def _on_host(tensor: Any, box: Box) -> Any:
    """The indexed part of a host tensor; raises DeviceError for a step other than 1."""
    begins, ends, steps = box.corners
    if any(step != 1 for step in steps):
        raise DeviceError("Host tensors cannot be accessed with non-unit stride\ngive it to a device with .to(device)")
    values = tensor.values()[tuple(map(slice, begins, ends))]
    spec = TensorSpec(values.shape, tensor.spec.data_format, tensor.layout)
    return type(tensor).of_host(quantize(values, spec.data_format), spec)


def library_function(name: str) -> Any:
    """A function of the package."""
    return getattr(sys.modules[FACE], name)
