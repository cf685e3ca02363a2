"""ttnn's cumulative sums and products, fast_reduce_nc and intimg."""

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from ops.planners.accumulation import (
    AccumulateArguments,
    ImagesArguments,
    plan_accumulation,
    plan_added_images,
    plan_integral_image,
    require_all_channels,
)
from ttsim.api.copies import assign
from ttsim.api.device_calls import (
    cached_plan,
    carried_out,
    converted,
    format_of,
    integers_of,
    operation,
    operation_as,
    required_device,
)
from ttsim.api.without_elements import is_empty
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer
from ttsim.runtime.types.configs import WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType


@operation
def cumsum(
    input: Tensor,
    dim: object,
    *,
    dtype: DataType | None = None,
    reverse_order: bool = False,
    out: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
    disable_compensated_sum: bool = False,
) -> Tensor:
    """The cumulative sum along an axis.

    Args:
        input: An interleaved tensor on the device, in TILE layout.
        dim: The axis; negative numbers count from the last.
        dtype: Data type that the tensor is cast to first.
        reverse_order: Accumulate from the end of the axis.
        out: A tensor of the same shape on the device that receives the result's buffer; None for none.
        disable_compensated_sum: Add float32 values without Kahan's compensation of rounding errors.

    Returns:
        A tensor of the same shape.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0, 3.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.cumsum(tensor, -1).to_list()
        [[1.0, 3.0, 6.0]]
    """
    call = AccumulateArguments(
        name="cumsum",
        axis=required_integer("cumsum", "dim", dim),
        multiplies=False,
        backwards=reverse_order,
        compensates=not disable_compensated_sum,
        data_format=format_of(dtype),
        place=memory_config,
        out_shape=None if out is None else tuple(out.shape),
    )
    return _scanned(input, call, out)


@operation
def cumprod(
    input_tensor: Tensor,
    dim: object,
    *,
    dtype: DataType | None = None,
    reverse_order: bool = False,
    out: Tensor | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """The cumulative product along an axis.

    Args:
        input_tensor: An interleaved tensor on the device, in TILE layout.
        dim: The axis; negative numbers count from the last.
        dtype: Data type that the tensor is cast to first.
        reverse_order: Accumulate from the end of the axis.
        out: A tensor of the same shape, which takes over the buffer of the result; None creates a new tensor.

    Returns:
        A tensor of the same shape.

    Raises:
        ArgumentError: The device is strict, and the data type or layout of ``out`` differs from the result's; the
            real library would not change them.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0, 3.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.cumprod(tensor, -1).to_list()
        [[1.0, 2.0, 6.0]]
    """
    call = AccumulateArguments(
        name="cumprod",
        axis=required_integer("cumprod", "dim", dim),
        multiplies=True,
        backwards=reverse_order,
        data_format=format_of(dtype),
        place=memory_config,
        out_shape=None if out is None else tuple(out.shape),
    )
    return _scanned(input_tensor, call, out)


def _scanned(tensor: Tensor, call: AccumulateArguments, out: Tensor | None) -> Tensor:
    device = tensor.device()
    if out is not None and device is not None and out.device() is None:
        raise DeviceError(
            f"Preallocated output tensor must be on device\n{call.name}: move out to the device, or leave it out"
        )
    if out is not None and tensor.shape == out.shape and is_empty(tensor):
        return out
    if out is not None and not tensor.shape and not out.shape:  # a number, which has no axis
        return assign(tensor, out)
    of_result = (call.data_format or tensor.spec.data_format, Layout.TILE)
    if out is not None and device is not None and device.strict and (out.spec.data_format, out.layout) != of_result:
        raise ArgumentError(
            f"{call.name}: out is {out.spec.data_format} in {out.layout.name}, and the real library leaves it so while "
            f"its buffer becomes that of {of_result[0]} in TILE; give such a tensor, or leave it out"
        )
    result = converted(call.name, plan_accumulation, tensor, call)
    if out is not None:
        out.take_buffer(result)
    return result


@operation_as("ttnn.experimental.")
def fast_reduce_nc(
    input: Tensor,
    *,
    dims: object = (),
    output: Tensor | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """The sum along axes before the last two; reduced axes keep length 1.

    Args:
        input: A tensor on the device, in TILE layout.
        dims: The axes, counted from the first.
        output: A tensor that receives the sum and is returned; ``memory_config`` then has no effect.
        memory_config: Memory of the result.
        compute_kernel_config: None for HiFi4 and a 16-bit Dst.
        sub_core_grids: Cores that may be used; None for all.

    Returns:
        The sum; its last two sides are rounded up to whole tiles.

    Examples:
        >>> images = ttnn.ones((3, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.fast_reduce_nc(images, dims=[0]).to_numpy()[0, 0, 0, 0].item()
        3.0
    """
    axes = integers_of("fast_reduce_nc: dims", dims)
    fp32_dest = compute_kernel_config is not None and compute_kernel_config.fp32_dest_acc_en
    call = ImagesArguments(axes=axes, place=memory_config, fp32_dest=fp32_dest, cores=sub_core_grids)
    return converted("experimental.fast_reduce_nc", plan_added_images, input, call, target=output)


@operation_as("ttnn.experimental.")
def intimg(input_tensor: Tensor) -> Tensor:
    """Integral images: the cumulative sum along rows and columns, for each channel.

    The numbers were never compared with recordings of the real kernels.

    Args:
        input_tensor: [1, W, H, C] on the device, bfloat16 or float32, in TILE layout, with 225 to 256 channels: the
            program runs one core for each of eight tiles of channels.

    Returns:
        A tensor of the same shape, in the memory of ``input_tensor``.

    Raises:
        ArgumentError: The device is strict, and the real library computes wrong sums for this number of channels.

    Examples:
        >>> image = ttnn.ones((1, 2, 3, 256), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.intimg(image).to_numpy()[0, :, :, 0].tolist()
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    """
    device = required_device("intimg", input_tensor)
    plan = cached_plan(plan_integral_image, device, input_tensor.spec)
    if device.strict:
        require_all_channels(input_tensor.spec)
    return carried_out("experimental.intimg", plan, input_tensor, device)
