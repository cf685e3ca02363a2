"""Steps that look at windows of images: pooling, upsampling, folding, channels first and last."""

from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from device.numbers.formats import round_up
from tools.random_calls.drafts import KINDS, Draft, Expected, Shadow, Step, is_image, of_tensor, operation
from tools.random_calls.references import (
    Sides,
    averaged_windows,
    interpolated,
    largest,
    movement_error,
    rounding,
    sampled_pixels,
    sum_error,
    sums,
)
from tools.random_calls.tensors import INTERLEAVED, in_rows, moved


@of_tensor("max_pool2d", "avg_pool2d", accept=is_image)
def pool2d(draft: Draft, x: Shadow) -> Step:
    """The largest number under every window, or the average."""
    batch, height, width, channels = x.shape
    if x.shape[:2] == (1, 1):  # rows that may be any image
        height = draft.pick([side for side in range(1, width + 1) if width % side == 0])
        width //= height
    averaged = draft.function == "avg_pool2d"
    kernel, stride = draft.pair(1, 4), draft.pair(1, 3)
    dilation = (2, 1) if draft.chance(0.1) and not averaged else (1, 1)
    before = [draft.between(0, size // 2) for size in kernel]
    after = [draft.between(0, size // 2) for size in kernel] if draft.chance(0.1) else before
    sides = Sides(before[0], after[0], before[1], after[1])
    padding = tuple(before) if after == before else tuple(sides)
    draft.call(x, batch, height, width, channels, kernel, stride, padding, *(() if averaged else (dilation,)))
    ceil_mode, releases, inside = draft.chance(0.2), draft.chance(0.12), averaged and draft.chance(0.3)
    draft.option("ceil_mode", ceil_mode or "").option("deallocate_input", releases or "")
    draft.option("count_include_pad", False if inside else "")
    draft.sometimes(0.35, "applied_shard_scheme", *(f"ttsim.TensorMemoryLayout.{kind}_SHARDED" for kind in KINDS))
    draft.sometimes(0.1, "reallocate_halo_output", False, True).sometimes(0.02, "config_tensor_in_dram", True)
    out = draft.typed(0.12, ("bfloat16", "bfloat8_b")).dtype or "bfloat16"
    layout = draft.pick(("TILE", "ROW_MAJOR")) if draft.chance(0.15) else ""
    draft.option("output_layout", layout and f"ttsim.{layout}_LAYOUT")
    draft.placed((1, 1, batch * height * width, channels), tiled=layout == "TILE", probability=0.2)
    place, text = draft.required, ""
    if not averaged and draft.chance(0.1):
        text = f"ttsim.max_pool2d({', '.join(draft.option('return_indices', True).arguments)})[0]"

    def expected() -> Expected:
        image = x.values.reshape(batch, height, width, channels)
        if averaged:
            values, scale = averaged_windows(image, kernel, stride, sides, ceil_mode=ceil_mode, inside=inside)
            # a scalar loses up to 2^-7 of itself; the sum is rounded twice
            bound = scale * 2.0**-6 + rounding(values, out)
        else:
            values = largest(image, kernel, stride, sides, dilation, ceil_mode=ceil_mode)
            bound = 2 * rounding(values, "bfloat16") * (x.dtype == "float32") + rounding(values, out) * (
                out != "bfloat16"
            )
        values, bound = (numbers.reshape(1, 1, -1, channels) for numbers in (values, bound))
        return Expected(values=values, bound=bound, dtypes=(out,), layout=layout or "ROW_MAJOR", place=place)

    return draft.gives(expect=expected, text=text, frees=draft.state.sharing(x) if releases else ())


@of_tensor("adaptive_avg_pool2d", "adaptive_max_pool2d", accept=is_image)
def adaptive_pool2d(draft: Draft, x: Shadow) -> Step:
    """As many averages or maxima as asked for, of windows that divide the image."""
    batch, height, width, channels = x.shape
    size = tuple(draft.pick([n for n in (1, 2, 3, side) if side % n == 0]) for side in (height, width))
    draft.call(x, batch, height, width, channels, size)
    draft.sometimes(0.35, "applied_shard_scheme", *(f"ttsim.TensorMemoryLayout.{kind}_SHARDED" for kind in KINDS))
    only = INTERLEAVED if size == (1, 1) else None  # a single average goes to interleaved memory
    draft.placed((1, 1, batch * size[0] * size[1], channels), tiled=False, probability=0.2, only=only)
    place = draft.required

    def expected() -> Expected:
        blocks = x.values.reshape(batch, size[0], height // size[0], size[1], width // size[1], channels)
        averaged = draft.function == "adaptive_avg_pool2d"
        values = (blocks.mean((2, 4)) if averaged else blocks.max((2, 4))).reshape(1, 1, -1, channels)
        bound = np.abs(blocks).mean((2, 4)).reshape(values.shape) * 2.0**-6 * averaged
        bound = bound + rounding(values, "bfloat16") * 2
        dtypes = ("bfloat16", x.dtype) if size == (1, 1) else ("bfloat16",)  # a single average is a reduction
        return Expected(values=values, bound=bound, dtypes=dtypes, layout="ROW_MAJOR", place=place)

    return draft.gives(expect=expected)


@of_tensor("global_avg_pool2d", accept=is_image)
def global_avg_pool2d(draft: Draft, x: Shadow) -> Step:
    """The average of each image."""
    values = x.values.mean((1, 2), keepdims=True)
    bound = np.abs(x.values).mean((1, 2), keepdims=True) * 2.0**-6 + rounding(values, x.dtype) * 2
    # the average of whole tiles is a reduction, of other images a pool
    return draft.call(x).gives(values, bound, dtypes=(x.dtype, "bfloat16"), layout=None)


@operation("grid_sample", "prepare_grid_sample_grid")
def sampled(draft: Draft) -> Step:
    """Pixels where a grid says, or a grid with pixels and weights, whose bits are no numbers."""
    batch, high, wide, channels = (
        draft.pick((1, 1, 2)),
        draft.between(1, 8),
        draft.between(1, 8),
        32 * draft.between(1, 2),
    )
    sides, corners = (batch, draft.between(1, 6), draft.between(1, 6), 2), draft.chance(0.3)
    if draft.function == "prepare_grid_sample_grid":
        grid = draft.operand("a", sides, "float32", layout="ROW_MAJOR")
        call = f"ttsim.prepare_grid_sample_grid({grid}, {(batch, high, wide, channels)}, align_corners={corners})"
        return draft.fact(f"list({call}.shape)", [*sides[:3], 6], grid.text)
    x, grid = (
        draft.operand(name, shape, dtype, layout="ROW_MAJOR", where="ttsim.DRAM_MEMORY_CONFIG")
        for name, shape, dtype in (("a", (batch, high, wide, channels), "bfloat16"), ("b", sides, "float32"))
    )
    draft.call(x, grid).option("align_corners", corners or "")
    values, scale = sampled_pixels(x.values, grid.values, align_corners=corners)
    return draft.gives(values, scale * 2.0**-5 + 0.01, dtypes=("bfloat16",), layout="ROW_MAJOR")


@of_tensor("rotate", accept=lambda x: is_image(x) and not x.tiled and x.dtype in ("bfloat16", "float32"))
def rotate(draft: Draft, x: Shadow) -> Step:
    """Quarters of a rotation, which need no interpolation."""
    turns = draft.pick((2, 0, 4) if x.shape[1] != x.shape[2] else (1, 2, 3))
    draft.call(x, 90.0 * turns)
    draft.placed(x.shape, tiled=False, probability=0.15, only=INTERLEAVED)
    values = np.rot90(x.values, turns, (1, 2))
    return draft.gives(values, movement_error(values, x.dtype), dtypes=(x.dtype,), layout="ROW_MAJOR")


@operation("experimental.conv3d")
def volumes(draft: Draft) -> Step:
    """A convolution of volumes with prepared weights."""
    batch, channels, outputs = draft.pick((1, 1, 2)), 32 * draft.pick((1, 1, 2)), 32 * draft.pick((1, 2))
    kernel, sides = [draft.between(1, 3) for _ in range(3)], [draft.between(3, 5) for _ in range(3)]
    stride = [draft.pick((1, 1, 2)) for _ in range(3)]
    padding = [draft.below(2) if size > 1 else 0 for size in kernel]
    repeated, dtype = draft.chance(0.3), draft.pick(("bfloat16", "bfloat16", "float32"))
    x = draft.operand("a", (batch, *sides, channels), dtype, layout="ROW_MAJOR", where="ttsim.DRAM_MEMORY_CONFIG")
    # taps of a block of channels, then those of the next
    block = draft.pick((32, channels))
    taps = prod(kernel) * channels
    weights = draft.operand("w", (taps, outputs), dtype, where="ttsim.DRAM_MEMORY_CONFIG")
    bias = draft.operand("b", (1, outputs), dtype, where="ttsim.DRAM_MEMORY_CONFIG") if draft.chance(0.5) else None
    grid = "ttsim.CoreCoord(4, 4)"
    config = f"ttsim.Conv3dConfig(C_in_block={block}, compute_with_storage_grid_size={grid})"
    draft.call().option("input_tensor", x).option("weight_tensor", weights).option("bias_tensor", bias)
    draft.option("config", config).option("dtype", f"ttsim.{dtype}").option("output_channels", outputs)
    for name, numbers in (("kernel_size", kernel), ("stride", stride), ("padding", padding)):
        draft.option(name, tuple(numbers))
    draft.option("padding_mode", '"replicate"' if repeated else "")
    ordered = weights.values.reshape(channels // block, *kernel, block, outputs).transpose(1, 2, 3, 0, 4, 5)

    def expected() -> Expected:
        around = [(0, 0), *((side, side) for side in padding), (0, 0)]
        framed = np.pad(x.values, around, mode="edge") if repeated else np.pad(x.values, around)
        seen = sliding_window_view(framed, kernel, axis=(1, 2, 3))
        seen = seen[:, :: stride[0], :: stride[1], :: stride[2]]  # [N, D, H, W, C, kernel]
        patches = np.moveaxis(seen, 4, -1).reshape(*seen.shape[:4], taps)
        row = None if bias is None else bias.values
        values, terms, squares = sums(np.matmul, patches, ordered.reshape(taps, outputs), row)
        bound = sum_error(values, terms, squares, taps, dtype, low_fidelity=False)
        return Expected(values=values, bound=bound, dtypes=(dtype,), layout="ROW_MAJOR", norm=0.06)

    return draft.gives(expect=expected)


@operation("experimental.prepare_conv3d_weights")
def weights_of_volumes(draft: Draft) -> Step:
    """Weights in the order of the convolution of volumes."""
    outputs, channels, kernel = draft.between(1, 40), draft.between(1, 70), [draft.between(1, 3) for _ in range(3)]
    w = draft.operand(
        "w", (outputs, channels, *kernel), "bfloat16", layout="ROW_MAJOR", where="ttsim.DRAM_MEMORY_CONFIG"
    )
    padded, block = -(-channels // 32) * 32, draft.pick((16, 32))
    draft.call().option("weight_tensor", w).option("C_in_block", block)
    framed = np.pad(w.values, ((0, 0), (0, padded - channels), (0, 0), (0, 0), (0, 0)))
    blocks = framed.reshape(outputs, padded // block, block, *kernel).transpose(1, 3, 4, 5, 2, 0)
    values = blocks.reshape(-1, outputs)
    return draft.gives(values, np.zeros(values.shape), dtypes=("bfloat16",), layout="ROW_MAJOR")


@of_tensor("upsample", accept=lambda x: is_image(x) and x.values.size < 10_000)
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


@of_tensor("fold", accept=is_image)
def fold(draft: Draft, x: Shadow) -> Step:
    """Windows as channels."""
    ring = draft.below(2) if draft.chance(0.15) else 0
    down, across = (
        draft.pick([step for step in (2, 1, 4, 3) if (side + 2 * ring) % step == 0 or draft.chance(0.04)])
        for side in x.shape[1:3]
    )
    image = np.pad(x.values, ((0, 0), (ring, ring), (ring, ring), (0, 0)))
    batch, height, width, channels = image.shape
    draft.call(x, down, across).option("padding", (ring, ring) if ring else "")
    collapse = "collapse_output=True" in draft.sometimes(0.15, "collapse_output", True).arguments
    if height % down or width % across:
        return Step(text=draft.gives().text, contradictory="the windows do not fill the image")
    blocks = image.reshape(batch, height // down, down, width // across, across, channels)
    values = blocks.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // down, width // across, -1)
    values = values.reshape(1, 1, -1, values.shape[-1]) if collapse else values
    return moved(draft, x, values, dtypes=(in_rows(x.dtype), x.dtype), layout=None)


@operation("experimental.convert_to_hwc", "experimental.convert_to_chw")
def swapped(draft: Draft) -> Step:
    """A tensor with its last two axes swapped."""
    count, last = draft.pick((1, 2, 4, 8)), draft.function.endswith("hwc")
    channels, size, batch = draft.pick((1, 3, 4, 8, 16, 20, 32)), 32 * draft.between(1, 4) * count, 1
    dtype, kind, shard, buffer = draft.pick(("bfloat16", "bfloat16", "bfloat8_b")), "HEIGHT", (size // count, 32), "L1"
    sides, turned = (1, 1, size, channels), (1, 1, channels, size)
    if last:
        dtype, batch = draft.pick(("bfloat16", "bfloat16", "float32")), draft.pick((1, 1, 1, 2))
        channels = round_up(channels, 16 // (2 if dtype == "bfloat16" else 4))  # others would stay as memory was
        kind, shard, buffer = "WIDTH", (batch * channels, size // count), draft.pick(("L1", "L1", "DRAM"))
        sides, turned = (1, batch, channels, size), (1, 1, batch * size, channels)
    where = f'shards("{kind}", {shard}, (0, 0, {count - 1}, 0), buffer="{buffer}")'
    out = dtype if last else "bfloat16"
    out = draft.pick(("bfloat16", "float32")) if draft.chance(0.2) or dtype == "bfloat8_b" else out
    x = draft.operand("a", sides, dtype, layout="ROW_MAJOR" if last else "TILE", where=where)
    values = x.values[0].swapaxes(1, 2).reshape(turned)
    draft.call(x).option("dtype", f"ttsim.{out}" if out != dtype else "")
    bound = movement_error(values, dtype) + rounding(values, out) * (out != dtype)
    return draft.gives(values, bound, dtypes=(out,), layout="ROW_MAJOR")
