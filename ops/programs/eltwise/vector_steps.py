"""The number of instructions of the vector unit in element-wise functions.

An instruction processes one element per lane. `vector_tile_cycles` covers a function of a few instructions; `MEASURED`
has the additional instructions of longer functions, from profiler files (Blackhole: exp, atan, sigmoid, silu; Wormhole:
gelu). Other long functions count as `TYPICAL`.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from device.memory.memory_config import TILE
from device.spec.device_spec import DeviceSpec
from ops.programs.kernel_costs import ComputeCosts

MEASURED: Final[Mapping[str, int]] = MappingProxyType({"exp": 38, "atan": 47, "sigmoid": 30, "silu": 37, "gelu": 44})
TYPICAL: Final = 38  # of functions that compute an exponential, a logarithm or a long polynomial
_SHORT: Final = """
    abs neg sign signbit square sqrt recip identity bitcast fill typecast zero_point ceil floor round trunc frac
    relu relu6 relu_max relu_min leaky_relu prelu_sfpu threshold hardsigmoid hardtanh hardshrink softshrink heaviside
    add subtract rsub multiply div squared_difference maximum minimum mac_tss clamp_tss
    where where_tss where_tst where_tts
    add_unary_sfpu sub_unary_sfpu mul_unary_sfpu div_unary_sfpu
    eq ne gt ge lt le eqz nez gtz gez ltz lez unary_eq unary_ne unary_gt unary_ge unary_lt unary_le
    isfinite isinf isnan isneginf isposinf logical_not_unary
    bitwise_and bitwise_or bitwise_xor bitwise_not left_shift right_shift bitwise_left_shift bitwise_right_shift
    logical_right_shift
"""
SHORT: Final = frozenset(_SHORT.split())  # functions of a few instructions


def vector_cycles(spec: DeviceSpec, function: str) -> float:
    """Cycles of one tile that passes the vector unit for a function."""
    more = 0 if function in SHORT else MEASURED.get(function, TYPICAL)
    return spec.costs_of(ComputeCosts).vector_tile_cycles + more * TILE**2 / spec.compute.vector_lanes


def chain_cycles(spec: DeviceSpec, functions: Iterable[tuple[str, tuple[float, ...]]]) -> float:
    """Cycles of one tile for several functions, in sequence."""
    return sum(vector_cycles(spec, name) for name, _ in functions)
