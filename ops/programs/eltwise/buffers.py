"""The circular buffers of element-wise programs, in order of allocation (tt-metal 0.81.1, compared with recordings)."""

from math import prod

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardSpec, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING, is_uneven, rows_follow, tile_buffer
from ops.programs.eltwise.op import Activate, AddRow
from ops.programs.eltwise.refusals import operation_refusal


def rescaled(shards: ShardSpec, before: TensorSpec, padded_shape: tuple[int, ...]) -> ShardSpec:
    """The shards of a tensor, scaled like the tensor's shape to another shape; at least a tile."""
    rows, columns = before.matrix
    high = max(shards.shape[0] * prod(padded_shape[:-1]) // rows, TILE)
    wide = max(shards.shape[1] * padded_shape[-1] // columns, TILE)
    return ShardSpec(shards.grid, (high, wide), shards.orientation)


def on_all_cores(padded_shape: tuple[int, ...], layout: TensorMemoryLayout, spec: DeviceSpec) -> ShardSpec:
    """Shards on all cores of a device, as the library chooses them for a result with a sharding but no shards."""
    grid, rows, columns = spec.grid, prod(padded_shape[:-1]), padded_shape[-1]
    by_blocks = layout is TensorMemoryLayout.BLOCK_SHARDED
    if layout is not TensorMemoryLayout.WIDTH_SHARDED:
        rows = round_up(div_up(rows, grid.rows if by_blocks else grid.cores), TILE)
    if layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        columns = round_up(div_up(columns, grid.cols if by_blocks else grid.cores), TILE)
    return ShardSpec(first_cores(grid.cores, grid.cols, grid.rows), (rows, columns))


def lies_in_place(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether an element-wise function works on the shards of both its tensors in place.

    Both are sharded in L1, in the same way over the same cores, and fill their shards; rows must be whole pages of a
    tile's elements, and end where L1 is aligned.
    """
    before, after = read.memory_config, written.memory_config
    in_dram = BufferType.DRAM in (before.buffer_type, after.buffer_type)
    if in_dram or before.memory_layout is not after.memory_layout or is_uneven(read) or is_uneven(written):
        return False
    shards = [place.shard_spec for place in (before, after) if place.shard_spec is not None]
    if len(shards) < 2 or shards[0].grid != shards[1].grid:
        return False
    return read.layout is Layout.TILE or all(
        prod(part.shape) % TILE**2 == 0 and rows_follow(read, part.shape[1], spec) for part in shards
    )


def shard_view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on all cores of a device that lies on the shards of a tensor, in tiles or in rows as long as tiles."""
    tiles = prod(tensor.spec.shards.shape) // TILE**2
    return tiles_of(name, tiles, tensor.spec.data_format, spec, view_of=tensor.name)


def tiles_of(
    name: str, tiles: int, data_format: DataFormat, spec: DeviceSpec, *, view_of: str | None = None
) -> CircularBuffer:
    """A number of tiles of a format on all cores of a device; a view of a tensor's shards if the tensor is named."""
    grid = spec.grid
    return tile_buffer(name, tiles, data_format, first_cores(grid.cores, grid.cols, grid.rows), view_of)


def unary_buffers(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of a function of every element: two tiles of argument and result, or views where they lie."""
    ends = {"argument": read, "result": written}
    if lies_in_place(read.spec, written.spec, spec):
        return tuple(shard_view(name, tensor, spec) for name, tensor in ends.items())
    return tuple(tiles_of(name, BUFFERING, tensor.spec.data_format, spec) for name, tensor in ends.items())


def with_row(
    builder: PlanBuilder, matrix: PlanTensor, row: PlanTensor, row_format: DataFormat, name: str
) -> PlanTensor:
    """A row, read as `row_format`, added to every row of an interleaved matrix, which is released.

    The program has two tiles each of the matrix, the row, the row spread over a tile (unless the matrix has one row
    only) and the sum, on all cores of the device.
    """
    spread = ("spread_row",) if matrix.spec.shape[-2] > 1 else ()
    result = builder.run(
        "BinaryNgDeviceOperation",
        AddRow(data_format=matrix.spec.data_format, row_format=row_format),
        [matrix, row],
        PlanTensor(name, matrix.spec),
        tuple(
            tiles_of(role, BUFFERING, (row if "row" in role else matrix).spec.data_format, builder.device_spec)
            for role in ("matrix", "row", *spread, "sum")
        ),
    )
    builder.free(matrix)
    return result


def activated(
    builder: PlanBuilder, source: PlanTensor, activation: tuple[str, tuple[float, ...]], name: str
) -> PlanTensor:
    """An activation (ttnn's name in lower case, and its parameters) of every element of a tensor, which is released."""
    result, data_format = PlanTensor(name, source.spec), source.spec.data_format
    builder.run(
        "UnaryDeviceOperation",
        Activate(name=activation[0], parameters=activation[1], data_format=data_format),
        [source],
        result,
        tuple(tiles_of(role, BUFFERING, data_format, builder.device_spec) for role in ("argument", "result")),
        dataflow=True,
        refused=operation_refusal(activation, data_format),
    )
    builder.free(source)
    return result
