"""Steps that normalize rows, and groups of channels."""

import numpy as np

from device.numbers.formats import Array
from tools.random_calls.drafts import DRAM, USUAL, Draft, Operand, Shadow, Step, of_tensor
from tools.random_calls.references import rounding


def _vector(draft: Draft, suffix: str, columns: int) -> Operand:
    return draft.operand(suffix, (1, columns), draft.pick(("bfloat16", "float32")), where=DRAM)


def _bound(x: Array, deviation: Array, values: Array, dtype: str) -> Array:
    """How far normalized numbers may lie from their definition: operands keep 8 bits, and differences lose more."""
    lost = np.abs(x).max(-1, keepdims=True) / np.maximum(deviation, 1e-9) * 2.0**-6
    return np.asarray(lost + np.abs(values) * 2.0**-5 + 2 * rounding(values, dtype) + 2.0**-6)


@of_tensor("layer_norm", "rms_norm", accept=lambda x: x.tiled and x.dtype in USUAL and x.values.size > 0)
def rows(draft: Draft, x: Shadow) -> Step:
    """Normalized rows, scaled and shifted."""
    columns, rms = x.shape[-1], draft.function == "rms_norm"
    epsilon = draft.pick((1e-5, 1e-2))
    draft.call(x).option("epsilon", epsilon)
    centered = x.values if rms else x.values - x.values.mean(-1, keepdims=True)
    deviation = np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon)
    values = centered / deviation
    scale = np.ones(columns)
    if draft.chance(0.6):
        weight = _vector(draft, "w", columns)
        draft.option("weight", weight)
        scale = weight.values.reshape(-1)
    if draft.chance(0.4):
        bias = _vector(draft, "b", columns)
        draft.option("bias", bias)
        values = values * scale + bias.values.reshape(-1)
    else:
        values = values * scale
    bound = _bound(x.values, deviation, values / np.maximum(np.abs(scale), 1.0), x.dtype)
    bound = bound * (1 + np.abs(scale).max()) + 4 * rounding(values, x.dtype)
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")
