"""Products of float32 matrices of two groups of eight channels in compiled loops, without the zeros between them.

BLAS multiplies sixteen columns at a time, so that two groups of eight are one product of which half is zeros. Here a
number of each group is spread over eight columns, and both are multiplied at once. A sum goes from one product to the
next, as BLAS's kernels do it, and what a product with zero adds is no bit; so sums have BLAS's bits wherever all is
finite.

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

import importlib
from functools import partial
from typing import Any, Final

from device.host.compiling import compiled
from device.host.vector_code import BYTES, SIZE, VectorCode

_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
EIGHT: Final = 8  # channels of a group
LANES: Final = 16  # columns of both groups, which are a vector
ROWS: Final = 6  # of a tile: sums that are under way at a time


def _tile_of(rows: int) -> Any:
    """A product of so many rows, for loops."""

    def tile(typing: Any, left: Any, right: Any, total: Any, steps: Any) -> tuple[Any, Any]:
        """Sums of products are added to what is there.

        Args:
            left: int64, the address of the first row of the first operand, and bytes to the next one.
            right: int64, likewise of the second operand.
            total: int64, likewise of the sums.
            steps: int64, how many times sixteen numbers a row of the first operand has, once at least.
        """
        size = _numba.types.int64
        pair = _numba.types.UniTuple(size, 2)
        return _numba.types.void(pair, pair, pair, size), partial(_make_tile, rows)

    return _extending.intrinsic(tile)


def _make_tile(rows: int, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """The instructions of a tile: a loop over sixteen numbers of each row at a time, and where its sums go."""
    left, right, total = ([builder.extract_value(each, n) for n in range(2)] for each in given[:3])
    code = VectorCode(builder, LANES)

    def of_row(matrix: list[Any], row: Any) -> Any:
        return builder.add(matrix[0], builder.mul(matrix[1], row))

    def weights(place: Any) -> Any:
        """A row of each group, eight rows apart, one of which has zeros where the other has not."""
        both = [code.read(code.words, one) for one in (place, builder.add(place, builder.mul(right[1], SIZE(EIGHT))))]
        return builder.bitcast(builder.or_(*both), code.numbers)

    def add(number: Any, sums: list[list[Any]]) -> list[list[Any]]:
        behind = builder.mul(number, SIZE(BYTES * LANES))
        met = [code.read(code.numbers, builder.add(begin, behind)) for begin in begins]
        several = [old for (old,) in sums]
        for channel in range(EIGHT):
            depth = builder.add(builder.mul(number, SIZE(LANES)), SIZE(channel))
            columns, spread = weights(of_row(right, depth)), code.spread([channel, EIGHT + channel])
            spread_out = [builder.shuffle_vector(one, one, spread) for one in met]
            several = [code.with_product(old, one, columns) for old, one in zip(several, spread_out, strict=True)]
        return [[new] for new in several]

    begins = [of_row(left, SIZE(n)) for n in range(rows)]
    for n, (made,) in enumerate(code.summed(rows, 1, given[3], add)):
        place = of_row(total, SIZE(n))
        code.write(code.numbers, builder.fadd(code.read(code.numbers, place), made), place)
    return context.get_dummy_value()


_tile_6, _tile_1 = _tile_of(ROWS), _tile_of(1)


@partial(compiled, fuses=False)
def product_of_groups(rows: int, depth: int, left: Any, right: Any, total: Any) -> None:
    """A product is added to sums of sixteen columns, eight for each of two groups.

    Args:
        rows: Of the first operand.
        depth: Of the product, a multiple of sixteen: eight numbers of the first group and eight of the other, in turns.
        left: The address of the first operand, float32, and elements from one of its rows to the next.
        right: Likewise of the second one, which has zeros where a group meets the columns of the other.
        total: Likewise of the sums.
    """
    one, other, sums = BYTES * left[1], (right[0], BYTES * right[1]), BYTES * total[1]
    whole, steps = rows // ROWS * ROWS, depth // LANES
    for row in range(0, whole, ROWS):
        _tile_6((left[0] + row * one, one), other, (total[0] + row * sums, sums), steps)
    for row in range(whole, rows):
        _tile_1((left[0] + row * one, one), other, (total[0] + row * sums, sums), steps)
