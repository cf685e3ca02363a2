"""ttnn's functions that create tensors, and those that return a property of a tensor or a data type."""

from collections.abc import Sequence
from numbers import Real
from typing import TypeAlias

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import Array
from ops.planners.eltwise import plan_unary
from ops.planners.rand import plan_rand
from ops.programs.eltwise.op import FILL
from ttsim.runtime.device import Device
from ttsim.runtime.execution import locked_on, require_allocated, run
from ttsim.runtime.storage import StorageType
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import checked_as, require_type, require_type_or_none
from ttsim.runtime.types.tensors import DataType

Place: TypeAlias = tuple[DataType | None, Layout | None, Device | None, MemoryConfig | None]


def full(
    shape: Sequence[int],
    fill_value: float,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of one number, in bfloat16, in ROW_MAJOR layout and in DRAM by default.

    Raises DeviceError for block floats in row-major layout, or when there is no room.
    """
    require_type("full", Real, fill_value=fill_value)
    values = np.broadcast_to(np.float64(fill_value), _sides("full", shape))
    return _filled_tensor("full", values, (dtype, layout, device, memory_config))


def zeros(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of zeros; the arguments are those of `full`."""
    return full(shape, 0.0, dtype, layout, device, memory_config)


def ones(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of ones; the arguments are those of `full`."""
    return full(shape, 1.0, dtype, layout, device, memory_config)


def empty(
    shape: Sequence[int],
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.ROW_MAJOR,
    device: Device | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
) -> Tensor:
    """A tensor whose numbers do not matter; they are zero. The arguments are those of `full`."""
    return full(shape, 0.0, dtype, layout, device, memory_config)


def full_like(
    tensor: Tensor,
    fill_value: float,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of one number, with the shape of another, and its data type, layout and place by default.

    For tiles of floats on the device that stay what they are, it is a device operation; bfloat16 and block floats get
    the number cut to bfloat16. Other tensors are made on the host. Errors are those of `full`.
    """
    return _filled("full_like", tensor, fill_value, (dtype, layout, device, memory_config))


def zeros_like(
    tensor: Tensor,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Zeros, with the shape of another tensor; the arguments are those of `full_like`."""
    return _filled("zeros_like", tensor, 0.0, (dtype, layout, device, memory_config))


def ones_like(
    tensor: Tensor,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Ones, with the shape of another tensor; the arguments are those of `full_like`."""
    return _filled("ones_like", tensor, 1.0, (dtype, layout, device, memory_config))


def empty_like(
    tensor: Tensor,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor whose numbers do not matter, with the shape of another; the arguments are those of `full_like`."""
    return _filled("empty_like", tensor, 0.0, (dtype, layout, device, memory_config), on_host=True)


def arange(
    start: int = 0,
    end: int | None = None,
    step: int = 1,
    dtype: DataType = DataType.BFLOAT16,
    device: Device | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    layout: Layout = Layout.ROW_MAJOR,
) -> Tensor:
    """Numbers from ``start`` up to ``end``, which is left out, each by ``step`` above the one before.

    Without an ``end``, ``start`` is the end, and the first number is 0. Raises ArgumentError where ``step`` is zero.
    """
    require_type("arange", int, start=start, step=step)
    require_type_or_none("arange", int, end=end)
    if not step:
        raise ArgumentError("arange: step must not be 0")
    values = np.arange(start, step=step) if end is None else np.arange(start, end, step)
    return _filled_tensor("arange", values.astype(np.float64), (dtype, layout, device, memory_config))


def rand(
    shape: Sequence[int],
    device: Device,
    *,
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.TILE,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """Evenly distributed numbers from ``low`` up to ``high``, which is left out.

    The distribution is the real library's, the numbers are not. The same seed gives the same numbers; for the seed 0
    the real library takes one of its own.
    """
    require_type("rand", Device, device=device)
    require_type("rand", int, seed=seed)
    require_type("rand", DataType, dtype=dtype)
    require_type("rand", Layout, layout=layout)
    require_type("rand", MemoryConfig, memory_config=memory_config)
    tensor_spec = TensorSpec(_sides("rand", shape), dtype.format, layout, memory_config)

    def call() -> Tensor:
        plan = plan_rand(tensor_spec, device.spec, low=low, high=high, seed=seed)
        with device.function("ttnn.rand"):
            return run(plan, {}, device)["output"]

    return locked_on(device, call)


def _filled(function: str, tensor: Tensor, fill_value: float, place: Place, *, on_host: bool = False) -> Tensor:
    """A tensor of one number in the shape of another tensor, by the function of that name; on the host on request."""
    dtype, layout, device, memory_config = place
    require_type(function, Tensor, tensor=tensor)
    require_type(function, Real, fill_value=fill_value)
    require_type_or_none(function, MemoryConfig, memory_config=memory_config)
    home = tensor.device()
    stays = layout in (None, tensor.layout) and dtype in (None, tensor.dtype) and device in (None, home)
    if on_host or home is None or not stays or tensor.layout is not Layout.TILE or not tensor.dtype.format.is_float:
        config = memory_config or (None if home is None else tensor.spec.memory_config)
        return full(tensor.shape, fill_value, dtype or tensor.dtype, layout or tensor.layout, device or home, config)
    require_allocated(tensor)

    def call() -> Tensor:
        plan = plan_unary(tensor.spec, (FILL, (float(fill_value),)), home.spec, place=memory_config)
        with home.function(f"ttnn.{function}"):
            return run(plan, {"input": tensor}, home)["output"]

    return locked_on(home, call)


def _sides(function: str, shape: Sequence[int]) -> tuple[int, ...]:
    if not isinstance(shape, list | tuple) or not all(isinstance(side, int) and side >= 0 for side in shape):
        raise ArgumentTypeError(f"{function}: shape must be non-negative integers, not {shown(shape)}")
    return tuple(shape)


def _filled_tensor(function: str, values: Array, place: Place) -> Tensor:
    """A tensor of float64 values; integers are cut as the host cuts them."""
    dtype, layout, device, memory_config = place
    require_type_or_none(function, DataType, dtype=dtype)
    require_type_or_none("Tensor", Device, device=device)  # before the values are made
    chosen = dtype or DataType.BFLOAT16
    single = values if chosen.format.is_float else values.astype(np.int64)
    stored = single.astype(np.float32) if chosen.format.is_float else single
    if values.size and not any(values.strides):
        stored = np.broadcast_to(stored[(slice(1),) * values.ndim], values.shape)
    return Tensor(stored, chosen, device, layout, memory_config if device is not None else None)


DEVICE_STORAGE_TYPE = StorageType.DEVICE


@checked_as("")
def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor lies in shards."""
    return tensor.is_sharded()


@checked_as("")
def has_storage_type_of(tensor: Tensor, storage_type: StorageType) -> bool:
    """Whether the values of a tensor are there: on the host, or on a device."""
    return tensor.storage_type() is storage_type


def has_tile_padding(tensor: Tensor, *, dim: int | None = None) -> bool:
    """Whether the last two axes of a tensor are padded, or the one that is given; a single axis never is."""
    sides, filled = tensor.shape, tensor.padded_shape
    if dim is not None:
        return sides[dim] != filled[dim]
    return len(sides) > 1 and tuple(sides[-2:]) != tuple(filled[-2:])


@checked_as("")
def tile_size(dtype: DataType) -> int:
    """Bytes of a tile of 32 x 32 elements."""
    return dtype.format.tile_bytes


@checked_as("")
def element_size(dtype: DataType) -> int:
    """Bytes of an element; raises ArgumentError for block floats, whose elements have no bytes of their own."""
    size = dtype.format.element_bytes
    if size is None:
        raise ArgumentError(f"datum for bfp2, bfp4, bfp8 is invalid\nelement_size: {dtype} has tiles: use tile_size")
    return size


@checked_as("")
def get_conv_output_dim(input: int, window: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """Outputs along an axis of ``input`` pixels, with ``pad`` zeros at each end, by a kernel of ``window`` taps."""
    return (input + 2 * pad - dilation * (window - 1) - 1) // stride + 1
