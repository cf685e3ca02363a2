"""Steps that multiply matrices."""

from typing import Final

import numpy as np

from device.memory.memory_config import TILE
from tools.random_calls.drafts import (
    BLOCKS,
    DRAM,
    L1,
    USUAL,
    Draft,
    Expected,
    Shadow,
    Step,
    of_tensor,
    operation,
)
from tools.random_calls.elementwise import applied
from tools.random_calls.references import regrouped_error, rounding, sum_error, sums
from tools.random_calls.tensors import INTERLEAVED

WIDTHS: Final = (32, 1, 8, 33, 64, 100, 128)
NORMS: Final = {"bfloat4_b": 0.9, "bfloat8_b": 0.12}  # relative L2 by the coarsest format; else 0.06


def norm(*dtypes: str, low_fidelity: bool) -> float:
    """The largest relative L2 error of sums of products of these data types."""
    return max(NORMS.get(dtype, 0.06) for dtype in dtypes) + (0.06 if low_fidelity else 0.0)


def compute_config(draft: Draft) -> str:
    """A compute kernel config; empty for none."""
    if not draft.chance(0.4):
        return ""
    fields = [f"math_fidelity=ttsim.MathFidelity.{draft.pick(('HiFi4', 'HiFi3', 'HiFi2', 'LoFi'))}"]
    fields += [f"{name}={draft.chance(0.5)}" for name in ("fp32_dest_acc_en", "packer_l1_acc")]
    for name in ("math_approx_mode", "dst_full_sync_en"):
        fields += [f"{name}={draft.chance(0.5)}"] if draft.chance(0.15) else []
    if draft.chance(0.05):
        fields.append(f"throttle_level=ttsim.ThrottleLevel.{draft.pick(('LEVEL_1', 'LEVEL_3', 'NO_THROTTLE'))}")
    return f"ttsim.WormholeComputeKernelConfig({', '.join(fields)})"


@of_tensor("matmul", "linear", accept=lambda x: x.is_float and len(x.shape) > 1)
def product(draft: Draft, x: Shadow) -> Step | None:
    """A product of two matrices, and for `linear` perhaps with a row added."""
    if draft.chance(0.4):
        return tuned(draft)
    if not x.tiled and not draft.chance(0.1):
        return None
    turned_a, turned_b = draft.chance(0.1), draft.chance(0.2)
    a = x.values.swapaxes(-1, -2) if turned_a else x.values
    depth, width = a.shape[-1], draft.pick(WIDTHS)
    most = x.shape[:-2] if draft.chance(0.2) else ()
    dtype = x.dtype if draft.chance(0.5) else draft.pick((*USUAL, "bfloat4_b"))
    sides = (*most, width, depth) if turned_b else (*most, depth, width)
    second = draft.operand("w", sides, dtype, where=draft.memory_config(sides, tiled=True, sharded=0.1))
    b = second.values.swapaxes(-1, -2) if turned_b else second.values
    draft.call(x, second).option("transpose_a", turned_a or "").option("transpose_b", turned_b or "")
    row = None
    if draft.function == "linear" and draft.chance(0.6):
        ones = (1,) * (len(x.shape) - 1)
        row = draft.operand("b", (*ones, width), draft.pick(("bfloat16", x.dtype)), where=DRAM)
    out = draft.option("bias", row).typed(0.15).dtype or x.dtype
    draft.placed((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], width), tiled=True, only=INTERLEAVED)
    config = compute_config(draft)
    low = "LoFi" in config or (not config and x.dtype in BLOCKS and dtype in BLOCKS)
    activation = draft.pick(("relu", "gelu", "silu")) if draft.chance(0.2) else ""
    draft.option("compute_kernel_config", config).option("activation", activation and f'"{activation}"')
    place = draft.required
    if not draft.place and not draft.dtype and draft.chance(0.1):
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], width)
        target = draft.operand("o", shape, out, where=DRAM)
        draft.option("optional_output_tensor", target)
        draft.target = target.name

    def expected() -> Expected:
        values, terms, squares = sums(np.matmul, a, b, None if row is None else row.values)
        bound = sum_error(values, terms, squares, depth, out, low_fidelity=low)
        # a block float that is transposed on its way is packed again, with other neighbors
        packed_a, packed_b = (
            np.full(side.shape, regrouped_error(side, kind) if turned and kind in BLOCKS else 0.0)
            for side, kind, turned in ((a, x.dtype, turned_a), (b, dtype, turned_b))
        )
        bound = bound + 4 * np.sqrt(np.matmul(packed_a**2, b * b) + np.matmul(a * a, packed_b**2))
        limit: float | None = norm(x.dtype, dtype, out, low_fidelity=low)
        if activation:
            values, more = applied(activation, values, out)
            bound, limit = 1.2 * bound + more, limit if activation == "relu" else None
        return Expected(values=values, bound=bound, dtypes=(out,), layout="TILE", place=place, norm=limit)

    short = draft.function == "matmul" and len(draft.arguments) == 2 and draft.chance(0.3)
    return draft.gives(expect=expected, text=f"{x} @ {second}" if short else "")


def _shards(kind: str, sides: tuple[int, int], columns: int, rows: int = 1, *, buffer: str = "L1") -> str:
    return f'shards("{kind}", {sides}, (0, 0, {columns - 1}, {rows - 1}), buffer="{buffer}")'


def tuned(draft: Draft) -> Step:
    """A product as tuned networks call it: with a program config or a grid, sharded operands and outputs."""
    across, down, depth = draft.between(2, 4), draft.between(2, 4), draft.pick((1, 2, 3))
    high, wide, block = draft.pick((1, 2, 3)), draft.pick((1, 2)), draft.pick((1, depth))
    kind = draft.pick(("2D", "1D", "columns", "reuse", "grid"))
    sharded, batches = draft.chance(0.5), draft.pick((1, 2, 3)) if kind == "reuse" else 1
    rows, inside, columns = {
        "2D": (high * down, depth * across, wide * across),
        "1D": (high, depth * across * down, wide * across * down),
        "columns": (high * across * down, depth, wide),
        "reuse": (high, depth, wide),
        "grid": (high * down, depth * across, wide * across),
    }[kind]
    grid = f"compute_with_storage_grid_size=({across}, {down}), in0_block_w={block}, out_subblock_h=1, "
    grid += f"out_subblock_w={wide}, per_core_M={high}, per_core_N={wide}"
    first, last = {
        "2D": (("BLOCK", (high * TILE, depth * TILE)), ("BLOCK", (high * TILE, wide * TILE))),
        "1D": (("WIDTH", (high * TILE, depth * TILE)), ("WIDTH", (high * TILE, wide * TILE))),
        "columns": (("HEIGHT", (high * TILE, depth * TILE)), ("HEIGHT", (high * TILE, wide * TILE))),
    }.get(kind, (None, None))
    config = {
        "2D": f"ttsim.MatmulMultiCoreReuseMultiCastProgramConfig({grid}, transpose_mcast=False)",
        "1D": f"ttsim.MatmulMultiCoreReuseMultiCast1DProgramConfig({grid}, fuse_batch=True, mcast_in0=True)",
        "columns": f"ttsim.MatmulMultiCoreReuseMultiCast1DProgramConfig({grid}, fuse_batch=True, mcast_in0=False)",
        "reuse": f"ttsim.MatmulMultiCoreReuseProgramConfig({grid})",
    }.get(kind, "")
    places = [_shards(*each, across, down) if each and sharded else draft.pick((DRAM, L1)) for each in (first, last)]
    dtypes = [draft.pick(USUAL), draft.pick((*USUAL, "bfloat4_b"))]
    ragged = 0 if sharded or kind == "reuse" else draft.pick((0, 0, 5))
    sides = (batches, 1, rows * TILE - ragged, inside * TILE)
    x = draft.operand("a", sides, dtypes[0], where=places[0])
    second = draft.operand("w", (batches, 1, inside * TILE, columns * TILE - ragged), dtypes[1], where=DRAM)
    draft.call(x, second).option("program_config", config).option("memory_config", places[1])
    draft.option("core_grid", f"ttsim.CoreGrid(y={down}, x={across})" if kind == "grid" else "")
    row = None
    if draft.function == "linear" and kind != "reuse" and draft.chance(0.6):
        row = draft.operand("b", (1, 1, 1, columns * TILE - ragged), draft.pick(("bfloat16", dtypes[0])), where=DRAM)
    out = draft.option("bias", row).typed(0.15).dtype or dtypes[0]
    compute = compute_config(draft)
    low = "LoFi" in compute or (not compute and all(dtype in BLOCKS for dtype in dtypes))
    activation = draft.pick(("relu", "gelu", "silu")) if draft.chance(0.2) and not config else ""
    draft.option("compute_kernel_config", compute).option("activation", activation and f'"{activation}"')

    def expected() -> Expected:
        values, terms, squares = sums(np.matmul, x.values, second.values, None if row is None else row.values)
        bound = sum_error(values, terms, squares, inside * TILE, out, low_fidelity=low)
        limit: float | None = norm(*dtypes, out, low_fidelity=low)
        if activation:
            values, more = applied(activation, values, out)
            bound, limit = 1.2 * bound + more, limit if activation == "relu" else None
        return Expected(values=values, bound=bound, dtypes=(out,), layout="TILE", norm=limit)

    return draft.gives(expect=expected)


@operation("addmm")
def sum_of_products(draft: Draft) -> Step:
    """A matrix, and a product added to it, each times a number."""
    rows, depth, width = (draft.pick((32, 40, 64)) for _ in range(3))
    dtype = draft.pick(("bfloat16", "bfloat16", "float32"))
    sides = {"c": (rows, width), "a": (rows, depth), "b": (depth, width)}
    third, first, second = (draft.operand(name, sides[name], dtype, where=DRAM) for name in "cab")
    alpha, beta = draft.pick((1.0, 0.5, -2.0)), draft.pick((1.0, 0.5, 3.0))
    draft.call(third, first, second).option("alpha", alpha).option("beta", beta)

    def expected() -> Expected:
        values, terms, squares = sums(np.matmul, first.values, second.values, None)
        bound = abs(alpha) * sum_error(values, terms, squares, depth, dtype, low_fidelity=False)
        added = beta * third.values
        values = alpha * values + added
        bound = bound + (np.abs(values) + np.abs(added)) * 2.0**-7 + 2 * rounding(values, dtype)
        return Expected(values=values, bound=bound, dtypes=(dtype,), layout="TILE")

    return draft.gives(expect=expected)
