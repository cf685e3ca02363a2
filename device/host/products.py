"""Products of matrices that are added to what is there: BLAS can do so, numpy's matmul cannot.

A sum of products needs no pass of its own over its terms then, nor memory for them. Where numpy has another BLAS than
OpenBLAS with 64-bit integers, a product is made by numpy and added, which rounds once more.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from device.host.threads import numpy_library

Array = np.ndarray[Any, np.dtype[Any]]
NAMES: Final = ("scipy_cblas_sgemm64_", "cblas_sgemm64_")
_BY_ROWS: Final = 101
_AS_IT_IS: Final = 111
_TRANSPOSED: Final = 112


class _Matrix(NamedTuple):
    """A matrix as BLAS is told of it.

    Attributes:
        order: As it is, or transposed.
        address: Of its first element.
        distance: Elements from one row, or column, to the next.
    """

    order: int
    address: int
    distance: int

    @classmethod
    def of(cls, matrix: Array) -> "_Matrix":
        """A matrix of float32 with the elements of one axis side by side."""
        (rows, columns), (outer, inner) = matrix.shape, matrix.strides
        if matrix.dtype == np.float32 and min(rows, columns):
            address = matrix.__array_interface__["data"][0]
            if inner == 4 and outer >= 4 * columns:
                return cls(_AS_IT_IS, address, outer // 4)
            if outer == 4 and inner >= 4 * rows:
                return cls(_TRANSPOSED, address, inner // 4)
        raise ValueError(
            f"add_products: a matrix must be of float32, not empty, with the elements of one axis side by side, not of "
            f"{matrix.dtype} {list(matrix.shape)} with strides {list(matrix.strides)}"
        )


class _Term(NamedTuple):
    """A product: the rows of ``left`` from ``offset`` on, ``row_bytes`` apart, times ``right`` of ``depth`` rows."""

    left: _Matrix
    row_bytes: int
    offset: int
    right: _Matrix
    depth: int


class SumOfProducts:
    """A sum of products of the rows of some matrices, each from an offset on, with other matrices.

    Args:
        terms: Of each product, float32 [rows, depth], the offset, and float32 [depth, columns]; the elements of one
            axis of each matrix lie side by side.

    Raises:
        ValueError: Matrices do not fit each other, or do not lie as said.
    """

    def __init__(self, terms: Sequence[tuple[Array, int, Array]]) -> None:
        self._terms = terms
        self.columns = terms[0][2].shape[1]
        self._last = min(len(left) - offset for left, offset, _ in terms)
        self._first = -min(offset for _, offset, _ in terms)
        self._multiply = _sgemm()
        self._told = [
            _Term(_Matrix.of(left), left.strides[0], at, _Matrix.of(right), len(right)) for left, at, right in terms
        ]
        if any(left.shape[1] != len(right) or right.shape[1] != self.columns for left, _, right in terms):
            raise ValueError("SumOfProducts: the columns of one matrix of a product must be the rows of the other")

    def write(self, first: int, total: Array) -> None:
        """Writes the sum for as many rows as ``total`` has.

        Args:
            first: The row to begin with, counted from each offset.
            total: float32 [rows, columns]; the elements of a row lie side by side.

        Raises:
            ValueError: There are not so many rows, or other columns, or a row does not lie as said.
        """
        rows, columns = total.shape
        into = _Matrix.of(total)
        if columns != self.columns or not self._first <= first <= self._last - rows or into.order != _AS_IT_IS:
            raise ValueError(f"SumOfProducts: {list(total.shape)} from row {first} on is not there to be written")
        if self._multiply is None:
            for number, (left, offset, right) in enumerate(self._terms):
                _add_by_numpy(left[first + offset : first + offset + rows], right, total, start=not number)
            return
        kept = 0.0
        for one in self._told:
            self._multiply(
                *(_BY_ROWS, one.left.order, one.right.order, rows, columns, one.depth, 1.0),
                *(one.left.address + (first + one.offset) * one.row_bytes, one.left.distance),
                *(one.right.address, one.right.distance, kept, into.address, into.distance),
            )
            kept = 1.0


def add_product(left: Array, right: Array, total: Array, *, start: bool) -> None:
    """Adds a product to a matrix.

    Args:
        left: float32 [rows, depth], elements of one axis side by side.
        right: float32 [depth, columns], likewise.
        total: float32 [rows, columns], elements of a row side by side; contents do not matter if it starts.
        start: The product is written, not added.

    Raises:
        ValueError: Matrices do not fit each other, or do not lie as said.
    """
    multiply = _sgemm()
    if multiply is None:
        _add_by_numpy(left, right, total, start=start)
        return
    (rows, depth), columns, into = left.shape, right.shape[1], _Matrix.of(total)
    if len(right) != depth or total.shape != (rows, columns) or into.order != _AS_IT_IS:
        raise ValueError(
            f"add_product: a product of {list(left.shape)} and {list(right.shape)} is added to a matrix of its shape "
            f"whose rows lie in one piece, not to {list(total.shape)} with strides {list(total.strides)}"
        )
    one, other = _Matrix.of(left), _Matrix.of(right)
    multiply(
        *(_BY_ROWS, one.order, other.order, rows, columns, depth, 1.0, one.address, one.distance),
        *(other.address, other.distance, 0.0 if start else 1.0, into.address, into.distance),
    )


def _add_by_numpy(left: Array, right: Array, total: Array, *, start: bool) -> None:
    """The same with a product of its own."""
    if start:
        np.matmul(left, right, out=total)
    else:
        np.add(total, np.matmul(left, right), out=total)


@cache
def _sgemm() -> Callable[..., None] | None:
    """OpenBLAS's product of float32 matrices; None if numpy has another BLAS."""
    library = numpy_library()
    found = next((getattr(library, name) for name in NAMES if hasattr(library, name)), None)
    if found is None:
        return None
    size, place, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    matrix = (place, size)
    found.argtypes = [*[ctypes.c_int] * 3, *[size] * 3, number, *matrix, *matrix, number, *matrix]
    found.restype = None
    multiply: Callable[..., None] = found
    return multiply
