"""The table of element-wise functions: computation, formats, and which values were compared with recordings.

To add a function, add a row to `FUNCTIONS` and a name to ``ttsim/__init__.pyi``. The public function, its arguments and
docstring (`ttsim.api.eltwise`), the formats that the planner accepts, the activations of other operations and the
warnings of reports are derived from the row. The functions follow the kernels of tt-metal 0.81.1 step by step, because
every step rounds (docs/reference/values.md, Activation).
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from device.errors import DeviceError
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import INT32, UINT8, UINT16, UINT32, Array, DataFormat
from device.numbers.vector_unit import (
    VectorUnitMode,
    long_exponential,
    multiply_add,
    polynomial,
    reciprocal,
    rounded_to_bfloat16,
    rounded_to_even_bfloat16,
    short_exponential,
    square_root,
)
from ops.programs.eltwise.definitions import DEFINITIONS
from ops.programs.eltwise.function import ALL_INTEGERS, Function, Parameters, cut, nearest, plain, stored
from ops.programs.eltwise.refusals import FIRST_COLUMNS, Activation
from ops.programs.eltwise.special import erf

RELU: Final = "relu"
NARROW: Final = 16  # bits of Dst: bfloat16 and block floats
WIDE: Final = 32  # float32, or any format under fp32_dest_acc_en
SIX: Final = 6  # where relu6 ends

GELU_ZERO: Final = -5.54259443  # gelu is 0 up to here,
GELU_TAIL: Final = -3.125  # x times its share of the normal distribution by an exponential up to here,
GELU_LINE: Final = 2.78125  # a polynomial up to this value, x above it
GELU_SHARE: Final = (
    3.9894227818e-01, -6.6361041488e-02, 9.7720050615e-03, -1.0717806322e-03, 8.1812159812e-05, -3.8082057209e-06,
    7.9821413868e-08,
)  # fmt: skip
GELU_TAIL_SHARE: Final = (3.0369991064e-01, 9.5413386822e-02, 1.3809983619e-02, 7.5950479368e-04)
GELU_GRID: Final = 0.375  # added and taken off again, it rounds the share to multiples of 2**-25
MISH_LINE: Final = 8  # mish is x from here on
SHORT_EXP_CONSTANT: Final = 1.001953125  # the exp kernel loads the constant of its parabola as a float16
TANH: Final = (
    0.0, 0.999004364013671875, 3.0897438526153564453125e-2, -0.4890659749507904052734375, 0.281917631626129150390625,
    -6.6649019718170166015625e-2, 5.876733921468257904052734375e-3,
)  # fmt: skip


def _exp(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        return long_exponential(x)
    return rounded_to_bfloat16(short_exponential(x, constant=SHORT_EXP_CONSTANT))


def _sigmoid(x: Array, mode: VectorUnitMode) -> Array:
    """1 / (1 + exp(-x)), not yet rounded to Dst."""
    power = long_exponential(-x) if mode.fp32_dest else short_exponential(-x)
    steps = 2 if mode.fp32_dest else 1
    return reciprocal(multiply_add(power, 1.0, 1.0), steps=steps, from_table=mode.reciprocal_table)


def _of_columns(parameters: Parameters, x: Array, result: Array) -> Array:
    """The sigmoid of x [..., columns], or of the first half of every tile's columns alone."""
    if parameters[:1] != (FIRST_COLUMNS,):
        return result
    return np.where(np.arange(x.shape[-1]) % TILE < TILE // 2, result, x)


def _gelu(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        wide = x.astype(np.float64)
        return np.asarray(0.5 * wide * (1.0 + erf(wide / np.sqrt(2.0))), np.float32)
    squared = multiply_add(x, x, 0.0)
    power = short_exponential(squared, scale=-0.72134752044)
    share = multiply_add(power, polynomial(x, GELU_TAIL_SHARE), 0.0)
    share = multiply_add(multiply_add(share, 1.0, GELU_GRID), 1.0, -GELU_GRID)
    tail = multiply_add(x, share, 0.0)
    middle = multiply_add(x, multiply_add(x, polynomial(squared, GELU_SHARE), 0.5), 0.0)
    line = np.where(x >= np.float32(GELU_LINE), x, np.where(x >= np.float32(GELU_TAIL), middle, tail))
    return rounded_to_bfloat16(np.where(x > np.float32(GELU_ZERO), line, np.float32(0)))


def _tanh(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    if mode.fp32_dest:
        return np.asarray(np.tanh(x.astype(np.float64)), np.float32)
    return rounded_to_bfloat16(np.copysign(np.minimum(polynomial(np.abs(x), TANH), np.float32(1)), x))


def _mish(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    """Mish: x * tanh(softplus(x)) = x * u * (u + 2) / ((u + 1) * (u + 1) + 1) for u = exp(x), and x from 8 on.

    Where reciprocals start from a table, the share of x >= 0 is 1 - 2 / denominator, which loses fewer bits.
    """
    power = long_exponential(x) if mode.fp32_dest else rounded_to_bfloat16(short_exponential(x))
    after = multiply_add(power, 1.0, 1.0)
    steps = 2 if mode.fp32_dest else 1
    inverse = reciprocal(multiply_add(after, after, 1.0), steps=steps, from_table=mode.reciprocal_table)
    share = multiply_add(multiply_add(power, multiply_add(power, 1.0, 2.0), 0.0), inverse, 0.0)
    if mode.reciprocal_table:
        share = np.where(x >= 0, multiply_add(inverse, -2.0, 1.0), share)
    return stored(np.where(x < MISH_LINE, multiply_add(x, share, 0.0), x), mode)


def _square(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    squared = multiply_add(x, x, 0.0)
    return squared if mode.fp32_dest else rounded_to_even_bfloat16(squared)


def _leaky_relu(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    slope = parameters[0] if parameters else 0.01
    return cut(np.where(x < 0, multiply_add(x, slope, 0.0), x), mode)


def _hardsigmoid(x: Array) -> Array:
    """A sixth of x plus a half, between 0 and 1; not yet stored."""
    return np.clip(multiply_add(x, 0.1666666716337204, 0.5), np.float32(0), np.float32(1))


def _elu(x: Array, parameters: Parameters, mode: VectorUnitMode) -> Array:
    wide = x.astype(np.float64)
    below = (parameters[0] if parameters else 1.0) * np.expm1(np.minimum(wide, 0))
    return stored(np.asarray(np.where(wide > 0, wide, below), np.float32), mode)


MOVES: Final = frozenset(("fill", "identity"))  # compute nothing
IN_NARROW: Final = frozenset({NARROW})
IN_BOTH: Final = frozenset({NARROW, WIDE})
FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        RELU: Function(
            "max(x, 0)",
            plain(lambda x: np.maximum(x, np.float32(0))),  # the packer's, where nothing comes after it
            lambda x: np.maximum(x, 0),
            ALL_INTEGERS,
            compared=IN_BOTH,
            results=(0.0, 2.0),
        ),
        "abs": Function("The absolute value", plain(np.abs), np.abs, ALL_INTEGERS, results=(1.0, 2.0)),
        "elu": Function(
            "x, and alpha * (exp(x) - 1) for x below 0 (rounded to the nearest; the kernel is not followed),",
            _elu,
            parameters={"alpha": 1.0},
            results=(-0.6328125, 2.0),
        ),
        "exp": Function("exp(x), e to the power of x,", _exp, compared=IN_NARROW, results=(0.369140625, 7.40625)),
        "gelu": Function(
            "x times the integral of the standard normal distribution up to x",
            _gelu,
            compared=IN_NARROW,
            results=(-0.158203125, 1.953125),
        ),
        "hardswish": Function(
            "x * hardsigmoid(x)",
            lambda x, _, mode: stored(multiply_add(x, _hardsigmoid(x), 0.0), mode),
            results=(-0.333984375, 1.6640625),
        ),
        "hardsigmoid": Function(
            "x / 6 + 1 / 2, clipped to 0 and 1,",
            lambda x, _, mode: cut(_hardsigmoid(x), mode),
            results=(0.33203125, 0.83203125),
        ),
        "leaky_relu": Function(
            "x, and negative_slope * x for x below 0,",
            _leaky_relu,
            lambda x, slope: x,  # of formats without a sign alone
            (UINT8, UINT16, UINT32),
            parameters={"negative_slope": None},
            compared=IN_BOTH,
            results=(-0.5, 2.0),
        ),
        "log": Function(
            "The natural logarithm (rounded to the nearest; the kernel is not followed)",
            nearest(np.log),
            numbers=(0.5, 4.0),
            results=(-0.69140625, 1.3828125),
        ),
        "mish": Function("x * tanh(log(1 + exp(x)))", _mish, results=(-0.3046875, 1.9453125)),
        "neg": Function("-x", plain(np.negative), np.negative, (INT32,), results=(1.0, -2.0)),
        "relu6": Function(
            "x, clipped to 0 and 6,",
            plain(lambda x: np.clip(x, np.float32(0), np.float32(SIX))),
            lambda x: np.clip(x, 0, SIX),
            ALL_INTEGERS,
            compared=IN_NARROW,
            numbers=(-1.0, 8.0),
            results=(0.0, 6.0),
        ),
        "sigmoid": Function(
            "1 / (1 + exp(-x))",
            lambda x, parameters, mode: _of_columns(parameters, x, stored(_sigmoid(x, mode), mode)),
            compared=IN_NARROW,
            results=(0.26953125, 0.8828125),
        ),
        "silu": Function(
            "x / (1 + exp(-x))",
            lambda x, _, mode: stored(multiply_add(x, _sigmoid(x, mode), 0.0), mode),
            compared=IN_NARROW,
            results=(-0.26953125, 1.765625),
        ),
        "sqrt": Function(
            "The square root",
            lambda x, _, mode: stored(square_root(x), mode),
            compared=IN_NARROW,
            numbers=(0.5, 4.0),
            results=(0.70703125, 2.0),
        ),
        "square": Function("The square", _square, np.square, (UINT16, UINT32, INT32), results=(1.0, 4.0)),
        "tanh": Function("The hyperbolic tangent", _tanh, results=(-0.76171875, 0.96484375)),
        **DEFINITIONS,
    }
)
UNCOMPARED_CALLS: Final = frozenset({"conv1d", "add_", "subtract_", "multiply_", "sub_", "mul_"})


def apply_activation(dst: Array, name: str, parameters: Parameters, *, mode: VectorUnitMode) -> Array:
    """Applies a function (ttnn's name in lower case) to every element of Dst, float32 of any shape.

    Missing parameters have defaults, for example the slope of "leaky_relu". Results are values of bfloat16 if Dst has
    16 bits. Raises DeviceError for unknown functions.
    """
    if name not in FUNCTIONS:
        raise DeviceError(
            f"Unsupported activation {name.upper()}\nactivation must be one of {', '.join(FUNCTIONS).upper()}"
        )
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name].values(dst.astype(np.float32), parameters, mode), np.float32)


def without_numbers(activation: Activation, layout: Layout) -> str | None:
    """Why the values of a function of a tensor in a layout are not simulated; None if they are."""
    match activation:
        case "gelu", (1.0,):
            return "gelu: variant=FastLut has no numbers here; Accurate and Tanh have"
        case "sigmoid", (_, 1.0):
            return "sigmoid: mode=FastApproximate has no numbers here; Accurate has"
        case "sigmoid", (mode, _) if mode == FIRST_COLUMNS and layout is Layout.ROW_MAJOR:
            return "sigmoid: vector_mode=2 of rows has no numbers here; bring the tensor into TILE_LAYOUT"
    return None


def applied_to_integers(values: Array, name: str, data_format: DataFormat, parameters: Parameters = ()) -> Array:
    """A function of every element, in storage of the same format."""
    function = FUNCTIONS[name].integers
    if function is None:
        raise AssertionError(f"{name} is no function of integers")
    with np.errstate(over="ignore"):
        return np.asarray(function(values.astype(np.int64), *parameters)).astype(np.int64).astype(data_format.storage)


def comparison(name: str) -> str:
    """A sentence for the documentation of a function: in which formats it was compared."""
    widths = FUNCTIONS[name].compared if name in FUNCTIONS else frozenset()
    if not widths:
        return "Its numbers were never compared with recordings of the real kernel."
    if WIDE in widths:
        return "Its bits were compared with recordings of the real kernel."
    return "Its bits were compared with recordings of the real kernel in bfloat16 and block floats, never in float32."


def uncompared(names: Iterable[str], *, fp32_dest: bool, fused_into: str = "") -> str | None:
    """Part of a sentence that names the functions of an operation that were never compared; None if all were.

    Functions that only fill or move are left out. `fused_into` is an operation of two tensors that applies the
    functions; no such function was compared.
    """
    width = WIDE if fp32_dest else NARROW
    missing = [
        name
        for name in names
        if name in FUNCTIONS and name not in MOVES and (fused_into or width not in FUNCTIONS[name].compared)
    ]
    if not missing:
        return None
    where = f" fused into {fused_into}" if fused_into else f" in a {width}-bit Dst"
    return f"numbers of {' and '.join(missing)}{where} never compared with the real kernel's"
