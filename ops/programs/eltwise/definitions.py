"""Element-wise functions that are computed by their definitions, in float64, and rounded to Dst once.

They do not follow the kernels, and their values were never compared with recordings of the real kernels. Rows have the
lower-case names of ttnn's UnaryOpType; `ops.programs.eltwise.functions` contains these rows as well.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16, UINT32, Array, DataFormat
from ops.programs.eltwise import special
from ops.programs.eltwise.function import ALL_INTEGERS, Function, OfIntegers, nearest

WITH_SIGN: Final = (INT32,)
WORDS: Final = (UINT16, UINT32, INT32)
LONG_WORDS: Final = (UINT32, INT32)
DEGREES: Final = 180 / np.pi
SELU_SCALE: Final = 1.0506999492645264
SELU_ALPHA: Final = 1.673259973526001
XIELU_ALPHA: Final = 0.800000011920929
XIELU_LEAST: Final = -1e-6  # exponents of xielu end here
ROUNDINGS: Final = (lambda x: x, np.trunc, np.floor)  # of rdiv, by the number of its mode


def by_number(text: str, formula: Callable[..., Array], formats: tuple[DataFormat, ...] = ()) -> Function:
    """An activation with a number, of floats and perhaps integers; ttnn's functions reach it by other names."""
    return Function("", nearest(formula), formula if formats else None, formats, parameters={text: None})


def condition(text: str, formula: Callable[..., Array], formats: tuple[DataFormat, ...] = ()) -> Function:
    """One where a condition holds, and else zero."""
    return Function(f"1 if {text}, else 0,", nearest(formula), formula, formats)


def _shifted_left(x: Array, distance: float) -> Array:
    return np.asarray(x << int(distance) if 0 <= distance < 32 else np.zeros_like(x))


def _shifted_right(x: Array, distance: float) -> Array:
    return np.asarray(x >> int(min(max(distance, 0), 31)))


def _of(text: str, formula: Callable[..., Array], numbers: tuple[float, float] = (-1.0, 2.0)) -> Function:
    return Function(text, nearest(formula), numbers=numbers)


def _with(
    text: str, formula: Callable[..., Array], integers: OfIntegers | None = None,
    formats: tuple[DataFormat, ...] = (), *, numbers: tuple[float, float] = (-1.0, 2.0), **parameters: float | None,
) -> Function:  # fmt: skip
    return Function(text, nearest(formula), integers, formats, parameters=parameters, numbers=numbers)


def round_to(x: Array, decimals: float = 0.0) -> Array:
    """Rounds to a number of decimal places, ties to even."""
    scale = 10.0**decimals
    return np.asarray(np.rint(x * scale) / scale)


def logit(x: Array, eps: float = -1.0) -> Array:
    """The inverse of the sigmoid, of x moved to eps and 1 - eps unless eps is negative."""
    inside = np.clip(x, eps, 1 - eps) if eps >= 0 else x
    return np.asarray(np.log(inside) - np.log1p(-inside))


def xielu(x: Array, positive: float = XIELU_ALPHA, negative: float = XIELU_ALPHA) -> Array:
    """The expanded integral of the exponential linear unit."""
    below = negative * (np.expm1(np.minimum(x, XIELU_LEAST)) - x) + 0.5 * x
    return np.where(x > 0, positive * x * x + 0.5 * x, below)


def remainder(x: Array, divisor: Array | float) -> Array:
    """The remainder of a floor division, with the divisor's sign; a division by zero gives NaN, for integers zero."""
    return np.asarray(np.remainder(x, divisor))


ROUNDED: Final = {
    "ceil": _of("x rounded up", np.ceil, (-1.5, 2.25)),
    "floor": _of("x rounded down", np.floor, (-1.5, 2.25)),
    "frac": _of("x less its whole part", lambda x: x - np.trunc(x), (-1.5, 2.25)),
    "round": _with("x to a number of decimals, halves to even,", round_to, decimals=0, numbers=(-1.5, 2.25)),
    "sign": _of("The sign: -1, 0 or 1", np.sign),
    "signbit": condition("the sign is negative", np.signbit, WITH_SIGN),
    "trunc": _of("The whole part", np.trunc, (-1.5, 2.25)),
}
CONDITIONS: Final = {
    "eqz": condition("x is 0", lambda x: x == 0, WORDS),
    "nez": condition("x is not 0", lambda x: x != 0, WORDS),
    "gtz": condition("x is above 0", lambda x: x > 0, WITH_SIGN),
    "ltz": condition("x is below 0", lambda x: x < 0, WITH_SIGN),
    "gez": condition("x is at least 0", lambda x: x >= 0, WITH_SIGN),
    "lez": condition("x is at most 0", lambda x: x <= 0, WITH_SIGN),
    "isfinite": condition("x is finite", np.isfinite),
    "isinf": condition("x is infinite", np.isinf),
    "isnan": condition("x is NaN", np.isnan),
    "isneginf": condition("x is minus infinity", np.isneginf),
    "isposinf": condition("x is plus infinity", np.isposinf),
    "logical_not_unary": condition("x is 0", lambda x: x == 0, WORDS),
    **{
        f"unary_{name}": by_number("value", formula, WORDS)
        for name, formula in {
            "eq": np.equal, "ne": np.not_equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less,
            "le": np.less_equal,
        }.items()
    },
}  # fmt: skip
TRANSCENDENTAL: Final = {
    "acos": _of("The arccosine", np.arccos, (-0.5, 1.0)),
    "acosh": _of("The inverse hyperbolic cosine", np.arccosh, (1.0, 2.0)),
    "asin": _of("The arcsine", np.arcsin, (-0.5, 1.0)),
    "asinh": _of("The inverse hyperbolic sine", np.arcsinh),
    "atan": _of("The arctangent", np.arctan),
    "atanh": _of("The inverse hyperbolic tangent", np.arctanh, (-0.5, 0.25)),
    "cbrt": _of("The cube root", np.cbrt),
    "cos": _of("The cosine", np.cos),
    "cosh": _of("The hyperbolic cosine", np.cosh),
    "digamma": _of("The derivative of the logarithm of the gamma function", special.digamma, (0.5, 2.0)),
    "erf": _of("The error function", special.erf),
    "erfc": _of("1 less the error function", special.erfc),
    "erfinv": _of("The inverse error function", special.erfinv, (-0.5, 0.25)),
    "exp2": _of("2 to the power of x", np.exp2),
    "expm1": _of("exp(x) - 1", np.expm1),
    "i0": _of("The modified Bessel function of order 0", np.i0),
    "i1": _of("The modified Bessel function of order 1", special.bessel_i1),
    "lgamma": Function(
        "The logarithm of the gamma function", nearest(special.lgamma), numbers=(0.5, 4.0), floats=(BFLOAT16, FLOAT32)
    ),
    "log10": _of("The logarithm to base 10", np.log10, (0.5, 4.0)),
    "log1p": _of("log(1 + x)", np.log1p, (0.5, 4.0)),
    "log2": _of("The logarithm to base 2", np.log2, (0.5, 4.0)),
    "recip": _of("1 / x", lambda x: 1 / x),
    "rsqrt": _of("1 over the square root of x", lambda x: 1 / np.sqrt(x), (0.5, 4.0)),
    "sin": _of("The sine", np.sin),
    "sinh": _of("The hyperbolic sine", np.sinh),
    "tan": _of("The tangent", np.tan),
    "tanhshrink": _of("x - tanh(x)", lambda x: x - np.tanh(x)),
}
ACTIVATIONS: Final = {
    "celu": _with(
        "x, and alpha * (exp(x / alpha) - 1) for x below 0,",
        lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha)), alpha=1.0,
    ),
    "gelu_tanh": Function(
        "", nearest(lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    ),
    "hardmish": _of("x * (x + 2, clipped to 0 and 2) / 2", lambda x: x * np.clip(x + 2, 0, 2) / 2),
    "hardshrink": _with(
        "x, and 0 from -lambd to lambd,", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0), lambd=0.5
    ),
    "hardtanh": _with(
        "x, clipped to min_val and max_val,",
        lambda x, low=-1.0, high=1.0: np.minimum(np.maximum(x, low), high), min_val=-1.0, max_val=1.0,
    ),
    "heaviside": _with(
        "0 below 0, value at 0 and 1 above 0,",
        lambda x, value: np.where(x == 0, value, np.where(x > 0, 1.0, 0.0)), value=None,
    ),
    "identity": Function("x itself", lambda x, _, mode: x, lambda x: x, ALL_INTEGERS),
    "logit": _with(
        "The inverse of the sigmoid, of x moved to eps and 1 - eps if eps is not negative,", logit, eps=-1.0,
        numbers=(0.25, 0.5),
    ),
    "logsigmoid": _of("The logarithm of the sigmoid", lambda x: -np.logaddexp(0.0, -x)),
    "polygamma": _with("The derivative of digamma, of order k,", special.polygamma, numbers=(0.5, 2.0), k=None),
    "prelu_sfpu": by_number("weight", lambda x, weight: np.where(x < 0, weight * x, x)),
    "relu_max": _with(
        "x, clipped to 0 and upper_limit,", lambda x, most: np.maximum(np.minimum(x, most), 0),
        lambda x, most: np.maximum(np.minimum(x, int(most)), 0), ALL_INTEGERS, upper_limit=None,
    ),
    "relu_min": _with(
        "x, and lower_limit where x is below lower_limit,", np.maximum, lambda x, least: np.maximum(x, int(least)),
        ALL_INTEGERS, lower_limit=None,
    ),
    "selu": _with(
        "scale * x, and scale * alpha * (exp(x) - 1) for x below 0,",
        lambda x, scale=SELU_SCALE, alpha=SELU_ALPHA: scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
        scale=SELU_SCALE, alpha=SELU_ALPHA,
    ),
    "softcap": by_number("beta", lambda x, beta: beta * np.tanh(x / beta)),
    "softplus": _with(
        "log(1 + exp(beta * x)) / beta, and x where beta * x is above threshold,",
        lambda x, beta=1.0, threshold=20.0: np.where(
            beta * x > threshold, x, np.logaddexp(0.0, np.minimum(beta * x, threshold)) / beta
        ),
        beta=1.0, threshold=20.0,
    ),
    "softshrink": _with(
        "x moved by lambd toward 0, and 0 from -lambd to lambd,",
        lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x - np.copysign(lambd, x), 0), lambd=0.5,
    ),
    "softsign": _of("x / (1 + |x|)", lambda x: x / (1 + np.abs(x))),
    "threshold": _with(
        "x, and value where x is at most threshold,",
        lambda x, least, value: np.asarray(np.where(x > least, x, float(value))),
        threshold=None, value=None,
    ),
    "xielu": _with(
        "alpha_p * x**2 + x / 2, and alpha_n * (exp(x) - 1 - x) + x / 2 for x up to 0,", xielu,
        alpha_p=XIELU_ALPHA, alpha_n=XIELU_ALPHA,
    ),
}  # fmt: skip
OF_NUMBERS: Final = {
    "add_unary_sfpu": by_number("value", lambda x, value: x + value, LONG_WORDS),
    "bitwise_and": by_number("value", lambda x, value: x & int(value), WORDS),
    "bitwise_not": Function(
        "Every bit turned, of integers,", nearest(lambda x: x), np.invert, (INT32, UINT32)
    ),
    "bitwise_or": by_number("value", lambda x, value: x | int(value), WORDS),
    "bitwise_xor": by_number("value", lambda x, value: x ^ int(value), WORDS),
    "clamp_tss": Function(
        "", nearest(lambda x, low, high: np.minimum(np.maximum(x, low), high)),
        lambda x, low, high: np.minimum(np.maximum(x, int(low)), int(high)), WITH_SIGN,
    ),
    "div_unary_sfpu": by_number("value", lambda x, value: x / value),
    "fill": Function(
        "fill_value", nearest(lambda x, value: np.full_like(x, value)),
        lambda x, value: np.full_like(x, int(value)), WORDS, parameters={"fill_value": None},
    ),
    "fmod": by_number("value", np.fmod),
    "left_shift": by_number("value", _shifted_left, WORDS),
    "mac_tss": Function("", nearest(lambda x, factor, addend: x * factor + addend)),
    "maximum": by_number("value", np.maximum, LONG_WORDS),
    "minimum": by_number("value", np.minimum, LONG_WORDS),
    "mul_unary_sfpu": by_number("value", lambda x, value: x * value),
    "power": by_number("exponent", lambda x, exponent: np.power(x, exponent)),
    "power_iterative": by_number("exponent", lambda x, exponent: np.power(x, exponent)),
    "rdiv": Function("", nearest(lambda x, value, mode: ROUNDINGS[int(mode)](value / x))),
    "remainder": by_number("value", remainder, (UINT32,)),
    "right_shift": by_number("value", _shifted_right, WORDS),
    "rpow": _with("exponent to the power of x", lambda x, base: np.power(base, x), exponent=None),
    "rsub": by_number("value", lambda x, value: value - x, WORDS),
    "sub_unary_sfpu": by_number("value", lambda x, value: x - value, LONG_WORDS),
    "where_tss": Function(
        "", nearest(lambda x, true, false: np.where(x != 0, np.float64(true), np.float64(false))),
        lambda x, true, false: np.where(x != 0, int(true), int(false)), LONG_WORDS,
    ),
}  # fmt: skip
DEFINITIONS: Final = {**ROUNDED, **CONDITIONS, **TRANSCENDENTAL, **ACTIVATIONS, **OF_NUMBERS}
