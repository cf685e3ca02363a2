"""Boxes cut out of tensors and written into them: operations, buffers, pages and values; slices of a convolution.

Source: tt-metal 0.81.1 (data_movement/slice, padded_slice, slice_write), compared with recorded plans. Cycles of `Cut`
are composed: as many pages as the result has are waited for, and written as in measured copies; a box with steps reads
whole rows. Nothing was fitted: against public profiler rows on Blackhole tiles come out 4 to 11 % too fast, and
unaligned rows 38 to 48 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, TILE, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import Detail, ValuesContext, given
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_alignment_bytes,
    page_cores,
    paged_buffer,
    row_bytes,
    scratchpad,
    shard_view,
    volume_tiles,
)
from ops.programs.data_movement.conversions import converted, to_interleaved
from ops.programs.data_movement.copy import Conversion, fits_generated_code
from ops.programs.data_movement.copy_buffers import untilize_codegen_buffers
from ops.programs.data_movement.movement import (
    Access,
    Movement,
    Pages,
    Sides,
    copy_movement,
    shard_width,
    sides_of,
)
from ops.programs.data_movement.movement_cycles import DataMovement

READ_BYTES = 4096  # of rows that are asked for by one read
ROW_GROUP = 32  # rows of a core are counted in groups of this many
INDEX_BYTES = 4  # of the scratchpad, for each axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(DataMovement):
    """A box of a tensor."""

    shape: tuple[int, ...]
    begins: tuple[int, ...]  # First index on each axis
    ends: tuple[int, ...]  # One past the last index on each axis
    steps: tuple[int, ...]  # From index to index

    @property
    def has_steps(self) -> bool:
        """Whether elements between those that are kept are left out."""
        return any(step != 1 for step in self.steps)

    def moved(self, values: Array) -> Array:
        """The elements of the box."""
        box = tuple(slice(*one) for one in zip(self.begins, self.ends, self.steps, strict=True))
        return np.ascontiguousarray(values.reshape(self.shape)[box])

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Pages are read as those of a tensor of the result's shape that lies interleaved in the source's memory.

        Tiles, and whole rows of a box with steps, are waited for one by one; other rows in groups; shards go at once.
        """
        source, made = read, written
        place = MemoryConfig(TensorMemoryLayout.INTERLEAVED, source.memory_config.buffer_type)
        shape = (*made.shape[:-1], source.shape[-1]) if self.has_steps else made.shape
        copied = copy_movement(TensorSpec(shape, source.data_format, source.layout, place), made, spec)
        reads, writes = copied.reads, copied.writes
        if source.layout is Layout.TILE or self.has_steps or reads is None or writes is None:
            return copied
        if cuts_shards(self, source, made, spec):
            return replace(copied, reads=replace(writes, access=Access.STREAM), writes=None)
        group = rows_together(source, made, spec)
        return replace(
            copied,
            reads=replace(reads, in_flight=group),
            writes=replace(writes, access=Access.STICKS),
            blocks=div_up(reads.core_pages, group),
        )


def slice_buffers(op: Cut, source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: shards as they lie, rows or tiles on their way, and the place of each axis."""
    if source.spec.layout is Layout.TILE:
        cores = page_cores(volume_tiles(made.spec), spec.grid)
        tiles = buffer("tiles", BUFFERING * source.spec.data_format.tile_bytes, source.spec.data_format, cores)
        return tiles, _places(op, tiles)
    if cuts_shards(op, source.spec, made.spec, spec):
        shards = made.spec.memory_config.shard_spec
        grid = None if shards is None else shards.grid
        return shard_view("shards", source, spec, grid), shard_view("kept", made, spec)
    if op.has_steps:
        aligned = round_up(row_bytes(source.spec), _alignment(source.spec, made.spec, spec))
        cores = page_cores(made.spec.matrix[0], spec.grid)
        return (buffer("rows", BUFFERING * aligned, source.spec.data_format, cores),)
    rows = _row_buffer(op, source.spec, made.spec, spec)
    return rows, _places(op, rows)


def cuts_shards(op: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether rows are cut out of HEIGHT shards into HEIGHT shards where they lie."""
    places = {source.memory_config.memory_layout, made.memory_config.memory_layout}
    skipped = op.begins[-1] * (source.data_format.element_bytes or 0)
    by_height = places == {TensorMemoryLayout.HEIGHT_SHARDED}
    return by_height and not op.has_steps and skipped % spec.l1.alignment_bytes == 0


def row_buffer_bytes(op: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes that one row takes on its way; rows that begin between aligned addresses take more."""
    alignment = _alignment(source, made, spec)
    skipped = op.begins[-1] * (source.data_format.element_bytes or 0)
    apart = skipped % page_alignment_bytes(source.memory_config, spec) != 0
    return round_up(row_bytes(made), BUFFERING * alignment if apart else alignment)


def _row_buffer(op: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> CircularBuffer:
    """Rows that are waited for together, twice."""
    size = BUFFERING * rows_together(source, made, spec) * row_buffer_bytes(op, source, made, spec)
    return buffer("rows", size, source.data_format, page_cores(made.matrix[0], spec.grid))


def rows_together(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    """Rows that a core waits for together: as many as there are of the largest reads that divide all of its rows."""
    core_rows = round_up(div_up(made.matrix[0], spec.grid.cores), ROW_GROUP)
    step = round_up(row_bytes(made), _alignment(source, made, spec))
    largest = max((rows for rows in range(1, READ_BYTES // step + 1) if core_rows % rows == 0), default=0)
    return max(1, largest)


def _places(op: Cut, beside: CircularBuffer) -> CircularBuffer:
    return scratchpad("places", len(op.begins) * INDEX_BYTES, beside.data_format, beside.cores)


def _alignment(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    return max(page_alignment_bytes(one.memory_config, spec) for one in (source, made))


def cut_from_tiles(ends: Sides, columns: tuple[int, int] | None) -> Movement:
    """The sticks of a slice come out of the tiles that it touches, whose rows are waited for.

    A block of whole tiles is copied to its place in one piece for each row of tiles, others stick by stick; channels
    that no tile of the image has are filled stick by stick as well.
    """
    image_cols, cores = ends.source.shape[-2], ends.cores.num_cores()
    begin, end = (0, image_cols) if columns is None else columns
    across = div_up(shard_width(ends.source.matrix[1], ends.target), TILE)
    rows = _tile_rows_under(ends.written.core_pages, image_cols, begin, end)
    shared = _tile_rows_under(round_up(prod(ends.target.shape[:-1]), end - begin), image_cols, begin, end)
    parts = div_up(div_up(ends.target.matrix[1], TILE), across)
    touched = replace(
        ends.read,
        access=Access.WAIT,
        core_pages=rows * across,
        all_pages=min(shared * parts + cores, rows * cores) * across,
        in_flight=across,
    )
    return Movement(
        cores=ends.cores,
        reads=touched,
        writes=_copied_to_place(ends, rows),
        blocks=rows,
        untilized_rows=rows,
        width_tiles=across,
    )


def _copied_to_place(ends: Sides, rows: int) -> Pages:
    """Pieces that a core copies from its rows of tiles to its shard."""
    written, shards = ends.written, ends.target.memory_config.shard_spec
    if shards is None or shards.shape[1] % TILE == 0:
        piece = div_up(written.core_pages, rows) * written.page_bytes
        pieces = rows * ends.cores.num_cores()
        return replace(written, access=Access.LOCAL_STICKS, core_pages=rows, page_bytes=piece, all_pages=pieces)
    filled = div_up(ends.target.matrix[1], TILE) > div_up(ends.source.matrix[1], TILE)
    return replace(written, access=Access.LOCAL_STICKS, core_pages=written.core_pages * (1 + filled))


def _tile_rows_under(sticks: int, image_cols: int, begin: int, end: int) -> int:
    """Rows of tiles under sticks: each image row of a slice begins and ends within tiles of its own."""
    if (begin, end) == (0, image_cols) and image_cols % TILE == 0:
        return div_up(sticks, TILE)
    spanned = (end - 1) // TILE - begin // TILE + 1
    return div_up(sticks * spanned, end - begin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A box cut out of an image tensor."""

    shape: tuple[int, int, int, int]  # [N, H, W, C] of the tensor it is cut from or written into
    begins: tuple[int, int, int, int]  # First index on each axis
    ends: tuple[int, int, int, int]  # One past the last index on each axis

    @property
    def window_shape(self) -> tuple[int, ...]:
        """Shape of the box."""
        return tuple(end - begin for begin, end in zip(self.begins, self.ends, strict=True))

    @property
    def details(self) -> tuple[Detail, ...]:
        """Where the box lies in the image, for descriptions."""
        begin, end = (f"row {index[1]}, column {index[2]}" for index in (self.begins, self.ends))
        return (
            Detail(name="window_begins", value=self.begins, text=f"of the image from {begin}"),
            Detail(name="window_ends", value=self.ends, text=f"to {end}"),
        )


@dataclass(frozen=True, slots=True)
class PaddedSlice(DataMovement):
    """A window of the input becomes a tensor of its own."""

    window: Window

    def moved(self, values: Array) -> Array:
        """The window of an image, as a view."""
        return values.reshape(self.window.shape)[_box(self.window)]

    @property
    def measured_as(self) -> str:
        """The operation's own name."""
        return "PaddedSlice"

    @property
    def details(self) -> tuple[Detail, ...]:
        """Where the window lies."""
        return self.window.details

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The window comes out of the image."""
        return slice_movement(read, written, spec, columns=(self.window.begins[2], self.window.ends[2]))


@dataclass(frozen=True, slots=True)
class SliceWrite(DataMovement):
    """The first input is written into a window of the last one."""

    window: Window  # Which part of the last input
    source_width: int  # Columns of an image row of the first input; those beyond the window are dropped

    @property
    def measured_as(self) -> str:
        """The operation's own name."""
        return "SliceWrite"

    @property
    def details(self) -> tuple[Detail, ...]:
        """Where the window lies."""
        return self.window.details

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The last input with the first one in its window."""
        source, target = inputs
        return written_slice(self, given(source), target)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The slice is written into the part of the image under the window."""
        return slice_write_movement(read, written_part(written, self.window), spec)


def written_slice(op: SliceWrite, source: Array, target: Array | None) -> Array:
    """The target with the source in its window, written in place; what lies beyond the window is dropped.

    Args:
        work: Which part of the image, and how wide the source is.
        source: Rows of the slice.
        target: What other slices wrote into the same image; None before the first of them.

    Returns:
        The image; what no slice has written is NaN.
    """
    window = op.window
    batch, rows, cols, channels = window.window_shape
    image = np.full(window.shape, np.nan, source.dtype) if target is None else target
    part = source.reshape(batch, -1, op.source_width, channels)[:, :rows, :cols]
    image[_box(window)][:, : part.shape[1]] = part
    return image


def _box(window: Window) -> tuple[slice, ...]:
    """The window as an index."""
    return tuple(slice(begin, end) for begin, end in zip(window.begins, window.ends, strict=True))


def slice_movement(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, columns: tuple[int, int] | None = None
) -> Movement:
    """A program that cuts a window out of an image in DRAM.

    Args:
        target: The slice, in L1.
        columns: First column of the image that is read, and the one behind the last; all if not given.
    """
    ends = sides_of(source, target, spec)
    if ends.from_tiles:
        return cut_from_tiles(ends, columns)
    return Movement(cores=ends.cores, reads=replace(ends.written, access=Access.STICKS, in_dram=True))


def slice_write_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that writes a slice into an image in DRAM.

    Args:
        source: The slice, in L1.
        target: The part of the image that it is written into, as a tensor of its own.
    """
    ends = sides_of(source, target, spec)
    access = Access.WAIT if ends.from_tiles else Access.BOX
    return Movement(cores=ends.cores, writes=replace(ends.read, access=access, in_dram=True))


def written_part(image: TensorSpec, window: Window) -> TensorSpec:
    """The part of an image under a window, as a tensor of its own."""
    shape = (1, 1, prod(window.window_shape[:-1]), window.window_shape[-1])
    return TensorSpec(shape, image.data_format, image.layout, image.memory_config)


SLICE_ROWS_OF_TILES: Final = 4  # rows of tiles on their way through a core that slices


MERGED_BYTES: Final = 4096  # rows that are read at once have no more bytes together


def padded_slice_buffers(source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that cuts a window out of an image in DRAM.

    Tiles pass through two buffers of four rows of tiles, before and after they become sticks. The output follows, as a
    view, and a stick of padding: always for tiles, for sticks only if the channels do not fill the shards. Sticks that
    do not start at a multiple of the alignment of DRAM are read whole, into two sticks with room to shift them. Where
    nothing is left but the view, the program allocates nothing, and a capture shows nothing.

    Args:
        source: The image [N, H, W, C].
        made: The slice, sharded.
    """
    shards = made.spec.shards
    channels, (rows, width) = source.spec.shape[-1], shards.shape
    in_format, out_format = source.spec.data_format, made.spec.data_format
    stick_bytes = width * (out_format.element_bytes or 0)

    def buffer(
        name: str, pages: int, page_bytes: int, data_format: DataFormat, view_of: str | None = None
    ) -> CircularBuffer:
        return paged_buffer(name, pages, page_bytes, data_format, shards.grid, view_of)

    tiled = source.spec.layout is Layout.TILE
    buffers = []
    if tiled:
        tiles = SLICE_ROWS_OF_TILES * _tiles_across(channels, width)
        buffers.append(buffer("tiles", tiles, in_format.tile_bytes, in_format))
        buffers.append(buffer("untilized", tiles, out_format.tile_bytes, out_format))
    buffers.append(buffer("output", rows, stick_bytes, out_format, made.name))
    if tiled or channels % width:
        buffers.append(buffer("padding_stick", 1, stick_bytes, out_format))
    alignment = spec.dram.alignment_bytes
    if not tiled and stick_bytes % alignment:
        whole = round_up(channels * (in_format.element_bytes or 0), alignment) + alignment
        buffers.append(buffer("unaligned_sticks", BUFFERING, whole, in_format))
    return tuple(buffers) if len(buffers) > 1 else ()


def slice_write_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that writes a slice into an image in DRAM: none unless rows come from interleaved L1.

    Rows are dealt evenly to all cores. As many are read at once as divide a core's rows, rounded up to 32, and have no
    more than 4096 bytes together; and twice as many have room.
    """
    if source.memory_config.is_sharded() or source.layout is not Layout.ROW_MAJOR:
        return ()
    row_bytes = source.shape[-1] * (source.data_format.element_bytes or 0)
    core_rows = round_up(div_up(prod(source.padded_shape[:-1]), spec.grid.cores), TILE)
    most = max(1, MERGED_BYTES // row_bytes)
    at_once = next(rows for rows in range(min(most, core_rows), 0, -1) if core_rows % rows == 0)
    page_bytes = round_up(row_bytes, spec.dram.alignment_bytes)
    grid = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    return (paged_buffer("rows", BUFFERING * at_once, page_bytes, source.data_format, grid),)


def _tiles_across(channels: int, width: int) -> int:
    """Most tiles that one shard of ``width`` channels lies in; it need not start where a tile does."""
    starts = range(0, channels, width)
    return max(div_up(min(start + width, channels), TILE) - start // TILE for start in starts)


def sliced_input(
    builder: PlanBuilder, image: PlanTensor, window: Window, config: MemoryConfig, name: str
) -> PlanTensor:
    """A window of an image tensor in DRAM as row-major shards in L1; bfloat8_b arrives as bfloat16.

    A window that is the whole of an image of rows is dealt to shards as any tensor is, where a shard holds all channels
    and no more. bfloat4_b stays what it is, which has no rows: the real library refuses that, and so does the layout
    here.

    Args:
        image: The input [N, H, W, C].
        window: Which part; all images and all channels.
        config: Shards of the slice.
    """
    batch, rows, cols, channels = window.window_shape
    data_format = BFLOAT16 if image.spec.data_format == BFLOAT8_B else image.spec.data_format
    shape = (1, 1, batch * rows * cols, channels)
    padded = (1, 1, *_padded_slice(shape[2], channels, config))
    made = TensorSpec(shape, data_format, Layout.ROW_MAJOR, config, padded)
    output = PlanTensor(name, made)
    whole = image.spec.layout is Layout.ROW_MAJOR and window.window_shape == image.spec.shape
    if whole and made.shards.shape[1] == channels:
        flat = PlanTensor(image.name, TensorSpec(shape, data_format, Layout.ROW_MAJOR, image.spec.memory_config))
        return converted(builder, Conversion.INTERLEAVED_TO_SHARDED, flat, made, name)
    return builder.run(
        "PaddedSliceDeviceOperation",
        PaddedSlice(window),
        [image],
        output=output,
        circular_buffers=padded_slice_buffers(image, output, builder.device_spec),
        refused=_narrow_rows(image.spec, made, builder.device_spec.l1.alignment_bytes),
    )


def _narrow_rows(image: TensorSpec, made: TensorSpec, alignment_bytes: int) -> str | None:
    """Why rows can not be cut out of an image of rows, in the real library's words and ours; None if they can."""
    row_bytes = made.shards.shape[1] * (made.data_format.element_bytes or 0)
    if image.layout is Layout.TILE or row_bytes % alignment_bytes == 0:
        return None
    return (
        f"Output row size {row_bytes} must be aligned to the destination buffer BufferType::L1 alignment "
        f"{alignment_bytes}\ninput_tensor: slices of its {made.shape[-1]} channels of {made.data_format} have rows of "
        f"{row_bytes} bytes on every core; typecast it to bfloat16, or put it in L1"
    )


def write_slice(builder: PlanBuilder, result: PlanTensor, target: PlanTensor, write: SliceWrite, name: str) -> None:
    """The tiles of one slice written into the output image in DRAM, as rows if the output is row-major; then released.

    Args:
        result: Sharded output of the slice's convolution.
        target: The output [N, OH, OW, O].
        write: Which part of the output the slice is.
        name: Intermediates start with it.
    """
    if target.spec.layout is Layout.ROW_MAJOR:
        if _is_width_sharded(result.spec.memory_config):
            interleaved = to_interleaved(builder, result, L1_MEMORY_CONFIG, f"{name}.interleaved")
            builder.free(result)
            result = interleaved
        rows = untilized(builder, result, f"{name}.rows")
        builder.free(result)
        result = rows
    operation, buffers = "SliceWriteDeviceOperation", slice_write_buffers(result.spec, builder.device_spec)
    # where a slice goes is told to a program of interleaved rows when it runs
    key = (operation, result.spec, target.spec, write.window.window_shape, write.source_width) if buffers else None
    builder.run(operation, write, [result, target], circular_buffers=buffers, key=key)
    builder.free(result)


def untilized(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """Tiles as rows; padding goes, except to the width of the shards."""
    spec = source.spec
    made = TensorSpec(spec.shape, spec.data_format, Layout.ROW_MAJOR, spec.memory_config)
    conversion = untilizing(spec)
    codegen = conversion is Conversion.UNTILIZE_CODEGEN
    buffers = untilize_codegen_buffers(spec, made, builder.device_spec) if codegen else ()
    return converted(builder, conversion, source, made, name, buffers)


def untilizing(spec: TensorSpec) -> Conversion:
    """Which of the real library's programs untilizes a tensor."""
    if spec.memory_config.is_sharded():
        return Conversion.UNTILIZE
    if spec.data_format == BFLOAT16 and fits_generated_code(spec):
        return Conversion.UNTILIZE_CODEGEN
    return Conversion.UNTILIZE if spec.shape == spec.padded_shape else Conversion.UNTILIZE_WITH_UNPADDING


def _is_width_sharded(config: MemoryConfig) -> bool:
    return config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED


def _padded_slice(rows: int, channels: int, config: MemoryConfig) -> tuple[int, int]:
    """Rows and columns of a slice: whole shards across; as many rows as there are, unless every core holds all rows."""
    if config.shard_spec is None:
        raise AssertionError("a slice needs shards")
    shard_rows, shard_cols = config.shard_spec.shape
    return shard_rows if _is_width_sharded(config) else rows, round_up(channels, shard_cols)
