"""Plans that split tiles into parts of equal width by one program. Rules: ttnn 0.81.1 and recorded plans."""

from collections.abc import Sequence
from dataclasses import replace

from device.errors import NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig, ShardOrientation
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.data_movement.permute import even_shards
from ops.programs.data_movement.split import SplitWidth, split_buffers, split_cores


def plan_split(source: TensorSpec, parts: int, spec: DeviceSpec, *, place: MemoryConfig | None = None) -> Plan:
    """Plan the parts "output_0", "output_1" and so on of the tensor "input", on the cores of `split_cores`."""
    builder, cores = PlanBuilder(spec, {"input": source}), split_cores(source, parts, spec)
    if cores is None:
        raise NotSimulatedError(f"split: the grid has no cores for {parts} parts of {source.shape[-1]} columns; slice")
    shape = (*source.shape[:-1], source.shape[-1] // parts)
    where = source.memory_config if place is None else place
    result = source.changed(shape=shape, memory_config=where)
    outputs = [PlanTensor(f"output_{number}", result) for number in range(parts)]
    op = SplitWidth(shape=source.shape, parts=parts)
    builder.run(
        "SplitDeviceOperation", op, [builder.tensor("input")], outputs[0], split_buffers(source, cores),
        more_outputs=outputs[1:], dataflow=True, key=("split", op, source, result),
    )  # fmt: skip
    return builder.finish({output.name: output for output in outputs})


def parts_place(source: TensorSpec, sizes: Sequence[int], axis: int) -> MemoryConfig:
    """The default memory of parts of a tensor: the tensor's, or DRAM if its shards cannot be split equally.

    Each part takes an equal part of each shard: of its rows, or of its columns if the last axis is split.
    """
    place, shards = source.memory_config, source.memory_config.shard_spec
    if shards is None or len(sizes) == 1:
        return place
    by_columns = axis == len(source.shape) - 1
    shape = list(shards.shape)
    shape[by_columns], rest = divmod(shape[by_columns], len(sizes))
    ragged = source.layout is Layout.TILE and shape[by_columns] % TILE
    if len(set(sizes)) > 1 or sum(sizes) != source.shape[axis] or rest or ragged:
        return DRAM_MEMORY_CONFIG
    return replace(place, shard_spec=shards.changed(shape=(shape[0], shape[1])))


def place_without_shards(
    source: TensorSpec, sizes: Sequence[int], axis: int, place: MemoryConfig, spec: DeviceSpec
) -> MemoryConfig:
    """The memory of parts if the caller gives a scheme without shards: DRAM if parts differ in size.

    Equal parts keep a tensor's shards in its own scheme, and get even shards on all cores in another scheme.
    """
    if len(set(sizes)) > 1 or sum(sizes) != source.shape[axis]:
        return DRAM_MEMORY_CONFIG
    shards = source.memory_config.shard_spec
    if shards is not None and source.memory_config.memory_layout is place.memory_layout:
        return parts_place(source, sizes, axis)
    shape = (*source.shape[:axis], sizes[0], *source.shape[axis + 1 :])
    padded = TensorSpec(shape, source.data_format, source.layout).padded_shape
    orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
    return replace(place, shard_spec=even_shards(padded, place.memory_layout, orientation, spec.grid))
