"""Fused activations on Dst, in floating point: close to the device's own approximations, not bit for bit.

The vector unit computes these with polynomials and tables of its own; their bits are not documented. ReLU is not
here: the packer does it exactly.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from device.errors import DeviceError
from device.numbers.formats import Array

_Function = Callable[[Array, tuple[float, ...]], Array]


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


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
        "abs": lambda x, _: np.abs(x),
        "elu": lambda x, p: np.where(x > 0, x, (p[0] if p else 1.0) * np.expm1(np.minimum(x, 0))),
        "exp": lambda x, _: np.exp(x),
        "gelu": lambda x, _: 0.5 * x * (1.0 + _erf(x / np.sqrt(2.0))),
        "hardswish": lambda x, _: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
        "hardsigmoid": lambda x, _: np.clip(x / 6.0 + 0.5, 0.0, 1.0),
        "leaky_relu": lambda x, p: np.where(x > 0, x, (p[0] if p else 0.01) * x),
        "log": lambda x, _: np.log(x),
        "relu6": lambda x, _: np.clip(x, 0.0, 6.0),
        "sigmoid": lambda x, _: _sigmoid(x),
        "silu": lambda x, _: x * _sigmoid(x),
        "softplus": lambda x, _: np.logaddexp(0.0, x),
        "sqrt": lambda x, _: np.sqrt(x),
        "square": lambda x, _: x * x,
        "tanh": lambda x, _: np.tanh(x),
    }
)


def apply_activation(dst: Array, name: str, parameters: tuple[float, ...], *, fp32_dest: bool) -> Array:
    """An activation of every element of Dst.

    Args:
        dst: float32, any shape.
        name: ttnn's name in lower case, for example "gelu".
        parameters: Its parameters, for example the slope of "leaky_relu"; defaults stand for those left out.
        fp32_dest: Dst is 32 bits wide; otherwise the result is rounded to bfloat16.

    Returns:
        float32, the same shape.

    Raises:
        DeviceError: No such activation.
    """
    if name not in FUNCTIONS:
        raise DeviceError(
            f"Unsupported activation {name.upper()}\nactivation must be one of RELU, {', '.join(FUNCTIONS).upper()}"
        )
    with np.errstate(all="ignore"):
        result = np.asarray(FUNCTIONS[name](dst.astype(np.float64), parameters), np.float32)
    if fp32_dest:
        return result
    return ((result.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)
