"""Permutations of axes: the operation, its values, cycles, buffers, and the shards of results.

Cycles are composed of measured actions. Rows that move to or from the last axis are read, tilized, transposed while
they are untilized, and written, one tile at a time, by all cores in step, so DRAM banks are the limit (`bank_steps`).
Both data movement processors fetch sticks of shards; the last two axes of shards are transposed in place. Whole tiles
and rows are copied, rows to addresses that a processor computes axis by axis; rows of tiles move into other tiles by
lines of faces (`tile_lines`). Otherwise tiles are awaited as in copies, and pieces of rows are requested and written in
sequence like sticks of other movements. Whole tiles are predicted 1 to 9 % too fast against public profiler rows on
Blackhole. Source of the order of work and of the buffers: tt-metal 0.81.1 (data_movement/permute, transpose and
common), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.matrix_unit.packer import pack
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    FACE,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import GROUP, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.network import hands, shared_read_cycles
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Ends
from ops.programs.buffer_shapes import (
    BUFFERING,
    aligned_page,
    buffer,
    in_dram,
    is_uneven,
    page_alignment_bytes,
    page_cores,
    pipelined_cycles,
    row_bytes,
    sized_buffers,
    spread_evenly,
    volume_tiles,
)
from ops.programs.data_movement.bank_steps import busiest_bank_rows
from ops.programs.data_movement.movement import Access, Composed, DataMovement, Movement, Pages, copy_movement, sides_of
from ops.programs.data_movement.tile_lines import composed_by_lines
from ops.programs.kernel_costs import (
    StickCosts,
    TransferCosts,
    burst_cycles,
    core_round_trip_cycles,
    local_sticks_cycles,
    tilize_block_cycles,
    untilize_tile_cycles,
    waited_read_cycles,
    write_latency_cycles,
)

Shape = tuple[int, ...]


def keeps_tiles(axes: Shape) -> bool:
    """Whether tiles stay whole, transposed or not: the last two axes stay the last two."""
    return set(axes[-2:]) == {len(axes) - 2, len(axes) - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(DataMovement):
    """Axes in another order."""

    LOCATES = True

    shape: Shape
    axes: Shape  # The axis of the source that each axis of the result is
    # The block float whose groups are packed again, since their axis changes; None for other formats
    packed: DataFormat | None = None

    def moved(self, values: Array) -> Array:
        """The axes in order; groups of a block float that ends between them are filled up with zeros."""
        if values.size != prod(self.shape):  # values of an operand with its padding
            rows, columns = self.shape[-2:]
            values = values.reshape(*self.shape[:-2], *values.shape[-2:])[..., :rows, :columns]
        turned = np.ascontiguousarray(values.reshape(self.shape).transpose(self.axes))
        if self.packed is None:
            return turned
        columns = turned.shape[-1]
        filled = np.zeros((*turned.shape[:-1], round_up(columns, GROUP)), np.float32)
        filled[..., :columns] = turned
        return pack(filled, self.packed, fp32_dest=False)[..., :columns].astype(self.packed.storage)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed | None:
        """The movement of rows; None for tiles, for rows that stay whole, and for shards whose axes move otherwise."""
        rank, sharded = len(self.axes), [tensor.memory_config.is_sharded() for tensor in (ends.read, ends.written)]
        in_tiles = ends.read.layout is Layout.TILE
        if in_tiles and self.axes[-1] == rank - 1 and not keeps_tiles(self.axes):
            return composed_by_lines(self.shape, self.axes, ends, spec)
        if rank < 3 or (in_tiles and self.axes[-1] >= rank - 2):
            return None
        moved = tuple(axis - rank for place, axis in enumerate(self.axes) if axis != place)
        if in_tiles or (not any(sharded) and self.axes[-1] != rank - 1):
            model = _by_tiles
        elif all(sharded) and moved in ((-1, -2), (-2, -3)):
            model = _turned_in_place if moved == (-1, -2) else _fetched
        else:
            return None
        size = ends.read.data_format.element_bytes or 1  # block floats are bytes
        read, written = (prod(tensor.shape) * size * in_dram(tensor) for tensor in (ends.read, ends.written))
        if in_tiles:  # rows of faces are read; whole tiles are written, padding and all
            read = read // ends.read.shape[-1] * round_up(ends.read.shape[-1], TILE)
            written = volume_tiles(ends.written) * ends.written.data_format.tile_bytes * in_dram(ends.written)
        return replace(model(self, ends, spec), dram_read_bytes=read, dram_written_bytes=written)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of a program that tilizes no rows: whole ones are copied, others moved in pieces."""
        in_tiles, rank = read.layout is Layout.TILE, len(self.axes)
        if keeps_tiles(self.axes) if in_tiles else self.axes[-1] == rank - 1:
            copied = copy_movement(read, written, spec)
            if not in_tiles and copied.writes is not None:  # the address of a row is computed axis by axis
                return replace(copied, writes=replace(copied.writes, axes=rank - 1))
            turned = copied.blocks if self.axes[-1] != rank - 1 else 0
            return replace(copied, cast_tiles=turned, formats=(read.data_format, written.data_format))
        size = read.data_format.element_bytes or 1  # block floats are bytes

        def pieces(pages: Pages, count: int, elements: int, cores: int) -> Pages:
            """A side whose pages are accessed in pieces, in sequence."""
            core_pieces = div_up(count, cores)
            return replace(
                pages, access=Access.STICKS, core_pages=core_pieces, page_bytes=elements * size, all_pages=count,
                tiles=False,
            )  # fmt: skip

        sides = sides_of(read, written, spec)
        if in_tiles and self.axes[-1] == rank - 2:  # tiles are waited for, and their rows written face by face
            rows = prod(written.shape[:-2]) * written.padded_shape[-2]  # padding is also written line by line
            lines = rows * div_up(read.shape[-1], FACE)
            reads = replace(sides.read, access=Access.WAIT)
            writes = replace(
                pieces(sides.written, lines, FACE, sides.cores.num_cores()), uneven_bytes=sides.written.all_bytes
            )
            return Movement(cores=sides.cores, reads=reads, writes=writes, blocks=reads.core_pages)
        # Blocks of both axes that are last, before and behind. Axes before the source's own have one element
        shape = (1,) * (rank - len(read.shape)) + read.shape
        moved, columns = shape[self.axes[-1]], shape[-1]
        others, high, wide = prod(read.shape[:-1]) // moved, div_up(moved, TILE), div_up(columns, TILE)
        used, core_blocks = spread_evenly(others * high * wide, spec.grid.cores)
        reads = pieces(sides.read, others * moved * wide, min(TILE, columns), used)
        writes = pieces(sides.written, others * columns * high, min(TILE, moved), used)
        cores = first_cores(used, spec.grid.cols, spec.grid.rows)
        return Movement(cores=cores, reads=reads, writes=writes, blocks=core_blocks)


DIRECT_TILES: Final = 8  # tiles of a column whose rows the packer writes straight into the result


def _by_tiles(op: Permute, ends: Ends, spec: DeviceSpec) -> Composed:
    """Parts of tiles in sequence: rows along the axis that becomes the last, up to the end of a tile.

    Rows of tiles are in faces and are written whole, including the padding after a ragged row. All cores read and write
    in step, so a part arrives only after the banks have answered the requests of all cores.
    """
    last, moved = op.shape[-1], op.shape[op.axes[-1]]
    count = prod(op.shape) // (last * moved) * div_up(last, TILE) * div_up(moved, TILE)
    used = min(count, spec.grid.cores)
    rows, width = min(TILE, moved), min(TILE, last)
    data_format, reads, parts = ends.read.data_format, rows, 1
    element_bytes = data_format.element_bytes or 1  # block floats are bytes
    read_bytes, written_bytes = width * element_bytes, rows * element_bytes
    if ends.read.layout is Layout.TILE:
        reads, parts = rows * div_up(width, FACE), TILE // FACE
        read_bytes = written_bytes = FACE * element_bytes
    cores = first_cores(used, spec.grid.cols, spec.grid.rows)
    steps = (
        _part_read_cycles(ends.read, reads, read_bytes, used, spec),
        tilize_block_cycles(spec, 1, data_format, data_format),
        untilize_tile_cycles(spec, 1),
        _part_written_cycles(op, ends.written, parts, written_bytes, used, spec),
    )
    return _turned(cores, steps, div_up(count, used))


def _part_read_cycles(source: TensorSpec, reads: int, read_bytes: int, used: int, spec: DeviceSpec) -> float:
    """So many pieces of rows, or of rows of faces, which all cores ask for in step, until the last is there."""
    link, issue = spec.noc.link_bytes_per_cycle, spec.costs_of(TransferCosts).page_issue_cycles
    answered = waited_read_cycles(spec, 0, in_dram=in_dram(source))
    if source.layout is Layout.TILE and read_bytes < page_alignment_bytes(source.memory_config, spec):
        # Half of the lines have another alignment in memory than in L1: each is read alone, then copied within the core
        alone = answered + read_bytes / link + local_sticks_cycles(spec, 1, read_bytes)
        read = reads / 2 * (issue + alone)
    else:
        read = burst_cycles(issue, reads, read_bytes, answered, link)
    if not in_dram(source):
        return read
    return max(read, answered + shared_read_cycles(spec, used * reads * read_bytes, read_bytes))


def _part_written_cycles(
    op: Permute, target: TensorSpec, parts: int, written_bytes: int, used: int, spec: DeviceSpec
) -> float:
    """Cycles to write a piece of every row of a block, in ``parts``, to an address computed axis by axis."""
    last, issue = op.shape[-1], spec.costs_of(StickCosts).stick_write_cycles
    answered = write_latency_cycles(spec, in_dram=in_dram(target))
    located = len(op.shape) * spec.costs_of(TransferCosts).axis_cycles
    writes = parts * min(TILE, last)
    alone = located + burst_cycles(issue, writes, written_bytes, answered, spec.noc.link_bytes_per_cycle)
    if not in_dram(target) or target.memory_config.is_sharded():
        return alone
    rows = busiest_bank_rows(op.shape, op.axes, used, spec.dram.banks, tiled=target.layout is Layout.TILE)
    bank = parts * rows * spec.dram.write_request_ns * spec.clock_hz / 1e9
    # Cores that wait for a bank longer than they work drift apart, so that it is always busy; others stay in step
    return max(alone, bank, min(alone, bank) + located + answered)


def _turned_in_place(op: Permute, ends: Ends, spec: DeviceSpec) -> Composed:
    """The images of a core's shard in sequence: sticks are copied to an input buffer, tilized and transposed."""
    shards, data_format, (height, width) = ends.read.shards, ends.read.data_format, op.shape[-2:]
    down, across = div_up(height, TILE), div_up(width, TILE)
    read = down * local_sticks_cycles(spec, min(TILE, height), row_bytes(ends.read, width))
    turned = down * across * untilize_tile_cycles(spec, down)
    apart = down > DIRECT_TILES
    written = local_sticks_cycles(spec, width, row_bytes(ends.read, height)) if apart else 0.0
    steps = read, tilize_block_cycles(spec, down * across, data_format, data_format), turned, written
    return _turned(shards.grid, steps, div_up(shards.shape[0], height))


def _turned(cores: CoreRangeSet, steps: tuple[float, float, float, float], blocks: int) -> Composed:
    """Blocks that are read, tilized and transposed by one unit, and written, with the cycles of these steps."""
    read, tilized, turned, written = steps
    texts = {
        Stage.READER: "rows are read, as far as tiles reach",
        Stage.TILIZE: "rows become tiles",
        Stage.UNTILIZE: "tiles are turned and become rows",
        Stage.WRITER: "rows are written where they belong",
    }
    return Composed(
        cores=cores,
        body_cycles=pipelined_cycles((read, tilized + turned, written), blocks),
        stages={stage: (blocks * cycles, text) for (stage, text), cycles in zip(texts.items(), steps, strict=True)},
        steps="reading, tilizing, untilizing and writing rows",
    )


def _fetched(op: Permute, ends: Ends, spec: DeviceSpec) -> Composed:
    """Two kernels fetch half of a core's sticks each, stick by stick; or one kernel fetches all sticks."""
    shards, kernels = ends.written.shards, hands(spec, 2)
    rows, columns = shards.shape
    issue, link = spec.costs_of(TransferCosts).read_issue_cycles, spec.noc.link_bytes_per_cycle
    stick_bytes, round_trip = row_bytes(ends.read, columns), core_round_trip_cycles(spec)
    share = burst_cycles(issue, div_up(rows, kernels), stick_bytes, round_trip, link)
    stages = {
        Stage.READER: (share, "one processor fetches half of the sticks from where they lie"),
        Stage.SECOND_READER: (share * (kernels > 1), "the other fetches the other half"),
    }
    return Composed(cores=shards.grid, body_cycles=share, stages=stages, steps="reading sticks of other cores")


def permute_buffers(
    source: TensorSpec, target: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: rows that stay whole, tiles that do, or blocks of both axes that are last.

    A row of a face of a number fills tiles that are left ragged; short reads of blocks need room to be aligned.
    """
    data_format, rank, last = source.data_format, len(axes), axes[-1]
    page, element_bytes = BUFFERING * data_format.tile_bytes, data_format.element_bytes or 1  # block floats are bytes
    alignment = page_alignment_bytes(source.memory_config, spec)
    moved, columns = source.shape[last], source.shape[-1]

    def blocks() -> int:
        """Blocks of both axes; the library divides by their sides, also by sides of 0."""
        return source.volume // columns // moved * div_up(moved, TILE) * div_up(columns, TILE)

    fill = {"fill": FACE * element_bytes} if source.shape[axes[-2]] % TILE else {}
    if source.layout is Layout.ROW_MAJOR:
        stays, row = last == rank - 1, round_up(row_bytes(source, columns), alignment)
        sizes = {"rows": BUFFERING * row} if stays else dict.fromkeys(("read", "turned", "tiled"), page)
        pages = source.volume // columns if stays else blocks()
    elif keeps_tiles(axes):
        sizes, pages = {"tiles": page} if last == rank - 1 else {"tiles": page, "turned": page}, volume_tiles(target)
    elif last >= rank - 2:  # rows of tiles move to other tiles, transposed or not
        turns = last == rank - 2
        sizes = {"tiles": page, **fill, "turned": page} if turns else {"tiles": page, **fill}
        pages = max(volume_tiles(source), volume_tiles(target) // (target.padded_shape[-1 if turns else -2] // TILE))
    else:
        size = page + BUFFERING * max(0, alignment - FACE * element_bytes)
        sizes = {**dict.fromkeys(("read", "tiled", "turned"), size), **fill}
        pages = max(blocks(), volume_tiles(target) // (target.padded_shape[-2] // TILE))
    return sized_buffers(sizes, data_format, page_cores(pages, spec.grid))


LAST_TWO, MIDDLE_TWO = (2, 3), (1, 2)  # axes of a tensor of rank 4 that are swapped


def is_native(tensor: TensorSpec, place: MemoryConfig | None = None) -> bool:
    """Whether programs swap axes of a tensor's shards in place.

    The shards are in L1, not BLOCK, all of them full, and their rows fill whole tiles' worth. The memory of the result
    meets the same conditions on the same cores.
    """
    shards = tensor.memory_config.shard_spec
    if shards is None or is_uneven(tensor):
        return False
    for where in (tensor.memory_config, tensor.memory_config if place is None else place):
        by_blocks, part = where.memory_layout is TensorMemoryLayout.BLOCK_SHARDED, where.shard_spec
        if not where.is_sharded() or where.buffer_type is BufferType.DRAM or by_blocks:
            return False
        whole = tensor.layout is Layout.TILE or part is None or prod(part.shape) % TILE**2 == 0
        if not whole or (part is not None and part.grid != shards.grid):
            return False
    return True


def place_of_swap(tensor: TensorSpec, swapped: tuple[int, int]) -> MemoryConfig:
    """The memory of a tensor of rank 4 with two axes swapped: without shards if the program chooses them."""
    place, shards, before = tensor.memory_config, tensor.memory_config.shard_spec, tensor.padded_shape
    if not place.is_sharded():
        return place
    if shards is None or not is_native(tensor):
        return MemoryConfig(place.memory_layout, place.buffer_type)
    if swapped == LAST_TWO:
        if before[:2] == (1, 1) and shards.shape[1] == before[3]:
            turned = shards.changed(shape=(shards.shape[1], shards.shape[0]))
            return MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, place.buffer_type, turned)
        after = (before[0], before[1], before[3], before[2])
    elif swapped == MIDDLE_TWO and tensor.layout is Layout.TILE:
        after = (before[0], tensor.shape[2], round_up(tensor.shape[1], TILE), before[3])
    else:
        return place
    fitted = adjusted(shards, before, after, tensor.layout)
    return L1_MEMORY_CONFIG if fitted is None else replace(place, shard_spec=fitted)


def adjusted(shards: ShardSpec, before: Shape, after: Shape, layout: Layout) -> ShardSpec | None:
    """The same number of shards for another shape; None if shards would not have whole rows, columns or tiles."""
    rows, left = divmod(shards.shape[0] * prod(after[:-1]), prod(before[:-1]))
    columns, over = divmod(shards.shape[1] * after[-1], before[-1])
    ragged = layout is Layout.TILE and (rows % TILE or columns % TILE)
    return None if left or over or ragged else shards.changed(shape=(rows, columns))


def with_shards(tensor: TensorSpec, after: Shape, place: MemoryConfig, spec: DeviceSpec) -> MemoryConfig:
    """A memory with shards for a tensor of padded shape `after`: its own, adjusted, or whole tiles for all cores.

    `place` is returned as it is if it needs no shards or has some.
    """
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    shards, fitted = tensor.memory_config.shard_spec, None
    if shards is not None and tensor.memory_config.memory_layout is place.memory_layout:
        fitted = adjusted(shards, tensor.padded_shape, after, tensor.layout)
    orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
    return replace(place, shard_spec=fitted or even_shards(after, place.memory_layout, orientation, spec.grid))


def even_shards(
    shape: Shape, layout: TensorMemoryLayout, orientation: ShardOrientation, grid: GridSpec, unit: int = TILE
) -> ShardSpec:
    """Shards of whole units, such as tiles, that share a tensor evenly on all cores, without empty shards."""
    rows, columns, along = prod(shape[:-1]), shape[-1], orientation is ShardOrientation.ROW_MAJOR
    by_blocks = layout is TensorMemoryLayout.BLOCK_SHARDED
    if by_blocks:
        down, across = (grid.rows, grid.cols) if along else (grid.cols, grid.rows)
    else:
        down, across = (grid.cores, 1) if layout is TensorMemoryLayout.HEIGHT_SHARDED else (1, grid.cores)
    shard = (round_up(div_up(rows, down), unit), round_up(div_up(columns, across), unit))
    high, wide = div_up(rows, shard[0]), div_up(columns, shard[1])
    cores = first_cores(high * wide, grid.cols, grid.rows, row_wise=along)
    if by_blocks:
        x, y = (wide, high) if along else (high, wide)
        cores = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(x - 1, y - 1)))
    return ShardSpec(cores, shard, orientation)


ALIGNED_BYTES = 16  # of L1, that rows of shards are whole multiples of


def cuts_evenly(columns: int, width: int, element_bytes: int) -> bool:
    """Whether shards of so many columns cut rows of a width into equal aligned parts."""
    return width % columns == 0 and columns * element_bytes % ALIGNED_BYTES == 0


def aligned_shards(even: ShardSpec, width: int, element_bytes: int, grid: GridSpec) -> ShardSpec | None:
    """WIDTH shards that cut rows into equal aligned parts: these, or those of the most cores; None without any."""
    if cuts_evenly(even.shape[1], width, element_bytes):
        return even
    counts = (count for count in range(min(grid.cores, width), 0, -1) if width % count == 0)
    count = next((count for count in counts if cuts_evenly(width // count, width, element_bytes)), None)
    return None if count is None else _columns_on(even, count, width // count, grid)


def _columns_on(even: ShardSpec, cores: int, columns: int, grid: GridSpec) -> ShardSpec:
    by_rows = even.orientation is ShardOrientation.ROW_MAJOR
    return even.changed(grid=first_cores(cores, grid.cols, grid.rows, row_wise=by_rows), shape=(even.shape[0], columns))


def shards_before(
    tensor: TensorSpec, axes: tuple[int, ...], place: MemoryConfig | None, spec: DeviceSpec, *, in_rows: bool
) -> MemoryConfig | None:
    """The memory of a tensor whose axes are put into another order, with even shards if it is a scheme without any.

    The shards count the padding of the tensor's own, and are whole tiles; or ``in_rows`` any number of rows, and
    aligned columns if there are any that cut rows evenly.
    """
    if place is None or not place.is_sharded() or place.shard_spec is not None:
        return place
    shape, shards = tuple(tensor.padded_shape[axis] for axis in axes), tensor.memory_config.shard_spec
    orientation = ShardOrientation.ROW_MAJOR if shards is None else shards.orientation
    even = even_shards(shape, place.memory_layout, orientation, spec.grid, unit=1 if in_rows else TILE)
    if in_rows and place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        columns = round_up(div_up(shape[-1], spec.grid.cores), TILE)
        aligned = aligned_shards(even, shape[-1], tensor.data_format.element_bytes or 1, spec.grid)
        even = aligned or _columns_on(even, div_up(shape[-1], columns), columns, spec.grid)
    return replace(place, shard_spec=even)


SPLIT_TILES = 8  # tiles down an image in shards beyond which its result is put together on the way


def swapped_shape(tensor: TensorSpec, swapped: tuple[int, int]) -> Shape:
    """The padded shape of a tensor of rank 4 whose two axes are swapped: tiles get padding of their own."""
    shape = list(tensor.shape if tensor.layout is Layout.TILE else tensor.padded_shape)
    shape[swapped[0]], shape[swapped[1]] = shape[swapped[1]], shape[swapped[0]]
    if tensor.layout is Layout.ROW_MAJOR:
        return tuple(shape)
    return TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape


def transpose_buffers(
    source: PlanTensor, target: PlanTensor, swapped: tuple[int, int], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the program, in order of allocation: dataflow buffers, unless some are views of rows.

    If shards have whole rows or images, sticks stay in place; an image is tilized. Other swapped rows are gathered, all
    rows of a core, at multiples of the larger page of both sides.
    """
    tensor, result, rows = source.spec, target.spec, source.spec.layout is Layout.ROW_MAJOR
    data_format, grid, tile_bytes = tensor.data_format, spec.grid, tensor.data_format.tile_bytes
    rows_stay, images_stay, shards_turn = _staying(tensor, result, swapped)

    def views(size: int, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
        """Both shards, as many bytes of each as the source has."""
        return tuple(buffer(end.name, size, data_format, cores, end.name) for end in (source, target))

    row_views: tuple[CircularBuffer, ...] = ()
    if rows_stay:
        row_views = views(tensor.shards.shape[0] * row_bytes(tensor, tensor.shape[-1]), tensor.shards.grid)
    page, pages = (row_bytes(tensor), tensor.matrix[0]) if rows else (tile_bytes, volume_tiles(tensor))
    match swapped, rows:
        case (1, 2), True:
            if rows_stay:
                return row_views
            pages, aligned = prod(tensor.shape[:-1]), [aligned_page(end, spec) for end in (tensor, result)]
            sizes = {"rows": div_up(pages, grid.cores) * max(row_bytes(tensor, tensor.shape[-1]), *aligned)}
        case (1, 2), False:
            pages = max(pages, volume_tiles(result) // (result.padded_shape[-2] // TILE))
            fill = {"fill": FACE**2 * (data_format.element_bytes or 1)} if tensor.shape[1] % TILE else {}
            sizes = {"tiles": BUFFERING * page, **fill}
        case (2, 3), True:
            high, across = (div_up(side, TILE) * tile_bytes for side in tensor.shape[-2:])
            pages, image, turned = prod(tensor.shape[:2]), high * across // tile_bytes, BUFFERING * high
            sizes = {"rows": BUFFERING * across}
            if not images_stay:
                sizes |= {"turned": turned, "image": image}
            elif high > SPLIT_TILES * tile_bytes:
                sizes |= {"image": image, "column": high, "turned": turned}
            else:
                sizes["image"] = image
        case (2, 3), False:
            if shards_turn:  # on all cores
                size = prod(tensor.shards.shape) // TILE**2 * tile_bytes
                return views(size, first_cores(grid.cores, grid.cols, grid.rows))
            sizes = dict.fromkeys(("tiles", "turned"), BUFFERING * page)
        case _:
            sizes = {"pages": BUFFERING * page}
    if images_stay and rows and swapped == LAST_TWO:
        return *row_views, *sized_buffers(sizes, data_format, row_views[0].cores)
    return sized_buffers(sizes, data_format, page_cores(pages, grid))


def _staying(tensor: TensorSpec, result: TensorSpec, swapped: tuple[int, int]) -> tuple[bool, bool, bool]:
    """Whether shards have whole rows or images that stay in place; and whether tiles are transposed in shards."""
    if result.memory_config.shard_spec is None or not is_native(tensor, result.memory_config):
        return False, False, False
    before, after = tensor.padded_shape, swapped_shape(tensor, swapped)
    (shard_rows, wide), (result_rows, result_wide) = tensor.shards.shape, result.shards.shape
    rows_stay = (wide, result_wide) == (before[-1], after[-1])
    images_stay = rows_stay and shard_rows % before[-2] == result_rows % after[-2] == 0
    return rows_stay, images_stay, images_stay or (before[:2], wide, result_rows) == ((1, 1), before[-1], after[-2])
