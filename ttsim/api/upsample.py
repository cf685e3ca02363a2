"""ttnn.upsample."""

from collections.abc import Sequence
from numbers import Real

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import MemoryConfig
from ops.planners.upsample import plan_upsample, refuse_bilinear, require_whole_numbers
from ttsim.api.device_calls import converted, operation, required_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import WormholeComputeKernelConfig


@operation
def upsample(
    input_tensor: Tensor,
    scale_factor: object,
    *,
    mode: object = "nearest",
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Nearest-neighbor upsampling: output pixel (y, x) is input pixel (y / scale down, x / scale across), rounded down.

    Args:
        input_tensor: [N, H, W, C] on the device.
        scale_factor: A positive number, or two of them, down and across. Output sizes are rounded down.
        mode: "nearest"; "bilinear" is not simulated.
        memory_config: Memory of the result; None for that of the tensor, with larger shards.
        compute_kernel_config: Accepted as in ttnn, where only "bilinear" computes.

    Returns:
        [N, H * scale down, W * scale across, C].

    Raises:
        ArgumentError: What is not simulated is asked for, or (on a strict device) tiles of float32 are given.

    Examples:
        >>> image = ttnn.ones((1, 4, 4, 32), device=device)
        >>> ttnn.upsample(image, 2).shape
        Shape([1, 8, 8, 32])
    """
    if not isinstance(mode, str) or mode not in ("nearest", "bilinear"):
        raise DeviceError(
            f"mode must be 'nearest' or 'bilinear'\nupsample: mode is {shown(mode)}; only 'nearest' is simulated"
        )
    if len(input_tensor.shape) != 4:
        raise ArgumentError(f"upsample: the tensor must be [N, H, W, C], not of rank {len(input_tensor.shape)}")
    lost = "upsample expects an allocated device tensor as input"
    device = required_device("upsample", input_tensor, lost=lost)
    factors = _factors(scale_factor)
    if mode == "bilinear":
        refuse_bilinear(input_tensor.spec, factors, device.spec)
    strict = require_whole_numbers
    return converted("upsample", plan_upsample, input_tensor, factors, strict=strict, place=memory_config)


def _factors(scale_factor: object) -> tuple[float, float]:
    """Scale factors down and across."""
    numbers = list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor, scale_factor]
    factors = [float(number) for number in numbers if isinstance(number, Real) and not isinstance(number, bool)]
    if not len(numbers) == len(factors) == 2:
        raise ArgumentTypeError(f"upsample: scale_factor must be a number or two of them, not {shown(scale_factor)}")
    for axis, factor in zip("hw", factors, strict=True):
        if not factor > 0:
            raise DeviceError(f"scale_factor_{axis} must be positive, got {factor:g}\nupsample: give a number above 0")
    return factors[0], factors[1]
