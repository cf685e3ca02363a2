"""Special functions in float64, of arrays, to about 1e-12 relative (numpy has none of them)."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from device.numbers.formats import Array

POLES: Final = 10.0  # from here on, asymptotic series of digamma and polygamma hold
BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)  # B2, B4, ...


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python numbers, computed once for every distinct element of an array."""

    def of_array(x: Array) -> Array:
        different, places = np.unique(x, return_inverse=True)
        return np.array([function(float(number)) for number in different], np.float64)[places].reshape(x.shape)

    return of_array


erf: Final = _each(math.erf)
erfc: Final = _each(math.erfc)


def _lgamma(x: float) -> float:
    return math.inf if math.isinf(x) or (x <= 0 and x == int(x)) else math.lgamma(x)


lgamma: Final = _each(_lgamma)


def erfinv(x: Array) -> Array:
    """The inverse of erf: a start by Winitzki's formula, and Newton's steps; infinite at -1 and 1, NaN beyond."""
    with np.errstate(all="ignore"):
        inside = np.clip(x, -1 + 1e-16, 1 - 1e-16)
        logarithm, shape = np.log1p(-inside * inside), 0.147
        half = 2 / (math.pi * shape) + logarithm / 2
        y = np.copysign(np.sqrt(np.sqrt(half * half - logarithm / shape) - half), inside)
        for _ in range(4):
            y = y - (erf(y) - inside) * math.sqrt(math.pi) / 2 * np.exp(y * y)
        y = np.where(np.abs(x) == 1, np.copysign(np.inf, x), y)
        return np.where(np.abs(x) > 1, np.nan, np.where(x == 0, x, y))


def digamma(x: Array) -> Array:
    """The derivative of lgamma; NaN at its poles."""
    with np.errstate(all="ignore"):
        reflected = np.where(x < 0, 1 - x, x)
        result, y = np.zeros_like(reflected), reflected.copy()
        for _ in range(int(POLES)):
            small = y < POLES
            result, y = np.where(small, result - 1 / y, result), np.where(small, y + 1, y)
        series = sum(number / (2 * k * y ** (2 * k)) for k, number in enumerate(BERNOULLI, 1))
        result = result + np.log(y) - 0.5 / y - series
        result = np.where(x < 0, result - math.pi / np.tan(math.pi * x), result)
        return np.where((x <= 0) & (x == np.rint(x)), np.nan, result)


def polygamma(x: Array, order: float) -> Array:
    """The derivative of digamma of an order from 1 on, for x above 0; NaN below."""
    n = int(order)
    with np.errstate(all="ignore"):
        result, y = np.zeros_like(x), x.copy()
        for _ in range(int(POLES)):
            small = y < POLES
            result, y = np.where(small, result + y ** -(n + 1.0), result), np.where(small, y + 1, y)
        tail = y**-n / n + 0.5 * y ** -(n + 1.0)
        for k, number in enumerate(BERNOULLI, 1):
            tail = tail + number * math.gamma(2 * k + n) / math.gamma(n + 1) / math.gamma(2 * k + 1) * y ** -(2 * k + n)
        return np.where(x < 0, np.nan, (-1) ** (n + 1) * math.factorial(n) * (result + tail))


def bessel_i1(x: Array) -> Array:
    """The modified Bessel function of the first kind and first order, by its power series and, far out, asymptotic."""
    with np.errstate(all="ignore"):
        near, far = np.clip(x, -25, 25), np.maximum(np.abs(x), 20)
        term = near / 2
        total = term.copy()
        for k in range(1, 60):
            term = term * near * near / (4 * k * (k + 1))
            total = total + term
        series, factor = np.ones_like(far), np.ones_like(far)
        for k in range(1, 12):
            factor = factor * -(4 - (2 * k - 1) ** 2) / (k * 8 * far)
            series = series + factor
        tail = np.sign(x) * np.exp(far) / np.sqrt(2 * math.pi * far) * series
        return np.where(np.abs(x) <= 25, total, tail)
