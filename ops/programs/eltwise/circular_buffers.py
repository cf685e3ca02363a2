"""The circular buffers of element-wise programs, in order of allocation.

Source: tt-metal 0.81.1, compared with recorded runs and with its planner.
"""

from typing import Final

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.numbers.formats import DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec

BUFFERING: Final = 2  # tiles of each buffer


def added_row_buffers(matrix: TensorSpec, row: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that adds a row to every row of an interleaved matrix.

    Two tiles each of the matrix, the row, the row spread over a tile (unless the matrix has one row only) and the sum,
    on all cores of the device.

    Args:
        matrix: The matrix.
        row: The row.
        spec: The device.
    """
    spread = (_buffer("spread_row", row.data_format, spec),) if matrix.shape[-2] > 1 else ()
    return (
        _buffer("matrix", matrix.data_format, spec),
        _buffer("row", row.data_format, spec),
        *spread,
        _buffer("sum", matrix.data_format, spec),
    )


def activation_buffers(tensor: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program of a function of every element: two tiles each of argument and result."""
    return (_buffer("argument", tensor.data_format, spec), _buffer("result", tensor.data_format, spec))


def _buffer(name: str, data_format: DataFormat, spec: DeviceSpec) -> CircularBuffer:
    """Tiles of a format on all cores of a device."""
    page_bytes = data_format.tile_bytes
    return CircularBuffer(
        name=name,
        size_bytes=BUFFERING * page_bytes,
        page_bytes=page_bytes,
        data_format=data_format,
        cores=first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows),
    )
