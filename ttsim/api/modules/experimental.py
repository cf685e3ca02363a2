"""ttnn.experimental: what of it a script may ask for."""

from collections.abc import Sequence

from device.errors import ArgumentError, NotSimulatedError
from ttsim.api.accumulation import fast_reduce_nc
from ttsim.api.heads import (
    create_qkv_heads,
    nlp_concat_heads,
    nlp_create_qkv_heads,
    nlp_create_qkv_heads_segformer,
    nlp_create_qkv_heads_vit,
)
from ttsim.api.shape import convert_to_chw, convert_to_hwc
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type
from ttsim.runtime.types.signatures import public

__all__ = [
    "conv3d",
    "convert_to_chw",
    "convert_to_hwc",
    "create_qkv_heads",
    "fast_reduce_nc",
    "nlp_concat_heads",
    "nlp_create_qkv_heads",
    "nlp_create_qkv_heads_segformer",
    "nlp_create_qkv_heads_vit",
]


def conv3d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Device,
    bias_tensor: Tensor | None = None,
    dtype: object = None,
    output_channels: int,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    groups: int = 1,
    padding_mode: str = "zeros",
    config: object = None,
    memory_config: object = None,
    compute_kernel_config: object = None,
) -> Tensor:
    """Refuses every call: three-dimensional convolutions of ttnn are not simulated.

    Args:
        input_tensor: [N, D, H, W, C].
        weight_tensor: The prepared weights.
        device: The device.
        bias_tensor: The bias.
        dtype: Data type of the output.
        output_channels: Channels of the output.
        kernel_size: Sides of the kernel.
        stride: Stride along the three axes.
        padding: Zeros around the image.
        dilation: Distance between taps.
        groups: Groups of channels.
        padding_mode: What lies outside the image.
        config: Blocks.
        memory_config: Memory of the output.
        compute_kernel_config: Fidelity and accumulators.

    Returns:
        Nothing.

    Raises:
        ArgumentTypeError: A tensor is of the wrong type.
        ArgumentError: Always; for a stride or groups of 0, with the real library's text.

    Examples:
        >>> tensor = ttnn.zeros((1, 4, 8, 8, 32))
        >>> try:
        ...     ttnn.experimental.conv3d(
        ...         input_tensor=tensor, weight_tensor=tensor, device=device, output_channels=32, kernel_size=(3, 3, 3))
        ... except ttnn.ArgumentError as error:
        ...     print(error)
        conv3d: ttsim does not simulate it; ...
    """
    require_type("conv3d", Tensor, input_tensor=input_tensor, weight_tensor=weight_tensor)
    if 0 in tuple(stride):
        raise ArgumentError(f"stride must be greater than 0, got {tuple(stride)}")
    if groups == 0:
        raise ArgumentError("groups must be greater than 0, got 0")
    raise NotSimulatedError(
        "conv3d: ttsim does not simulate it; ttsim.onednn.conv_transpose and its gradients work in three dimensions"
    )


__dir__ = public(globals())
