"""ttnn.upsample."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Final

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.layouts import no_such_axis
from device.memory.memory_config import MemoryConfig
from ops.planners.bilinear import BilinearArguments, plan_bilinear, require_whole_tiles
from ops.planners.upsample import plan_upsample, require_shards, require_whole_numbers
from ttsim.api.device_calls import cached_plan, carried_out, converted, operation, required_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.configs import WormholeComputeKernelConfig

IMAGE_AXES: Final = 4


@operation
def upsample(
    input_tensor: Tensor,
    scale_factor: object,
    *,
    mode: object = "nearest",
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Upsamples images: output pixel (y, x) is input pixel (y / scale_y, x / scale_x), rounded down.

    Mode "bilinear" interpolates between four pixels, like torch without align_corners.

    Args:
        input_tensor: [N, H, W, C] on the device; for "bilinear" bfloat16, and C a multiple of 32.
        scale_factor: A positive number, or two numbers (scale_y, scale_x); integers for "bilinear". Output sizes are
            rounded down.
        mode: "nearest" or "bilinear".
        memory_config: Memory of the result; None for that of the tensor, with larger shards, or, for "bilinear" of an
            interleaved tensor, for shards on all cores.
        compute_kernel_config: Fidelity of "bilinear"; None for HiFi4. Dst has 16 bits.

    Returns:
        [N, H * scale_y, W * scale_x, C].

    Raises:
        ArgumentError: The device is strict, and the real library is wrong: float32 in TILE layout, or padded tiles with
            "bilinear".

    Examples:
        >>> image = ttnn.ones((1, 4, 4, 32), device=device)
        >>> ttnn.upsample(image, 2).shape
        Shape([1, 8, 8, 32])
        >>> slope = ttnn.from_numpy(np.arange(2 * 32).reshape(1, 1, 2, 32), ttnn.bfloat16, device=device)
        >>> ttnn.upsample(slope, (1, 2), mode="bilinear").to_numpy()[0, 0, :, 0].tolist()
        [0.0, 8.0, 24.0, 32.0]
    """
    rank = len(input_tensor.shape)
    if rank < IMAGE_AXES:
        raise DeviceError(f"{no_such_axis(rank)}\nupsample: give [N, H, W, C], not {rank} axes")
    if not isinstance(mode, str) or mode != "bilinear":
        require_shards(input_tensor.spec, memory_config)
    if not isinstance(mode, str) or mode not in ("nearest", "bilinear"):
        raise DeviceError(f"mode must be 'nearest' or 'bilinear'\nupsample: mode is {shown(mode)}; it is one of these")
    lost = "upsample expects an allocated device tensor as input"
    device = required_device("upsample", input_tensor, lost=lost)
    factors = _factors(scale_factor)
    if rank > IMAGE_AXES:
        raise ArgumentError(f"upsample: the tensor must be [N, H, W, C], not of rank {rank}")
    if mode == "bilinear":
        config = None if compute_kernel_config is None else compute_kernel_config.argument()
        chosen: dict[str, Any] = (
            {} if config is None else {"fidelity_phases": config.fidelity_phases, "fp32_dest": config.fp32_dest}
        )
        call = BilinearArguments(source=input_tensor.spec, scale=factors, place=memory_config, **chosen)
        plan = cached_plan(plan_bilinear, device, call)
        if device.strict:
            require_whole_tiles(call, plan)
        return carried_out("upsample", plan, input_tensor, device)
    strict = require_whole_numbers
    return converted("upsample", plan_upsample, input_tensor, factors, strict=strict, place=memory_config)


def _factors(scale_factor: object) -> tuple[float, float]:
    """Scale factors along y and x."""
    numbers = list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor, scale_factor]
    factors = [float(number) for number in numbers if isinstance(number, Real) and not isinstance(number, bool)]
    if not len(numbers) == len(factors) == 2:
        raise ArgumentTypeError(f"upsample: scale_factor must be a number or two of them, not {shown(scale_factor)}")
    for axis, factor in zip("hw", factors, strict=True):
        if not factor > 0:
            raise DeviceError(f"scale_factor_{axis} must be positive, got {factor:g}\nupsample: give a number above 0")
    return factors[0], factors[1]
