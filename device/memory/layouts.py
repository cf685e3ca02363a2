"""The layout of tensors in memory: layout, memory config, shards, and the resulting buffer.

A tensor's elements form a matrix: its last axis is the width, all other axes together are the height, both padded. The
matrix is split into pages (a tile; or a row of the tensor or of its shard), and pages are distributed over banks:
round-robin if interleaved, otherwise by shards. The rules are those of tt-metal's tensor layout and buffer code,
compared with every tensor and buffer of the recorded runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any, Final, NamedTuple

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    FACE,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    check_cores,
    check_shards,
    tilize,
    untilize,
)
from device.numbers.formats import (
    Array,
    DataFormat,
    decode_rows,
    decode_tiles,
    div_up,
    encode_rows,
    encode_tiles,
    round_up,
)
from device.spec.device_spec import DeviceSpec

COUNTED_AXES: Final = 4  # at least so many axes of a shape may be counted back in the real library


class BufferSpec(NamedTuple):
    """The arguments of an allocation."""

    buffer_type: BufferType
    memory_layout: TensorMemoryLayout  # How pages are dealt to banks
    size_bytes: int  # All pages together, unaligned
    page_bytes: int  # One page, unaligned
    bank_bytes: int  # What the fullest bank (or core) holds, with every page aligned: what is reserved in every bank
    num_cores: int = 0  # Cores that hold a shard, which may be fewer than the shard grid has; 0 when interleaved
    cores: CoreRangeSet | None = None  # The shard grid; None when interleaved


@dataclass(frozen=True, slots=True, init=False)
class TensorSpec:
    """Shape, format, layout and memory of a tensor: everything except its values.

    Attributes:
        shape: Logical shape, any rank.
        data_format: Storage format of an element.
        layout: TILE or ROW_MAJOR.
        memory_config: The memory.
        padded_shape: ``shape`` with the padding of layout and shards, or the padding that an operation chose.
        alignment: Multiples that the last axes are padded to, as the real library records them; part of the program
            cache key even if the padded shapes are equal.

    Examples:
        >>> spec = ttnn.zeros((30, 32), layout=ttnn.TILE_LAYOUT, device=device).spec
        >>> spec.shape, spec.padded_shape
        ((30, 32), (32, 32))
    """

    shape: tuple[int, ...]
    data_format: DataFormat
    layout: Layout
    memory_config: MemoryConfig
    padded_shape: tuple[int, ...]
    alignment: tuple[int, ...] = field(repr=False)

    def __init__(
        self,
        shape: Sequence[int],
        data_format: DataFormat,
        layout: Layout,
        memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
        padded_shape: Sequence[int] | None = None,
        alignment: Sequence[int] | None = None,
    ) -> None:
        """Derives the padding if none is given, and otherwise the alignment from the given padding.

        Raises:
            DeviceError: Block floats in row-major layout, or a shard spec that does not fit the tensor.
        """
        logical = tuple(map(int, shape))
        least = _least_alignment(layout, memory_config)
        aligned = least if alignment is None else _joined(tuple(map(int, alignment)), least)
        if padded_shape is not None:
            padded = tuple(map(int, padded_shape))
            aligned = _alignment_of(logical, padded, least) if alignment is None else aligned
        else:  # a single number takes a row of one
            padded = _rounded(logical, aligned)
        object.__setattr__(self, "shape", logical)
        object.__setattr__(self, "data_format", data_format)
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "memory_config", memory_config.sealed())
        object.__setattr__(self, "padded_shape", padded)
        object.__setattr__(self, "alignment", aligned)
        if memory_config.shard_spec is not None:
            check_shards(*self.matrix, layout, memory_config.memory_layout, memory_config.shard_spec)
        if data_format.is_block and layout is not Layout.TILE:
            raise DeviceError(
                "Only TILE layout is supported for BFLOAT8_B dtype!\n"  # said of every block float
                f"A block float has no rows: ask for TILE layout, or for bfloat16 instead of {data_format}"
            )
        if memory_config.shard_spec is not None and len(logical) == 1 and layout is Layout.ROW_MAJOR:
            rows = memory_config.shard_spec.shape[0]
            if rows != 1:
                raise DeviceError(
                    "Shard shape must be 1D for 1D tensor!\n"
                    f"memory_config: shards of a tensor of one axis have one row, not {rows}"
                )

    def changed(self, **fields: Any) -> "TensorSpec":
        """The spec with other fields (None keeps a field), and with the padding that they require."""
        kept = {name: getattr(self, name) for name in ("shape", "data_format", "layout", "memory_config")}
        return TensorSpec(**kept | {name: value for name, value in fields.items() if value is not None})

    @property
    def volume(self) -> int:
        """Number of elements of the logical shape."""
        return prod(self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the padded matrix."""
        return prod(self.padded_shape[:-1]), self.padded_shape[-1]

    @property
    def shards(self) -> ShardSpec:
        """The shard spec of a sharded tensor; raises DeviceError if the memory config has none."""
        shards = self.memory_config.shard_spec
        if shards is None:
            require_shard_spec(self.memory_config, in_rows=self.layout is Layout.ROW_MAJOR)
            raise AssertionError("an interleaved tensor has no shards")
        return shards

    @property
    def data_cores(self) -> CoreRangeSet:
        """The cores that hold a shard, merged: the first of the shard grid, in the order of its orientation."""
        (rows, columns), place, shards = self.matrix, self.memory_config, self.shards
        high, wide = div_up(rows, shards.shape[0]), div_up(columns, shards.shape[1])
        by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
        if place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
            start, (down, across) = shards.grid.bounding_box().start, (high, wide) if by_rows else (wide, high)
            return CoreRangeSet(CoreRange(start, CoreCoord(start.x + across - 1, start.y + down - 1)))
        count = high if place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED else wide
        if count == shards.num_cores():
            return shards.grid.merged()
        return CoreRangeSet([CoreRange(core, core) for core in shards.grid.cores(by_rows)[:count]]).merged()

    def buffer(self, spec: DeviceSpec) -> BufferSpec:
        """The buffer that holds this tensor on a device.

        Raises:
            DeviceError: The memory config is sharded without a shard spec, or has cores that the device does not have.
        """
        config = self.memory_config
        if config.is_sharded():
            return self._sharded_buffer(spec)
        rows, cols = self.matrix
        page_bytes, pages = self._pages(rows, cols, cols)
        banks = spec.dram.banks if config.buffer_type is BufferType.DRAM else spec.grid.cols * spec.grid.rows
        return BufferSpec(
            buffer_type=config.buffer_type,
            memory_layout=config.memory_layout,
            size_bytes=pages * page_bytes,
            page_bytes=page_bytes,
            bank_bytes=div_up(pages, banks) * aligned_page_bytes(page_bytes, config.buffer_type, spec),
        )

    def require_on(self, spec: DeviceSpec) -> None:
        """Raises DeviceError for shards on cores or banks that a device does not have.

        The library checks the shards of a result before it checks operands.
        """
        self.buffer(spec)

    def _sharded_buffer(self, spec: DeviceSpec) -> BufferSpec:
        config, shards = self.memory_config, self.shards
        (rows, cols), (shard_rows, shard_cols) = self.matrix, shards.shape
        high, wide = div_up(rows, shard_rows), div_up(cols, shard_cols)
        check_cores(config, shards, (high, wide), spec)
        page_bytes, pages = self._pages(rows, cols, shard_cols)
        _, shard_pages = self._pages(shard_rows, shard_cols, shard_cols)
        return BufferSpec(
            buffer_type=config.buffer_type,
            memory_layout=config.memory_layout,
            size_bytes=pages * page_bytes,
            page_bytes=page_bytes,
            bank_bytes=shard_pages * aligned_page_bytes(page_bytes, config.buffer_type, spec) if pages else 0,
            num_cores=min(shards.num_cores(), high * wide),
            cores=shards.grid,
        )

    def _pages(self, rows: int, cols: int, row_page_cols: int) -> tuple[int, int]:
        """Bytes of a page, and pages of a matrix; a row-major page is ``row_page_cols`` elements of one row."""
        if self.layout is Layout.TILE:
            return self.data_format.tile_bytes, div_up(rows, TILE) * div_up(cols, TILE)
        element_bytes = self.data_format.element_bytes or 0  # row-major block floats are refused on construction
        return row_page_cols * element_bytes, rows * (cols // row_page_cols if row_page_cols else 0)


def no_shards(place: MemoryConfig, *, in_rows: bool) -> str:
    """The library's error text for a sharded memory config without shards; rows and tiles fail in different steps."""
    rows = "MemoryConfig must have Shard Spec specified for sharded memory layout"
    first = rows if in_rows else "bad optional access"
    return f"{first}\nmemory_config: {place.memory_layout.name} needs a ShardSpec(grid, shape, orientation)"


def no_such_axis(rank: int, axis: int | None = None) -> str:
    """The real library's error text for an axis that a shape of this rank lacks; None for the axis after the last."""
    return (
        f"ShapeBase[] index out of range. {rank if axis is None else axis} not in [-{max(rank, COUNTED_AXES)}, {rank})"
    )


def side(shape: Sequence[int], axis: int) -> int:
    """A side of a shape as the real library reads it, with leading sides of 1 for shapes of low rank.

    Raises DeviceError, with the library's first line, if the library finds no such axis.
    """
    counted = (1,) * (COUNTED_AXES - len(shape)) + tuple(shape)
    if not -len(counted) <= axis < len(shape):
        raise DeviceError(f"{no_such_axis(len(shape), axis)}\nthe tensor has {len(shape)} axes; reshape it")
    return counted[axis] if axis < 0 else shape[axis]


def require_shard_spec(place: MemoryConfig, *, in_rows: bool) -> None:
    """Raises DeviceError for a sharded memory config without shards."""
    if place.is_sharded() and place.shard_spec is None:
        raise DeviceError(no_shards(place, in_rows=in_rows))


def aligned_page_bytes(page_bytes: int, buffer_type: BufferType, spec: DeviceSpec) -> int:
    """Distance between pages in a bank."""
    memory = spec.dram if buffer_type is BufferType.DRAM else spec.l1
    return round_up(page_bytes, memory.alignment_bytes)


def _least_alignment(layout: Layout, config: MemoryConfig) -> tuple[int, ...]:
    """The minimum alignment of the last axes: tiles, or rows of shards."""
    if layout is Layout.TILE:
        return TILE, TILE
    return (1,) if config.shard_spec is None else (config.shard_spec.shape[1],)


def _joined(wanted: tuple[int, ...], least: tuple[int, ...]) -> tuple[int, ...]:
    """An alignment rounded up to multiples of the minimum alignment."""
    rank = max(len(wanted), len(least))
    return tuple(map(round_up, (1,) * (rank - len(wanted)) + wanted, (1,) * (rank - len(least)) + least))


def _rounded(shape: tuple[int, ...], alignment: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of at least the alignment's rank, with the last sides rounded up to the alignment."""
    whole = (1,) * (len(alignment) - len(shape)) + shape
    return tuple(map(round_up, whole, (1,) * (len(whole) - len(alignment)) + alignment))


def _alignment_of(shape: tuple[int, ...], padded: tuple[int, ...], least: tuple[int, ...]) -> tuple[int, ...]:
    """The alignment of a chosen padding: the padded sides, if the minimum alignment does not pad as far.

    Padding of axes before the last two counts in rows of the matrix.
    """
    if padded in (shape, _rounded(shape, least)):
        return least
    whole, last = (1,) * (len(padded) - len(shape)) + shape, min(2, len(padded))
    units = (1, *least)[-last:]
    sides = [
        side if side > round_up(length, unit) or len(least) == 1 else unit
        for length, side, unit in zip(whole[-last:], padded[-last:], units, strict=True)
    ]
    if whole[:-2] == padded[:-2]:
        return _joined(tuple(sides), least)
    rows = list(accumulate(reversed(padded[:-1]), mul))[1:]
    return _joined((*reversed(rows), *sides), least)


class PagePlaces(NamedTuple):
    """Banks and offsets of pages, in page order."""

    banks: Array  # int64 [pages]
    offsets: Array  # int64 [pages], bytes from the buffer's address


def bank_of(core: CoreCoord, spec: DeviceSpec) -> int:
    """The L1 bank of a core."""
    return core.y * spec.grid.cols + core.x


def page_places(tensor: TensorSpec, spec: DeviceSpec) -> PagePlaces:
    """Bank and offset of every page of a tensor, with pages numbered along the rows of its padded matrix.

    Interleaved pages are assigned round-robin. The pages of a shard are consecutive on its core, row by row.
    """
    config = tensor.memory_config
    in_dram = config.buffer_type is BufferType.DRAM
    page_rows, page_cols, page_bytes = _page_grid(tensor)
    stride = round_up(page_bytes, (spec.dram if in_dram else spec.l1).alignment_bytes)
    pages = np.arange(page_rows * page_cols)
    if config.shard_spec is None:
        count = spec.dram.banks if in_dram else spec.grid.cores
        return PagePlaces(pages % count, pages // count * stride)
    unit = TILE if tensor.layout is Layout.TILE else 1
    shard_rows = config.shard_spec.shape[0] // unit
    shard_cols = config.shard_spec.shape[1] // unit if unit == TILE else 1
    shard_row, row = np.divmod(pages // page_cols, shard_rows)
    shard_col, col = np.divmod(pages % page_cols, shard_cols)
    cores = _shard_banks(config.memory_layout, config.shard_spec, spec)
    if config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        across = config.shard_spec.orientation is ShardOrientation.ROW_MAJOR
        banks = cores[shard_row, shard_col] if across else cores[shard_col, shard_row]
    else:
        banks = cores[0, shard_row * div_up(page_cols, shard_cols) + shard_col]
    return PagePlaces(banks, (row * shard_cols + col) * stride)


def encode_pages(values: Array, tensor: TensorSpec) -> Array:
    """Bytes of a tensor's pages: uint8 [pages, page_bytes].

    ``values`` have the tensor's shape or padded shape; the rest is zero.
    """
    matrix = _padded_values(values, tensor).reshape(tensor.matrix)
    _, _, page_bytes = _page_grid(tensor)
    if tensor.layout is Layout.TILE:
        return encode_tiles(tilize(matrix), tensor.data_format).reshape(-1, page_bytes)
    return encode_rows(matrix, tensor.data_format).reshape(-1, page_bytes)


def decode_pages(pages: Array, tensor: TensorSpec) -> Array:
    """Values of a tensor's pages, in its padded shape and its format's storage type; inverse of ``encode_pages``."""
    rows, cols = tensor.matrix
    if tensor.layout is Layout.TILE:
        tiles = decode_tiles(pages.reshape(div_up(rows, TILE), div_up(cols, TILE), -1), tensor.data_format)
        return untilize(tiles).reshape(tensor.padded_shape)
    return decode_rows(pages.reshape(rows, -1), tensor.data_format).reshape(tensor.padded_shape)


def _page_grid(tensor: TensorSpec) -> tuple[int, int, int]:
    """Pages along the height and the width of a tensor's padded matrix, and bytes of one."""
    rows, cols = tensor.matrix
    if tensor.layout is Layout.TILE:
        return div_up(rows, TILE), div_up(cols, TILE), tensor.data_format.tile_bytes
    shards = tensor.memory_config.shard_spec
    page_cols = max(cols if shards is None else shards.shape[1], 1)
    return rows, cols // page_cols, page_cols * tensor.data_format.storage.itemsize


def _shard_banks(layout: TensorMemoryLayout, shards: ShardSpec, spec: DeviceSpec) -> Array:
    """Banks of a shard grid: [grid rows, grid cols] for block shards, else [1, cores] in the order of shards."""
    if layout is TensorMemoryLayout.BLOCK_SHARDED:
        box = shards.grid.bounding_box()
        return np.array([bank_of(core, spec) for core in box.cores()]).reshape(box.rows, box.cols)
    row_major = shards.orientation is ShardOrientation.ROW_MAJOR
    return np.array([[bank_of(core, spec) for core in shards.grid.cores(row_major)]])


def _padded_values(values: Array, tensor: TensorSpec) -> Array:
    if values.shape == tensor.padded_shape:
        return values
    if values.shape != tensor.shape or len(tensor.shape) > len(tensor.padded_shape):
        raise ValueError(
            f"a tensor of shape {list(tensor.shape)} (padded {list(tensor.padded_shape)}) holds values of one of these "
            f"shapes, not of {list(values.shape)}; reshape them first"
        )
    lead = (1,) * (len(tensor.padded_shape) - len(tensor.shape))
    padded = np.zeros(tensor.padded_shape, values.dtype)
    padded[tuple(slice(side) for side in lead + tensor.shape)] = values.reshape(lead + tensor.shape)
    return padded


def layout_text(tensor: TensorSpec) -> str:
    """Data type, pages, memory and alignment of a tensor, as the real library prints its TensorLayout."""
    return f"{layout_fields(tensor)}{tensor.memory_config.reported()},alignment=Alignment({list(tensor.alignment)}))"


def layout_fields(tensor: TensorSpec) -> str:
    """The beginning of a TensorLayout as the real library prints it, until its memory."""
    config = "RowMajorPageConfig()"
    if tensor.layout is Layout.TILE:
        config = f"TilePageConfig(tile=Tile(tile_shape={{{TILE}, {TILE}}},face_shape={{{FACE}, {FACE}}},num_faces=4))"
    data_type = f"DataType::{tensor.data_format.name.upper()}"
    return f"TensorLayout(dtype={data_type},page_config=PageConfig(config={config}),memory_config="
