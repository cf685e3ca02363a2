"""One transposed convolution to run: sizes, place of the input, options. Names only; no tensor and no device."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Setting = bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A call of conv_transpose2d on random numbers, as a user would write it down."""

    name: str = "conv_transpose2d"  # What reports call it
    source: str = ""  # Where its figures come from
    batch_size: int = 1
    in_channels: int
    out_channels: int
    input_height: int
    input_width: int
    kernel_size: tuple[int, ...] = (2, 2)  # (rows, columns)
    stride: tuple[int, ...] = (1, 1)  # (rows, columns)
    padding: tuple[int, ...] = (0, 0)  # (rows, columns), or (top, bottom, left, right)
    output_padding: tuple[int, ...] = (0, 0)  # (rows, columns) added at the bottom and the right
    dilation: tuple[int, ...] = (1, 1)  # (rows, columns)
    groups: int = 1
    bias: bool = True
    mirror_kernel: bool = True  # The operation flips the kernel itself
    input_dtype: str = "bfloat16"
    input_layout: str = "ROW_MAJOR"  # "ROW_MAJOR" or "TILE"
    input_memory: str = "dram"  # "dram", "l1" (both interleaved) or "host"
    input_4d: bool = False  # The input has shape [N, H, W, C] instead of [1, 1, N*H*W, C]
    # Of the weight and bias tensors on the host; config.weights_dtype is what they are prepared as
    weights_dtype: str = "bfloat16"
    dtype: str | None = None  # Of the output; None is the input's
    # None, "l1_full", or "H:n" / "W:n" for n DRAM slices along an axis (0: as many as it takes)
    slice: str | None = None
    # Fields of Conv2dConfig by name; enumerations by their member's name, core_grid as "8x4" (columns by rows)
    config: Mapping[str, Setting] = field(default_factory=dict)
    # Fields of the compute kernel config by name; none at all passes None
    compute: Mapping[str, Setting] = field(default_factory=dict)
    seed: int = 0  # Of the random numbers
