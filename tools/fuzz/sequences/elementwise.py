"""Steps that compute every element by itself: functions of one tensor, of two, and of a tensor and a number."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import erf, sqrt
from types import MappingProxyType
from typing import Final

import numpy as np

from device.numbers.formats import Array
from tools.fuzz.sequences.references import regrouped, rounding, sum_error
from tools.fuzz.sequences.state import (
    BLOCKS,
    DRAM,
    INTEGERS,
    Draft,
    Expected,
    Shadow,
    Step,
    asked,
    layout,
    maybe_place,
    named,
    operand,
    place,
    twin,
)

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


WIDTHS: Final = (32, 1, 8, 33, 64, 100, 128)
NORMS: Final = MappingProxyType({"bfloat4_b": 0.9, "bfloat8_b": 0.12})  # relative L2 by the coarsest format; else:
USUAL_NORM: Final = 0.06
FIDELITIES: Final = ("HiFi4", "HiFi3", "HiFi2", "LoFi")


def norm(*dtypes: str, low_fidelity: bool) -> float:
    """The largest relative L2 error of sums of products of these data types."""
    return max([USUAL_NORM, *(NORMS.get(dtype, 0.0) for dtype in dtypes)]) + (0.06 if low_fidelity else 0.0)


def compute_config(draft: Draft) -> str:
    """A compute kernel config as text; empty for none."""
    choices = draft.choices
    if not choices.chance(0.4):
        return ""
    fields = [f"math_fidelity=ttsim.MathFidelity.{choices.pick(FIDELITIES)}"]
    fields += [f"{name}={choices.chance(0.5)}" for name in ("fp32_dest_acc_en", "packer_l1_acc")]
    for name in choices.some(("math_approx_mode", "dst_full_sync_en"), 0.15):
        fields.append(f"{name}={choices.chance(0.5)}")
    if choices.chance(0.05):
        fields.append(f"throttle_level=ttsim.ThrottleLevel.{choices.pick(('LEVEL_1', 'LEVEL_3', 'NO_THROTTLE'))}")
    return f"ttsim.WormholeComputeKernelConfig({', '.join(fields)})"


def product(function: str, draft: Draft) -> Step | None:
    """A product of two matrices, and for `linear` perhaps with a row added."""
    first = draft.tensor(lambda one: one.is_float and len(one.shape) > 1 and (one.tiled or draft.choices.chance(0.1)))
    if first is None:
        return None
    choices = draft.choices
    transpose_a, transpose_b = choices.chance(0.1), choices.chance(0.2)
    a = first.values.swapaxes(-1, -2) if transpose_a else first.values
    depth, width = a.shape[-1], choices.pick(WIDTHS)
    most = first.shape[:-2] if choices.chance(0.2) else ()
    dtype = first.dtype if choices.chance(0.5) else choices.pick(("bfloat16", "float32", "bfloat8_b", "bfloat4_b"))
    sides = (*most, width, depth) if transpose_b else (*most, depth, width)
    where = place(draft, sides, tiled=True, sharded=0.1)
    second = operand(draft, "w", sides, dtype, where=where)
    b = second.values.swapaxes(-1, -2) if transpose_b else second.values
    before, made = second.text, {second.name: second.result}
    values, terms, squares = np.matmul(a, b), np.matmul(np.abs(a), np.abs(b)), np.matmul(a * a, b * b)
    how = named(transpose_a="True" if transpose_a else "", transpose_b="True" if transpose_b else "")
    if function == "linear" and choices.chance(0.6):
        held = choices.pick(("bfloat16", first.dtype))
        row = operand(draft, "b", (*(1,) * (len(first.shape) - 1), width), held, where=DRAM)
        before, made = before + row.text, made | {row.name: row.result}
        values, terms, squares = values + row.values, terms + np.abs(row.values), squares + row.values**2
        how += f", bias={row.name}"
    out = choices.pick(("bfloat16", "float32", "bfloat8_b")) if choices.chance(0.15) else first.dtype
    how += f", dtype=ttsim.{out}" if out != first.dtype else ""
    result_place = maybe_place(draft, values.shape, tiled=True)
    config = compute_config(draft)
    how += named(memory_config=result_place, compute_kernel_config=config)
    low = "LoFi" in config or (not config and first.is_block and dtype in BLOCKS)
    error = sum_error(values, terms, squares, depth, out, low_fidelity=low)
    # a block float that is transposed on its way is packed again, with other neighbors
    repacked = [
        np.full(one.shape, regrouped(one, data_type) if turned and data_type in BLOCKS else 0.0)
        for one, data_type, turned in ((a, first.dtype, transpose_a), (b, dtype, transpose_b))
    ]
    error = error + 4 * np.sqrt(np.matmul(repacked[0] ** 2, b * b) + np.matmul(a * a, repacked[1] ** 2))
    limit: float | None = norm(first.dtype, dtype, out, low_fidelity=low)
    if choices.chance(0.2):
        activation = choices.pick(("relu", "gelu", "silu"))
        how += f', activation="{activation}"'
        plain, values = values, np.asarray(FUNCTIONS[activation](values), np.float64)
        error = 1.2 * error + function_error(activation, values, plain, out)
        limit = limit if activation == "relu" else None
    if depth == 0 or not values.size:
        return None
    expected = Expected(
        values=values, bound=error, dtypes=(out,), layout="TILE", place=asked(draft, result_place), norm=limit
    )
    plain_call = function == "matmul" and not how and choices.chance(0.3)
    call = f"{first.name} @ {second.name}" if plain_call else f"ttsim.{function}({first.name}, {second.name}{how})"
    return Step(text=f"{before}{draft.name} = {call}", results={**made, draft.name: lambda: expected})


PRODUCTS: Final = MappingProxyType({name: partial(product, name) for name in ("matmul", "linear")})
