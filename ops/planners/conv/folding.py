"""Windows of conv2d that are folded into channels, to leave a convolution of stride 1 (docs/reference/planning.md)."""

from dataclasses import replace
from math import prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, DataFormat, div_up, round_up
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall, Folding, Operand
from ops.planners.conv.checks import FOLDING_WAY_OUT
from ops.planners.shape.fold import folded_images
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.fold import FoldWindows, fold_buffers, in_high_shards, whole_windows
from ops.programs.data_movement.pad import PadWith, around_image, pad_buffers
from ops.programs.data_movement.placement import blocks_in_dram, convert, converted, uploaded_image
from ops.programs.data_movement.reshape import reshaped

FOLDED: Final = "input.folded"
HEIGHT: Final = TensorMemoryLayout.HEIGHT_SHARDED


def folded_input(builder: PlanBuilder, call: ConvCall) -> PlanTensor:
    """The input with its windows folded into channels, as rows: "input.folded" [N, H / sh, W / sw, sh * sw * C]."""
    source = builder.tensor("input")
    start = uploaded_image(builder, source) if call.input.on_host else source
    image = current = _gathered(builder, reshaped(builder, start, call.image_shape, "input.image"))
    builder.free_own(start, keep=[image])
    if any(call.padding) and in_high_shards(image.spec):
        around = (call.padding[:2], call.padding[2:], (0, 0))
        folded = folded_images(builder, image, call.stride, around, name=FOLDED, prefix=f"{FOLDED}.")
        builder.free_own(image, keep=[folded])
        return _released(builder, call, source, start, folded)
    if any(call.padding):
        (batch, height, width, channels), (top, bottom, left, right) = image.spec.shape, call.padding
        shape = (batch, height + top + bottom, width + left + right, channels)
        padded = image.spec.changed(shape=shape, layout=Layout.ROW_MAJOR)
        op = PadWith(shape=image.spec.shape, padding=around_image(call.padding))
        target = PlanTensor("input.padded", padded)
        buffers = pad_buffers(image, target, 0, builder.device_spec)
        current = builder.run("PadDeviceOperation", op, [image], target, buffers, dataflow=True)
    ready = rows = _as_rows(builder, current)
    builder.free_own(current, keep=[image, rows])
    if rows.spec.memory_config.memory_layout is HEIGHT:  # whole rows of windows on a core
        ready = convert(builder, rows, whole_windows(rows.spec, call.stride, builder.device_spec), "input.dealt")
        builder.free_own(rows, keep=[image, ready])
    folded = _folded(builder, call, ready)
    builder.free_own(ready, image)
    return _released(builder, call, source, start, folded)


def _released(
    builder: PlanBuilder, call: ConvCall, source: PlanTensor, start: PlanTensor, folded: PlanTensor
) -> PlanTensor:
    """The folded input, with the caller's released where the call says so."""
    if call.conv_config.deallocate_activation and not call.input.on_host and start.in_l1:
        builder.free(source)
    return folded


def _gathered(builder: PlanBuilder, image: PlanTensor) -> PlanTensor:
    """Rows of shards in DRAM that are wider than the channels, interleaved in L1; those of HEIGHT stay, to be refused.

    Raises DeviceError for BLOCK shards in DRAM, which no program copies.
    """
    spec, place = image.spec, image.spec.memory_config
    wide = spec.layout is Layout.ROW_MAJOR and spec.matrix[1] != spec.shape[-1]
    if not wide or place.buffer_type is not BufferType.DRAM or place.memory_layout is HEIGHT:
        return image
    if (text := blocks_in_dram(place)) is not None:
        raise DeviceError(text)
    return converted(builder, Conversion.COPY, image, spec.changed(memory_config=L1_MEMORY_CONFIG), "input.gathered")


def _as_rows(builder: PlanBuilder, image: PlanTensor) -> PlanTensor:
    """Rows of tiles that Fold does not read: tiles in shards, and tiles whose rows split words."""
    spec, place = image.spec, image.spec.memory_config
    row_bytes = spec.shape[-1] * (_row_format(spec).element_bytes or 0)
    splits_words = row_bytes % builder.device_spec.l1.alignment_bytes != 0
    if spec.layout is not Layout.TILE or not (place.is_sharded() or splits_words):
        return image
    if (text := blocks_in_dram(place)) is not None:
        raise DeviceError(text)
    whole, shards = not any(side % TILE for side in spec.shape[-2:]), place.shard_spec
    if shards is not None and not whole:
        if place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and prod(spec.shape[:-2]) > 1:
            raise DeviceError(
                "Can only write unbatched output for BLOCK_SHARDED -> BLOCK_SHARDED\n"
                f"input_tensor: Fold wants rows of an image of {list(spec.shape)}; give rows, or other shards"
            )
        if place.memory_layout is HEIGHT:
            place = replace(place, shard_spec=shards.changed(shape=(_untiled_rows(spec, shards), spec.shape[-1])))
        elif place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
            rows = prod(spec.shape[:-1])
            place = replace(place, shard_spec=shards.changed(shape=(rows, shards.shape[1])))
    rows_spec = TensorSpec(spec.shape, _row_format(spec), Layout.ROW_MAJOR, place)
    conversion = Conversion.UNTILIZE if whole else Conversion.UNTILIZE_WITH_UNPADDING
    return converted(builder, conversion, image, rows_spec, "input.untiled")


def _untiled_rows(spec: TensorSpec, shards: ShardSpec) -> int:
    """Rows of a HEIGHT shard after untilizing without padding: whole image rows stay, other rows fill whole tiles."""
    in_image, padded = spec.shape[-2], spec.padded_shape[-2]
    if shards.shape[0] > padded and not shards.shape[0] % padded:
        return shards.shape[0] // padded * in_image
    return round_up(div_up(prod(spec.shape[:-1]), shards.num_cores()), TILE)


def _folded(builder: PlanBuilder, call: ConvCall, image: PlanTensor) -> PlanTensor:
    """Windows as channels; shards become as much wider as they become lower."""
    (batch, height, width, channels), (rows, columns), place = image.spec.shape, call.stride, image.spec.memory_config
    positions = rows * columns
    if place.shard_spec is not None:
        high, wide = place.shard_spec.shape
        if high % positions:
            raise DeviceError(
                f"Fold: sharded input shard height ({high}) must be divisible by patch_size ({positions}).\n"
                f"input_tensor: give shards of whole windows; {FOLDING_WAY_OUT}"
            )
        shards = place.shard_spec.changed(shape=(high // positions, wide * positions))
        place = replace(place, shard_spec=shards)
    shape = (batch, height // rows, width // columns, positions * channels)
    folded = TensorSpec(shape, _row_format(image.spec), Layout.ROW_MAJOR, place)
    fold = FoldWindows(window=call.stride, image=(batch, height, width, channels), data_format=folded.data_format)
    target = PlanTensor(FOLDED, folded)
    buffers = fold_buffers(image, target, call.stride, builder.device_spec)
    return builder.run("Fold", fold, [image], target, buffers, dataflow=True)


def _row_format(spec: TensorSpec) -> DataFormat:
    """Format of rows: bfloat16 instead of block floats."""
    return BFLOAT16 if spec.data_format.is_block else spec.data_format


def folded_call(call: ConvCall, image: TensorSpec) -> ConvCall:
    """The convolution that is left of a call whose input was folded to this image, at stride 1."""
    kernel = tuple(map(div_up, call.kernel_size, call.stride))
    return replace(
        call,
        input=Operand(spec=image, on_host=False, name=FOLDED),
        in_channels=call.in_channels * prod(call.stride),
        input_height=image.shape[1],
        input_width=image.shape[2],
        kernel_size=(kernel[0], kernel[1]),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        folding=Folding(kernel=call.kernel_size, stride=call.stride, weights=call.takes_l1_path),
        out_format=call.output_format,
    )


def sliced_as(folded: ConvCall, call: ConvCall) -> ConvCall:
    """The folded call as slices are planned: with layout and format of the input that was not folded yet."""
    image, source = folded.input.spec, call.input.spec
    seen = source.changed(shape=image.shape, memory_config=image.memory_config)
    return replace(folded, input=replace(folded.input, spec=seen))
