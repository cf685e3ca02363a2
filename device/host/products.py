"""Many small matrix products, each accumulated into its result, which BLAS supports and numpy's matmul does not.

A sum of products then needs no further pass over its terms and no memory for them. OpenBLAS multiplies small matrices
in place, faster than large ones, which it copies first. A call from Python takes as long as a small product, and
threads wait for the GIL between calls. So a compiled loop makes the calls if it is loaded; otherwise Python makes the
same calls in the same order, with the same results.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.threads import numpy_library

Array = np.ndarray[Any, np.dtype[Any]]
NAMES: Final = ("scipy_cblas_sgemm64_", "cblas_sgemm64_")
CORE_NAMES: Final = tuple(f"{name}openblas_get_corename{bits}" for name in ("scipy_", "") for bits in ("64_", ""))
CORES_IN_PLACE: Final = (b"SkylakeX", b"Cooperlake", b"SapphireRapids")
UNPACKED: Final = 1_000_000  # multiply-adds up to which OpenBLAS does not copy what it multiplies
CALL_SECONDS: Final = 4e-6  # of a product that is begun from Python
BY_ROWS: Final = 101
AS_IT_IS: Final = 111
TRANSPOSED: Final = 112


class Matrix(NamedTuple):
    """The matrices of products, all in one float32 array."""

    values: Array
    distance: int  # Elements from one row, or column, to the next
    first: int = 0  # The element that products count from
    transposed: bool = False  # Its columns are in one piece each, not its rows

    @property
    def address(self) -> int:
        """Where the first element is."""
        return int(self.values.ctypes.data) + 4 * self.first


def blas_adds() -> bool:
    """Whether numpy has a BLAS that adds products: an OpenBLAS with 64-bit integers."""
    return sgemm_address() is not None


@cache
def multiplies_in_place() -> bool:
    """Whether OpenBLAS multiplies small matrices without copying them, as its kernels for AVX-512 do."""
    library = numpy_library()
    for name in CORE_NAMES if library is not None else ():
        if hasattr(library, name):
            core = getattr(library, name)
            core.restype = ctypes.c_char_p
            return core() in CORES_IN_PLACE
    return False


def add_products(calls: Array, columns: int, left: Matrix, right: Matrix, total: Matrix) -> None:
    """Adds products of ``columns`` columns to sums, in order; all rows must exist.

    ``calls`` are int64 [products, 5]: rows and depth, and the start of a product in both operands and in the sums.

    Raises:
        NotImplementedError: No BLAS can do it: `blas_adds` says so.
    """
    address = sgemm_address()
    if address is None:
        raise NotImplementedError("add_products: numpy has another BLAS; ask `blas_adds` first")
    words = BY_ROWS, *(TRANSPOSED if operand.transposed else AS_IT_IS for operand in (left, right))
    begins, distances = zip(*((matrix.address, matrix.distance) for matrix in (left, right, total)), strict=True)
    if worth_loading("device.host.product_loops", len(calls) * CALL_SECONDS):
        job = np.array((address, *words, columns, *begins, *distances), np.int64)
        loops_of("device.host.product_loops").add_products(job, calls)
        return
    operands = zip(*((calls[:, 2 + side] * 4 + begin).tolist() for side, begin in enumerate(begins)), strict=True)
    multiply = _sgemm(address)
    for (rows, depth), (at_left, at_right, at_total) in zip(calls[:, :2].tolist(), operands, strict=True):
        left_operand, right_operand = (at_left, distances[0]), (at_right, distances[1])
        multiply(*words, rows, columns, depth, 1.0, *left_operand, *right_operand, 1.0, at_total, distances[2])


@cache
def sgemm_address() -> int | None:
    """Where OpenBLAS's product of float32 matrices is; None if numpy has another BLAS."""
    library = numpy_library()
    name = next((name for name in NAMES if hasattr(library, name)), None)
    return None if name is None else ctypes.cast(getattr(library, name), ctypes.c_void_p).value


@cache
def _sgemm(address: int) -> Callable[..., None]:
    """The product as a Python function that releases the GIL."""
    size, number, matrix = ctypes.c_int64, ctypes.c_float, (ctypes.c_void_p, ctypes.c_int64)
    takes: tuple[Any, ...] = *[ctypes.c_int] * 3, *[size] * 3, number, *matrix, *matrix, number, *matrix
    return ctypes.CFUNCTYPE(None, *takes)(address)
