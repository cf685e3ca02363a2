"""Steps that reduce axes of a tensor."""

from typing import Final

import numpy as np

from device.numbers.formats import Array
from tools.random_calls.drafts import DRAM, Draft, Expected, Shadow, Step, of_tensor, operation
from tools.random_calls.references import BLOCK_BITS, SMALLEST, rounding
from tools.random_calls.tensors import INTERLEAVED

PARTIAL_ROUNDINGS: Final = {"bfloat8_b": 2.0**-5}  # of partial sums and what shares their exponents, else bfloat16's
LARGEST: Final = 1e30  # of products whose numbers are compared
IMAGE_RANK: Final = 4
EXPERTS: Final = (64, 128, 256)
REDUCED: Final = ("bfloat16", "float32", "bfloat8_b")


def _is_reduced(x: Shadow) -> bool:
    """Whether a tensor may be reduced; integers only by some functions, which refuse the others."""
    return x.dtype in (*REDUCED, "int32", "uint32")


@of_tensor("sum", "mean", "max", "min", accept=_is_reduced)
def reduction(draft: Draft, x: Shadow) -> Step:
    """All elements along some axes as one."""
    rank = len(x.shape)
    axes = draft.pick(((rank - 1,), (max(0, rank - 2),), (draft.below(rank),), tuple(range(rank))))
    keeps = draft.chance(0.5)
    dims = None if len(axes) == rank and draft.chance(0.5) else axes[0] if len(axes) == 1 else list(axes)
    draft.call(x).option("dim", dims if dims is not None else "None").option("keepdim", keeps or "")
    draft.placed(x.shape, tiled=True, probability=0.15, only=INTERLEAVED)
    if draft.place not in INTERLEAVED:
        return draft.call(x).gives(expect=lambda: _expected(draft.function, x, tuple(range(rank)), keeps=False))
    scalar = draft.pick((0.5, 2.0, -0.75)) if x.is_float and draft.chance(0.15) else 1.0
    draft.option("scalar", scalar if scalar != 1 else "")
    return draft.gives(expect=lambda: _expected(draft.function, x, axes, keeps=keeps, scalar=scalar))


def _expected(function: str, x: Shadow, axes: tuple[int, ...], *, keeps: bool, scalar: float = 1.0) -> Expected:
    values: Array = scalar * np.asarray(getattr(np, function)(x.values, axis=axes, keepdims=keeps), np.float64)
    if not x.is_float:
        return Expected(values=values, dtypes=(x.dtype,))
    terms = getattr(np, "sum" if function == "sum" else "mean")(np.abs(x.values), axis=axes, keepdims=keeps)
    if function in ("max", "min"):
        terms = np.abs(values)
    share = PARTIAL_ROUNDINGS.get(x.dtype, 2.0**-7)
    bound = np.asarray(terms) * share * (1 if x.dtype != "float32" else 2.0**-8) + 2 * rounding(values, x.dtype)
    return Expected(values=values, bound=bound, dtypes=(x.dtype,))


@of_tensor("std", "var", accept=lambda x: x.dtype in REDUCED and not x.tensor.is_sharded())
def deviation(draft: Draft, x: Shadow) -> Step:
    """Deviations along some axes; single elements have none."""
    rank = len(x.shape)
    axes = draft.pick(((rank - 1,), (draft.below(rank),), tuple(range(rank // 2, rank)), tuple(range(rank))))
    keeps = draft.chance(0.5)
    corrected = np.prod([x.shape[axis] for axis in axes]) > 1 and draft.chance(0.6)
    draft.call(x).option("dim", list(axes)).option("keepdim", keeps or "").option("correction", bool(corrected))
    values = getattr(np, draft.function)(x.values, axis=axes, keepdims=keeps, ddof=int(corrected), dtype=np.float64)
    largest = np.max(values, initial=0.0) if x.dtype == "bfloat8_b" else 0.0  # results share exponents
    bound = 2 * rounding(values, x.dtype) + 2.0**-6 * largest + 2.0**-20 * np.abs(values)
    return draft.gives(expect=lambda: Expected(values=values, bound=bound, dtypes=(x.dtype,), layout="TILE"))


@of_tensor("prod", accept=lambda x: x.dtype in REDUCED and x.tiled and not x.tensor.is_sharded())
def product(draft: Draft, x: Shadow) -> Step:
    """The product along an axis, or of all elements; also in a tensor of four axes that is given."""
    if len(x.shape) == IMAGE_RANK and draft.chance(0.2):
        axis = draft.below(2)
        sides = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        target = draft.operand("o", sides, x.dtype, where=draft.memory_config(sides, tiled=True, sharded=0))
        draft.target = target.name
        draft.call(x, target).option("dims", [axis])
        values, bound = product_and_error(x.values, axis, x.dtype, keepdims=True)
        return draft.gives(expect=lambda: Expected(values=values, bound=bound, dtypes=(x.dtype,), layout="TILE"))
    axis = draft.pick((None, *range(-len(x.shape), len(x.shape))))
    keeps = draft.chance(0.5)
    draft.call(x).option("dim", "None" if axis is None else axis).option("keepdim", keeps or "")
    values, bound = product_and_error(x.values, axis, x.dtype, keepdims=keeps)
    return draft.gives(expect=lambda: Expected(values=values, bound=bound, dtypes=(x.dtype,), layout="TILE"))


def product_and_error(factors: Array, axis: int | None, dtype: str, *, keepdims: bool) -> tuple[Array, Array]:
    """The product along an axis, or of all elements for None, and how far a product in float32 may lie from it.

    Where the last axis is multiplied, another one lies along the rows of tiles, so block floats get new neighbors. A
    partial product may leave float32 at either end, wherever the whole one lies.
    """

    def total(numbers: Array) -> Array:
        return np.asarray(np.prod(numbers, axis=axis, keepdims=keepdims, dtype=np.float64))

    rank, magnitudes = factors.ndim, np.abs(factors)
    lost = np.zeros_like(magnitudes)
    if dtype in BLOCK_BITS and axis in (-1, rank - 1) and rank > 1:
        beside = -2 if rank <= 4 else -3
        lost = rounding(factors.swapaxes(-1, beside), dtype).swapaxes(-1, beside)
    terms = factors.size if axis is None else factors.shape[axis]
    with np.errstate(all="ignore"):
        values, most = total(factors), total(np.maximum(magnitudes + lost, 1.0))
        spread = total(magnitudes + lost) - np.abs(values)
        largest = np.max(np.abs(values) + spread, initial=0.0) if dtype in BLOCK_BITS else 0.0  # shared exponents
        rounded = 2 * rounding(values, dtype) + 2.0**-6 * largest + terms * 2.0**-23 * np.abs(values)
        vanished = np.where(total(np.minimum(magnitudes, 1.0)) < SMALLEST, np.abs(values), 0.0)
        bound = spread + rounded + vanished + SMALLEST * most
    return values, np.where(most < LARGEST, bound, np.inf)


@of_tensor("cumsum", "cumprod", accept=lambda x: x.dtype in REDUCED and x.tiled and not x.tensor.is_sharded())
def accumulation(draft: Draft, x: Shadow) -> Step:
    """Sums or products of all elements up to each one."""
    rank = len(x.shape)
    axis, backwards = draft.between(-rank, rank - 1), draft.chance(0.2)
    draft.call(x, axis).option("reverse_order", backwards or "")
    draft.placed(x.shape, tiled=True, probability=0.0)
    values = np.flip(x.values, axis) if backwards else x.values
    with np.errstate(all="ignore"):
        totals = getattr(np, draft.function)(values, axis=axis)
        share = PARTIAL_ROUNDINGS.get(x.dtype, 2.0**-7 if x.dtype == "bfloat16" else 2.0**-16)
        magnitudes = np.maximum.accumulate(getattr(np, draft.function)(np.abs(values), axis=axis), axis=axis)
        largest = magnitudes.max(initial=0.0)
        bound = np.full(totals.shape, share * largest if largest < 1e30 else np.inf)
    totals, bound = (np.flip(array, axis) if backwards else array for array in (totals, bound))
    return draft.gives(totals, bound, dtypes=(x.dtype,), layout="TILE")


@of_tensor(
    "experimental.fast_reduce_nc",
    accept=lambda x: x.dtype in REDUCED and x.tiled and not x.tensor.is_sharded() and len(x.shape) > 2,
)
def fast_reduce_nc(draft: Draft, x: Shadow) -> Step:
    """Images added along one axis; the padding of their tiles is part of the result, and may hold anything."""
    axis = draft.below(len(x.shape) - 2)
    draft.call(x).option("dims", [axis])
    values, terms = x.values.sum(axis, keepdims=True), np.abs(x.values).sum(axis, keepdims=True)
    share = PARTIAL_ROUNDINGS.get(x.dtype, 2.0**-7)  # a 16-bit Dst rounds sums, and float32 is cut on its way there
    bound = x.shape[axis] * share * terms + 2 * rounding(values, x.dtype)
    around = [(0, padded - side) for padded, side in zip(x.tensor.padded_shape, x.shape, strict=True)]
    values, bound = np.pad(values, around), np.pad(bound, around, constant_values=np.inf)
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")


@operation("experimental.intimg")
def integral_image(draft: Draft) -> Step:
    """Sums over both axes of an image, a tile of channels on each of eight cores."""
    sides = draft.pick((1, 3, 49)), draft.pick((5, 33, 64))
    x = draft.operand("a", (1, *sides, draft.pick((225, 256))), draft.pick(("bfloat16", "float32")), where=DRAM)
    draft.call(x)
    values = np.cumsum(np.cumsum(x.values, 1), 2)
    magnitudes = np.cumsum(np.cumsum(np.abs(x.values), 1), 2)
    bound = magnitudes * sum(sides) * (2.0**-8 if x.dtype == "bfloat16" else 2.0**-10)
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")


@of_tensor("argmax", accept=lambda x: x.dtype in ("bfloat16", "float32") and not x.tensor.is_sharded())
def argmax(draft: Draft, x: Shadow) -> Step:
    """Places of the largest elements, the first of equal ones."""
    rank = len(x.shape)
    axis, keeps = draft.below(rank), draft.chance(0.7)
    draft.call(x).option("dim", axis).option("keepdim", keeps or "")
    return draft.gives(np.argmax(x.values, axis=axis, keepdims=keeps), dtypes=("uint32",), layout="ROW_MAJOR")


@of_tensor(
    "sort",
    accept=lambda x: x.dtype in ("bfloat16", "float32") and max(x.shape, default=1) > (1 if x.tiled else 16),
)
def sort(draft: Draft, x: Shadow) -> Step:
    """All elements along an axis in order."""
    least = 1 if x.tiled else 16
    axis, descending = draft.pick([axis for axis, side in enumerate(x.shape) if side > least]), draft.chance(0.4)
    draft.call(x).option("dim", axis).option("descending", descending or "")
    values = np.flip(np.sort(x.values, axis=axis), axis) if descending else np.sort(x.values, axis=axis)
    layout = "TILE" if x.tiled else "ROW_MAJOR"
    return draft.gives(values, dtypes=(x.dtype,), layout=layout, text=f"ttsim.sort({', '.join(draft.arguments)})[0]")


@of_tensor("topk", accept=lambda x: x.dtype in ("bfloat16", "float32") and x.tiled and not x.tensor.is_sharded())
def topk(draft: Draft, x: Shadow) -> Step:
    """The largest or smallest elements along an axis."""
    axis, largest = draft.below(len(x.shape)), draft.chance(0.7)
    count = draft.between(1, min(x.shape[axis], 40))
    draft.call(x, count).option("dim", axis).option("largest", "" if largest else "False")
    if draft.chance(0.3):  # the indices are places of these values
        pair, text = f"{draft.name}p", f"ttsim.topk({', '.join(draft.arguments)})"
        picked = f"np.take_along_axis({x}.to_numpy(), {pair}[1].to_numpy().astype(int), {axis})"
        same = f"bool(np.array_equal({picked}, {pair}[0].to_numpy()))\ndel {pair}"
        return draft.fact(same, True, f"{pair} = {text}\n")
    ordered = np.sort(x.values, axis=axis)
    values = np.take(np.flip(ordered, axis) if largest else ordered, range(count), axis)
    return draft.gives(values, dtypes=(x.dtype,), layout="TILE", text=f"ttsim.topk({', '.join(draft.arguments)})[0]")


@of_tensor(
    "moe",
    accept=lambda x: (
        x.tiled and x.dtype in ("bfloat16", "float32") and len(x.shape) == IMAGE_RANK and x.shape[-1] in EXPERTS
    ),
)
def moe(draft: Draft, x: Shadow) -> Step:
    """The weight of the first of the experts; the numbers of scores that are nearly equal are not known."""
    masks = [
        draft.operand(suffix, (1, 1, 1, side), "bfloat16", where=DRAM)
        for suffix, side in (("e", x.shape[-1]), ("k", 32))
    ]
    draft.call(x, *masks, 32)
    sides = (*x.shape[:-1], 1)
    return draft.gives(np.zeros(sides), np.full(sides, np.inf), dtypes=(x.dtype,), layout="TILE")
