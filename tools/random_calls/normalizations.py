"""Steps that normalize rows, and groups of channels."""

import numpy as np

from device.numbers.formats import Array
from tools.random_calls.drafts import DRAM, USUAL, Draft, Operand, Shadow, Step, of_tensor, operation
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
    numbers = x.values
    if draft.chance(0.2):
        residual = draft.operand("r", x.shape, x.dtype, where=DRAM)
        draft.option("residual_input_tensor", residual)
        numbers = numbers + residual.values
    centered = numbers if rms else numbers - numbers.mean(-1, keepdims=True)
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
    bound = _bound(numbers, deviation, values / np.maximum(np.abs(scale), 1.0), x.dtype)
    bound = bound * (1 + np.abs(scale).max()) + 4 * rounding(values, x.dtype)
    return draft.gives(values, bound, dtypes=(x.dtype,), layout="TILE")


@operation("group_norm")
def groups(draft: Draft) -> Step:
    """Normalized groups of channels of images in shards."""
    groups, parts, images = draft.pick((1, 2, 4, 8)), draft.pick((1, 1, 2)), draft.pick((1, 2))
    channels = 32 * draft.pick((2, 4))
    groups = max(groups, parts)
    cores, high = images * draft.pick((1, 2)), 32 * draft.pick((1, 2))
    kind, columns = ("HEIGHT", cores) if parts == 1 else ("BLOCK", parts)
    where = f'shards("{kind}", {(high, channels // parts)}, (0, 0, {columns - 1}, {0 if parts == 1 else cores - 1}))'
    sides = (images, 1, high * cores // images, channels)
    dtype = draft.pick(("bfloat16", "bfloat16", "float32"))
    x = draft.operand("a", sides, dtype, layout="ROW_MAJOR", where=where)
    mask = f"ttsim.create_group_norm_input_mask({channels}, {groups}, {parts}).to(device)"
    vectors = {
        name: draft.operand(suffix, (1, 1, channels // 32, 32), "bfloat16", layout="ROW_MAJOR", where=DRAM)
        for name, suffix in (("weight", "w"), ("bias", "b"))
        if draft.chance(0.6)
    }
    draft.call(x).option("num_groups", groups).option("epsilon", 1e-5).option("input_mask", mask)
    draft.option("inplace", False).option("memory_config", where)
    for name, vector in vectors.items():
        draft.option(name, vector)
    grouped = x.values.reshape(images, -1, groups, channels // groups)
    centered = grouped - grouped.mean((1, 3), keepdims=True)
    values = (centered / np.sqrt((centered**2).mean((1, 3), keepdims=True) + 1e-5)).reshape(sides)
    scale = vectors["weight"].values.reshape(-1) if "weight" in vectors else np.ones(channels)
    shift = vectors["bias"].values.reshape(-1) if "bias" in vectors else 0.0
    bound = (np.abs(values) + 1) * (np.abs(scale) + 1) * 2.0**-4
    return draft.gives(values * scale + shift, bound, dtypes=(dtype,), layout="ROW_MAJOR")


@operation("batch_norm")
def channels(draft: Draft) -> Step:
    """Images normalized by given statistics."""
    images, count = draft.pick((1, 2)), draft.pick((1, 3, 4))
    sides = (images, count, draft.pick((1, 16, 33)), draft.pick((1, 32, 40)))
    dtype, kind = draft.pick(("bfloat16", "float32")), draft.pick(("bfloat16", "float32"))
    x = draft.operand("a", sides, dtype, where=DRAM)
    mean, weight, bias = (draft.operand(name, (1, count, 1, 1), kind, where=DRAM) for name in "mwb")
    variance = f"ttsim.full((1, {count}, 1, 1), 2.0, dtype=ttsim.{kind}, layout=ttsim.TILE_LAYOUT, device=device)"
    draft.call(x).option("running_mean", mean).option("running_var", variance)
    draft.option("weight", weight).option("bias", bias)
    values = (x.values - mean.values) / np.sqrt(2.0 + 1e-5) * weight.values + bias.values
    size = np.abs(x.values) + np.abs(mean.values)
    bound = (size * np.abs(weight.values) + np.abs(values) + np.abs(bias.values)) * 2.0**-6
    return draft.gives(values, bound, dtypes=(dtype,), layout="TILE")
