"""Fused activations on Dst, as the vector unit computes them. ReLU is not here: the packer does it exactly.

Some follow the device's own kernel step by step and have its bits, others are floating-point functions that differ by a
last place in some values (docs/values.md, Activation, says which).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from device.errors import DeviceError
from device.numbers.formats import Array
from device.numbers.vector_unit import (
    cut_to_bfloat16,
    long_exponential,
    multiply_add,
    polynomial,
    reciprocal,
    rounded_to_bfloat16,
    rounded_to_even_bfloat16,
    short_exponential,
    square_root,
)

GELU_ZERO: Final = -5.54259443  # gelu is 0 up to here,
GELU_TAIL: Final = -3.125  # x times its share of the normal distribution by an exponential up to here,
GELU_LINE: Final = 2.78125  # by a polynomial up to here, and x behind
GELU_SHARE: Final = (
    3.9894227818e-01, -6.6361041488e-02, 9.7720050615e-03, -1.0717806322e-03, 8.1812159812e-05, -3.8082057209e-06,
    7.9821413868e-08,
)  # fmt: skip
GELU_TAIL_SHARE: Final = (3.0369991064e-01, 9.5413386822e-02, 1.3809983619e-02, 7.5950479368e-04)
GELU_GRID: Final = 0.375  # added and taken off again, it rounds the share to multiples of 2**-25
SHORT_EXP_CONSTANT: Final = 1.001953125  # the exp kernel loads the constant of its parabola as a float16
TANH: Final = (
    0.0, 0.999004364013671875, 3.0897438526153564453125e-2, -0.4890659749507904052734375, 0.281917631626129150390625,
    -6.6649019718170166015625e-2, 5.876733921468257904052734375e-3,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnitMode:
    """How the vector unit is set up."""

    fp32_dest: bool  # Whether Dst keeps 32 bits of a number; otherwise 16 (bfloat16)
    reciprocal_table: bool  # Whether it has a table of reciprocals (a figure of the device)


_Function = Callable[[Array, tuple[float, ...], VectorUnitMode], Array]


def _nearest(function: Callable[[Array], Array]) -> _Function:
    """A function in float64 whose kernel is not followed, rounded to Dst."""
    return lambda x, _, mode: _stored(np.asarray(function(x.astype(np.float64)), np.float32), mode)


def _stored(x: Array, mode: VectorUnitMode) -> Array:
    """A result as a kernel stores it that rounds for a 16-bit Dst."""
    return x if mode.fp32_dest else rounded_to_bfloat16(x)


def _cut(x: Array, mode: VectorUnitMode) -> Array:
    """A result as a kernel stores it that does not."""
    return x if mode.fp32_dest else cut_to_bfloat16(x)


def _exp(x: Array, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        return long_exponential(x)
    return rounded_to_bfloat16(short_exponential(x, constant=SHORT_EXP_CONSTANT))


def _sigmoid(x: Array, mode: VectorUnitMode) -> Array:
    """1 / (1 + exp(-x)), not yet rounded to Dst."""
    power = long_exponential(-x) if mode.fp32_dest else short_exponential(-x)
    steps = 2 if mode.fp32_dest else 1
    return reciprocal(multiply_add(power, 1.0, 1.0), steps=steps, from_table=mode.reciprocal_table)


def _gelu(x: Array, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        wide = x.astype(np.float64)
        return np.asarray(0.5 * wide * (1.0 + _erf(wide / np.sqrt(2.0))), np.float32)
    squared = multiply_add(x, x, 0.0)
    power = short_exponential(squared, scale=-0.72134752044)
    share = multiply_add(power, polynomial(x, GELU_TAIL_SHARE), 0.0)
    share = multiply_add(multiply_add(share, 1.0, GELU_GRID), 1.0, -GELU_GRID)
    tail = multiply_add(x, share, 0.0)
    middle = multiply_add(x, multiply_add(x, polynomial(squared, GELU_SHARE), 0.5), 0.0)
    line = np.where(x >= np.float32(GELU_LINE), x, np.where(x >= np.float32(GELU_TAIL), middle, tail))
    return rounded_to_bfloat16(np.where(x > np.float32(GELU_ZERO), line, np.float32(0)))


def _tanh(x: Array, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        return np.asarray(np.tanh(x.astype(np.float64)), np.float32)
    return rounded_to_bfloat16(np.copysign(np.minimum(polynomial(np.abs(x), TANH), np.float32(1)), x))


def _square(x: Array, mode: VectorUnitMode) -> Array:
    squared = multiply_add(x, x, 0.0)
    return squared if mode.fp32_dest else rounded_to_even_bfloat16(squared)


def _leaky_relu(x: Array, parameters: tuple[float, ...], mode: VectorUnitMode) -> Array:
    slope = parameters[0] if parameters else 0.01
    return _cut(np.where(x < 0, multiply_add(x, slope, 0.0), x), mode)


def _hardsigmoid(x: Array) -> Array:
    """A sixth of x plus a half, between 0 and 1; not yet stored."""
    return np.clip(multiply_add(x, 0.1666666716337204, 0.5), np.float32(0), np.float32(1))


def _elu(x: Array, parameters: tuple[float, ...], mode: VectorUnitMode) -> Array:
    wide = x.astype(np.float64)
    below = (parameters[0] if parameters else 1.0) * np.expm1(np.minimum(wide, 0))
    return _stored(np.asarray(np.where(wide > 0, wide, below), np.float32), mode)


def _erf(x: Array) -> Array:
    """Error function to 1.2e-7 (Numerical Recipes' rational approximation of erfc)."""
    t = 1.0 / (1.0 + 0.5 * np.abs(x))
    coefficients = (
        -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
        0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
    )  # fmt: skip
    tail = t * np.exp(-x * x + np.polynomial.polynomial.polyval(t, coefficients))
    return np.asarray(np.where(x >= 0, 1.0 - tail, tail - 1.0))


FUNCTIONS: Final[Mapping[str, _Function]] = MappingProxyType(
    {
        "abs": lambda x, _, mode: np.abs(x),
        "elu": _elu,
        "exp": lambda x, _, mode: _exp(x, mode),
        "gelu": lambda x, _, mode: _gelu(x, mode),
        "hardswish": lambda x, _, mode: _stored(multiply_add(x, _hardsigmoid(x), 0.0), mode),
        "hardsigmoid": lambda x, _, mode: _cut(_hardsigmoid(x), mode),
        "leaky_relu": _leaky_relu,
        "log": _nearest(np.log),
        "neg": lambda x, _, mode: -x,
        "relu6": lambda x, _, mode: np.clip(x, np.float32(0), np.float32(6)),
        "sigmoid": lambda x, _, mode: _stored(_sigmoid(x, mode), mode),
        "silu": lambda x, _, mode: _stored(multiply_add(x, _sigmoid(x, mode), 0.0), mode),
        "softplus": _nearest(lambda x: np.logaddexp(0.0, x)),
        "sqrt": lambda x, _, mode: _stored(square_root(x), mode),
        "square": lambda x, _, mode: _square(x, mode),
        "tanh": lambda x, _, mode: _tanh(x, mode),
    }
)


def apply_activation(dst: Array, name: str, parameters: tuple[float, ...], *, mode: VectorUnitMode) -> Array:
    """An activation of every element of Dst.

    Args:
        dst: float32, any shape.
        name: ttnn's name in lower case, for example "gelu".
        parameters: Its parameters, for example the slope of "leaky_relu"; defaults stand for those left out.
        mode: The vector unit.

    Returns:
        float32, the same shape, in bfloat16's values where Dst is 16 bits wide.

    Raises:
        DeviceError: No such activation.
    """
    if name not in FUNCTIONS:
        raise DeviceError(
            f"Unsupported activation {name.upper()}\nactivation must be one of RELU, {', '.join(FUNCTIONS).upper()}"
        )
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name](dst.astype(np.float32), parameters, mode), np.float32)
