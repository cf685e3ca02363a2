"""Element-wise operations of three operands: arguments, the program that the real library takes, its buffers."""

from dataclasses import dataclass, replace
from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.eltwise import broadcast, named_lengths, places_on_shards, require_near
from ops.programs.buffer_shapes import BUFFERING, require_cores
from ops.programs.eltwise.shards import (
    all_lie_alike,
    on_all_cores,
    repeated,
    rescaled,
    shard_view,
    shards_beside,
    shards_beyond,
    tiles_of,
)
from ops.programs.eltwise.ternary import Ternary

AT_FIRST = ("lerp", "mac")  # operations whose result has the memory of the first tensor
ARGUMENTS = 27  # of the reader of a core
PAIR = 2  # tensors, beside a number
ROLES = ("input", "input_b", "input_c")


@dataclass(frozen=True, slots=True, kw_only=True)
class TernaryArguments:
    """A call."""

    op: Ternary
    tensors: tuple[TensorSpec, ...]  # Those of the operands that are no numbers, in order
    place: MemoryConfig | None = None  # Where the result goes; None lets the call choose
    target: TensorSpec | None = None  # The caller's tensor "target" that the result is written into, if there is one


def repeats(shapes: list[tuple[int, ...]]) -> str:
    """The broadcast of operands within tiles: "row", "column", "number", "mixed", or "" for none."""
    rows, columns = zip(*((1, 1, *shape)[-2:] for shape in shapes), strict=True)
    kinds = {(row == max(rows), column == max(columns)) for row, column in zip(rows, columns, strict=True)}
    if kinds == {(True, True)}:
        return ""
    if kinds <= {(True, True), (False, True)}:
        return "row"
    if kinds <= {(True, True), (True, False)}:
        return "column"
    return "number" if kinds <= {(True, True), (False, False)} else "mixed"


def has_kernel(shapes: list[tuple[int, ...]]) -> bool:
    """Whether one operation serves the shapes, which need not fit: the last two axes are whole or 1 in its patterns."""
    rows, columns = zip(*((1, 1, *shape)[-2:] for shape in shapes), strict=True)
    most = (max(rows), max(columns))
    if len({*columns}) == 1 or len({*rows}) == 1:
        sides = {*rows} if len({*columns}) == 1 else {*columns}
        return len(sides) == 1 or 1 in sides
    return all((row, column) == most or 1 in (row, column) for row, column in zip(rows, columns, strict=True))


def shape_of(call: TernaryArguments) -> tuple[int, ...]:
    """The shape of the result; raises DeviceError where sides differ and none is 1."""
    name, shapes = call.op.operation, [tensor.shape for tensor in call.tensors]
    if len(shapes) == PAIR:
        repeated(*shapes)
        return broadcast(*shapes)
    rank, sides = max(map(len, shapes)), list[int]()
    for index in range(-1, -rank - 1, -1):
        lengths = tuple((*(1,) * (rank - len(shape)), *shape)[index] for shape in shapes)
        sides.insert(0, max(1, *lengths))
        if {*lengths} <= {1, sides[0]}:
            require_near(index, rank, lengths)
            continue
        first = f"Broadcasting rule violation at dimension index {index} (output rank {rank}), {named_lengths(lengths)}"
        if not has_kernel(shapes):
            *most, last = [f"Shape({list(shape)})" for shape in shapes]
            first = (
                f"ttnn.{name}: shapes {', '.join(most)} and {last} do not broadcast in a pattern the ternary kernel "
                "supports"
            )
        raise DeviceError(
            f"{first}\n{name}: the sides of all tensors must be equal, or 1; axis {index} has {[*lengths]}"
        )
    return tuple(sides)


def plan_ternary(call: TernaryArguments, spec: DeviceSpec) -> Plan:
    """Plan a call of the tensors "input", "input_b", "input_c" and "target"; raises DeviceError for unfit layouts."""
    require_cores(call.op.cores, spec, call.op.operation)
    first, shape, place = call.tensors[0], shape_of(call), _place(call, spec)
    layout = first.layout if place.is_sharded() else Layout.TILE
    result_spec = call.target or TensorSpec(shape, call.op.data_format, layout, place)
    if not first.memory_config.is_sharded() and first.layout is not Layout.TILE:
        raise DeviceError(
            "Ternary operation requires tensor to be in Tile layout when working with non-sharded input tensor. Input "
            f"tensor layout: 0\n{call.op.operation}: bring the tensor into TILE_LAYOUT"
        )
    if call.target is not None and call.target.shape != shape:
        raise DeviceError(
            "When preallocted output tensor is used, Ternary operation requires its shape to match the computed shape. "
            f"Computed shape: Shape({list(shape)}), Shape in preallocated output tensor: "
            f"Shape({list(call.target.shape)})\noutput_tensor: give one of that shape"
        )
    if call.target is not None and call.target.layout is not Layout.TILE and not first.memory_config.is_sharded():
        raise DeviceError(
            "Ternary operation requires output tensor to be in Tile layout when working with non-sharded tensor.\n"
            "output_tensor: give one in TILE_LAYOUT"
        )

    def write(builder: PlanBuilder, *tensors: PlanTensor) -> PlanTensor:
        read = list(tensors[: len(call.tensors)])
        result = PlanTensor("output", result_spec) if call.target is None else tensors[-1]
        in_place = all_lie_alike([*call.tensors, result.spec])
        refused = shards_beyond(call.op.cores, result.spec, call.op.operation, ARGUMENTS) if in_place else None
        if in_place and not refused and (reason := shards_beside(call.op.cores, result.spec, call.op.operation)):
            builder.leave_out_values(reason)
        return builder.run(
            "TernaryDeviceOperation",
            call.op,
            list(tensors),
            result if call.target is None else None,
            _buffers(call, read, result, spec, in_place=in_place),
            refused=refused,
            key=(
                "ternary",
                call.op,
                repeats([tensor.shape for tensor in call.tensors]),
                tuple(
                    (tensor.data_format, tensor.memory_config, prod(tensor.padded_shape))
                    for tensor in (*call.tensors, result.spec)
                ),
            ),
        )

    named = dict(zip(ROLES, call.tensors, strict=False))
    return plan_of({**named, "target": call.target}, spec, write)


def _buffers(
    call: TernaryArguments, read: list[PlanTensor], result: PlanTensor, spec: DeviceSpec, *, in_place: bool
) -> tuple[CircularBuffer, ...]:
    """Two tiles of each tensor, or views of shards; broadcast rows have two more tiles each for the expanded rows.

    If the result is a view, tiles of interleaved operands pass through the same number of additional buffers.
    """
    ends = [*zip(ROLES, read, strict=False), ("result", result)]

    def tiles(role: str, tensor: PlanTensor) -> CircularBuffer:
        if in_place and tensor.spec.memory_config.is_sharded():
            return shard_view(role, tensor, spec)
        return tiles_of(role, BUFFERING, tensor.spec.data_format, spec, cores=call.op.cores)

    spread = len(read) == len(ROLES) and repeats([tensor.shape for tensor in call.tensors]) == "row"
    *operands, last = ends
    return (
        *(tiles(role, tensor) for role, tensor in operands),
        *(tiles(f"spread_{role}", tensor) for role, tensor in operands if spread),
        tiles(*last),
    )


def _place(call: TernaryArguments, spec: DeviceSpec) -> MemoryConfig:
    """The memory of the result: the caller's, that of the sharded tensor with the most cores, or the first tensor's."""
    if call.target is not None:
        return call.target.memory_config
    first, place, shape = call.tensors[0], call.place, shape_of(call)
    if place is not None and (not place.is_sharded() or place.shard_spec is not None):
        return place
    sharded = [tensor for tensor in call.tensors if tensor.memory_config.shard_spec is not None]
    padded = TensorSpec(shape, first.data_format, first.layout).padded_shape
    if place is not None:
        shards = rescaled(sharded[0].shards, sharded[0], padded) if sharded else None
        return replace(place, shard_spec=shards or on_all_cores(padded, place.memory_layout, spec, "Ternary"))
    if not sharded or call.op.operation in AT_FIRST:
        return first.memory_config
    return places_on_shards(max(sharded, key=lambda tensor: tensor.shards.num_cores()), shape)
