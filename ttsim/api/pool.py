"""ttnn.max_pool2d and ttnn.upsample."""

from collections.abc import Sequence
from numbers import Real

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from ops.planners.pool import PoolArguments, plan_max_pool2d, require_numbers, validate
from ops.planners.upsample import plan_upsample, refuse_bilinear, require_whole_numbers
from ttsim.api.device_calls import cached_plan, carried_out, converted, operation, require_left_out, required_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Padding, Pair, four, two
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType


@operation
def max_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair = (1, 1),
    ceil_mode: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: object = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    deallocate_input: bool = False,
    reallocate_halo_output: bool = True,
    return_indices: bool = False,
    dtype: DataType = DataType.BFLOAT16,
    output_layout: Layout = Layout.ROW_MAJOR,
    compute_kernel_config: object = None,
    config_tensor_in_dram: bool = False,
) -> Tensor:
    """The largest number under every window of images, channel by channel: [1, 1, N*OH*OW, C].

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, bfloat16 or block floats, rows or tiles,
            interleaved or sharded.
        kernel_size: Rows and columns of a window.
        stride: From one window to the next, down and across.
        padding: (height, width) or (top, bottom, left, right), at most half a window.
        dilation: From one tap to the next, down and across.
        ceil_mode: Windows may end behind the padding.
        memory_config: Where the result goes; None for shards on the cores of the input.
        dram_slice_config: Not simulated; None for no slices.
        applied_shard_scheme: How an interleaved tensor is sharded; None lets the call choose.
        deallocate_input: The sharded input is released once it is read.
        reallocate_halo_output: What is read of it is moved up into the room that it leaves.
        return_indices: Not simulated.
        dtype: Of the result.
        compute_kernel_config: Accepted as in ttnn; the largest number is the same whatever it says.
        config_tensor_in_dram: What tells the programs where windows lie is kept in DRAM, not in L1_SMALL.
    """
    device = required_device("max_pool2d", input_tensor)
    call = PoolArguments(
        source=input_tensor.spec,
        batch=batch_size,
        image=(input_h, input_w),
        channels=channels,
        kernel=two(kernel_size),
        stride=two(stride),
        padding=four(padding),
        dilation=two(dilation),
        ceil_mode=ceil_mode,
        scheme=applied_shard_scheme,
        place=memory_config,
        deallocate_input=deallocate_input,
        reallocate_halo=reallocate_halo_output,
        data_format=dtype.format,
        tiled=output_layout is Layout.TILE,
        config_tensor_in_dram=config_tensor_in_dram,
        return_indices=return_indices,
    )
    validate(call)
    if device.strict:
        require_numbers(call)
    plan = cached_plan(plan_max_pool2d, device, call)
    require_left_out("max_pool2d", dram_slice_config=dram_slice_config)
    return carried_out("max_pool2d", plan, input_tensor, device)


@operation
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
        ArgumentError: What is not simulated is asked for, or (on a strict device) tiles of float32 are given.
    """
    if mode not in ("nearest", "bilinear"):
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
