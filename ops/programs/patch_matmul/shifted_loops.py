"""Pieces of shifted images as machine code: copied in cells, multiplied by BLAS, and copied to their places.

Loaded by ``ops.programs.patch_matmul.shifted``, which does the same step by step; the products are the same calls.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.host.product_loops import product

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

IMAGE: Final = readonly("float32", 1)
MATRICES: Final = "float32[:,:,:,::1]"
CELLS: Final = "UniTuple(float32[:,::1], 2)"
LISTS: Final = "UniTuple(int64[:,::1], 2)"
PAIR: Final = "UniTuple(int64, 2)"


@compiled
def _copy(target: Array, source: Array, copies: Array, begins: tuple[int, int], bundles: tuple[int, int, int]) -> None:
    """Make the int64 [copies, 9] of `ops.programs.patch_matmul.shifted_layer` between flat float32 arrays.

    `begins` are the places of bundle 0 in both arrays; `bundles` their number, and how far they lie apart in both.
    """
    several, next_target, next_source = bundles
    for number in range(len(copies)):
        rows, columns, numbers = copies[number, 2], copies[number, 3], copies[number, 4]
        to_row, to_column, of_row, of_column = (
            copies[number, 5],
            copies[number, 6],
            copies[number, 7],
            copies[number, 8],
        )
        for row in range(rows):
            for column in range(columns):
                to = begins[0] + copies[number, 0] + row * to_row + column * to_column
                of = begins[1] + copies[number, 1] + row * of_row + column * of_column
                for _ in range(several):
                    for n in range(numbers):  # unsigned: nothing counts from behind
                        target[np.uintp(to + n)] = source[np.uintp(of + n)]
                    to += next_target
                    of += next_source


@compiled
def _clear(target: Array, gaps: Array) -> None:
    """Zeros from the first to before the second number of each gap."""
    for number in range(len(gaps)):
        for n in range(gaps[number, 0], gaps[number, 1]):
            target[np.uintp(n)] = 0


@compiled
def _multiply(blas: Array, calls: Array, columns: int, begins: Any, apart: tuple[int, int, int]) -> None:
    """Products, as `device.host.products.Products` has them, from these addresses on."""
    for number in range(len(calls)):
        product(
            blas[0],
            (blas[1], blas[2], blas[3]),
            (calls[number, 0], columns, calls[number, 1]),
            (begins[0] + 4 * calls[number, 2], apart[0]),
            (begins[1] + 4 * calls[number, 3], apart[1]),
            np.float32(1),
            (begins[2] + 4 * calls[number, 4], apart[2]),
        )


@called_with(
    f"(int64[::1], Tuple(({IMAGE}, float32[::1])), {MATRICES}, float32[:,::1], {CELLS}, {LISTS}, int64[:,::1], "
    f"int64[:,::1], {PAIR}, {PAIR})"
)
@compiled
def add_up(
    blas: Array,
    images: tuple[Array, Array],
    matrices: Array,
    biases: Array,
    cells: tuple[Array, Array],
    copies: tuple[Array, Array],
    gaps: Array,
    calls: Array,
    begins: tuple[int, int],
    apart: tuple[int, int],
) -> None:
    """Outputs of some rows of some bundles.

    Args:
        blas: int64, where BLAS's product is and the words of its order.
        images: float32 [numbers], what is multiplied and the result.
        matrices: float32 [bundles, matrices, rows, columns].
        biases: float32 [bundles, columns of a row of cells].
        cells: Memory for inputs and outputs, float32 [bundles, numbers].
        copies: From the image, and to the result.
        gaps: Inputs of a bundle that no copy writes: int64 [gaps, 2].
        begins: Where the first bundle begins in both images.
        apart: How far bundles lie apart in both.
    """
    inputs, outputs = cells
    several, row, columns = len(inputs), biases.shape[1], matrices.shape[3]
    _copy(inputs.reshape(-1), images[0], copies[0], (0, begins[0]), (several, inputs.shape[1], apart[0]))
    for bundle in range(several):
        _clear(inputs[bundle], gaps)
        for begin in range(0, outputs.shape[1], row):
            for n in range(row):
                outputs[bundle, np.uintp(begin + n)] = biases[bundle, n]
        addresses = (
            np.int64(inputs[bundle].ctypes.data),
            np.int64(matrices[bundle].ctypes.data),
            np.int64(outputs[bundle].ctypes.data),
        )
        _multiply(blas, calls, columns, addresses, (matrices.shape[2], columns, columns))
    _copy(images[1], outputs.reshape(-1), copies[1], (begins[1], 0), (several, apart[1], outputs.shape[1]))


@called_with(f"(int64[::1], UniTuple({IMAGE}, 2), {MATRICES}, {CELLS}, {LISTS}, {LISTS}, int64[:,::1], {PAIR}, {PAIR})")
@compiled
def sum_up(
    blas: Array,
    images: tuple[Array, Array],
    sums: Array,
    cells: tuple[Array, Array],
    copies: tuple[Array, Array],
    gaps: tuple[Array, Array],
    calls: Array,
    begins: tuple[int, int],
    apart: tuple[int, int],
) -> None:
    """Products of some rows of some bundles of two images, added to sums.

    Args:
        blas: As of `add_up`, like all that is not said here.
        images: float32 [numbers], whose channels become rows, and whose channels become columns.
        sums: float32 [bundles, matrices, rows, columns].
        cells: Memory for both, float32 [bundles, numbers].
        copies: From both.
    """
    left, right = cells
    several, rows, columns = len(left), sums.shape[2], sums.shape[3]
    _copy(left.reshape(-1), images[0], copies[0], (0, begins[0]), (several, left.shape[1], apart[0]))
    _copy(right.reshape(-1), images[1], copies[1], (0, begins[1]), (several, right.shape[1], apart[1]))
    for bundle in range(several):
        _clear(left[bundle], gaps[0])
        _clear(right[bundle], gaps[1])
        addresses = (left[bundle].ctypes.data, right[bundle].ctypes.data, sums[bundle].ctypes.data)
        _multiply(blas, calls, columns, addresses, (rows, columns, columns))
