"""Plans that split tiles into parts of equal width by one program. Rules: ttnn 0.81.1 and recorded plans."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from device.errors import NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
)
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.data_movement.permute import adjusted, even_shards
from ops.programs.data_movement.split import SplitWidth, split_buffers, split_cores

PARTS_OF_L1 = 2  # that are cut from a tensor in L1, whatever room it has
TILES_OF_A_PART = 4  # in L1, by the real library's estimate of what parts in L1 take beside their elements


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


def parts_place(
    source: TensorSpec, sizes: Sequence[int], axis: int, place: MemoryConfig | None, spec: DeviceSpec, l1_bytes: int
) -> MemoryConfig:
    """The memory of parts of a tensor: that of the caller, or by default the tensor's.

    Shards that are not given follow the tensor's in its own scheme, and are even in another scheme. The parts are in
    DRAM if their shards cannot be equal, and by default if the library expects ``l1_bytes`` of L1 not to hold them.
    """
    current, shards = source.memory_config, source.memory_config.shard_spec
    part, padded = None, list(source.padded_shape)
    if len(set(sizes)) == 1 and sum(sizes) == source.shape[axis] and padded[axis] % len(sizes) == 0:
        padded[axis] //= len(sizes)
        part = tuple(padded)
    if place is None and not current.is_sharded():
        return current if _fits(source, len(sizes), l1_bytes) else DRAM_MEMORY_CONFIG
    if place is not None and (not place.is_sharded() or place.shard_spec is not None):
        return place
    if part is None:
        return DRAM_MEMORY_CONFIG
    where, fitted = current if place is None else place, None
    if shards is not None and current.memory_layout is where.memory_layout:
        fitted = adjusted(shards, source.padded_shape, part, Layout.ROW_MAJOR if place else source.layout)
    if place is None:
        fits = fitted is not None and _fits(source, len(sizes), l1_bytes)
        return replace(current, shard_spec=fitted) if fits else DRAM_MEMORY_CONFIG
    orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
    return replace(place, shard_spec=fitted or even_shards(part, place.memory_layout, orientation, spec.grid))


def _fits(source: TensorSpec, parts: int, l1_bytes: int) -> bool:
    """Whether the library expects the L1 of a core to hold all parts of a tensor in L1; two always fit."""
    if parts <= PARTS_OF_L1 or source.memory_config.buffer_type is BufferType.DRAM:
        return True
    tile_bytes, volume = source.data_format.tile_bytes, prod(source.padded_shape)
    if source.layout is Layout.TILE:
        part_bytes = volume // TILE**2 // parts * tile_bytes
    else:
        part_bytes = volume // parts * (source.data_format.element_bytes or 0)
    return part_bytes * parts + TILES_OF_A_PART * parts * tile_bytes <= l1_bytes
