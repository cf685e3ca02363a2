"""The table of functions of two operands: computation, formats, and buffers.

Rows have the names of tt-metal 0.81.1's BinaryOpType. Sums, differences and products follow the kernels
(`ops.programs.eltwise.op`); all other functions are computed by their definitions, in float64, and rounded to Dst once.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.numbers.formats import (
    BFLOAT4_B,
    BFLOAT8_B,
    BFLOAT16,
    FLOAT32,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    Array,
    DataFormat,
)
from ops.programs.eltwise.special import erf

FLOATS: Final = (BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B)
WORDS: Final = (INT32, UINT32, UINT16)
ALL: Final = (*FLOATS, *WORDS)


@dataclass(frozen=True, slots=True)
class Pair:
    """A function of two operands."""

    op: str  # Its name in errors, of BinaryOpType
    values: Callable[..., Any]  # Of both operands and the operation's numbers: float64, or integers
    formats: tuple[DataFormat, ...] = FLOATS  # Formats of an operand
    _: KW_ONLY
    mixed: tuple[DataFormat, ...] = ()  # Formats of which two different ones go together
    # Functions of the operands that have buffers of their own: left, right
    before: tuple[str, str] = ("", "")
    always_before: bool = True  # False: not if the vector unit computes the function
    vector_unit: bool = True  # Whether the vector unit always computes it; otherwise only integers and `alike`
    alike: tuple[DataFormat, ...] = (FLOAT32,)  # Floats of which the vector unit combines two operands of one format
    fast: tuple[str, str] | None = None  # `before` of the fast mode, which the matrix unit computes


def _square_of_difference(a: Array, b: Array) -> Array:
    return np.asarray(np.square(a - b))


def _close(a: Array, b: Array, relative: float, absolute: float, equal_nan: float) -> Array:
    close = np.abs(a - b) <= absolute + relative * np.abs(b)
    return np.asarray(close | (a == b) | (bool(equal_nan) & np.isnan(a) & np.isnan(b)))


def _gelu(total: Array) -> Array:
    """GELU of a sum in float64."""
    return np.asarray(0.5 * total * (1 + erf(total / np.sqrt(2))))


def _xlogy(a: Array, b: Array) -> Array:
    return np.where((a == 0) & ~np.isnan(b), 0.0, a * np.log(b))


def _shifted(shift: Callable[[Array, Array], Array], *, beyond: Callable[[Array], Array]) -> Callable[..., Array]:
    """A shift by 0 to 31 bits; other distances give a fixed number."""

    def values(a: Array, b: Array) -> Array:
        return np.where((b >= 0) & (b < 32), shift(a, np.clip(b, 0, 31)), beyond(a))

    return values


def _divided(rounding: Callable[[Array], Array]) -> Callable[..., Array]:
    """A quotient of integers, rounded; zero for a division by zero."""

    def values(a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.where(b == 0, 0, rounding(a / np.where(b == 0, 1, b))).astype(np.int64)

    return values


def _next(a: Array, b: Array) -> Array:
    return np.nextafter(a.astype(np.float32), b.astype(np.float32)).astype(np.float64)


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(np.remainder(a, b))


def _joined(rows: Mapping[str, Callable[..., Any]]) -> dict[str, Pair]:
    """Comparisons, of operands of all formats."""
    return {
        name: Pair(name.upper(), values, (*ALL, UINT8), mixed=FLOATS, vector_unit=False, alike=(BFLOAT16, FLOAT32))
        for name, values in rows.items()
    }


def _logical(combined: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda a, b: combined(a != 0, b != 0)


NOT_ZERO: Final = ("nez", "nez")
PAIRS: Final[Mapping[str, Pair]] = MappingProxyType(
    {
        "add": Pair("ADD", np.add, ALL, mixed=FLOATS, vector_unit=False),
        "subtract": Pair("SUB", np.subtract, ALL, mixed=FLOATS, vector_unit=False),
        "multiply": Pair("MUL", np.multiply, ALL, mixed=FLOATS, fast=("", "")),
        "div": Pair("DIV", np.divide, (*FLOATS, INT32), mixed=FLOATS, fast=("", "recip")),
        "rsub": Pair(
            "RSUB", lambda a, b: b - a, ALL, mixed=FLOATS, vector_unit=False, before=("neg", ""), always_before=False
        ),
        "squared_difference": Pair("SQUARED_DIFFERENCE", _square_of_difference, ALL, mixed=FLOATS, vector_unit=False),
        **_joined(
            {
                "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less,
                "le": np.less_equal,
            }
        ),
        **{
            name: Pair(name.upper(), _logical(combined), ALL, mixed=FLOATS, vector_unit=False, before=NOT_ZERO)
            for name, combined in {
                "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
            }.items()
        },
        "maximum": Pair("MAXIMUM", np.maximum, (*FLOATS, INT32, UINT32)),
        "minimum": Pair("MINIMUM", np.minimum, (*FLOATS, INT32, UINT32)),
        "remainder": Pair("REMAINDER", _remainder, (*FLOATS, INT32, UINT32)),
        "fmod": Pair("FMOD", np.fmod, (*FLOATS, INT32)),
        "pow": Pair("POWER", np.power, FLOATS),
        "bitwise_and": Pair("BITWISE_AND", np.bitwise_and, WORDS),
        "bitwise_or": Pair("BITWISE_OR", np.bitwise_or, WORDS),
        "bitwise_xor": Pair("BITWISE_XOR", np.bitwise_xor, WORDS),
        "bitwise_left_shift": Pair("LEFT_SHIFT", _shifted(np.left_shift, beyond=np.zeros_like), WORDS),
        "bitwise_right_shift": Pair("RIGHT_SHIFT", _shifted(np.right_shift, beyond=lambda a: a >> 31), WORDS),
        "logical_right_shift": Pair(
            "LOGICAL_RIGHT_SHIFT",
            _shifted(lambda a, b: (a & 0xFFFFFFFF) >> b, beyond=np.zeros_like),
            (INT32, UINT32),
        ),
        "logaddexp": Pair("LOGADDEXP", np.logaddexp),
        "logaddexp2": Pair("LOGADDEXP2", np.logaddexp2),
        "ldexp": Pair("LDEXP", lambda a, b: a * np.exp2(b), before=("", "exp2"), vector_unit=False),
        "hypot": Pair("HYPOT", np.hypot, before=("square", "square"), vector_unit=False),
        "xlogy": Pair("XLOGY", _xlogy),
        "atan2": Pair("ATAN2", np.arctan2),
        "nextafter": Pair("NEXTAFTER", _next, (BFLOAT16, FLOAT32)),
        "isclose": Pair("ISCLOSE", _close, mixed=(BFLOAT16, FLOAT32)),
        "bias_gelu": Pair("BIAS_GELU", lambda a, b: _gelu(a + b), vector_unit=False),
        "gcd": Pair("GCD", np.gcd, (INT32,)),
        "lcm": Pair("LCM", np.lcm, (INT32,)),
        "div_floor": Pair("DIV_FLOOR", _divided(np.floor), (INT32,)),
        "div_trunc": Pair("DIV_TRUNC", _divided(np.trunc), (INT32,)),
        "where_tts": Pair("WHERE_TTS", lambda a, b, number: np.where(a != 0, b, number), (*FLOATS, INT32, UINT32)),
        "where_tst": Pair("WHERE_TST", lambda a, b, number: np.where(a != 0, number, b), (*FLOATS, INT32, UINT32)),
    }
)  # fmt: skip
