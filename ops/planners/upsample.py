"""The plan of ttnn.upsample, mode "nearest". Rules: ttnn 0.81.1, compared with recorded plans.

The library checks a call after it has allocated the result.
"""

from dataclasses import replace
from math import prod

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import FLOAT32, UINT16, div_up, round_up
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import beyond_shards, in_dram, not_in_l1, row_bytes, shard_counts
from ops.programs.data_movement.movement import format_of_rows
from ops.programs.data_movement.upsample import (
    Upsample,
    UpsampleProgram,
    interleaved_buffers,
    interval_words,
    page_buffers,
    shard_buffers,
    upsampled_shape,
)

OPERATION = "UpsampleOperation"


def plan_upsample(
    source: TensorSpec, scale: tuple[float, float], spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input", [N, H, W, C], with repeated pixels."""
    where = source.memory_config if place is None else place
    program = _program(source, scale)
    shape = upsampled_shape(source.shape, scale)
    output_format = format_of_rows(source.data_format)
    result_place = where if not where.is_sharded() else _shards(source, where, scale, program)
    tensor = PlanTensor("output", TensorSpec(shape, output_format, Layout.ROW_MAJOR, result_place))
    op = Upsample(
        program=program or UpsampleProgram.PAGES,
        shape=source.shape,
        scale=scale,
        source_format=source.data_format,
        data_format=output_format,
    )
    refused = _refused(source, tensor.spec, scale, program, spec)

    def write(builder: PlanBuilder, images: PlanTensor) -> PlanTensor:
        lists = []
        if refused is None and program is UpsampleProgram.SHARDS:
            lists = [PlanTensor("lists", _lists(source, scale))]
            buffers = shard_buffers(images, tensor, lists[0], _stick_bytes(source, source), spec)
        elif program is UpsampleProgram.PAGES:
            buffers = page_buffers(tensor.spec, spec)
        else:
            buffers = interleaved_buffers(source, tensor.spec, spec)
        return builder.run(OPERATION, op, [images], tensor, buffers, resident=lists, dataflow=True, refused=refused)

    return plan_of(source, spec, write)


def require_whole_numbers(plan: Plan) -> None:
    """Raises ArgumentError for float32 in tiles, which the real library untilizes through a 16-bit Dst.

    Source: tt-metal 0.81.1 (the program's compute config leaves fp32_dest_acc_en out).
    """
    for step in plan.steps:
        op = step.op if isinstance(step, Operation) and step.refused is None else None
        if isinstance(op, Upsample) and op.program is UpsampleProgram.TILES and op.source_format == FLOAT32:
            raise ArgumentError(
                "upsample: tiles of float32 come out cut to bfloat16 in the real library; give the tensor in "
                "ROW_MAJOR_LAYOUT, or in bfloat16"
            )


def _program(source: TensorSpec, scale: tuple[float, float]) -> UpsampleProgram | None:
    """The program that the library takes; None if it has none."""
    if source.layout is Layout.TILE:
        simple = _is_whole(scale) and not source.memory_config.is_sharded()
        return UpsampleProgram.TILES if simple else None
    if not _is_whole(scale) or source.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        return UpsampleProgram.PAGES
    return UpsampleProgram.SHARDS if source.memory_config.is_sharded() else UpsampleProgram.STICKS


def _is_whole(scale: tuple[float, float]) -> bool:
    return all(float(factor).is_integer() for factor in scale)


def require_shards(source: TensorSpec, place: MemoryConfig | None) -> None:
    """Raises DeviceError for shards of the result of an interleaved tensor, which the library looks at first."""
    if place is not None and place.is_sharded() and not source.memory_config.is_sharded():
        raise DeviceError(
            "Output memory config is sharded but input memory config is not sharded\n"
            "memory_config: leave it out, or shard the tensor first"
        )


def _shards(
    source: TensorSpec, place: MemoryConfig, scale: tuple[float, float], program: UpsampleProgram | None
) -> MemoryConfig:
    """The shards of the result: the source's, repeated; or the source's cores, which share all pixels."""
    require_shards(source, place)
    source_shards = source.shards
    if program is UpsampleProgram.SHARDS:
        wanted = place.shard_spec
        if wanted is None:
            raise DeviceError("bad optional access\nmemory_config: give it a ShardSpec, or leave it out")
        rows = int(source_shards.shape[0] * scale[0] * scale[1])
        return replace(place, shard_spec=wanted.changed(shape=(rows, source_shards.shape[1])))
    current, pixels = source.memory_config, prod(upsampled_shape(source.shape, scale)[:-1])
    rows = div_up(pixels, shard_counts(current.memory_layout, source_shards)[0])
    return replace(current, shard_spec=source_shards.changed(shape=(rows, source_shards.shape[1])))


def _refused(
    source: TensorSpec,
    result: TensorSpec,
    scale: tuple[float, float],
    program: UpsampleProgram | None,
    spec: DeviceSpec,
) -> str | None:
    if source.layout is Layout.TILE and source.shape != source.padded_shape:
        return "Tiled input must be tile-aligned (no padding difference)\ninput_tensor: give rows, or whole tiles"
    if program is None:
        layout = source.memory_config.memory_layout.name
        return (
            f"Unsupported upsample configuration:\n  Mode: nearest\n  Scales: {scale[0]:.6f} x {scale[1]:.6f}\n"
            f"  Layout: TILE\n  Memory: {layout}\ninput_tensor: give rows, or interleaved tiles and whole factors"
        )
    if program is UpsampleProgram.SHARDS:
        source_shards, result_shards = source.memory_config.shard_spec, result.memory_config.shard_spec
        if _stick_bytes(source, source) != _stick_bytes(result, source):
            return (
                "Input and output sticks should have same size\n"
                "memory_config: leave it out; sharded pixels stay on their cores"
            )
        if source_shards is None or result_shards is None:
            return "bad optional access\nmemory_config: leave it out; sharded pixels stay on their cores"
        if source_shards.num_cores() != result_shards.num_cores():
            return (
                f"Output tensor should have same number of cores {result_shards.num_cores()} as input tensor "
                f"{source_shards.num_cores()}\nmemory_config: leave it out; sharded pixels stay on their cores"
            )
        if in_dram(source):
            return f"{not_in_l1('upsample_shard_in', 'upsample_shard_input')}\ninput_tensor: move its shards to L1"
        page_bytes = round_up(_stick_bytes(source, source), spec.l1.alignment_bytes)
        names, bank_bytes = ("upsample_shard_in", "upsample_shard_input"), source.buffer(spec).bank_bytes
        for text in beyond_shards(names[0], page_bytes, source_shards.shape[0], names[1], bank_bytes):
            return f"{text}\ninput_tensor: give ROW_MAJOR shards, of columns that fill their cores"
    if program is UpsampleProgram.PAGES:
        read, written = source.buffer(spec).page_bytes, result.buffer(spec).page_bytes
        if read != written:
            return (
                f"Input and output page sizes must match for nearest upsample, got input_page_size={read} "
                f"output_page_size={written}\nmemory_config: leave it out, and move the result afterwards"
            )
    return None


def _stick_bytes(pixels: TensorSpec, source: TensorSpec) -> int:
    """Bytes of a core's part of a pixel; the library counts the columns of a BLOCK grid, for any orientation."""
    stick_bytes = row_bytes(pixels)
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED:
        return stick_bytes
    return stick_bytes // shards.grid.bounding_box().cols


def _lists(source: TensorSpec, scale: tuple[float, float]) -> TensorSpec:
    """The lists of sticks, a row for every core with pixels; for BLOCK shards, a copy for every channel core."""
    shards, cores, (batch, height, width, _) = source.shards, source.data_cores, source.shape
    words, orientation = interval_words(batch * height, width, int(scale[0]), shards.shape[0]), shards.orientation
    if source.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        used, box = cores.bounding_box().end, shards.grid.bounding_box()
        by_rows = orientation is ShardOrientation.ROW_MAJOR
        last = CoreCoord(box.end.x, used.y) if by_rows else CoreCoord(used.x, box.end.y)
        cores, orientation = CoreRangeSet(CoreRange(box.start, last)), ShardOrientation.COL_MAJOR
    place = MemoryConfig(
        TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1_SMALL, ShardSpec(cores, (1, words), orientation)
    )
    return TensorSpec((cores.num_cores(), words), UINT16, Layout.ROW_MAJOR, place)
