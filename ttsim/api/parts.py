"""ttnn.chunk, split and roll, which, as in ttnn, slice a tensor and concatenate slices."""

from collections.abc import Sequence

from device.errors import DeviceError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, BufferType, MemoryConfig
from ops.planners.shape.plan import axis_of
from ops.planners.shape.roll import plan_roll, rolls_shards
from ops.planners.shape.split import PARTS_OF_L1, parts_place, plan_split
from ops.programs.data_movement.split import split_cores
from ttsim.api.conversions import to_memory_config
from ttsim.api.device_calls import cached_plan, converted, operation, required_device
from ttsim.api.shape import concat, reshape, slice
from ttsim.runtime.execution import locked_on, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import required_integer, wrong

PARTS_OF_A_BLOCK = 64  # of one length; more parts are cut from blocks, which are cut from the tensor


def _parts(owner: str, tensor: Tensor, sizes: Sequence[int], axis: int, place: MemoryConfig | None) -> list[Tensor]:
    """Consecutive slices of given sizes along an axis."""
    shape = list(tensor.shape)

    def call() -> list[Tensor]:
        parts, begin = [], 0
        for size in sizes:
            begins, ends = [0] * len(shape), list(shape)
            begins[axis], ends[axis] = begin, min(begin + size, shape[axis])
            parts.append(slice(tensor, begins, ends, [1] * len(shape), memory_config=place))
            begin += size
        return parts

    return locked_on(required_device(owner, tensor), call)


@operation
def chunk(input_tensor: Tensor, chunks: int, dim: object) -> list[Tensor]:
    """Splits a tensor along an axis into parts of equal length; the last part may be shorter.

    Args:
        chunks: Maximum number of parts.
        dim: The axis; negative numbers count from the last.

    Returns:
        The parts, in order.

    Examples:
        >>> [part.shape for part in ttnn.chunk(ttnn.zeros((4, 32), device=device), 2, 0)]
        [Shape([2, 32]), Shape([2, 32])]
    """
    required_device("chunk", input_tensor)
    if chunks == 0:
        raise DeviceError("Number of chunks must be greater than zero\nchunks: give 1 or more")
    index, rank = required_integer("chunk", "dim", dim), len(input_tensor.shape)
    if index >= rank:
        raise DeviceError(
            f"... Invalid dimension for chunk operation, {rank} needs to be greater than {index}\n"
            f"dim: the tensor has {rank} axes"
        )
    axis = axis_of(index, rank, "dim")
    side = input_tensor.shape[axis]
    size = max(1, -(-side // chunks))
    return _parts("chunk", input_tensor, [size] * -(-side // size), axis, None)


@operation
def roll(
    input_tensor: Tensor, shifts: object, dim: object = None, *, memory_config: MemoryConfig | None = None
) -> Tensor:
    """Shifts the elements of a tensor cyclically along axes.

    Args:
        shifts: Number of places, or one number for each axis of ``dim``.
        dim: The axis or the axes; None shifts the flattened tensor.

    Returns:
        A tensor of the same shape.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0, 3.0]]), ttnn.bfloat16, device)
        >>> ttnn.roll(tensor, 1, 1).to_list()
        [[3.0, 1.0, 2.0]]
    """
    device = required_device("roll", input_tensor)
    shape = list(input_tensor.shape)
    if dim is None:
        places, axes = [required_integer("roll", "shifts", shifts)], [1]
    else:
        places, axes = _integers("shifts", shifts), _integers("dim", dim)
    if not places or len(places) != len(axes):
        raise DeviceError(
            f"Roll expects shifts {len(places)} and dims {len(axes)} to have the same length\n"
            "dim: give an axis for each shift"
        )
    sides = [1, input_tensor.spec.volume] if dim is None else shape
    rank = len(sides)
    for axis in axes:
        if not -rank <= axis < rank:
            raise DeviceError(
                f"Invalid dimension index {axis}. The dimension must be within the range [{-rank}, {rank - 1}].\n"
                f"dim: the tensor has {rank} axes"
            )
    sharded = input_tensor.spec.memory_config.is_sharded()
    if sharded and dim is None:
        raise DeviceError(
            "ttnn::roll without dims does not support sharded inputs. Convert to interleaved first.\n"
            "dim: give one, or move the tensor to interleaved memory"
        )
    place = input_tensor.spec.memory_config if memory_config is None else memory_config
    moved = ((shift % max(sides[axis], 1), axis % rank) for shift, axis in zip(places, axes, strict=True))
    turns = tuple((shift, axis) for shift, axis in moved if shift)

    def call() -> Tensor:
        if sharded and not turns:
            return to_memory_config(input_tensor, place)
        if sharded and rolls_shards(input_tensor.spec):
            return to_memory_config(converted("roll", plan_roll, input_tensor, turns), place)
        source = to_memory_config(input_tensor, DRAM_MEMORY_CONFIG) if sharded else input_tensor
        result = flat = reshape(source, sides) if dim is None else source
        for shift, axis in turns:
            parts = _turned(result, shift, axis)
            result = concat(parts, axis)
            while parts:  # the library releases the second part first
                parts.pop()
        result = to_memory_config(result, place)
        del flat
        return reshape(result, shape) if dim is None else result

    return locked_on(device, call)


def _integers(name: str, values: object) -> list[int]:
    listed = isinstance(values, Sequence) and not isinstance(values, str)
    return [required_integer("roll", name, value) for value in (values if listed else [values])]  # type: ignore[attr-defined]


def _turned(tensor: Tensor, shift: int, axis: int) -> list[Tensor]:
    """The part that moves to the beginning of an axis, and the rest."""
    begins, ends, steps = [0] * len(tensor.shape), list(tensor.shape), [1] * len(tensor.shape)
    begins[axis] = kept = ends[axis] - shift
    left = slice(tensor, begins, ends, steps)
    begins[axis], ends[axis] = 0, kept
    return [left, slice(tensor, begins, ends, steps)]


@operation
def split(
    input_tensor: Tensor, split_size: object, dim: object = 0, *, memory_config: MemoryConfig | None = None
) -> list[Tensor]:
    """Splits a tensor along an axis into parts of one length, the last of which may be shorter, or of given lengths.

    Args:
        split_size: Length of the parts, or a list of lengths, whose sum is the side.
        dim: The axis; negative numbers count from the last.

    Returns:
        The parts, in order.

    Examples:
        >>> [part.shape for part in ttnn.split(ttnn.zeros((4, 32), device=device), [1, 3], 0)]
        [Shape([1, 32]), Shape([3, 32])]
    """
    required_device("split", input_tensor)
    if isinstance(split_size, int) and not isinstance(split_size, bool) and split_size < 1:
        raise DeviceError(f"split_size must be greater than 0, but got: {split_size}\nsplit_size: give 1 or more")
    axis = axis_of(required_integer("split", "dim", dim), len(input_tensor.shape), "dim")
    side = input_tensor.shape[axis]
    if isinstance(split_size, Sequence) and not isinstance(split_size, str):
        sizes = [required_integer("split", "split_size", size) for size in split_size]
    elif isinstance(split_size, int) and not isinstance(split_size, bool):
        sizes = [split_size] * -(-side // split_size)
    else:
        raise wrong("split", f"split_size must be an integer or several, not {shown(split_size)}")
    if not sizes:
        raise DeviceError(f"split_sizes must not be empty\nsplit_size: dimension {axis} has {side} elements")
    if isinstance(split_size, Sequence):
        _require_sum(sizes, side, axis)
    return _split(input_tensor, sizes, axis, memory_config)


def _require_sum(sizes: Sequence[int], side: int, axis: int) -> None:
    if all(size > 0 for size in sizes) and sum(sizes) != side:
        listed, missing = ", ".join(map(str, sizes)), side - sum(sizes)
        how = "over-cover it" if missing < 0 else f"under-cover it by {missing}"
        raise DeviceError(
            f"split_sizes must sum exactly to the size of dimension {axis} ({side}), but sizes {{{listed}}} {how}\n"
            f"split_size: they sum to {sum(sizes)}"
        )


def _split(tensor: Tensor, sizes: Sequence[int], axis: int, place: MemoryConfig | None) -> list[Tensor]:
    if any(size < 1 for size in sizes):
        listed = ", ".join(map(str, sizes))
        raise DeviceError(f"split_size should be greater than 0, instead got: {{{listed}}}\nsplit_size: give 1 or more")
    device, spec = required_device("split", tensor), tensor.spec
    equal = len(set(sizes)) == 1 and sum(sizes) == spec.shape[axis]
    where = parts_place(spec, sizes, axis, place, device.spec, device.machine.l1_room_bytes)
    if axis != len(spec.shape) - 1 or not equal or split_cores(spec, len(sizes), device.spec) is None:
        leaves_l1 = spec.memory_config.buffer_type is BufferType.L1 and where.buffer_type is BufferType.DRAM
        reads_often = leaves_l1 and len(sizes) > PARTS_OF_L1  # of L1, where programs of the slices would be in the way
        source = to_memory_config(tensor, DRAM_MEMORY_CONFIG) if reads_often else tensor
        if not equal or len(sizes) <= PARTS_OF_A_BLOCK:
            return _parts("split", source, sizes, axis, where)
        return locked_on(device, lambda: _parts_of_blocks(source, sizes, axis, where))
    plan = cached_plan(plan_split, device, spec, len(sizes), place=where)
    with device.function("ttnn.split"):
        results = run(plan, {"input": tensor}, device)
    return [results[f"output_{number}"] for number in range(len(sizes))]


def _parts_of_blocks(source: Tensor, sizes: Sequence[int], axis: int, place: MemoryConfig) -> list[Tensor]:
    """Parts of one length that fill an axis, cut from blocks; each block is freed before the next block is cut."""
    begins, ends = [0] * len(source.shape), list(source.shape)
    parts = list[Tensor]()
    for first in range(0, len(sizes), PARTS_OF_A_BLOCK):
        lengths = sizes[first : first + PARTS_OF_A_BLOCK]
        begins[axis], ends[axis] = first * sizes[0], first * sizes[0] + sum(lengths)
        block = slice(source, begins, ends, [1] * len(begins), memory_config=place)
        parts += _parts("split", block, lengths, axis, place)
        del block
    return parts
