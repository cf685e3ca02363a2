"""ttnn.max_pool2d, avg_pool2d and the adaptive pools."""

from dataclasses import replace
from math import nan

from device.errors import ArgumentError
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from ops.planners.adaptive_pool import adaptive_window
from ops.planners.global_pool import plan_global_pool
from ops.planners.pool import (
    PoolArguments,
    is_global,
    plan_pool2d,
    require_numbers,
    require_rank,
    require_volume,
    validate,
)
from ops.planners.pool_slices import choose_slices, plan_sliced_pool, reads_free_l1
from ops.programs.averages import Averaging
from ttsim.api.conversions import to_memory_config
from ttsim.api.device_calls import cached_plan, operation, required_device
from ttsim.api.shape import reshape
from ttsim.api.without_elements import is_empty, made
from ttsim.runtime.execution import free_l1_bytes, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Integer, Padding, Pair, four, two
from ttsim.runtime.types.configs import Conv2dSliceConfig, WormholeComputeKernelConfig
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
    dilation: Pair,
    ceil_mode: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    deallocate_input: bool = False,
    reallocate_halo_output: bool = True,
    return_indices: bool = False,
    dtype: DataType = DataType.BFLOAT16,
    output_layout: Layout = Layout.ROW_MAJOR,
    config_tensor_in_dram: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    """Max pooling: the maximum of every window of an image, for each channel.

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, bfloat16 or block floats, in TILE or ROW_MAJOR
            layout, interleaved or sharded.
        batch_size: Images, N.
        input_h: Rows of an image, H.
        input_w: Columns of an image, W.
        channels: Channels, C.
        kernel_size: Rows and columns of a window.
        stride: Distance between windows, down and across.
        padding: (height, width) or (top, bottom, left, right), at most half a window.
        dilation: Distance between taps of a window, down and across; as in ttnn, required.
        ceil_mode: Round the output size up: the last window may extend beyond the padding.
        memory_config: Memory of the result; None for shards on the cores of the input.
        dram_slice_config: Slices of images in DRAM; None for the fewest slices that fit L1.
        applied_shard_scheme: Sharding of an interleaved tensor; None lets the call choose.
        deallocate_input: Release the sharded input as soon as the halo operation has read it.
        reallocate_halo_output: Move the halo's output up in L1 after the input is released.
        return_indices: Return the index of each maximum in its image as well.
        dtype: Data type of the result.
        output_layout: Layout of the result.
        config_tensor_in_dram: Keep the index tensors, which locate windows, in DRAM instead of L1_SMALL.

    Returns:
        [1, 1, N*OH*OW, C], sharded unless ``memory_config`` says otherwise; with ``return_indices`` also the indices
        row * W + column, uint16, or uint32 for images of more than 65,535 pixels.

    Examples:
        >>> image = ttnn.from_numpy(np.arange(512).reshape(1, 1, 16, 32), ttnn.bfloat16, device=device)
        >>> pooled = ttnn.max_pool2d(image, 1, 4, 4, 32, (2, 2), (2, 2), (0, 0), (1, 1))
        >>> pooled.shape
        Shape([1, 1, 4, 32])
        >>> pooled.to_numpy()[0, 0, :, 0].tolist()
        [160.0, 224.0, 416.0, 480.0]
    """
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
    results = _pooled(call, input_tensor, dram_slice_config)
    return results if return_indices else results[0]


@operation
def avg_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Padding,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Integer | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    deallocate_input: bool = False,
    reallocate_halo_output: bool = True,
    dtype: DataType = DataType.BFLOAT16,
    output_layout: Layout = Layout.ROW_MAJOR,
    config_tensor_in_dram: bool = False,
) -> Tensor:
    """Average pooling: the average of every window of an image, for each channel.

    As on the device, sums are multiplied by the reciprocal of the divisor, truncated to bfloat16.

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, bfloat16 or block floats, in TILE or ROW_MAJOR
            layout, interleaved or sharded.
        batch_size: Images, N.
        input_h: Rows of an image, H.
        input_w: Columns of an image, W.
        channels: Channels, C.
        kernel_size: Rows and columns of a window.
        stride: Distance between windows, down and across.
        padding: (height, width) or (top, bottom, left, right), at most half a window.
        ceil_mode: Round the output size up: the last window may extend beyond the padding; that part is not counted.
        count_include_pad: Count the zeros of the padding in the divisor.
        divisor_override: Divisor of the sums; None for the number of elements of a window.
        memory_config: Memory of the result; None for shards on the cores of the input.
        dram_slice_config: Slices of images in DRAM; None for the fewest slices that fit L1.
        applied_shard_scheme: Sharding of an interleaved tensor; None lets the call choose.
        compute_kernel_config: None for HiFi4, with a 32-bit Dst for windows of more than a tile's rows.
        deallocate_input: Release the sharded input as soon as the halo operation has read it.
        reallocate_halo_output: Move the halo's output up in L1 after the input is released.
        dtype: Data type of the result.
        output_layout: Layout of the result.
        config_tensor_in_dram: Keep the index tensors, which locate windows, in DRAM instead of L1_SMALL.

    Returns:
        [1, 1, N*OH*OW, C], sharded unless ``memory_config`` says otherwise.

    Examples:
        >>> image = ttnn.from_numpy(np.arange(512).reshape(1, 1, 16, 32), ttnn.bfloat16, device=device)
        >>> pooled = ttnn.avg_pool2d(image, 1, 4, 4, 32, (2, 2), (2, 2), (0, 0))
        >>> pooled.to_numpy()[0, 0, :, 0].tolist()
        [80.0, 144.0, 336.0, 400.0]
    """
    call = PoolArguments(
        function="avg_pool2d",
        source=input_tensor.spec,
        batch=batch_size,
        image=(input_h, input_w),
        channels=channels,
        kernel=two(kernel_size),
        stride=two(stride),
        padding=four(padding),
        dilation=(1, 1),
        ceil_mode=ceil_mode,
        scheme=applied_shard_scheme,
        place=memory_config,
        deallocate_input=deallocate_input,
        reallocate_halo=reallocate_halo_output,
        data_format=dtype.format,
        tiled=output_layout is Layout.TILE,
        config_tensor_in_dram=config_tensor_in_dram,
        averaging=_averaging(compute_kernel_config, padding_counts=count_include_pad, divisor=divisor_override),
    )
    return _pooled(call, input_tensor, dram_slice_config)[0]


@operation
def adaptive_avg_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Pair,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    deallocate_input: bool = False,
    reallocate_output: bool = True,
) -> Tensor:
    """Average pooling to a given output size: `avg_pool2d` with the window, stride and padding that produce it.

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, as in `avg_pool2d`.
        batch_size: Images, N.
        input_h: Rows of an image, H.
        input_w: Columns of an image, W.
        channels: Channels, C.
        output_size: Rows and columns of the result, OH and OW.
        memory_config: Memory of the result; None for shards on the cores of the input.
        dram_slice_config: Slices of images in DRAM; None for the fewest slices that fit L1.
        applied_shard_scheme: Sharding of an interleaved tensor; None lets the call choose.
        compute_kernel_config: As in `avg_pool2d`.
        deallocate_input: Release the sharded input as soon as the halo operation has read it.
        reallocate_output: Move the halo's output up in L1 after the input is released.

    Returns:
        [1, 1, N*OH*OW, C], sharded unless ``memory_config`` says otherwise.

    Examples:
        >>> image = ttnn.ones((1, 1, 48, 32), layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
        >>> ttnn.adaptive_avg_pool2d(image, 1, 6, 8, 32, (3, 2)).shape
        Shape([1, 1, 6, 32])
    """
    window = adaptive_window((input_h, input_w), two(output_size))
    call = PoolArguments(
        function="adaptive_avg_pool2d",
        source=input_tensor.spec,
        batch=batch_size,
        image=(input_h, input_w),
        channels=channels,
        kernel=window.kernel,
        stride=window.stride,
        padding=window.padding,
        dilation=(1, 1),
        scheme=applied_shard_scheme,
        place=memory_config,
        deallocate_input=deallocate_input,
        reallocate_halo=reallocate_output,
        averaging=_averaging(compute_kernel_config, padding_counts=False),
    )
    return _pooled(call, input_tensor, dram_slice_config)[0]


@operation
def adaptive_max_pool2d(
    input_tensor: Tensor,
    batch_size: int,
    input_h: int,
    input_w: int,
    channels: int,
    output_size: Pair,
    *,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    applied_shard_scheme: TensorMemoryLayout | None = None,
    deallocate_input: bool = False,
    reallocate_output: bool = True,
) -> Tensor:
    """Max pooling to a given output size: `max_pool2d` with the window, stride and padding that produce it.

    Args:
        input_tensor: [1, 1, N*H*W, C] or [N, H, W, C] on the device, as in `max_pool2d`.
        batch_size: Images, N.
        input_h: Rows of an image, H.
        input_w: Columns of an image, W.
        channels: Channels, C.
        output_size: Rows and columns of the result, OH and OW.
        memory_config: Memory of the result; None for shards on the cores of the input.
        dram_slice_config: Slices of images in DRAM; None for the fewest slices that fit L1.
        applied_shard_scheme: Sharding of an interleaved tensor; None lets the call choose.
        deallocate_input: Release the sharded input as soon as the halo operation has read it.
        reallocate_output: Move the halo's output up in L1 after the input is released.

    Returns:
        [1, 1, N*OH*OW, C], sharded unless ``memory_config`` says otherwise.

    Examples:
        >>> image = ttnn.ones((1, 1, 48, 32), layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
        >>> ttnn.adaptive_max_pool2d(image, 1, 6, 8, 32, (3, 2)).shape
        Shape([1, 1, 6, 32])
    """
    window = adaptive_window((input_h, input_w), two(output_size))
    call = PoolArguments(
        function="adaptive_max_pool2d",
        source=input_tensor.spec,
        batch=batch_size,
        image=(input_h, input_w),
        channels=channels,
        kernel=window.kernel,
        stride=window.stride,
        padding=window.padding,
        dilation=(1, 1),
        scheme=applied_shard_scheme,
        place=memory_config,
        deallocate_input=deallocate_input,
        reallocate_halo=reallocate_output,
    )
    return _pooled(call, input_tensor, dram_slice_config)[0]


@operation
def global_avg_pool2d(
    input_tensor: Tensor, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None
) -> Tensor:
    """The average of each image, for each channel: `avg_pool2d` with a window of the image's size, in TILE layout.

    Args:
        input_tensor: [N, H, W, C], [H, W, C] or [H, W] on the device; a sharded tensor is copied to interleaved memory.
        memory_config: Memory of the result; None for that of the tensor.
        dtype: Checked as in `avg_pool2d`; the result keeps the data type of the tensor.

    Returns:
        [N, 1, 1, C] in TILE layout.

    Examples:
        >>> image = ttnn.full((1, 4, 4, 32), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> pooled = ttnn.global_avg_pool2d(image)
        >>> pooled.shape, pooled.to_numpy()[0, 0, 0, 0].item()
        (Shape([1, 1, 1, 32]), 0.5)
    """
    function, shape = "global_avg_pool2d", tuple(input_tensor.shape)
    required_device(function, input_tensor)
    if not 2 <= len(shape) <= 4:
        raise ArgumentError(f"global_avg_pool2d expects rank 2, 3, or 4 input, got rank {len(shape)}")
    batch, height, width, channels = {2: (1, *shape, 1), 3: (1, *shape), 4: shape}[len(shape)]
    if batch and is_empty(input_tensor):
        return made(input_tensor, (batch, 1, 1, channels), memory_config, value=nan, layout=Layout.TILE)
    source = input_tensor
    if source.is_sharded():
        place = source.memory_config()
        source = to_memory_config(source, MemoryConfig(TensorMemoryLayout.INTERLEAVED, place.buffer_type))
    call = PoolArguments(
        function=function,
        source=source.spec,
        batch=batch,
        image=(height, width),
        channels=channels,
        kernel=(height, width),
        stride=(1, 1),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
        place=memory_config,
        data_format=BFLOAT16 if dtype is None else dtype.format,
        tiled=True,
        averaging=Averaging(),
    )
    pooled = _pooled(call, source, None)[0]
    result = reshape(pooled, (batch, 1, 1, channels))
    del source  # a copy is released ahead of the averages
    return result


def _averaging(
    config: WormholeComputeKernelConfig | None, *, padding_counts: bool, divisor: int | None = None
) -> Averaging:
    if config is None:
        return Averaging(padding_counts=padding_counts, divisor=divisor)
    chosen = config.argument()
    return Averaging(
        padding_counts=padding_counts,
        divisor=divisor,
        fidelity_phases=chosen.fidelity_phases,
        fp32_dest=chosen.fp32_dest,
    )


def _pooled(
    call: PoolArguments, input_tensor: Tensor, dram_slice_config: Conv2dSliceConfig | None
) -> tuple[Tensor, ...]:
    """The results of a call: the pooled images, and the indices of the maxima if requested."""
    device = required_device(call.function, input_tensor)
    if len(input_tensor.shape) == 2 and not is_global(call):  # an image [H, W] of one channel
        require_rank(call)
        input_tensor = reshape(input_tensor, (1, *call.image, 1))
        call = replace(call, source=input_tensor.spec)
    reads = device.strict or device.values != "off"  # of another volume, nothing but the plan is known
    validate(call, strict=reads)
    if device.strict and not is_global(call):
        require_numbers(call)
    slices = None if dram_slice_config is None else dram_slice_config.argument()
    if reads_free_l1(call, slices):
        slices = choose_slices(call, slices, device.spec, free_l1_bytes=free_l1_bytes(device))
        sliced = slices.num_slices > 1
    else:
        sliced = False
    if sliced and slices is not None:
        plan = cached_plan(plan_sliced_pool, device, call, slices)
    else:
        plan = cached_plan(plan_global_pool if is_global(call) else plan_pool2d, device, call)
    if reads:
        require_volume(call, plan)
    require_allocated(input_tensor)
    with device.function(f"ttnn.{call.function}"):
        return tuple(run(plan, {"input": input_tensor}, device).values())
