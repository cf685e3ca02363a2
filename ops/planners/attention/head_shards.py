"""The refusals of sharded projections by nlp_create_qkv_heads. Rules: ttnn 0.81.1, compared with its answers."""

from collections.abc import Iterator

from device.memory.layouts import TensorSpec
from device.memory.memory_config import ShardOrientation

Counts = tuple[int, int, int]  # Heads of queries, heads of keys, and columns of a head


def refusals_of_shards(source: TensorSpec, other: TensorSpec | None, counts: Counts, cores: int) -> Iterator[str]:
    """The errors of the shards of a projection, or of queries with keys and values apart, on a device's cores."""
    shards, (heads, kv_heads, size) = source.shards, counts
    if shards.orientation is not ShardOrientation.ROW_MAJOR:
        yield f"Input tensor shard orientation must be ROW_MAJOR but got ShardOrientation::{shards.orientation.name}"
    for name, count in (("Q", heads), ("KV", kv_heads)):
        if count > cores:
            yield f"Number of {name} heads ({count}) must be <= number of cores ({cores})"
    if heads < kv_heads:
        yield f"Number of Q heads ({heads}) must be >= number of KV heads ({kv_heads})"
    used, width = shards.num_cores(), shards.shape[1]
    if heads % used:
        yield f"Number of Q heads ({heads}) must be divisible by number of cores ({used})"
    if other is None:
        if kv_heads % used:
            yield f"Number of KV heads ({kv_heads}) must be divisible by number of cores ({used})"
        group, more = heads // kv_heads + 2, " + 2"
    else:
        yield from _unlike(source, other)
        group, more = heads // kv_heads, ""
    if width != group * size:
        yield (
            f"Shard spec shape[1] ({width}) must equal (num_q_heads / num_kv_heads{more}) * head_dim ({group * size})"
        )


def _unlike(source: TensorSpec, other: TensorSpec) -> Iterator[str]:
    """The errors of keys and values whose sharding differs from that of queries."""
    if not other.memory_config.is_sharded():
        yield "Input tensor KV must be sharded"
    if source.shards.grid != other.shards.grid:
        yield "Input tensor and KV tensor must have the same shard grid"
    if source.shards.orientation is not other.shards.orientation:
        yield "Input tensor and KV tensor must have the same shard orientation"


def refusals_of_other_shards(other: TensorSpec, kv_heads: int, size: int) -> Iterator[str]:
    """The errors of the shards of keys and values apart from queries."""
    (high, wide), used, rows = other.shards.shape, other.shards.num_cores(), other.matrix[0]
    if high != rows:
        yield f"KV tensor shard spec shape[0] ({high}) must equal physical volume / padded shape[-1] ({rows})"
    if wide != 2 * size:
        yield f"KV tensor shard spec shape[1] ({wide}) must equal 2 * head_dim ({2 * size})"
    if kv_heads % used:
        yield f"Number of KV heads ({kv_heads}) must be divisible by KV tensor number of cores ({used})"
