"""Plans that write into a cache in blocks. Rules: ttnn 0.81.1 (experimental/paged_cache), compared with its plans."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import TILE, BufferType, Layout, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT16, UINT32, DataFormat, div_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.programs.buffer_shapes import aligned_page, borrowing_refusal
from ops.programs.data_movement.paged_cache import (
    SKIPPED,
    PagedFillCache,
    PagedUpdateCache,
    paged_fill_buffers,
    paged_update_buffers,
)

FORMATS = (FLOAT32, BFLOAT16, BFLOAT8_B, BFLOAT4_B)
RANK, TABLE_RANK = 4, 2
PAGE_UNIT = 32  # bytes, of which rows of a table are a multiple in its memory


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
    block_rows: int | None = None  # Of the cache under other axes; None for those of the cache
    heads: int | None = None  # The same
    modulo: int | None = None  # Rows of a user wrap around at this number; None if the cache has all rows


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedFillArguments:
    """A call of paged_fill_cache."""

    cache: TensorSpec  # [blocks, heads, rows, columns], "target"
    source: TensorSpec  # [users, heads, rows, columns], "input"
    table: TensorSpec  # [all users, blocks of one], "table"
    users: TensorSpec | None = None  # Rows of the table, "indices"
    user: int = 0
    block_rows: int | None = None  # Of the cache under other axes; None for those of the cache
    modulo: int | None = None  # Rows of a user wrap around at this number; None if the cache has all rows
    valid: TensorSpec | None = None  # [1], "valid": the rows of a user, of which the last stay


def plan_paged_update(call: PagedUpdateArguments, spec: DeviceSpec) -> Plan:
    """Plan that the rows of every user in the tensor "input" become a row of the user's block of "target"."""
    _require("paged_update_cache", chain(_update_refusals(call), _shard_refusals(call)))
    indices, table = call.indices, call.table
    op = PagedUpdateCache(rows=call.rows, has_table=table is not None, shared=call.shared, modulo=call.modulo)
    unknown = _unknown_update(call)

    def write(builder: PlanBuilder, rows: PlanTensor, *others: PlanTensor) -> PlanTensor:
        if unknown:
            builder.leave_out_values(f"paged_update_cache: ttsim does not calculate numbers of {unknown}")
        buffers = paged_update_buffers(rows, call.cache, table, spec, wide=call.wide, by_tensor=indices is not None)
        refused = borrowing_refusal([("input_shard", "input", rows)])
        name, reads = "PagedUpdateCacheDeviceOperation", [rows, *others]
        return builder.run(name, op, reads, buffers=buffers, dataflow=True, refused=refused)

    return plan_of({"input": call.source, "indices": indices, "table": table, "target": call.cache}, spec, write)


def _unknown_update(call: PagedUpdateArguments) -> str:
    """Why values of an update are unknown; empty if they are known."""
    cache, source = call.cache, call.source
    if source.data_format == FLOAT32 != cache.data_format:
        return "float32 rows of a cache that is not float32; cast them first"
    if len(cache.shape) != RANK or len(source.shape) != RANK or (call.table and len(call.table.shape) != TABLE_RANK):
        return f"tensors that have not {RANK} axes, or tables that are not [users, blocks]; reshape them first"
    if (call.heads or cache.shape[1], source.padded_shape[-1]) != (cache.shape[1], cache.padded_shape[-1]):
        return "a cache under other axes; reshape it first"
    if cache.shape[1] > min(TILE, source.shape[2]):
        return f"caches of more than {TILE} heads, or of more heads than the input has"
    return ""


def plan_paged_fill(call: PagedFillArguments, spec: DeviceSpec) -> Plan:
    """Plan a copy of the rows of users in the tensor "input" into the users' blocks of "target"."""
    _require("paged_fill_cache", _fill_refusals(call, spec))
    op = PagedFillCache(user=call.user if call.users is None else None, modulo=call.modulo)
    unknown = ""
    if len(call.cache.shape) != RANK or len(call.source.shape) != RANK:
        unknown = f"tensors that have not {RANK} axes; reshape them first"
    elif Layout.ROW_MAJOR in (call.cache.layout, call.source.layout) or call.table.layout is Layout.TILE:
        unknown = "rows in ROW_MAJOR layout, or of tables in TILE layout"
    elif call.source.padded_shape[-1] != call.cache.padded_shape[-1]:
        unknown = "a cache under other axes; reshape it first"
    elif len(call.table.shape) != TABLE_RANK:
        unknown = "tables that are not [users, blocks]; reshape them first"
    elif call.valid is not None:
        unknown = "fills up to valid_seq_len_tensor; cut the input instead"

    def write(builder: PlanBuilder, rows: PlanTensor, table: PlanTensor, *others: PlanTensor) -> PlanTensor:
        if unknown:
            builder.leave_out_values(f"paged_fill_cache: ttsim does not calculate numbers of {unknown}")
        buffers = paged_fill_buffers(call.source, call.table, (call.users, call.valid), spec)
        return builder.run("PagedFillCacheDeviceOperation", op, [rows, table, *others], buffers=buffers, dataflow=True)

    tensors = {"input": call.source, "table": call.table, "indices": call.users, "valid": call.valid}
    return plan_of(tensors | {"target": call.cache}, spec, write)


def require_rows(
    cache: TensorSpec,
    rows: Sequence[int],
    table: Sequence[Sequence[int]] | None,
    *,
    shared: bool,
    modulo: int | None = None,
) -> None:
    """Raises ArgumentError for rows outside a user's blocks, and for users that write the same row of tiles.

    ``table`` has the blocks of each user; without a table each user has one block. Rows wrap around at ``modulo``.
    """
    block_rows = cache.shape[2]
    changed = []
    for user, position in enumerate(rows):
        row = position if modulo is None or position == SKIPPED else position % modulo
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


def require_blocks(
    cache: TensorSpec,
    source: TensorSpec,
    users: Sequence[int],
    table: Sequence[Sequence[int]],
    modulo: int | None = None,
) -> None:
    """Raises ArgumentError for users whom a table does not have, and for blocks that are none or are filled twice."""
    if not all(0 <= user < len(table) for user in users):
        raise ArgumentError(f"paged_fill_cache: a table of {len(table)} users does not have all of {list(users)}")
    rows = source.padded_shape[-2] if modulo is None else min(source.padded_shape[-2], modulo)
    count = div_up(rows, cache.padded_shape[-2])
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
    """The errors of the tensors but their shards, in the library's order."""
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
    if call.table is not None:
        heads = side(cache.padded_shape, 1) if call.heads is None else call.heads
        yield from _geometry_refusals(
            "paged_update_cache", "call view", cache, cache.padded_shape[-1], heads, source.padded_shape[-1],
            call.block_rows,
        )  # fmt: skip
        yield from _modulo_refusals(call.modulo, call.block_rows or cache.padded_shape[2], call.table)
    named = {"block_size_override": call.block_rows, "num_kv_heads_override": call.heads}
    for name, value in (named | {"cache_position_modulo": call.modulo}).items():
        if call.table is None and value is not None:
            yield f"{name} is only supported in paged mode (when page_table is provided)"
    users, columns, blocks = source.padded_shape[1], source.padded_shape[-1], cache.padded_shape[0]
    if call.table is None and columns != cache.padded_shape[-1]:
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
        yield from _sharded_table_refusals(call, table)
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


def _sharded_table_refusals(call: PagedUpdateArguments, table: TensorSpec) -> Iterator[str]:
    if table.data_format != UINT16:
        yield "Expect page table to have datatype UINT16"
    users, rows = call.source.padded_shape[1], table.shards.shape[0]
    if users != rows:
        yield f"Batch size in input tensor {users} should match page table shard height {rows}"
    raise NotSimulatedError("paged_update_cache: ttsim does not simulate tables in shards")


def _modulo_refusals(modulo: int | None, rows: int, table: TensorSpec) -> Iterator[str]:
    """The errors of the ring size of a user's rows, in blocks of ``rows``."""
    if modulo is None:
        return
    if modulo <= 0 or modulo % rows:
        yield (
            f"cache_position_modulo ({modulo}) must be a positive multiple of effective block_size ({rows}); otherwise "
            "a wrapped position would split across blocks and the kernel can't address it."
        )
    blocks = _two_sides(table)[1]
    if modulo > blocks * rows:
        yield f"cache_position_modulo ({modulo}) must fit in max_num_blocks_per_seq ({blocks}) * block_size ({rows})"


def _index_refusals(indices: TensorSpec | None) -> Iterator[str]:
    if indices is None:
        return
    if indices.data_format != INT32:
        yield "Expected update_idxs to have datatype INT32"
    if indices.layout is not Layout.ROW_MAJOR:
        yield "Expected update_idxs to have memory layout in ROW MAJOR"
    if indices.memory_config.is_sharded():
        side(indices.padded_shape, 1)
        raise NotSimulatedError("paged_update_cache: ttsim does not simulate indices in shards")
    if indices.memory_config.buffer_type is not BufferType.DRAM:
        yield "Expect update_idxs to have buffer type DRAM"


def _shard_refusals(call: PagedUpdateArguments) -> Iterator[str]:
    """The errors of the shards of the input, in the library's order."""
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
            "the cache dtype and should not receive low-precision packed input"
        )
    if call.first:
        yield "batch_offset must be 0"


def _fill_refusals(call: PagedFillArguments, spec: DeviceSpec) -> Iterator[str]:
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
    if call.user >= table.padded_shape[0]:
        yield "Batch idx must be within the page_table batch size"
    for tensor, axis in ((cache, 2), (cache, 3), (source, 3)):  # the third for any block_size_override
        side(tensor.padded_shape, axis)
    _, heads, seen, columns, *_ = source.padded_shape
    yield from _geometry_refusals(
        "paged_fill_cache", "input view", cache, cache.padded_shape[3], heads, columns, call.block_rows
    )
    if call.modulo == 0:
        yield "cache_position_modulo must be > 0 when provided"
    blocks, rows = _two_sides(table)[1], call.block_rows or cache.padded_shape[2]
    yield from _modulo_refusals(call.modulo, rows, table)
    if call.modulo is None and seen > rows * blocks:
        yield f"Input seq_len ({seen}) must fit in max_num_blocks_per_seq ({blocks}) * block_size ({rows})"
    users, batch = call.users, source.padded_shape[0]
    if users is not None and (count := prod(users.padded_shape)) != batch:
        yield f"Batch idx tensor must have input_tensor batch dim ({batch}) elements, got {count}"
    yield from _number_refusals("Batch idx", users)
    if call.valid is not None:
        yield from _number_refusals("valid_seq_len", call.valid)
        if call.valid.volume != 1:
            yield f"valid_seq_len tensor must contain exactly 1 element, got logical_volume={call.valid.volume}"
        if call.modulo is None:
            yield "valid_seq_len tensor is only supported when cache_position_modulo is set (bounded fill)"
    if aligned_page(table, spec) % PAGE_UNIT:
        yield f"page table page size in bytes must be a multiple of {PAGE_UNIT} due to address alignment"
    if users is None and batch != 1:
        yield (
            f"When no batch_idx_tensor is provided, input_batch must be 1 (got {batch}); pass a batch_idx_tensor of "
            "size input_batch to fill multiple batch rows in one call."
        )


def _number_refusals(what: str, numbers: TensorSpec | None) -> Iterator[str]:
    if numbers is None:
        return
    if numbers.data_format not in (UINT32, INT32):
        yield f"{what} tensor must be an integer type"
    if numbers.memory_config.buffer_type is not BufferType.DRAM:
        yield f"{what} tensor must be DRAM-resident"


def _geometry_refusals(
    owner: str, what: str, cache: TensorSpec, width: int, heads: int, columns: int, block_rows: int | None
) -> Iterator[str]:
    """The refusals of heads, rows and columns whose product is not the size of a block, and of incomplete tiles."""
    own, rows = side(cache.padded_shape, 1), side(cache.padded_shape, 2)
    wanted = rows if block_rows is None else block_rows
    if heads * wanted * columns != own * rows * width:
        yield (
            f"{owner} geometry mismatch: cache has {own * rows * width} elems/block (kv_heads={own}, "
            f"block_size={rows}, head_dim={width}) but {what} is {heads * wanted * columns} (kv_heads={heads}, "
            f"block_size={wanted}, head_dim={columns})."
        )
    if wanted % TILE:
        yield f"effective block_size ({wanted}) must be a multiple of TILE_HEIGHT ({TILE})"


def _two_sides(table: TensorSpec) -> tuple[int, int]:
    """The first two sides of a table."""
    return table.padded_shape[0], side(table.padded_shape, 1)


def _type_of(data_format: DataFormat) -> str:
    return f"DataType::{data_format.name.upper()}"
