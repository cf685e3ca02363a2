"""Plans between a slice of a tensor's rows and shards. Rules: ttnn 0.81.1, compared with plans of the real library."""

from math import prod

from device.cores import CoreCoord, first_cores
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import DataFormat, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import in_dram
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.partial import SliceFromShards, SliceToShards, slice_buffers

RANK, UNSIGNED = 4, 1 << 32  # axes of a tensor that is cut into slices; the library counts in 32 bits


def plan_interleaved_to_sharded_partial(
    source: TensorSpec,
    grid: CoreCoord,
    shard_shape: tuple[int, int],
    slices: tuple[int, int],
    scheme: Scheme,
    orientation: ShardOrientation,
    spec: DeviceSpec,
    *,
    data_format: DataFormat | None = None,
) -> Plan:
    """Plan the sharded slice number ``slices[1]`` of ``slices[0]`` equal slices of the interleaved tensor "input".

    The shards are on the first cores of a grid at (0, 0), as many as the slice fills. Padding counts as data.
    """
    owner, (count, index) = "interleaved_to_sharded_partial", slices
    if count == 0 or scheme is Scheme.INTERLEAVED:
        raise NotSimulatedError(f"{owner}: the real library crashes without slices or a sharding scheme; give both")
    sides = _slice_matrix(source, count)
    place = shards_on(owner, sides, grid, shard_shape, scheme, orientation)
    padded = source.padded_shape
    if len(padded) < RANK - 1:
        raise DeviceError(f"{no_such_axis(2)}\n{owner}: give a tensor of {RANK} axes")
    shape = (1, 1, sides[0], *padded[RANK - 1 :])
    result = TensorSpec(shape, data_format or source.data_format, source.layout, place)
    _require_slices(owner, source, source, slices)
    if source.memory_config.is_sharded():
        raise DeviceError(f"Input tensor must be Interleaved\n{owner}: it is sharded")
    if grid.x > spec.grid.cols or grid.y > spec.grid.rows:
        raise DeviceError(
            "Grid size for sharding must be less than or equal to total grid available\n"
            f"{owner}: give at most {spec.grid.cols} columns and {spec.grid.rows} rows of cores"
        )
    if len(padded) != RANK:
        raise NotSimulatedError(f"{owner}: ttsim does not simulate slices of {len(padded)} axes; give a tensor of 4")
    op = SliceToShards(index * sides[0], padded, (source.data_format, result.data_format), shape)

    def write(builder: PlanBuilder, tensor: PlanTensor) -> PlanTensor:
        _leave_out_parts(builder, owner, sides[0])
        output = PlanTensor("output", result)
        buffers = slice_buffers(Conversion.INTERLEAVED_TO_SHARDED, tensor, output, spec)
        return builder.run("InterleavedToShardedPartialDeviceOperation", op, [tensor], output, buffers)

    return plan_of(source, spec, write)


def shards_on(
    owner: str,
    sides: tuple[int, int],
    grid: CoreCoord,
    shard_shape: tuple[int, int],
    scheme: Scheme,
    orientation: ShardOrientation,
) -> MemoryConfig:
    """Shards of a matrix in L1, on as many cores of a grid at (0, 0) as needed; raises DeviceError for too few."""
    if scheme is Scheme.INTERLEAVED:
        raise DeviceError(f"Unsupported sharding scheme\n{owner}: shard_scheme is HEIGHT_, WIDTH_ or BLOCK_SHARDED")
    if 0 in shard_shape:
        raise NotSimulatedError(f"{owner}: the real library crashes without rows and columns of a shard; give both")
    parts = [div_up(side, part) for side, part in zip(sides, shard_shape, strict=True)]
    needed = {Scheme.HEIGHT_SHARDED: parts[0], Scheme.WIDTH_SHARDED: parts[1]}.get(scheme, prod(parts))
    if 0 in (grid.x, grid.y):
        raise DeviceError(f"Start core must be within grid size\n{owner}: give a grid of at least one core")
    if needed > grid.x * grid.y:
        raise DeviceError(
            f"Target number of cores {needed} is greater than total number of available cores {grid.x * grid.y}\n"
            f"{owner}: give a larger grid or larger shards"
        )
    cores = first_cores(needed, grid.x, grid.y, row_wise=orientation is ShardOrientation.ROW_MAJOR)
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, shard_shape, orientation))


def plan_sharded_to_interleaved_partial(
    source: TensorSpec, target: TensorSpec, slices: tuple[int, int], spec: DeviceSpec
) -> Plan:
    """Plan that the tensor "input", in shards, becomes slice ``slices[1]`` of ``slices[0]`` of the tensor "target"."""
    owner, (count, index) = "sharded_to_interleaved_partial", slices
    if not source.memory_config.is_sharded():
        raise DeviceError(f"Input tensor must have a shard spec\n{owner}: input_tensor is interleaved")
    for name, number in zip(("num_slices", "slice_index"), slices, strict=True):
        if not 0 <= number < UNSIGNED:
            raise DeviceError(f"{name} must be in range [0, UINT32_MAX]\n{owner}: it is {number}")
    _require_slices(owner, source, target, slices)
    rows = source.matrix[0]
    formats = (source.data_format, target.data_format)
    op = SliceFromShards(index * rows, target.padded_shape, formats, source.padded_shape)

    def write(builder: PlanBuilder, tensor: PlanTensor, whole: PlanTensor) -> PlanTensor:
        _leave_out_parts(builder, owner, rows)
        if source.matrix != _slice_matrix(target, count):
            builder.leave_out_values(
                f"{owner}: ttsim does not simulate where a slice of another size than input_tensor lies; give a "
                f"cache_tensor with {count} times its rows"
            )
        pages = whole._replace(spec=target.changed(memory_config=DRAM_MEMORY_CONFIG))  # also of a target in shards
        buffers = slice_buffers(Conversion.SHARDED_TO_INTERLEAVED, tensor, pages, spec)
        name, refused = "ShardedToInterleavedPartialDeviceOperation", None
        if in_dram(source):
            refused = f"Only L1 buffers can have an associated circular buffer!\n{owner}: move the shards to L1"
        return builder.run(name, op, [tensor, whole], buffers=buffers, refused=refused)

    return plan_of({"input": source, "target": target}, spec, write)


def _slice_matrix(tensor: TensorSpec, count: int) -> tuple[int, int]:
    """Rows and columns of a slice, with padding."""
    *leading, width = tensor.padded_shape
    return prod(leading) // count, width


def _require_slices(owner: str, source: TensorSpec, cut: TensorSpec, slices: tuple[int, int]) -> None:
    """Raises DeviceError for a missing slice, a ROW_MAJOR tensor, and rows that are not a multiple of the slices."""
    count, index = slices
    if not 0 <= index < count:
        raise DeviceError(
            f"Slice index and num_slices don't match! Index = {index % UNSIGNED} num_slices = {count}\n"
            f"{owner}: slices count from 0"
        )
    if source.layout is not Layout.TILE:
        way = "I->S" if source is cut else "S->I"
        raise DeviceError(f"Currently, only tile layout is supported for partial {way}\n{owner}: give tiles")
    if cut.layout is not Layout.TILE:
        raise DeviceError(
            "Cache tensor layout must match input tensor layout, got Layout::ROW_MAJOR and Layout::TILE\n"
            f"{owner}: give a cache_tensor in TILE layout"
        )
    if prod(cut.padded_shape[:-1]) % count:
        raise DeviceError(f"Total height of a tensor must be divisible by num_slices!\n{owner}: give another number")


def _leave_out_parts(builder: PlanBuilder, owner: str, rows: int) -> None:
    """Leaves out the values of slices that begin within tiles, which the library misplaces."""
    if rows % TILE:
        builder.leave_out_values(f"{owner}: ttsim does not simulate slices of {rows} rows; give fewer, of whole tiles")
