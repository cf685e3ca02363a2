"""The vector unit: what its instructions do to a float32, and the elementary functions that kernels make of them.

A register holds a float32. A multiplication with addition rounds once, to nearest even, and makes zero of a denormal.
What is stored into a 16-bit Dst loses its lower half unless the kernel rounds it first. The functions follow the
kernels of tt-metal 0.81.1 for both architectures step by step, since every step rounds (docs/values.md, Activation).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from device.errors import DeviceError
from device.numbers.formats import Array

SMALLEST_NORMAL: Final = np.float32(2.0**-126)
SIGN: Final = np.uint32(0x80000000)
FRACTION: Final = np.uint32(0x007FFFFF)
IMPLICIT_ONE: Final = np.uint32(0x00800000)
MINUS_ONE: Final = np.uint32(0xBF800000)
UPPER_HALF: Final = np.uint32(0xFFFF0000)
FRACTION_BITS: Final = 23
BIAS: Final = 127

LOG2_E: Final = 1.4426950216293335
TWO_TO_THE_FRACTION: Final = (1.0017248, 7.839635491371155e-08, 4.791750143340323e-15)  # 2**(n / 2**23), n < 2**23
EXPONENTIAL: Final = (1.0, 1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3)
LN_2_PARTS: Final = (-6.93145752e-1, -1.42860677e-6)
RECIPROCAL: Final = (2.121212482452392578125, 1.4545459747314453125, 0.3232325017452239990234375)  # of -x, 1 <= x < 2
LARGEST_INVERTED: Final = 2.0**126  # the table of reciprocals has none for more
SQUARE_ROOT_SEED: Final = 0x5F1110A0
SQUARE_ROOT: Final = (2.2825186, 2.2533049)


def multiply_add(factor: Array, other: Array | float, addend: Array | float) -> Array:
    """``factor * other + addend``, rounded once; float32 of the same shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact = factor.astype(np.float64) * np.asarray(other, np.float32).astype(np.float64)
        total = (exact + np.asarray(addend, np.float32).astype(np.float64)).astype(np.float32)
    return np.where(np.abs(total) < SMALLEST_NORMAL, np.float32(0), total)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """A polynomial in Horner's form, from the constant on."""
    total = np.full(x.shape, coefficients[-1], np.float32)
    for coefficient in coefficients[-2::-1]:
        total = multiply_add(total, x, coefficient)
    return total


def rounded_to_bfloat16(x: Array) -> Array:
    """To the nearest bfloat16, a half away from zero."""
    return _floats((_bits(x) + np.uint32(0x8000)) & UPPER_HALF)


def rounded_to_even_bfloat16(x: Array) -> Array:
    """To the nearest bfloat16, a half to the even one."""
    bits = _bits(x)
    return _floats((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & UPPER_HALF)


def cut_to_bfloat16(x: Array) -> Array:
    """What a store into a 16-bit Dst leaves."""
    return _floats(_bits(x) & UPPER_HALF)


def short_exponential(x: Array, *, scale: float = LOG2_E, constant: float = TWO_TO_THE_FRACTION[0]) -> Array:
    """E to the x, right to some 21 bits: 2 to the ``x * scale`` with a parabola for the fraction.

    Args:
        x: float32.
    """
    shifted = np.clip(multiply_add(x, scale, BIAS), np.float32(0), np.float32(255))
    bits = _bits(shifted)
    places = (bits >> np.uint32(FRACTION_BITS)).astype(np.int64) - BIAS
    fixed = ((bits & FRACTION) | IMPLICIT_ONE).astype(np.int64)
    fixed = np.where(places >= 0, fixed << np.maximum(places, 0), fixed >> np.minimum(-places, 63))
    fraction = (fixed & int(FRACTION)).astype(np.float32)
    power = polynomial(fraction, (constant, *TWO_TO_THE_FRACTION[1:]))
    return _with_exponent(power, (fixed >> FRACTION_BITS) & 0xFF)


def long_exponential(x: Array) -> Array:
    """E to the x, right to a last place: what kernels take with a 32-bit Dst."""
    ratio = multiply_add(x, 1.442695, 0.0)
    whole = np.copysign(np.floor(np.minimum(np.abs(ratio), np.float32(32767)) + np.float32(0.5)), ratio)
    rest = multiply_add(whole, LN_2_PARTS[1], multiply_add(whole, LN_2_PARTS[0], x))
    power = polynomial(rest, EXPONENTIAL)
    exponent = (_bits(power) >> np.uint32(FRACTION_BITS)).astype(np.int64) + whole.astype(np.int64)
    result = _with_exponent(power, np.clip(exponent, 0, 255))
    return np.where(exponent < 1, np.float32(0), np.where(exponent < 255, result, np.float32(np.inf)))


def reciprocal(x: Array, *, steps: int, from_table: bool) -> Array:
    """One over x.

    Args:
        x: float32.
        steps: Of Newton's method.
        from_table: It starts from the vector unit's table of reciprocals, else from a parabola.
    """
    return _from_table(x, steps) if from_table else _from_parabola(x, steps)


def square_root(x: Array) -> Array:
    """The square root; NaN below zero."""
    start = _floats(np.uint32(SQUARE_ROOT_SEED) - (_bits(x) >> np.uint32(1)))
    product = multiply_add(x, start, 0.0)
    short = multiply_add(-start, product, 0.0)
    inner = multiply_add(short, 1.0, SQUARE_ROOT[1])
    inverse = multiply_add(start, multiply_add(short, inner, SQUARE_ROOT[0]), 0.0)
    product = multiply_add(x, inverse, 0.0)
    short = multiply_add(-inverse, product, 1.0)
    root = multiply_add(short, multiply_add(product, 0.5, 0.0), product)
    root = np.where(np.isinf(x), x, root)
    return np.where(x == 0, x, np.where(x < 0, np.float32(np.nan), root))


def _from_parabola(x: Array, steps: int) -> Array:
    bits = _bits(x)
    negative = _floats((bits & FRACTION) | MINUS_ONE)  # between -1 and -2
    inverse = polynomial(negative, RECIPROCAL)
    for _ in range(steps):
        inverse = multiply_add(inverse, multiply_add(negative, inverse, 1.0), inverse)
    scale = multiply_add(_floats(~bits & ~FRACTION), 0.5, 0.0)  # the exponent that brings it back
    return np.copysign(multiply_add(inverse, scale, 0.0), x)


def _from_table(x: Array, steps: int) -> Array:
    bits = _bits(np.abs(x))
    # The table's entry is the reciprocal of the middle of the 128th of [1, 2) that x lies in, in 7 bits.
    part = (bits >> np.uint32(16)) & np.uint32(0x7F)
    entry = np.floor(256 / (1 + (part + 0.5) / 128) - 128 + 0.5).astype(np.uint32)
    exponent = np.uint32(2 * BIAS - 1) - (bits >> np.uint32(FRACTION_BITS))
    inverse = _floats((exponent << np.uint32(FRACTION_BITS)) | (entry << np.uint32(16)))
    size = np.abs(x)
    inverse = np.where(size < SMALLEST_NORMAL, np.float32(np.inf), np.where(size < LARGEST_INVERTED, inverse, 0))
    inverse = np.copysign(inverse.astype(np.float32), x)
    error = multiply_add(x, inverse, -2.0)
    better = inverse
    for step in range(steps):
        better = multiply_add(better, -(error if step == 0 else multiply_add(x, better, -2.0)), 0.0)
    return np.where(error < 0, better, inverse)


def _with_exponent(x: Array, exponent: Array) -> Array:
    """Sign and fraction of x with another (biased) exponent; what has none is zero."""
    bits = (_bits(x) & (SIGN | FRACTION)) | (exponent.astype(np.uint32) << np.uint32(FRACTION_BITS))
    return np.where(exponent == 0, np.float32(0), _floats(bits))


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def _floats(bits: Array) -> Array:
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)


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


NARROW: Final = 16  # bits of Dst: bfloat16 and block floats
WIDE: Final = 32  # float32, or any format under fp32_dest_acc_en

COMPARED: Final[Mapping[str, frozenset[int]]] = MappingProxyType(
    {
        "relu": frozenset({NARROW, WIDE}),
        "leaky_relu": frozenset({NARROW, WIDE}),
        "exp": frozenset({NARROW}),
        "gelu": frozenset({NARROW}),
        "relu6": frozenset({NARROW}),
        "sigmoid": frozenset({NARROW}),
        "silu": frozenset({NARROW}),
        "sqrt": frozenset({NARROW}),
    }
)
UNCOMPARED_CALLS: Final = frozenset({"conv1d", "add_", "subtract_", "multiply_", "sub_", "mul_"})


def comparison(name: str) -> str:
    """A sentence for the documentation of a function: in which formats it was compared."""
    widths = COMPARED.get(name, frozenset())
    if not widths:
        return "Its numbers were never compared with recordings of the real kernel."
    if WIDE in widths:
        return "Its bits were compared with recordings of the real kernel."
    return "Its bits were compared with recordings of the real kernel in bfloat16 and block floats, never in float32."


def uncompared(names: Iterable[str], *, fp32_dest: bool, fused_into: str = "") -> str | None:
    """Part of a sentence that names the functions of an operation that were never compared; None if all were.

    Args:
        names: The functions; what only fills or moves is left out.
        fp32_dest: Whether Dst is 32 bits wide.
        fused_into: An operation of two tensors that applies them; none of these was compared.
    """
    width = WIDE if fp32_dest else NARROW
    told = [name for name in names if name in FUNCTIONS or name == "relu"]
    told = [name for name in told if fused_into or width not in COMPARED.get(name, ())]
    if not told:
        return None
    where = f" fused into {fused_into}" if fused_into else f" in a {width}-bit Dst"
    return f"numbers of {' and '.join(told)}{where} never compared with the real kernel's"
