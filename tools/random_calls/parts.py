"""Steps that cut tensors into parts and slices, and write into others."""

from math import prod

import numpy as np

from device.memory.memory_config import TILE
from tools.random_calls.drafts import DRAM, Draft, Shadow, Step, of_tensor, operation, whole_numbers
from tools.random_calls.references import movement_error
from tools.random_calls.tensors import moved


@of_tensor("split", "chunk", accept=lambda x: not x.tensor.is_sharded())
def parts(draft: Draft, x: Shadow) -> Step:
    """One of the parts of a tensor along an axis."""
    rank = len(x.shape)
    axis = draft.below(rank)
    side, count = x.shape[axis], draft.pick((1, 2, 3))
    size = -(-side // count)
    pieces = np.split(x.values, range(size, side, size), axis)
    number = draft.below(len(pieces))
    draft.call(x, *((size, axis) if draft.function == "split" else (count, axis)))
    return moved(
        draft, x, pieces[number], split=True, text=f"ttsim.{draft.function}({', '.join(draft.arguments)})[{number}]"
    )


@operation("copy")
def copied(draft: Draft) -> Step | None:
    """The numbers of a tensor in another one, which may have another data type."""
    x = draft.tensor(lambda x: x.is_float and x.tiled)
    if x is None:
        return None
    other = draft.operand("b", x.shape, draft.pick((x.dtype, "bfloat16", "float32")), where=DRAM)
    draft.dtype = other.dtype
    draft.call(x, other)
    draft.target = other.name
    return moved(draft, x, x.values, dtypes=(other.dtype,), layout="TILE")


@of_tensor("view", "experimental.view", accept=lambda x: not x.tensor.is_sharded())
def view(draft: Draft, x: Shadow) -> Step:
    """The same rows under other axes."""
    rows = prod(x.shape[:-1])
    sides = draft.pick(([1, *x.shape], [rows, x.shape[-1]], [1, 1, rows, x.shape[-1]]))
    draft.call(x, sides)
    return moved(draft, x, x.values.reshape(sides))


@operation("interleaved_to_sharded_partial", "sharded_to_interleaved_partial")
def partial(draft: Draft) -> Step:
    """One of several equal slices of a tensor in shards, or written back."""
    slices, cores, columns = draft.pick((2, 3)), draft.pick((1, 2, 4)), draft.pick((32, 64))
    number, rows = draft.below(slices), TILE * cores
    dtype = draft.pick(("bfloat16", "float32", "bfloat8_b"))
    whole = draft.operand("a", (1, 1, rows * slices, columns), dtype, where=DRAM)
    shards = f"({cores}, 1), [{TILE}, {columns}], {slices}, {number}, ttsim.TensorMemoryLayout.HEIGHT_SHARDED"
    values = whole.values.copy()
    if draft.function == "interleaved_to_sharded_partial":
        values = values.reshape(slices, rows, columns)[number].reshape(1, 1, rows, columns)
        draft.call(whole, shards, "ttsim.ShardOrientation.ROW_MAJOR")
    else:
        where = f'shards("HEIGHT", ({TILE}, {columns}), (0, 0, {cores - 1}, 0))'
        part = draft.operand("b", (1, 1, rows, columns), dtype, where=where)
        values.reshape(slices, rows, columns)[number] = part.values[0, 0]
        draft.call(part, whole, slices, number)
        draft.target = whole.name
    return draft.gives(values, movement_error(values, dtype), dtypes=(dtype,), layout="TILE")


@operation("fill_cache", "update_cache", "kv_cache.fill_cache_for_user_", "kv_cache.update_cache_for_token_")
def cached(draft: Draft) -> Step:
    """Rows of one user, or one row of every user, in a cache."""
    users, heads, columns = draft.pick((1, 2, 4)), draft.pick((1, 2)), draft.pick((32, 64))
    dtype = draft.pick(("bfloat16", "float32", "bfloat8_b"))
    cache = draft.operand("a", (users, heads, 4 * TILE, columns), dtype, where=DRAM)
    values = cache.values.copy()
    if "fill_cache" in draft.function:
        rows = draft.operand("b", (1, heads, TILE, columns), dtype, where=DRAM)
        user, first = draft.below(users), TILE * draft.below(4)
        values[user, :, first : first + TILE] = rows.values[0]
        draft.call(cache, rows, user, f"update_idx={first}")
    else:
        rows = draft.operand("b", (1, heads, TILE, columns), dtype, where=DRAM)
        row, first = draft.below(4 * TILE), draft.below(TILE - users + 1)
        values[:, :, row] = rows.values[0, :, first : first + users].swapaxes(0, 1)
        draft.call(cache, rows, row).option("batch_offset", first)
    draft.target = cache.name
    return draft.gives(values, movement_error(values, dtype), dtypes=(dtype,), layout="TILE")


@operation("experimental.paged_update_cache", "experimental.paged_fill_cache")
def paged(draft: Draft) -> Step:
    """Rows of users in blocks of a cache that a table names."""
    users, heads, columns = draft.pick((1, 2, 4)), draft.pick((1, 3)), draft.pick((32, 64))
    rows, each = TILE * draft.pick((1, 2)), draft.pick((1, 2, 3))
    draw = np.random.default_rng(draft.below(1000))
    dtype, table = draft.pick(("bfloat16", "float32", "bfloat8_b")), draw.permutation(users * each).reshape(users, each)
    by_table = "fill" in draft.function or draft.chance(0.5)
    cache = draft.operand("a", (users * each if by_table else users, heads, rows, columns), dtype, where=DRAM)
    blocks, values = whole_numbers(table), cache.values.copy()
    if "fill" in draft.function:
        count = draft.between(1, rows * each)
        source = draft.operand("b", (1, heads, count, columns), dtype, where=DRAM)
        user, whole = draft.below(users), np.pad(source.values[0], ((0, 0), (0, -count % TILE), (0, 0)))
        for first in range(0, whole.shape[1], rows):
            part = whole[:, first : first + rows]
            values[table[user, first // rows], :, : part.shape[1]] = part
        draft.call(cache, source, blocks)
        draft.option(*draft.pick((("batch_idx", user), ("batch_idx_tensor", whole_numbers([user])))))
    else:
        where = f'shards("HEIGHT", ({TILE}, {columns}), (0, 0, {users - 1}, 0))'
        source = draft.operand(
            "b", (1, users, heads, columns), "float32" if dtype == "float32" else "bfloat16", where=where
        )
        places = draw.integers(0, rows * each if by_table else rows, users)
        for user, place in enumerate(places):
            values[table[user, place // rows] if by_table else user, :, place % rows] = source.values[0, user]
        draft.call(cache, source)
        if by_table or draft.chance(0.5):
            draft.option("update_idxs_tensor", whole_numbers(places))
        else:
            draft.option("update_idxs", places.tolist())
        if by_table:
            draft.option("page_table", blocks)
    draft.target = cache.name
    return draft.gives(values, movement_error(values, dtype), dtypes=(dtype,), layout="TILE")


@of_tensor("fill_implicit_tile_padding", accept=lambda x: x.tiled and not x.tensor.is_sharded() and x.dtype != "uint8")
def filled(draft: Draft, x: Shadow) -> Step:
    """The same numbers, whatever is around them."""
    draft.call(x, 1.0)
    return moved(draft, x, x.values)


@of_tensor("reshape_on_device", accept=lambda x: len(x.shape) == 4 and not x.tensor.is_sharded())
def reshaped(draft: Draft, x: Shadow) -> Step | None:
    """The same rows under other axes."""
    images, channels, rows, columns = x.shape
    if x.tiled and (rows % TILE or columns % TILE):
        return None
    sides = draft.pick(([1, images * channels, rows, columns], [1, 1, -1, columns]))
    draft.call(x, *sides)
    return moved(draft, x, x.values.reshape(sides))
