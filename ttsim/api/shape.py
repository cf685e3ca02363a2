"""ttnn's functions that change the shape of a tensor or the order of its elements."""

from collections.abc import Callable, Hashable, Sequence
from math import prod
from numbers import Real
from typing import Any

from device.cores import CoreRangeSet, PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.plan import Plan
from ops.planners.concat import plan_concat
from ops.planners.shape.permute import plan_permute, plan_transpose, require_known_numbers
from ops.planners.shape.plan import axes_of, axis_of, plan_convert_to_chw, plan_convert_to_hwc, unwritten_channels
from ops.planners.shape.reshape import plan_reshape, plan_squeeze, plan_unsqueeze_to_4d, plan_view
from ops.planners.shape.reshape_on_device import plan_reshape_on_device, reshapes_on_host
from ops.planners.shape.slice import plan_slice
from ttsim.api.copies import copy
from ttsim.api.device_calls import (
    LOST,
    cached_plan,
    carried_out,
    converted,
    format_of,
    integers_of,
    operation,
    operation_as,
    required_device,
    sides_of,
)
from ttsim.api.pad import fill_implicit_tile_padding
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import locked_on, require_allocated, run
from ttsim.runtime.storage import UNKNOWN
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer, wrong
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.tensors import DataType, resolved_shape


class TileReshapeMapMode(PlainEnum):
    """Whether `reshape` rebuilds its map of tiles; programs here always do. Member values are ttnn's.

    Examples:
        >>> ttnn.TileReshapeMapMode.RECREATE.value
        1
    """

    CACHE, RECREATE = range(2)


@on_device
def concat(
    tensors: Sequence[Tensor],
    dim: int = 0,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    groups: int = 1,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """Tensors concatenated along one axis.

    Args:
        tensors: Tensors on one device, of one layout: all interleaved, or all sharded over the same cores.
        dim: The axis; negative numbers count from the last.
        memory_config: Memory of the result; None for DRAM.
        output_tensor: Refused, as by ttnn; None creates a new tensor.
        groups: Number of parts of each of two HEIGHT-sharded tensors: the result has the first parts of both, then the
            second parts, and so on. As in ttnn, ignored for other tensors.
        sub_core_grids: Cores that may be used to concatenate pages; None for all.

    Returns:
        A tensor whose side ``dim`` is the sum of the sides of all tensors.

    Raises:
        ArgumentTypeError: ``tensors`` is not a sequence of tensors, or another argument is of the wrong type.
        ArgumentError: The call uses a feature that is not simulated.
        DeviceError: The shapes or layouts of the tensors differ, or a tensor is on the host.

    Examples:
        >>> first, second = (ttnn.zeros((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> ttnn.concat([first, second], dim=3).shape
        Shape([1, 1, 32, 64])
    """
    require_type_or_none("concat", MemoryConfig, memory_config=memory_config)
    index, group_count = required_integer("concat", "dim", dim), required_integer("concat", "groups", groups)
    if not _are_tensors(tensors):
        raise ArgumentTypeError(f"concat: tensors must be a sequence of tensors, not {shown(tensors)}")
    if group_count < 0:
        raise wrong("concat", f"groups must be at least 0, not {group_count}")
    if not tensors:
        raise DeviceError("ttnn.concat: expected a non-empty list of Tensors!\ntensors: give 1 or more")
    if output_tensor is not None:
        raise DeviceError("optional output tensor currently unsupported!\nconcat: leave output_tensor out")
    require_type_or_none("concat", CoreRangeSet, sub_core_grids=sub_core_grids)
    axis = axis_of(index, len(tensors[0].shape), "dim")
    device, *_ = [required_device("concat", tensor, lost=LOST) for tensor in tensors]

    specs = tuple(tensor.spec for tensor in tensors)
    plan = cached_plan(plan_concat, device, specs, axis, place=memory_config, groups=group_count, cores=sub_core_grids)
    with device.function("ttnn.concat"):
        return run(plan, {f"input_{number}": tensor for number, tensor in enumerate(tensors)}, device)["output"]


def _are_tensors(values: object) -> bool:
    return isinstance(values, Sequence) and all(isinstance(value, Tensor) for value in values)


@operation
def permute(
    input_tensor: Tensor, dims: object, pad_value: object = 0.0, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """A tensor with its axes in another order.

    Args:
        dims: For each axis of the result, the axis of ``input_tensor``.
        pad_value: Accepted as in ttnn; ttsim does not keep values of padding.

    Returns:
        A tensor whose side i is side ``dims[i]`` of ``input_tensor``.

    Raises:
        ArgumentError: The device is strict, and the real library would return wrong values.

    Examples:
        >>> tensor = ttnn.zeros((1, 2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.permute(tensor, (0, 2, 3, 1)).shape
        Shape([1, 32, 64, 2])
    """
    if not isinstance(dims, Sequence):
        raise ArgumentTypeError(f"permute: dims must be a sequence of integers, not {shown(dims)}")
    require_type("permute", Real, pad_value=pad_value)
    required_device("permute", input_tensor)
    order = axes_of([required_integer("permute", "dims", dim) for dim in dims], len(input_tensor.shape))
    return converted("permute", plan_permute, input_tensor, order, strict=require_known_numbers, place=memory_config)


@described("OutOfMemoryError", like=permute)
@on_device
def transpose(
    input_tensor: Tensor, dim1: int, dim2: int, pad_value: object = 0.0, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """A tensor with two axes swapped.

    Args:
        dim1: The first of the two axes; negative numbers count from the last.
        dim2: The second of the two axes.

    Returns:
        A tensor whose sides ``dim1`` and ``dim2`` are swapped.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The device is strict, and the real library would return wrong values.
        DeviceError: There is no such axis, or the tensor is on the host.

    Examples:
        >>> tensor = ttnn.zeros((1, 2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.transpose(tensor, -2, -1).shape
        Shape([1, 2, 64, 32])
    """
    require_type("transpose", Tensor, input_tensor=input_tensor)
    require_type("transpose", Real, pad_value=pad_value)
    require_type_or_none("transpose", MemoryConfig, memory_config=memory_config)
    rank = len(input_tensor.shape)
    first, second = (required_integer("transpose", name, axis) for name, axis in (("dim1", dim1), ("dim2", dim2)))
    required_device("transpose", input_tensor)
    axes = axis_of(first, rank, "dim1"), axis_of(second, rank, "dim2")
    options: dict[str, Any] = {"place": memory_config, "filler": pad_value}
    return converted("transpose", plan_transpose, input_tensor, *axes, strict=require_known_numbers, **options)


@operation_as("ttnn.experimental.")
def convert_to_hwc(
    input: Tensor, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None
) -> Tensor:
    """Converts [1, B, C, H*W] to [1, 1, B*H*W, C], with C rounded up to a multiple of 16 bytes.

    In the real library the added channels have undefined contents. A convolution of C channels ignores them; a strict
    device refuses every other use of the result with an ArgumentError. On other devices they are zeros.

    Args:
        input: A WIDTH-sharded tensor in ROW_MAJOR layout, in L1 or DRAM.
        memory_config: HEIGHT shards of the result; None for the cores of the tensor.

    Returns:
        The channels-last tensor, HEIGHT-sharded.

    Examples:
        >>> place = ttnn.create_sharded_memory_config((1, 1, 16, 64), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.WIDTH)
        >>> image = ttnn.to_memory_config(ttnn.zeros((1, 1, 16, 64), device=device), place)
        >>> ttnn.experimental.convert_to_hwc(image).shape
        Shape([1, 1, 64, 16])
    """
    owner, data_format = "experimental.convert_to_hwc", format_of(dtype)
    result = converted(owner, plan_convert_to_hwc, input, place=memory_config, data_format=data_format)
    device = result.device()
    if device is not None and device.strict:
        for part in result.each():
            part.buffer.unwritten = unwritten_channels(input.spec, result.spec)
    return result


@operation_as("ttnn.experimental.")
def convert_to_chw(input: Tensor, *, dtype: DataType | None = None) -> Tensor:
    """Converts [1, 1, H*W, C] to [1, 1, C, H*W].

    Args:
        input: A HEIGHT-sharded tensor in TILE layout, in L1; block floats need a ``dtype``.

    Returns:
        The channels-first tensor, WIDTH-sharded.

    Examples:
        >>> place = ttnn.create_sharded_memory_config((64, 32), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
        >>> image = ttnn.zeros((1, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.convert_to_chw(ttnn.to_memory_config(image, place)).shape
        Shape([1, 1, 32, 64])
    """
    return converted("experimental.convert_to_chw", plan_convert_to_chw, input, data_format=format_of(dtype))


@operation_as(others={"logical_shape": ["shape"]})
def reshape(
    input_tensor: Tensor,
    shape: object,
    padded_shape: object = None,
    *,
    memory_config: MemoryConfig | None = None,
    pad_value: float | None = None,
    reshape_tile_mode: TileReshapeMapMode | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    skip_padding_fill: bool = False,
) -> Tensor:
    """The same elements in another shape of the same volume.

    If the pages of a device tensor keep their contents, the result shares its buffer. Otherwise a program moves the
    elements and redistributes shards.

    Args:
        input_tensor: A tensor on the host or the device.
        shape: The new sides; one of them may be -1.
        padded_shape: As in ttnn, ignored in TILE layout; in ROW_MAJOR layout it must equal ``shape``. Not simulated if
            the volume of ``shape`` differs from the tensor's.
        pad_value: Value that fills the padding of tiles after a program moved them.
        reshape_tile_mode: Accepted as in ttnn; a program always rebuilds the map of tiles.
        sub_core_grids: Cores that may be used for interleaved tensors; None for all.
        skip_padding_fill: Do not fill the padding; ``pad_value`` then has no effect.

    Returns:
        A tensor of the new shape.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 64, 32), device=device)
        >>> ttnn.reshape(tensor, (1, 8, 8, -1)).shape
        Shape([1, 8, 8, 32])
    """
    if padded_shape is not None:
        _check_padded(input_tensor, *(integers_of("reshape", sides) for sides in (shape, padded_shape)))
    wanted = resolved_shape((sides_of("reshape", shape),), input_tensor.spec.volume)
    filler = None if skip_padding_fill else pad_value
    options: dict[str, Any] = {"place": memory_config, "filler": filler, "cores": sub_core_grids}
    return _reshaped("reshape", input_tensor, wanted, plan_reshape, wanted, **options)


def _check_padded(tensor: Tensor, shape: tuple[int, ...], padded: tuple[int, ...]) -> None:
    """Raises NotSimulatedError for a padded shape that is not a plain reshape, ArgumentTypeError if a side is -1."""
    if min((*shape, *padded), default=0) < 0:
        raise wrong("reshape", f"give all sides of shape, at least 0, beside padded_shape, not {list(shape)}")
    if prod(shape) != tensor.spec.volume:
        raise NotSimulatedError("reshape: a shape that shows or hides padding is not simulated; use slice or pad")
    if tensor.layout is Layout.ROW_MAJOR and padded != shape:
        raise NotSimulatedError(f"reshape: rows have no padding; give padded_shape={list(shape)}, or leave it out")


@operation
def view(input_tensor: Tensor, shape: object) -> Tensor:
    """A device tensor of another shape with rows of the same length that shares the buffer.

    Args:
        shape: The new sides; one side may be -1. In TILE layout, the number of rows of an image stays the same, or
            the rows are whole tiles.

    Returns:
        The view; ``input_tensor`` itself in its own shape.

    Examples:
        >>> tensor = ttnn.zeros((2, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> seen = ttnn.view(tensor, (1, 1, 64, -1))
        >>> seen.shape, seen.buffer_address() == tensor.buffer_address()
        (Shape([1, 1, 64, 64]), True)
    """
    wanted = resolved_shape((sides_of("view", shape),), input_tensor.spec.volume)
    if wanted == input_tensor.spec.shape:
        return input_tensor
    if input_tensor.device() is None:
        raise DeviceError("View requires the tensor be stored on device, use reshape instead\nview: it is on the host")
    return _reshaped("view", input_tensor, wanted, plan_view, wanted)


@operation
def reshape_on_device(
    input_tensor: Tensor,
    W: object,  # noqa: N803 - ttnn's names
    Z: object,  # noqa: N803
    Y: object,  # noqa: N803
    X: object,  # noqa: N803
    *,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """A tensor in another shape of rank 4; if rows keep their length it shares the buffer, otherwise it has a new one.

    Args:
        W: The first side; one of the sides may be -1.
        Z: The second side.
        Y: The third side.
        X: The last side.
        memory_config: Memory of a new tensor; None for that of the tensor.

    Returns:
        A tensor of the shape [W, Z, Y, X].

    Raises:
        NotSimulatedError: In the real library, padding would appear among the elements.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 64, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.reshape_on_device(tensor, 1, 1, -1, 128).shape
        Shape([1, 1, 32, 128])
    """
    named = {"W": W, "Z": Z, "Y": Y, "X": X}
    sides = [required_integer("reshape_on_device", name, side) for name, side in named.items()]
    if sides.count(-1) > 1:
        raise DeviceError(
            "Shape cannot have more than 1 elements that is set to -1! Shape used: "
            f"({''.join(f'{side},' for side in sides)})\nreshape_on_device: give all sides but one"
        )
    wanted = resolved_shape((sides,), input_tensor.spec.volume)
    return reshaped_on_device(input_tensor, wanted, memory_config)


def reshaped_on_device(tensor: Tensor, shape: tuple[int, ...], place: MemoryConfig | None) -> Tensor:
    """A tensor in another shape of rank 4, by the program of `reshape_on_device`; it may hold fewer elements."""
    device = required_device("reshape_on_device", tensor)
    if reshapes_on_host(tensor.spec, shape):
        there = tensor.spec.memory_config if place is None else place
        return locked_on(device, lambda: _of_first(tensor.cpu(), shape).to(device, there))
    return converted("reshape_on_device", plan_reshape_on_device, tensor, shape, place=place)


def _of_first(host: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The first elements of a host tensor in rows, in another shape; all of them as a rule."""
    if prod(shape) == host.spec.volume:
        return host.reshape(shape)
    values = UNKNOWN if host.left_out else host.values().reshape(-1)[: prod(shape)].reshape(shape)
    return Tensor.of_host(values, host.spec.changed(shape=shape, memory_config=DRAM_MEMORY_CONFIG))


def _reshaped(
    owner: str,
    tensor: Tensor,
    shape: Sequence[int],
    planner: Callable[..., Plan],
    *arguments: Hashable,
    **options: Hashable,
) -> Tensor:
    """The reshaped tensor; a plan reshapes device tensors, a method host tensors and prepared weights."""
    device = tensor.device()
    if device is None or tensor.keeps_padding:
        return tensor.reshape(shape)
    require_allocated(tensor)
    return carried_out(owner, cached_plan(planner, device, tensor.spec, *arguments, **options), tensor, device)


@on_device
def squeeze(input_tensor: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """A tensor without axes of length 1.

    Args:
        input_tensor: A tensor on the host or the device.
        dim: The axis or axes to drop if their side is 1; None for every axis of length 1.

    Returns:
        A tensor of lower rank; ``input_tensor`` itself if no axis is dropped.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: There is no axis ``dim``.

    Examples:
        >>> ttnn.squeeze(ttnn.zeros((1, 4, 1, 32), device=device), 0).shape
        Shape([4, 1, 32])
    """
    require_type("squeeze", Tensor, input_tensor=input_tensor)
    shape = input_tensor.shape
    dims = range(len(shape)) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    axes = _different_axes(dims, len(shape))
    gone = frozenset(axis for axis in axes if shape[axis] == 1)
    sides = [side for axis, side in enumerate(shape) if axis not in gone]
    return _reshaped("squeeze", input_tensor, sides, plan_squeeze, gone) if gone else input_tensor


def _different_axes(dims: Sequence[object], rank: int) -> list[int]:
    """The axes of squeeze as non-negative numbers in descending order, in which the library checks them."""
    numbers = [required_integer("squeeze", "dim", dim) for dim in dims]
    axes = sorted((number + rank if number < 0 else number for number in numbers), reverse=True)
    for place, axis in enumerate(axes):
        if not 0 <= axis < rank:
            raise DeviceError(_no_axis("squeeze", axis, rank))
        if axis in axes[:place]:
            raise DeviceError(f"dim {axis} appears multiple times in the list of dims\nsqueeze: name each axis once")
    return axes


@on_device
def unsqueeze(input_tensor: Tensor, dim: int) -> Tensor:
    """A tensor with an additional axis of length 1.

    Args:
        input_tensor: A tensor on the host or the device.
        dim: Position of the new axis in the result; negative numbers count from the last.

    Returns:
        A tensor whose rank is higher by one.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: There is no such axis.

    Examples:
        >>> ttnn.unsqueeze(ttnn.zeros((4, 32), device=device), 0).shape
        Shape([1, 4, 32])
    """
    require_type("unsqueeze", Tensor, input_tensor=input_tensor)
    sides = list(input_tensor.shape)
    sides.insert(_axis("unsqueeze", dim, len(sides) + 1), 1)
    return _reshaped("unsqueeze", input_tensor, sides, plan_reshape, tuple(sides))


@on_device
def stack(input_tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Stacks tensors of one shape along a new axis: as in ttnn, unsqueezes each and concatenates all.

    Args:
        input_tensors: Tensors on one device, of one layout.
        dim: The new axis of the result; negative numbers count from the last.

    Returns:
        An interleaved tensor in DRAM whose side ``dim`` is the number of tensors.

    Raises:
        ArgumentTypeError: ``input_tensors`` is not a sequence of tensors.
        DeviceError: There is no tensor or no such axis, the shapes or layouts differ, or a tensor is on the host.

    Examples:
        >>> first, second = (ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device) for _ in range(2))
        >>> ttnn.stack([first, second], 0).shape
        Shape([2, 32, 32])
    """
    if not _are_tensors(input_tensors):
        raise ArgumentTypeError(f"stack: input_tensors must be a sequence of tensors, not {shown(input_tensors)}")
    if not input_tensors:
        raise DeviceError("Stack expects at least one tensor\nstack: input_tensors is empty")
    for tensor in input_tensors:
        required_device("stack", tensor, lost=LOST)
    tensors = [unsqueeze(tensor, dim) for tensor in input_tensors]
    result = concat(tensors, dim)
    while tensors:  # the library releases them in their order
        del tensors[0]
    return result


@on_device
def unsqueeze_to_4D(tensor: Tensor) -> Tensor:  # noqa: N802 - ttnn's name
    """A tensor with axes of length 1 added in front until the rank is 4.

    Args:
        tensor: A tensor on the host or the device.

    Returns:
        A tensor of rank 4.

    Raises:
        ArgumentTypeError: The argument is not a tensor.
        ArgumentError: The rank is above 4.

    Examples:
        >>> ttnn.unsqueeze_to_4D(ttnn.zeros((4, 32), device=device)).shape
        Shape([1, 1, 4, 32])
    """
    require_type("unsqueeze_to_4D", Tensor, tensor=tensor)
    if len(tensor.shape) > 4:
        raise ArgumentError("Tensor rank is greater than 4\nunsqueeze_to_4D: reshape it")
    return _reshaped("unsqueeze_to_4D", tensor, tensor.shape.to_rank(4), plan_unsqueeze_to_4d)


def _axis(function: str, dim: object, rank: int) -> int:
    """An axis counted from the front."""
    number = required_integer(function, "dim", dim)
    if not -rank <= number < rank:
        raise DeviceError(_no_axis(function, number, rank))
    return number % rank


def _no_axis(function: str, dim: int, rank: int) -> str:
    """The library's error text for a missing axis, and the beginning of our sentence."""
    return (
        f"Dimension out of range (expected to be in range of [{-rank},{rank - 1}], but got {dim})\n"
        f"{function}: dim must lie between {-rank} and {rank - 1}"
    )


@operation_as(others={"starts": ["slice_start"], "ends": ["slice_end"], "steps": ["slice_step"]})
def slice(
    input_tensor: Tensor,
    slice_start: object,
    slice_end: object,
    slice_step: object = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    pad_value: float | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A part of a tensor, in the tensor's layout; block floats that begin inside a tile become bfloat16.

    Args:
        slice_start: First index of each axis.
        slice_end: Index after the last index of each axis.
        slice_step: Distance between indices of each axis; None for 1.
        memory_config: Memory of the result; None for that of the tensor, with smaller shards.
        output_tensor: A tensor that receives the result and is returned; the result has its memory.
        sub_core_grids: Cores that may be used; None for all.
        pad_value: Value that fills the padding of the last tiles if the result ends inside tiles; None does not fill.

    Returns:
        A tensor whose sides are (end - start) / step, rounded up.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 64, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.slice(tensor, (0, 0, 0, 0), (1, 1, 32, 64)).shape
        Shape([1, 1, 32, 64])
    """
    begins, behind = integers_of("slice: slice_start", slice_start), integers_of("slice: slice_end", slice_end)
    taken = None if slice_step is None else integers_of("slice: slice_step", slice_step)
    options: dict[str, Any] = {"place": memory_config, "cores": sub_core_grids}
    box = converted("slice", plan_slice, input_tensor, begins, behind, taken, target=output_tensor, **options)
    by_tiles = len(begins) > 1 and not any(begin % TILE for begin in begins[-2:]) and set(taken or ()) <= {1}
    if pad_value is None or not by_tiles or not _cuts_tiles(input_tensor, box) or 0 in box.shape:
        return box
    filled = fill_implicit_tile_padding(box, pad_value)
    return filled if output_tensor is None else copy(filled, output_tensor)


def _cuts_tiles(tensor: Tensor, box: Tensor) -> bool:
    """Whether a slice ends inside a tile along one of the last two axes."""
    sides = zip(box.shape[-2:], box.padded_shape[-2:], tensor.shape[-2:], strict=True)
    return any(side not in (padded, whole) for side, padded, whole in sides)
