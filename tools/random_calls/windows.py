"""Steps that look at windows of images: pooling, upsampling, folding, channels first and last."""

import numpy as np

from device.numbers.formats import Array, round_up
from tools.random_calls.drafts import KINDS, Draft, Expected, Shadow, Step, of_tensor, operation
from tools.random_calls.references import Sides, interpolated, largest, movement_error, rounding
from tools.random_calls.tensors import INTERLEAVED, in_rows, moved


@of_tensor("max_pool2d", accept=lambda x: len(x.shape) == 4 and x.is_float, weight=2.5)
def max_pool2d(draft: Draft, x: Shadow) -> Step:
    """The largest number under every window."""
    batch, height, width, channels = x.shape
    if x.shape[:2] == (1, 1):  # rows that may be any image
        height = draft.pick([side for side in range(1, width + 1) if width % side == 0])
        width //= height
    kernel, stride = draft.pair(1, 4), draft.pair(1, 3)
    dilation = (2, 1) if draft.chance(0.1) else (1, 1)
    before = [draft.between(0, size // 2) for size in kernel]
    after = [draft.between(0, size // 2) for size in kernel] if draft.chance(0.1) else before
    sides = Sides(before[0], after[0], before[1], after[1])
    padding = tuple(before) if after == before else tuple(sides)
    draft.call(x, batch, height, width, channels, kernel, stride, padding, dilation)
    ceil_mode, releases = draft.chance(0.2), draft.chance(0.12)
    draft.option("ceil_mode", ceil_mode or "").option("deallocate_input", releases or "")
    draft.sometimes(0.35, "applied_shard_scheme", *(f"ttsim.TensorMemoryLayout.{kind}_SHARDED" for kind in KINDS))
    draft.sometimes(0.1, "reallocate_halo_output", False, True)
    draft.sometimes(0.02, "return_indices", True).sometimes(0.02, "config_tensor_in_dram", True)
    out = draft.typed(0.12, ("bfloat16", "bfloat8_b")).dtype or "bfloat16"
    layout = draft.pick(("TILE", "ROW_MAJOR")) if draft.chance(0.15) else ""
    draft.option("output_layout", layout and f"ttsim.{layout}_LAYOUT")
    draft.placed((1, 1, batch * height * width, channels), tiled=layout == "TILE", probability=0.2)
    place = draft.required

    def expected() -> Expected:
        image = x.values.reshape(batch, height, width, channels)
        values = largest(image, kernel, stride, sides, dilation, ceil_mode=ceil_mode).reshape(1, 1, -1, channels)
        bound = 2 * rounding(values, "bfloat16") if x.dtype == "float32" else 0.0
        bound = bound + (rounding(values, out) if out != "bfloat16" else 0.0)
        return Expected(values=values, bound=bound, dtypes=(out,), layout=layout or "ROW_MAJOR", place=place)

    return draft.gives(expect=expected, frees=draft.state.sharing(x) if releases else ())


@of_tensor("upsample", accept=lambda x: len(x.shape) == 4 and x.is_float and x.values.size < 10_000, weight=1.5)
def upsample(draft: Draft, x: Shadow) -> Step:
    """Larger images."""
    factors = draft.pair(1, 3)
    draft.call(x, factors[0] if factors[0] == factors[1] and draft.chance(0.5) else factors)
    if draft.chance(0.3):
        values = interpolated(x.values, factors)
        bound = np.full(values.shape, np.abs(x.values).max() * 2.0**-6)
        draft.option("mode", '"bilinear"')
    else:
        values = x.values.repeat(factors[0], 1).repeat(factors[1], 2)
        bound = movement_error(values, x.dtype)
        draft.sometimes(0.5, "mode", '"nearest"')
    draft.placed(values.shape, tiled=x.tiled, probability=0.15, only=INTERLEAVED)  # shards stay as they are
    return draft.gives(values, bound, dtypes=(x.dtype, in_rows(x.dtype)))


@of_tensor("fold", accept=lambda x: len(x.shape) == 4 and x.is_float, weight=1.5)
def fold(draft: Draft, x: Shadow) -> Step:
    """Windows as channels."""
    ring = draft.below(2) if draft.chance(0.15) else 0
    down, across = (
        draft.pick([step for step in (2, 1, 4, 3) if (side + 2 * ring) % step == 0 or draft.chance(0.04)])
        for side in x.shape[1:3]
    )
    collapse = draft.chance(0.15)
    image = np.pad(x.values, ((0, 0), (ring, ring), (ring, ring), (0, 0)))
    batch, height, width, channels = image.shape
    draft.call(x, down, across)
    draft.option("padding", (ring, ring) if ring else "").option("collapse_output", collapse or "")
    if height % down or width % across:
        return Step(text=draft.gives().text, contradictory="the windows do not fill the image")
    blocks = image.reshape(batch, height // down, down, width // across, across, channels)
    values = blocks.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // down, width // across, -1)
    values = values.reshape(1, 1, -1, values.shape[-1]) if collapse else values
    return moved(draft, x, values, dtypes=(in_rows(x.dtype), x.dtype), layout=None)


@operation("experimental.convert_to_hwc")
def convert_to_hwc(draft: Draft) -> Step:
    """Channels first to channels last."""
    count = draft.pick((1, 2, 4, 8))
    channels, size = draft.pick((1, 3, 4, 8, 16, 20)), 32 * draft.between(1, 4) * count
    dtype, batch = draft.pick(("bfloat16", "bfloat16", "float32")), draft.pick((1, 1, 1, 2))
    buffer = draft.pick(("L1", "L1", "DRAM"))
    where = f'shards("WIDTH", ({batch * channels}, {size // count}), (0, 0, {count - 1}, 0), buffer="{buffer}")'
    out = draft.pick(("bfloat16", "float32")) if draft.chance(0.2) else dtype
    whole = np.zeros((1, 1, batch * size, round_up(channels, 16 // (2 if dtype == "bfloat16" else 4))))
    return _turned(draft, (1, batch, channels, size), dtype, where, out, whole)


@operation("experimental.convert_to_chw")
def convert_to_chw(draft: Draft) -> Step:
    """Channels last to channels first."""
    count = draft.pick((1, 2, 4, 8))
    channels, size = draft.pick((1, 2, 3, 4, 8, 32)), 32 * draft.between(1, 4) * count
    dtype = draft.pick(("bfloat16", "bfloat16", "bfloat8_b"))
    where = f'shards("HEIGHT", ({size // count}, 32), (0, 0, {count - 1}, 0))'
    out = draft.pick(("bfloat16", "float32")) if dtype != "bfloat16" or draft.chance(0.2) else dtype
    return _turned(draft, (1, 1, size, channels), dtype, where, out, np.zeros((1, 1, channels, size)))


def _turned(draft: Draft, sides: tuple[int, ...], dtype: str, where: str, out: str, whole: Array) -> Step:
    """A tensor with its last two axes swapped, in the first columns of an array of zeros."""
    x = draft.operand("a", sides, dtype, layout="TILE" if draft.function.endswith("chw") else "ROW_MAJOR", where=where)
    turned = x.values[0].swapaxes(1, 2).reshape(whole.shape[2], -1)
    whole[0, 0, :, : turned.shape[1]] = turned
    draft.call(x).option("dtype", f"ttsim.{out}" if out != dtype else "")
    bound = movement_error(whole, dtype) + rounding(whole, out) * (out != dtype)
    return draft.gives(whole, bound, dtypes=(out,), layout="ROW_MAJOR")
