"""Which path a call takes: a matmul, in L1, or by way of DRAM. Checks and plans ask here alone (docs/planning.md)."""

from device.memory.memory_config import BufferType, TensorMemoryLayout
from ops.calls.convolution.arguments import ConvArguments, SliceType


def is_matmul(call: ConvArguments) -> bool:
    """Whether the call runs as a matmul: a plain 1x1 kernel, not WIDTH sharded."""
    pointwise = call.kernel_size == call.stride == call.dilation == (1, 1) and not any(call.padding)
    return pointwise and call.conv_config.shard_layout is not TensorMemoryLayout.WIDTH_SHARDED


def takes_l1_path(call: ConvArguments) -> bool:
    """Whether the call runs in one piece on an input in L1: asked for, or because the input is there."""
    if call.slice_config is None:
        return not call.input.on_host and call.input.spec.memory_config.buffer_type is not BufferType.DRAM
    return call.slice_config.slice_type is SliceType.L1_FULL or slices_skip_dram(call, call.slice_config.num_slices)


def slices_skip_dram(call: ConvArguments, slices: int) -> bool:
    """Whether so many slices, given or found for a given slice config, mean the L1 path instead."""
    return call.slice_config is not None and slices == 1 and call.rules.one_slice_skips_dram
