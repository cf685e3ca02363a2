"""Many small products of matrices, each added to what is there: BLAS can do so, numpy's matmul cannot.

A sum of products then needs no further pass over its terms, and no memory for them. OpenBLAS multiplies small matrices
in place, faster than large ones that it has to copy first; but a call from Python takes as long as a small product, and
threads wait for each other in between. So a compiled loop makes the calls where it is loaded; otherwise Python makes
the same calls in the same order, with the same numbers.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.threads import numpy_library

Array = np.ndarray[Any, np.dtype[Any]]
NAMES: Final = ("scipy_cblas_sgemm64_", "cblas_sgemm64_")
CORE_NAMES: Final = tuple(f"{name}openblas_get_corename{bits}" for name in ("scipy_", "") for bits in ("64_", ""))
CORES_IN_PLACE: Final = (b"SkylakeX", b"Cooperlake", b"SapphireRapids")
UNPACKED: Final = 1_000_000  # multiply-adds up to which OpenBLAS does not copy what it multiplies
SMALL: Final = 30_000  # multiply-adds of a product that takes less than to let another thread in
CALL_SECONDS: Final = 4e-6  # of a product that is begun from Python
BY_ROWS: Final = 101
AS_IT_IS: Final = 111
_TRANSPOSED: Final = 112


class Matrix(NamedTuple):
    """How a matrix lies in memory."""

    transposed: bool  # Its columns are in one piece each, not its rows
    distance: int  # Elements from one row, or column, to the next

    @property
    def order(self) -> int:
        """What BLAS calls it."""
        return _TRANSPOSED if self.transposed else AS_IT_IS


class Loop(NamedTuple):
    """So often everything is repeated, each time so many elements further."""

    times: int  # How often
    left: int = 0  # Elements to go on in the first operand
    right: int = 0  # In the second one
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Products:
    """Products in their order, each added to a matrix of sums."""

    calls: Array  # int64 [products, 5]: rows and depth, and where a product begins in both operands and in the sums
    columns: int  # Of every product
    left: Matrix  # How the first operands lie
    right: Matrix  # How the second ones lie
    total_distance: int  # Elements from one row of sums to the next
    loops: tuple[Loop, Loop]  # How often all calls are repeated, outermost first


class Operands(NamedTuple):
    """Where the elements 0 of operands and sums of `Products` are: views of float32, and elements from their first."""

    left: Array
    right: Array
    total: Array
    left_first: int = 0
    right_first: int = 0
    total_first: int = 0


def blas_adds() -> bool:
    """Whether numpy has a BLAS that adds products: an OpenBLAS with 64-bit integers."""
    return _sgemm() is not None


@cache
def multiplies_in_place() -> bool:
    """Whether OpenBLAS does not copy what it multiplies where that is small: its kernels for AVX-512 do not."""
    library = numpy_library()
    for name in CORE_NAMES if library is not None else ():
        if hasattr(library, name):
            core = getattr(library, name)
            core.restype = ctypes.c_char_p
            return core() in CORES_IN_PLACE
    return False


def sgemm_address() -> int | None:
    """Where OpenBLAS's product of float32 matrices is, for compiled loops; None if numpy has another BLAS."""
    sgemm = _sgemm()
    return None if sgemm is None else sgemm.address


def blas_words(products: Products) -> Array:
    """The address of BLAS's product and the words of its order, for compiled loops: int64 [4]."""
    return np.array((_known_sgemm().address, BY_ROWS, products.left.order, products.right.order), np.int64)


def add_products(products: Products, operands: Operands, first: int, last: int) -> None:
    """Adds the products from ``first`` to before ``last`` to the sums, in every repetition; all rows have to exist.

    Raises:
        NotImplementedError: No BLAS can do it: `blas_adds` says so.
    """
    sgemm = _known_sgemm()
    begins = (
        operands.left.ctypes.data + 4 * operands.left_first,
        operands.right.ctypes.data + 4 * operands.right_first,
        operands.total.ctypes.data + 4 * operands.total_first,
    )
    several = (last - first) * products.loops[0].times * products.loops[1].times
    if worth_loading("device.host.product_loops", several * CALL_SECONDS):
        lies = (products.left.distance, products.right.distance, products.total_distance)
        loops = (*products.loops[0], *products.loops[1])
        job = np.array((*blas_words(products), products.columns, *begins, *lies, *loops), np.int64)
        loops_of("device.host.product_loops").add_products(job, products.calls[first:last])
    else:
        calls = products.calls[first:last]
        small = calls[:, 0] @ calls[:, 1] * products.columns < SMALL * len(calls)
        _one_by_one(sgemm.multiply_small if small else sgemm.multiply, products, begins, calls)


def _one_by_one(multiply: Callable[..., None], products: Products, begins: tuple[int, int, int], calls: Array) -> None:
    """The calls of BLAS by Python."""
    n, into = products.columns, products.total_distance
    (left_order, left_distance), (right_order, right_distance) = (
        (lies.order, lies.distance) for lies in (products.left, products.right)
    )
    places = calls.copy()
    places[:, 2:] = 4 * calls[:, 2:] + begins
    numbers = places.tolist()
    for on in _repeated(products.loops):
        a, b, c = (4 * elements for elements in on)
        for rows, depth, left, right, total in numbers:
            multiply(
                BY_ROWS,
                left_order,
                right_order,
                rows,
                n,
                depth,
                1.0,
                left + a,
                left_distance,
                right + b,
                right_distance,
                1.0,
                total + c,
                into,
            )


def _repeated(loops: tuple[Loop, Loop]) -> list[tuple[int, int, int]]:
    """Offsets of every repetition in both operands and in the sums."""
    outer, inner = loops
    return [
        (a * outer.left + b * inner.left, a * outer.right + b * inner.right, a * outer.total + b * inner.total)
        for a, b in product(range(outer.times), range(inner.times))
    ]


class _Sgemm(NamedTuple):
    """OpenBLAS's product of float32 matrices."""

    multiply: Callable[..., None]  # For Python; other threads run meanwhile
    multiply_small: Callable[..., None]  # Keeps the interpreter's lock: waiting for it would take longer than the work
    address: int  # For compiled loops


def _known_sgemm() -> _Sgemm:
    """OpenBLAS's product, which the caller knows to exist."""
    sgemm = _sgemm()
    if sgemm is None:
        raise NotImplementedError("add_products: numpy has another BLAS; ask `blas_adds` first")
    return sgemm


@cache
def _sgemm() -> _Sgemm | None:
    """OpenBLAS's product; None if numpy has another BLAS."""
    library = numpy_library()
    name = next((name for name in NAMES if hasattr(library, name)), None)
    if name is None:
        return None
    size, place, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float
    matrix = (place, size)
    takes: tuple[Any, ...] = (*[ctypes.c_int] * 3, *[size] * 3, number, *matrix, *matrix, number, *matrix)
    address = ctypes.cast(getattr(library, name), place).value or 0
    return _Sgemm(ctypes.CFUNCTYPE(None, *takes)(address), ctypes.PYFUNCTYPE(None, *takes)(address), address)
