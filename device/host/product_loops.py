"""Products of BLAS in compiled loops, without Python in between; importing this module needs numba.

Loops of other files notice a change of `product` only once their own file changes (`device.host.compiling`).
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from device.host.compiling import called_with, compiled
from device.host.threads import depth_of_part

Array = np.ndarray[Any, np.dtype[Any]]
_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
_ir: Any = importlib.import_module("llvmlite.ir")


def _one_product(
    typing: Any, address: Any, orders: Any, sizes: Any, left: Any, right: Any, scale: Any, total: Any
) -> tuple[Any, Callable[..., Any]]:
    """A call of BLAS in a loop: ``total`` becomes ``scale`` times itself plus the product.

    ``address`` is that of `device.host.products.sgemm_address`. ``orders`` are the three int64 words that begin the
    call: the order of rows, and whether each matrix is transposed. ``sizes`` are rows, columns and depth. ``left``,
    ``right`` and ``total`` are each the address of a float32 matrix and the number of elements between the starts of
    its rows.
    """
    size = _numba.types.int64
    pair = _numba.types.UniTuple(size, 2)
    three = _numba.types.UniTuple(size, 3)
    signature = _numba.types.void(size, three, three, pair, pair, _numba.types.float32, pair)

    def make(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        order, whole, number = _ir.IntType(32), _ir.IntType(64), _ir.FloatType()
        alpha = _ir.Constant(number, 1.0)
        takes = [order] * 3 + [whole] * 3 + [number] + [whole] * 4 + [number] + [whole] * 2
        function = builder.inttoptr(arguments[0], _ir.FunctionType(_ir.VoidType(), takes).as_pointer())
        orders, sizes, left, right, total = (
            [builder.extract_value(several, at) for at in range(several.type.count)]
            for several in (*arguments[1:5], arguments[6])
        )
        words = [builder.trunc(each, order) for each in orders]
        builder.call(function, [*words, *sizes, alpha, *left, *right, arguments[5], *total])
        return context.get_dummy_value()

    return signature, make


product: Any = _extending.intrinsic(_one_product)
_depth_of_part: Any = compiled(depth_of_part)


@compiled
def product_in_parts(sgemm: Any, orders: Any, sizes: Any, left: Any, right: Any, scale: np.float32, total: Any) -> None:
    """``product`` of matrices by rows, summed up in the parts of `device.host.threads`."""
    rows, columns, depth = sizes
    done = 0
    while done < depth:
        part = _depth_of_part(depth - done)
        product(
            sgemm,
            orders,
            (rows, columns, part),
            (left[0] + 4 * done, left[1]),
            (right[0] + 4 * done * right[1], right[1]),
            scale if done == 0 else np.float32(1),
            total,
        )
        done += part


@called_with("(int64[::1], int64[:,::1])")
@compiled
def add_products(job: Array, calls: Array) -> None:
    """Makes the calls; a job is what `device.host.products.add_products` makes of its other arguments."""
    for i in range(len(calls)):
        product(
            job[0],
            (job[1], job[2], job[3]),
            (calls[i, 0], job[4], calls[i, 1]),
            (job[5] + 4 * calls[i, 2], job[8]),
            (job[6] + 4 * calls[i, 3], job[9]),
            np.float32(1),
            (job[7] + 4 * calls[i, 4], job[10]),
        )
