"""ttnn's functions that create tensors, and functions that return a property of a tensor or a data type."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Final, TypeAlias

import numpy as np

from device.errors import ArgumentError, ArgumentIndexError, DeviceError, shown
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
from ttsim.runtime.tensor_copies import stored_in
from ttsim.runtime.types.call import (
    MOST_ELEMENTS,
    LongInteger,
    checked,
    checked_as,
    require_type,
    required_integer,
    required_sides,
    wrong,
)
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.tensors import DataType

Place: TypeAlias = tuple[DataType | None, Layout | None, Device | None, MemoryConfig | None]


@checked
def full(
    shape: Sequence[int],
    fill_value: float,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor filled with one number.

    Args:
        shape: Sides of the tensor.
        fill_value: The number; integer types truncate it toward zero.
        dtype: Data type; None for bfloat16.
        layout: Layout; None for ROW_MAJOR, or TILE for block floats.
        device: The device that holds the tensor; None for the host.
        memory_config: Memory on the device; None for DRAM.
        optional_tensor: A tensor that is filled and returned, with its own shape, data type, layout and memory; None
            creates a new tensor.

    Returns:
        The tensor, on ``device`` or on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type, or a side is negative.
        DeviceError: Block floats in ROW_MAJOR layout, or the shards cannot hold the tensor.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> ttnn.full((1, 2), 7.0, device=device).to_list()
        [[7.0, 7.0]]
    """
    if optional_tensor is not None:
        written = optional_tensor
        return stored_in(written, full(written.shape, fill_value, written.dtype, written.layout))
    values = np.broadcast_to(np.float64(fill_value), required_sides("full", shape))
    return _filled_tensor("full", values, (dtype, layout, device, memory_config))


@described(like=full)
@checked
def zeros(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of zeros.

    Examples:
        >>> ttnn.zeros((1, 2), dtype=ttnn.int32).to_list()
        [[0, 0]]
    """
    return full(shape, 0.0, dtype, layout, device, memory_config)


@described(like=full)
@checked
def ones(
    shape: Sequence[int],
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor of ones.

    Examples:
        >>> ttnn.ones((1, 2), layout=ttnn.TILE_LAYOUT, device=device).padded_shape
        Shape([32, 32])
    """
    return full(shape, 1.0, dtype, layout, device, memory_config)


@described(like=full)
@checked
def empty(
    shape: Sequence[int],
    dtype: DataType = DataType.BFLOAT16,
    layout: Layout = Layout.ROW_MAJOR,
    device: Device | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
) -> Tensor:
    """A tensor on a device whose elements are not specified; ttsim makes them zero.

    Args:
        device: The device that holds the tensor; as in ttnn, required although it follows optional arguments.

    Examples:
        >>> ttnn.empty((1, 2), device=device).shape
        Shape([1, 2])
    """
    if device is None:
        raise wrong("empty", "device is missing; ttnn.zeros makes host tensors")
    return full(shape, 0.0, dtype, layout, device, memory_config)


@described(like=full)
@checked
def full_like(
    tensor: Tensor,
    fill_value: float,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor of one number, with the shape of another tensor.

    A device operation fills float tensors in TILE layout if data type, layout and device stay the same; for bfloat16
    and block floats it truncates the number to bfloat16. Other tensors are created on the host.

    Args:
        tensor: The tensor that gives the shape.
        dtype: Data type; None for that of ``tensor``.
        layout: Layout; None for that of ``tensor``.
        device: The device that holds the result; None for that of ``tensor``.
        memory_config: Memory on the device; None for that of ``tensor``.
        optional_tensor: A tensor that is filled and returned, with its own data type and memory; None creates one.

    Returns:
        The new tensor.

    Examples:
        >>> ttnn.full_like(ttnn.zeros((1, 2)), 7.0).to_list()
        [[7.0, 7.0]]
    """
    return _filled("full_like", tensor, fill_value, (dtype, layout, device, memory_config), written=optional_tensor)


@described(like=full_like)
@checked
def zeros_like(
    tensor: Tensor,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor of zeros, with the shape of another tensor.

    Examples:
        >>> ttnn.zeros_like(ttnn.ones((1, 2))).to_list()
        [[0.0, 0.0]]
    """
    return _filled("zeros_like", tensor, 0.0, (dtype, layout, device, memory_config), written=optional_tensor)


@described(like=full_like)
@checked
def ones_like(
    tensor: Tensor,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    optional_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor of ones, with the shape of another tensor.

    Examples:
        >>> ttnn.ones_like(ttnn.zeros((1, 2)), dtype=ttnn.float32).dtype
        DataType.FLOAT32
    """
    return _filled("ones_like", tensor, 1.0, (dtype, layout, device, memory_config), written=optional_tensor)


@described(like=full_like)
@checked
def empty_like(
    tensor: Tensor,
    *,
    dtype: DataType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor whose elements are not specified, with the shape of another tensor; ttsim makes them zero.

    Examples:
        >>> ttnn.empty_like(ttnn.ones((1, 2)), device=device).storage_type()
        StorageType.DEVICE
    """
    return _filled("empty_like", tensor, 0.0, (dtype, layout, device, memory_config), on_host=True)


@described("OutOfMemoryError", like=full)
@checked
def arange(
    start: LongInteger | None = None,
    end: LongInteger | None = None,
    step: LongInteger = 1,
    *,
    dtype: DataType = DataType.BFLOAT16,
    device: Device | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    layout: Layout = Layout.ROW_MAJOR,
) -> Tensor:
    """The numbers from ``start`` (included) to ``end`` (excluded) with a constant step.

    Args:
        start: First number, by default 0; without ``end``, numbers run from 0 to ``start``.
        end: Upper bound, excluded.
        step: Difference between neighbors.

    Returns:
        A tensor of rank 1.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: ``step`` is 0 or leads away from ``end``, block floats, or not enough memory on the host.

    Examples:
        >>> ttnn.arange(0, 8, 2).to_list()
        [0.0, 2.0, 4.0, 6.0]
    """
    if start is None and end is None:
        raise wrong("arange", "end is missing; give where the numbers stop")
    first, last = (0, start or 0) if end is None else (start or 0, end)
    if max(map(abs, (first, step, last))) >= 1 << 63:
        raise wrong("arange", "start, end and step must have 64 bits at most")
    if dtype.format.is_block:
        raise DeviceError(f"Unsupported dtype\narange: {dtype.format} holds no range; typecast one of bfloat16")
    if not step:
        raise DeviceError("Step must be nonzero\narange: step must not be 0")
    if (last - first) * step < 0:
        raise DeviceError(
            "Invalid range: Step direction does not match range bounds\n"
            f"arange: steps of {step} lead from {first} away from {last}"
        )
    if len(range(first, last, step)) > MOST_ELEMENTS:
        raise _no_room("arange")
    with _room_on_host("arange"):
        values = np.arange(first, last, step).astype(np.float64)
    return _filled_tensor("arange", values, (dtype, layout, device, memory_config))


@described(like=full)
@checked
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
    mesh_mapper: None = None,
) -> Tensor:
    """Uniformly distributed numbers.

    The distribution is that of the real library; the individual numbers differ.

    Args:
        low: Lower bound, included.
        high: Upper bound, excluded before the numbers are rounded to ``dtype``.
        seed: The same seed gives the same numbers; for 0 the real library chooses a seed.
        mesh_mapper: Must be None; distribution over several devices is not simulated.

    Returns:
        The tensor, on ``device``.

    Examples:
        >>> numbers = ttnn.rand((32, 32), device, dtype=ttnn.float32, seed=1).to_numpy()
        >>> bool(0 <= numbers.min() < numbers.max() < 1)
        True
    """
    if dtype is DataType.UINT8:
        raise DeviceError(
            "[ttnn::rand] Output dtype DataType::UINT8 is not supported.\nrand: typecast a tensor of another data type"
        )
    if not (isfinite(low) and isfinite(high)):
        raise DeviceError(f"Uniform range endpoints must be finite, got [{low:g}, {high:g})\nrand: give numbers")
    if low >= high:
        raise DeviceError(
            f"Uniform range lower bound must be less than upper bound, got [{low:g}, {high:g})\n"
            "rand: give a low below high"
        )
    tensor_spec = TensorSpec(required_sides("rand", shape), dtype.format, Layout.TILE, memory_config)

    def call() -> Tensor:
        plan = plan_rand(tensor_spec, device.spec, low=low, high=high, seed=seed, layout=layout)
        with device.function("ttnn.rand"):
            return run(plan, {}, device)["output"]

    return locked_on(device, call)


FILLED: Final = (DataType.BFLOAT16, DataType.FLOAT32, DataType.BFLOAT8_B)  # by an operation, in tiles


def _filled(
    function: str,
    tensor: Tensor,
    fill_value: float,
    place: Place,
    *,
    on_host: bool = False,
    written: Tensor | None = None,
) -> Tensor:
    """A tensor of one number with the shape of another tensor, as the named ttnn function creates it."""
    dtype, layout, device, memory_config = place
    if written is not None:
        dtype, layout, device = written.dtype, written.layout, written.device()
    home = tensor.device()
    stays = layout in (None, tensor.layout) and dtype in (None, tensor.dtype) and device in (None, home)
    filled = tensor.layout is Layout.TILE and tensor.dtype in FILLED
    if on_host or home is None or not stays or not filled:
        config = memory_config or (None if home is None else tensor.spec.memory_config)
        form = dtype or tensor.dtype, layout or tensor.layout
        return full(tensor.shape, fill_value, *form, device or home, config, optional_tensor=written)
    require_allocated(tensor)

    def call() -> Tensor:
        target, tensors = None if written is None else written.spec, {"input": tensor}
        plan = plan_unary(tensor.spec, (FILL, (float(fill_value),)), home.spec, place=memory_config, target=target)
        with home.function(f"ttnn.{function}"):
            return run(plan, tensors if written is None else {**tensors, "target": written}, home)["output"]

    return locked_on(home, call)


def _filled_tensor(function: str, values: Array, place: Place) -> Tensor:
    """A tensor of float64 values, truncated for integer types as the real host truncates them."""
    dtype, layout, device, memory_config = place
    chosen = dtype or DataType.BFLOAT16
    if chosen.format.is_block and layout is Layout.ROW_MAJOR:  # this spec raises: rows of block floats do not exist
        place_of_rows = DRAM_MEMORY_CONFIG if device is None else memory_config or DRAM_MEMORY_CONFIG
        TensorSpec(values.shape, chosen.format, layout, place_of_rows)
    repeats = values.size and not any(values.strides)
    single = values[(slice(1),) * values.ndim] if repeats else values
    with _room_on_host(function):
        stored = single.astype(np.float32 if chosen.format.is_float else np.int64)
        whole = np.broadcast_to(stored, values.shape) if repeats else stored
        return Tensor(whole, chosen, device, layout, memory_config if device is not None else None)


def _no_room(function: str) -> DeviceError:
    """The error for an array that exceeds the host's memory."""
    return DeviceError(f"std::bad_alloc\n{function}: the host has no room for so many numbers; make fewer")


@contextmanager
def _room_on_host(function: str) -> Iterator[None]:
    """A context that turns a MemoryError of its body into a DeviceError."""
    try:
        yield
    except MemoryError:
        raise _no_room(function) from None


DEVICE_STORAGE_TYPE = StorageType.DEVICE


@checked_as("")
def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is sharded.

    Args:
        tensor: A tensor on the host or the device.

    Returns:
        True for pages that are distributed shard by shard, False for interleaved tensors and tensors on the host.

    Raises:
        ArgumentTypeError: The argument is not a tensor.

    Examples:
        >>> ttnn.is_sharded(ttnn.zeros((32, 32), device=device))
        False
    """
    return tensor.is_sharded()


@checked_as("")
def has_storage_type_of(tensor: Tensor, storage_type: StorageType) -> bool:
    """Whether a tensor has a storage type.

    Args:
        tensor: A tensor on the host or the device.
        storage_type: StorageType.HOST or StorageType.DEVICE.

    Returns:
        True if ``tensor.storage_type()`` is ``storage_type``.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> ttnn.has_storage_type_of(ttnn.zeros((32, 32), device=device), ttnn.DEVICE_STORAGE_TYPE)
        True
    """
    return tensor.storage_type() is storage_type


def has_tile_padding(tensor: Tensor, *, dim: int | None = None) -> bool:
    """Whether a tensor is padded to whole tiles.

    Args:
        tensor: A tensor on the host or the device.
        dim: The axis; None for the last two axes. A tensor of rank 1 is never padded.

    Returns:
        True if the padded shape differs from the shape.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor, or ``dim`` is not an integer.
        ArgumentIndexError: There is no axis ``dim``.

    Examples:
        >>> ttnn.has_tile_padding(ttnn.zeros((30, 32), layout=ttnn.TILE_LAYOUT))
        True
    """
    require_type("has_tile_padding", Tensor, tensor=tensor)
    sides, filled = tensor.shape, tensor.padded_shape
    if dim is not None:
        axis = required_integer("has_tile_padding", "dim", dim)
        if not -len(sides) <= axis < len(sides):
            text = f"has_tile_padding: dim must be an axis of a tensor of rank {len(sides)}, not {shown(dim)}"
            raise ArgumentIndexError(f"{text}; count from 0, or from -1 backwards")
        return sides[axis] != filled[axis]
    return len(sides) > 1 and tuple(sides[-2:]) != tuple(filled[-2:])


@checked_as("")
def tile_size(dtype: DataType) -> int:
    """The size of a tile of 32 x 32 elements.

    Args:
        dtype: A data type.

    Returns:
        The size in bytes, including the exponents of block floats.

    Raises:
        ArgumentTypeError: The argument is not a data type.

    Examples:
        >>> ttnn.tile_size(ttnn.bfloat16), ttnn.tile_size(ttnn.bfloat8_b)
        (2048, 1088)
    """
    return dtype.format.tile_bytes


@checked_as("")
def element_size(dtype: DataType) -> int:
    """The size of an element.

    Args:
        dtype: A data type without blocks.

    Returns:
        The size in bytes.

    Raises:
        ArgumentTypeError: The argument is not a data type.
        ArgumentError: The type is a block float, whose elements share exponents.

    Examples:
        >>> ttnn.element_size(ttnn.float32)
        4
    """
    size = dtype.format.element_bytes
    if size is None:
        raise ArgumentError(f"datum for bfp2, bfp4, bfp8 is invalid\nelement_size: {dtype} has tiles: use tile_size")
    return size


@checked_as("")
def get_conv_output_dim(input: int, window: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """The output size of a convolution along one axis: (input + 2 * pad - dilation * (window - 1) - 1) / stride + 1.

    Args:
        input: Pixels along the axis.
        window: Taps of the kernel.
        stride: Stride.
        pad: Zeros at each end.
        dilation: Distance between taps.

    Returns:
        The number of outputs, rounded down.

    Raises:
        ArgumentTypeError: An argument is not a non-negative integer.

    Examples:
        >>> ttnn.get_conv_output_dim(32, 3, stride=2, pad=1)
        16
    """
    return (input + 2 * pad - dilation * (window - 1) - 1) // stride + 1
