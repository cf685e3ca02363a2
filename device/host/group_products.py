"""Products of float32 matrices in compiled loops whose second one is mostly zeros: every eight columns have their rows.

BLAS multiplies sixteen columns at a time, so that two groups of eight are one product of which half is zeros. Here
zeros are left out: eight columns are summed over those rows that they have. A sum goes from one product to the next, as
BLAS's kernels do it, and what a product with zero adds is no bit; so sums have BLAS's bits wherever all is finite.

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

import importlib
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import compiled
from device.host.products import has_feature
from device.host.vector_code import BYTES, BYTES_OF_SIZE, NUMBER, SIZE, VectorCode

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
EIGHT: Final = 8  # columns of a vector
ROWS: Final = 12  # of a tile, as many as leave registers for the second operand
_FUSES: Final = has_feature("+fma")  # as BLAS's kernels do then


def _tile_of(rows: int) -> Any:
    """A product of so many rows and eight columns, for loops."""

    def tile(typing: Any, left: Any, right: Any, total: Any, depths: Any, count: Any) -> tuple[Any, Any]:
        """Sums of products are added to what is there.

        Args:
            typing: Numba's.
            left: int64, the address of the first row of the first operand, and bytes to the next one.
            right: int64, likewise of the second operand.
            total: int64, likewise of the sums.
            depths: int64, the address of the rows of the second operand that count, int64.
            count: int64, how many there are, one at least.
        """
        size = _numba.types.int64
        pair = _numba.types.UniTuple(size, 2)
        return _numba.types.void(pair, pair, pair, size, size), partial(_make_tile, rows)

    return _extending.intrinsic(tile)


def _make_tile(rows: int, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """The instructions of a tile: a loop over the rows that count, and where its sums go."""
    left, right, total = ([builder.extract_value(each, n) for n in range(2)] for each in given[:3])
    (depths, count), code = given[3:], VectorCode(builder, EIGHT)

    def of_row(n: int, matrix: list[Any]) -> Any:
        return builder.add(matrix[0], builder.mul(matrix[1], SIZE(n)))

    def add(number: Any, sums: list[list[Any]]) -> list[list[Any]]:
        depth = code.read(SIZE, builder.add(depths, builder.mul(number, SIZE(BYTES_OF_SIZE))))
        columns = code.read(code.numbers, builder.add(right[0], builder.mul(depth, right[1])))
        behind = builder.mul(depth, SIZE(BYTES))
        ones = [code.everywhere(code.numbers, code.read(NUMBER, builder.add(row, behind))) for row in begins]
        return [[_with_product(code, old, one, columns)] for (old,), one in zip(sums, ones, strict=True)]

    begins = [of_row(n, left) for n in range(rows)]
    for n, (made,) in enumerate(code.summed(rows, 1, count, add)):
        place = of_row(n, total)
        code.write(code.numbers, builder.fadd(code.read(code.numbers, place), made), place)
    return context.get_dummy_value()


def _with_product(code: VectorCode, total: Any, left: Any, right: Any) -> Any:
    """A product is added, rounded once if processors do so."""
    if _FUSES:
        return code.call(f"llvm.fma.v{EIGHT}f32", code.numbers, left, right, total)
    return code.builder.fadd(total, code.builder.fmul(left, right))


_tile_12, _tile_1 = _tile_of(ROWS), _tile_of(1)


@partial(compiled, fuses=False)
def product_of_groups(rows: int, left: Any, right: Any, total: Any, depths: Array) -> None:
    """A product is added to sums.

    Args:
        rows: Of the first operand.
        left: The address of the first operand, float32, and elements from one of its rows to the next.
        right: Likewise of the second one.
        total: Likewise of the sums.
        depths: int64 [columns / 8, rows of the second operand that every eight columns have].
    """
    one, other, sums = BYTES * left[1], (right[0], BYTES * right[1]), BYTES * total[1]
    whole = rows // ROWS * ROWS
    for group in range(len(depths)):
        behind, held, count = BYTES * EIGHT * group, np.int64(depths[group].ctypes.data), depths.shape[1]
        columns = other[0] + behind, other[1]
        for row in range(0, whole, ROWS):
            _tile_12((left[0] + row * one, one), columns, (total[0] + behind + row * sums, sums), held, count)
        for row in range(whole, rows):
            _tile_1((left[0] + row * one, one), columns, (total[0] + behind + row * sums, sums), held, count)
