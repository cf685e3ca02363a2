"""The plan of ttnn.concat.

Rules: ttnn 0.81.1, compared with recorded plans. Shards are joined where they are along axes that they are whole on;
along others they are gathered first. Rows that end within what memory aligns are turned, joined, and turned back.
"""

from collections.abc import Sequence

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.memory.tiles import TILE
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.concatenation.refusals import joins_in_place, require_one_shape, shards_refusal
from ops.calls.rearranging.turning import permuted_by
from ops.calls.relaying.places import placed
from ops.meanings import MEANINGS
from ops.programs.concat.buffers import page_buffers, ragged_buffers, shard_views, turned_buffers
from ops.programs.concat.work import Concatenate
from ops.programs.tiling.plan import in_other_layout, unpadded_by

CONCAT = "ConcatDeviceOperation"


def plan_concat(
    sources: Sequence[TensorSpec], axis: int, spec: DeviceSpec, *, place: MemoryConfig | None = None, groups: int = 1
) -> Plan:
    """Plan a concatenation of the tensors "input_0", "input_1" and so on.

    Args:
        sources: The tensors; one alone is only brought to its place.
        axis: Along which, counted from the first axis.
        spec: The device.
        place: Where the result goes; None for DRAM.
        groups: Parts that each is cut into along the axis, if two tensors of HEIGHT shards are joined where they are;
            the library does not cut others.

    Raises:
        ArgumentError: The library takes programs that are not simulated.
        DeviceError: The tensors do not go together.
    """
    require_one_shape(sources, axis)
    builder = PlanBuilder(spec, {f"input_{number}": one for number, one in enumerate(sources)})
    inputs = [builder.tensor(f"input_{number}") for number in range(len(sources))]
    where = DRAM_MEMORY_CONFIG if place is None else place
    if len(inputs) == 1:
        result = placed(builder, inputs[0], where, "output")
    elif sources[0].memory_config.is_sharded():
        result = _of_shards(builder, inputs, axis, where, groups)
    else:
        result = _interleaved(builder, inputs, axis, where)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _ends_unaligned(inputs: Sequence[PlanTensor], axis: int, spec: DeviceSpec) -> bool:
    """Whether tensors are joined behind rows that end within what their memory aligns; a block float is one byte."""
    if axis != len(inputs[0].spec.shape) - 1:
        return False
    for one in inputs:
        in_dram = one.spec.memory_config.buffer_type is BufferType.DRAM
        alignment = (spec.dram if in_dram else spec.l1).alignment_bytes
        if one.spec.padded_shape[-1] * (one.spec.data_format.element_bytes or 1) % alignment:
            return True
    return False


def _joined(inputs: Sequence[PlanTensor], axis: int, place: MemoryConfig) -> TensorSpec:
    first = inputs[0].spec
    shape = list(first.shape)
    shape[axis] = sum(one.spec.shape[axis] for one in inputs)
    return TensorSpec(shape, first.data_format, first.layout, place)


def _of_shards(
    builder: PlanBuilder, inputs: list[PlanTensor], axis: int, place: MemoryConfig, groups: int
) -> PlanTensor:
    """Shards are joined on their cores; an interleaved result is dealt by a program of its own."""
    last, tiled = len(inputs[0].spec.shape) - 1, inputs[0].spec.layout is Layout.TILE
    ragged = tiled and any(one.spec.shape[axis] != one.spec.padded_shape[axis] for one in inputs)
    if ragged or _ends_unaligned(inputs, axis, builder.device_spec):
        raise ArgumentError(
            "concat: shards that end within a tile, or rows within 16 bytes, are not simulated; "
            "move them to interleaved memory first"
        )
    if not place.is_sharded() and not joins_in_place(inputs[0].spec, axis):
        gathered = [placed(builder, one, place, f"{one.name}.interleaved") for one in inputs]
        result = _paged(builder, gathered, axis, place, "output")
        builder.free(*gathered)
        return result
    sharded = place if place.is_sharded() else _shards_of_result(inputs, axis == last)
    made = PlanTensor("output" if place.is_sharded() else "output.sharded", _joined(inputs, axis, sharded))
    refused = shards_refusal(
        [one.spec for one in inputs], made.spec, axis, groups, builder.device_spec.l1.alignment_bytes
    )
    by_height = sharded.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    pair = len(inputs) == 2 and by_height and axis == last
    buffers = turned_buffers if pair and tiled else shard_views
    work = Concatenate(axis=axis, shapes=tuple(one.spec.shape for one in inputs), groups=groups if pair else 1)
    builder.run(
        CONCAT,
        work,
        inputs,
        output=made,
        circular_buffers=() if refused else buffers(inputs, made, builder.device_spec),
        dataflow=pair,
        key=("concat", work, tuple(one.spec for one in inputs), made.spec),
        refused=refused,
    )
    if place.is_sharded():
        return made
    result = placed(builder, made, place, "output")
    builder.free(made)
    return result


def _shards_of_result(inputs: Sequence[PlanTensor], by_columns: bool) -> MemoryConfig:
    """The cores of the first tensor, with all columns (or rows) side by side."""
    if any(one.spec.memory_config.shard_spec is None for one in inputs):
        raise DeviceError("bad optional access\nconcat: shard all tensors, or none")
    first, shards = inputs[0].spec.memory_config, inputs[0].spec.shards
    rows, columns = zip(*(one.spec.shards.shape for one in inputs), strict=True)
    shape = (rows[0], sum(columns)) if by_columns else (sum(rows), columns[0])
    return MemoryConfig(first.memory_layout, first.buffer_type, ShardSpec(shards.grid, shape, shards.orientation))


def _interleaved(builder: PlanBuilder, inputs: list[PlanTensor], axis: int, place: MemoryConfig) -> PlanTensor:
    """Pages are joined as they are; what is ragged goes through rows, and what is not aligned is turned."""
    rank = len(inputs[0].spec.shape)
    tiled = inputs[0].spec.layout is Layout.TILE
    ragged = tiled and axis >= rank - 2 and any(one.spec.shape[axis] % TILE for one in inputs)
    if ragged and (axis == rank - 2 or inputs[0].spec.data_format.is_block):
        rows = [unpadded_by(builder, one, one.spec.shape, one.spec.memory_config, f"{one.name}.rows") for one in inputs]
        joined = _aligned(builder, rows, axis, place, "output.rows")
        result = in_other_layout(builder, joined, Layout.TILE, "output")
        builder.free(joined, *rows)
        return result
    if ragged:
        return _paged(builder, inputs, axis, place, "output", ragged=True)
    return _aligned(builder, inputs, axis, place, "output")


def _aligned(builder: PlanBuilder, inputs: list[PlanTensor], axis: int, place: MemoryConfig, name: str) -> PlanTensor:
    """Pages as they are; the last two axes are swapped before and after if these would end unaligned."""
    if not _ends_unaligned(inputs, axis, builder.device_spec):
        return _paged(builder, inputs, axis, place, name)
    if axis == 0:
        raise ArgumentError("concat: tensors of one axis are not simulated; give them another one")
    swapped = (*range(axis - 1), axis, axis - 1)
    turned = [permuted_by(builder, one, swapped, one.spec.memory_config, f"{one.name}.turned") for one in inputs]
    joined = _paged(builder, turned, axis - 1, place, f"{name}.turned")
    result = permuted_by(builder, joined, swapped, place, name)
    builder.free(joined, *turned)
    return result


def _paged(
    builder: PlanBuilder,
    inputs: list[PlanTensor],
    axis: int,
    place: MemoryConfig,
    name: str,
    *,
    ragged: bool = False,
) -> PlanTensor:
    made = PlanTensor(name, _joined(inputs, axis, place))
    spec = builder.device_spec
    specs = [one.spec for one in inputs]
    work = Concatenate(axis=axis, shapes=tuple(one.shape for one in specs))
    return builder.run(
        CONCAT,
        work,
        inputs,
        output=made,
        circular_buffers=ragged_buffers(specs, made.spec, spec) if ragged else page_buffers(specs, made.spec, spec),
        dataflow=not ragged,
        key=("concat", work, tuple(specs), made.spec),
    )
