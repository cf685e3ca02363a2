"""Kernel stride folding: windows that do not overlap become channels, so that a 1x1 convolution is left.

Rule: tt-metal, compared with calls of the real library, version 0.81.1.
"""

from device.layouts import BufferType, Layout, TensorMemoryLayout
from ops.conv_transpose2d.arguments import Conv2dArguments


def folds(a: Conv2dArguments) -> bool:
    """Whether the real library folds: as the config says, or by itself where the kernel is the stride."""
    given = a.conv_config.enable_kernel_stride_folding
    if given is not None:
        return given and a.stride != (1, 1)
    if a.stride != a.kernel_size or a.stride == (1, 1) or a.dilation != (1, 1):
        return False
    top, bottom, left, right = a.padding
    if (a.input_height + top + bottom) % a.stride[0] or (a.input_width + left + right) % a.stride[1]:
        return False
    place = a.input.spec.memory_config
    in_dram = a.input.on_host or place.buffer_type is BufferType.DRAM
    rows_or_plain = a.input.spec.layout is Layout.ROW_MAJOR or not any(a.padding)
    return (in_dram and rows_or_plain) or (
        not a.input.on_host and place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    )
