"""Operators of tensors: the functions of the library under their signs, as ttnn has them.

The functions are looked up in the package when an operator is used, so that this module does not depend on them.
"""

import sys
from dataclasses import dataclass
from operator import index as integer
from typing import Any

from device.errors import ArgumentError, ArgumentIndexError, ArgumentTypeError, DeviceError, shown
from device.memory.layouts import TensorSpec
from device.numbers.formats import quantize


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


def box_of(index: Any, shape: tuple[int, ...]) -> Box:
    """The box that an index names: integers, slices and one `...`, as in numpy; axes without an index are whole."""
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
    return Box(begins=begins, ends=ends, steps=steps, gone=gone)


def _span(part: Any, axis: int, side: int) -> tuple[int, int, int]:
    """First index, one past the last, and step of an axis."""
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


FACE = __name__.partition(".")[0]  # the package whose functions the operators are


class Operators:
    """What `+`, `-` and `*` mean for tensors, and for a tensor and a number; and brackets behind a tensor."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        """The sum, by the function `add`."""
        return _function("add")(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """The difference, by the function `subtract`."""
        return _function("subtract")(self, other)

    def __rsub__(self, other: Any) -> Any:
        """The difference of a number and the tensor, by the function `subtract`."""
        return _function("subtract")(other, self)

    def __truediv__(self, other: Any) -> Any:
        """The quotient, by the function `div`; raises AttributeError while there is none."""
        return _function("div")(self, other)

    def __matmul__(self, other: Any) -> Any:
        """The matrix product, by the function `matmul`."""
        return _function("matmul")(self, other)

    def __mul__(self, other: Any) -> Any:
        """The product, by the function `multiply`."""
        return _function("multiply")(self, other)

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        """The part of the tensor that an index names, by the functions `slice` and `squeeze`; see `box_of`."""
        tensor: Any = self
        box = box_of(index, tuple(tensor.shape))
        part = _on_host(tensor, box) if tensor.device() is None else _function("slice")(tensor, *box.corners)
        for passed, axis in enumerate(box.gone):
            part = _function("squeeze")(part, axis - passed)
        return part


def _on_host(tensor: Any, box: Box) -> Any:
    """The part of a tensor on the host; raises DeviceError where indices are left out."""
    if any(step != 1 for step in box.steps):
        raise DeviceError("Host tensors cannot be accessed with non-unit stride\ngive it to a device with .to(device)")
    values = tensor.values()[tuple(map(slice, box.begins, box.ends))]
    spec = TensorSpec(values.shape, tensor.spec.data_format, tensor.layout)
    return type(tensor).of_host(quantize(values, spec.data_format), spec)


def _function(name: str) -> Any:
    return getattr(sys.modules[FACE], name)
