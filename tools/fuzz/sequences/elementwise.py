"""Steps that compute every element by itself: functions of one tensor, of two, and of a tensor and a number."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import erf, sqrt
from types import MappingProxyType
from typing import Final

import numpy as np

from device.numbers.formats import Array
from tools.fuzz.sequences.bounds import rounding
from tools.fuzz.sequences.operands import operand
from tools.fuzz.sequences.places import asked, layout, maybe_place, named, place, twin
from tools.fuzz.sequences.state import BLOCKS, INTEGERS, Draft, Shadow
from tools.fuzz.sequences.steps import Expected, Step

_erf: Final = np.vectorize(erf, otypes=[np.float64])


def _sigmoid(values: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(values / 2))


FUNCTIONS: Final[Mapping[str, Callable[[Array], Array]]] = MappingProxyType(
    {
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
        "softplus": lambda x: np.logaddexp(0, x),
    }
)
EXACT: Final = ("relu", "relu6", "abs", "neg")  # but for the rounding of the result
ABSOLUTE: Final = MappingProxyType(
    {"gelu": 0.03, "sigmoid": 0.02, "sigmoid_accurate": 0.02, "silu": 0.02, "tanh": 0.01}
)
RELATIVE: Final = 2.0**-6  # of the kernels' polynomials
PARAMETERS: Final = MappingProxyType({"leaky_relu": "negative_slope=0.125", "elu": "alpha=1.0"})
DEFINED: Final[Mapping[str, Callable[[Array], Array]]] = MappingProxyType(
    {"sqrt": lambda x: x >= 0, "log": lambda x: x > 0, "exp": lambda x: x < 60}
)

OPERATIONS: Final = MappingProxyType(
    {"add": np.add, "subtract": np.subtract, "sub": np.subtract, "multiply": np.multiply, "mul": np.multiply}
)


def function_error(name: str, values: Array, argument: Array, dtype: str) -> Array:
    """How far a function of a tensor may lie from float64."""
    error = 2 * rounding(values, dtype)
    if name not in EXACT:
        error = error + np.abs(values) * RELATIVE + ABSOLUTE.get(name, 2.0**-7 if name != "square" else 0.0)
    known = DEFINED[name](argument) if name in DEFINED else np.ones(argument.shape, bool)
    error = np.where(known & np.isfinite(values) & (np.abs(values) < 1e30), error, np.inf)
    # in a block float an element that is not known may raise the exponent of its neighbors
    return np.full(error.shape, np.inf) if dtype in BLOCKS and np.isinf(error).any() else error


def unary(function: str, draft: Draft) -> Step | None:
    """A function of every element."""
    source = draft.tensor(lambda one: bool(DEFINED.get(function, np.isfinite)(one.values).all()))
    if source is None:
        return None
    with np.errstate(all="ignore"):
        values = np.asarray(FUNCTIONS[function](source.values), np.float64)
    where = maybe_place(draft, source.shape, tiled=source.tiled, probability=0.3)
    target = twin(draft, source)
    if target is not None:
        where = ""
    how = named(memory_config=where, output_tensor=None if target is None else target.name)
    how += f", {PARAMETERS[function]}" if function in PARAMETERS else ""
    if function == "gelu" and draft.choices.chance(0.2):
        how += f", fast_and_approximate_mode={draft.choices.pick((False, True))}"
    name = draft.name if target is None else target.name
    values = np.where(np.isnan(values), 0, values)
    made = Expected(
        values=values,
        bound=function_error(function, values, source.values, source.dtype),
        dtypes=(source.dtype,),
        layout=source.layout,
        place=asked(draft, where),
    )
    text = f"ttsim.{function}({source.name}{how})"
    return Step(text=text if target is not None else f"{name} = {text}", results={name: lambda: made})


def _second(draft: Draft, first: Shadow) -> Shadow | None:
    """A tensor whose shape goes together with that of another one."""

    def fits(other: Shadow) -> bool:
        try:
            return bool(np.broadcast_shapes(first.shape, other.shape))
        except ValueError:
            return False

    return draft.tensor(fits)


def _error(
    operation: str, values: Array, first: Array, second: Array, dtypes: tuple[str, str], out: str, *, in_place: bool
) -> Array:
    """Both operands are unpacked, combined on the larger's scale, and the result is packed."""
    coarse = 2.0**-8 if "float32" not in dtypes or dtypes[0] != dtypes[1] else 2.0**-10
    error = 2 * rounding(values, out)
    if operation in ("multiply", "mul"):  # the matrix unit rounds after each of four fidelity phases
        return error + np.abs(values) * max(coarse, 2.0**-7 if in_place else 0.0)
    return np.asarray(error + (np.abs(first) + np.abs(second)) * coarse)


def binary(function: str, draft: Draft) -> Step | None:
    """A function of two tensors, or of a tensor and a number."""
    first = draft.tensor()
    if first is None:
        return None
    choices = draft.choices
    form = choices.below(10)
    if form < 3:
        number = choices.pick((2.0, 0.5, -1.0, 3.0, 0.3))
        right, second, dtypes = str(number), np.asarray(number), (first.dtype, "bfloat16")
    elif form < 5:  # a row, a column or a single number of the first one
        sides = tuple(side if choices.chance(0.5) else 1 for side in first.shape)
        sides = sides[1:] if len(sides) > 1 and choices.chance(0.2) else sides
        data_type = first.dtype if choices.chance(0.7) else choices.pick(("bfloat16", "float32", "bfloat8_b"))
        held = first.layout if choices.chance(0.9) else layout(draft, data_type).removesuffix("_LAYOUT")
        where = place(draft, sides, tiled=held == "TILE", sharded=0.1)
        made = operand(draft, "b", sides, data_type, layout=held, where=where)
        types = (first.dtype, data_type)
        step = _combined(draft, function, first, made.name, made.values, types, before=made.text)
        return replace(step, results={made.name: made.result, **step.results})
    else:
        other = _second(draft, first) or first
        right, second, dtypes = other.name, other.values, (first.dtype, other.dtype)
    return _combined(draft, function, first, right, second, dtypes)


def _combined(
    draft: Draft,
    function: str,
    first: Shadow,
    right: str,
    second: Array,
    dtypes: tuple[str, str],
    before: str = "",
) -> Step:
    choices = draft.choices
    in_place = function.endswith("_")
    operation = function.rstrip("_")
    left, a, b = first.name, first.values, second
    if not in_place and choices.chance(0.1):
        left, right, a, b = right, left, b, a
    with np.errstate(all="ignore"):
        values = np.asarray(OPERATIONS[operation](a, b), np.float64)
    out, how, where = first.dtype if left == first.name else dtypes[1], "", ""
    if left != first.name and right == first.name and np.ndim(second) == 0:
        out = first.dtype
    activation = choices.pick(("relu", "silu", "sigmoid")) if choices.chance(0.1) else ""
    if not in_place:
        if choices.chance(0.15):
            out = choices.pick(("bfloat16", "float32", "bfloat8_b"))
            how += f", dtype=ttsim.{out}"
        where = maybe_place(draft, values.shape, tiled=True, probability=0.25)
        how += named(memory_config=where)
    error = _error(operation, values, np.asarray(a), np.asarray(b), dtypes, out, in_place=in_place)
    if out in INTEGERS:  # integers wrap around, and numbers between integers are not defined
        error = np.where((values == np.rint(values)) & (values >= 0) & (values < 100), 0.0, np.inf)
    if activation:
        how += f", activations=[ttsim.UnaryWithParam(ttsim.UnaryOpType.{activation.upper()})]"
        plain = values
        values = np.asarray(FUNCTIONS[activation](plain), np.float64)
        error = error * 1.2 + function_error(activation, values, plain, out)  # no slope is above 1.2
    name = left if in_place else draft.name
    if in_place and values.size == first.values.size:  # the first tensor keeps its rank
        values, error = values.reshape(first.shape), error.reshape(first.shape)
    outs = (out,) if first.tiled else (out, "bfloat16")  # rows in shards: block floats are untilized to bfloat16
    # the real library cuts the shards of a result that it untilizes to the tensor's own columns
    made = Expected(values=values, bound=error, dtypes=outs, place=asked(draft, where) if first.tiled else None)
    if choices.chance(0.1) and not how and not in_place and operation in ("add", "subtract", "multiply"):
        sign = {"add": "+", "subtract": "-", "multiply": "*"}[operation]
        return Step(text=f"{before}{name} = {left} {sign} {right}", results={name: lambda: made})
    call = f"ttsim.{function}({left}, {right}{how})"
    return Step(text=before + (call if in_place else f"{name} = {call}"), results={name: lambda: made})


UNARY: Final = MappingProxyType({name: partial(unary, name) for name in FUNCTIONS if name != "softplus"})
BINARY: Final = MappingProxyType(
    {f"{name}{mark}": partial(binary, f"{name}{mark}") for name in OPERATIONS for mark in ("", "_")}
)
