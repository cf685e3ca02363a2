"""Plans of attention of one token per user. Rules: ttnn 0.81.1 (sdpa_decode), compared with its plans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod, sqrt

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentIndexError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec, side
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, INT32, DataFormat, div_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.attention.sdpa import FORMATS
from ops.planners.attention.softmax_buffers import core_rectangle, dst_tiles
from ops.programs.attention.sdpa_decode import SKIPPED, DecodeAttention
from ops.programs.buffer_shapes import BUFFERING, aligned_page, buffer, shard_view, tile_buffer, views_refusal

RANK = 4
DEEPEST_CHUNK = 512  # Keys of a chunk that the library chooses
PAGED_CHUNK = 32  # The same for caches in blocks
MOST_HEAD_CORES = 64  # Whose parts are joined two by two, in six rounds
HALF_TILE_HEADS = 16  # Most heads whose tiles are half ones
HINT = "give queries [1, users, heads, size], and keys and values [users, fewer heads, keys, size] in DRAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeArguments:
    """A call."""

    query: TensorSpec  # [1, users, heads, size]
    key: TensorSpec  # [users, key heads, keys, size]; with a table [blocks, key heads, keys of a block, size]
    value: TensorSpec
    indices: TensorSpec | None = None  # Positions of the users
    table: TensorSpec | None = None
    causal: bool = True
    positions: tuple[int, ...] = ()
    scale: float | None = None
    place: MemoryConfig | None = None
    grid: tuple[int, int] | None = None  # Columns and rows of cores; None without a program config
    within: CoreRangeSet | None = None  # As many cores as the grid has, which are taken instead
    chunk: int = 0  # Keys of a chunk; 0 for those that the library chooses
    most_cores: int = 1  # Of a head of a user, with a program config
    shared: bool = False
    phases: int = 2
    fp32_dest: bool = False
    mask: TensorSpec | None = None  # [any, any, heads, keys]
    sinks: TensorSpec | None = None  # [heads, 1]
    window: int = 0  # Keys that a user sees, up to the user's position; 0 for all
    modulo: int | None = None  # Keys of a user wrap around at this number
    candidates: int = 0  # Rows of tiles of queries with a position each; 0 for one position of a user

    @property
    def owner(self) -> str:
        """The name of the function."""
        return f"{'' if self.table is None else 'paged_'}scaled_dot_product_attention_decode"

    @property
    def written(self) -> MemoryConfig:
        """Memory of the result."""
        return DRAM_MEMORY_CONFIG if self.place is None else self.place

    def result(self) -> TensorSpec:
        """The result; raises DeviceError for a memory that cannot hold it."""
        require_shard_spec(self.written, in_rows=self.query.layout is Layout.ROW_MAJOR)
        shape = (self.query.shape[0], self.users, *self.query.shape[2:])
        return TensorSpec(shape, self.query.data_format, self.query.layout, self.written)

    @property
    def head_rows(self) -> int:
        """Rows of tiles of the heads of a user, whose rows the kernels tilize."""
        return div_up(self.query.padded_shape[2], TILE)

    @property
    def users(self) -> int:
        """Users, of whom a table has a row each."""
        return side(self.query.padded_shape, 1) if self.table is None else side(self.table.padded_shape, 0)

    @property
    def keys(self) -> int:
        """Keys of a user."""
        rows = side(self.key.padded_shape, 2)
        return rows if self.table is None else rows * side(self.table.padded_shape, 1)

    @property
    def has_half_tiles(self) -> bool:
        """Whether tiles have half the rows, which few heads fill."""
        return self.causal and side(self.query.shape, 2) <= HALF_TILE_HEADS and self.query.data_format == BFLOAT16

    @property
    def chunk_keys(self) -> int:
        """Keys of a chunk; 0 if kernels choose the size at run time, limited by the sums that fit Dst."""
        if self.chunk or (self.table is not None and self.grid is not None):
            return self.chunk
        rows = side(self.key.shape, -2)
        return PAGED_CHUNK if self.table is not None else max(2, min(DEEPEST_CHUNK, rows & -rows))


def plan_decode(call: DecodeArguments, spec: DeviceSpec) -> Plan:
    """Plan the attention of "query", "key" and "value", with the positions "indices" and the "table" of blocks."""
    for text in chain(_chunk_refusals(call), _refusals(call, spec)):
        raise DeviceError(f"{text}\n{call.owner}: {HINT}")
    whole = (call.query, call.key, call.value, *([] if call.mask is None else [call.mask]))
    if any(len(tensor.shape) != RANK for tensor in whole):
        raise NotSimulatedError(f"{call.owner}: ttsim simulates tensors of {RANK} axes")
    if call.table is not None and (call.table.memory_config.is_sharded() or len(call.table.shape) != 2):
        raise NotSimulatedError(f"{call.owner}: ttsim simulates interleaved tables [users, blocks]")
    users, keys = call.users, call.keys
    columns, rows = (spec.grid.cols, spec.grid.rows) if call.grid is None else call.grid
    if columns > spec.grid.cols or rows > spec.grid.rows:
        raise NotSimulatedError(f"{call.owner}: ttsim does not simulate a grid that reaches beyond the device's")
    cores = core_rectangle((columns, rows)) if call.within is None else call.within
    key_heads, count = call.key.padded_shape[1], cores.num_cores()
    most = count if call.grid is None and call.table is None else call.most_cores * users * key_heads
    user_cores = min(count, most) // users
    head_cores, core_heads = max(1, user_cores // key_heads), div_up(key_heads, user_cores)
    deep = call.chunk_keys // TILE or dst_tiles(fp32_dest=call.fp32_dest or call.candidates > 0)
    for text in _program_refusals(call, head_cores):
        raise DeviceError(f"{text}\n{call.owner}: give a program_config with other cores or chunks")
    op = DecodeAttention(
        scale=1.0 / sqrt(call.query.padded_shape[-1]) if call.scale is None else call.scale, causal=call.causal,
        positions=call.positions, by_tensor=call.indices is not None and call.causal, has_table=call.table is not None,
        data_format=call.query.data_format, key_format=call.key.data_format, fp32_dest=call.fp32_dest,
        phases=call.phases, users=users, head_rows=call.head_rows, key_heads=key_heads, keys=keys,
        size=call.query.shape[-1], cores=cores, core_keys=core_heads * div_up(keys // TILE, deep * head_cores) * deep,
        window=call.window, has_mask=call.mask is not None, has_sinks=call.sinks is not None,
    )  # fmt: skip
    place, result = call.written, PlanTensor("output", call.result())
    buffers = _buffers(call, deep, head_cores, cores, spec)
    packed = tile_buffer("packed", op.head_rows * _wide(call), call.query.data_format, cores)
    if place.is_sharded():
        in_rows = call.query.layout is Layout.ROW_MAJOR
        packed = packed._replace(view_of=result.name) if in_rows else shard_view("packed", result, spec, cores)

    unknown = {
        "other users in the table than in the queries": users != call.query.shape[1], "attn_mask": call.mask,
        "cache_position_modulo": call.modulo, "spec_multi_pos_tiles": call.candidates,
        "sliding_window_size without is_causal": call.window and not call.causal,
    }  # fmt: skip

    def write(builder: PlanBuilder, *read: PlanTensor) -> PlanTensor:
        for name, value in unknown.items():
            if value:
                builder.leave_out_values(f"{call.owner}: ttsim does not calculate numbers with {name}")
        refused = views_refusal([packed], [result], spec, f"{call.owner}: give HEIGHT shards of whole tiles in L1")
        return builder.run("SdpaDecodeDeviceOperation", op, read, result, (*buffers, packed), refused=refused)

    tensors = {"query": call.query, "key": call.key, "value": call.value, "indices": call.indices, "table": call.table}
    return plan_of(tensors | {"mask": call.mask, "sinks": call.sinks}, spec, write)


def require_positions(call: DecodeArguments, positions: Sequence[int], table: Sequence[Sequence[int]] | None) -> None:
    """Raises ArgumentError for users without a result, and for keys that no cache has."""
    blocks, rows = call.key.shape[0], call.key.shape[2]
    for user, position in enumerate(positions if call.causal else [call.keys - 1] * call.query.shape[1]):
        if position == SKIPPED:
            raise ArgumentError(
                f"{call.owner}: user {user} is left out (position -1), so that the user's rows of the result stay as "
                "memory was"
            )
        own = [0] * (position // rows + 1) if table is None else table[user][: position // rows + 1]
        if not 0 <= position < call.keys or not all(0 <= block < blocks for block in own):
            raise ArgumentError(
                f"{call.owner}: user {user} has no key {position}; the real library reads beside the cache"
            )


def _wide(call: DecodeArguments) -> int:
    """Tiles of a row of a head."""
    return call.key.padded_shape[-1] // TILE


def _refusals(call: DecodeArguments, spec: DeviceSpec) -> Iterator[str]:
    """The refusals of the library, in its order."""
    place = call.written
    side(call.query.shape, 2)  # the library counts heads, and plans the result, before it looks at tensors
    call.result().require_on(spec)
    yield from _operand_refusals(call)
    yield from _place_refusals(call, place)
    if call.mask is not None:
        yield from _mask_refusals(call, call.mask)
    if call.causal and call.indices is not None and not call.indices.memory_config.is_sharded():
        yield from _position_refusals(call, call.indices)
    yield from _cache_refusals(call) if call.table is None else _table_refusals(call, call.table)
    key_heads, value_heads, users = side(call.key.padded_shape, 1), side(call.value.padded_shape, 1), call.users
    if key_heads != value_heads:
        yield f"Flash decode expects K and V to have same number of heads, but got {key_heads} and {value_heads}"
    if key_heads > 1:
        yield from _group_refusals(call, place)
    if call.sinks is not None:
        yield from _sink_refusals(call, call.sinks)
    cores = spec.grid.cores if call.grid is None else call.grid[0] * call.grid[1]
    if call.within is not None and call.within.num_cores() != cores:
        yield f"sub_core_grids cores ({call.within.num_cores()}) must match compute_with_storage_grid_size ({cores})"
    if cores > spec.grid.cores:
        yield f"Cores available ({cores}) exceeds grid size ({spec.grid.cores})"
    if cores < users:
        yield f"Cores available ({cores}) must be >= batch size ({users})"
    if call.within is not None:
        if not (call.query.memory_config.is_sharded() or place.is_sharded()):
            yield "Subcoregrids require sharded Q or output"
        for core in call.within.cores():
            if core.x >= spec.grid.cols or core.y >= spec.grid.rows:
                yield f"No core coordinate found at location: ({core.x}, {core.y}, TENSIX, LOGICAL)"


def _chunk_refusals(call: DecodeArguments) -> Iterator[str]:
    """The errors of chunks of keys."""
    chunk = call.chunk_keys
    if call.chunk & (call.chunk - 1):
        yield f"User provided k_chunk_size must be power of 2, got: {call.chunk}"
    if call.chunk % TILE:
        yield f"User provided k_chunk_size must be multiple of 32, got: {call.chunk}"
    if chunk % TILE:
        yield f"Chunk size must be multiple of 32, but the maximum calculated k_chunk_size is: {chunk}"


def _operand_refusals(call: DecodeArguments) -> Iterator[str]:
    """The errors of formats and layouts."""
    query, key, value = call.query, call.key, call.value
    for tensor in (query, key, value):
        if tensor.data_format not in FORMATS:
            yield f"Unsupported data type DataType::{tensor.data_format.name.upper()}."
    if Layout.ROW_MAJOR in (key.layout, value.layout):
        yield "Inputs to SDPA must be tilized except for Q"
    if call.candidates:
        yield from _candidate_refusals(call, call.candidates)


def _candidate_refusals(call: DecodeArguments, count: int) -> Iterator[str]:
    """The errors of rows of tiles of queries that have a position each."""
    name, query = "spec_multi_pos_tiles", call.query.padded_shape
    rows = side(query, 2)
    if not call.causal:
        yield f"{name} requires is_causal"
    if call.indices is None:
        yield f"{name} requires a cur_pos tensor"
    if call.window:
        yield f"{name} is not supported with sliding_window_size"
    if call.mask is not None:
        yield f"{name} is not supported with an explicit attn_mask"
    if call.query.memory_config.is_sharded():
        yield f"{name} requires an unsharded (DRAM interleaved) Q tensor"
    if call.query.data_format != BFLOAT16:
        yield f"{name} requires a BFLOAT16 Q tensor, got DataType::{call.query.data_format.name.upper()}"
    if (heads := side(call.key.padded_shape, 1)) != 1:
        yield f"{name} requires num_kv_heads == 1, got {heads}"
    if rows != count * TILE:
        yield (
            f"{name}={count}: Q must have {count * TILE} padded rows per batch (one {TILE}-row tile per candidate), "
            f"got {rows}"
        )
    if call.has_half_tiles:
        yield (
            f"{name} requires full {TILE}x{TILE} tiles (use_half_tile must be false), but Q has {call.query.shape[2]} "
            "logical heads"
        )


def _mask_refusals(call: DecodeArguments, mask: TensorSpec) -> Iterator[str]:
    """The errors of a mask; its users and batch are ignored."""
    if call.causal:
        yield "attn_mask must not be provided when is_causal=True. Pass is_causal=False to use an explicit mask."
    for what, own, wanted in (
        ("padded heads", side(mask.padded_shape, 2), side(call.query.padded_shape, 2)),
        ("heads", side(mask.shape, 2), side(call.query.shape, 2)),
    ):
        if own != wanted:
            yield f"Expect same number of {what} in mask as in Q, got {own} and {wanted}"
    keys = side(mask.padded_shape, 3)
    if call.table is None and keys != (rows := side(call.key.padded_shape, 2)):
        yield f"Expect same sequence length in mask as in K, got {keys} and {rows}"
    if not call.chunk_keys:
        yield "Must provide k_chunk_size if using attention mask!"
    if keys % call.chunk_keys:
        yield f"Mask sequence length must be multiple of chunk size, got: {keys} and {call.chunk_keys}"
    if mask.data_format not in FORMATS:
        yield f"Unsupported data type for mask tensor: DataType::{mask.data_format.name.upper()}."


def _position_refusals(call: DecodeArguments, positions: TensorSpec) -> Iterator[str]:
    """The errors of the shape of positions, which the last axis must hold."""
    shape = positions.padded_shape
    if prod(shape) != shape[-1]:
        yield (
            "cur_pos tensor must hold all positions in its last dim (e.g. [B] or [1, B]), got shape "
            f"Shape({list(shape)})"
        )


def _sink_refusals(call: DecodeArguments, sinks: TensorSpec) -> Iterator[str]:
    """The errors of sinks."""
    if len(sinks.padded_shape) != 2:
        yield "Attention sink must have 2 dimensions"
    rows, columns = sinks.padded_shape
    if rows != side(call.query.padded_shape, 2):
        yield f"Attention sink must have the same padded num heads as Q but got {rows}"
    if columns != TILE:
        yield f"Attention sink must be a single tile wide, but got {columns}"
    if sinks.data_format != BFLOAT16:
        yield f"Attention sink must by a BF16 tensor, but got DataType::{sinks.data_format.name.upper()}"
    if (kind := sinks.memory_config.buffer_type) is not BufferType.DRAM:
        yield f"Attention sink must be in DRAM memory, but got BufferType::{kind.name}"


def _place_refusals(call: DecodeArguments, place: MemoryConfig) -> Iterator[str]:
    """The errors of the memories of the operands and of the result."""
    query, layout = call.query, call.query.memory_config.memory_layout
    if query.memory_config.is_sharded() and layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield f"Q tensor memory layout must be HEIGHT_SHARDED when sharded but got TensorMemoryLayout::{layout.name}"
    if not query.memory_config.is_sharded() and query.memory_config.buffer_type is not BufferType.DRAM:
        yield (
            "Q tensor buffer type must be DRAM when not sharded but got "
            f"BufferType::{query.memory_config.buffer_type.name}"
        )
    if query.layout is Layout.ROW_MAJOR and not query.memory_config.is_sharded():
        yield (
            "ROW_MAJOR Q is only supported when Q is HEIGHT_SHARDED in L1; interleaved ROW_MAJOR Q is not supported. "
            "Convert Q to TILE layout or shard it."
        )
    if query.layout is Layout.ROW_MAJOR and (scheme := place.memory_layout) is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield (
            "ROW_MAJOR Q produces a ROW_MAJOR output, which requires a HEIGHT_SHARDED output memory config; got "
            f"TensorMemoryLayout::{scheme.name}"
        )
    for number, tensor in ((1, call.key), (2, call.value)):
        if tensor.memory_config.buffer_type is not BufferType.DRAM:
            yield (
                f"Input tensor {number} buffer type must be DRAM but got "
                f"BufferType::{tensor.memory_config.buffer_type.name}"
            )
    if place.is_sharded() and place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield (
            "Output memory config layout must be HEIGHT_SHARDED when sharded but got "
            f"TensorMemoryLayout::{place.memory_layout.name}"
        )


def _program_refusals(call: DecodeArguments, head_cores: int) -> Iterator[str]:
    """The errors of kernels that cannot join the parts of a head, or cannot scale a chunk of scores in equal steps."""
    if head_cores > MOST_HEAD_CORES:
        yield f"Tree reduction max 6 rounds ({MOST_HEAD_CORES} cores/head), got {head_cores} cores/head"
    step = min(call.head_rows * call.chunk_keys // TILE, dst_tiles(fp32_dest=call.fp32_dest))
    if step & (step - 1):
        yield f"MUL_BCAST_GRANULARITY ({step}) must be power of 2"


def _group_refusals(call: DecodeArguments, place: MemoryConfig) -> Iterator[str]:
    """The errors of queries that share heads of keys."""
    if place.is_sharded():
        yield "Sharded output not supported for GQA"
    if call.query.data_format != BFLOAT16:
        yield f"GQA expects BFLOAT16 input tensor, but got DataType::{call.query.data_format.name.upper()}"
    heads, key_heads = side(call.query.shape, 2), side(call.key.padded_shape, 1)
    if heads % key_heads:
        yield f"GQA expects Q to have a multiple of K heads, but got {heads} and {key_heads}"


def _batch_refusals(call: DecodeArguments) -> Iterator[str]:
    """The errors of the number of users of unpaged keys and values, for any rank."""
    users = call.users
    for name, tensor in (("K", call.key), ("V", call.value)):
        if call.shared and tensor.padded_shape[0] != 1:
            yield f"Share cache expects {name} to have batch size of 1, but got {tensor.padded_shape[0]}"
        if not call.shared and tensor.padded_shape[0] != users:
            yield f"{name} tensor batch size ({tensor.padded_shape[0]}) must equal B ({users})"
    if (first := call.query.padded_shape[0]) != 1:
        yield f"Q tensor batch size must be 1 for decode mode but got {first}"


def _cache_refusals(call: DecodeArguments) -> Iterator[str]:
    """The errors of keys and values that are not in blocks."""
    yield from _batch_refusals(call)
    shapes, chunk = (call.query.padded_shape, call.key.padded_shape, call.value.padded_shape), call.chunk_keys
    rows, value_rows = (side(shape, -2) for shape in shapes[1:])
    if rows != value_rows:
        yield f"K and V tensors must have the same sequence length. K: {rows}, V: {value_rows}"
    if (keys := side(shapes[1], 2)) % chunk:
        yield f"K sequence length must be multiple of chunk size, got: {keys} and {chunk}"
    size, *others = (side(shape, -1) for shape in shapes)
    for name, other in zip("KV", others, strict=True):
        if other != size:
            yield f"{name} tensor hidden dimension ({other}) must equal Q tensor hidden dimension ({size})"
    if any(position >= rows for position in call.positions):
        yield "cur_pos must be <= K sequence dim"
    indices = None if call.indices is None or call.indices.memory_config.is_sharded() else call.indices.padded_shape
    if call.causal and indices is not None and indices[-1] < call.users:
        yield (
            f"cur_pos tensor must have at least one position per batch ({call.users}), got shape Shape({list(indices)})"
        )
    if call.causal and call.indices is None and len(call.positions) < call.users:
        count = len(call.positions)
        raise ArgumentIndexError(
            f"vector::_M_range_check: __n (which is {count}) >= this->size() (which is {count})\n"
            "cur_pos: give the position of every user"
        )


def _table_refusals(call: DecodeArguments, table: TensorSpec) -> Iterator[str]:
    """The errors of keys and values in blocks, and of their table."""
    shapes, positions = (call.key.padded_shape, call.value.padded_shape, call.query.padded_shape), call.indices
    users = call.users
    if call.causal and positions is None:
        yield "Must have cur_pos tensor for paged attention in causal mode"
    if call.causal and positions is not None:
        if positions.data_format != INT32:
            yield f"Expect cur_pos to be INT32, got DataType::{positions.data_format.name.upper()}"
        if positions.layout is not Layout.ROW_MAJOR:
            yield f"Expect cur_pos to be ROW_MAJOR, got Layout::{positions.layout.name}"
        if not call.candidates and positions.padded_shape[-1] != users:
            yield f"cur_pos must have batch size equal to Q, got {positions.padded_shape[0]} and {users}"
    if table.data_format != INT32:
        yield "Error: SDPA currently only supports INT32 datatype"
    if table.layout is not Layout.ROW_MAJOR:
        yield f"Page table tensor layout must be ROW_MAJOR but got Layout::{table.layout.name}"
    rows, value_rows = (side(shape, 2) for shape in shapes[:2])
    if rows != value_rows:
        yield "K and V must have same block size"
    if len({side(shape, 3) for shape in shapes}) > 1:
        yield "Q, K, V must have same hidden size"
    if call.modulo is not None:
        yield from _modulo_refusals(call.modulo, rows, call.window)
    count, entries = call.candidates, 0 if positions is None else positions.padded_shape[-1]
    if count and positions is not None and entries != users * count:
        yield (
            f"spec_multi_pos_tiles={count}: cur_pos must have {users * count} entries (B={users} groups of {count}), "
            f"got {entries}"
        )
    if not call.causal and not call.chunk_keys:
        yield "Must provide k_chunk_size if paged and non-causal!"
    if not call.causal and call.keys % call.chunk_keys:
        yield f"K sequence length must be multiple of chunk size, got: {call.keys} and {call.chunk_keys}"


def _modulo_refusals(modulo: int, rows: int, window: int) -> Iterator[str]:
    """The errors of the ring size of a user's keys, in blocks of ``rows``."""
    name = "cache_position_modulo"
    if not modulo:
        yield f"{name} must be > 0 when provided"
    if modulo % rows:
        yield f"{name} ({modulo}) must be a multiple of effective block_size ({rows})"
    if modulo < window:
        yield (
            f"{name} ({modulo}) must be >= sliding_window_size ({window}); a tighter capacity would let the SDPA "
            "attention range wrap multiple times and double-count positions."
        )


def _buffers(
    call: DecodeArguments, deep: int, head_cores: int, cores: CoreRangeSet, spec: DeviceSpec
) -> list[CircularBuffer]:
    """All circular buffers but the last; tiles of few heads are half ones."""
    high, wide = call.head_rows, _wide(call)
    half, mask_format = call.has_half_tiles, BFLOAT16 if call.mask is None else call.mask.data_format
    scores, outputs = high * deep, high * wide

    def tiles(name: str, count: int, data_format: DataFormat = BFLOAT16, *, whole: bool = False) -> CircularBuffer:
        made = tile_buffer(name, count, data_format, cores)
        if whole or not half:
            return made
        return made._replace(size_bytes=made.size_bytes // 2, page_bytes=made.page_bytes // 2)

    def page(name: str, tensor: TensorSpec | None) -> list[CircularBuffer]:
        return [] if tensor is None else [buffer(name, aligned_page(tensor, spec), INT32, cores)]

    made = [
        tiles("query", outputs, call.query.data_format),
        tiles("key", deep * wide * BUFFERING, call.key.data_format, whole=True),
        tiles("value", deep * wide * BUFFERING, call.value.data_format, whole=True),
        tiles("mask", scores, mask_format),
        *([tiles("sinks", high)] if call.sinks is not None else []),
        tiles("scale", 1),
        tiles("maxima_in", high),
        tiles("sums_in", high),
        *page("positions", call.indices),
        *page("positions_of_writer", call.indices),
        *page("blocks", call.table),
        tiles("tilized_query", 1 if call.candidates else outputs, call.query.data_format),
        tiles("ones", 1, whole=True),
        tiles("zeros", 1),
        *([tiles("window", scores, mask_format)] if call.window else []),
        tiles("scores", scores),
        tiles("output_before", outputs),
        tiles("output_after", outputs),
        *(tiles(name, high) for name in ("maxima", "maxima_before", "sums", "sums_before", "factors")),
        *(tiles(name, high) for name in ("sums_of_others", "factors_of_others")),
        tiles("output_of_others", outputs),
        tiles("output_sent", outputs),
        tiles("maxima_sent", high),
        tiles("sums_sent", high),
    ]
    parts = (outputs + 2 * high) * ((head_cores - 1).bit_length() if call.candidates else head_cores - 1)
    return [*made, tiles("parts", parts)] if parts else made
