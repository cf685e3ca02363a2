"""The plan of a sum, difference or product of two tensors on the device, or of a tensor and a number.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.elementwise.binary_arguments import BinaryArguments, require_formats
from ops.calls.elementwise.binary_buffers import Repeated, binary_buffers, repeated, works_on_shards
from ops.meanings import MEANINGS
from ops.programs.eltwise.binary import Binary
from ops.programs.eltwise.sharding import on_all_cores, rescaled, with_shards
from ops.programs.tiling.plan import in_other_layout

LONGEST_REPEATED = 6  # axes that may be repeated, counted from the last


def plan_binary(call: BinaryArguments, spec: DeviceSpec) -> Plan:
    """Plan a call; its tensors are "input", "input_b" and "target".

    Raises:
        DeviceError: The shapes do not go together, or the result does not fit its place.
    """
    named = {"input": call.left, "input_b": call.right, "target": call.target}
    builder = PlanBuilder(spec, {name: one for name, one in named.items() if one is not None})
    given = [builder.tensor(name) for name in ("input", "input_b") if named[name] is not None]
    in_rows = [one.spec.layout is Layout.ROW_MAJOR for one in given]
    sharded = any(one.spec.memory_config.is_sharded() for one in given)
    by_rows = all(in_rows) and not sharded
    if all(in_rows) and call.target is not None:
        raise DeviceError(
            "Optional output tensor with Row Major input is not supported right now for Elementwise operations\n"
            "output_tensor: leave it out, or give the inputs in TILE_LAYOUT"
        )
    require_formats(call)
    read = given if by_rows else [in_other_layout(builder, one, Layout.TILE, f"{one.name}.tiles") for one in given]
    result = _combined(builder, call, read, by_rows=by_rows)
    if all(in_rows) and not by_rows:
        tiles, result = result, in_other_layout(builder, result, Layout.ROW_MAJOR, "output.rows")
        builder.free(tiles)
    for one in reversed(read):
        if builder.is_own(one) and one.name != result.name:
            builder.free(one)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _combined(builder: PlanBuilder, call: BinaryArguments, read: list[PlanTensor], *, by_rows: bool) -> PlanTensor:
    """The one device operation."""
    left, right = read[0], read[1] if len(read) > 1 else None
    spec = builder.device_spec
    other = None if right is None else right.spec
    kind = Repeated.NONE if other is None else repeated(left.spec.shape, other.shape)
    shape = left.spec.shape if other is None else _broadcast(left.spec.shape, other.shape)
    out_format = call.out_format or (call.target.data_format if call.target is not None else left.spec.data_format)
    layout = Layout.ROW_MAJOR if by_rows else Layout.TILE
    if call.target is not None:
        made = builder.tensor("target")
        _require_target(call.target, shape)
    else:
        place = _place(call, left.spec, other, shape, spec)
        made = PlanTensor("output", TensorSpec(shape, out_format, layout, place))
    work = Binary(
        operation=call.operation,
        left_format=left.spec.data_format,
        right_format=None if other is None else other.data_format,
        scalar=call.scalar,
        data_format=made.spec.data_format,
        activations=call.activations,
        left_activations=call.left_activations,
        right_activations=call.right_activations,
        fast=call.fast,
        scalar_first=call.scalar_first,
    )
    on_shards = works_on_shards(left.spec, other, made.spec)
    seen = [
        (one.data_format, one.layout, one.memory_config) for one in (left.spec, other, made.spec) if one is not None
    ]
    volumes = [
        prod(one.memory_config.shard_spec.shape)
        for one in (left.spec, other, made.spec)
        if on_shards and one is not None and one.memory_config.shard_spec is not None
    ]
    return builder.run(
        "BinaryNgDeviceOperation",
        work,
        read if call.target is None else [*read, made],
        output=made if call.target is None else None,
        circular_buffers=binary_buffers(work, left, right, made, kind, spec, on_shards=on_shards),
        key=(
            "binary",
            call.operation,
            call.fast,
            call.scalar_first,
            (call.left_activations, call.right_activations, call.activations),
            other is None,
            kind,
            tuple(seen),
            tuple(volumes),
        ),
    )


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the result; raises DeviceError where two sides differ and neither is 1."""
    rank = max(len(left), len(right))
    first, second = ((1,) * (rank - len(shape)) + shape for shape in (left, right))
    for axis in range(1, rank + 1):
        a, b = first[-axis], second[-axis]
        if a != b and 1 not in (a, b):
            raise DeviceError(
                f"Broadcasting rule violation at dimension index {-axis} (output rank {rank}), dim a: {a}, dim b: {b}\n"
                "the sides of both tensors must be equal, or one of them 1"
            )
        if axis > LONGEST_REPEATED and a != b:
            raise DeviceError(
                f"Broadcasting rule violation for rank >= 7 at dimension index {-axis} (output rank {rank}). "
                f"Broadcast is supported up to rank 6. dim a: {a}, dim b: {b}\nreshape the tensors to fewer axes"
            )
    return tuple(b if a == 1 else a for a, b in zip(first, second, strict=True))


def _require_target(target: TensorSpec, shape: tuple[int, ...]) -> None:
    """Raises DeviceError if a given tensor has not the shape of the result, up to leading ones."""
    rank = max(len(target.shape), len(shape))
    if (1,) * (rank - len(target.shape)) + target.shape != (1,) * (rank - len(shape)) + shape:
        raise DeviceError(
            f"Shape of Output tensor Shape({list(target.shape)}) provided does not match the broadcasted output shape "
            f"Shape({list(shape)})\noutput_tensor: give one of that shape, or leave it out"
        )


def _place(
    call: BinaryArguments, left: TensorSpec, right: TensorSpec | None, shape: tuple[int, ...], spec: DeviceSpec
) -> MemoryConfig:
    """Where the result goes: where the caller says, else where the operand with more cores lies."""
    if call.place is not None and (not call.place.is_sharded() or call.place.shard_spec is not None):
        return call.place
    padded = TensorSpec(shape, left.data_format, left.layout).padded_shape
    if call.place is None and right is None:
        return left.memory_config
    sharded = [one for one in (left, right) if one is not None and one.memory_config.shard_spec is not None]
    chosen = sharded[0] if sharded else None
    if call.place is None and right is not None:
        chosen = _holder(left, right)
    if chosen is not None and chosen.memory_config.shard_spec is not None:
        return with_shards(chosen.memory_config, rescaled(chosen.memory_config.shard_spec, chosen, padded))
    if call.place is not None:
        return with_shards(call.place, on_all_cores(padded, call.place.memory_layout, spec))
    return left.memory_config


def _holder(left: TensorSpec, right: TensorSpec) -> TensorSpec:
    """The operand where the result of two goes if nobody says where."""
    held, other = left.memory_config.shard_spec, right.memory_config.shard_spec
    if other is None:
        return left
    if held is None:
        return right if left.memory_config.buffer_type is BufferType.DRAM else left
    return right if other.num_cores() > held.num_cores() else left
