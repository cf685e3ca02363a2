"""The circular buffers of element-wise programs, in order of allocation.

Source: tt-metal 0.81.1, compared with recorded runs and with its planner.
"""

from math import prod
from typing import Final

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.actions.pieces import tile_buffer
from ops.programs.eltwise.sharding import lies_in_place

BUFFERING: Final = 2  # tiles of each buffer


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
