"""Boxes cut out of tensors and written into them: operations, buffers, pages and values; slices of a convolution.

Source: tt-metal 0.81.1 (data_movement/slice, padded_slice, slice_write), compared with recorded plans. Cycles of `Cut`
are composed: as many pages as the result has are waited for, and written as in measured copies; a box with steps reads
whole rows. Nothing was fitted: against public profiler rows on Blackhole they are off by 5 % in the mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, TILE, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, Array, div_up, round_up
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
    rows_follow,
    scratchpad,
    shard_view,
    tile_buffer,
    volume_tiles,
)
from ops.programs.data_movement.copy import Conversion, fits_generated_code
from ops.programs.data_movement.movement import (
    Access,
    DataMovement,
    Movement,
    copy_movement,
    format_of_rows,
    shard_width,
    sides_of,
)
from ops.programs.data_movement.placement import converted

READ_BYTES = 4096  # of rows that are requested together
ROW_GROUP = 32  # rows of a core are counted in groups of this many
INDEX_BYTES = 4  # of the scratchpad, for each axis
SLICE_ROWS_OF_TILES = 4  # rows of tiles on their way through a core that slices


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(DataMovement):
    """A box of a tensor."""

    LOCATES = True

    shape: tuple[int, ...]
    begins: tuple[int, ...]  # First index on each axis
    ends: tuple[int, ...]  # One past the last index on each axis
    steps: tuple[int, ...]  # From index to index
    cores: CoreRangeSet | None = None  # That may be used; None for all

    @property
    def has_steps(self) -> bool:
        """Whether elements between the kept elements are left out."""
        return any(step != 1 for step in self.steps)

    @property
    def is_whole(self) -> bool:
        """Whether the box is the whole tensor."""
        return not self.has_steps and self.ends == self.shape and not any(self.begins)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the box."""
        box = zip(self.begins, self.ends, self.steps, strict=True)
        return tuple(div_up(end - begin, step) for begin, end, step in box)

    def moved(self, values: Array) -> Array:
        """The elements of the box."""
        return np.ascontiguousarray(values.reshape(self.shape)[tuple(map(slice, self.begins, self.ends, self.steps))])

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Pages are read like those of an interleaved tensor of the result's shape in the source's memory.

        Tiles, and whole rows of a slice with steps, are awaited one by one; other rows in groups; shards all at once.
        """
        place = MemoryConfig(TensorMemoryLayout.INTERLEAVED, read.memory_config.buffer_type)
        shape = (*written.shape[:-1], read.shape[-1]) if self.has_steps else written.shape
        copied = copy_movement(read.changed(shape=shape, memory_config=place), written, spec, within=self.cores)
        reads, writes = copied.sides
        if read.layout is Layout.TILE or self.has_steps:
            return copied
        if cuts_shards(self, read, written, spec):
            return replace(copied, reads=replace(writes, access=Access.STREAM), writes=None)
        step = round_up(row_bytes(written), _alignment(read, written, spec))
        group = rows_together(written.matrix[0], step, spec, self.cores)
        return replace(
            copied,
            reads=replace(reads, in_flight=group, counted=True),
            writes=replace(writes, access=Access.STICKS),
            blocks=div_up(reads.core_pages, group),
        )


def slice_buffers(op: Cut, source: PlanTensor, target: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: views of shards, rows or tiles in transit, and the position of each axis."""
    data_format, rows = source.spec.data_format, target.spec.matrix[0]
    tiled, alignment = source.spec.layout is Layout.TILE, _alignment(source.spec, target.spec, spec)
    if not tiled and cuts_shards(op, source.spec, target.spec, spec):
        return shard_view("shards", source, spec, target.spec.shards.grid), shard_view("kept", target, spec)
    cores = page_cores(volume_tiles(target.spec) if tiled else rows, spec.grid, within=op.cores)
    if tiled:
        page_bytes = data_format.tile_bytes
    elif op.has_steps:  # whole rows of the source
        return (buffer("rows", BUFFERING * round_up(row_bytes(source.spec), alignment), data_format, cores),)
    else:
        together = rows_together(rows, round_up(row_bytes(target.spec), alignment), spec, op.cores)
        page_bytes = together * row_buffer_bytes(op, source.spec, target.spec, spec)
    return (
        buffer("tiles" if tiled else "rows", BUFFERING * page_bytes, data_format, cores),
        scratchpad("places", len(op.begins) * INDEX_BYTES, data_format, cores),
    )


def cuts_shards(op: Cut, source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether rows are sliced from HEIGHT shards into HEIGHT shards in place."""
    places = {source.memory_config.memory_layout, target.memory_config.memory_layout}
    by_height = places == {TensorMemoryLayout.HEIGHT_SHARDED}
    return by_height and not op.has_steps and rows_follow(source, op.begins[-1], spec)


def row_buffer_bytes(op: Cut, source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of a row in transit; rows that begin between aligned addresses take more."""
    alignment = _alignment(source, target, spec)
    apart = row_bytes(source, op.begins[-1]) % page_alignment_bytes(source.memory_config, spec) != 0
    return round_up(row_bytes(target), BUFFERING * alignment if apart else alignment)


def rows_together(rows: int, size: int, spec: DeviceSpec, cores: CoreRangeSet | None = None) -> int:
    """Number of rows that a core awaits together: the rows of one read, and a divisor of the rows of a core."""
    count = spec.grid.cores if cores is None else cores.num_cores()
    core_rows = round_up(div_up(rows, count), ROW_GROUP)
    most = min(core_rows, max(1, READ_BYTES // size))
    return next(count for count in range(most, 0, -1) if core_rows % count == 0)


def _alignment(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> int:
    return max(page_alignment_bytes(tensor.memory_config, spec) for tensor in (source, target))


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
    def box(self) -> tuple[slice, ...]:
        """The box as an index."""
        return tuple(map(slice, self.begins, self.ends))


@dataclass(frozen=True, slots=True)
class _OfWindow(DataMovement):
    """A program between an image and a window of it."""

    window: Window

    @property
    def details(self) -> tuple[Detail, ...]:
        """The position of the window in the image."""
        begins, ends = self.window.begins, self.window.ends
        first, last = (f"row {index[1]}, column {index[2]}" for index in (begins, ends))
        return (
            Detail(name="window_begins", value=begins, text=f"of the image from {first}"),
            Detail(name="window_ends", value=ends, text=f"to {last}"),
        )


@dataclass(frozen=True, slots=True)
class PaddedSlice(_OfWindow):
    """A window of the input becomes a tensor of its own."""

    def moved(self, values: Array) -> Array:
        """The window of an image, as a view."""
        return values.reshape(self.window.shape)[self.window.box]

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The window is copied from the image in DRAM to L1."""
        return slice_movement(read, written, spec, columns=(self.window.begins[2], self.window.ends[2]))


@dataclass(frozen=True, slots=True)
class SliceWrite(_OfWindow):
    """The first input is written into a window of the last one."""

    source_width: int  # Columns of an image row of the first input; those beyond the window are dropped

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The last input with the first input written into its window; elements that no slice has written are NaN.

        The last input is None before the first slice is written. Elements beyond the window are dropped.
        """
        source, target = given(inputs[0]), inputs[1]
        window = self.window
        batch, rows, cols, channels = window.window_shape
        image = np.full(window.shape, np.nan, source.dtype) if target is None else target
        part = source.reshape(batch, -1, self.source_width, channels)[:, :rows, :cols]
        image[window.box][:, : part.shape[1]] = part
        return image

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The slice, in L1, is written into the part of the image under the window, in DRAM."""
        shape = (1, 1, prod(self.window.window_shape[:-1]), self.window.window_shape[-1])
        part = written.changed(shape=shape)
        return slice_write_movement(read, part, spec)


def slice_write_movement(source: TensorSpec, part: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that writes a slice, in L1, into a part of an image in DRAM."""
    sides = sides_of(source, part, spec)
    if sides.read.tiles:
        return Movement(cores=sides.cores, writes=replace(sides.read, access=Access.WAIT, in_dram=True))
    size = part.matrix[0] * row_bytes(part)  # a shard may be wider than the rows
    writes = replace(sides.read, access=Access.BOX, in_dram=True, uneven_bytes=size)
    return Movement(cores=sides.cores, writes=writes)


def slice_movement(
    image: TensorSpec, part: TensorSpec, spec: DeviceSpec, *, columns: tuple[int, int] | None = None
) -> Movement:
    """A program that copies a part of an image in DRAM to L1: all columns, or a range of columns.

    Sticks are read from the tiles that the part touches, awaited by row of tiles. A block of whole tiles is copied in
    one piece per row of tiles, other parts stick by stick; channels beyond the image's tiles are also filled stick by
    stick.
    """
    sides = sides_of(image, part, spec)
    cores, written, shards = sides.cores, sides.written, part.memory_config.shard_spec
    if not sides.read.tiles:
        size = prod(part.shape[:-1]) * row_bytes(image)  # a shard may be wider than the rows
        return Movement(cores=cores, reads=replace(written, access=Access.STICKS, in_dram=True, uneven_bytes=size))
    begin, end = columns or (0, image.shape[-2])

    def tile_rows(sticks: int) -> int:
        """Rows of tiles under sticks: each image row of a slice begins and ends within tiles of its own."""
        if (begin, end) == (0, image.shape[-2]) and end % TILE == 0:
            return div_up(sticks, TILE)
        return div_up(sticks * ((end - 1) // TILE - begin // TILE + 1), end - begin)

    rows, count = tile_rows(written.core_pages), cores.num_cores()
    across = div_up(shard_width(image.matrix[1], part), TILE)
    image_tiles, part_tiles = (div_up(tensor.matrix[1], TILE) for tensor in (image, part))
    touched = replace(
        sides.read,
        access=Access.WAIT,
        core_pages=rows * across,
        all_pages=_tiles_read(image, part, begin, end),
        in_flight=across,
    )
    if shards is None or shards.shape[1] % TILE == 0:
        piece = div_up(written.core_pages, rows) * written.page_bytes
        copied = replace(written, core_pages=rows, page_bytes=piece, all_pages=rows * count)
    else:
        copied = replace(written, core_pages=written.core_pages * (1 + (part_tiles > image_tiles)))
    return Movement(
        cores=cores,
        reads=touched,
        writes=replace(copied, access=Access.LOCAL_STICKS),
        blocks=rows,
        untilized_rows=rows,
        width_tiles=across,
    )


def _tiles_read(image: TensorSpec, part: TensorSpec, begin: int, end: int) -> int:
    """Tiles that all cores read: a core each that its sticks touch, of columns ``begin`` to ``end`` of image rows."""
    sticks, channels = prod(part.shape[:-1]), min(image.matrix[1], part.shape[-1])
    high, wide = part.shards.shape
    across = sum(div_up(min(start + wide, channels), TILE) - start // TILE for start in range(0, channels, wide))

    def row_of_tiles(stick: int) -> int:
        """Its number among those that the part touches."""
        line, column = divmod(stick, end - begin)
        return line * ((end - 1) // TILE - begin // TILE + 1) + (begin + column) // TILE

    firsts = range(0, sticks, high)
    return across * sum(row_of_tiles(min(first + high, sticks) - 1) - row_of_tiles(first) + 1 for first in firsts)


def padded_slice_buffers(source: PlanTensor, target: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that cuts a window out of an image [N, H, W, C] in DRAM.

    Tiles pass through two buffers of four rows of tiles, before and after they become sticks. The output follows, as a
    view, and a stick of padding: always for tiles, for sticks only if the channels do not fill the shards. Sticks that
    do not start at a multiple of the alignment of DRAM are read whole, into two sticks with room to shift them. Where
    nothing is left but the view, the program allocates nothing, and a capture shows nothing.
    """
    channels, (rows, width) = source.spec.shape[-1], target.spec.shards.shape
    in_format, out_format, cores = source.spec.data_format, target.spec.data_format, target.spec.shards.grid
    stick_bytes, alignment = row_bytes(target.spec, width), spec.dram.alignment_bytes
    tiled, buffers = source.spec.layout is Layout.TILE, []
    if tiled:  # a shard may start within a tile: the most tiles that it touches
        starts = range(0, channels, width)
        tiles = max(div_up(min(start + width, channels), TILE) - start // TILE for start in starts)
        buffers = [
            tile_buffer(name, SLICE_ROWS_OF_TILES * tiles, data_format, cores)
            for name, data_format in (("tiles", in_format), ("untilized", out_format))
        ]
    buffers.append(paged_buffer("output", rows, stick_bytes, out_format, cores, target.name))
    if tiled or channels % width:
        buffers.append(buffer("padding_stick", stick_bytes, out_format, cores))
    if not tiled and stick_bytes % alignment:
        whole = round_up(row_bytes(source.spec, channels), alignment) + alignment
        buffers.append(paged_buffer("unaligned_sticks", BUFFERING, whole, in_format, cores))
    return tuple(buffers) if len(buffers) > 1 else ()


def slice_write_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that writes a slice into an image in DRAM: none unless rows come from interleaved L1."""
    if source.memory_config.is_sharded() or source.layout is not Layout.ROW_MAJOR:
        return ()
    size = row_bytes(source, source.shape[-1])
    pages = BUFFERING * rows_together(prod(source.padded_shape[:-1]), size, spec)
    grid = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    return (paged_buffer("rows", pages, round_up(size, spec.dram.alignment_bytes), source.data_format, grid),)


def sliced_input(
    builder: PlanBuilder, image: PlanTensor, window: Window, config: MemoryConfig, name: str
) -> PlanTensor:
    """A window of an image [N, H, W, C] in DRAM as row-major shards in L1, of all images and all channels.

    bfloat8_b arrives as bfloat16. A window that is the whole of an image of rows is copied to shards as any tensor is,
    where a shard holds all channels and no more. bfloat4_b stays bfloat4_b, which has no rows: the real library refuses
    that, and so does the layout here.
    """
    channels, shards = window.window_shape[-1], config.shard_spec
    if shards is None:
        raise AssertionError("a slice needs shards")
    data_format = format_of_rows(image.spec.data_format)
    shape = (1, 1, prod(window.window_shape[:-1]), channels)
    by_width = config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED  # every core holds all rows
    padded = (1, 1, shards.shape[0] if by_width else shape[2], round_up(channels, shards.shape[1]))
    tensor_spec = TensorSpec(shape, data_format, Layout.ROW_MAJOR, config, padded)
    output = PlanTensor(name, tensor_spec)
    whole = image.spec.layout is Layout.ROW_MAJOR and window.window_shape == image.spec.shape
    if whole and tensor_spec.shards.shape[1] == channels:
        flat = PlanTensor(image.name, TensorSpec(shape, data_format, Layout.ROW_MAJOR, image.spec.memory_config))
        return converted(builder, Conversion.INTERLEAVED_TO_SHARDED, flat, tensor_spec, name)
    size, refused = row_bytes(tensor_spec, shards.shape[1]), None
    alignment_bytes = builder.device_spec.l1.alignment_bytes
    if image.spec.layout is Layout.ROW_MAJOR and size % alignment_bytes:
        refused = (
            f"Output row size {size} must be aligned to the destination buffer BufferType::L1 alignment "
            f"{alignment_bytes}\ninput_tensor: slices of its {channels} channels of {data_format} have rows of {size} "
            "bytes on every core; typecast it to bfloat16, or put it in L1"
        )
    return builder.run(
        "PaddedSliceDeviceOperation",
        PaddedSlice(window),
        [image],
        output,
        padded_slice_buffers(image, output, builder.device_spec),
        refused=refused,
    )


def write_slice(builder: PlanBuilder, result: PlanTensor, target: PlanTensor, write: SliceWrite, name: str) -> None:
    """Writes one slice into the output [N, OH, OW, O] in DRAM, as rows if it is ROW_MAJOR, and frees the slice."""
    if target.spec.layout is Layout.ROW_MAJOR:
        if result.spec.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
            interleaved = PlanTensor(f"{name}.interleaved", result.spec.changed(memory_config=L1_MEMORY_CONFIG))
            converted(builder, Conversion.SHARDED_TO_INTERLEAVED, result, interleaved.spec, interleaved.name)
            builder.free(result)
            result = interleaved
        if result.spec.layout is Layout.TILE:
            rows = _untilized(builder, result, f"{name}.rows")
            builder.free(result)
            result = rows
    operation, buffers = "SliceWriteDeviceOperation", slice_write_buffers(result.spec, builder.device_spec)
    # a program of interleaved rows learns where a slice goes when it runs
    key = (operation, result.spec, target.spec, write.window.window_shape, write.source_width) if buffers else None
    builder.run(operation, write, [result, target], buffers=buffers, key=key)
    builder.free(result)


def _untilized(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """Tiles as rows; padding is removed, except up to the width of the shards."""
    spec, conversion = source.spec, Conversion.UNTILIZE
    sharded = spec.memory_config.is_sharded()
    if not sharded and spec.data_format == BFLOAT16 and fits_generated_code(spec, builder.device_spec):
        conversion = Conversion.UNTILIZE_CODEGEN
    elif not sharded and spec.shape != spec.padded_shape:
        conversion = Conversion.UNTILIZE_WITH_UNPADDING
    return converted(builder, conversion, source, spec.changed(layout=Layout.ROW_MAJOR), name)
