"""The circular buffers of element-wise programs that a graph capture shows, in order of allocation.

Source: tt-metal 0.81.1 (binary_ng), compared with recorded runs. Operations on one tensor show none.
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
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)

    def buffer(name: str, data_format: DataFormat) -> CircularBuffer:
        page_bytes = data_format.tile_bytes
        return CircularBuffer(
            name=name,
            size_bytes=BUFFERING * page_bytes,
            page_bytes=page_bytes,
            data_format=data_format,
            cores=cores,
        )

    spread = (buffer("spread_row", row.data_format),) if matrix.shape[-2] > 1 else ()
    return (
        buffer("matrix", matrix.data_format),
        buffer("row", row.data_format),
        *spread,
        buffer("sum", matrix.data_format),
    )
