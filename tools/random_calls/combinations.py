"""Steps that compute every element of one to three operands by a formula, at once or in several operations."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from math import lgamma
from typing import Any, Final, NamedTuple

import numpy as np

import ttsim
from device.memory.memory_config import TILE
from device.numbers.formats import Array
from ops.programs.eltwise.pairs import PAIRS
from ops.programs.eltwise.special import erf
from tools.random_calls.drafts import BLOCKS, FLOATS, INTEGERS, Draft, Operand, Step, operation
from tools.random_calls.references import CUT_TO_TF32, rounding
from tools.random_calls.tensors import INTERLEAVED, LIMITS
from ttsim.api.eltwise import COMPARISONS
from ttsim.api.pairs import FUNCTIONS as PAIR_FUNCTIONS, IN_PLACE, OfTensors

Formula = Callable[..., Any]


class Form(NamedTuple):
    """A way to call a function."""

    arguments: str  # after its name; x, y and z are tensors
    formula: Formula  # of the tensors that the arguments name, in float64, or of integers
    dtypes: Sequence[str] = ("bfloat16", "bfloat16", "float32")
    steps: int = 1  # roundings of operands or of results in between


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(x / 2))


def _log_gammas(x: Array) -> Array:
    return np.asarray(sum(np.vectorize(lgamma)(np.abs(x) + 3 - half / 2) for half in range(4)) + 3 * np.log(np.pi))


def _triangle(part: Formula, x: Array, diagonal: int) -> Array:
    return np.asarray(part(np.atleast_2d(x), diagonal)).reshape(x.shape)  # a vector is one row


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


def _gated(gate: Formula) -> Formula:
    def values(x: Array) -> Array:
        half = x.shape[-1] // 2
        x = np.pad(x, [(0, 0), (0, 0), (0, -x.shape[2] % TILE), (0, 0)])  # the result has the rows of whole tiles
        return np.asarray(x[..., :half] * gate(x[..., half:]))

    return values


def _no_nan(x: Array, y: Array | float) -> Array:
    return np.asarray(np.where(y == 0, 0, x / np.where(y == 0, 1, y)))


def _dtypes(row: str) -> list[str]:
    """The data types of a function of two operands, floats as often as all others."""
    names = [data_format.name for data_format in PAIRS[row].formats]
    floats = [name for name in names if name in FLOATS]
    return [*floats, *(["bfloat16", "float32"] if floats else []), *(name for name in names if name not in FLOATS)]


GENERAL: Final = ("bfloat16", "bfloat16", "float32", "bfloat8_b")
WHOLE: Final = ("int32",)
_DIVISIONS: Final = (
    Form("x, y", lambda x, y: x / y),
    Form("x, 0.75", lambda x: x / 0.75, GENERAL),
    Form("3.0, y", lambda y: 3 / y),
    Form('x, y, rounding_mode="floor"', lambda x, y: np.floor(x / y), steps=2),
    Form('x, 0.75, rounding_mode="trunc"', lambda x: np.trunc(x / 0.75), steps=2),
    Form("x, y, fast_and_approximate_mode=True", lambda x, y: x / y, GENERAL, 3),
    Form('x, y, fast_and_approximate_mode=True, rounding_mode="floor"', lambda x, y: np.floor(x / y), steps=2),
    Form("x, y", lambda x, y: x / y, WHOLE),
    Form('x, y, rounding_mode="floor"', lambda x, y: np.where(y == 0, 0, x // np.where(y == 0, 1, y)), WHOLE),
)


def _pair_forms(row: str, kind: type) -> Sequence[Form]:
    """A function of two tensors, and perhaps of a tensor and a number."""
    values, dtypes = PAIRS[row].values, _dtypes(row)
    dtypes = (
        [name for name in dtypes if name in FLOATS] if row == "div" else dtypes
    )  # integers have no quotient of theirs
    two = Form("x, y", values, dtypes)
    if issubclass(kind, OfTensors):
        return (two,)
    return (two, two, Form("x, 2", lambda x: values(x, np.full_like(x, 2)), dtypes))


def _variance(x: Array) -> Array:
    """The variance of matrices, with zeros for the padding to whole tiles."""
    rows, columns = x.shape[2:]
    filled = -(-rows // TILE) * -(-columns // TILE) * TILE**2
    return np.asarray(np.var(x, axis=(2, 3), keepdims=True) * (rows * columns / filled))


FORMS: Final[Mapping[str, Sequence[Form]]] = {
    "where": (
        Form("x, y, z", lambda x, y, z: np.where(x != 0, y, z), GENERAL),
        Form("x, y, 2.0", lambda x, y: np.where(x != 0, y, 2.0), GENERAL),
        Form("x, -0.5, y", lambda x, y: np.where(x != 0, -0.5, y), GENERAL),
        Form("x, 2.0, 3.0", lambda x: np.where(x != 0, 2.0, 3.0), GENERAL),
        Form("ttsim.gt(x, y), y, z", lambda x, y, z: np.where(x > y, y, z)),
        Form("x, y, z", lambda x, y, z: np.where(x != 0, y, z), WHOLE),
    ),
    "addcmul": (Form("x, y, z, value=0.5", lambda x, y, z: x + 0.5 * y * z, GENERAL, 3),),
    "addcdiv": (Form("x, y, z, value=0.5", lambda x, y, z: x + 0.5 * y / z, GENERAL, 3),),
    "mac": (
        Form("x, y, z", lambda x, y, z: x * y + z, GENERAL, 3),
        Form("x, 2.0, y", lambda x, y: x * 2 + y, GENERAL, 2),
        Form("x, 2.0, 3.0", lambda x: x * 2 + 3, GENERAL, 2),
        Form("x, y, z", lambda x, y, z: x * y + z, WHOLE),
    ),
    "lerp": (
        Form("x, y, 0.25", lambda x, y: x + 0.25 * (y - x), GENERAL, 3),
        Form("x, y, z", lambda x, y, z: x + z * (y - x), GENERAL, 3),
    ),
    "clamp": (
        Form("x, min=-1.0, max=0.5", lambda x: np.clip(x, -1, 0.5), GENERAL),
        Form("x, max=0.5", lambda x: np.minimum(x, 0.5), GENERAL),
        Form("x, min=3, max=40", lambda x: np.clip(x, 3, 40), WHOLE),
        Form("x, min=y", np.maximum, GENERAL),
        Form("x, max=y", np.minimum, GENERAL),
        Form("x, min=y, max=z", lambda x, y, z: np.minimum(np.maximum(x, y), z), GENERAL),
    ),
    "clip": (
        Form("x, min=-0.5", lambda x: np.maximum(x, -0.5), GENERAL),
        Form("x, min=y, max=z", lambda x, y, z: np.minimum(np.maximum(x, y), z), GENERAL),
    ),
    "logical_not_": (Form("x", lambda x: x == 0, (*GENERAL, *WHOLE)),),
    "prelu": (Form("x, 0.25", lambda x: np.where(x < 0, 0.25 * x, x), GENERAL),),
    "glu": (Form("x", _gated(_sigmoid), GENERAL, 8),),
    "reglu": (Form("x", _gated(lambda x: np.maximum(x, 0)), GENERAL, 2),),
    "geglu": (Form("x", _gated(_gelu), GENERAL, 8),),
    "swiglu": (Form("x", _gated(lambda x: x * _sigmoid(x)), GENERAL, 8),),
    "var_hw": (Form("x", _variance, GENERAL, 8),),
    "std_hw": (Form("x", lambda x: np.sqrt(_variance(x)), GENERAL, 8),),
    "unary_chain": (
        Form("x, [ttsim.UnaryOpType.ABS, ttsim.UnaryOpType.RECIP]", lambda x: 1 / np.abs(x), steps=3),
        Form("x, [ttsim.UnaryOpType.NEG, ttsim.UnaryOpType.RELU]", lambda x: np.maximum(-x, 0), GENERAL),
    ),
    "outer": (Form("x, y", lambda x, y: x[..., :, None] * y[..., None, :], ("bfloat16", "float32"), 3),),
    "l1_loss": (Form("x, y", lambda x, y: np.abs(x - y), GENERAL, 2),),
    "mse_loss": (Form("x, y", lambda x, y: (x - y) ** 2, GENERAL, 3),),
    "div": _DIVISIONS,
    "divide": _DIVISIONS,
    "rdiv": (
        Form("y, 3.0", lambda y: 3 / y, steps=2),
        Form('y, 3.0, rounding_mode="floor"', lambda y: np.floor(3 / y), steps=2),
    ),
    "pow": (
        Form("x, 3", lambda x: x**3, GENERAL, 3),
        Form("x, 2.0", lambda x: x**2, GENERAL, 3),
        Form("ttsim.abs(x), 0.5", lambda x: np.sqrt(np.abs(x)), steps=3),
        Form("x, 1", lambda x: x, (*GENERAL, *WHOLE)),
        Form("2.0, x", lambda x: 2.0**x, steps=3),
        Form("ttsim.abs(x), y", lambda x, y: np.abs(x) ** y, steps=3),
    ),
    "addalpha": (Form("x, y, 0.5", lambda x, y: x + 0.5 * y, GENERAL, 3),),
    "subalpha": (Form("x, y, 0.5", lambda x, y: x - 0.5 * y, GENERAL, 3),),
    "floor_div": (
        Form("x, y", lambda x, y: np.floor(x / y), steps=2),
        Form("x, 0.75", lambda x: np.floor(x / 0.75), steps=2),
    ),
    "div_no_nan": (Form("x, y", _no_nan, steps=2), Form("x, 0.75", lambda x: x / 0.75, steps=2)),
    "isclose": (
        Form("x, y, rtol=0.1, atol=0.25", lambda x, y: np.abs(x - y) <= 0.25 + 0.1 * np.abs(y)),
        Form("x, x", lambda x: x == x),
    ),
    "bias_gelu": (
        Form("x, y", lambda x, y: _gelu(x + y), GENERAL, 2),
        Form("x, 0.5", lambda x: _gelu(x + 0.5), steps=2),
    ),
    "polyval": (Form("x, [1.0, -2.0, 3.0]", lambda x: x * x - 2 * x + 3, GENERAL, 4),),
    "multigammaln": (Form("ttsim.add(ttsim.abs(x), 3.0)", _log_gammas, steps=8),),
    **{
        name: (
            Form("x", lambda x, part=part: _triangle(part, x, 0), (*GENERAL, *WHOLE)),
            Form(f"x, diagonal={diagonal}", lambda x, part=part, k=diagonal: _triangle(part, x, k), GENERAL),
        )
        for name, part, diagonal in (("tril", np.tril, -2), ("triu", np.triu, 3))
    },
    "bitwise_not": (Form("x", np.bitwise_not, WHOLE),),
    **{name: _pair_forms(row.operation, row.kind) for name, row in (PAIR_FUNCTIONS | IN_PLACE).items()},
}
IMAGES: Final = ("glu", "reglu", "geglu", "swiglu", "var_hw", "std_hw")  # of tensors of rank 4
VECTORS: Final = ("outer",)


@operation(*FORMS)
def combination(draft: Draft) -> Step:
    """A function of one to three operands, some of which may be repeated along axes."""
    name = draft.function
    form = draft.pick(FORMS[name])
    dtype, letters = draft.pick(form.dtypes), sorted(set(re.findall(r"\b[xyz]\b", form.arguments)))
    if name in IMAGES:
        sides: tuple[int, ...] = (draft.pick((1, 2)), 1, draft.pick((32, 40)), 64 * draft.pick((1, 2)))
    elif name in VECTORS:
        sides = (draft.pick((1, 2)), draft.pick((1, 7, 32, 50)))
    else:
        sides = draft.shape()
    operands = {letter: _operand(draft, letter, sides, dtype) for letter in letters}
    draft.call(re.sub(r"\b[xyz]\b", lambda found: str(operands[found[0]]), form.arguments))
    whole = dtype in INTEGERS
    given = [operand.values.astype(np.int64) if whole else operand.values for operand in operands.values()]
    values, bound = tolerance(form, given, dtype)
    parameters, target = inspect.signature(getattr(ttsim, name)).parameters, str(next(iter(operands.values())))
    if name.endswith("_"):
        draft.target = target
    elif "memory_config" in parameters:
        draft.placed(values.shape, tiled=True, probability=0.15, only=INTERLEAVED)
    # of a tensor and a number the real library drops the activations of maximum and minimum
    if "activations" in parameters and not whole and len(letters) > 1 and draft.chance(0.1):
        draft.option("activations", "[ttsim.UnaryWithParam(ttsim.UnaryOpType.RELU)]")
        values = np.maximum(values, 0)
    made = dtype
    if whole and values.dtype.kind == "f":  # a quotient of integers
        made = "float32"
    elif dtype == "uint8" and name in COMPARISONS:  # which cast it first; those in place do not
        made = "uint16"
    return draft.gives(values.astype(np.float64), bound, dtypes=(made,), layout="TILE")


def _operand(draft: Draft, letter: str, sides: tuple[int, ...], dtype: str) -> Operand:
    """A tensor of some shape, or one that is repeated along some of its axes."""
    if letter != "x" and draft.chance(0.2):
        sides = tuple(1 if draft.chance(0.4) else side for side in sides)
    kind = draft.pick(("integers",) if dtype in INTEGERS else ("normal", "few"))
    where = draft.memory_config(sides, tiled=True, sharded=0.1)
    return draft.operand(letter, sides, dtype, where=where, kind=kind)


def tolerance(form: Form, operands: Sequence[Array], dtype: str) -> tuple[Array, Array]:
    """A formula of operands, and how far the result in a data type may lie from it.

    As far as it moves when each operand moves by a rounding for each step, and a rounding of the result.
    """
    with np.errstate(all="ignore"):
        values = np.asarray(form.formula(*operands))
        if dtype in INTEGERS:
            return (values if values.dtype.kind == "f" else wrapped(values, dtype)), np.abs(values) * 2.0**-20
        values = np.asarray(values, np.float64)
        error, share = 2 * rounding(values, dtype), (CUT_TO_TF32 if dtype == "float32" else 2.0**-8) * form.steps
        for place, operand in enumerate(operands):
            moves = share * np.abs(operand) + (rounding(operand, dtype) * form.steps if dtype in BLOCKS else 0.0)
            if dtype != "float32" and form.steps == 1:
                continue
            for move in (moves, -moves):
                changed = [*operands[:place], operand + move, *operands[place + 1 :]]
                error = error + np.abs(np.asarray(form.formula(*changed), np.float64) - values)
    known = np.isfinite(values) & (np.abs(values) < 1e30) & np.isfinite(error)
    error = np.where(known, error, np.inf)
    error = np.full(error.shape, np.inf) if dtype in BLOCKS and not known.all() else error
    return np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf), error


def wrapped(values: Array, dtype: str) -> Array:
    """Integers in the range of a data type, as they wrap around."""
    least, most = LIMITS[dtype]
    return np.asarray((values.astype(np.int64) - least) % (most - least + 1) + least)
