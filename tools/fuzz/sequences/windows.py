"""Steps that look at windows of images: pooling, upsampling, folding, channels first and last."""

import numpy as np

from device.numbers.formats import div_up
from tools.fuzz.sequences.references import Sides, interpolated, largest, moving, rounding
from tools.fuzz.sequences.state import (
    DRAM,
    L1,
    Draft,
    Expected,
    Shadow,
    Step,
    asked,
    in_rows,
    maybe_place,
    named,
    of_tensor,
    operand,
)


@of_tensor(lambda one: len(one.shape) == 4 and one.is_float)
def max_pool2d(draft: Draft, source: Shadow) -> Step:
    """The largest number under every window."""
    choices = draft.choices
    batch, height, width, channels = source.shape
    image = source.values
    if source.shape[:2] == (1, 1):  # rows that may be any image
        heights = [side for side in range(1, width + 1) if width % side == 0]
        height = choices.pick(heights)
        width //= height
        image = image.reshape(1, height, width, channels)
    kernel = choices.between(1, 4), choices.between(1, 4)
    stride = choices.between(1, 3), choices.between(1, 3)
    dilation = (2, 1) if choices.chance(0.1) else (1, 1)
    padding = choices.between(0, kernel[0] // 2), choices.between(0, kernel[1] // 2)
    sides = Sides(padding[0], padding[0], padding[1], padding[1])
    if choices.chance(0.1):
        sides = Sides(padding[0], choices.between(0, kernel[0] // 2), padding[1], choices.between(0, kernel[1] // 2))
        padding = tuple(sides)  # type: ignore[assignment]
    ceil_mode = choices.chance(0.2)
    how = f"{source.name}, {batch}, {height}, {width}, {channels}, {kernel}, {stride}, {padding}, {dilation}"
    how += ", ceil_mode=True" if ceil_mode else ""
    if choices.chance(0.35):
        how += f", applied_shard_scheme=ttsim.TensorMemoryLayout.{choices.pick(('HEIGHT', 'WIDTH', 'BLOCK'))}_SHARDED"
    frees: tuple[str, ...] = ()
    if choices.chance(0.12):
        how += ", deallocate_input=True"
        frees = tuple(shadow.name for shadow in draft.state.sharing(source.name))
    how += f", reallocate_halo_output={choices.chance(0.5)}" if choices.chance(0.1) else ""
    how += choices.pick((", return_indices=True", ", config_tensor_in_dram=True")) if choices.chance(0.04) else ""
    out, held = "bfloat16", "ROW_MAJOR"
    if choices.chance(0.12):
        out = choices.pick(("bfloat16", "bfloat8_b"))
        how += f", dtype=ttsim.{out}"
    if choices.chance(0.15):
        held = choices.pick(("TILE", "ROW_MAJOR"))
        how += f", output_layout=ttsim.{held}_LAYOUT"
    where = maybe_place(draft, (1, 1, batch * height * width, channels), tiled=held == "TILE", probability=0.2)
    how += named(memory_config=where)

    def result() -> Expected:
        values = largest(image, kernel, stride, sides, dilation, ceil_mode=ceil_mode).reshape(1, 1, -1, channels)
        bound = 2 * rounding(values, "bfloat16") if source.dtype == "float32" else 0.0
        bound = bound + (rounding(values, out) if out != "bfloat16" else 0.0)
        return Expected(values=values, bound=bound, dtypes=(out,), layout=held, place=asked(draft, where))

    text = f"{draft.name} = ttsim.max_pool2d({how})"
    return Step(text=text, results={draft.name: result}, frees=frees)


@of_tensor(lambda one: len(one.shape) == 4 and one.is_float and one.values.size < 10_000)
def upsample(draft: Draft, source: Shadow) -> Step:
    """Larger images."""
    choices = draft.choices
    factors = choices.between(1, 3), choices.between(1, 3)
    bilinear = choices.chance(0.3)
    given = f"{factors[0]}" if factors[0] == factors[1] and choices.chance(0.5) else f"{factors}"
    if bilinear:
        values = interpolated(source.values, factors)
        bound = np.full(values.shape, np.abs(source.values).max() * 2.0**-6)
    else:
        values = source.values.repeat(factors[0], 1).repeat(factors[1], 2)
        bound = moving(values, source.dtype)
    where = maybe_place(draft, values.shape, tiled=source.tiled, probability=0.15)
    mode = ', mode="bilinear"' if bilinear else choices.pick(("", ', mode="nearest"'))
    dtypes = (source.dtype, in_rows(source.dtype))
    known = where if where in (DRAM, L1) else ""  # shards stay as they are
    made = Expected(values=values, bound=bound, dtypes=dtypes, place=asked(draft, known))
    text = f"{draft.name} = ttsim.upsample({source.name}, {given}{mode}{named(memory_config=where)})"
    return Step(text=text, results={draft.name: lambda: made})


@of_tensor(lambda one: len(one.shape) == 4 and one.is_float)
def fold(draft: Draft, source: Shadow) -> Step:
    """Windows as channels."""
    choices = draft.choices
    down, across = choices.pick((1, 2, 2, 4)), choices.pick((1, 2, 2, 3))
    ring = choices.below(2) if choices.chance(0.15) else 0
    collapse = choices.chance(0.15)
    image = np.pad(source.values, ((0, 0), (ring, ring), (ring, ring), (0, 0)))
    batch, height, width, channels = image.shape
    how = f"{source.name}, {down}, {across}"
    how += f", padding=({ring}, {ring})" if ring else ""
    how += ", collapse_output=True" if collapse else ""
    text = f"{draft.name} = ttsim.fold({how})"
    if height % down or width % across:
        return Step(text=text, contradictory="the windows do not fill the image")
    parts = image.reshape(batch, height // down, down, width // across, across, channels)
    values = parts.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // down, width // across, -1)
    flat = values.reshape(1, 1, -1, values.shape[-1])
    if collapse:
        values = flat
    made = Expected(values=values, bound=moving(values, source.dtype), dtypes=(in_rows(source.dtype), source.dtype))
    return Step(text=text, results={draft.name: lambda: made})


def convert_to_hwc(draft: Draft) -> Step:
    """Channels first to channels last."""
    choices = draft.choices
    count = choices.pick((1, 2, 4, 8))
    channels, size = choices.pick((1, 3, 4, 8, 16, 20)), 32 * choices.between(1, 4) * count
    dtype, batch = choices.pick(("bfloat16", "bfloat16", "float32")), choices.pick((1, 1, 1, 2))
    buffer = choices.pick(("L1", "L1", "DRAM"))
    where = f'shards("WIDTH", ({batch * channels}, {size // count}), (0, 0, {count - 1}, 0), buffer="{buffer}")'
    source = operand(draft, "a", (1, batch, channels, size), dtype, layout="ROW_MAJOR", where=where)
    out = choices.pick(("bfloat16", "float32")) if choices.chance(0.2) else dtype
    unit = 16 // (2 if dtype == "bfloat16" else 4)
    filled = div_up(channels, unit) * unit
    values = np.zeros((1, 1, batch * size, filled))
    values[0, 0, :, :channels] = source.values[0].transpose(0, 2, 1).reshape(batch * size, channels)
    bound = moving(values, dtype) + rounding(values, out) * (out != dtype)
    made = Expected(values=values, bound=bound, dtypes=(out,), layout="ROW_MAJOR")
    how = f", dtype=ttsim.{out}" if out != dtype else ""
    text = f"{source.text}{draft.name} = ttsim.experimental.convert_to_hwc({source.name}{how})"
    return Step(text=text, results={source.name: source.result, draft.name: lambda: made})


def convert_to_chw(draft: Draft) -> Step:
    """Channels last to channels first."""
    choices = draft.choices
    count = choices.pick((1, 2, 4, 8))
    channels, size = choices.pick((1, 2, 3, 4, 8, 32)), 32 * choices.between(1, 4) * count
    dtype = choices.pick(("bfloat16", "bfloat16", "bfloat8_b"))
    where = f'shards("HEIGHT", ({size // count}, 32), (0, 0, {count - 1}, 0))'
    source = operand(draft, "a", (1, 1, size, channels), dtype, where=where)
    out = choices.pick(("bfloat16", "float32")) if dtype != "bfloat16" or choices.chance(0.2) else dtype
    values = source.values.transpose(0, 1, 3, 2)
    bound = moving(values, dtype) + rounding(values, out) * (out != dtype)
    made = Expected(values=values, bound=bound, dtypes=(out,), layout="ROW_MAJOR")
    how = f", dtype=ttsim.{out}" if out != dtype else ""
    text = f"{source.text}{draft.name} = ttsim.experimental.convert_to_chw({source.name}{how})"
    return Step(text=text, results={source.name: source.result, draft.name: lambda: made})
