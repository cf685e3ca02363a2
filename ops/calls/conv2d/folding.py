"""Kernel stride folding: the positions of a stride become channels, so that a convolution of stride 1 is left.

Rule: tt-metal, compared with calls of the real library, version 0.81.1.
"""

from dataclasses import replace
from math import prod
from typing import Final

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, DataFormat
from device.numbers.integers import div_up, round_up
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments, Folding, Operand
from ops.calls.convolution.problem import image_shape, output_format, takes_l1_path
from ops.programs.conv2d.partition import largest_divisor
from ops.programs.movement.placement import L1_ALIGNMENT_BYTES, convert, converted, uploaded_image
from ops.programs.movement.reshape import reshaped
from ops.programs.movement.work import Conversion, FoldWindows, PadImage

FOLDED: Final = "input.folded"


def folds(call: ConvArguments) -> bool:
    """Whether the real library folds: as the config says, or by itself where the kernel is the stride."""
    given = call.conv_config.enable_kernel_stride_folding
    if given is not None:
        return given and call.stride != (1, 1)
    if call.stride != call.kernel_size or call.stride == (1, 1) or call.dilation != (1, 1):
        return False
    top, bottom, left, right = call.padding
    if (call.input_height + top + bottom) % call.stride[0] or (call.input_width + left + right) % call.stride[1]:
        return False
    place = call.input.spec.memory_config
    in_dram = call.input.on_host or place.buffer_type is BufferType.DRAM
    rows_or_plain = call.input.spec.layout is Layout.ROW_MAJOR or not any(call.padding)
    return (in_dram and rows_or_plain) or (
        not call.input.on_host and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    )


def folded_input(builder: PlanBuilder, call: ConvArguments) -> PlanTensor:
    """The input with its windows folded into channels, as rows; every copy made on the way is released.

    Args:
        builder: The plan; its tensor "input" is the call's.
        call: The call.

    Returns:
        "input.folded" [N, H / sh, W / sw, sh * sw * C].
    """
    source = builder.tensor("input")
    start = uploaded_image(builder, source) if call.input.on_host else source
    shape = image_shape(call)
    image = reshaped(builder, start, shape, "input.image")
    copies = [start, image]
    top, bottom, left, right = call.padding
    if any(call.padding):
        work = PadImage(image=shape, padding=call.padding)
        shape = (shape[0], shape[1] + top + bottom, shape[2] + left + right, shape[3])
        padded = TensorSpec(shape, image.spec.data_format, Layout.ROW_MAJOR, image.spec.memory_config)
        image = builder.run("PadDeviceOperation", work, [image], output=PlanTensor("input.padded", padded))
        copies.append(image)
    if image.spec.layout is Layout.TILE and _splits_words(image.spec):
        made = TensorSpec(shape, _row_format(image.spec), Layout.ROW_MAJOR, image.spec.memory_config)
        image = converted(builder, Conversion.UNTILIZE_WITH_UNPADDING, image, "input.untiled", made)
        copies.append(image)
    folded, dealt = folded_spec(call, builder.device_spec.grid), _dealt_rows(call, builder.device_spec.grid)
    if not call.input.on_host and dealt != image.spec.memory_config:
        image = convert(builder, image, dealt, "input.dealt")
        copies.append(image)
    fold = FoldWindows(window=call.stride, image=shape, data_format=folded.data_format)
    made_image = builder.run("Fold", fold, [image], output=PlanTensor(FOLDED, folded))
    consumes = call.conv_config.deallocate_activation and not call.input.on_host and start.in_l1
    for one in {copy.name: copy for copy in reversed(copies)}.values():
        if one.name != source.name:
            builder.free(one)
    if consumes:
        builder.free(source)
    return made_image


def _splits_words(spec: TensorSpec) -> bool:
    """Whether the rows that tiles become do not begin at multiples of 16 bytes; then Fold does not read tiles."""
    return spec.shape[-1] * (_row_format(spec).element_bytes or 0) % L1_ALIGNMENT_BYTES != 0


def folded_call(call: ConvArguments, image: TensorSpec) -> ConvArguments:
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
        folding=Folding(kernel=call.kernel_size, stride=call.stride, weights=takes_l1_path(call)),
        out_format=output_format(call),
    )


def sliced_as(folded: ConvArguments, call: ConvArguments) -> ConvArguments:
    """What is left of a call as slices are laid out: with layout and format of the input that was not folded yet."""
    image, given = folded.input.spec, call.input.spec
    seen = TensorSpec(image.shape, given.data_format, given.layout, image.memory_config)
    return replace(folded, input=replace(folded.input, spec=seen))


def left_of(call: ConvArguments, grid: GridSpec) -> ConvArguments:
    """What the real library carries out of a call: itself, or what is left when its windows are folded."""
    return folded_call(call, folded_spec(call, grid)) if folds(call) else call


def folded_spec(call: ConvArguments, grid: GridSpec) -> TensorSpec:
    """The input of a call with its windows folded into channels: rows, bfloat16 where there were block floats.

    Shards become as much wider as they become lower.

    Args:
        call: The call.
        grid: The device's cores.
    """
    (top, bottom, left, right), given = call.padding, call.input.spec
    height, width = call.input_height + top + bottom, call.input_width + left + right
    (rows, columns), place = call.stride, DRAM_MEMORY_CONFIG if call.input.on_host else _dealt_rows(call, grid)
    shards = place.shard_spec
    if shards is not None:
        high, wide = shards.shape
        place = replace(place, shard_spec=replace(shards, shape=(high // (rows * columns), wide * rows * columns)))
    return TensorSpec(
        (call.batch_size, height // rows, width // columns, rows * columns * call.in_channels),
        _row_format(given),
        Layout.ROW_MAJOR,
        place,
    )


def _dealt_rows(call: ConvArguments, grid: GridSpec) -> MemoryConfig:
    """Where Fold finds its input: HEIGHT shards are dealt anew unless they hold whole rows of windows."""
    place, (_, height, width, _) = call.input.spec.memory_config, image_shape(call)
    shards, pixels = place.shard_spec, call.stride[0] * width
    if shards is None or place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED or not shards.shape[0] % pixels:
        return place
    total = call.batch_size * height * width
    cores = largest_divisor(grid.cores, total // pixels)
    rows = round_up(total // cores, pixels)
    return replace(
        place,
        shard_spec=ShardSpec(first_cores(cores, grid.cols, grid.rows), (rows, shards.shape[1]), shards.orientation),
    )


def _row_format(spec: TensorSpec) -> DataFormat:
    return BFLOAT16 if spec.data_format.is_block else spec.data_format
