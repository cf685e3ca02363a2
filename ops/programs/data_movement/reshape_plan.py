"""Giving a tensor on the device another shape: for free, or by moving every row.

Rules: tt-metal 0.81.1, ttnn.reshape. A tile holds rows of one image row only, so that an image whose width is no
multiple of 32 has padding rows inside; flattening it moves rows between tiles. Block floats are converted to bfloat16
and back around that. A sharded tensor is redistributed (`reshard`): tiles by the same program, rows and
block floats by way of an interleaved tensor.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import lcm, prod
from typing import NoReturn

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    FACE,
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT32, Array, div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import row_bytes
from ops.programs.data_movement.conversions import converted, in_memory, to_interleaved
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.pad import FillPad, fill_buffers
from ops.programs.data_movement.reshape import Reshape, map_tiles, most_segments, stick_buffers, tile_buffers
from ops.programs.data_movement.typecast import typecast_by

WORD_BYTES = 4  # a row of a HEIGHT or WIDTH shard is whole words
BLOCK_ROW_BYTES = 64  # a row of a BLOCK shard is whole multiples of this


def dealt_anew(spec: TensorSpec, before: MemoryConfig) -> MemoryConfig:
    """Where a tensor goes that was sharded and has got another shape.

    HEIGHT and WIDTH shards stay on their cores and share the rows (the columns) evenly, rounded up. BLOCK shards keep
    as many rows and columns of cores, from the first one, as divide the tensor into equal aligned parts. A grid that
    is no rectangle gives the sharding up. Where one HEIGHT shard holds all rows, the library takes it for a WIDTH
    shard: it looks at the height first.

    Args:
        spec: The tensor under its new shape, interleaved.
        before: Where it was, sharded.
    """
    shards = before.shard_spec
    apart = MemoryConfig(buffer_type=before.buffer_type)
    if shards is None or shards.grid.bounding_box().num_cores() != shards.num_cores():
        return apart
    rows, cols = spec.matrix
    align_rows, align_cols = _alignment(spec)
    cores, grid = shards.num_cores(), shards.grid
    match before.memory_layout:
        case TensorMemoryLayout.HEIGHT_SHARDED:
            shape = (round_up(div_up(rows, cores), align_rows), round_up(cols, align_cols))
        case TensorMemoryLayout.WIDTH_SHARDED:
            shape = (round_up(rows, align_rows), round_up(div_up(cols, cores), align_cols))
        case _:
            box, by_rows = grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
            high, wide = (box.rows, box.cols) if by_rows else (box.cols, box.rows)
            if spec.layout is Layout.ROW_MAJOR:
                align_cols = div_up(BLOCK_ROW_BYTES, spec.data_format.element_bytes or 1)
            high, wide = _equal_parts(rows, high, align_rows), _equal_parts(cols, wide, align_cols)
            if not high or not wide:
                return apart
            shape = (rows // high, cols // wide)
            grid = _corner(box.start, *((wide, high) if by_rows else (high, wide)))
    layout = before.memory_layout
    if layout is TensorMemoryLayout.HEIGHT_SHARDED and shape[0] == rows:
        layout = TensorMemoryLayout.WIDTH_SHARDED
    return MemoryConfig(layout, before.buffer_type, ShardSpec(grid, shape, shards.orientation))


def _alignment(spec: TensorSpec) -> tuple[int, int]:
    """Rows and columns that a shard is a multiple of."""
    if spec.layout is Layout.TILE:
        return TILE, TILE
    return 1, div_up(WORD_BYTES, spec.data_format.element_bytes or 1)


def _equal_parts(length: int, most: int, alignment: int) -> int:
    """The most equal parts, each a multiple of ``alignment``; 0 if not even one is."""
    return next((parts for parts in range(most, 0, -1) if length % (parts * alignment) == 0), 0)


def _corner(start: CoreCoord, cols: int, rows: int) -> CoreRangeSet:
    """So many columns and rows of cores from a core on."""
    return CoreRangeSet(CoreRange(start, CoreCoord(start.x + cols - 1, start.y + rows - 1)))


MOVED_FORMATS = (BFLOAT16, FLOAT32, INT32, UINT32)  # of tensors whose rows are moved
SEGMENT_WORDS = 4  # input page, offset in it, offset in the output page, elements
SEGMENT_ALIGNMENT = 16  # alignment of L1 in bytes, which the real library takes as a number of segments


def flattened(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """[1, 1, rows, C] of any shape [..., C]."""
    return 1, 1, prod(shape[:-1]), shape[-1]


def is_view(spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    """Whether ``shape`` lies in memory as the tensor already does."""
    before, after = _three_axes(spec.shape), _three_axes(shape)
    if before[-1] != after[-1]:
        return False
    whole_tiles = before[-2] % TILE == 0 and after[-2] % TILE == 0
    return spec.layout is Layout.ROW_MAJOR or before[-2] == after[-2] or whole_tiles


def memory_after(spec: TensorSpec, shape: tuple[int, ...]) -> MemoryConfig:
    """Where `reshaped` leaves a tensor under another shape of the same volume."""
    if is_view(spec, shape) or not spec.memory_config.is_sharded():
        return spec.memory_config
    apart = TensorSpec(shape, spec.data_format, spec.layout, MemoryConfig(buffer_type=spec.memory_config.buffer_type))
    return dealt_anew(apart, spec.memory_config)


def reshaped(builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], name: str) -> PlanTensor:
    """The tensor under another shape of the same volume; the source stays allocated.

    Args:
        shape: Logical shape of the result.
        name: Name of the result if a new buffer is needed; its intermediates start with it.

    Returns:
        Under the source's name, and without a step, when it is a view.

    Raises:
        ArgumentError: The volumes differ.
    """
    spec = source.spec
    if prod(shape) != spec.volume:
        raise ArgumentError(
            "Attempting to reshape between two shapes with different volumes\n"
            f"input_tensor: shape {list(spec.shape)} has {spec.volume} elements, {list(shape)} has {prod(shape)}; "
            "batch_size, input_height, input_width and in_channels must describe the tensor"
        )
    if is_view(spec, shape):
        same = tuple(shape) == spec.shape
        seen = spec if same else TensorSpec(shape, spec.data_format, spec.layout, spec.memory_config)
        return PlanTensor(source.name, seen)
    if spec.layout is Layout.ROW_MAJOR:
        return _reshaped_rows(builder, source, shape, name)
    if spec.data_format.is_block:
        return _reshaped_block_floats(builder, source, shape, name)
    place = memory_after(spec, shape)
    if place.is_sharded() is spec.memory_config.is_sharded():
        return moved_tiles(builder, source, shape, place, name)
    apart = _unsharded(builder, source, name)
    moved = moved_tiles(builder, apart, shape, place, name)
    builder.free(apart)
    return moved


def _reshaped_rows(builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], name: str) -> PlanTensor:
    """Row-major rows of another length; shards are left for it, and made again."""
    place = memory_after(source.spec, shape)
    apart = _unsharded(builder, source, name)
    last = f"{name}.moved" if place.is_sharded() else name
    moved = moved_rows(builder, apart, shape, apart.spec.memory_config, last)
    result = _sharded(builder, moved, place, name)
    if apart.name != source.name:
        builder.free(apart)
    return result


def moved_rows(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], place: MemoryConfig, name: str
) -> PlanTensor:
    """Interleaved rows of another length, by one program; raises DeviceError for elements that it does not move."""
    spec = source.spec
    _check_format(spec)
    made = TensorSpec(shape, spec.data_format, spec.layout, place)
    return builder.run(
        "ReshapeViewDeviceOperation",
        Reshape(shape),
        [source],
        output=PlanTensor(name, made),
        circular_buffers=stick_buffers(spec, made, builder.device_spec),
        dataflow=True,
    )


def _check_format(spec: TensorSpec) -> None:
    """Raises DeviceError for elements that the library's program does not move, of rows and of tiles."""
    if spec.data_format not in MOVED_FORMATS:
        raise DeviceError(
            "Can only work with bfloat16/float32 or int32/uint32 tensors\n"
            f"reshape: rows of {spec.data_format} can not be moved; typecast the tensor before"
        )


def _unsharded(builder: PlanBuilder, source: PlanTensor, name: str) -> PlanTensor:
    """The tensor interleaved in the memory where it is; itself if it is."""
    place = source.spec.memory_config
    if not place.is_sharded():
        return source
    return to_interleaved(builder, source, MemoryConfig(buffer_type=place.buffer_type), f"{name}.interleaved")


def _sharded(builder: PlanBuilder, source: PlanTensor, place: MemoryConfig, name: str) -> PlanTensor:
    """An interleaved tensor dealt to shards, and released; itself if it is to stay interleaved."""
    if not place.is_sharded():
        return source
    dealt = converted(builder, Conversion.INTERLEAVED_TO_SHARDED, source, name, in_memory(source.spec, place))
    builder.free(source)
    return dealt


def moved_tiles(
    builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], place: MemoryConfig, name: str
) -> PlanTensor:
    """Rows move between tiles, as a map says that the program keeps in DRAM; it sees shapes of three axes.

    Raises:
        DeviceError: The program does not move elements of this format.
    """
    spec = source.spec
    _check_format(spec)
    made = TensorSpec(shape, spec.data_format, spec.layout, place)
    before, after = _three_axes(spec.shape), _three_axes(shape)
    segments = segments_per_page(before, after)
    rows_map = TensorSpec((map_tiles(after), SEGMENT_WORDS * segments), UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    return builder.run(
        "ReshapeViewDeviceOperation",
        Reshape(shape),
        [source],
        output=PlanTensor(name, made),
        resident=[PlanTensor(f"{name}.map", rows_map)],
        circular_buffers=tile_buffers(spec, made, segments, builder.device_spec),
        dataflow=True,
        key=("reshape tiles", before, spec.data_format, spec.memory_config, spec.alignment, after, place),
    )


def _reshaped_block_floats(builder: PlanBuilder, source: PlanTensor, shape: tuple[int, ...], name: str) -> PlanTensor:
    """Block floats move as bfloat16; padding is zeroed before the way back because it shares exponents."""
    spec, place = source.spec, memory_after(source.spec, shape)
    apart = _unsharded(builder, source, name)
    wide = typecast_by(builder, apart, BFLOAT16, f"{name}.bfloat16")
    if apart.name != source.name:
        builder.free(apart)
    moved = moved_tiles(builder, wide, shape, wide.spec.memory_config, f"{name}.moved")
    if any(side % TILE for side in _three_axes(shape)[1:]):
        buffers = fill_buffers(moved.spec, builder.device_spec)
        builder.run("FillPadDeviceOperation", FillPad(), [moved], circular_buffers=buffers, dataflow=True)
    narrow = typecast_by(builder, moved, spec.data_format, f"{name}.narrow" if place.is_sharded() else name)
    builder.free(moved)
    result = _sharded(builder, narrow, place, name)
    builder.free(wide)
    return result


def segments_per_page(before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """Segments that the row map reserves for each output tile.

    A segment is a run of elements that are neighbors in an input tile and in an output tile alike. Each output tile
    has room for as many input tiles as it reads times the most segments of one of them; the largest product counts
    for all, and is aligned by adding its own remainder (as the real library does, though that need not align it).

    Args:
        before: Input shape as three axes.
        after: Output shape as three axes.
    """
    if before[2] != after[2]:
        most = most_segments(before, after)
        return most + most % SEGMENT_ALIGNMENT
    rows = np.arange(_rows_until_repetition(before, after))
    page_out, in_tile_out = _tile_rows(rows, after[1])
    page_in, in_tile_in = _tile_rows(rows, before[1])
    joined = np.zeros(len(rows), np.bool_)
    joined[1:] = (page_out[1:] == page_out[:-1]) & (page_in[1:] == page_in[:-1])
    pairs = np.flatnonzero(~joined)  # first rows of pairs of tiles
    pairs_of_page = np.bincount(page_out[pairs])
    first_pairs = np.cumsum(pairs_of_page) - pairs_of_page
    channels = after[2]
    most = 0
    for width in {min(channels, TILE), (channels - 1) % TILE + 1}:
        segments = np.add.reduceat(_pieces(width, joined, in_tile_in, in_tile_out), pairs)
        most = max(most, int((np.maximum.reduceat(segments, first_pairs) * pairs_of_page).max()))
    return most + most % SEGMENT_ALIGNMENT


def _rows_until_repetition(before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """Flat rows after which input and output tiles meet as from the start; what is left over is part of such a run."""
    rows = after[0] * after[1]
    periods = [height if height < rows and height % TILE else TILE for height in (before[1], after[1])]
    return min(rows, lcm(*periods))


def _pieces(width: int, joined: Array, in_tile_in: Array, in_tile_out: Array) -> Array:
    """New segments that each row begins, in a tile with ``width`` columns in use.

    A row crosses two faces when it is wider than one. The end of a row and the start of the next touch in memory only
    if rows fill whole faces: one face wide, within a face; two faces wide, from the end of the upper right face to
    the lower left one.
    """
    per_row = np.full(len(joined), 2 if width > FACE else 1)
    if width == FACE:
        per_row -= joined & (in_tile_in % FACE != 0) & (in_tile_out % FACE != 0)
    elif width == TILE:
        per_row -= joined & (in_tile_in == FACE) & (in_tile_out == FACE)
    return per_row


def _tile_rows(rows: Array, height: int) -> tuple[Array, Array]:
    """Row of tiles, and row within it, of flat rows of a tensor whose second last axis is ``height``."""
    image, row = np.divmod(rows, height)
    return image * div_up(height, TILE) + row // TILE, row % TILE


def _three_axes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape with all but the last two axes put together."""
    padded = (1,) * (3 - len(shape)) + tuple(shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def seen_anew(source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec) -> TensorSpec:
    """The tensor as its buffer is seen anew; the library does not see the padding of rows in shards as padding.

    Raises:
        DeviceError: Rows with their padding, or the tiles of a vector with theirs, lie in parts in several shards.
    """
    shards, columns, row = source.memory_config.shard_spec, source.padded_shape[-1], (1, *shape)[-1]
    tiled = source.layout is Layout.TILE
    if shards is not None and shards.shape[1] != columns != row and (len(shape) == 1 or not tiled):
        refuse_other_width(source.padded_shape, shape, shards)
    if shards is None or tiled or columns == row:
        return TensorSpec(shape, source.data_format, source.layout, source.memory_config)
    held = replace(shards, shape=(shards.shape[0] * columns // row, row))
    made = TensorSpec(shape, source.data_format, source.layout, replace(source.memory_config, shard_spec=held))
    size, page = source.buffer(spec).size_bytes, row_bytes(made)
    if size % page:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page} must equal buffer size {size}. For "
            "interleaved-buffers, buffer size should be divisible by the page size\n"
            f"input_tensor: rows of {columns} elements with their padding do not become rows of {row}"
        )
    return made


def refuse_other_width(padded_shape: Sequence[int], shape: Sequence[int], shards: ShardSpec) -> NoReturn:
    """Raises DeviceError for rows of another length in shards that cut them."""
    raise DeviceError(
        "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
        f"last dimension. Input shape: Shape({list(padded_shape)}), New shape: Shape({list(shape)}), "
        f"Shard width: {shards.shape[1]}\ninput_tensor: give shards of whole rows"
    )
