"""ttnn.experimental: what of it a script may ask for."""

from collections.abc import Sequence

from device.errors import ArgumentError
from ttsim.api.shape import convert_to_chw, convert_to_hwc
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type
from ttsim.runtime.types.signatures import public

__all__ = ["conv3d", "convert_to_chw", "convert_to_hwc"]


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
    """Refuses: convolutions in three dimensions are not simulated as ttnn computes them.

    Raises ArgumentError always; where a stride or the groups are 0, with the real library's words.
    """
    require_type("conv3d", Tensor, input_tensor=input_tensor, weight_tensor=weight_tensor)
    if 0 in tuple(stride):
        raise ArgumentError(f"stride must be greater than 0, got {tuple(stride)}")
    if groups == 0:
        raise ArgumentError("groups must be greater than 0, got 0")
    raise ArgumentError(
        "conv3d: ttsim does not simulate it; ttsim.onednn.conv_transpose and its gradients work in three dimensions"
    )


__dir__ = public(globals())
