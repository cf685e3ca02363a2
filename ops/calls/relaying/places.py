"""Plans that bring a tensor on the device to another place.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from dataclasses import replace

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.actions.pieces import rows_follow
from ops.programs.movement.copy_buffers import moved_buffers, overlapping_buffers
from ops.programs.movement.placement import resharding
from ops.programs.movement.work import Conversion, Relayout
from ops.programs.tiling.plan import dealt
from ops.programs.tiling.uneven_pages import misplaced_rows


def plan_to_memory_config(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan a copy of the tensor "input" in a place; the tensor itself if it is there.

    Raises:
        DeviceError: The shards do not hold the tensor.
    """
    builder = PlanBuilder(spec, {"input": source})
    result = placed(builder, builder.tensor("input"), place, "output", data_format=data_format)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def placed(
    builder: PlanBuilder, source: PlanTensor, place: MemoryConfig, name: str, *, data_format: DataFormat | None = None
) -> PlanTensor:
    """A copy of a tensor in a place, which stays allocated; the tensor itself if it is there, whatever the format.

    Programs that deal shards want rows that L1 aligns, and change formats of tiles alone; all else is copied.
    """
    given, spec = source.spec, builder.device_spec
    if place == given.memory_config:
        return source
    made = in_place(given, place, data_format)
    if not given.memory_config.is_sharded():
        dealt_out = place.is_sharded() and _may_deal(given, place.shard_spec, made.data_format, spec)
        return dealt(builder, Conversion.INTERLEAVED_TO_SHARDED if dealt_out else Conversion.COPY, source, made, name)
    gathers = _may_deal(given, given.memory_config.shard_spec, made.data_format, spec)
    if not place.is_sharded():
        return dealt(builder, Conversion.SHARDED_TO_INTERLEAVED if gathers else Conversion.COPY, source, made, name)
    if not _changes_width(given, place):
        if data_format is not None:
            return dealt(builder, Conversion.COPY, source, made, name)
        if resharding(given, place, spec) is Conversion.RESHARD:
            return dealt(builder, Conversion.RESHARD, source, made, name)
    if not gathers:
        return dealt(builder, Conversion.COPY, source, made, name)
    by_way = in_place(given, DRAM_MEMORY_CONFIG, data_format)
    between = dealt(builder, Conversion.SHARDED_TO_INTERLEAVED, source, by_way, f"{name}.interleaved")
    if _may_deal(by_way, place.shard_spec, made.data_format, spec):
        copy = dealt(builder, Conversion.INTERLEAVED_TO_SHARDED, between, made, name)
        builder.free(between)
        return copy
    builder.free(between)  # it is of no use
    return dealt(builder, Conversion.COPY, source, made, name)


def _changes_width(source: TensorSpec, place: MemoryConfig) -> bool:
    """Whether rows are dealt in another scheme to shards of another width, which goes by way of DRAM."""
    held, wanted = source.memory_config.shard_spec, place.shard_spec
    if source.layout is Layout.TILE or held is None or wanted is None:
        return False
    return held.shape[1] != wanted.shape[1] and source.memory_config.memory_layout is not place.memory_layout


def _may_deal(source: TensorSpec, shards: ShardSpec | None, made_format: DataFormat, spec: DeviceSpec) -> bool:
    """Whether the programs between shards and interleaved memory take a tensor."""
    return source.layout is Layout.TILE or (
        source.data_format == made_format and shards is not None and rows_follow(source, shards.shape[1], spec)
    )


def in_place(source: TensorSpec, place: MemoryConfig, data_format: DataFormat | None) -> TensorSpec:
    """A tensor in another place, and format if given."""
    return TensorSpec(source.shape, data_format or source.data_format, source.layout, place)


def plan_interleaved_to_sharded(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan a sharded copy of the interleaved tensor "input"; raises DeviceError for what the program can not do."""
    made = in_place(source, place, data_format)
    if source.memory_config.is_sharded():
        raise DeviceError("Input tensor must be interleaved\ninput_tensor: it is sharded; reshard deals shards anew")
    shards = place.shard_spec
    if shards is None:
        raise DeviceError("Shard spec must be provided\noutput_memory_config: give it a ShardSpec")
    refused = None
    if source.layout is Layout.ROW_MAJOR and not rows_follow(source, shards.shape[1], spec):
        refused = (
            "Shard page size must currently have L1 aligned page size\n"
            f"rows of {shards.shape[1]} elements are no whole multiple of {spec.l1.alignment_bytes} bytes; "
            "give wider shards"
        )
    elif source.layout is Layout.ROW_MAJOR and made.data_format != source.data_format:
        refused = "Input tensor layout must be TILE when dtype conversion is needed\noutput_dtype: leave it out"
    return _one(Conversion.INTERLEAVED_TO_SHARDED, source, made, spec, refused)


def plan_sharded_to_interleaved(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan an interleaved copy of the sharded tensor "input"; raises DeviceError for what the program can not do."""
    shards = source.memory_config.shard_spec
    if shards is None:
        raise DeviceError("Input tensor must be sharded\ninput_tensor: it is interleaved already")
    refused = None
    if source.layout is Layout.ROW_MAJOR and not rows_follow(source, shards.shape[1], spec):
        refused = (
            f"Shard page size must be aligned to {spec.l1.alignment_bytes}B for L1 Tensor\n"
            f"rows of {shards.shape[1]} elements are no whole multiple of that; to_memory_config copies them"
        )
    elif source.layout is Layout.ROW_MAJOR and data_format not in (None, source.data_format):
        refused = "If diff output type, tensor must be TILED\noutput_dtype: give tiles, or leave it out"
    return _one(Conversion.SHARDED_TO_INTERLEAVED, source, in_place(source, place, data_format), spec, refused)


def plan_reshard(source: TensorSpec, place: MemoryConfig, spec: DeviceSpec) -> Plan:
    """Plan a copy of the sharded tensor "input" in other shards; raises DeviceError for what the program can not do."""
    made = in_place(source, place, None)
    held, wanted = source.memory_config.shard_spec, place.shard_spec
    if held is None or wanted is None:
        raise DeviceError("input must be sharded\nreshard: both places need a ShardSpec")
    refused = None
    if source.layout is Layout.ROW_MAJOR and resharding(source, place, spec) is not Conversion.RESHARD:
        for which, width in (("Input", held.shape[1]), ("Output", wanted.shape[1])):
            page_bytes = width * (source.data_format.element_bytes or 0)
            if page_bytes % spec.l1.alignment_bytes:
                refused = refused or (
                    f"{which} row-major shard width {width} with data type "
                    f"DataType::{source.data_format.name.upper()} gives page size {page_bytes} bytes, which must be "
                    f"aligned to {spec.l1.alignment_bytes} bytes for reshard\ngive tiles, or wider shards"
                )
    return _one(Conversion.RESHARD, source, made, spec, refused)


def require_right_rows(plan: Plan) -> None:
    """Raises ArgumentError for a plan whose Reshard misplaces parts of rows that do not fill their shards."""
    if (text := misplaced_rows(plan)) is not None:
        raise ArgumentError(f"reshard: {text}")


def plan_move(source: TensorSpec, place: MemoryConfig | None, spec: DeviceSpec) -> Plan:
    """Plan that the tensor "input" is released and allocated again, as high in its memory as it can lie.

    Raises:
        DeviceError: It is sharded, and the place is not.
    """
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    if source.memory_config.is_sharded() and not where.is_sharded():
        raise DeviceError(
            "Expected output tensor memory config to be sharded\nmemory_config: leave it out, or give shards"
        )
    if source.memory_config.shard_spec is not None:  # a tensor keeps its shards
        where = replace(where, shard_spec=source.memory_config.shard_spec)
    made = in_place(source, where, None)
    if source.memory_config.is_sharded():
        builder.relocate(PlanTensor("input", made), Relayout(Conversion.MOVE))  # its buffers are views of both places
    else:
        apart, overlapping = moved_buffers(source, made, spec), overlapping_buffers(source, made, spec)
        builder.relocate(PlanTensor("input", made), Relayout(Conversion.MOVE), apart, overlapping)
    return builder.finish({"output": "input"}, {"input": made}, known_works=MEANINGS)


def _one(
    conversion: Conversion, source: TensorSpec, made: TensorSpec, spec: DeviceSpec, refused: str | None = None
) -> Plan:
    builder = PlanBuilder(spec, {"input": source})
    result = dealt(builder, conversion, builder.tensor("input"), made, "output", refused=refused)
    return builder.finish({"output": result.name}, known_works=MEANINGS)
