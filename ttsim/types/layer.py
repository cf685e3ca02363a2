"""One transposed convolution to run: sizes, place of the input, options. Names only; no tensor and no device."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Setting = bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A call of conv_transpose2d on random numbers, as a user would write it down.

    Attributes:
        name: What reports call it.
        source: Where its figures come from.
        batch_size: N.
        in_channels: C.
        out_channels: O.
        input_height: H.
        input_width: W.
        kernel_size: (rows, columns).
        stride: (rows, columns).
        padding: (rows, columns), or (top, bottom, left, right).
        output_padding: (rows, columns) added at the bottom and the right.
        dilation: (rows, columns).
        groups: Channel groups.
        bias: There is a bias.
        mirror_kernel: The operation flips the kernel itself.
        input_dtype: Of the input tensor.
        input_layout: "ROW_MAJOR" or "TILE".
        input_memory: "dram", "l1" (both interleaved) or "host".
        input_4d: The input has shape [N, H, W, C] instead of [1, 1, N*H*W, C].
        weights_dtype: Of the weight and bias tensors on the host; config.weights_dtype is what they are prepared as.
        dtype: Of the output; None is the input's.
        slice: None, "l1_full", or "H:n" / "W:n" for n DRAM slices along an axis (0: as many as it takes).
        config: Fields of Conv2dConfig by name; enumerations by their member's name, core_grid as "8x4"
            (columns by rows).
        compute: Fields of the compute kernel config by name; none at all passes None.
        seed: Of the random numbers.
    """

    name: str = "conv_transpose2d"
    source: str = ""
    batch_size: int = 1
    in_channels: int
    out_channels: int
    input_height: int
    input_width: int
    kernel_size: tuple[int, ...] = (2, 2)
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    output_padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    bias: bool = True
    mirror_kernel: bool = True
    input_dtype: str = "bfloat16"
    input_layout: str = "ROW_MAJOR"
    input_memory: str = "dram"
    input_4d: bool = False
    weights_dtype: str = "bfloat16"
    dtype: str | None = None
    slice: str | None = None
    config: Mapping[str, Setting] = field(default_factory=dict)
    compute: Mapping[str, Setting] = field(default_factory=dict)
    seed: int = 0
