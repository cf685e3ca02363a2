"""A plan that splits BERT's projection into heads. Rules: ttnn 0.81.1 (experimental/transformer) and its planner."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec, side
from device.memory.memory_config import (
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    ragged,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.attention.heads import require_rank
from ops.programs.attention.heads import SplitHeads
from ops.programs.buffer_shapes import BUFFERING, tile_buffer, views_refusal

NAME = "split_query_key_value_and_split_heads"
PARTS = 3  # Queries, keys and values
HEADS, HEAD_SIZE, BATCHES = 16, 64, (7, 8, 9)  # of BERT: what the program of interleaved memory can do
HEADS_A_CORE = 2  # of each part: what the program of shards can do
HINT = "input_tensor: give [batch, 1, rows, columns] of BFLOAT16 or BFLOAT8_B in TILE layout"


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedSplitArguments:
    """A call that splits heads."""

    source: TensorSpec  # [batch, 1, rows, columns], "input"
    heads: int
    within: tuple[int, int]  # Columns and rows of cores that must contain the shards
    place: MemoryConfig | None = None
    targets: int = (
        0  # How many tensors the caller gives for the results, which the library counts and leaves as they are
    )


def plan_fused_split(call: FusedSplitArguments, spec: DeviceSpec) -> Plan:
    """Plan queries, keys and values ("query", "key", "value") of "input"; keys are transposed."""
    source = call.source
    if call.heads < 1:
        raise NotSimulatedError(f"{NAME}: ttsim does not simulate calls without heads; give 1 or more")
    size = source.padded_shape[-1] // PARTS // call.heads
    results = _results(call, size)
    for result in results:
        result.require_on(spec)
    for text in _refusals(call):
        raise DeviceError(f"{text}\n{HINT}")
    if call.targets not in (0, PARTS):
        raise DeviceError(f"Must have {PARTS} output tensors\noutput_tensors: give as many, or none")
    require_rank(source)
    builder = PlanBuilder(spec, {"input": source})
    read = builder.tensor("input")
    made = {name: PlanTensor(name, tensor) for name, tensor in zip(("query", "key", "value"), results, strict=True)}
    op = SplitHeads(
        heads=call.heads, kv_heads=call.heads, head_size=size, transposed=True,
        groups=_cores(source)[0] if source.memory_config.is_sharded() else 1, data_format=source.data_format,
    )  # fmt: skip
    if unknown := _unknown(call, spec):
        builder.leave_out_values(unknown)
    query, *more = made.values()
    buffers = _buffers(read, (query, *more))
    builder.run(
        "SplitFusedQKVAndSplitHeadsDeviceOperation", op, [read], query, buffers, more_outputs=more,
        refused=views_refusal(buffers, made.values(), spec, "memory_config: give HEIGHT shards in L1"),
    )  # fmt: skip
    return builder.finish(made)


def _cores(source: TensorSpec) -> tuple[int, int]:
    """Cores along the columns and along the rows of BLOCK shards, from the first core on."""
    shards = source.memory_config.shard_spec
    assert shards is not None
    end = shards.grid.bounding_box().end
    across, down = end.x + 1, end.y + 1
    return (across, down) if shards.orientation is ShardOrientation.ROW_MAJOR else (down, across)


def _results(call: FusedSplitArguments, size: int) -> list[TensorSpec]:
    """The three results; raises DeviceError for shards that do not hold them."""
    source, config = call.source, call.source.memory_config
    batch, rows = (side(source.padded_shape, axis) for axis in (0, 2))
    place = config if call.place is None else call.place
    if config.shard_spec is None:
        require_shard_spec(place, in_rows=False)
    results = []
    for high, wide in ((rows, size), (size, rows), (rows, size)):
        own = place
        if config.shard_spec is not None:
            sides = (call.heads // _cores(source)[0] * high, wide)
            _require_rows(sides, batch * call.heads * high, place)
            own = replace(place, shard_spec=ShardSpec(config.shard_spec.grid, sides, config.shard_spec.orientation))
        results.append(TensorSpec((batch, call.heads, high, wide), source.data_format, Layout.TILE, own))
    return results


def _require_rows(sides: tuple[int, int], rows: int, place: MemoryConfig) -> None:
    """Raises an error for shards without rows, where there are more columns of cores than heads."""
    if sides[0]:
        return
    if not place.is_sharded():
        raise NotSimulatedError(f"{NAME}: shards without rows are not simulated; give 1 head or more for each core")
    first = ragged(*sides) or f"Shard shape must be greater than 0 in each sharded dim, got {[*sides]}"
    if place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED and not ragged(*sides):
        first = f"Shard height 0 must match physical height {rows} for width sharded"
    raise DeviceError(f"{first}\nnum_heads: give 1 or more for each core")


def _refusals(call: FusedSplitArguments) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    source, config = call.source, call.source.memory_config
    if source.data_format not in (BFLOAT16, BFLOAT8_B):
        yield "Unsupported data format"
    if config.shard_spec is None:
        if source.padded_shape[0] not in BATCHES:
            yield "Input batch size must be between 7 to 9 for bert large TM ops!"
        return
    ranges, end = config.shard_spec.grid.ranges, config.shard_spec.grid.bounding_box().end
    columns, rows = call.within
    if end.x >= columns or end.y >= rows:
        yield f"Bounding box end coordinates ({end.x}, {end.y}) must be less than grid size ({columns}, {rows})"
    if len(ranges) != 1:
        yield f"Input tensor shard spec must have exactly 1 grid range but got {len(ranges)}"
    if config.memory_layout is not TensorMemoryLayout.BLOCK_SHARDED:
        scheme = config.memory_layout.name
        yield f"Input tensor memory layout must be BLOCK_SHARDED but got TensorMemoryLayout::{scheme}"


def _unknown(call: FusedSplitArguments, spec: DeviceSpec) -> str | None:
    """Why values are unknown where kernels that count on BERT's sizes would wait for ever or mix up heads, or None."""
    source, shards = call.source, call.source.memory_config.shard_spec
    batch, depth, rows, columns = source.padded_shape
    if shards is None:
        if (depth, call.heads, columns) != (1, HEADS, PARTS * HEADS * HEAD_SIZE):
            return (
                f"{NAME}: the kernels of ttnn wait for {HEADS} heads of {HEAD_SIZE} columns; give "
                f"[batch, 1, rows, {PARTS * HEADS * HEAD_SIZE}], or BLOCK shards"
            )
        if rows > spec.grid.cols * TILE or batch > spec.grid.rows:
            return (
                f"{NAME}: the library plans a core for each image and 32 rows, whether or not the device has it; give "
                f"at most {spec.grid.rows} images of {spec.grid.cols * TILE} rows"
            )
        return None
    across, down = _cores(source)
    if (batch, depth, call.heads, *shards.shape) != (down, 1, HEADS_A_CORE * across, rows, columns // across):
        return (
            f"{NAME}: the kernels of ttnn take {HEADS_A_CORE} heads of one image on each core; give a row of cores for "
            f"each image, and a column for each {HEADS_A_CORE} heads"
        )
    return None


def _buffers(source: PlanTensor, results: tuple[PlanTensor, ...]) -> tuple[CircularBuffer, ...]:
    """Keys pass the matrix unit; in shards a column at a time, of the sizes that the library derives from all cores."""
    data_format, shards = source.spec.data_format, source.spec.memory_config.shard_spec
    batch, _, rows, columns = source.spec.padded_shape
    if shards is not None:
        across, down = _cores(source.spec)
        high, wide = batch * rows // down, columns // across
        part = (wide // PARTS // HEADS_A_CORE // TILE) * (high * HEADS_A_CORE // TILE)
        tiles = {source.name: (high // TILE) * (wide // TILE), **dict.fromkeys((one.name for one in results), part)}
        views = [tile_buffer(name, count, data_format, shards.grid, name) for name, count in tiles.items()]
        turning = tile_buffer("turning", BUFFERING * (high // TILE), data_format, shards.grid)
        return views[0], turning, *views[1:]
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(rows // TILE - 1, batch - 1))])
    each = columns // TILE // PARTS
    sizes = {"keys": BUFFERING * each, "queries and values": 2 * BUFFERING * each, "turned": each}
    return tuple(tile_buffer(name, size, data_format, cores) for name, size in sizes.items())
