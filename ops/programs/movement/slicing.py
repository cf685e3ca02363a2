"""One slice of a convolution that is cut up in DRAM: its window comes into L1 as rows, and its result goes back.

Rules: tt-metal 0.81.1 (padded_slice, slice_write, untilize), compared with recorded runs.
"""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.block_floats import round_up
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.movement.circular_buffers import (
    padded_slice_buffers,
    slice_write_buffers,
    untilize_codegen_buffers,
)
from ops.programs.movement.ends import fits_generated_code
from ops.programs.movement.placement import converted, to_interleaved
from ops.programs.movement.work import Conversion, PaddedSlice, SliceWrite, Window


def sliced_input(
    builder: PlanBuilder, image: PlanTensor, window: Window, config: MemoryConfig, name: str
) -> PlanTensor:
    """A window of an image tensor in DRAM as row-major shards in L1; bfloat8_b arrives as bfloat16.

    A window that is the whole of an image of rows is dealt to shards as any tensor is, where a shard holds all channels
    and no more. bfloat4_b stays what it is, which has no rows: the real library refuses that, and so does the layout
    here.

    Args:
        image: The input [N, H, W, C].
        window: Which part; all images and all channels.
        config: Shards of the slice.
    """
    batch, rows, cols, channels = window.window_shape
    data_format = BFLOAT16 if image.spec.data_format == BFLOAT8_B else image.spec.data_format
    shape = (1, 1, batch * rows * cols, channels)
    padded = (1, 1, *_padded_slice(shape[2], channels, config))
    made = TensorSpec(shape, data_format, Layout.ROW_MAJOR, config, padded)
    output = PlanTensor(name, made)
    whole = image.spec.layout is Layout.ROW_MAJOR and window.window_shape == image.spec.shape
    if whole and made.shards.shape[1] == channels:
        flat = PlanTensor(image.name, TensorSpec(shape, data_format, Layout.ROW_MAJOR, image.spec.memory_config))
        return converted(builder, Conversion.INTERLEAVED_TO_SHARDED, flat, name, made)
    return builder.run(
        "PaddedSliceDeviceOperation",
        PaddedSlice(window),
        [image],
        output=output,
        circular_buffers=padded_slice_buffers(image, output, builder.device_spec),
        refused=_narrow_rows(image.spec, made, builder.device_spec.l1.alignment_bytes),
    )


def _narrow_rows(image: TensorSpec, made: TensorSpec, alignment_bytes: int) -> str | None:
    """Why rows can not be cut out of an image of rows, in the real library's words and ours; None if they can."""
    row_bytes = made.shards.shape[1] * (made.data_format.element_bytes or 0)
    if image.layout is Layout.TILE or row_bytes % alignment_bytes == 0:
        return None
    return (
        f"Output row size {row_bytes} must be aligned to the destination buffer BufferType::L1 alignment "
        f"{alignment_bytes}\ninput_tensor: slices of its {made.shape[-1]} channels of {made.data_format} have rows of "
        f"{row_bytes} bytes on every core; typecast it to bfloat16, or put it in L1"
    )


def write_slice(builder: PlanBuilder, result: PlanTensor, target: PlanTensor, write: SliceWrite, name: str) -> None:
    """The tiles of one slice written into the output image in DRAM, as rows if the output is row-major; then released.

    Args:
        result: Sharded output of the slice's convolution.
        target: The output [N, OH, OW, O].
        write: Which part of the output the slice is.
        name: Intermediates start with it.
    """
    if target.spec.layout is Layout.ROW_MAJOR:
        if _is_width_sharded(result.spec.memory_config):
            interleaved = to_interleaved(builder, result, L1_MEMORY_CONFIG, f"{name}.interleaved")
            builder.free(result)
            result = interleaved
        rows = untilized(builder, result, f"{name}.rows")
        builder.free(result)
        result = rows
    operation, buffers = "SliceWriteDeviceOperation", slice_write_buffers(result.spec, builder.device_spec)
    # where a slice goes is told to a program of interleaved rows when it runs
    key = (operation, result.spec, target.spec, write.window.window_shape, write.source_width) if buffers else None
    builder.run(operation, write, [result, target], circular_buffers=buffers, key=key)
    builder.free(result)


def untilized(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """Tiles as rows; padding goes, except to the width of the shards."""
    spec = source.spec
    made = TensorSpec(spec.shape, spec.data_format, Layout.ROW_MAJOR, spec.memory_config)
    conversion = untilizing(spec)
    codegen = conversion is Conversion.UNTILIZE_CODEGEN
    buffers = untilize_codegen_buffers(spec, made, builder.device_spec) if codegen else ()
    return converted(builder, conversion, source, name, made, buffers)


def untilizing(spec: TensorSpec) -> Conversion:
    """Which of the real library's programs untilizes a tensor."""
    if spec.memory_config.is_sharded():
        return Conversion.UNTILIZE
    if spec.data_format == BFLOAT16 and fits_generated_code(spec):
        return Conversion.UNTILIZE_CODEGEN
    return Conversion.UNTILIZE if spec.shape == spec.padded_shape else Conversion.UNTILIZE_WITH_UNPADDING


def _is_width_sharded(config: MemoryConfig) -> bool:
    return config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED


def _padded_slice(rows: int, channels: int, config: MemoryConfig) -> tuple[int, int]:
    """Rows and columns of a slice: whole shards across; as many rows as there are, unless every core holds all rows."""
    if config.shard_spec is None:
        raise AssertionError("a slice needs shards")
    shard_rows, shard_cols = config.shard_spec.shape
    return shard_rows if _is_width_sharded(config) else rows, round_up(channels, shard_cols)
