"""Steps of attention: softmax, heads, embeddings, positions."""

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Array
from tools.random_calls.drafts import (
    DRAM,
    Draft,
    Operand,
    Shadow,
    Step,
    is_float,
    of_tensor,
    operation,
    whole_numbers,
)
from tools.random_calls.references import movement_error, rounding
from tools.random_calls.tensors import INTERLEAVED


@of_tensor("softmax", accept=lambda x: is_float(x) and bool((np.abs(x.values) < 1e30).all()))
def softmax(draft: Draft, x: Shadow) -> Step:
    """Exponentials divided by their sums."""
    axis = draft.between(-len(x.shape), len(x.shape) - 1)
    draft.call(x, axis).placed(x.shape, tiled=True, probability=0.15)
    shifted = x.values - x.values.max(axis, keepdims=True)
    powers = np.exp(shifted)
    values = powers / powers.sum(axis, keepdims=True)
    # the difference, the exponential, the sum and the quotient are each rounded to 8 bits or more
    bound = values * (0.05 + np.abs(shifted) * 2.0**-7) + 4 * rounding(values, x.dtype) + 1e-6
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")


def _softmax(scores: Array, dtype: str, lost: Array | float = 0.0) -> tuple[Array, Array]:
    """The softmax along the last axis, and its error; ``lost`` is that of the scores."""
    shifted = scores - scores.max(-1, keepdims=True)
    powers = np.exp(shifted)
    values = powers / powers.sum(-1, keepdims=True)
    share = 0.05 + np.minimum(np.abs(shifted), 100) * 2.0**-7 + lost
    return values, values * share + values.max(-1, keepdims=True) * 2.0**-7 * lost + 4 * rounding(values, dtype) + 1e-6


def _mask(draft: Draft, sides: tuple[int, ...], kind: str = "few") -> Operand:
    return draft.operand("m", sides, draft.pick(("bfloat16", "bfloat16", "bfloat8_b")), where=DRAM, kind=kind)


@operation(
    "softmax_in_place", "scale_mask_softmax", "scale_mask_softmax_in_place", "transformer.attention_softmax",
    "transformer.attention_softmax_", "scale_causal_mask_hw_dims_softmax_in_place",
)  # fmt: skip
def masked(draft: Draft) -> Step:
    """The softmax of scaled scores with a mask, perhaps written over the scores."""
    name = draft.function
    batch, heads, rows, columns = draft.pick((1, 2)), draft.pick((1, 3)), draft.pick((32, 64)), 32 * draft.between(1, 3)
    by_heads, written = name.startswith("scale_causal"), name.endswith(("_", "in_place"))
    if written:
        rows, columns = 32 * draft.pick((1, 2)), 32 * draft.between(1, 4)
    sides, dtype, where = (batch, heads, rows, columns), draft.pick(("bfloat16", "bfloat16", "float32")), DRAM
    if by_heads:
        sides, dtype = (1, 1, batch * 32, columns), "bfloat16"
        where = f'shards("HEIGHT", (32, {columns}), (0, 0, {batch - 1}, 0))'
    x = draft.operand("a", sides, dtype, where=where, kind=draft.pick(("normal", "few")))
    draft.call(x)
    scores, scale = x.values, draft.pick((0.5, 0.125, 1.0))
    if name != "softmax_in_place":
        whole = draft.chance(0.4) and not by_heads
        mask = _mask(draft, (1, 1, 32, columns) if by_heads else (batch, 1, rows if whole else 32, columns))
        if whole and not written:  # 32 rows of the mask after the other
            mask_rows = mask.values if rows == TILE else None
            whole = mask_rows is not None
        added = mask.values if whole or by_heads else mask.values[..., :1, :]
        if by_heads:
            added = np.tile(added, (1, 1, batch, 1))
            program = "ttsim.SoftmaxShardedMultiCoreProgramConfig(compute_with_storage_grid_size=(8, 8), "
            program += f"subblock_w=1, block_h=1, block_w={columns // TILE})"
            draft.option("scale", scale).option("mask", mask).option("program_config", program)
        elif name.startswith("transformer"):
            size = draft.pick((16, 64))
            draft.option("head_size", size).option("attention_mask", mask).option("causal_mask", whole or "")
            scale = 1 / np.sqrt(size)
        else:
            draft.option("scale", scale).option("mask", mask).option("is_causal_mask", whole or "")
        scores = scores * scale + added
    if written:
        draft.target = x.name
    lost = (np.abs(x.values).max() + np.abs(scores).max()) * 2.0**-7
    return draft.gives(*_softmax(scores, dtype, lost), dtypes=(dtype,), layout="TILE")


@operation("transformer.scaled_dot_product_attention")
def attention(draft: Draft) -> Step:
    """Values weighted by the softmax of scores."""
    batch, rows, keys, size = (
        draft.pick((1, 2)),
        32 * draft.between(1, 3),
        32 * draft.between(1, 3),
        draft.pick((32, 64)),
    )
    heads, groups, how = *draft.pick(((1, 1), (2, 1), (2, 2), (4, 2))), draft.pick(("causal", "mask", "neither"))
    rows, dtype = keys if how == "causal" else rows, draft.pick(("bfloat16", "bfloat16", "bfloat8_b"))
    q = draft.operand("q", (batch, heads, rows, size), dtype, where=DRAM)
    k, v = (draft.operand(name, (batch, groups, keys, size), dtype, where=DRAM) for name in "kv")
    draft.call(q, k, v).option("is_causal", "" if how == "causal" else "False")
    keyed, valued = (np.repeat(side.values, heads // groups, 1) for side in (k, v))
    factor = 1 / np.sqrt(size)
    if draft.chance(0.3):
        factor = 0.25
        draft.option("scale", factor)
    scores = q.values @ keyed.swapaxes(-1, -2) * factor
    if how == "mask":
        mask = _mask(draft, (draft.pick((1, batch)), draft.pick((1, heads)), rows, keys))
        scores = scores + mask.values
        draft.option("attn_mask", mask)
    elif how == "causal":
        scores = np.where(np.tri(rows, keys, dtype=bool), scores, -np.inf)
    weights, lost = _softmax(scores, "bfloat16", 2.0**-5)
    bound = 2.5 * lost @ np.abs(valued) + 4 * rounding(weights @ np.abs(valued), dtype)
    return draft.gives(weights @ valued, bound + 2.0**-6, dtypes=(dtype,), layout="TILE")


@operation("transformer.scaled_dot_product_attention_decode", "transformer.paged_scaled_dot_product_attention_decode")
def decoded(draft: Draft) -> Step:
    """Attention of one token for each user, who sees the keys up to a position."""
    users, size, chunks = draft.pick((1, 2, 5)), draft.pick((32, 64, 96)), draft.between(1, 4)
    key_heads, dtype = draft.pick((1, 1, 2, 4)), draft.pick(("bfloat16", "bfloat16", "bfloat8_b"))
    heads, paged, causal = key_heads * draft.pick((1, 5, 8, 20)), "paged" in draft.function, draft.chance(0.8)
    q_dtype = "bfloat16" if key_heads > 1 else dtype
    shards = f'shards("HEIGHT", ({-(-heads // 32) * 32}, {size}), (0, 0, {users - 1}, 0))'
    q = draft.operand("q", (1, users, heads, size), q_dtype, where=draft.pick((DRAM, DRAM, shards)))
    draw = np.random.default_rng(draft.below(1000))
    table, rows = draw.permutation(users * chunks).reshape(users, chunks), 64 if paged else 64 * chunks
    blocks = users * chunks if paged else users
    k, v = (draft.operand(name, (blocks, key_heads, rows, size), dtype, where=DRAM) for name in "kv")
    draft.call(q, k, v, *((whole_numbers(table),) if paged else ())).option("is_causal", "" if causal else "False")
    last = draw.integers(0, 64 * chunks, users) if causal else np.full(users, 64 * chunks - 1)
    if causal and not paged and draft.chance(0.5):
        draft.option("cur_pos", last.tolist())
    elif causal:
        draft.option("cur_pos_tensor", whole_numbers(last))
    if draft.chance(0.5):
        grid, chunk = draft.pick(((8, 7), (4, 4))), draft.pick((32, 64) if paged and not causal else (0, 32, 64))
        config = (
            f"ttsim.SDPAProgramConfig(compute_with_storage_grid_size={grid}, q_chunk_size=32, k_chunk_size={chunk})"
        )
        draft.option("program_config", config)
    joined = (
        side.values[table].swapaxes(1, 2).reshape(users, key_heads, -1, size) if paged else side.values
        for side in (k, v)
    )
    keyed, valued = (np.repeat(side, heads // key_heads, 1) for side in joined)
    scores = (q.values[0][:, :, None] @ keyed.swapaxes(-1, -2))[:, :, 0] / np.sqrt(size)
    scores = np.where(np.arange(64 * chunks) <= last[:, None, None], scores, -np.inf)
    weights, lost = _softmax(scores, "bfloat16", 2.0**-5)
    result, most = (
        np.einsum("uhk,uhkd->uhd", left, side) for left, side in ((weights, valued), (weights, abs(valued)))
    )
    bound = 2.5 * np.einsum("uhk,uhkd->uhd", lost, abs(valued)) + 4 * rounding(most, q_dtype)
    return draft.gives(result[None], bound[None] + 2.0**-6, dtypes=(q_dtype,), layout="TILE", place=None)


@operation("experimental.split_query_key_value_and_split_heads")
def split_in_pairs(draft: Draft) -> Step:
    """Pairs of heads of each core, of which the keys are looked at."""
    rows, batch, cores, size = 32 * draft.between(1, 2), draft.between(1, 2), draft.pick((1, 2)), draft.pick((32, 64))
    dtype = draft.pick(("bfloat16", "bfloat8_b"))
    where = f'shards("BLOCK", ({rows}, {6 * size}), (0, 0, {cores - 1}, {batch - 1}))'
    x = draft.operand("a", (batch, 1, rows, 6 * cores * size), dtype, where=where)
    values = x.values.reshape(batch, rows, cores, 3, 2, size)[:, :, :, 1].reshape(batch, rows, 2 * cores, size)
    draft.call(x, f"ttsim.CoreCoord({cores}, {batch})").option("num_heads", 2 * cores)
    draft.option("memory_config", "ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG")
    text = f"ttsim.{draft.function}({', '.join(draft.arguments)})[1]"
    values = values.transpose(0, 2, 3, 1)
    return draft.gives(values, movement_error(values, dtype), text=text, dtypes=(dtype,), layout="TILE")


@operation("experimental.create_qkv_heads", "experimental.nlp_create_qkv_heads_vit")
@operation("experimental.nlp_create_qkv_heads_segformer")
def split_otherwise(draft: Draft) -> Step:
    """Heads of one of three special projections, of which the queries are looked at."""
    rows, batch, dtype = 32 * draft.between(1, 2), draft.between(1, 2), draft.pick(("bfloat16", "bfloat8_b"))
    if draft.function.endswith("create_qkv_heads"):
        heads, size = draft.pick((1, 2)), 32
        where = f'shards("BLOCK", ({rows}, {3 * size}), (0, 0, {heads - 1}, {batch - 1}))'
        x = draft.operand("a", (batch, 1, rows, 3 * heads * size), dtype, where=where)
        values = x.values.reshape(batch, rows, heads, 3, size)[:, :, :, 0].transpose(0, 2, 1, 3)
        draft.call(x).option("num_heads", heads).option("memory_config", "ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG")
    else:
        heads, size, columns = (12, 64, 2304) if draft.function.endswith("vit") else (3, 32, 96)
        x = draft.operand("a", (batch, 1, rows, columns), dtype, where=DRAM)
        values = x.values[..., : heads * size].reshape(batch, rows, heads, size).transpose(0, 2, 1, 3)
        draft.call(x)
    text = f"ttsim.{draft.function}({', '.join(draft.arguments)})[0]"
    return draft.gives(values, movement_error(values, dtype), text=text, dtypes=(dtype,), layout="TILE")


@operation("experimental.create_qkv_heads_from_separate_tensors")
def split_separately(draft: Draft) -> Step:
    """Heads of queries, and of pairs of keys and values in another tensor, one of the three parts."""
    batch, across, size = draft.pick((1, 2, 4)), draft.pick((1, 2, 4)), draft.pick((32, 64))
    heads, kv_heads, dtype = (
        across * draft.pick((1, 2)),
        across * draft.pick((1, 2)),
        draft.pick(("bfloat16", "bfloat8_b")),
    )
    rows, other_rows = (32 * draft.between(1, 4) for _ in range(2))
    sides = (batch, 1, rows, heads * size), (batch, 1, other_rows, 2 * kv_heads * size)
    x, other = (
        draft.operand(
            name,
            side,
            dtype,
            where=f'shards("BLOCK", {(side[2], side[3] // across)}, (0, 0, {across - 1}, {batch - 1}))',
        )
        for name, side in zip("ab", sides, strict=True)
    )
    turned, which = draft.chance(0.5), draft.below(3)
    draft.call(x, other).option("num_heads", heads).option("num_kv_heads", kv_heads)
    draft.option("transpose_k_heads", turned).option("memory_config", "ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG")
    pairs = other.values.reshape(batch, other_rows, kv_heads, 2, size).transpose(3, 0, 2, 1, 4)
    queries = x.values.reshape(batch, rows, heads, size).transpose(0, 2, 1, 3)
    values = (queries, pairs[0].swapaxes(2, 3) if turned else pairs[0], pairs[1])[which]
    text = f"ttsim.{draft.function}({', '.join(draft.arguments)})[{which}]"
    return draft.gives(values, movement_error(values, dtype), text=text, dtypes=(dtype,), layout="TILE")


@operation("transformer.split_query_key_value_and_split_heads", "experimental.nlp_create_qkv_heads")
def split(draft: Draft) -> Step:
    """Heads of a projection, of which the keys are looked at."""
    nlp = draft.function.endswith("nlp_create_qkv_heads")
    batch, rows, heads, size = draft.between(1, 2), draft.pick((32, 40, 64)), draft.pick((1, 2, 4)), 32
    dtype, turned = draft.pick(("bfloat16", "float32", "bfloat8_b")), draft.chance(0.5)
    sides = (batch, 1, rows, 3 * heads * size) if nlp else (batch, rows, 3 * heads * size)
    x = draft.operand("a", sides, dtype, layout="TILE", where="ttsim.DRAM_MEMORY_CONFIG")
    keys = x.values.reshape(batch, rows, 3 * heads, size)[:, :, heads : 2 * heads].transpose(0, 2, 1, 3)
    values = keys.swapaxes(2, 3) if turned else keys
    draft.call(x).option("num_heads", heads).option("transpose_k_heads" if nlp else "transpose_key", turned)
    bound = movement_error(values, dtype)
    text = f"ttsim.{draft.function}({', '.join(draft.arguments)})[1]"
    return draft.gives(values, bound, text=text, dtypes=(dtype,), layout="TILE")


def _has_heads(x: Shadow) -> bool:
    """Whether a tensor is tiles of heads that no padding parts."""
    return is_float(x) and x.tiled and len(x.shape) == 4 and x.shape[-1] % 32 == 0


@of_tensor("transformer.concatenate_heads", "experimental.nlp_concat_heads", accept=_has_heads)
def joined(draft: Draft, x: Shadow) -> Step:
    """Heads side by side."""
    batch, heads, rows, size = x.shape
    values = x.values.transpose(0, 2, 1, 3).reshape(batch, 1, rows, heads * size)
    if draft.function.startswith("transformer"):
        values = values[:, 0]
    draft.call(x)
    return draft.gives(values, movement_error(values, x.dtype), dtypes=(x.dtype,), layout="TILE")


@operation("embedding")
def embedding(draft: Draft) -> Step:
    """Rows of a table."""
    rows, columns, sides = draft.between(1, 40), draft.pick((16, 32, 64)), (draft.between(1, 3), draft.pick((7, 32)))
    table = draft.operand("b", (rows, columns), "bfloat16", layout="ROW_MAJOR", where="ttsim.DRAM_MEMORY_CONFIG")
    seed = draft.below(1000)
    numbers = np.random.default_rng(seed).integers(0, rows, sides)
    indices = (
        f"ttsim.from_numpy(np.random.default_rng({seed}).integers(0, {rows}, {sides}), ttsim.uint32, device=device)"
    )
    draft.call(indices, table)
    layout = draft.pick(("ROW_MAJOR", "ROW_MAJOR", "TILE"))
    draft.option("layout", "" if layout == "ROW_MAJOR" else "ttsim.TILE_LAYOUT")
    return draft.gives(table.values[numbers], dtypes=("bfloat16",), layout=layout)


@operation("plus_one")
def counted(draft: Draft) -> Step:
    """Positions that are counted up in place, of which those below zero may stay."""
    sides = tuple(draft.pick((1, 5, 32)) for _ in range(draft.between(1, 4)))
    dtype, seed, skips = draft.pick(("int32", "uint32")), draft.below(1000), draft.chance(0.5)
    least = -9 if dtype == "int32" else 0
    text = f"np.random.default_rng({seed}).integers({least}, 90, {sides})"
    draft.call(f"ttsim.from_numpy({text}, ttsim.{dtype}, device=device)")
    draft.option("skip_negative_entries", skips)
    numbers = np.random.default_rng(seed).integers(least, 90, sides)
    return draft.gives(np.where(skips & (numbers < 0), numbers, numbers + 1), dtypes=(dtype,), layout="ROW_MAJOR")


@of_tensor(
    "gather", accept=lambda x: x.dtype in ("bfloat16", "float32") and len(x.shape) > 1 and not x.tensor.is_sharded()
)
def gather(draft: Draft, x: Shadow) -> Step:
    """Elements of an axis."""
    axis = draft.below(len(x.shape))
    sides = [draft.between(1, 40) if index == axis else draft.between(1, side) for index, side in enumerate(x.shape)]
    seed, layout = draft.below(1000), "TILE" if x.tiled else "ROW_MAJOR"
    numbers = f"np.random.default_rng({seed}).integers(0, {x.shape[axis]}, {tuple(sides)})"
    draft.call(x, axis, f"ttsim.from_numpy({numbers}, ttsim.uint32, layout=ttsim.{layout}_LAYOUT, device=device)")
    places = np.random.default_rng(seed).integers(0, x.shape[axis], sides)
    box = tuple(slice(None if index == axis else side) for index, side in enumerate(sides))
    return draft.gives(np.take_along_axis(x.values[box], places, axis), dtypes=(x.dtype,), layout=layout)


def _is_matrix_of_floats(x: Shadow) -> bool:
    return x.tiled and x.dtype == "bfloat16" and len(x.shape) > 1 and not x.tensor.is_sharded()


@of_tensor("bcast", accept=_is_matrix_of_floats)
def bcast(draft: Draft, x: Shadow) -> Step:
    """A tensor with a row, a column or a number of another one."""
    *outer, rows, columns = x.shape
    dim, math = draft.pick(("H", "W", "HW")), draft.pick(("ADD", "SUB", "MUL"))
    outer = outer if draft.chance(0.5) else [1] * len(outer)
    sides = (*outer, 1 if "H" in dim else rows, 1 if "W" in dim else columns)
    other = draft.operand("b", sides, "bfloat16", layout="TILE", where="ttsim.DRAM_MEMORY_CONFIG")
    draft.call(x, other, f"ttsim.BcastOpMath.{math}", f"ttsim.BcastOpDim.{dim}")
    values = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}[math](x.values, other.values)
    size = np.abs(x.values) * np.abs(other.values) if math == "MUL" else np.abs(x.values) + np.abs(other.values)
    roundings = 4 if math == "MUL" else 2  # a 16-bit Dst rounds a product after each of four fidelity phases
    return draft.gives(values, roundings * rounding(size, "bfloat16"), dtypes=("bfloat16",), layout="TILE")


@of_tensor("nonzero", accept=lambda x: len(x.shape) == 4 and x.dtype in ("bfloat16", "float32", "uint32"))
def nonzero(draft: Draft, x: Shadow) -> Step:
    """The indices of elements that are not zero, of which the count is compared."""
    draft.call(x).placed(x.shape, tiled=False, probability=0.2, only=INTERLEAVED)
    count = np.zeros((1, 1, 1, 8))
    count[..., 0] = np.count_nonzero(x.values)
    return draft.gives(
        count, dtypes=("uint32",), layout="ROW_MAJOR", text=f"ttsim.nonzero({', '.join(draft.arguments)})[0]"
    )


@of_tensor(
    "experimental.broadcast_to",
    accept=lambda x: x.tiled and x.is_float and len(x.shape) < 5 and 1 in x.shape and not x.tensor.is_sharded(),
)
def broadcast_to(draft: Draft, x: Shadow) -> Step:
    """Sides of 1, repeated."""
    sides = tuple(draft.between(1, 40) if side == 1 and index else side for index, side in enumerate(x.shape))
    draft.call(x, sides).placed(sides, tiled=True, probability=0.2, only=INTERLEAVED)
    values = np.broadcast_to(x.values, sides)
    return draft.gives(values, movement_error(values, x.dtype), dtypes=(x.dtype,), layout="TILE")


@operation("experimental.rotary_embedding")
def rotated(draft: Draft) -> Step:
    """Rows whose halves are exchanged."""
    heads, rows, columns = draft.pick((1, 3)), draft.pick((32, 64)), draft.pick((32, 64, 128))
    dtype = draft.pick(("bfloat16", "float32", "bfloat8_b"))
    x = draft.operand("a", (1, heads, rows, columns), dtype, where="ttsim.DRAM_MEMORY_CONFIG")
    cosines, sines = (
        draft.operand(name, (1, 1, rows, columns), "bfloat16", where="ttsim.DRAM_MEMORY_CONFIG") for name in "bc"
    )
    half = columns // 2
    turned = np.concatenate([-x.values[..., half:], x.values[..., :half]], -1)
    draft.call(x, cosines, sines)
    values = x.values * cosines.values + turned * sines.values
    largest = np.abs(x.values).max() * (np.abs(cosines.values) + np.abs(sines.values)).max()
    bound = np.full(values.shape, largest * 2.0**-5)
    return draft.gives(values, bound, dtypes=(dtype,), layout="TILE")
