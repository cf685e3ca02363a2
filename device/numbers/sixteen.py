"""The largest exponent of sixteen neighbors for each of them, in compiled loops.

A loop over sixteen numbers is no vector instruction, and takes longer than the rounding that follows. Importing this
module needs numba. Loops of other files notice a change of `spread_exponents` only once their own file changes
(`device.host.compiling`).
"""

import importlib
from collections.abc import Callable
from typing import Any, Final

_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
_ir: Any = importlib.import_module("llvmlite.ir")
SIXTEEN: Final = 16
_FIELD: Final = 0x7F800000


def _spread_exponents(typing: Any, bits: Any, first: Any, added: Any, tops: Any) -> tuple[Any, Callable[..., Any]]:
    """Writes the largest exponent field of sixteen neighbors to ``tops``, sixteen times.

    ``bits`` are contiguous int32 bit patterns of float32; all sixteen from ``first`` exist. ``added`` is added to them
    before: half of the value of the lowest bit that is kept.
    """
    signature = _numba.types.void(bits, _numba.types.intp, _numba.types.int32, tops)

    def make(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sixteen = _ir.VectorType(_ir.IntType(32), SIXTEEN)

        def place(of: int) -> Any:
            array = context.make_array(signature.args[of])(context, builder, arguments[of])
            return builder.bitcast(builder.gep(array.data, [arguments[1]]), sixteen.as_pointer())

        def order(places: list[int]) -> Any:
            return _ir.Constant(sixteen, places)

        vector = builder.insert_element(
            _ir.Constant(sixteen, _ir.Undefined), arguments[2], _ir.Constant(_ir.IntType(32), 0)
        )
        halves = builder.shuffle_vector(vector, vector, order([0] * SIXTEEN))
        largest = builder.add(builder.load(place(0), align=4), halves)
        largest = builder.and_(largest, order([_FIELD] * SIXTEEN))
        for distance in (8, 4, 2, 1):
            others = builder.shuffle_vector(largest, largest, order([at ^ distance for at in range(SIXTEEN)]))
            largest = builder.select(builder.icmp_signed(">", largest, others), largest, others)
        builder.store(largest, place(3), align=4)
        return context.get_dummy_value()

    return signature, make


spread_exponents: Any = _extending.intrinsic(_spread_exponents)
