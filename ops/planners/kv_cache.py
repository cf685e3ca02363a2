"""Plans that write into a cache of keys or values. Rules: ttnn 0.81.1, compared with plans of the real library."""

from collections.abc import Iterable, Iterator
from itertools import chain

from device.cores import first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import borrowing_refusal
from ops.programs.data_movement.kv_cache import FillCache, UpdateCache, fill_cache_buffers, update_cache_buffers

FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B)
RANK = 4
OPERATION = "UpdateKVCacheOperation"


def plan_fill_cache(cache: TensorSpec, source: TensorSpec, user: int, row: int, spec: DeviceSpec) -> Plan:
    """Plan that the rows of the tensor "input" become rows of a user of the tensor "target", from a row on."""
    _require("fill_cache", chain(_refusals(cache, source), _fill_refusals(cache, source, user, row)))

    def write(builder: PlanBuilder, rows: PlanTensor, whole: PlanTensor) -> PlanTensor:
        _leave_out("fill_cache", builder, cache, source)
        buffers, refused = fill_cache_buffers(rows, spec), borrowing_refusal([("src0", "input", rows)])
        op = FillCache(user, row)
        return builder.run(OPERATION, op, [rows, whole], buffers=buffers, dataflow=True, refused=refused)

    return plan_of({"input": source, "target": cache}, spec, write)


def plan_update_cache(
    cache: TensorSpec, source: TensorSpec, row: int, first: int, spec: DeviceSpec, *, wide: bool
) -> Plan:
    """Plan that each row of the tensor "input", from ``first`` on, becomes a row of its user of the tensor "target"."""
    _require("update_cache", chain(_refusals(cache, source), _update_refusals(cache, source, first)))

    def write(builder: PlanBuilder, rows: PlanTensor, whole: PlanTensor) -> PlanTensor:
        _leave_out("update_cache", builder, cache, source)
        buffers = update_cache_buffers(rows, cache, spec, wide=wide)
        op, refused = UpdateCache(row, first), borrowing_refusal([("input", "input", rows)])
        return builder.run(OPERATION, op, [rows, whole], buffers=buffers, dataflow=True, refused=refused)

    return plan_of({"input": source, "target": cache}, spec, write)


def _leave_out(owner: str, builder: PlanBuilder, cache: TensorSpec, source: TensorSpec) -> None:
    """Leaves out the values of tensors of other ranks, for which the library uses the first axis and the last two."""
    if len(cache.shape) != RANK or len(source.shape) != RANK:
        builder.leave_out_values(f"{owner}: ttsim calculates numbers of tensors of {RANK} axes alone; reshape them")


def require_row(owner: str, cache: TensorSpec, row: int) -> None:
    """Raises ArgumentError for a row that a cache does not have, where the library writes into another head."""
    if row >= cache.shape[-2]:
        raise ArgumentError(
            f"{owner}: the cache has {cache.shape[-2]} rows; the real library writes row {row} into other heads, and "
            "behind the cache"
        )


def _require(owner: str, refusals: Iterable[str]) -> None:
    """Raises DeviceError with the first refusal, if any."""
    for refusal in refusals:
        raise DeviceError(
            f"{refusal}\n{owner}: give [1, heads, rows, columns] for a cache [users, heads, rows, columns]"
        )


def _refusals(cache: TensorSpec, source: TensorSpec) -> Iterator[str]:
    """The errors of a cache in both functions, in the library's order."""
    if source.layout is not Layout.TILE or cache.layout is not Layout.TILE:
        yield "Inputs to update_cache must be tilized"
    for role, tensor in (("Input", source), ("Cache", cache)):
        if tensor.data_format not in FORMATS:
            name = f"DataType::{tensor.data_format.name.upper()}"
            yield f"{role} tensor dtype must be FLOAT32, BFLOAT16, or BFLOAT8_B but got {name}"
    own, theirs = source.padded_shape, cache.padded_shape
    if own[-1] != theirs[-1]:
        yield f"Input tensor width ({own[-1]}) must equal cache tensor width ({theirs[-1]})"
    if own[0] != 1:
        yield f"Input tensor batch size must be 1 but got {own[0]}"
    if own[1] != theirs[1]:
        yield f"Input tensor height ({own[1]}) must equal cache tensor height ({theirs[1]})"
    if cache.memory_config.is_sharded():
        yield (
            "Cache tensor memory layout must be INTERLEAVED, ND_SHARDED, or HEIGHT_SHARDED (created from ND shard "
            f"spec) but got TensorMemoryLayout::{cache.memory_config.memory_layout.name}"
        )


def _fill_refusals(cache: TensorSpec, source: TensorSpec, user: int, row: int) -> Iterator[str]:
    own, theirs = source.padded_shape, cache.padded_shape
    if source.data_format != cache.data_format:
        yield "Input and cache tensors must have same dtype!"
    yield from _shard_refusals(source)
    if source.memory_config.is_sharded() and own[-2] % source.shards.shape[0]:
        yield "Seq len must be divisible by shard height!"
    if user >= theirs[0]:
        yield f"Batch index ({user}) must be less than cache tensor batch size ({theirs[0]})"
    if row % TILE:
        yield f"Fill update_idx ({row}) must be a multiple of TILE_HEIGHT ({TILE})"
    if row + own[-2] > theirs[-2]:
        yield (
            f"Fill update_idx ({row}) + input tensor height ({own[-2]}) must be <= cache tensor height ({theirs[-2]})"
        )
    yield from _core_refusals(source)


def _update_refusals(cache: TensorSpec, source: TensorSpec, first: int) -> Iterator[str]:
    rows, users = source.padded_shape[-2], cache.padded_shape[0]
    yield from _shard_refusals(source)
    if source.memory_config.is_sharded() and source.matrix[0] % source.shards.shape[0]:
        yield "Error"
    if users > rows:
        yield f"Cache tensor batch size ({users}) must be <= input tensor height ({rows})"
    if rows != round_up(users, TILE):
        yield f"Input batch height ({rows}) must equal cache batch ({users}) rounded up to a tile"
    if users < TILE and first + users > TILE:
        yield f"Batch offset ({first}) + cache tensor batch size ({users}) must be <= {TILE}"
    if users >= TILE and first:
        yield f"Batch offset must be 0 when cache tensor batch size >= {TILE}"
    yield from _core_refusals(source)


def _shard_refusals(source: TensorSpec) -> Iterator[str]:
    """The errors of a sharded input for a cache."""
    place, width = source.memory_config, source.padded_shape[-1]
    if place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        yield "Input tensor memory layout must not be WIDTH_SHARDED but got TensorMemoryLayout::WIDTH_SHARDED"
    if place.is_sharded() and source.shards.shape[1] != width:
        yield f"Input tensor shard width ({source.shards.shape[1]}) must equal padded width ({width})"


def _core_refusals(source: TensorSpec) -> Iterator[str]:
    """The refusal of shards whose cores are not the first ones of the rectangle from (0, 0) to the last of them."""
    if not source.memory_config.is_sharded():
        return
    shards = source.shards
    end = shards.grid.bounding_box().end
    row_wise = shards.orientation is ShardOrientation.ROW_MAJOR
    dealt = first_cores(shards.num_cores(), end.x + 1, end.y + 1, row_wise=row_wise).cores(row_wise)
    cores = set(shards.grid.cores(row_wise))
    for core in dealt:
        if core not in cores:
            yield (
                f"Kernel 'reader' is setting runtime_arg_values for node {core.x}-{core.y}, but the kernel does not "
                "run on that node."
            )
