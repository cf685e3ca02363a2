"""Plans of an embedding. Rules: ttnn 0.81.1 (embedding), compared with recorded plans."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import prod

from device.cores import CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import FACE, TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, UINT32, DataFormat, div_up, round_up
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.permute import seen
from ops.planners.shape.reshape import OTHER_VOLUME, TOO_SMALL, reshaped_by
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.attention.embedding import Embed
from ops.programs.buffer_shapes import (
    BUFFERING,
    borrowing_refusal,
    buffer,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    scratchpad,
    shard_view,
    spread_evenly,
    tile_buffer,
)
from ops.programs.data_movement.conversions import typecast_by
from ops.programs.data_movement.placement import viewed
from ops.programs.data_movement.reshape import is_view

INDEX_BYTES = 32  # of indices that are read at a time
KEPT_BYTES = 32  # a kept row is rounded up to a multiple of this, for any memory
DOUBLED_TILES = 64  # of a row that is buffered twice, and of a part of a row that does not fit L1
MOST_AXES = 4  # of a table
HINT = "weight: give [rows, columns] of bfloat16, interleaved"


class EmbeddingKind(Enum):
    """ttnn's EmbeddingsType; values are the rows of the table that a core keeps."""

    GENERIC = 0
    PADDED = 1
    BINARY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingArguments:
    """A call."""

    indices: TensorSpec  # "input"
    table: TensorSpec  # "weight"
    kind: EmbeddingKind = EmbeddingKind.GENERIC
    pad_token: int | None = None
    layout: Layout | None = None
    data_format: DataFormat | None = None
    place: MemoryConfig | None = None
    target: TensorSpec | None = None  # The caller's tensor "target" that the rows are written into, if there is one

    @property
    def out_layout(self) -> Layout:
        """Layout of the result."""
        return self.table.layout if self.layout is None else self.layout


def plan_embedding(call: EmbeddingArguments, spec: DeviceSpec) -> Plan:
    """Plan the rows of "weight" selected by "input"; the program writes them into "target" if given.

    The result is a new tensor if its layout or data type differs from the target's.
    """
    if len(call.table.shape) > MOST_AXES:
        raise DeviceError(f"Tensor rank is greater than {MOST_AXES}\nweight: give [rows, columns]")

    def write(builder: PlanBuilder, indices: PlanTensor, weight: PlanTensor, *target: PlanTensor) -> PlanTensor:
        table = weight
        if weight.spec.layout is Layout.TILE:
            table = in_other_layout(builder, weight, Layout.ROW_MAJOR, "table")
        picked = _run(builder, call, indices, table, *target)
        result = picked
        if picked.spec.layout is not call.out_layout:
            result = in_other_layout(builder, picked, call.out_layout, "output.tiles")
            builder.free_own(picked)
        wanted = call.data_format or table.spec.data_format
        tiles = result
        if result.spec.layout is Layout.TILE and result.spec.data_format != wanted:
            result = typecast_by(builder, result, wanted, "output")
        builder.free_own(*([] if tiles.name == result.name else [tiles]), table, keep=[result])
        return result

    return plan_of({"input": call.indices, "weight": call.table, "target": call.target}, spec, write, attempts=True)


def _run(
    builder: PlanBuilder,
    call: EmbeddingArguments,
    indices: PlanTensor,
    table: PlanTensor,
    target: PlanTensor | None = None,
) -> PlanTensor:
    """The program that picks rows, under the shape of the result."""
    index, spec = indices.spec, builder.device_spec
    if index.memory_config.is_sharded() and index.layout is Layout.ROW_MAJOR and index.shape:
        first = index.shape[0] if len(index.shape) > 1 else 1
        viewed(
            index, (first, 1, 1, index.shape[-1]), spec
        )  # the library sees them so first, which not all shards allow
    table = seen(table, (*(1,) * (2 - len(table.spec.shape)), *table.spec.shape))
    columns = table.spec.shape[-1]
    whole = index.padded_shape[-1] % TILE == table.spec.padded_shape[-1] % TILE == 0
    fused = whole and call.out_layout is Layout.TILE
    cast = call.data_format is not None and call.data_format != table.spec.data_format
    if whole and call.layout is None and not fused and cast:
        raise DeviceError(
            "Can only typecast output embeddings when producing TILE_LAYOUT output\n"
            "layout: give ttnn.TILE_LAYOUT, or leave dtype out"
        )
    place = index.memory_config if call.place is None else call.place
    tiled = fused and index.layout is not Layout.TILE
    shape = (*index.shape[:1], *index.shape[-1:], columns) if len(index.shape) > 1 else (*index.shape, columns)
    several = index.layout is Layout.TILE and len(index.shape) == 1
    allocated = index.shape + shape if several else shape  # repeated per index: all later rows are unused
    layout = Layout.TILE if tiled else Layout.ROW_MAJOR
    if target is None:
        require_shard_spec(place, in_rows=layout is Layout.ROW_MAJOR)
    result = TensorSpec(allocated, BFLOAT16, layout, place) if target is None else target.spec
    result.require_on(spec)
    output = PlanTensor("output.rows", result)
    for text in _refusals(call, table.spec, place, fused=fused):
        raise DeviceError(f"{text}\n{HINT}")
    op = Embed(shape=shape, rows=table.spec.shape[-2])
    lines = prod(allocated[:-1])
    if index.layout is Layout.TILE:
        buffers = _of_tiled_indices(call, index, table.spec, lines, spec)
    elif tiled:
        buffers = _tilized(call, index, table.spec, output, lines, spec)
    else:
        buffers = _in_rows(call, index, table.spec, output, lines, spec)
    refused = borrowing_refusal([("output", "output", output)]) if tiled else None
    picked = builder.run(
        "EmbeddingsDeviceOperation", op, [indices, table], output, buffers, dataflow=True, refused=refused
    )
    if target is not None:
        return _in_target(builder, builder.written_into(picked, target), shape, layout)
    return PlanTensor(picked.name, output.spec.changed(shape=shape)) if several else picked


def _in_target(builder: PlanBuilder, target: PlanTensor, shape: tuple[int, ...], layout: Layout) -> PlanTensor:
    """A target under the shape of the result; the program looks at no more of it than its memory."""
    held, way_out = target.spec, f"output_tensor: give one of shape {list(shape)}"
    if (held.layout, held.data_format) != (layout, BFLOAT16) or held.volume != prod(shape):
        builder.leave_out_values(
            f"embedding: the program writes {list(shape)} of bfloat16 in {layout.name} layout, whatever output_tensor "
            f"is, here {list(held.shape)} of {held.data_format} in {held.layout.name} layout; give it that form"
        )
    if held.volume == prod(shape):
        return reshaped_by(builder, target, shape, None, None, "output.seen")
    padded = held.changed(shape=held.padded_shape, padded_shape=None)
    if not (is_view(held, shape) or is_view(padded, shape)):
        raise DeviceError(f"{OTHER_VOLUME}\n{way_out}")
    seen_as = viewed(held, shape, builder.device_spec)
    if prod(seen_as.padded_shape) > prod(held.padded_shape):
        raise DeviceError(f"{TOO_SMALL}\n{way_out}")
    return PlanTensor(target.name, seen_as)


def _refusals(call: EmbeddingArguments, table: TensorSpec, place: MemoryConfig, *, fused: bool) -> Iterator[str]:
    """The refusals of the device operation, in its order."""
    index, shards = call.indices, place.shard_spec
    if index.data_format not in (UINT32, BFLOAT16):
        yield "Input must be UINT32 or BFLOAT16"
    if table.data_format != BFLOAT16:
        yield "Weights tensor must have BFLOAT16 dtype"
    if table.memory_config.is_sharded():
        yield "Embedding does not currently support sharded weights"
    if index.memory_config.is_sharded():
        yield "Embedding does not currently support sharded inputs"
    outer = (1, 1, 1, *table.padded_shape)[-4:-2]
    if outer != (1, 1):
        yield f"First two dimensions for the weights must be 1 but got {outer[0]} and {outer[1]}"
    if fused and place.is_sharded() and shards is None:
        yield "Sharded memory config must have a shard spec"
    if fused and shards is not None:
        high, wide = shards.shape
        volume = prod(index.padded_shape)
        if high % TILE:
            yield f"Shard height {high} must be a multiple of tile height {TILE} to have the output tensor tilized"
        if wide % TILE:
            yield f"Shard width {wide} must be a multiple of tile width {TILE} to have the output tensor tilized"
        if volume % high:
            yield f"Input tensor volume {volume} must be a multiple of shard height {high}"
        if table.padded_shape[-1] % wide:
            yield f"Number of columns in table {table.padded_shape[-1]} must be factor of shard width {wide}"
    elif not fused and place.is_sharded() and place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        yield "Embedding only supports height sharded Row Major outputs"
    elif not fused and place.is_sharded() and place.buffer_type is BufferType.DRAM:
        yield "Embedding sharded Row Major output must be in L1: the reader writes rows straight into its own shard"
    if call.kind is EmbeddingKind.PADDED and call.pad_token is None:
        yield "Pad token must be specified when PADDED Embeddings Type is specified"
    if call.kind is EmbeddingKind.BINARY and table.padded_shape[-2] != 2:
        yield "Weight tensor must have 2 embeddings for BINARY Embeddings Type"


def _page_bytes(index: TensorSpec, table: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of a row of the table, aligned (as the library does) for the memory of the indices."""
    return round_up(row_bytes(table), page_alignment_bytes(index.memory_config, spec))


def _kept(call: EmbeddingArguments, table: TensorSpec, cores: CoreRangeSet) -> list[CircularBuffer]:
    """The rows of the table that a core keeps, if it keeps any."""
    size = call.kind.value * round_up(row_bytes(table), KEPT_BYTES)
    return [scratchpad("kept_rows", size, BFLOAT16, cores)] if size else []


def _in_rows(
    call: EmbeddingArguments, index: TensorSpec, table: TensorSpec, output: PlanTensor, lines: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """A row or two, and some indices."""
    shards, data_format = output.spec.memory_config.shard_spec, index.data_format
    rows: list[CircularBuffer] = []
    if shards is None:
        cores = page_cores(lines, spec.grid)
        ahead = BUFFERING if lines > cores.num_cores() else 1
        rows = [buffer("rows", ahead * _page_bytes(index, table, spec), BFLOAT16, cores)]
    else:
        cores = shards.grid
        held, row = shard_view("rows", output, spec).size_bytes, _page_bytes(index, table, spec)
        if held % row:
            raise DeviceError(
                f"Embedding output staging buffer size {held} B must be divisible by its entry size {row} B\n"
                "input: give it in L1, or memory_config: give shards whose bytes are whole rows"
            )
        if shards.shape[0] * row > held:
            raise DeviceError(
                f"Embedding sharded output: {shards.shape[0]} rows of {row} B do not fit in the {held} B output shard\n"
                "input: give it in L1, or weight: give columns that DRAM aligns"
            )
    single = data_format.element_bytes or 0
    aligned = round_up(single, page_alignment_bytes(index.memory_config, spec))
    pad = scratchpad("indices", INDEX_BYTES // single * aligned, data_format, cores)
    return (*rows, pad, *_kept(call, table, cores))


def _tilized(
    call: EmbeddingArguments, index: TensorSpec, table: TensorSpec, output: PlanTensor, lines: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """A row of tiles, twice if L1 has room for it, before and after it is tilized."""
    shards, data_format = output.spec.memory_config.shard_spec, index.data_format
    wide = table.padded_shape[-1] // TILE
    if shards is None:
        cores = page_cores(lines // TILE, spec.grid)
        if not cores.num_cores():
            raise DeviceError(
                "DFB 'output' has no producer\n"
                "input: no elements make no rows that could be tilized; give them in tiles, or leave layout out"
            )
    else:
        cores, wide = shards.grid, shards.shape[1] // TILE
    pads = [scratchpad("indices", TILE * (data_format.element_bytes or 0), data_format, cores)]
    pads += _kept(call, table, cores)
    held = wide if wide > DOUBLED_TILES else BUFFERING * wide
    tile_bytes = output.spec.data_format.tile_bytes
    needed = held * (BFLOAT16.tile_bytes + tile_bytes) + sum(pad.size_bytes for pad in pads)
    if needed > spec.l1.usable_bytes:
        held = BUFFERING * max(part for part in range(1, DOUBLED_TILES + 1) if wide % part == 0)
    out = tile_buffer("tiles", held, output.spec.data_format, cores)
    if shards is not None:
        size = output.spec.buffer(spec).bank_bytes
        if size % tile_bytes:
            raise DeviceError(
                f"Embedding output buffer size {size} B must be divisible by its tile size {tile_bytes} B\n"
                "output_tensor: give shards of whole tiles, or memory_config instead"
            )
        if not wide:
            raise DeviceError(
                "DataflowBufferSpec 'weights_staging' has num_entries = 0. num_entries must be set to a non-zero "
                f"value.\noutput_tensor: its shards of {shards.shape[1]} columns hold no tile"
            )
        if shards.shape[0] < TILE:
            raise DeviceError(
                "DFB 'weights_staging' has no consumer\n"
                f"output_tensor: its shards of {shards.shape[0]} rows hold no tile"
            )
        out = shard_view("tiles", output, spec)
    return (tile_buffer("rows", held, BFLOAT16, cores), out, *pads)


def _of_tiled_indices(
    call: EmbeddingArguments, index: TensorSpec, table: TensorSpec, lines: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two rows, and a tile of indices; every core but the last takes as many rows of the result, in whole faces."""
    used, _ = spread_evenly(div_up(lines, FACE), spec.grid.cores)
    cores = page_cores(used, spec.grid)
    tile = scratchpad("indices", index.data_format.tile_bytes, index.data_format, cores)
    rows = buffer("rows", BUFFERING * _page_bytes(index, table, spec), BFLOAT16, cores)
    return (rows, tile, *_kept(call, table, cores))


def require_two_axes(call: EmbeddingArguments) -> None:
    """Raises ArgumentError for indices with axes between the first and the last, which the library drops."""
    if prod(call.indices.shape[1:-1]) != 1:
        raise ArgumentError(
            f"embedding: of indices {list(call.indices.shape)} ttnn looks at the first of the axes between the first "
            "and the last alone; reshape them to two axes"
        )
