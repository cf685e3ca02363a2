"""Sizes of a convolution, as the arguments that all functions of convolutions have."""

from typing import Any


def conv_sizes(height: Any, width: Any, ins: Any, outs: Any, *kernel: Any, batch: Any = 1) -> dict[str, Any]:
    """The image, its channels and those of the output, and perhaps rows and columns of the kernel."""
    image = {"batch_size": batch, "input_height": height, "input_width": width}
    return image | {"in_channels": ins, "out_channels": outs} | ({"kernel_size": kernel} if kernel else {})
