"""Moving a tensor between host, DRAM and L1, interleaved and sharded: what is allocated, and in which order.

Rules: tt-metal 0.81.1, compared with recorded runs. All functions leave their source allocated unless they say
otherwise.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import round_up
from device.plan import Free, Relocate
from device.spec.device_spec import DeviceSpec
from ops.programs.movement.staged import Staged, allocated, computed, in_place
from ops.programs.movement.work import Relayout

# Which program copies a tensor, by whether source and target are sharded.
_CONVERSIONS: Final[Mapping[tuple[bool, bool], str]] = MappingProxyType(
    {
        (True, True): "Reshard",
        (True, False): "ShardedToInterleaved",
        (False, True): "InterleavedToSharded",
        (False, False): "Copy",
    }
)


def in_memory(spec: TensorSpec, config: MemoryConfig) -> TensorSpec:
    """The same tensor in another place, padded as it is there."""
    return TensorSpec(spec.shape, spec.data_format, spec.layout, config)


def sharded_spec(spec: TensorSpec, config: MemoryConfig) -> TensorSpec:
    """A tensor as it is sharded for a convolution: whole shards on both axes, the last of them padding."""
    shards = config.shard_spec
    if shards is None:
        return in_memory(spec, config)
    padded = (*spec.shape[:-2], round_up(spec.shape[-2], shards.shape[0]), round_up(spec.shape[-1], shards.shape[1]))
    return TensorSpec(spec.shape, spec.data_format, spec.layout, config, padded)


def to_shards(source: Staged, config: MemoryConfig, device: DeviceSpec, name: str) -> Staged:
    """A sharded copy of a tensor on the device, for a convolution.

    The copy is allocated first, then filled: by one program if the source is interleaved; if it is sharded, by one
    that deals the shards anew, or by way of DRAM where no such program exists.
    """
    copy = allocated(name, sharded_spec(source.spec, config), device)
    if not source.spec.memory_config.is_sharded():
        return copy.followed_by(in_place("InterleavedToSharded", source, copy, Relayout()))
    if can_reshard(source.spec, copy.spec):
        return copy.followed_by(in_place("Reshard", source, copy, Relayout()))
    by_way = to_interleaved(source, DRAM_MEMORY_CONFIG, device, f"{name}.interleaved")
    filled = in_place("InterleavedToSharded", by_way, copy, Relayout())
    chain = copy.followed_by(by_way).followed_by(filled)
    return chain.then(Free(by_way.name))


def can_reshard(before: TensorSpec, after: TensorSpec) -> bool:
    """Whether one program deals the shards anew: tiles always, rows only if the shard width stays."""
    if before.layout is Layout.TILE:
        return True
    old, new = before.memory_config.shard_spec, after.memory_config.shard_spec
    return old is not None and new is not None and old.shape[1] == new.shape[1]


def to_interleaved(source: Staged, config: MemoryConfig, device: DeviceSpec, name: str) -> Staged:
    """An interleaved copy of a sharded tensor."""
    return computed("ShardedToInterleaved", source, name, in_memory(source.spec, config), device, Relayout())


def to_config(source: Staged, config: MemoryConfig, device: DeviceSpec, name: str) -> Staged:
    """The result of a convolution where the caller wants it; the source is released when it is copied."""
    spec = source.spec
    if config == spec.memory_config:
        return Staged(name=source.name, spec=spec)
    made = in_memory(spec, config)
    sharded = spec.memory_config.is_sharded()
    if config.is_sharded() and sharded and not can_reshard(spec, made):
        by_way = to_interleaved(source, DRAM_MEMORY_CONFIG, device, f"{name}.interleaved")
        copy = by_way.followed_by(computed("InterleavedToSharded", by_way, name, made, device, Relayout()))
        return copy.then(Free(by_way.name), Free(source.name))
    operation = _CONVERSIONS[sharded, config.is_sharded()]
    return computed(operation, source, name, made, device, Relayout()).then(Free(source.name))


def moved(source: Staged, device: DeviceSpec) -> Staged:
    """The tensor is released and allocated again, so that it lies as high in L1 as it can."""
    return Staged(
        name=source.name, spec=source.spec, steps=(Relocate(source.name, source.spec.buffer(device), Relayout()),)
    )


def tilized(source: Staged, device: DeviceSpec, name: str) -> Staged:
    """A row-major tensor as tiles; of its padding only what fills the last tiles stays."""
    spec = source.spec
    whole = all(side % TILE == 0 for side in spec.padded_shape[-2:])
    padded = (*spec.padded_shape[:-2], *(round_up(side, TILE) for side in spec.shape[-2:]))
    made = TensorSpec(spec.shape, spec.data_format, Layout.TILE, spec.memory_config, padded)
    return computed("Tilize" if whole else "TilizeWithValPadding", source, name, made, device, Relayout())


def padded_rows(source: Staged, padded: tuple[int, ...], device: DeviceSpec, name: str) -> Staged:
    """A row-major tensor with zero rows and columns added up to ``padded``, on the device; the source is released.

    To the real library, what this adds is part of the tensor.
    """
    spec = source.spec
    made = TensorSpec(padded, spec.data_format, spec.layout, spec.memory_config)
    return computed("Pad", source, name, made, device, Relayout()).then(Free(source.name))


def whole_shards(config: MemoryConfig) -> tuple[int, int]:
    """Rows and columns that all cores of a sharded config hold together."""
    shards = config.shard_spec
    if shards is None:
        raise AssertionError("an interleaved config has no shards")
    rows, cols = shards.shape
    if config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        return rows * shards.num_cores(), cols
    if config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        return rows, cols * shards.num_cores()
    box = shards.grid.bounding_box()
    high, wide = box.rows, box.cols
    if shards.orientation is ShardOrientation.COL_MAJOR:
        high, wide = wide, high
    return rows * high, cols * wide
