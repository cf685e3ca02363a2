"""Steps of attention: softmax, heads, embeddings."""

import numpy as np

from tools.random_calls.drafts import Draft, Shadow, Step, is_float, of_tensor, operation
from tools.random_calls.references import movement_error, rounding


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
    return draft.gives(table.values[numbers], dtypes=("bfloat16",), layout="ROW_MAJOR")
