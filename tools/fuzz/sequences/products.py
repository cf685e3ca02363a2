"""Steps that multiply matrices."""

from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np

from tools.fuzz.sequences.bounds import regrouped, sum_error
from tools.fuzz.sequences.elementwise import FUNCTIONS, function_error
from tools.fuzz.sequences.operands import operand
from tools.fuzz.sequences.places import DRAM, asked, maybe_place, named, place
from tools.fuzz.sequences.state import BLOCKS, Draft
from tools.fuzz.sequences.steps import Expected, Step

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
