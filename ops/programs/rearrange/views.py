"""What a tensor is whose buffer is seen in another shape.

Rules: ttnn 0.81.1 (Tensor::view), compared with recorded plans.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, ShardSpec
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import row_bytes


def seen_anew(source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec) -> TensorSpec:
    """The tensor as its buffer is seen anew; the library does not see the padding of rows in shards as padding.

    Raises:
        DeviceError: Rows with their padding, or the tiles of a vector with theirs, lie in parts in several shards.
    """
    shards, columns, row = source.memory_config.shard_spec, source.padded_shape[-1], (1, *shape)[-1]
    tiled = source.layout is Layout.TILE
    if shards is not None and shards.shape[1] != columns != row and (len(shape) == 1 or not tiled):
        refuse_other_width(source.padded_shape, shape, shards)
    if shards is None or tiled or columns == row:
        return TensorSpec(shape, source.data_format, source.layout, source.memory_config)
    held = replace(shards, shape=(shards.shape[0] * columns // row, row))
    made = TensorSpec(shape, source.data_format, source.layout, replace(source.memory_config, shard_spec=held))
    size, page = source.buffer(spec).size_bytes, row_bytes(made)
    if size % page:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page} must equal buffer size {size}. For "
            "interleaved-buffers, buffer size should be divisible by the page size\n"
            f"input_tensor: rows of {columns} elements with their padding do not become rows of {row}"
        )
    return made


def refuse_other_width(padded_shape: Sequence[int], shape: Sequence[int], shards: ShardSpec) -> NoReturn:
    """Raises DeviceError for rows of another length in shards that cut them."""
    raise DeviceError(
        "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
        f"last dimension. Input shape: Shape({list(padded_shape)}), New shape: Shape({list(shape)}), "
        f"Shard width: {shards.shape[1]}\ninput_tensor: give shards of whole rows"
    )
