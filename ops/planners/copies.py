"""Plans that copy a tensor: into a new one, or into another tensor. Rules: ttnn 0.81.1 and recorded plans."""

from collections.abc import Collection
from functools import partial

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import DataFormat
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.to_config import target_refusals
from ops.programs.data_movement.conversions import cloned, copied, filled
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.partial import OfSlice


def plan_clone(
    source: TensorSpec,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
) -> Plan:
    """Plan a copy of the tensor "input" in a memory and a format; a ``place`` of None means the tensor's own memory."""
    where = source.memory_config if place is None else place
    return plan_of(source, spec, partial(cloned, place=where, name="output", data_format=data_format))


def plan_assign(
    source: TensorSpec,
    place: MemoryConfig,
    spec: DeviceSpec,
    *,
    data_format: DataFormat | None = None,
    target: TensorSpec | None = None,
) -> Plan:
    """Plan a copy of the tensor "input" in a memory (maybe its own), or in the caller's tensor "target" there."""
    result = source.changed(memory_config=place, data_format=data_format)
    for text in () if target is None else target_refusals(source, target, place, result.data_format):
        raise DeviceError(f"{text}\noutput tensor: give one like the result, or leave it out")

    def write(builder: PlanBuilder, tensor: PlanTensor, into: PlanTensor | None = None) -> PlanTensor:
        return copied(builder, Conversion.COPY, tensor, result, "output", into=into)

    return plan_of({"input": source, "target": target}, spec, write)


def plan_copy(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Plan:
    """Plan a copy of the values of the tensor "input" into the tensor "target"."""
    way_out = "input_b: give a tensor of the same shape and layout"
    if source.shape != target.shape:
        raise DeviceError(
            f"Input tensor shape Shape({list(source.shape)}) does not match output tensor shape "
            f"Shape({list(target.shape)})\n{way_out}"
        )
    if source.layout is not target.layout:
        raise DeviceError(
            f"Input tensor layout (Layout::{source.layout.name}) must equal output tensor layout "
            f"(Layout::{target.layout.name})\n{way_out}"
        )
    if source.data_format != target.data_format and source.layout is not Layout.TILE:
        raise DeviceError(f"Only tile layout supports dtype conversion\n{way_out}")
    return plan_of({"input": source, "target": target}, spec, filled)


def written_or_copied(
    builder: PlanBuilder, result: PlanTensor, target: PlanTensor, programs: Collection[str]
) -> PlanTensor:
    """The caller's tensor with a result: some programs write into it directly, other results are copied.

    Both have one shape, layout and data type.
    """
    if builder.maker(result) in programs:
        return builder.written_into(result, target)
    copied_into = filled(builder, result, target)
    builder.free_own(result)
    return copied_into


def require_floats(owner: str, plan: Plan) -> None:
    """Raises ArgumentError for a plan that copies floats as integers, or integers of other widths, bit by bit."""
    for step in plan.steps:
        op = step.op if isinstance(step, Operation) else None
        if not isinstance(op, CopyTensor | OfSlice) or op.formats is None or not op.casts:
            continue
        before, after = op.formats
        if not (before.is_float and after.is_float):
            raise ArgumentError(
                f"{owner}: the real library copies the bits of {before} to {after}, which gives other numbers; use "
                "ttnn.typecast"
            )
