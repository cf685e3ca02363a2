"""Plans that bring a tensor on the device to another place.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.movement.placement import L1_ALIGNMENT_BYTES, resharding
from ops.programs.movement.work import Conversion, Relayout
from ops.programs.tiling.plan import dealt


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
    """A copy of a tensor in a place, which stays allocated; the tensor itself if nothing changes."""
    given = source.spec
    made = in_place(given, place, data_format)
    if place == given.memory_config:
        return source
    sharded = given.memory_config.is_sharded()
    if sharded and place.is_sharded():
        direct = resharding(given, place)
        if direct is not None:
            return dealt(builder, direct, source, made, name)
        by_way = in_place(given, DRAM_MEMORY_CONFIG, None)
        between = dealt(builder, Conversion.SHARDED_TO_INTERLEAVED, source, by_way, f"{name}.interleaved")
        copy = dealt(builder, Conversion.INTERLEAVED_TO_SHARDED, between, made, name)
        builder.free(between)
        return copy
    conversion = {
        (True, False): Conversion.SHARDED_TO_INTERLEAVED,
        (False, True): Conversion.INTERLEAVED_TO_SHARDED,
    }.get((sharded, place.is_sharded()), Conversion.COPY)
    return dealt(builder, conversion, source, made, name)


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
    if source.layout is Layout.ROW_MAJOR and shards.shape[1] * (source.data_format.element_bytes or 0) % (
        L1_ALIGNMENT_BYTES
    ):
        raise DeviceError(
            "Shard page size must currently have L1 aligned page size\n"
            f"rows of {shards.shape[1]} elements are no whole multiple of {L1_ALIGNMENT_BYTES} bytes; give wider shards"
        )
    return _one(Conversion.INTERLEAVED_TO_SHARDED, source, made, spec)


def plan_sharded_to_interleaved(
    source: TensorSpec, place: MemoryConfig, spec: DeviceSpec, *, data_format: DataFormat | None = None
) -> Plan:
    """Plan an interleaved copy of the sharded tensor "input"; raises DeviceError for what the program can not do."""
    if not source.memory_config.is_sharded():
        raise DeviceError("Input tensor must be sharded\ninput_tensor: it is interleaved already")
    return _one(Conversion.SHARDED_TO_INTERLEAVED, source, in_place(source, place, data_format), spec)


def plan_reshard(source: TensorSpec, place: MemoryConfig, spec: DeviceSpec) -> Plan:
    """Plan a copy of the sharded tensor "input" in other shards; raises DeviceError for what the program can not do."""
    made = in_place(source, place, None)
    held, wanted = source.memory_config.shard_spec, place.shard_spec
    if held is None or wanted is None:
        raise DeviceError("input must be sharded\nreshard: both places need a ShardSpec")
    if source.layout is Layout.ROW_MAJOR and resharding(source, place) is not Conversion.RESHARD:
        for which, width in (("Input", held.shape[1]), ("Output", wanted.shape[1])):
            page_bytes = width * (source.data_format.element_bytes or 0)
            if page_bytes % L1_ALIGNMENT_BYTES:
                raise DeviceError(
                    f"{which} row-major shard width {width} with data type "
                    f"DataType::{source.data_format.name.upper()} gives page size {page_bytes} bytes, which must be "
                    f"aligned to {L1_ALIGNMENT_BYTES} bytes for reshard\ngive tiles, or wider shards"
                )
    return _one(Conversion.RESHARD, source, made, spec)


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
    made = in_place(source, where, None)
    builder.relocate(PlanTensor("input", made), Relayout(Conversion.MOVE))
    return builder.finish({"output": "input"}, {"input": made}, known_works=MEANINGS)


def _one(conversion: Conversion, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> Plan:
    builder = PlanBuilder(spec, {"input": source})
    result = dealt(builder, conversion, builder.tensor("input"), made, "output")
    return builder.finish({"output": result.name}, known_works=MEANINGS)
