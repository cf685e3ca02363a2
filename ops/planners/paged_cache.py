"""Plans that write into a cache in blocks. Rules: ttnn 0.81.1 (experimental/paged_cache), compared with its plans."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT32, DataFormat, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.data_movement.paged_cache import (
    SKIPPED,
    PagedFillCache,
    PagedUpdateCache,
    paged_fill_buffers,
    paged_update_buffers,
)

FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B)
RANK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedUpdateArguments:
    """A call of paged_update_cache."""

    cache: TensorSpec  # [blocks, heads, rows, columns], "target"
    source: TensorSpec  # [1, users, heads, columns] in shards, "input"
    rows: tuple[int, ...] = ()
    indices: TensorSpec | None = None  # [users], "indices", instead of rows
    table: TensorSpec | None = None  # [users, blocks of one], "table"
    shared: bool = False
    first: int = 0
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedFillArguments:
    """A call of paged_fill_cache."""

    cache: TensorSpec  # [blocks, heads, rows, columns], "target"
    source: TensorSpec  # [users, heads, rows, columns], "input"
    table: TensorSpec  # [all users, blocks of one], "table"
    users: TensorSpec | None = None  # Rows of the table, "indices"
    user: int = 0


def plan_paged_update(call: PagedUpdateArguments, spec: DeviceSpec) -> Plan:
    """Plan that the rows of every user in the tensor "input" become a row of the user's block of "target"."""
    _require("paged_update_cache", chain(_update_refusals(call), _shard_refusals(call)))
    if call.source.data_format == FLOAT32 != call.cache.data_format:
        raise NotSimulatedError(
            "paged_update_cache: ttsim does not simulate float32 rows of a cache that is not float32; cast them first"
        )
    if call.cache.shape[1] > min(TILE, call.source.shape[2]):
        raise NotSimulatedError(
            f"paged_update_cache: ttsim does not simulate caches of more than {TILE} heads, or of more heads than the "
            "input has"
        )
    indices, table = call.indices, call.table
    op = PagedUpdateCache(rows=call.rows, has_table=table is not None, shared=call.shared)

    def write(builder: PlanBuilder, rows: PlanTensor, *others: PlanTensor) -> PlanTensor:
        buffers = paged_update_buffers(rows, call.cache, table, spec, wide=call.wide, by_tensor=indices is not None)
        return builder.run("PagedUpdateCacheDeviceOperation", op, [rows, *others], buffers=buffers, dataflow=True)

    return plan_of({"input": call.source, "indices": indices, "table": table, "target": call.cache}, spec, write)


def plan_paged_fill(call: PagedFillArguments, spec: DeviceSpec) -> Plan:
    """Plan that the rows of users in the tensor "input" become those of the users' blocks of "target"."""
    _require("paged_fill_cache", _fill_refusals(call))
    if Layout.ROW_MAJOR in (call.cache.layout, call.source.layout) or call.table.layout is Layout.TILE:
        raise NotSimulatedError("paged_fill_cache: ttsim simulates tiles, and tables in ROW_MAJOR layout")
    op = PagedFillCache(user=call.user if call.users is None else None)

    def write(builder: PlanBuilder, rows: PlanTensor, table: PlanTensor, *others: PlanTensor) -> PlanTensor:
        buffers = paged_fill_buffers(call.source, call.table, call.users, spec)
        return builder.run("PagedFillCacheDeviceOperation", op, [rows, table, *others], buffers=buffers, dataflow=True)

    return plan_of(
        {"input": call.source, "table": call.table, "indices": call.users, "target": call.cache}, spec, write
    )


def require_rows(
    cache: TensorSpec, rows: Sequence[int], table: Sequence[Sequence[int]] | None, *, shared: bool
) -> None:
    """Raises ArgumentError for rows of users that no block has, and for users that change one row of tiles at once.

    ``table`` has the blocks of each user, who has one without a table.
    """
    _, _, block_rows, _ = cache.shape
    changed = []
    for user, row in enumerate(rows):
        own = [0 if shared else user] if table is None else table[user]
        if row == SKIPPED:
            continue
        if not 0 <= row < block_rows * len(own):
            raise ArgumentError(
                f"paged_update_cache: user {user} has no row {row}, but {len(own)} blocks of {block_rows} rows; the "
                "real library writes into other rows, or beside the cache"
            )
        changed.append((own[row // block_rows], row % block_rows // TILE))
    _require_apart("paged_update_cache", cache, changed, at_once=not shared)


def require_blocks(cache: TensorSpec, source: TensorSpec, users: Sequence[int], table: Sequence[Sequence[int]]) -> None:
    """Raises ArgumentError for users whom a table does not have, and for blocks that are none or are filled twice."""
    if not all(0 <= user < len(table) for user in users):
        raise ArgumentError(f"paged_fill_cache: a table of {len(table)} users does not have all of {list(users)}")
    count = div_up(source.padded_shape[-2], cache.padded_shape[-2])
    blocks = [(block, 0) for user in users for block in table[user][:count] if block != SKIPPED]
    _require_apart("paged_fill_cache", cache, blocks, at_once=True)


def _require_apart(owner: str, cache: TensorSpec, written: Sequence[tuple[int, int]], *, at_once: bool) -> None:
    """Raises ArgumentError for rows of tiles (by their block) that a cache does not have, or cores write at once."""
    blocks = cache.shape[0]
    if not all(0 <= block < blocks for block, _ in written):
        raise ArgumentError(
            f"{owner}: the cache has {blocks} blocks, and not block {max(block for block, _ in written)}; the real "
            "library writes beside it"
        )
    if at_once and len(set(written)) < len(written):
        raise ArgumentError(
            f"{owner}: several cores write into the same row of tiles at once, so that what stands there in the end is "
            "not known"
        )


def _require(owner: str, refusals: Iterable[str]) -> None:
    """Raises DeviceError with the first refusal, if there is one."""
    for refusal in refusals:
        raise DeviceError(f"{refusal}\n{owner}: give a cache [blocks, heads, rows, columns] in TILE layout")


def _update_refusals(call: PagedUpdateArguments) -> Iterator[str]:
    """What is wrong with the tensors but their shards, in the library's order."""
    cache, source = call.cache, call.source
    if source.layout is not Layout.TILE:
        yield "Input tensor in non-fused update_cache must be tilized"
    if cache.layout is not Layout.TILE:
        yield "Cache tensor in update_cache must be tilized"
    if cache.data_format not in FORMATS:
        yield (
            "Data type of cache tensor must be FLOAT32, BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is "
            f"{_type_of(cache.data_format)}"
        )
    if source.padded_shape[0] != 1:
        yield "Dim 0 of input tensor must be 1"
    if cache.memory_config.is_sharded():
        yield "Only interleaved cache is supported"
    if len(cache.shape) != RANK or len(source.shape) != RANK:
        raise NotSimulatedError(f"paged_update_cache: ttsim does not simulate tensors that have not {RANK} axes")
    users, columns, blocks = source.padded_shape[1], source.padded_shape[-1], cache.padded_shape[0]
    if call.table is not None:
        yield from _geometry_refusals("paged_update_cache", "call view", cache, cache.padded_shape[1], columns)
    elif columns != cache.padded_shape[-1]:
        yield (
            f"Last dim of input tensor ({columns}) must match last dim of cache tensor ({cache.padded_shape[-1]}) in "
            "non-paged mode"
        )
    if call.table is not None:
        yield from _table_refusals(call, call.table)
    elif call.shared and blocks != 1:
        yield "Share cache feature expects cache tensor to have batch of 1"
    elif not call.shared and users != blocks:
        yield "Expect batch in input tensor match the batch in cache tensor"
    if (call.indices is not None) == bool(call.rows):
        yield "Only an update tensor or an update vector can be provided. Not both or neither."
    yield from _index_refusals(call.indices)
    count = len(call.rows) if call.indices is None else call.indices.padded_shape[0]
    if count != users:
        yield f"Number of update_idxs ({count}) should match batch size ({users})"


def _table_refusals(call: PagedUpdateArguments, table: TensorSpec) -> Iterator[str]:
    if call.shared:
        yield "share_cache not supported with paged cache"
    if call.indices is None:
        yield "Paged cache requires update_idxs tensor"
    if table.memory_config.is_sharded():
        raise NotSimulatedError("paged_update_cache: ttsim does not simulate tables in shards")
    if table.data_format != INT32:
        yield "Expect page table to have datatype INT32"
    if table.layout is not Layout.ROW_MAJOR:
        yield "Expect page table to have memory layout in ROW MAJOR"
    sides = _two_sides(table)
    if sides[0] != call.source.padded_shape[1]:
        yield "Batch size between page_table and input_tensor must match"
    if sides[1] > call.cache.padded_shape[0]:
        yield (
            f"max_num_blocks_per_seq must be less than max_num_blocks: max_num_blocks_per_seq={sides[1]}, "
            f"max_num_blocks={call.cache.padded_shape[0]}"
        )
    if len(table.shape) > len(sides):
        raise NotSimulatedError("paged_update_cache: ttsim simulates tables [users, blocks]")


def _index_refusals(indices: TensorSpec | None) -> Iterator[str]:
    if indices is None:
        return
    if indices.data_format != INT32:
        yield "Expected update_idxs to have datatype INT32"
    if indices.layout is not Layout.ROW_MAJOR:
        yield "Expected update_idxs to have memory layout in ROW MAJOR"
    if indices.memory_config.is_sharded():
        raise NotSimulatedError("paged_update_cache: ttsim does not simulate indices in shards")
    if indices.memory_config.buffer_type is not BufferType.DRAM:
        yield "Expect update_idxs to have buffer type DRAM"


def _shard_refusals(call: PagedUpdateArguments) -> Iterator[str]:
    """What is wrong with the shards of the input, in the library's order."""
    source = call.source
    if not source.memory_config.is_sharded():
        yield "Expect input_tensor to be sharded"
    if source.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        yield "Expect input_tensor to NOT have memory layout WIDTH SHARDED"
    shards, width, height = source.shards, source.padded_shape[-1], prod(source.padded_shape[:-1])
    if shards.shape[1] != width:
        yield (
            f"Expect input_tensor to have shard width ({shards.shape[1]}) equal to the last dimension of the input "
            f"tensor padded shape ({width})"
        )
    if height % shards.shape[0]:
        yield (
            "Input tensor's height must be divisible by the number of shards along the height dimension. Got height = "
            f"{height}, number of shards = {shards.shape[0]}."
        )
    if shards.orientation is not ShardOrientation.ROW_MAJOR:
        yield "Only ROW_MAJOR sharding is supported"
    cores, users = shards.num_cores(), source.padded_shape[1]
    if cores != users:
        yield (
            f"Input tensor shard grid must have num_cores ({cores}) equal to the number of users / batch ({users}). "
            "The kernel dispatches one user per core; use a {num_users, 1} grid (or any CoreRangeSet whose num_cores "
            "== num_users)."
        )
    if source.data_format not in (FLOAT32, BFLOAT16):
        yield (
            "Data type of input tensor for paged_update_cache must be FLOAT32 or BFLOAT16; decode update repacks into "
            "the cache dtype and should not receive low-precision packed tiles"
        )
    if call.first:
        yield "batch_offset must be 0"


def _fill_refusals(call: PagedFillArguments) -> Iterator[str]:
    cache, source, table = call.cache, call.source, call.table
    if cache.data_format not in FORMATS:
        yield (
            "Data type of cache tensor for paged_fill_cache must be FLOAT32, BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is "
            f"{_type_of(cache.data_format)}"
        )
    if source.data_format != cache.data_format:
        yield (
            f"Input tensor dtype ({_type_of(source.data_format)}) must match cache tensor dtype "
            f"({_type_of(cache.data_format)}) for paged_fill_cache; cast prefill K/V to the cache dtype before filling "
            "the paged cache."
        )
    if source.memory_config.is_sharded():
        yield "Expect input_tensor to have memory layout INTERLEAVED"
    if table.memory_config.is_sharded():
        yield "Expect page_table_tensor to have memory layout INTERLEAVED"
    if table.data_format != INT32:
        yield "Expect page_table_tensor to have datatype INT32"
    if len(cache.shape) != RANK or len(source.shape) != RANK or cache.memory_config.is_sharded():
        raise NotSimulatedError(
            f"paged_fill_cache: ttsim simulates interleaved tensors of {RANK} axes; reshape and move them first"
        )
    if call.users is None and call.user >= table.padded_shape[0]:
        yield "Batch idx must be within the page_table batch size"
    yield from _geometry_refusals(
        "paged_fill_cache", "input view", cache, source.padded_shape[1], source.padded_shape[-1]
    )
    blocks, rows = _two_sides(table)[1], cache.padded_shape[-2]
    if source.padded_shape[-2] > rows * blocks:
        yield (
            f"Input seq_len ({source.padded_shape[-2]}) must fit in max_num_blocks_per_seq ({blocks}) * block_size "
            f"({rows})"
        )
    if len(table.shape) > 2:
        raise NotSimulatedError("paged_fill_cache: ttsim simulates tables [users, blocks]")
    if call.users is not None and call.users.volume != source.padded_shape[0]:
        raise NotSimulatedError("paged_fill_cache: give batch_idx_tensor one element for every user of input_tensor")
    if call.users is not None and call.users.data_format not in (UINT32, INT32):
        yield "Batch idx tensor must be an integer type"
    if call.users is None and source.padded_shape[0] != 1:
        yield (
            f"When no batch_idx_tensor is provided, input_batch must be 1 (got {source.padded_shape[0]}); pass a "
            "batch_idx_tensor of size input_batch to fill multiple batch rows in one call."
        )


def _geometry_refusals(owner: str, what: str, cache: TensorSpec, heads: int, columns: int) -> Iterator[str]:
    """The refusal of heads and columns whose product is not that of a block."""
    _, own, rows, width = cache.padded_shape
    if heads * columns != own * width:
        yield (
            f"{owner} geometry mismatch: cache has {own * rows * width} elems/block (kv_heads={own}, "
            f"block_size={rows}, head_dim={width}) but {what} is {heads * rows * columns} (kv_heads={heads}, "
            f"block_size={rows}, head_dim={columns})."
        )
    if columns != width:
        raise NotSimulatedError(f"{owner}: ttsim does not simulate a cache under other axes; reshape it first")


def _two_sides(table: TensorSpec) -> tuple[int, int]:
    """The first two sides of a table."""
    sides = table.padded_shape
    if len(sides) == 1:
        raise DeviceError(f"ShapeBase[] index out of range. 1 not in [-{RANK}, 1)\ngive a table [users, blocks]")
    return sides[0], sides[1]


def _type_of(data_format: DataFormat) -> str:
    return f"DataType::{data_format.name.upper()}"
