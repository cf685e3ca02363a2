"""Element-wise functions as rows of tables, and how a formula becomes a row."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final, TypeAlias

import numpy as np

from device.numbers.formats import INT32, UINT8, UINT16, UINT32, Array, DataFormat, Integers
from device.numbers.vector_unit import VectorUnitMode, cut_to_bfloat16, rounded_to_bfloat16

Parameters: TypeAlias = tuple[float, ...]
Values: TypeAlias = Callable[[Array, Parameters, VectorUnitMode], Array]  # float32 of float32, as Dst holds them
OfIntegers: TypeAlias = Callable[..., Integers]  # of integers and the parameters
ALL_INTEGERS: Final = (UINT8, UINT16, UINT32, INT32)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of every element."""

    text: str  # What ttnn's function gives, for its docstring; empty if ttsim has the activation alone
    values: Values
    integers: OfIntegers | None = None  # The function of integers; None if it takes floats alone
    integer_formats: tuple[DataFormat, ...] = ()  # Formats of integers that it takes
    _: KW_ONLY
    # Numbers of ttnn's function by name, with their defaults; None: the number must be given
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    # Bits of Dst with which values were compared with recordings of the real kernel
    compared: frozenset[int] = frozenset()
    # For the docstring's example: two numbers, and what the function gives for them in bfloat16; None if computed
    numbers: tuple[float, float] = (-1.0, 2.0)
    results: tuple[float, float] | None = None
    floats: tuple[DataFormat, ...] = ()  # Formats of floats that it takes; all if empty


def plain(function: Callable[[Array], Array]) -> Values:
    """A function whose result Dst holds as it is."""
    return lambda x, _, mode: function(x)


def nearest(function: Callable[..., Array]) -> Values:
    """A function in float64 of elements and parameters, whose kernel is not followed, rounded to Dst."""
    return lambda x, parameters, mode: stored(np.asarray(function(x.astype(np.float64), *parameters), np.float32), mode)


def stored(x: Array, mode: VectorUnitMode) -> Array:
    """A result as a kernel stores it that rounds for a 16-bit Dst."""
    return x if mode.fp32_dest else rounded_to_bfloat16(x)


def cut(x: Array, mode: VectorUnitMode) -> Array:
    """A result as a kernel stores it that does not round."""
    return x if mode.fp32_dest else cut_to_bfloat16(x)
