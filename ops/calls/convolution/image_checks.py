"""What the DRAM path asks of an input before it is cut into slices, in the order the real library looks.

The input is made an image [N, H, W, C] without padding, and only then has to be in DRAM and interleaved. So the shards
of an input that can not be seen as such an image are refused first, with texts of their own.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, ShardSpec
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import image_shape
from ops.programs.movement.reshape import is_view

WAY_OUT = "put input_tensor in DRAM, or leave dram_slice_config out"


def image_refusals(call: ConvArguments) -> Iterator[str]:
    """Why an input on the device can not be cut into slices."""
    spec = call.input.spec
    config = spec.memory_config
    text = view_refusal(spec, image_shape(call))
    if text is not None:
        yield text
    turned = (
        spec.data_format.is_block and spec.volume == prod(image_shape(call)) and not is_view(spec, image_shape(call))
    )
    if turned and config.is_sharded() and config.buffer_type is not BufferType.L1:
        yield (
            "Input tensor must be in L1\n"
            f"input_tensor: its {spec.data_format} tiles are {config.memory_layout.name} in DRAM, and only shards in "
            "L1 can be made an image; use DRAM_MEMORY_CONFIG"
        )
    if config.buffer_type is not BufferType.DRAM:
        yield (
            "Conv DRAM expects the input tensor to be in DRAM.\n"
            f"dram_slice_config: slices are read from DRAM, but input_tensor is in {config.buffer_type.name}; {WAY_OUT}"
        )
    if config.is_sharded():
        yield (
            "Input Tensor to Conv DRAM should be in Interleaved Memory Layout\n"
            f"input_tensor: it is {config.memory_layout.name} in DRAM; use DRAM_MEMORY_CONFIG"
        )


def view_refusal(spec: TensorSpec, shape: tuple[int, ...]) -> str | None:
    """Why rows in shards that are padded across can not be seen under an unpadded shape of the same channels.

    Only a shard as wide as the tensor may lose its padding. It then counts as so many narrower rows, which must still
    be what its sharding asks for, and fill the buffer.

    Args:
        shape: The shape, of the same volume.
    """
    shards, (rows, cols) = spec.memory_config.shard_spec, spec.matrix
    if shards is None or spec.layout is Layout.TILE or spec.shape[-1] != shape[-1] or cols == shape[-1]:
        return None
    if prod(shape) != spec.volume:
        return None
    ours = (
        f"input_tensor: its rows of {shape[-1]} channels are padded to {cols} in shards of {list(shards.shape)}, which "
        f"slices can not be cut from; {WAY_OUT}"
    )
    if shards.shape[1] != cols:
        return (
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            f"last dimension. Input shape: Shape({list(spec.padded_shape)}), New shape: Shape({list(shape)}), "
            f"Shard width: {shards.shape[1]}\n{ours}"
        )
    narrow = ShardSpec(shards.grid, (prod(shards.shape) // shape[-1], shape[-1]), shards.orientation)
    try:
        TensorSpec(shape, spec.data_format, spec.layout, replace(spec.memory_config, shard_spec=narrow), shape)
    except DeviceError as error:
        return f"{str(error).splitlines()[0]}\n{ours}"
    element_bytes = spec.data_format.element_bytes or 0
    if rows * cols % shape[-1]:
        return (
            f"For valid non-interleaved buffers page size {shape[-1] * element_bytes} must equal buffer size "
            f"{rows * cols * element_bytes}. For interleaved-buffers, buffer size should be divisible by the page size"
            f"\n{ours}"
        )
    return None
