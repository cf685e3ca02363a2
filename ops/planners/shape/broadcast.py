"""The plan of ttnn.experimental.broadcast_to. Rules: ttnn 0.81.1 (experimental/bcast_to), compared with its plans."""

from collections.abc import Iterator
from itertools import chain

from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.permute import RANK
from ops.programs.data_movement.broadcast import Broadcast, broadcast_buffers


def plan_broadcast_to(
    source: TensorSpec,
    shape: tuple[int, ...],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan the broadcast of the tensor "input" to a shape, into the caller's tensor "target" if given.

    The memory config is checked even with a target. Raises DeviceError for a refused call.
    """
    where = source.memory_config if place is None else place
    for text in chain(_refusals(source, shape, where, target, spec), _target_refusals(source, shape, target)):
        raise DeviceError(text)
    result = TensorSpec(shape, source.data_format, source.layout, where) if target is None else target

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        op, output = Broadcast(shape=shape, data_format=source.data_format), PlanTensor("output", result)
        made = builder.run("BcastToOperation", op, [tensor], output, broadcast_buffers(source, spec))
        return made if into is None else builder.written_into(made, into)

    return plan_of({"input": source, "target": target}, spec, write)


def _target_refusals(source: TensorSpec, shape: tuple[int, ...], target: TensorSpec | None) -> Iterator[str]:
    """The program's refusals of a tensor that receives the result, in its order."""
    if target is None:
        return
    if target.shape != shape:
        shapes = list(target.shape), list(shape)
        yield (
            f"bcast_to: Invalid output shape Shape({shapes[0]})Output shape must match operation attributes "
            f"Shape({shapes[1]})\noutput: give one of that shape"
        )
    layouts = [f"Layout::{tensor.layout.name}" for tensor in (source, target)]
    data_types = [f"DataType::{tensor.data_format.name.upper()}" for tensor in (source, target)]
    for what, (own, other) in (("layout", layouts), ("dtype", data_types)):
        if own != other:
            yield f"bcast_to: Input {own} and output {other} must have same {what}\noutput: give one like the input"


def _refusals(
    source: TensorSpec, shape: tuple[int, ...], place: MemoryConfig, target: TensorSpec | None, spec: DeviceSpec
) -> Iterator[str]:
    own, name = source.shape, "output_shape"
    sizes = f"Shape({list(own)})({len(own)})", f"Shape({list(shape)})({len(shape)})"
    if len(own) > len(shape):
        yield (
            f"Input tensor shape {sizes[0]} must be at least as large as the broadcast shape {sizes[1]}, which it is "
            f"not\n{name}: give a side for each axis"
        )
    if len(shape) > RANK:
        yield f"Tensor shape and broadcast size {sizes[0]} {sizes[1]} must be at most 4D\n{name}: give at most 4 sides"
    for index in range(-1, -len(own) - 1, -1):
        if own[index] not in (1, shape[index]):
            yield (
                f"Input dimension {index} (size {own[index]}) cannot be broadcast to output dimension {index} (size "
                f"{shape[index]})\n{name}: only sides of 1 are repeated"
            )
    if place.is_sharded() and target is None:  # the result's shards come first
        require_shard_spec(place, in_rows=source.layout is Layout.ROW_MAJOR)
        TensorSpec(shape, source.data_format, source.layout, place).require_on(spec)
    if source.layout is not Layout.TILE:
        yield (
            f"bcast_to: Invalid tensor memory layout Layout::{source.layout.name}. Input tensor layout must be TILE.\n"
            "input: use ttnn.to_layout"
        )
    for which, config in (("Input tensor", source.memory_config.reported()), ("Output memory config", place)):
        if config.is_sharded():
            yield (
                f"bcast_to: Invalid {which.split()[0].lower()} memory config {config}. {which} sharding not supported\n"
                "give interleaved memory"
            )
