"""Plans that permute the axes of a tensor. Rules: ttnn 0.81.1 (data_movement/permute, transpose) and recorded plans.

Programs swap two of the last three, or the first two, of four axes; another program puts axes in any order.
"""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Final

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import L1_MEMORY_CONFIG, TILE, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, round_up
from device.plan import CircularBuffer, Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import shard_row_bytes
from ops.programs.data_movement import permute
from ops.programs.data_movement.conversions import cloned, typecast_by
from ops.programs.data_movement.placement import blocks_in_dram, viewed

RANK: Final = 4
FIRST_TWO: Final = (0, 1)
Swaps = tuple[tuple[int, int], ...]

# Orders of four axes that a sequence of swaps produces.
OF_INTERLEAVED: Final = MappingProxyType[tuple[int, ...], Swaps](
    {(0, 1, 3, 2): (permute.LAST_TWO,), (0, 2, 1, 3): (permute.MIDDLE_TWO,), (1, 0, 2, 3): (FIRST_TWO,)}
)
OF_SHARDED: Final = MappingProxyType[tuple[int, ...], Swaps](
    {
        **OF_INTERLEAVED,
        (0, 2, 3, 1): (permute.MIDDLE_TWO, permute.LAST_TWO),
        (0, 3, 1, 2): (permute.LAST_TWO, permute.MIDDLE_TWO),
        (0, 3, 2, 1): (permute.LAST_TWO, permute.MIDDLE_TWO, permute.LAST_TWO),
    }
)
OF_BLOCK_FLOATS: Final = ((0, 1, 3, 2), (1, 0, 2, 3), (1, 0, 3, 2))  # orders that need no conversion


def plan_permute(
    source: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input" with permuted axes; the tensor itself, or a copy, if the order stays."""
    return _planned(source, place, spec, partial(permuted_by, axes=axes))


LEAVE_PADDING = ({-2, -1}, {-4, -3})  # axes of four that programs swap without filling the padding


def plan_transpose(
    source: TensorSpec,
    first: int,
    second: int,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    filler: float = 0.0,
) -> Plan:
    """Plan the swap of two axes of the tensor "input", counted from the front; otherwise as `plan_permute`.

    A ROW_MAJOR vector is returned unchanged; DeviceError for padded shards of it. ``filler`` is for the padding of
    tiles, which no program fills but the one that swaps the middle two of four axes.
    """
    if len(source.shape) == 1 and source.layout is Layout.ROW_MAJOR and place is None:
        viewed(
            source.changed(shape=(*[1] * (RANK - 1), *source.shape)), source.shape, spec
        )  # refuses padding in shards
        return plan_of(source, spec, lambda _, tensor: tensor)
    plan = _planned(source, place, spec, partial(transposed_by, swapped=(first, second)))
    swapped = {axis - len(source.shape) for axis in (first, second)}
    direct = any(isinstance(step, Operation) and step.name.startswith("Transpose") for step in plan.steps)
    if filler and direct and swapped in LEAVE_PADDING:
        raise DeviceError(
            f"Non-zero padding {filler:g} is not supported for any transpose other than HC.\npad_value: leave it out"
        )
    return plan


def _planned(source: TensorSpec, place: MemoryConfig | None, spec: DeviceSpec, turn: Callable[..., PlanTensor]) -> Plan:
    return plan_of(source, spec, partial(turn, place=place, name="output"), attempts=True)


def require_known_numbers(plan: Plan) -> None:
    """Raises ArgumentError for a plan that moves rows of block floats as if they were bytes.

    The library converts most of them, but not those in shards, of more than four axes, or of four bits.
    """
    for step in plan.steps:
        if not isinstance(step, Operation) or not isinstance(step.op, permute.Permute):
            continue
        data_format = plan.tensors[step.inputs[0]].data_format
        if data_format.is_block and "Permute" in step.name and not permute.keeps_tiles(step.op.axes):
            raise ArgumentError(
                f"permute: {data_format} in shards, of more than four axes, or of four bits is moved as bytes, which "
                "gives other numbers; make it bfloat16, with typecast"
            )


def seen(tensor: PlanTensor, shape: tuple[int, ...]) -> PlanTensor:
    """The tensor under a shape with more or fewer sides of 1 in front; rows keep the padding that shards gave them."""
    spec, more = tensor.spec, len(shape) - len(tensor.spec.shape)
    padded = None
    if spec.layout is Layout.ROW_MAJOR:
        padded = (*[1] * more, *spec.padded_shape[max(0, -more) :])
    return PlanTensor(tensor.name, spec.changed(shape=shape, padded_shape=padded))


def _in_columns(tensor: TensorSpec) -> bool:
    """Whether the program cannot read the shards: they have parts of rows, and the tensor does not fill whole tiles."""
    schemes = (TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.WIDTH_SHARDED)
    by_columns = tensor.memory_config.memory_layout in schemes and tensor.layout is Layout.ROW_MAJOR
    return by_columns and any(side % TILE for side in tensor.shape[-2:])


def _gathered(
    builder: PlanBuilder, source: PlanTensor, name: str, turn: Callable[[PlanTensor], PlanTensor]
) -> PlanTensor:
    """The result of ``turn`` on the tensor interleaved in L1."""
    read = placed(builder, source, L1_MEMORY_CONFIG, f"{name}.gathered")
    result = turn(read)
    builder.free_own(read, keep=[result])
    return result


def _stays(tensor: TensorSpec, axes: tuple[int, ...]) -> bool:
    """Whether the order changes nothing: only axes of length 1 move, and no axis of a page."""
    rank = len(axes)
    if rank < 2 or axes == tuple(range(rank)):
        return True
    inner = 1 if tensor.layout is Layout.ROW_MAJOR else 2
    if axes[-inner:] != tuple(range(rank - inner, rank)):
        return False
    return all(axis == place or tensor.shape[place] == tensor.shape[axis] == 1 for place, axis in enumerate(axes))


def permuted_by(
    builder: PlanBuilder, source: PlanTensor, axes: tuple[int, ...], place: MemoryConfig | None, name: str
) -> PlanTensor:
    """Axes in another order, as ttnn.permute does it."""
    source_spec = source.spec
    if _stays(source_spec, axes):
        where = source_spec.memory_config if place is None else place
        if (refused := blocks_in_dram(source_spec.memory_config)) is not None and where != source_spec.memory_config:
            raise DeviceError(refused)
        return placed(builder, source, where, name)
    alignment = builder.device_spec.l1.alignment_bytes
    shards = place.shard_spec if place is not None and source_spec.layout is Layout.ROW_MAJOR else None
    if place is not None and shards is not None and shard_row_bytes(source_spec, place) % alignment:
        raise DeviceError(
            f"Shard page size must be aligned to {alignment}B for L1 Tensor\n"
            f"memory_config: rows of {shards.shape[1]} elements are not; give wider shards"
        )
    more = max(0, RANK - len(axes))
    order = (*range(more), *(axis + more for axis in axes))
    result = _ordered(builder, seen(source, (*[1] * more, *source_spec.shape)), order, place, name)
    return seen(result, result.spec.shape[more:])


def _ordered(
    builder: PlanBuilder, source: PlanTensor, axes: tuple[int, ...], place: MemoryConfig | None, name: str
) -> PlanTensor:
    """Four axes or more in another order."""
    source_spec = source.spec
    if _in_columns(source_spec):
        there = permute.shards_before(source_spec, axes, place, builder.device_spec, in_rows=False)
        return _gathered(builder, source, name, lambda read: _ordered(builder, read, axes, there, name))
    sharded = source_spec.memory_config.is_sharded()
    bare = MemoryConfig(source_spec.memory_config.memory_layout, source_spec.memory_config.buffer_type)
    where = (bare if sharded else source_spec.memory_config) if place is None else place
    if len(axes) > RANK:
        return _by_permute(builder, source, axes, where, name)
    converts = source_spec.data_format == BFLOAT8_B and axes not in OF_BLOCK_FLOATS and not sharded
    read = typecast_by(builder, source, BFLOAT16, f"{name}.bfloat16") if converts else source
    last = f"{name}.turned" if converts else name
    swaps = (OF_SHARDED if sharded else OF_INTERLEAVED).get(axes)
    if swaps is None:
        result = _by_permute(builder, read, axes, where, last)
    else:
        result = _by_swaps(builder, read, swaps, place, last)
    return _as_before(builder, source, read, result, name) if converts else result


def _by_swaps(
    builder: PlanBuilder, source: PlanTensor, swaps: Swaps, place: MemoryConfig | None, name: str
) -> PlanTensor:
    """Swaps in sequence; intermediate tensors are released at the end, the last first."""
    *first, last = swaps
    tensors = [source]
    for number, swapped in enumerate(first, 1):
        tensors.append(transposed_by(builder, tensors[-1], swapped, None, f"{name}.{number}"))
    result = transposed_by(builder, tensors[-1], last, place, name)
    builder.free_own(*reversed(tensors), keep=[source, result])
    return result


def _as_before(
    builder: PlanBuilder, source: PlanTensor, wide: PlanTensor, permuted: PlanTensor, name: str
) -> PlanTensor:
    """The permuted tensor in the format of the source; the converted tensors are released."""
    result = typecast_by(builder, permuted, source.spec.data_format, name)
    builder.free_own(permuted, wide, keep=[source])
    return result


def transposed_by(
    builder: PlanBuilder, source: PlanTensor, swapped: tuple[int, int], place: MemoryConfig | None, name: str
) -> PlanTensor:
    """Two axes swapped, as ttnn.transpose does it."""
    source_spec, rank = source.spec, len(source.spec.shape)
    if rank > 1 and _in_columns(source_spec):
        order = _order_of(swapped, rank)
        where = permute.shards_before(source_spec, order, place, builder.device_spec, in_rows=True)
        return _gathered(builder, source, name, lambda read: transposed_by(builder, read, swapped, where, name))
    if rank > RANK:
        return permuted_by(builder, source, _order_of(swapped, rank), place, name)
    more = RANK - rank
    first, second = sorted(axis + more for axis in swapped)
    four = seen(source, (*[1] * more, *source_spec.shape))
    converts = source_spec.data_format == BFLOAT8_B and (first, second) not in (FIRST_TWO, permute.LAST_TWO)
    read = typecast_by(builder, four, BFLOAT16, f"{name}.bfloat16") if converts else four
    last = f"{name}.turned" if converts else name
    if first == second or read.spec.padded_shape[first] == read.spec.padded_shape[second] == 1:
        if place is not None:
            require_shard_spec(place, in_rows=source_spec.layout is Layout.ROW_MAJOR)
        turned = read if place is None or place == source_spec.memory_config else cloned(builder, read, place, last)
        if rank == 1 and source_spec.layout is Layout.TILE:
            raise DeviceError(
                "Can't convert shape rank\ninput_tensor: the padding of a vector in tiles has two axes, which "
                "ttnn.transpose does not take away; reshape the tensor to rank 2"
            )
    else:
        turned = _swapped(builder, read, (first, second), place, last)
    result = _as_before(builder, four, read, turned, name) if converts else turned
    return seen(result, result.spec.shape[more:])


def _swapped(
    builder: PlanBuilder, source: PlanTensor, swapped: tuple[int, int], place: MemoryConfig | None, name: str
) -> PlanTensor:
    """Two of four axes swapped, by the program for it or by others."""
    if swapped not in (FIRST_TWO, permute.MIDDLE_TWO, permute.LAST_TWO):
        return permuted_by(builder, source, _order_of(swapped), place, name)
    where = permute.place_of_swap(source.spec, swapped) if place is None else place
    in_rows, sharded = source.spec.layout is Layout.ROW_MAJOR, source.spec.memory_config.is_sharded()
    if in_rows and (not sharded or (swapped == permute.LAST_TWO and _is_too_large(source.spec, builder.device_spec))):
        return _by_permute(builder, source, _order_of(swapped), where, name)
    return _by_transpose(builder, source, swapped, where, name)


def _order_of(swapped: tuple[int, int], rank: int = RANK) -> tuple[int, ...]:
    order = list(range(rank))
    order[swapped[0]], order[swapped[1]] = order[swapped[1]], order[swapped[0]]
    return tuple(order)


def _is_too_large(tensor: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether an image of rows does not fit L1 as tiles; no other tensor in L1 counts."""
    high, wide = (round_up(side, TILE) for side in tensor.shape[-2:])
    needed = (2 * wide + 2 * high + high * wide) * (tensor.data_format.element_bytes or 0)
    return needed > spec.l1.usable_bytes - tensor.buffer(spec).bank_bytes


def _by_permute(
    builder: PlanBuilder, source: PlanTensor, axes: tuple[int, ...], where: MemoryConfig, name: str
) -> PlanTensor:
    tensor, spec = source.spec, builder.device_spec
    shape = tuple(tensor.shape[axis] for axis in axes)
    padded = TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape
    tensor_spec = tensor.changed(shape=shape, memory_config=permute.with_shards(tensor, padded, where, spec))
    buffers = permute.permute_buffers(tensor, tensor_spec, axes, spec)
    return _run(builder, "Permute", source, axes, PlanTensor(name, tensor_spec), buffers, dataflow=True)


def _by_transpose(
    builder: PlanBuilder, source: PlanTensor, swapped: tuple[int, int], where: MemoryConfig, name: str
) -> PlanTensor:
    """The program for a swap; its buffers are dataflow buffers except for views of rows."""
    tensor, spec, axes = source.spec, builder.device_spec, _order_of(swapped)
    after, shape = permute.swapped_shape(tensor, swapped), tuple(tensor.shape[axis] for axis in axes)
    place = permute.with_shards(tensor, after, where, spec)
    padded = None if place.is_sharded() else after
    result = PlanTensor(name, tensor.changed(shape=shape, memory_config=place, padded_shape=padded))
    buffers = permute.transpose_buffers(source, result, swapped, spec)
    dataflow = tensor.layout is Layout.TILE or all(buffer.view_of is None for buffer in buffers)
    return _run(builder, "Transpose", source, axes, result, buffers, dataflow=dataflow)


def _run(
    builder: PlanBuilder,
    program: str,
    source: PlanTensor,
    axes: tuple[int, ...],
    result: PlanTensor,
    buffers: tuple[CircularBuffer, ...],
    *,
    dataflow: bool,
) -> PlanTensor:
    """A program; block floats whose columns become rows are packed again."""
    data_format, turns = source.spec.data_format, axes[-1] != len(axes) - 1
    op = permute.Permute(
        shape=source.spec.shape, axes=axes, packed=data_format if data_format.is_block and turns else None
    )
    refused, twice = None, len(set(axes)) < len(axes)
    if twice and source.spec.layout is Layout.TILE and permute.keeps_tiles(axes):
        refused = "Invalid permutation: duplicate or out of range value\ndims: name each axis once"
    elif twice:
        builder.leave_out_values(
            f"permute: an axis occurs twice in {list(axes)}, of which the library makes numbers that ttsim does not "
            "simulate; name each axis once"
        )
    name = f"{program}DeviceOperation"
    return builder.run(name, op, [source], result, buffers, dataflow=dataflow, refused=refused)
