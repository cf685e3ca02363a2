"""Operators of tensors: the functions of the library under their signs, as ttnn has them.

A tensor knows no function. Those of the package are looked up when an operator is used, so that nothing here depends
on them.
"""

import sys
from typing import Any

FACE = __name__.partition(".")[0]  # the package whose functions the operators are


class Operators:
    """What `+`, `-` and `*` mean for tensors, and for a tensor and a number."""

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


def _function(name: str) -> Any:
    return getattr(sys.modules[FACE], name)
