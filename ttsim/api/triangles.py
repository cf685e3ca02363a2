"""ttnn.tril and ttnn.triu, which multiply by a matrix of ones and zeros from the host."""

from typing import Final

import numpy as np

from device.errors import DeviceError
from device.memory.layouts import no_such_axis
from device.memory.memory_config import Layout, MemoryConfig
from ttsim.api.conversions import require_whole_tiles
from ttsim.api.eltwise import combined, device_of
from ttsim.runtime.calls import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Integer, checked
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.tensors import DataType

WHOLE: Final = (DataType.INT32, DataType.UINT32)  # of which the matrix is, too


@on_device
@checked
def tril(input_tensor: Tensor, *, diagonal: Integer = 0, memory_config: MemoryConfig | None = None) -> Tensor:
    """The lower triangle of every matrix, with zeros above the diagonal.

    A matrix of ones and zeros (int32 or uint32 for tensors of these types, else bfloat16) is written to the device and
    multiplied with the tensor, so infinity and NaN outside the triangle need not become 0. A tensor of rank 1 counts
    as one row.

    Args:
        input_tensor: [..., rows, columns] on the device; a ROW_MAJOR tensor must consist of whole tiles.
        diagonal: The last diagonal to keep: 0 for the main diagonal, positive above it, negative below it.
        memory_config: Memory of the matrix and of the result; None for that of ``input_tensor``.

    Returns:
        A tensor of the shape and data type of ``input_tensor``.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: A ROW_MAJOR tensor does not consist of whole tiles or has rank 1, or the matrices cannot be
            multiplied.
        OutOfMemoryError: The matrix or the result does not fit into the free part of its memory.

    Examples:
        >>> x = ttnn.ones((2, 2), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.tril(x).to_list()
        [[1.0, 0.0], [1.0, 1.0]]
    """
    return _triangle("tril", input_tensor, diagonal, memory_config)


@on_device
@checked
@described(like=tril)
def triu(input_tensor: Tensor, *, diagonal: Integer = 0, memory_config: MemoryConfig | None = None) -> Tensor:
    """The upper triangle of every matrix, with zeros below the diagonal.

    Args:
        diagonal: The first diagonal to keep: 0 for the main diagonal, positive above it, negative below it.

    Examples:
        >>> x = ttnn.ones((2, 2), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.triu(x, diagonal=1).to_list()
        [[0.0, 1.0], [0.0, 0.0]]
    """
    return _triangle("triu", input_tensor, diagonal, memory_config)


def _triangle(name: str, tensor: Tensor, diagonal: Integer, memory_config: MemoryConfig | None) -> Tensor:
    device = device_of({"input": tensor})
    if tensor.layout is Layout.ROW_MAJOR and len(tensor.shape) < 2:
        raise DeviceError(f"{no_such_axis(1)}\n{name}: a row needs TILE layout")
    require_whole_tiles("to_layout", tensor, memory_config)
    rows, columns = (1, 1, *tensor.shape)[-2:]
    lower = np.tri(rows, columns, diagonal if name == "tril" else diagonal - 1, np.float32)
    kept = np.broadcast_to(lower if name == "tril" else 1 - lower, (1, 1, *tensor.shape))[0, 0]
    place = memory_config or tensor.spec.memory_config
    dtype = tensor.dtype if tensor.dtype in WHOLE else DataType.BFLOAT16
    ones = Tensor(kept, dtype, device, Layout.TILE, place)
    result = combined(name, "multiply", (tensor, ones), memory_config=place)
    ones.deallocate()
    return result
