"""The circular buffers of element-wise programs, in order of allocation.

Source: tt-metal 0.81.1, compared with recorded runs and with its planner.
"""

from dataclasses import replace
from math import prod

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING, rows_follow, tile_buffer
from ops.programs.eltwise.op import Activate, AddRow
from ops.programs.eltwise.refusals import operation_refusal


def is_uneven(tensor: TensorSpec) -> bool:
    """Whether a sharded tensor does not fill its shards; False for an interleaved one."""
    shards = tensor.memory_config.shard_spec
    if shards is None:
        return False
    rows, columns = tensor.matrix
    return rows % shards.shape[0] != 0 or columns % shards.shape[1] != 0


def rescaled(shards: ShardSpec, before: TensorSpec, padded_shape: tuple[int, ...]) -> ShardSpec:
    """The shards of a tensor, made as much higher and wider as another shape is; never less than a tile."""
    rows, columns = before.matrix
    high = max(shards.shape[0] * prod(padded_shape[:-1]) // rows, TILE)
    wide = max(shards.shape[1] * padded_shape[-1] // columns, TILE)
    return replace_shape(shards, (high, wide))


def replace_shape(shards: ShardSpec, shape: tuple[int, int]) -> ShardSpec:
    """The same cores with shards of another shape."""
    return ShardSpec(shards.grid, shape, shards.orientation)


def on_all_cores(padded_shape: tuple[int, ...], layout: TensorMemoryLayout, spec: DeviceSpec) -> ShardSpec:
    """Shards on all cores of a device, as the library deals a result that says its sharding but not its shards."""
    rows, columns = prod(padded_shape[:-1]), padded_shape[-1]
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    match layout:
        case TensorMemoryLayout.HEIGHT_SHARDED:
            shape = (round_up(div_up(rows, spec.grid.cores), TILE), columns)
        case TensorMemoryLayout.WIDTH_SHARDED:
            shape = (rows, round_up(div_up(columns, spec.grid.cores), TILE))
        case _:
            shape = (
                round_up(div_up(rows, spec.grid.rows), TILE),
                round_up(div_up(columns, spec.grid.cols), TILE),
            )
    return ShardSpec(cores, shape)


def with_shards(place: MemoryConfig, shards: ShardSpec) -> MemoryConfig:
    """A place with these shards."""
    return replace(place, shard_spec=shards)


def lies_in_place(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether a function of single elements works on the shards of both its tensors where they lie.

    Both are sharded in L1, in one way over the same cores, and fill their shards; rows must be whole pages of a tile's
    elements, and end where L1 is aligned.
    """
    before, after = read.memory_config, written.memory_config
    if before.memory_layout is not after.memory_layout:
        return False
    if before.shard_spec is None or after.shard_spec is None or is_uneven(read) or is_uneven(written):
        return False
    if BufferType.DRAM in (before.buffer_type, after.buffer_type) or before.shard_spec.grid != after.shard_spec.grid:
        return False
    if read.layout is Layout.TILE:
        return True
    return all(
        prod(one.shape) % TILE**2 == 0 and rows_follow(read, one.shape[1], spec)
        for one in (before.shard_spec, after.shard_spec)
    )


def added_row_buffers(matrix: TensorSpec, row: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that adds a row to every row of an interleaved matrix.

    Two tiles each of the matrix, the row, the row spread over a tile (unless the matrix has one row only) and the sum,
    on all cores of the device.
    """
    spread = (tiles_of("spread_row", BUFFERING, row.data_format, spec),) if matrix.shape[-2] > 1 else ()
    return (
        tiles_of("matrix", BUFFERING, matrix.data_format, spec),
        tiles_of("row", BUFFERING, row.data_format, spec),
        *spread,
        tiles_of("sum", BUFFERING, matrix.data_format, spec),
    )


def activation_buffers(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program of a function of every element: two tiles each of argument and result."""
    return (
        tiles_of("argument", BUFFERING, read.data_format, spec),
        tiles_of("result", BUFFERING, written.data_format, spec),
    )


def unary_buffers(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The same where argument and result may be shards that lie in place: then views of them."""
    if not lies_in_place(read.spec, written.spec, spec):
        return activation_buffers(read.spec, written.spec, spec)
    return (shard_view("argument", read, spec), shard_view("result", written, spec))


def shard_view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on all cores of a device that lies on the shards of a tensor, in tiles or in rows as long as tiles."""
    tiles = prod(tensor.spec.shards.shape) // TILE**2
    return tiles_of(name, tiles, tensor.spec.data_format, spec, view_of=tensor.name)


def tiles_of(
    name: str, tiles: int, data_format: DataFormat, spec: DeviceSpec, *, view_of: str | None = None
) -> CircularBuffer:
    """So many tiles of a format on all cores of a device; a view of a tensor's shards if it is named."""
    grid = spec.grid
    return tile_buffer(name, tiles, data_format, first_cores(grid.cores, grid.cols, grid.rows), view_of)


def with_row(
    builder: PlanBuilder, matrix: PlanTensor, row: PlanTensor, row_format: DataFormat, name: str
) -> PlanTensor:
    """A row added to every row of a matrix.

    Args:
        matrix: The matrix; it is released.
        row_format: What its elements are read as.
    """
    op = AddRow(data_format=matrix.spec.data_format, row_format=row_format)
    buffers = added_row_buffers(matrix.spec, row.spec, builder.device_spec)
    return _followed(builder, "BinaryNgDeviceOperation", op, [matrix, row], name, buffers)


def activated(
    builder: PlanBuilder, source: PlanTensor, activation: tuple[str, tuple[float, ...]], name: str
) -> PlanTensor:
    """A function of every element.

    Args:
        source: Its argument, which is released.
        activation: ttnn's name in lower case, and its parameters.
    """
    op = Activate(name=activation[0], parameters=activation[1], data_format=source.spec.data_format)
    buffers = activation_buffers(source.spec, source.spec, builder.device_spec)
    refused = operation_refusal(activation, source.spec.data_format)
    return _followed(builder, "UnaryDeviceOperation", op, [source], name, buffers, dataflow=True, refused=refused)


def _followed(
    builder: PlanBuilder,
    operation: str,
    op: AddRow | Activate,
    reads: list[PlanTensor],
    name: str,
    circular_buffers: tuple[CircularBuffer, ...],
    *,
    dataflow: bool = False,
    refused: str | None = None,
) -> PlanTensor:
    spec = reads[0].spec
    result = builder.run(
        operation,
        op,
        reads,
        output=PlanTensor(name, spec),
        circular_buffers=circular_buffers,
        dataflow=dataflow,
        key=(operation, spec, op),
        refused=refused,
    )
    builder.free(reads[0])
    return result
