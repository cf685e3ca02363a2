"""Operators of tensors: the functions of the library under their signs, as ttnn has them.

A tensor knows no function. Those of the package are looked up when an operator is used, so that nothing here depends
on them.
"""

import sys
from typing import Any

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.numbers.formats import quantize
from ttsim.runtime.indexing import Box, box_of

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
