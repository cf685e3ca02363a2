"""Steps of a decoder's attention: heads of one token for each user, and rotary embeddings."""

import numpy as np

from device.memory.memory_config import TILE
from tools.random_calls.drafts import DRAM, L1, Draft, Step, operation, whole_numbers
from tools.random_calls.references import movement_error, rounding


def _users(draft: Draft) -> tuple[int, str]:
    """A number of users and cores for them, as corners of a rectangle from the first core on."""
    across, down = draft.pick(((1, 1), (4, 1), (8, 1), (5, 2), (8, 2), (8, 4)))
    return across * down, f"(0, 0, {across - 1}, {down - 1})"


@operation("experimental.nlp_create_qkv_heads_decode")
def split_decode(draft: Draft) -> Step:
    """Heads of a projection of one token for each user, one of the three parts."""
    users, size, key_heads = draft.pick((1, 7, 8, 32)), draft.pick((32, 64, 96)), draft.pick((1, 2, 4))
    heads, dtype = key_heads * draft.pick((1, 2, 8)), draft.pick(("bfloat16", "float32"))
    parts, first, which = heads + 2 * key_heads, 0, draft.below(3)
    pieces = draft.pick([count for count in (1, 2, 4, 8) if parts * size // TILE % count == 0])
    where = draft.pick((DRAM, L1, f'shards("WIDTH", (32, {parts * size // pieces}), (0, 0, {pieces - 1}, 0))'))
    x = draft.operand("a", (1, 1, users, parts * size), dtype, where=where)
    draft.call(x).option("num_heads", heads).option("num_kv_heads", key_heads)
    grids = "(0, 0, 7, 6)", "(1, 0, 6, 6)", "(0, 0, 3, 1), (0, 2, 7, 6)"
    shape = f"({TILE * -(-heads // TILE)}, {size})"
    places = ["ttsim.L1_HEIGHT_SHARDED_MEMORY_CONFIG", DRAM, *(f'shards("HEIGHT", {shape}, {grid})' for grid in grids)]
    draft.sometimes(0.4, "memory_config", *places).sometimes(0.2, "overlap_qk_coregrid", False)
    if users > 1 and draft.chance(0.25):
        count = draft.between(1, users)
        first = draft.between(0, users - count) if "WIDTH" in where else 0
        draft.option("batch_offset", whole_numbers([first])).option("slice_size", count)
        users = count
    rows = x.values[0, 0, first : first + users].reshape(1, users, parts, size)
    values = np.split(rows, [heads, heads + key_heads], axis=2)[which]
    text = f"ttsim.{draft.function}({', '.join(draft.arguments)})[{which}]"
    return draft.gives(values, movement_error(values, dtype), text=text, dtypes=(dtype,), layout="TILE", place=None)


@operation("experimental.nlp_concat_heads_decode")
def joined_decode(draft: Draft) -> Step:
    """Heads of one token for each user side by side."""
    users, cores = _users(draft)
    heads, size, dtype = draft.pick((1, 8, 20, 32)), draft.pick((32, 64, 128)), draft.pick(("bfloat16", "float32"))
    where = f'shards("HEIGHT", (32, {size}), {cores})'
    x = draft.operand("a", (1, users, heads, size), dtype, where=where)
    taken = draft.pick((heads, heads, draft.between(1, heads)))
    draft.call(x).option("num_heads", taken)
    draft.sometimes(
        0.2, "sub_core_grids", "cores((0, 0, 7, 5))", f"cores({cores})", "cores((0, 0, 3, 3), (4, 1, 7, 6))"
    )
    rows = x.values[0, :, :taken].reshape(1, 1, users, taken * size)
    values = np.pad(rows, [(0, 0), (0, 0), (0, TILE - users), (0, 0)])
    return draft.gives(values, movement_error(values, dtype), dtypes=(dtype,), layout="TILE", place=None)


@operation("experimental.rotary_embedding_llama")
def rotated_by_matrix(draft: Draft) -> Step:
    """Rows times cosines, plus their exchanged pairs times sines; of sequences, or of one token for each user."""
    decode, columns = draft.chance(0.5), draft.pick((32, 64, 128, 256))
    batch, heads, rows = draft.pick((1, 1, 2, 3)), draft.pick((1, 2, 8, 16)), draft.pick((32, 40, 64, 200))
    users, cores = _users(draft)
    shards = [f'shards("HEIGHT", (32, {wide}), {cores})' for wide in (columns, TILE)]
    sides, tables = (batch, heads, rows, columns), (1, draft.pick((1, 1, heads)), rows, columns)
    if decode:
        sides, tables = (1, users, heads, columns), (1, users, draft.pick((1, 32)), columns)
    place = draft.pick((DRAM, DRAM, L1))
    x = draft.operand("a", sides, "bfloat16", where=shards[0] if decode else place)
    cosines, sines = (draft.operand(name, tables, "bfloat16", where=shards[0] if decode else DRAM) for name in "bc")
    copies = users if decode else 1
    pairs = np.tile(np.kron(np.eye(TILE // 2), [[0.0, 1.0], [-1.0, 0.0]]), (copies, 1))
    host = f"np.tile(np.kron(np.eye(16), [[0.0, 1.0], [-1.0, 0.0]]), ({copies}, 1)).astype(np.float32)[None, None]"
    matrix = f"ttsim.from_numpy({host}, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, "
    matrix += f"memory_config={shards[1] if decode else DRAM})"
    draft.call(x, cosines, sines, matrix).option("is_decode_mode", decode or "")
    draft.sometimes(0.3, "memory_config", shards[0] if decode else L1)
    if columns <= 128:
        config = "ttsim.WormholeComputeKernelConfig(math_fidelity=ttsim.MathFidelity.HiFi4, fp32_dest_acc_en=True)"
        draft.sometimes(0.3, "compute_kernel_config", config)
    turned = (x.values.reshape(-1, TILE) @ pairs[:TILE]).reshape(sides)
    own = [table.values[..., :1, :] if decode else table.values for table in (cosines, sines)]
    most = np.abs(x.values * own[0]) + np.abs(turned * own[1])
    values = x.values * own[0] + turned * own[1]
    bound = 2.0**-6 * most + 4 * rounding(most, "bfloat16")
    return draft.gives(values, bound, dtypes=("bfloat16",), layout="TILE", place=None)


@operation("experimental.rotate_half")
def half_rotated(draft: Draft) -> Step:
    """Halves of rows, exchanged."""
    dtype, layout = draft.pick(("bfloat16", "float32", "bfloat8_b")), draft.pick(("TILE", "TILE", "ROW_MAJOR"))
    sides = draft.pick(((1, 2), (3, 1), (2,), ()))
    sides += draft.pick((32, 40, 64)), draft.pick((64, 128, 256))
    x = draft.operand("a", sides, dtype, layout=layout, where=draft.pick((DRAM, L1)))
    draft.call(x).sometimes(0.3, "memory_config", DRAM, L1)
    first, second = np.split(x.values, 2, axis=-1)
    values = np.concatenate([-second, first], -1)
    return draft.gives(values, 2 * rounding(values, "bfloat16"), dtypes=(dtype,), layout="TILE", place=None)
