"""Plans of scaled dot product attention. Rules: ttnn 0.81.1 (transformer/sdpa), compared with recorded plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec, side
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, BufferType, Layout, MemoryConfig
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, div_up, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.attention.softmax_buffers import core_rectangle
from ops.programs.attention.sdpa import ScaledDotProduct
from ops.programs.buffer_shapes import BUFFERING, buffer, tile_buffer

FORMATS = (BFLOAT16, BFLOAT8_B, BFLOAT4_B)
CHUNK = 32  # rows of queries, and of keys, without a program config
RANK = 4
OPERANDS = ("query", "key", "value")
IN_STEP_TILE_ROWS = 4  # most of a chunk of queries where cores walk through keys in step
TRIPLED_TILE_ROWS = 3, 8  # least of a chunk of queries, and most of one of keys, for three chunks of keys at a time
SCRATCH_BYTES = 32  # for each of these chunks and one more; what they hold is not known
WINDOW_TILES = 5  # of the masks of a window, which are made once
PACKED_TILE_ROWS = 2  # of the result that are packed together
HINT = "give queries [batch, heads, rows, size], and keys and values [batch, fewer heads, keys, size]"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionArguments:
    """A call."""

    query: TensorSpec
    key: TensorSpec
    value: TensorSpec
    mask: TensorSpec | None = None
    causal: bool = True
    scale: float | None = None
    place: MemoryConfig | None = None
    grid: tuple[int, int] | None = None  # Columns and rows of cores; None for all
    chunks: tuple[int, int] = (CHUNK, CHUNK)  # Rows of queries and of keys
    phases: int = 2
    fp32_dest: bool = False
    window: int = 0  # Keys that a query sees; 0 for all
    sinks: TensorSpec | None = None  # [1, heads, 1, 1]
    joined: bool = False  # The result has the heads concatenated along the columns

    @property
    def factor(self) -> float:
        """The factor of scores."""
        return 1.0 / sqrt(self.query.shape[-1]) if self.scale is None else self.scale

    def result(self) -> TensorSpec:
        """The result; raises DeviceError for a memory that cannot hold it."""
        place, shape = DRAM_MEMORY_CONFIG if self.place is None else self.place, self.query.shape
        require_shard_spec(place, in_rows=self.query.layout is Layout.ROW_MAJOR)
        if self.joined and len(shape) == RANK:
            shape = (shape[0], 1, shape[2], shape[1] * shape[3])
        return TensorSpec(shape, self.query.data_format, self.query.layout, place)

    @property
    def pairs_chunks(self) -> bool:
        """Whether a core processes chunks of queries in pairs, one with few keys and one with many."""
        return self.causal and div_up(self.query.shape[2], self.chunks[0]) % 2 == 0

    @property
    def even_pairs(self) -> bool:
        """Whether all pairs of small chunks of queries meet as many chunks of keys."""
        rows, (high, deep) = self.query.shape[2], self.chunks
        if not self.pairs_chunks or high > IN_STEP_TILE_ROWS * TILE:
            return False
        met = [div_up(min(end + high, round_up(rows, TILE)), deep) for end in range(0, rows, high)]
        return len({first + last for first, last in zip(met, reversed(met), strict=True)}) == 1

    @property
    def held_in_step(self) -> int:
        """Chunks of keys that a core holds where cores walk through them in step."""
        least, most = TRIPLED_TILE_ROWS
        return BUFFERING + (self.chunks[0] >= least * TILE and self.chunks[1] <= most * TILE)


def validate(call: AttentionArguments, spec: DeviceSpec) -> None:
    """Raises DeviceError where the real library refuses a call; the first line of the error is its own."""
    call.result().require_on(spec)
    for text in _refusals(call, spec):
        raise DeviceError(f"{text}\n{HINT}")


def _refusals(call: AttentionArguments, spec: DeviceSpec) -> Iterator[str]:
    query, key, value = call.query, call.key, call.value
    for tensor in (query, key, value):
        if tensor.layout is not Layout.TILE:
            yield "Inputs to SDPA must be tilized"
        if tensor.data_format not in FORMATS:
            yield (
                "Data type of input tensor must be BFLOAT16, BFLOAT8_B, or BFLOAT4_B and is "
                f"DataType::{tensor.data_format.name.upper()}"
            )
        if tensor.memory_config.is_sharded():
            yield "Operands to SDPA need to be DRAM/L1 interleaved"
    if call.causal and call.mask is not None:
        yield "is_causal and attn_mask cannot both be present. Got is_causal: true, attn_mask: true"
    if call.window and call.mask is not None:
        yield (
            "sliding_window_size and attn_mask cannot both be present; bake the sliding-window mask into attn_mask. "
            f"Got sliding_window_size: {call.window}, attn_mask: true"
        )
    if call.mask is not None:
        yield from _refusals_of_mask(call, call.mask)
    batch, heads = side(query.shape, 0), side(query.shape, 1)
    key_heads, rows, size, keys = side(key.shape, 1), side(query.shape, 2), side(query.shape, 3), side(key.shape, 2)
    if call.causal and rows != keys:
        yield f"Causal SDPA requires Q and K to have the same sequence length. Got Q: {rows}, K: {keys}"
    if not key.shape[0] == value.shape[0] == batch:
        yield f"K and V batch must match. Got K: {key.shape[0]}, V: {value.shape[0]}"
    if (others := side(value.shape, 1)) != key_heads:
        yield f"K and V num_heads must match. Got K: {key_heads}, V: {others}"
    if (others := side(value.shape, 2)) != keys:
        yield f"K and V sequence length must match. Got K: {keys}, V: {others}"
    key_size, value_size = side(key.shape, 3), side(value.shape, 3)
    if not key_size == value_size == size:
        yield f"K and V hidden dim must match. Got K: {key_size}, V: {value_size}"
    if heads < key_heads or heads % key_heads:
        yield (
            "Q num_heads must be >= K num_heads and divisible by K num_heads, and K num_heads must be greater than 0. "
            f"Got Q: {heads}, K: {key_heads}"
        )
    for name, chunk in zip("qk", call.chunks, strict=True):
        if chunk % TILE or not chunk:
            yield (
                f"{name}_chunk_size must be a positive multiple of TILE_SIZE. Got {name}_chunk_size: {chunk}, "
                f"TILE_SIZE: {TILE}"
            )
    if call.sinks is not None:
        yield from _refusals_of_sinks(call.sinks, heads)
    for tensor in (query, key, value):
        if tensor.shape[3] % TILE:
            yield "Padding is not supported on the head_dim dimension"
    if call.grid is not None and call.grid[0] * call.grid[1] > spec.grid.cores:
        cores = call.grid[0] * call.grid[1]
        yield (
            f"Provided grid must not contain more cores than the device. Got {cores} cores, expected at most "
            f"{spec.grid.cores} cores."
        )


def _refusals_of_sinks(sinks: TensorSpec, heads: int) -> Iterator[str]:
    if sinks.layout is not Layout.TILE:
        yield "Attention sink must be tilized"
    if sinks.data_format not in FORMATS:
        yield "Attention sink must be in BF16, BFP8, or BFP4 dataformat"
    if sinks.memory_config.buffer_type is not BufferType.DRAM:
        yield "Attention sink must be in DRAM"
    if sinks.shape[0] != 1:
        yield f"Attention sink batch dimension must be 1. Got {sinks.shape[0]}"
    if (own := side(sinks.shape, 1)) != heads:
        yield f"Attention sink num_heads must match Q num_heads. Got sink: {own}, Q: {heads}"
    if (rows := side(sinks.shape, 2)) != 1:
        yield f"Attention sink sequence dimension must be 1. Got {rows}"
    if (columns := side(sinks.shape, 3)) != 1:
        yield f"Attention sink hidden dimension must be 1. Got {columns}"


def _refusals_of_mask(call: AttentionArguments, mask: TensorSpec) -> Iterator[str]:
    query, key = call.query.shape, call.key.shape
    if mask.layout is not Layout.TILE:
        yield "When mask is provided to SDPA, it must be tilized"
    if mask.data_format not in FORMATS:
        yield "When mask is provided to SDPA, it must be in BF16, BFP8, or BFP4 dataformat"
    if mask.memory_config.buffer_type is not BufferType.DRAM:
        yield "When mask is provided to SDPA, it must be in DRAM"
    if mask.shape[0] not in (1, query[0]):
        yield ("Mask batch dim must either be 1 (to be broadcasted across all batches) or must match Q batch dimension")
    if (heads := side(mask.shape, 1)) != 1 and heads != side(query, 1):
        yield ("Mask num_heads must either be 1 (to be broadcasted across all heads) or must match Q heads dimension")
    if side(mask.shape, 2) != side(query, 2):
        yield "Mask sequence length must match Q sequence length"
    if side(mask.shape, 3) != side(key, 2):
        yield "Mask sequence length must match K sequence length"


def plan_attention(call: AttentionArguments, spec: DeviceSpec) -> Plan:
    """Plan the attention of "query", "key" and "value", with a "mask" that was divided by the scale, and "sinks"."""
    tensors = {"query": call.query, "key": call.key, "value": call.value, "mask": call.mask, "sinks": call.sinks}
    if any(tensor is not None and len(tensor.shape) != RANK for tensor in tensors.values()):
        raise NotSimulatedError(f"scaled_dot_product_attention: ttsim simulates tensors of {RANK} axes; {HINT}")
    grid = (spec.grid.cols, spec.grid.rows) if call.grid is None else call.grid
    if grid[0] > spec.grid.cols or grid[1] > spec.grid.rows or min(grid) < 1:
        raise NotSimulatedError(
            "scaled_dot_product_attention: ttsim does not simulate a grid that reaches beyond the device's; give one "
            f"of at most {spec.grid.cols}x{spec.grid.rows} cores"
        )
    cores, (batch, heads, rows, size) = core_rectangle(grid), call.query.shape
    chunks = _shared(call, cores.num_cores())
    op = ScaledDotProduct(
        scale=call.factor, causal=call.causal, data_format=call.query.data_format, key_format=call.key.data_format,
        fp32_dest=call.fp32_dest, phases=call.phases, heads=batch * heads, rows=rows, keys=call.key.shape[2], size=size,
        cores=cores, core_rows=chunks * min(call.chunks[0], round_up(rows, TILE)) // TILE, window=call.window,
        has_sinks=call.sinks is not None, joined=call.joined,
    )  # fmt: skip
    least = release_of(spec.release).causal_cores_in_step.get(spec.family)
    in_step = call.even_pairs and not call.window and least is not None and cores.num_cores() >= least
    held = call.held_in_step if in_step else BUFFERING
    buffers = _buffers(call, chunks, held)

    def write(builder: PlanBuilder, *read: PlanTensor) -> PlanTensor:
        made = [tile_buffer(name, tiles, data_format, cores) for name, tiles, data_format in buffers]
        if in_step and not (call.query.data_format.is_block and call.fp32_dest):
            made.insert(len(OPERANDS), buffer("scratch", SCRATCH_BYTES * (held + 1), BFLOAT16, cores))
        return builder.run("SDPAOperation", op, read, PlanTensor("output", call.result()), tuple(made))

    return plan_of(tensors, spec, write)


def _shared(call: AttentionArguments, cores: int) -> int:
    """Number of query chunks of a core; all cores share the chunks of all heads and batches."""
    batch, heads, rows, _ = call.query.shape
    chunks = div_up(rows, call.chunks[0])
    together = 2 if call.pairs_chunks else 1  # a short row of scores goes with a long one
    return together * div_up(batch * heads * chunks // together, cores)


def _buffers(call: AttentionArguments, chunks: int, held: int) -> list[tuple[str, int, DataFormat]]:
    """Names, tiles and formats of the circular buffers; L1 has ``held`` chunks of keys and of values."""
    high, deep = (chunk // TILE for chunk in call.chunks)
    wide, rows, keys = call.query.shape[-1] // TILE, call.query.shape[2], call.key.shape[2]
    source, wider = call.query.data_format, FLOAT32 if call.fp32_dest else BFLOAT16
    ragged = rows % call.chunks[0] != 0 or keys % call.chunks[1] != 0
    masks: list[tuple[str, int, DataFormat]] = []
    if call.mask is not None:
        masks = [("mask", BUFFERING * high * deep, call.mask.data_format)]
    elif call.window and not call.fp32_dest:
        ends = 1 if keys % TILE and not call.causal else 0
        masks = [("mask", WINDOW_TILES + ends, BFLOAT16)]
    elif call.window:
        masks = [("mask", BUFFERING * high * deep, BFLOAT4_B)]
    elif call.causal:
        masks = [("mask", BUFFERING, BFLOAT16)]
    elif ragged and call.fp32_dest:
        masks = [("mask", BUFFERING * high * deep, BFLOAT4_B)]
    elif ragged:
        masks = [("mask", BUFFERING if keys % TILE else 1, BFLOAT16)]
    packed = high if call.fp32_dest else BUFFERING * min(high, PACKED_TILE_ROWS)
    return [
        ("query", high * wide * (BUFFERING if chunks > 1 else 1), source),
        ("key", held * deep * wide, call.key.data_format),
        ("value", held * deep * wide, call.value.data_format),
        *masks,
        *([] if call.sinks is None else [("sinks", high if call.fp32_dest else 1, call.sinks.data_format)]),
        ("ones", 1, BFLOAT16), ("scale", 1, BFLOAT16),
        *([] if call.fp32_dest else [("reciprocals", 1, BFLOAT16)]),
        ("scores", high * deep, wider),
        ("output_before", high * wide, BFLOAT16), ("output_after", high * wide, BFLOAT16),
        ("maxima_before", high, BFLOAT16), ("maxima_after", high, BFLOAT16),
        ("sums_before", high, wider), ("sums_after", high, wider), ("factors", high, BFLOAT16),
        ("output", packed * wide, source),
    ]  # fmt: skip
