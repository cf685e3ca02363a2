"""ttnn's functions that repeat a tensor along its axes."""

from collections.abc import Sequence

import numpy as np

from device.errors import DeviceError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, Layout, MemoryConfig
from ops.planners.shape.broadcast import plan_broadcast_to
from ops.planners.shape.plan import axis_of
from ops.planners.shape.repeat import plan_repeat, plan_repeat_interleave, repeats_elements
from ttsim.api.conversions import to_layout, to_memory_config, typecast
from ttsim.api.device_calls import converted, free_l1, operation, operation_as, required_device
from ttsim.api.shape import concat, reshape, transpose, unsqueeze, view
from ttsim.api.upsample import upsample
from ttsim.runtime.execution import locked_on
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer, wrong
from ttsim.runtime.types.tensors import bfloat4_b, bfloat8_b, bfloat16, uint8

IMAGE_RANK = 4


@operation
def repeat(
    input_tensor: Tensor,
    repeat_dims: object,
    *,
    memory_config: MemoryConfig | None = None,
    optional_output_tensor: Tensor | None = None,
) -> Tensor:
    """A tensor repeated along each axis.

    Args:
        input_tensor: A tensor on the device.
        repeat_dims: Counts for the last axes; more counts than axes add axes in front.
        memory_config: Memory of the result; None for that of the tensor, in larger or more shards.
        optional_output_tensor: A tensor that receives the result and is returned; its memory is that of the result.

    Returns:
        A tensor whose sides are those of ``input_tensor`` times ``repeat_dims``; the tensor itself if all are 1.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device)
        >>> ttnn.repeat(tensor, (2, 2)).to_list()
        [[1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0]]
    """
    counts = _counts("repeat", "repeat_dims", repeat_dims)
    return _repeated("repeat", input_tensor, counts, memory_config, optional_output_tensor)


def _counts(owner: str, name: str, values: object, *, signed: bool = False) -> tuple[int, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise wrong(owner, f"{name} must be a sequence of integers, not {shown(values)}")
    counts = tuple(required_integer(owner, name, value) for value in values)
    if not signed and any(count < 0 for count in counts):
        raise wrong(owner, f"{name} must be integers from 0 on, not {shown(values)}")
    return counts


def _repeated(
    owner: str, tensor: Tensor, counts: tuple[int, ...], place: MemoryConfig | None, target: Tensor | None = None
) -> Tensor:
    if 0 not in counts or target is not None:
        return converted(owner, plan_repeat, tensor, counts, place=place, target=target)
    device, spec = required_device(owner, tensor), tensor.spec
    rank = max(len(counts), len(spec.shape))
    sides, times = (1,) * (rank - len(spec.shape)) + spec.shape, (1,) * (rank - len(counts)) + counts
    wanted = spec.memory_config if place is None else place
    stays = place is not None and place.shard_spec is not None and tensor.layout is Layout.TILE
    where = wanted if stays else MemoryConfig(buffer_type=wanted.buffer_type)
    shape = [side * count for side, count in zip(sides, times, strict=True)]
    return Tensor(np.zeros(shape, np.float32), tensor.dtype, layout=tensor.layout).to(device, where)


@operation
def expand(input_tensor: Tensor, output_shape: object, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """A tensor whose sides of length 1 are repeated to a given shape, by `repeat`.

    Args:
        output_shape: Sides of the result; new axes come in front, and -1 keeps a side.

    Returns:
        A tensor of this shape; the tensor itself if nothing is repeated.

    Examples:
        >>> tensor = ttnn.zeros((1, 32), device=device)
        >>> ttnn.expand(tensor, (4, 8, -1)).shape
        Shape([4, 8, 32])
    """
    wanted, shape = _counts("expand", "output_shape", output_shape, signed=True), tuple(input_tensor.shape)
    required_device("expand", input_tensor)
    if len(wanted) < len(shape):
        raise DeviceError(
            "Output rank must be >= input rank for expand\n"
            f"output_shape: it has {len(wanted)} sides, and the tensor {len(shape)}"
        )
    new = len(wanted) - len(shape)
    sides = (1,) * new + shape
    for axis in reversed(range(len(wanted))):
        _require_expandable(sides[axis], wanted[axis], is_new=axis < new)
    counts = tuple(1 if length in (-1, side) else length for side, length in zip(sides, wanted, strict=True))
    return _repeated("expand", input_tensor, counts, memory_config)


def _require_expandable(side: int, length: int, *, is_new: bool) -> None:
    """Raises DeviceError for a side that cannot be expanded; the side of a new axis counts as 1."""
    if is_new and length < 0:
        raise DeviceError(
            f"Leading dimension must be non-negative (got {length}); it has no corresponding input dimension\n"
            "output_shape: give the sides in front of the tensor's own"
        )
    if length < -1:
        raise DeviceError(
            f"Expand dimension size must be -1 or non-negative (got {length})\noutput_shape: give -1 for the own side"
        )
    if side not in (1, length) and length != -1:
        raise DeviceError(
            "Only size 1 dimensions can be expanded in the output shape\n"
            f"output_shape: a side of {side} does not become {length}"
        )


@operation_as("ttnn.experimental.")
def broadcast_to(
    input: Tensor, output_shape: object, *, memory_config: MemoryConfig | None = None, output: Tensor | None = None
) -> Tensor:
    """A tensor whose sides of length 1 are repeated to a given shape, also within tiles.

    Args:
        input: An interleaved tensor on the device, in TILE layout.
        output_shape: Up to four sides; new axes come in front.
        output: A tensor that receives the result and is returned.

    Returns:
        A tensor of this shape.

    Examples:
        >>> tensor = ttnn.ones((1, 1, 1, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.broadcast_to(tensor, (2, 1, 40, 32)).shape
        Shape([2, 1, 40, 32])
    """
    shape = _counts("experimental.broadcast_to", "output_shape", output_shape)
    return converted("experimental.broadcast_to", plan_broadcast_to, input, shape, place=memory_config, target=output)


@operation
def repeat_interleave(
    input_tensor: Tensor, repeats: int, dim: object, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """A tensor with every element of an axis repeated.

    As in ttnn, tensors without a repeat program are concatenated with themselves along a new axis, in several device
    operations.

    Args:
        repeats: How often each element is repeated.
        dim: The axis; negative numbers count from the last.

    Returns:
        A tensor whose side ``dim`` is ``repeats`` times as long; the tensor itself, or a copy, if ``repeats`` is 1.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0]]), ttnn.bfloat16, device)
        >>> ttnn.repeat_interleave(tensor, 2, dim=0).to_list()
        [[1.0, 2.0], [1.0, 2.0]]
    """
    owner, device = "repeat_interleave", required_device("repeat_interleave", input_tensor)
    spec, index = input_tensor.spec, required_integer("repeat_interleave", "dim", dim)
    place = memory_config
    if repeats == 1 and len(spec.shape) > 1:  # along any axis
        return to_memory_config(input_tensor, spec.memory_config if place is None else place)
    axis = axis_of(index, len(spec.shape), "dim")
    if len(spec.shape) == 1:
        return locked_on(device, lambda: _of_vector(input_tensor, repeats, place))
    if repeats > 0 and repeats_elements(spec, axis, place, device.spec, free_l1(device)):
        return converted(owner, plan_repeat_interleave, input_tensor, axis, repeats, place=place)
    return locked_on(device, lambda: _joined(input_tensor, repeats, axis, place))


def _of_vector(tensor: Tensor, repeats: int, place: MemoryConfig | None) -> Tensor:
    """Repeats the elements of a vector, as a column."""
    column = reshape(tensor, (-1, 1))
    again = repeat_interleave(column, repeats, 0, memory_config=place)
    result = reshape(again, (-1,))
    del again, column  # in the library's order
    return result


def _joined(tensor: Tensor, repeats: int, axis: int, place: MemoryConfig | None) -> Tensor:
    """Repeats elements of a tensor of rank 2 or more by concatenating rows; a sharded tensor is moved to DRAM."""
    where = tensor.spec.memory_config
    if not (where.is_sharded() and repeats):  # nothing is refused by `concat`
        return _each(tensor, repeats, axis, where if place is None else place)
    in_l1 = where.buffer_type is BufferType.L1
    if in_l1 and tensor.layout is Layout.ROW_MAJOR and len(tensor.shape) == IMAGE_RANK:
        larger = _in_shards(tensor, repeats, axis)
        return to_memory_config(larger, larger.spec.memory_config if place is None else place)
    gathered = to_memory_config(tensor, DRAM_MEMORY_CONFIG)
    again = _each(gathered, repeats, axis, DRAM_MEMORY_CONFIG)
    result = to_memory_config(again, DRAM_MEMORY_CONFIG if place is None else place)
    del again, gathered  # in the library's order
    return result


def _in_shards(tensor: Tensor, repeats: int, axis: int) -> Tensor:
    """Repeats elements of sharded ROW_MAJOR images by `upsample`, in larger shards on the same cores."""
    images, rows, columns, channels = tensor.shape
    if axis == IMAGE_RANK - 1:
        turned = transpose(tensor, -1, -2)
        again = _in_shards(turned, repeats, axis - 1)
        result = transpose(again, -1, -2)
        del again, turned  # in the library's order
        return result
    if axis != 0:
        return upsample(tensor, (1, repeats) if axis == 2 else (repeats, 1))
    larger = upsample(view(tensor, (1, images, rows * columns, channels)), (repeats, 1))
    return view(larger, (images * repeats, rows, columns, channels))


def _each(tensor: Tensor, repeats: int, axis: int, place: MemoryConfig) -> Tensor:
    """Repeats elements of a tensor by concatenating rows; the last axis is transposed first."""
    dtype, sides, turns = tensor.dtype, list(tensor.shape), axis == len(tensor.shape) - 1
    converts = dtype == uint8 or (dtype in (bfloat8_b, bfloat4_b) and not turns)
    wide = typecast(tensor, bfloat16, memory_config=place) if converts else tensor
    if turns:
        turned = transpose(wide, -1, -2, memory_config=place)
        again = _joined(turned, repeats, axis - 1, place)
        there = transpose(again, -1, -2, memory_config=place)
        result = typecast(there, dtype, memory_config=place) if converts else there
        del there, again, turned, wide  # in the library's order
        return result
    rows = to_layout(wide, Layout.ROW_MAJOR)
    del wide
    sides[axis] *= repeats
    joined = concat([unsqueeze(rows, axis + 1)] * repeats, axis + 1)
    there = to_layout(reshape(joined, sides), tensor.layout)
    result = typecast(there, dtype, memory_config=place) if converts else to_memory_config(there, place)
    del there, rows, joined
    return result
