"""Plans that fold windows of images into channels. Rules: ttnn 0.81.1 (data_movement/fold), recorded plans."""

from dataclasses import replace
from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.pad import Around, padded_by
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import beyond_shards, page_alignment_bytes, row_bytes, shard_row_bytes
from ops.programs.data_movement import fold
from ops.programs.data_movement.reshape import reshaped
from ops.programs.halo.plan import HaloArguments, HaloOp, plan_halo, walk_refusal
from ops.window import PaddedAxis, PaddedInput

RANK = 4  # of an image tensor


def plan_fold(
    source: TensorSpec,
    window: tuple[int, int],
    padding: Around,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    collapsed: bool = False,
) -> Plan:
    """Plan windows of the images "input", [N, H, W, C], as channels [N, H / rows, W / columns, rows * columns * C]."""
    rank = len(source.shape)
    if rank != RANK:
        _check_window(window)
    if rank < RANK:
        axis = 2 if rank == 1 and source.layout is Layout.TILE else rank  # tiles have two sides in any case
        line = no_such_axis(rank, axis)
        if any(map(any, padding)):
            line = "ttnn.pad: padding len can't be larger than input tensor rank"
        raise DeviceError(f"{line}\nfold: give [N, H, W, C], not {rank} axes")
    if rank > RANK:
        raise ArgumentError(f"fold: the tensor must be [N, H, W, C], not of rank {rank}")

    def write(builder: PlanBuilder, images: PlanTensor) -> PlanTensor:
        folded = folded_images(builder, images, window, padding, collapsed=collapsed)
        result = folded if place is None else placed(builder, folded, place, "output.placed")
        builder.free_own(folded, keep=[result])
        return result

    return plan_of(source, spec, write, attempts=True)


def folded_images(
    builder: PlanBuilder,
    images: PlanTensor,
    window: tuple[int, int],
    padding: Around,
    *,
    name: str = "output",
    prefix: str = "",
    collapsed: bool = False,
) -> PlanTensor:
    """The windows of images as channels, in the tensor of this name; other arguments as for `plan_fold`.

    ``prefix`` begins the names of intermediate tensors.
    """
    # the halo of HEIGHT shards does not write its zeros; Fold does
    halo = (*padding[0], *padding[1]) if fold.in_high_shards(images.spec) else (0, 0, 0, 0)
    ready = _ready(builder, images, window, padding, prefix)
    folded = _folded(builder, ready, window, halo, name, collapsed=collapsed)
    builder.free_own(ready, keep=[images, folded])
    return folded


def _ready(
    builder: PlanBuilder, images: PlanTensor, window: tuple[int, int], padding: Around, prefix: str
) -> PlanTensor:
    """The images as the program takes them: padded, as rows unless it takes tiles, in shards of whole windows."""
    high, current, spec = fold.in_high_shards(images.spec), images, builder.device_spec
    if high:
        current = _haloed(builder, images, padding, f"{prefix}halo")
        padding = (*[(0, 0)] * 2, padding[2])
    elif _lies_apart(images.spec, spec):
        current = placed(builder, images, L1_MEMORY_CONFIG, f"{prefix}gathered")
    padded = padded_by(builder, current, ((0, 0), *padding), 0.0, f"{prefix}padded")
    builder.free_own(current, keep=[images, padded])
    if not high and padded.spec.layout is Layout.TILE and not padded.spec.memory_config.is_sharded():
        _check_sides(padded.spec, window)  # the library untilizes tiles in shards before it looks at windows
    if not high and (padded.spec.layout is Layout.ROW_MAJOR or fold.folds_tiles(padded.spec, window, spec)):
        return padded
    rows = in_other_layout(builder, padded, Layout.ROW_MAJOR, f"{prefix}rows")
    builder.free_own(padded, keep=[images, rows])
    if not high:
        return rows
    _check_window(window)
    dealt = placed(builder, rows, fold.whole_windows(rows.spec, window, spec), f"{prefix}dealt")
    builder.free_own(rows, keep=[images, dealt])
    return dealt


def _haloed(builder: PlanBuilder, images: PlanTensor, padding: Around, name: str) -> PlanTensor:
    """The images in HEIGHT shards with zeros around them, from a halo with windows of one stick."""
    (top, bottom), (left, right), channels = padding
    if not any((top, bottom, left, right)):
        return images
    if any(channels):
        builder.leave_out_values(
            "fold: ttsim does not calculate numbers of images in HEIGHT shards with zeros around them and beside their "
            "channels; pad the channels before"
        )
    spec = images.spec
    walked = walk_refusal(spec.shards.grid, row_major=spec.shards.orientation is ShardOrientation.ROW_MAJOR)
    if walked is not None:
        raise DeviceError(f"{walked}\nfold: give images in shards of cores from 0-0 on, row by row")
    batch, height, width, depth = spec.shape
    if spec.layout is Layout.TILE and depth != spec.padded_shape[-1]:
        raise DeviceError(
            "Attempting to reshape between two shapes with different volumes\nfold: tiles with padding do not become "
            "images; give rows, or pad the images before"
        )
    rows_of_all = reshaped(builder, images, (1, 1, batch * height * width, depth), f"{name}.flat")
    spec = rows_of_all.spec
    rows, columns = (
        PaddedAxis(input_length=side, before=before, after=after, kernel=1)
        for side, before, after in ((height, top, bottom), (width, left, right))
    )
    frame = PaddedInput(batch=batch, rows=rows, columns=columns)
    shares = {"output_rows": div_up(frame.outputs, spec.shards.num_cores()), "input_matrix": spec.matrix}
    formats = {"data_format": spec.data_format, "tiled": spec.layout is Layout.TILE}
    halo = HaloArguments.of(frame, spec.memory_config, builder.device_spec, **shares, **formats)
    plan = plan_halo(halo, input_tensor=rows_of_all.name, output_tensor=name)
    op, output = HaloOp(plan=plan, fp32_dest=False), PlanTensor(name, plan.output)
    builder.run("HaloDeviceOperation", op, [rows_of_all], output, plan.circular_buffers, resident=plan.resident)
    builder.free_own(rows_of_all, keep=[images])
    if spec.shape[-1] != spec.padded_shape[-1]:
        raise DeviceError(
            "Attempting to reshape between two shapes with different volumes\nfold: rows with padding do not become "
            "images; give rows without, or pad the images before"
        )
    shape, sticks = (batch, height + top + bottom, width + left + right, depth), plan.output
    return PlanTensor(name, sticks.changed(shape=shape, layout=Layout.ROW_MAJOR))


def _lies_apart(image: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether rows are split into shards whose width is not aligned."""
    place = image.memory_config
    by_columns = place.memory_layout in (TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.BLOCK_SHARDED)
    rows = by_columns and image.layout is Layout.ROW_MAJOR
    return rows and shard_row_bytes(image, place) % page_alignment_bytes(place, spec) != 0


def _folded(
    builder: PlanBuilder,
    image: PlanTensor,
    window: tuple[int, int],
    halo: tuple[int, int, int, int],
    name: str,
    *,
    collapsed: bool,
) -> PlanTensor:
    """The Fold program; the image does not contain the zeros of a halo."""
    _check_window(window)
    (batch, height, width, channels), place = image.spec.shape, image.spec.memory_config
    positions, data_format = prod(window), fold.folded_format(image.spec)
    if not (image.spec.data_format.is_block or image.spec.data_format in fold.FOLDED):
        builder.leave_out_values(
            f"fold: the library takes the bytes of {image.spec.data_format} for bfloat16, which ttsim does not "
            "simulate; typecast the images first"
        )
    if place.shard_spec is not None:
        high, wide = place.shard_spec.shape
        place = replace(place, shard_spec=place.shard_spec.changed(shape=(high // positions, wide * positions)))
    shape = (batch, height // window[0], width // window[1], positions * channels)
    seen = (1, 1, prod(shape[:-1]), shape[-1]) if collapsed else shape
    tensor = PlanTensor(name, TensorSpec(seen, data_format, Layout.ROW_MAJOR, place))
    _check_sides(image.spec, window)  # behind the shards of the result, as the library
    _check_shards(image.spec, window)
    op = fold.FoldWindows(window=window, image=(batch, height, width, channels), data_format=data_format, padding=halo)
    buffers = fold.fold_buffers(image, tensor, window, builder.device_spec)
    refused = _shard_refusal(image.spec, tensor.spec, builder.device_spec) if fold.in_high_shards(image.spec) else None
    return builder.run("Fold", op, [image], tensor, buffers, dataflow=True, refused=refused)


def _shard_refusal(image: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the program has no buffer for windows of integers of 32 bits on the shards of the result, of bfloat16."""
    high, wide = result.shards.shape
    page_bytes, bank_bytes = round_up(row_bytes(image, wide), spec.l1.alignment_bytes), result.buffer(spec).bank_bytes
    texts = beyond_shards("dst0", page_bytes, high, "output", bank_bytes)
    return next((f"{text}\nfold: typecast the images to bfloat16 first" for text in texts), None)


def _check_window(window: tuple[int, int]) -> None:
    """Raises DeviceError for windows of no rows or columns, which the library looks at behind the padding of images."""
    if min(window) < 1:
        raise DeviceError(
            f"Fold: stride_h ({window[0]}) and stride_w ({window[1]}) must be > 0.\nstride_h, stride_w: give windows"
        )


def _check_sides(image: TensorSpec, window: tuple[int, int]) -> None:
    """Raises DeviceError if windows do not fill images."""
    _check_window(window)
    for side, axis, name in (("H", 1, "stride_h"), ("W", 2, "stride_w")):
        if image.shape[axis] % window[axis - 1]:
            raise DeviceError(
                f"Fold: logical {side} ({image.shape[axis]}) must be divisible by {name} ({window[axis - 1]}).\n"
                "padding: fill the last windows with zeros"
            )


def _check_shards(image: TensorSpec, window: tuple[int, int]) -> None:
    """Raises DeviceError if windows do not fill shards."""
    shards = image.memory_config.shard_spec
    if shards is None:
        return
    if fold.in_high_shards(image):
        if shards.shape[0] % (image.shape[2] * window[0]):
            raise DeviceError(
                "Fold (fast path): shard height must be divisible by input width times stride_h.\n"
                f"input: shards of {shards.shape[0]} rows do not hold whole rows of windows"
            )
    elif shards.shape[0] % prod(window):
        raise DeviceError(
            f"Fold: sharded input shard height ({shards.shape[0]}) must be divisible by patch_size ({prod(window)}).\n"
            "input: give shards of whole windows"
        )
