"""Programs that gather elements along the last axis (tt-metal 0.81.1, data_movement/gather): cores, buffers, values.

Two programs for rows and two for tiles, and three of generated code for bfloat16 in interleaved tiles. A processor
moves single elements; each index, value and result costs a word that a processor fills, which is not measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT16, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given, given_elements
from ops.programs.buffer_shapes import in_dram, page_cores, paged_buffer, spread_evenly
from ops.programs.data_movement.movement import Access, DataMovement, Movement, Pages

LONG_TILES: Final = 60  # of a row, whose elements cores share if it has more
LEAST_OUTPUT_TILES: Final = 4  # that generated code writes together
ACCESSES: Final = 3  # of a processor for each element


class Shared(Enum):
    """The work unit of cores: rows of the indices, tiles of the indices, or the columns of every row."""

    ROWS = "rows"
    TILES = "tiles"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(DataMovement):
    """Elements of rows selected by indices."""

    source_shape: tuple[int, int, int, int]
    index_shape: tuple[int, int, int, int]
    shared: Shared
    generated: bool
    tiled: bool
    columns: int  # Tiles, or elements of rows, of a row of the indices
    row_pages: int  # Tiles of a row of the source, or 1
    held_pages: int  # Of them, those that a core holds
    allowed: CoreRangeSet | None = None  # Cores that may be used; None for all

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The elements; an index beyond a row, for which the library specifies nothing, selects the last element."""
        source = given_elements(inputs[0], "gather").reshape(self.source_shape)
        places = given(inputs[1]).reshape(self.index_shape)
        first, second, third, _ = self.index_shape
        rows = source[:first, :second, :third]
        if (missing := third - rows.shape[2]) > 0:
            rows = np.pad(rows, ((0, 0), (0, 0), (0, missing), (0, 0)), mode="edge")
        return np.take_along_axis(rows, np.clip(places.astype(np.int64), 0, source.shape[-1] - 1), axis=-1)

    @property
    def lines(self) -> int:
        """Rows of the indices, or rows of tiles."""
        first, second, third, _ = self.index_shape
        return first * second * (div_up(third, TILE) if self.tiled else third)

    @property
    def work(self) -> int:
        """The parts that cores share."""
        return {
            Shared.ROWS: self.lines,
            Shared.TILES: self.lines * self.columns,
            Shared.COLUMNS: self.columns,
        }[self.shared]

    def cores(self, spec: DeviceSpec) -> CoreRangeSet:
        """The cores that share the work, column by column for generated code."""
        grid = spec.grid
        if self.generated and self.allowed is None:
            return first_cores(min(self.work, grid.cores), grid.cols, grid.rows, row_wise=False)
        return page_cores(self.work, grid, row_wise=not self.generated, within=self.allowed)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Rows of the source, and indices, are read and results are written, each waited for."""
        cores = self.cores(spec)
        count, share = spread_evenly(self.work, cores.num_cores())
        lines, columns = {
            Shared.ROWS: (share, self.columns),
            Shared.TILES: (div_up(share, self.columns), min(share, self.columns)),
            Shared.COLUMNS: (self.lines, share),
        }[self.shared]
        results = lines * (columns if self.tiled else 1)
        sources = lines * self.row_pages * (columns if self.tiled and self.shared is Shared.COLUMNS else 1)
        return Movement(
            cores=cores,
            reads=_pages(read, sources + results, count),
            writes=_pages(written, results, count),
            stores=ACCESSES * lines * columns * (TILE**2 if self.tiled else 1),
        )


def _pages(tensor: TensorSpec, core_pages: int, cores: int) -> Pages:
    return Pages(
        access=Access.WAIT,
        core_pages=core_pages,
        page_bytes=_page_bytes(tensor, tensor.shape[-1]),
        all_pages=core_pages * cores,
        tiles=tensor.layout is Layout.TILE,
        in_dram=in_dram(tensor),
    )


def _page_bytes(tensor: TensorSpec, columns: int) -> int:
    form = tensor.data_format
    return form.tile_bytes if tensor.layout is Layout.TILE else columns * (form.element_bytes or 0)


def gather_of(
    source: TensorSpec, indices: TensorSpec, shapes: tuple[tuple[int, ...], tuple[int, ...]], *, generated: bool,
    l1_bytes: int, spec: DeviceSpec, within: CoreRangeSet | None = None,
) -> Gather:  # fmt: skip
    """The program of a call, by its tensors and their shapes of four axes; ``l1_bytes`` are free on each core."""
    own, other = shapes
    cores = spec.grid.cores if within is None else within.num_cores()
    tiled = source.layout is Layout.TILE
    unit = TILE if tiled else 1
    columns, row = div_up(indices.padded_shape[-1], unit), div_up(own[-1], unit)  # rows of shards count their padding
    lines = prod(other[:-2]) * div_up(other[-2], TILE)
    if generated:
        page, index_page = source.data_format.tile_bytes, indices.data_format.tile_bytes
        outputs = max(columns, LEAST_OUTPUT_TILES)
        if (row + outputs) * page + index_page <= l1_bytes:
            shared = Shared.TILES if columns > 1 and lines < cores else Shared.ROWS
            held = row
        else:
            shared = Shared.COLUMNS
            most = min(max((l1_bytes - index_page - page) // page, 2), row)
            held = div_up(row, div_up(row, most))
    else:
        limit = LONG_TILES if tiled else LONG_TILES * TILE
        long = columns > limit or (tiled and row > limit)
        shared = Shared.COLUMNS if long else Shared.ROWS
        held = 2 if long else row if tiled else 1
    return Gather(
        source_shape=_four(own),
        index_shape=_four(other),
        shared=shared,
        generated=generated,
        tiled=tiled,
        columns=columns,
        row_pages=row if tiled else 1,
        held_pages=held,
        allowed=within,
    )


def _four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    first, second, third, fourth = shape
    return first, second, third, fourth


def is_generated(source: TensorSpec, indices: TensorSpec, result: TensorSpec) -> bool:
    """Whether generated code gathers: bfloat16 in tiles, without shards on any side."""
    tensors = source, indices, result
    tiles = all(tensor.layout is Layout.TILE and not tensor.memory_config.is_sharded() for tensor in tensors)
    return tiles and source.data_format == result.data_format == BFLOAT16


def gather_buffers(
    op: Gather, source: TensorSpec, indices: TensorSpec, written: DataFormat, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Rows of the source, a tile or a part of a row of indices, and of results in the format that is written."""
    cores = op.cores(spec)
    part = spread_evenly(op.columns, cores.num_cores())[1] if op.shared is Shared.COLUMNS else op.columns
    outputs = max(op.columns, LEAST_OUTPUT_TILES) if op.generated and op.shared is not Shared.COLUMNS else 1
    page_bytes = written.tile_bytes if source.layout is Layout.TILE else part * (written.element_bytes or 1)
    sizes = (
        ("source", op.held_pages, _page_bytes(source, source.padded_shape[-1]), source.data_format),
        ("indices", 1, _page_bytes(indices, part), indices.data_format),
        ("results", outputs, page_bytes, written),
    )
    return tuple(paged_buffer(name, count, size, data_format, cores) for name, count, size, data_format in sizes)
