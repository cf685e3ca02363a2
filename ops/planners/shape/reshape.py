"""Plans that give a tensor another shape.

Rules: ttnn 0.81.1 (data_movement/reshape_view), compared with recorded plans.
"""

from collections.abc import Collection
from dataclasses import replace
from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import OP_MODELS
from ops.planners.shape.pad import fill_padding
from ops.planners.to_config import placed
from ops.programs.buffer_shapes import row_bytes
from ops.programs.data_movement.conversions import copied
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.reshape_plan import dealt_anew, is_view, moved_rows, moved_tiles, seen_anew
from ops.programs.data_movement.typecast import typecast_by

Shape = tuple[int, ...]

RANK = 4


def plan_reshape(
    source: TensorSpec,
    shape: Shape,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    filler: float | None = None,
) -> Plan:
    """Plan the tensor "input" in another shape: the same buffer where its pages stay, else by a program.

    Args:
        filler: What the padding of tiles is to hold; None if that does not matter.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: The volumes differ, or there are no shards to deal.
    """
    if prod(shape) != source.volume:
        raise DeviceError(
            "Attempting to reshape between two shapes with different volumes\n"
            f"shape: a tensor of {source.volume} elements does not take the shape {list(shape)}"
        )
    builder = PlanBuilder(spec, {"input": source})
    given = builder.tensor("input")
    result = builder.attempt(lambda: _reshaped(builder, given, shape, place, filler), given)
    return builder.finish({"output": result.name}, {result.name: result.spec}, known_works=OP_MODELS)


def _reshaped(
    builder: PlanBuilder, source: PlanTensor, shape: Shape, place: MemoryConfig | None, filler: float | None
) -> PlanTensor:
    """The tensor in another shape of its volume; arguments as of `plan_reshape`."""
    given, where = source.spec, source.spec.memory_config if place is None else place
    if shape == given.shape == given.padded_shape:
        return placed(builder, source, where, "output")
    if _stays(given, shape, where):
        return PlanTensor(source.name, seen_anew(given, shape, builder.device_spec))
    if given.layout is Layout.ROW_MAJOR:
        return _rows(builder, source, shape, where)
    return _tiles(builder, source, shape, where, explicit=place is not None, filler=filler)


def plan_squeeze(source: TensorSpec, gone: Collection[int], spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" without axes of length 1; errors as of `plan_reshape`.

    Rows keep the padding that their shards give them, as long as they stay rows of a matrix.
    """
    shape, padded = (
        tuple(side for axis, side in enumerate(sides) if axis not in gone)
        for sides in (source.shape, source.padded_shape)
    )
    if source.layout is Layout.TILE or len(shape) < 2 or len(source.shape) - 1 in gone:
        return plan_reshape(source, shape, spec)
    return _plan_view(source, shape, padded, spec)


def plan_unsqueeze_to_4d(source: TensorSpec, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" seen in four axes: the buffer stays with its padding, whatever its shards are."""
    more, padding = [1] * (RANK - len(source.shape)), [1] * (RANK - len(source.padded_shape))
    return _plan_view(source, (*more, *source.shape), (*padding, *source.padded_shape), spec)


def _plan_view(source: TensorSpec, shape: Shape, padded: Shape, spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" seen in other axes, with and without padding."""
    builder = PlanBuilder(spec, {"input": source})
    made = TensorSpec(shape, source.data_format, source.layout, source.memory_config, padded)
    return builder.finish({"output": "input"}, {"input": made}, known_works=OP_MODELS)


def _stays(source: TensorSpec, shape: Shape, where: MemoryConfig) -> bool:
    """Whether the buffer is seen anew: its pages stay, and so do its memory and whether it is sharded."""
    held = source.memory_config
    same = where.is_sharded() is held.is_sharded() and where.buffer_type is held.buffer_type
    return same and is_view(source, shape)


def _apart(place: MemoryConfig) -> MemoryConfig:
    """The same memory without shards."""
    return MemoryConfig(buffer_type=place.buffer_type)


def _shards(source: TensorSpec, made: TensorSpec, where: MemoryConfig, *, explicit: bool) -> MemoryConfig:
    """Where an interleaved tensor goes that is to be sharded as ``where`` says, or as the source is.

    BLOCK shards that somebody asked for stay, if they hold the tensor.
    """
    if where.shard_spec is None:
        held = source.memory_config.shard_spec
        if held is None:
            raise DeviceError(
                "ttnn.reshape: sharded output memory_config (layout="
                f"TensorMemoryLayout::{where.memory_layout.name}) was supplied without a shard_spec, and no "
                "input_shard_spec is available (input is likely interleaved). Either provide a shard_spec on "
                "memory_config or omit memory_config to inherit it from the input tensor.\n"
                "memory_config: give it a ShardSpec"
            )
        return dealt_anew(made, replace(where, shard_spec=held))
    if explicit and where.memory_layout is TensorMemoryLayout.BLOCK_SHARDED and _holds(where, made):
        return where
    return dealt_anew(made, where)


def _holds(where: MemoryConfig, made: TensorSpec) -> bool:
    """Whether BLOCK shards of whole tiles, or of any rows, hold a tensor."""
    shards = where.shard_spec
    if shards is None:
        return False
    box, along = shards.grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
    high, wide = (box.rows, box.cols) if along else (box.cols, box.rows)
    whole = made.layout is Layout.ROW_MAJOR or not any(side % TILE for side in shards.shape)
    rows, columns = made.matrix
    return whole and high * shards.shape[0] >= rows and wide * shards.shape[1] >= columns


def _rows(builder: PlanBuilder, source: PlanTensor, shape: Shape, where: MemoryConfig) -> PlanTensor:
    """Rows of another length: shards are left for it, and made again."""
    read = _gathered(builder, source)
    flat = TensorSpec(shape, read.spec.data_format, Layout.ROW_MAJOR, _apart(where))
    place = _shards(source.spec, flat, where, explicit=False) if where.is_sharded() else where
    name = "output.moved" if place.is_sharded() else "output"
    result = moved = moved_rows(builder, read, shape, _apart(where), name)
    if place.is_sharded():
        alignment = builder.device_spec.l1.alignment_bytes
        if _ends_between(flat, place, alignment):
            raise DeviceError(
                "Shard page size must currently have L1 aligned page size\n"
                f"shape: rows of shards would be no whole multiple of {alignment} bytes; give memory_config"
            )
        made = TensorSpec(shape, flat.data_format, Layout.ROW_MAJOR, place)
        result = copied(builder, Conversion.INTERLEAVED_TO_SHARDED, moved, made, "output")
        builder.free(moved)
    if read.name != source.name:
        builder.free(read)
    return result


def _ends_between(tensor: TensorSpec, place: MemoryConfig, alignment_bytes: int) -> bool:
    """Whether rows of shards end between aligned addresses."""
    shards = place.shard_spec
    in_rows = tensor.layout is Layout.ROW_MAJOR
    return in_rows and shards is not None and row_bytes(tensor, shards.shape[1]) % alignment_bytes != 0


def _gathered(builder: PlanBuilder, source: PlanTensor) -> PlanTensor:
    """The tensor interleaved in the memory where it is; itself if it is."""
    spec = source.spec
    if not spec.memory_config.is_sharded():
        return source
    alignment = builder.device_spec.l1.alignment_bytes
    if _ends_between(spec, spec.memory_config, alignment):
        raise DeviceError(
            f"Shard page size must be aligned to {alignment}B for L1 Tensor\n"
            "input_tensor: its shards have rows of other lengths; give wider shards, or interleaved memory"
        )
    made = TensorSpec(spec.shape, spec.data_format, spec.layout, _apart(spec.memory_config))
    return copied(builder, Conversion.SHARDED_TO_INTERLEAVED, source, made, "gathered")


def _tiles(
    builder: PlanBuilder, source: PlanTensor, shape: Shape, where: MemoryConfig, *, explicit: bool, filler: float | None
) -> PlanTensor:
    """Rows of tiles move between tiles; block floats do so as bfloat16."""
    if source.spec.data_format.is_block:
        return _block_floats(builder, source, shape, where, explicit=explicit, filler=filler or 0.0)
    spec = source.spec
    flat = TensorSpec(shape, spec.data_format, Layout.TILE, _apart(where))
    place = _shards(spec, flat, where, explicit=explicit) if where.is_sharded() else where
    gathers = where.is_sharded() and not place.is_sharded()
    read = _gathered(builder, source) if gathers else source
    result = moved_tiles(builder, read, shape, place, "output")
    if filler is not None and _is_ragged(shape):
        if place.is_sharded():
            raise ArgumentError("reshape: pad_value of a result in shards is not simulated; leave it out")
        result = fill_padding(builder, result, filler, "output")
    if read.name != source.name:
        builder.free(read)
    return result


def _is_ragged(shape: Shape) -> bool:
    return any(side % TILE for side in (1, *shape)[-2:])


def _block_floats(
    builder: PlanBuilder, source: PlanTensor, shape: Shape, where: MemoryConfig, *, explicit: bool, filler: float
) -> PlanTensor:
    """Block floats move as bfloat16, and are filled before the way back, since padding shares exponents."""
    read = _gathered(builder, source) if where.is_sharded() else source
    wide = typecast_by(builder, read, BFLOAT16, "bfloat16")
    if read.name != source.name:
        builder.free(read)
    moved = moved_tiles(builder, wide, shape, _apart(where), "output.moved")
    if _is_ragged(shape):
        fill_padding(builder, moved, filler, "output.moved")
    data_format = source.spec.data_format
    flat = TensorSpec(shape, data_format, Layout.TILE, _apart(where))
    place = _shards(source.spec, flat, where, explicit=explicit) if where.is_sharded() else where
    narrow = result = typecast_by(builder, moved, data_format, "output.narrow" if place.is_sharded() else "output")
    builder.free(moved)
    if place.is_sharded():
        made = TensorSpec(shape, data_format, Layout.TILE, place)
        result = copied(builder, Conversion.INTERLEAVED_TO_SHARDED, narrow, made, "output")
        builder.free(narrow)
    builder.free(wide)
    return result
