"""The distribution of tiles or rows of a reduction over cores, and its circular buffers (tt-metal 0.81.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, TensorMemoryLayout as Scheme
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.plan import CircularBuffer, RequiredRoom
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.reduction.reduce import Reduce, tile_sides

TOGETHER: Final = 4  # tiles that a reader asks for at once
MOST_CHUNK_TILES: Final = 8  # tiles of rows or columns that are tilized together
SCHEME_IN_PLACE: Final[Mapping[tuple[int, ...], Scheme]] = {(-1,): Scheme.HEIGHT_SHARDED, (-2,): Scheme.WIDTH_SHARDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of a program's cores."""

    cores: CoreRangeSet
    core_items: int  # Rows or columns of tiles, or rows, of the core with the most
    least_items: int  # And of the core with the fewest
    core_tiles: int  # Tiles it reads
    core_outputs: int
    on_shards: bool  # Each core reduces its own shard

    @classmethod
    def of(
        cls,
        source: TensorSpec,
        target: TensorSpec,
        axes: tuple[int, ...],
        slices: int,
        allowed: CoreRangeSet | None,
        grid: GridSpec,
    ) -> "Work":
        """The work of a program with these ends."""
        images, high, wide = tile_sides(source)
        if _in_place(source, target, axes):
            rows, columns = source.shards.shape
            tiles = rows * columns // TILE**2
            outputs = rows // TILE if axes == (-1,) else tiles // high
            return cls(
                cores=source.shards.grid,
                core_items=outputs,
                least_items=outputs,
                core_tiles=tiles,
                core_outputs=outputs,
                on_shards=True,
            )
        by_rows = source.layout is Layout.ROW_MAJOR
        if axes == (-1,):
            items = prod(source.shape[:-1]) if by_rows else images * high
        elif axes == (-2,):
            items = images * wide * slices
        else:
            items = 1
        cores = _dealt(items, allowed, grid, row_wise=by_rows and axes == (-1,))
        share = div_up(items, cores.num_cores())
        if axes == (-1,):
            outputs = div_up(share, TILE) if by_rows else share
            tiles = outputs * wide
        elif axes == (-2,):
            outputs, tiles = share, share * div_up(high, slices)
        else:
            outputs, tiles = 1, images * high * wide
        least = items // cores.num_cores()
        return cls(
            cores=cores,
            core_items=share,
            least_items=least,
            core_tiles=tiles,
            core_outputs=outputs,
            on_shards=False,
        )


def _in_place(source: TensorSpec, target: TensorSpec, axes: tuple[int, ...]) -> bool:
    """Whether cores reduce their own shards: HEIGHT shards that are full along rows, WIDTH shards along columns."""
    scheme = SCHEME_IN_PLACE.get(axes)
    ends = (source.memory_config, target.memory_config)
    if any(end.memory_layout is not scheme or end.buffer_type is not BufferType.L1 for end in ends):
        return False
    full = source.shards.shape[0] * source.shards.num_cores() == source.matrix[0] or scheme is Scheme.WIDTH_SHARDED
    return full and source.shards.grid == target.shards.grid


def _dealt(items: int, allowed: CoreRangeSet | None, grid: GridSpec, *, row_wise: bool) -> CoreRangeSet:
    if allowed is None:
        return first_cores(min(items, grid.cores), grid.cols, grid.rows, row_wise=row_wise).merged()
    cores = list(allowed.cores())[: min(items, allowed.num_cores())]
    return CoreRangeSet([CoreRange(core, core) for core in cores]).merged()


def reduce_buffers(
    op: Reduce, source: PlanTensor, target: PlanTensor, work: Work, chunk: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers, in order; ``chunk`` is the number of tiles in Dst."""
    read, written = source.spec, target.spec
    if read.layout is Layout.ROW_MAJOR:
        return _row_buffers(op, read, written, work)
    scaler = FLOAT32 if read.data_format == FLOAT32 else BFLOAT16
    negates = op.negates
    (_, high, wide), cores = tile_sides(read), work.cores
    columns = op.axes == (-2,)
    tiles = BUFFERING
    if negates and columns and not work.on_shards:
        tiles = chunk
    elif len(op.axes) == 2 and not negates and work.core_tiles >= TOGETHER:
        tiles = 2 * TOGETHER
    elif work.on_shards or len(op.axes) == 2:
        tiles = BUFFERING
    elif columns:
        tiles = 2 * chunk if _reads_together(op, work, chunk) else BUFFERING
    elif work.least_items * (1 if negates else wide) >= TOGETHER:  # negated rows are read side by side
        tiles = 2 * TOGETHER

    def tile(name: str, count: int, tensor: TensorSpec, view: str | None = None) -> CircularBuffer:
        return tile_buffer(name, count, tensor.data_format, cores, view)

    buffers = [tile("tiles", tiles, read)]
    if work.on_shards:
        buffers.append(tile("shard", prod(read.shards.shape) // TILE**2, read, source.name))
    buffers.append(tile_buffer("scaler", 1, scaler, cores))
    if work.on_shards:
        buffers.append(tile("results", prod(written.shards.shape) // TILE**2, written, target.name))
    else:
        buffers.append(tile("results", chunk if negates and columns else BUFFERING, written))
    if negates:
        count = high * negated_columns(work) if columns else 1
        buffers += [tile("negated_sum", count, written), tile("negated", count, written)]
    return tuple(buffers)


def negated_columns(work: Work) -> int:
    """Columns of negated tiles on a core; with two groups of cores, the library multiplies the columns of both."""
    return work.core_items * (work.least_items if 0 < work.least_items < work.core_items else 1)


def negated_room(read: TensorSpec, written: TensorSpec, work: Work) -> RequiredRoom:
    """The L1 of the columns that a core negates twice."""
    tiles = tile_sides(read)[1] * negated_columns(work)
    size = 2 * tiles * written.data_format.tile_bytes
    return RequiredRoom(
        size,
        f"Negate H reduce: acc + ineg ({size} B for {tiles} tiles) would not fit in available L1 ({{room}} B). Caller "
        "must use h_reduce_negate_fits_in_l1 to choose the external-negate fallback.\n"
        "memory_config: keep the tensor and the result in DRAM, or free other tensors in L1",
    )


def has_room(room: RequiredRoom, read: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether L1 has room besides a tensor in it, which the library checks before it chooses a program."""
    held = read.buffer(spec).bank_bytes if read.memory_config.buffer_type is BufferType.L1 else 0
    return room.size_bytes <= spec.l1.usable_bytes - held


def _reads_together(op: Reduce, work: Work, chunk: int) -> bool:
    """Whether the reader asks for a chunk of columns at once; of slices, for as many tiles of the stream."""
    if op.slices > 1:
        return op.source_format != FLOAT32
    return work.least_items >= chunk


def _row_buffers(op: Reduce, read: TensorSpec, written: TensorSpec, work: Work) -> tuple[CircularBuffer, ...]:
    """Rows, a row of scalers, partial results, tiles of the rows, a tile of the input and two of results."""
    scaler = FLOAT32 if read.data_format == FLOAT32 else BFLOAT16
    _, high, wide = tile_sides(read)
    across = op.axes == (-1,)
    chunk = min(wide if across else high, MOST_CHUNK_TILES)
    sizes = (
        ("rows", 2 * chunk if across else BUFFERING, read.data_format),
        ("scaler", 1, scaler),
        ("partials", 1, written.data_format),
        ("tiles", max(chunk, BUFFERING), read.data_format),
        ("fill", 1, read.data_format),
        ("results", BUFFERING, written.data_format),
    )
    return tuple(tile_buffer(name, tiles, data_format, work.cores) for name, tiles, data_format in sizes)
