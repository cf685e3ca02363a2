"""Steps that compute every element by itself, of one tensor, of two, or of a tensor and a number."""

from collections.abc import Callable, Mapping
from math import erf, prod, sqrt
from typing import Final

import numpy as np

from device.numbers.formats import Array
from device.numbers.vector_unit import VectorUnitMode
from ops.programs.eltwise.functions import apply_activation
from tools.random_calls.drafts import (
    BLOCKS,
    INTEGERS,
    USUAL,
    Draft,
    Operand,
    Shadow,
    Step,
    operation,
)
from tools.random_calls.references import rounding
from ttsim.api.unary import NAMES as UNARY_NAMES, OTHER_NAMES

MOST_COMBINED: Final = 1 << 26  # elements of a result whose values are computed
_erf: Final = np.vectorize(erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))


FUNCTIONS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "abs": np.abs,
    "neg": np.negative,
    "square": np.square,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "log": np.log,
    "sigmoid": _sigmoid,
    "sigmoid_accurate": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "tanh": np.tanh,
    "gelu": lambda x: x * (0.5 + 0.5 * _erf(x / sqrt(2))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.125 * x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
}
EXACT: Final = ("relu", "relu6", "abs", "neg")  # but for the rounding of the result
ABSOLUTE: Final = {"square": 0.0, "tanh": 0.01} | dict.fromkeys(("sigmoid", "sigmoid_accurate", "silu", "mish"), 0.02)
RELATIVE: Final = 2.0**-6  # of the kernels' polynomials
PARAMETERS: Final = {"leaky_relu": ("negative_slope", "0.125"), "elu": ("alpha", "1.0")}
DEFINED: Final[Mapping[str, Callable[[Array], Array]]] = {
    **{"sqrt": lambda x: x >= 0, "log": lambda x: x > 0, "exp": lambda x: x < 60}
}
BINARY: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    **{"add": np.add, "subtract": np.subtract, "sub": np.subtract, "multiply": np.multiply, "mul": np.multiply}
}
SIGNS: Final = {"add": "+", "subtract": "-", "multiply": "*"}


def applied(name: str, argument: Array, dtype: str) -> tuple[Array, Array]:
    """A function of a tensor in float64, and how far the device's result in a data type may lie from that."""
    with np.errstate(all="ignore"):
        values = np.asarray(FUNCTIONS[name](argument), np.float64)
    error = 2 * rounding(values, dtype)
    if name not in EXACT:
        error = error + np.abs(values) * RELATIVE + ABSOLUTE.get(name, 0.03 if name == "gelu" else 2.0**-7)
    known = DEFINED[name](argument) if name in DEFINED else np.ones(argument.shape, bool)
    error = np.where(known & np.isfinite(values) & (np.abs(values) < 1e30), error, np.inf)
    # in a block float an element that is not known may raise the exponent of its neighbors
    error = np.full(error.shape, np.inf) if dtype in BLOCKS and np.isinf(error).any() else error
    return values, error


@operation(*(name for name in FUNCTIONS))
def unary(draft: Draft) -> Step | None:
    """A function of every element."""
    function = draft.function
    x = draft.tensor(lambda x: bool(DEFINED.get(function, np.isfinite)(x.values).all()))
    if x is None:
        return None
    draft.call(x).placed(x.shape, tiled=x.tiled).taken_by_twin(x).option(*PARAMETERS.get(function, ("", "")))
    if function == "gelu":
        draft.sometimes(0.2, "fast_and_approximate_mode", "False", "True")
    values, bound = applied(function, x.values, x.dtype)
    values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return draft.gives(values, bound, dtypes=(x.dtype,), layout=x.layout)


NUMBERS: Final[Mapping[str, Mapping[str, float]]] = {
    "fill": {"fill_value": 2.0}, "heaviside": {"value": 0.5}, "polygamma": {"k": 2}, "relu_max": {"upper_limit": 1.0},
    "relu_min": {"lower_limit": 0.5}, "rpow": {"exponent": 2.0}, "threshold": {"threshold": 0.5, "value": 2.0},
}  # fmt: skip


def definition(name: str, argument: Array, numbers: tuple[float, ...]) -> Array:
    """A function by its definition in float64, whose numbers tests/ops/programs/eltwise/test_functions.py checks."""
    mode = VectorUnitMode(fp32_dest=True, reciprocal_table=False)
    activation, fixed = OTHER_NAMES.get(name, (name, ()))
    return apply_activation(argument, activation, fixed or numbers, mode=mode).astype(np.float64)


@operation(*(name for name in UNARY_NAMES if name not in (*FUNCTIONS, "bitwise_not")))
def defined(draft: Draft) -> Step | None:
    """A function of every element that is computed by its definition."""
    name = draft.function
    x = draft.tensor(lambda x: x.is_float and (name != "lgamma" or x.dtype not in BLOCKS))
    if x is None:
        return None
    draft.call(x).placed(x.shape, tiled=x.tiled).taken_by_twin(x)
    given = NUMBERS.get(name, {})
    for key, number in given.items():
        draft.option(key, str(number))
    values = definition(name, x.values, tuple(float(number) for number in given.values()))
    error = 2 * rounding(values, x.dtype) + np.abs(values) * RELATIVE
    error = np.where(np.isfinite(values) & (np.abs(values) < 1e30), error, np.inf)
    error = np.full(error.shape, np.inf) if x.dtype in BLOCKS and np.isinf(error).any() else error
    values = np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return draft.gives(values, error, dtypes=(x.dtype,), layout=x.layout)


@operation("experimental.dropout")
def dropped(draft: Draft) -> Step | None:
    """A tensor of which no element vanishes: others have no known numbers."""
    x = draft.tensor(lambda x: x.dtype == "bfloat16" and x.tiled)
    if x is None:
        return None
    draft.call(x, "0.0", scale := draft.pick((1.0, 1.25, 2.0)), draft.below(100)).taken_by_twin(x)
    values = x.values * scale
    return draft.gives(values, 2 * rounding(values, x.dtype), dtypes=(x.dtype,), layout="TILE")


@operation(*(f"{name}{mark}" for name in BINARY for mark in ("", "_")))
def binary(draft: Draft) -> Step | None:
    """A function of two tensors, or of a tensor and a number, in either order."""
    first = draft.tensor()
    if first is None:
        return None
    second = _second(draft, first)
    in_place, name = draft.function.endswith("_"), draft.function.rstrip("_")
    pair: tuple[Shadow | Operand | float, ...] = (first, second)
    if not in_place and draft.chance(0.1):
        pair = pair[::-1]
    a, b = (np.asarray(side) if isinstance(side, float) else side.values for side in pair)
    if prod(np.broadcast_shapes(a.shape, b.shape)) > MOST_COMBINED:
        return None
    dtypes = ["bfloat16" if isinstance(side, float) else side.dtype for side in (first, second)]
    with np.errstate(all="ignore"):
        values = np.asarray(BINARY[name](a, b), np.float64)
    own = next(side.dtype for side in pair if not isinstance(side, float))
    activation = draft.pick(("relu", "silu", "sigmoid")) if draft.chance(0.1) else ""
    draft.call(*pair)
    if not in_place:
        draft.typed(0.15).placed(values.shape, tiled=True, probability=0.25)
    out = draft.dtype or own
    # Both operands are unpacked and combined on the larger's scale, and the result is packed.
    coarse = 2.0**-8 if "float32" not in dtypes or dtypes[0] != dtypes[1] else 2.0**-10
    bound = 2 * rounding(values, out)
    if BINARY[name] is np.multiply:  # the matrix unit rounds after each of four fidelity phases
        cut = in_place or dtypes[0] != dtypes[1]  # a float32 beside another format loses half of its bits first
        bound = bound + np.abs(values) * max(coarse, 2.0**-7 if cut else 0.0)
    else:
        bound = bound + (np.abs(a) + np.abs(b)) * coarse
    if out in INTEGERS:  # integers wrap around, and numbers between integers are not defined
        bound = np.where((values == np.rint(values)) & (values >= 0) & (values < 100), 0.0, np.inf)
    if activation:
        draft.option("activations", f"[ttsim.UnaryWithParam(ttsim.UnaryOpType.{activation.upper()})]")
        values, more = applied(activation, values, out)
        bound = 1.2 * bound + more  # no slope is above 1.2
    text = ""
    if in_place:
        draft.target = first.name
        if values.size == first.values.size:  # the first tensor keeps its rank
            values, bound = values.reshape(first.shape), bound.reshape(first.shape)
    elif len(draft.arguments) == 2 and name in SIGNS and draft.chance(0.1):
        text = f"{pair[0]} {SIGNS[name]} {pair[1]}"
    if not first.tiled:  # in shards block floats are untilized to bfloat16, and shards cut to the tensor's own columns
        return draft.gives(values, bound, dtypes=(out, "bfloat16"), place=None, text=text)
    return draft.gives(values, bound, dtypes=(out,), text=text)


def _second(draft: Draft, first: Shadow) -> Shadow | Operand | float:
    """A number, a new tensor that is a row, a column or a single number of the first one, or a live tensor."""
    if draft.chance(0.3):
        return draft.pick((2.0, 0.5, -1.0, 3.0, 0.3))
    if draft.chance(0.7):
        return draft.tensor(lambda other: _fits(first, other)) or first
    sides = tuple(side if draft.chance(0.5) else 1 for side in first.shape)
    sides = sides[1:] if len(sides) > 1 and draft.chance(0.2) else sides
    dtype = first.dtype if draft.chance(0.7) else draft.pick(USUAL)
    layout = first.layout if draft.chance(0.9) else draft.layout(dtype)
    where = draft.memory_config(sides, tiled=layout == "TILE", sharded=0.1)
    return draft.operand("b", sides, dtype, layout=layout, where=where)


def _fits(first: Shadow, other: Shadow) -> bool:
    """Whether numpy would broadcast two shapes."""
    pairs = zip(first.shape[::-1], other.shape[::-1], strict=False)
    return all(side == across or 1 in (side, across) for side, across in pairs)
