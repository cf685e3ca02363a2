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
    """The maximum of every window of images, channel by channel.

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, bfloat16 or block floats, in TILE or ROW_MAJOR
            layout, interleaved or sharded.
        batch_size: Images, N.
        input_h: Rows of an image, H.
        input_w: Columns of an image, W.
        channels: Channels, C.
        kernel_size: Rows and columns of a window.
        stride: Distance from window to window, down and across.
        padding: (height, width) or (top, bottom, left, right), at most half a window.
        dilation: Distance from tap to tap, down and across.
        ceil_mode: Round the output size up: the last window may extend beyond the padding.
        memory_config: Memory of the result; None for shards on the cores of the input.
        dram_slice_config: Not simulated; None for no slices.
        applied_shard_scheme: How an interleaved tensor is sharded; None lets the call choose.
        deallocate_input: Release the sharded input as soon as the halo operation has read it.
        reallocate_halo_output: Move the halo's output up in L1 after the input is released.
        return_indices: Not simulated.
        dtype: Data type of the result.
        output_layout: Layout of the result.
        compute_kernel_config: Accepted as in ttnn; it does not change a maximum.
        config_tensor_in_dram: Keep the index tensors, which locate windows, in DRAM instead of L1_SMALL.

    Returns:
        [1, 1, N*OH*OW, C], sharded unless ``memory_config`` says otherwise.

    Examples:
        >>> image = ttnn.from_numpy(np.arange(512).reshape(1, 1, 16, 32), ttnn.bfloat16, device=device)
        >>> pooled = ttnn.max_pool2d(image, 1, 4, 4, 32, (2, 2), (2, 2), (0, 0))
        >>> pooled.shape
        Shape([1, 1, 4, 32])
        >>> pooled.to_numpy()[0, 0, :, 0].tolist()
        [160.0, 224.0, 416.0, 480.0]
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
