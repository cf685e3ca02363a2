"""ttnn.upsample."""

from collections.abc import Sequence
from numbers import Real

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import MemoryConfig
from ops.planners.upsample import plan_upsample, refuse_bilinear, require_whole_numbers
from ttsim.api.device_calls import carried_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.types.compute_config import WormholeComputeKernelConfig
from ttsim.types.signature import checked


@on_device
@checked
def upsample(
    input_tensor: Tensor,
    scale_factor: object,
    *,
    mode: object = "nearest",
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
) -> Tensor:
    """Every pixel several times, down and across; rows become more even by fractions of a pixel.

    Args:
        input_tensor: [N, H, W, C] on the device.
        scale_factor: How often: a positive number, or two of them, down and across. Sides are rounded down.
        mode: "nearest"; "bilinear" is not simulated.
        memory_config: Where the result goes; None for where the tensor is, with shards that grow.
        compute_kernel_config: Accepted as in ttnn, where only "bilinear" computes.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: What is not simulated is asked for, or (on a strict device) tiles of float32 are given.
        DeviceError: The library has no program for the tensor, or it is on the host.
        OutOfMemoryError: No room.
    """
    if mode not in ("nearest", "bilinear"):
        raise DeviceError(
            f"mode must be 'nearest' or 'bilinear'\nupsample: mode is {shown(mode)}; only 'nearest' is simulated"
        )
    if len(input_tensor.shape) != 4:
        raise ArgumentError(f"upsample: the tensor must be [N, H, W, C], not of rank {len(input_tensor.shape)}")
    device = required_device("upsample", input_tensor, lost="upsample expects an allocated device tensor as input")
    if mode == "bilinear":
        refuse_bilinear(input_tensor.spec, _factors(scale_factor), device.spec)
    plan = plan_upsample(input_tensor.spec, _factors(scale_factor), device.spec, place=memory_config)
    if device.strict:
        require_whole_numbers(plan)
    return carried_out("upsample", plan, input_tensor, device)


def _factors(given: object) -> tuple[float, float]:
    """How often, down and across."""
    both = list(given) if isinstance(given, Sequence) else [given, given]
    factors = [float(one) for one in both if isinstance(one, Real) and not isinstance(one, bool)]
    if not len(both) == len(factors) == 2:
        raise ArgumentTypeError(f"upsample: scale_factor must be a number or two of them, not {shown(given)}")
    for axis, factor in zip("hw", factors, strict=True):
        if not factor > 0:
            raise DeviceError(f"scale_factor_{axis} must be positive, got {factor:g}\nupsample: give a number above 0")
    return factors[0], factors[1]
