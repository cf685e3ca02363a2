"""ttnn.outer: the products of the elements of vectors, composed of other functions."""

from typing import Final

from device.errors import DeviceError
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT32
from ttsim.api.compositions import public
from ttsim.api.conversions import to_layout, to_memory_config
from ttsim.api.eltwise import combined
from ttsim.api.matmul import matmul
from ttsim.api.shape import unsqueeze
from ttsim.runtime.tensor import Tensor

BY_MATMUL: Final = (BFLOAT16, BFLOAT8_B)
FORMATS: Final = (*BY_MATMUL, FLOAT32, INT32, UINT32)


@public(
    "The products a[..., n] * b[..., m] of two vectors, as [..., n, m].", "outer(x, y)", "[[[2.0, 2.0], [4.0, 4.0]]]"
)
def outer(input_tensor_a: Tensor, input_tensor_b: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """A matmul of two vectors of bfloat16 or BFLOAT8_B; otherwise a product with broadcast axes."""
    pair = (input_tensor_a, input_tensor_b)
    names = " and ".join(f"DataType::{tensor.dtype.name}" for tensor in pair)
    if input_tensor_a.dtype is not input_tensor_b.dtype:
        raise DeviceError(f"ttnn.outer: inputs must have the same dtype, but got {names}\nouter: typecast one of them")
    if input_tensor_a.spec.data_format not in FORMATS:
        supported = ", ".join(data_format.name.upper() for data_format in FORMATS)
        raise DeviceError(
            f"ttnn.outer: unsupported dtype (got {names}); supported dtypes are {supported}\nouter: typecast both"
        )
    column, row = unsqueeze(_whole(input_tensor_a), -1), unsqueeze(_whole(input_tensor_b), -2)
    several = any(side != 1 for tensor in pair for side in tensor.shape[:-1])
    if several or input_tensor_a.spec.data_format not in BY_MATMUL:
        return combined("outer", "multiply", (column, row), memory_config=memory_config)
    return matmul(to_layout(column, Layout.TILE), to_layout(row, Layout.TILE), memory_config=memory_config)


def _whole(tensor: Tensor) -> Tensor:
    """A tensor whose shards have whole rows: in interleaved memory of its kind if its own have not."""
    place = tensor.memory_config()
    if place.memory_layout not in (TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.BLOCK_SHARDED):
        return tensor
    return to_memory_config(tensor, MemoryConfig(buffer_type=place.buffer_type))
