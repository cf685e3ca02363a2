"""Programs that make tiles of rows and rows of tiles, and deal shards: the operation and its dataflow buffers.

Interleaved tensors pass through a core by rows of tiles, wide ones by blocks; shards lie where they are. Source:
tt-metal 0.81.1 (tilize, tilize_with_val_padding, untilize, untilize_with_unpadding), compared with recorded plans.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.matrix_unit.typecast import typecast
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, dealt_evenly, scratchpad, tile_buffer
from ops.programs.data_movement.copy import (
    TILIZES,
    Conversion,
    TileBlocks,
    measured_name,
    packed_tiles,
    tensor_copy_movement,
    tile_blocks,
)
from ops.programs.data_movement.movement import Movement, dealt_pieces
from ops.programs.data_movement.movement_cycles import DataMovement


@dataclass(frozen=True, slots=True, kw_only=True)
class TilizeOp(DataMovement):
    """The same numbers in another place, another order of bytes, or another format."""

    conversion: Conversion  # By which program
    source_format: DataFormat
    data_format: DataFormat
    kept: tuple[int, ...] | None = None  # Shape of what is kept of the source, from its first element on; None for all
    # Padded shape of the source if the result takes its rows of padding for rows of its own; None if not
    padded: tuple[int, ...] | None = None
    on_one_core: bool = False  # One core does all

    def moved(self, values: Array) -> Array:
        """What is kept, with padding as rows where the program leaves it, in the format of the result."""
        if self.kept is not None:
            values = values[tuple(slice(side) for side in self.kept)]
        if self.padded is not None:
            values = _with_padding(values, self.padded)
        if self.source_format == self.data_format:
            return packed_tiles(values) if self.conversion in TILIZES else values
        return typecast(values, self.source_format, self.data_format)

    @property
    def measured_as(self) -> str:
        """The name of the conversion, if it was measured: programs that change formats on the way were not."""
        return "" if self.source_format != self.data_format else measured_name(self.conversion)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program."""
        return tensor_copy_movement(self.conversion, read, written, spec, on_one_core=self.on_one_core)


def _with_padding(values: Array, padded: tuple[int, ...]) -> Array:
    """As many rows as there were, with zeros below each image, which pushes the last images out."""
    below = [(0, 0)] * (values.ndim - 2) + [(0, padded[-2] - values.shape[-2]), (0, 0)]
    rows = np.pad(values, below).reshape(-1, values.shape[-1])
    return rows[: prod(values.shape[:-1])].reshape(values.shape)


STICKS = 4  # of the scratchpad in which sticks are aligned
HALF_TILE = 16  # columns of rows that have a writer of their own
HALF_TILES = 16  # tiles on their way to it


def tiling_buffers(
    conversion: Conversion, read: PlanTensor, made: PlanTensor, spec: DeviceSpec, *, on_one_core: bool = False
) -> tuple[CircularBuffer, ...]:
    """Buffers of one program.

    Args:
        conversion: Tilize, Untilize, or one of them with padding.
        made: What it makes.
        on_one_core: One core does all.
    """
    match conversion:
        case Conversion.TILIZE if not on_one_core:
            in_shards = _tilized_shards(read, made, spec)
        case Conversion.UNTILIZE if not on_one_core:
            in_shards = _untilized_shards(read, made, spec)
        case Conversion.UNTILIZE_WITH_UNPADDING:
            in_shards = _unpadded_shards(read, made, spec)
        case Conversion.TILIZE_WITH_VAL_PADDING:
            in_shards = _padded_shards(read, made, spec)
            on_one_core = on_one_core and not read.spec.memory_config.is_sharded()
        case _:
            in_shards = ()
    if in_shards:
        return in_shards
    blocks = tile_blocks(conversion, read.spec, made.spec, spec, on_one_core=on_one_core)
    if blocks is not None:
        return _block_buffers(blocks, read.spec, made.spec, spec)
    untilizes = conversion is Conversion.UNTILIZE
    tiles = made.spec if conversion in (Conversion.TILIZE, Conversion.TILIZE_WITH_VAL_PADDING) else read.spec
    rows, across = tiles.matrix[0] // TILE, tiles.matrix[1] // TILE
    cores, core_rows = _dealt(rows, spec, by_columns=not untilizes)
    depth = BUFFERING if core_rows > 1 and untilizes and not on_one_core else 1
    if on_one_core:
        cores = first_cores(1, spec.grid.cols, spec.grid.rows)
        across = _shard_tiles(made.spec)[1] if untilizes and made.spec.memory_config.is_sharded() else across
    return (
        tile_buffer("argument", depth * across, read.spec.data_format, cores),
        tile_buffer("result", depth * across, made.spec.data_format, cores),
    )


def _block_buffers(
    blocks: TileBlocks, read: TensorSpec, made: TensorSpec, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """A row of tiles of a block, in and out; sticks of a block are aligned in a scratchpad on their way in."""
    tiles, pads = [], []
    for width, cores in blocks.cores_by_width(spec).items():
        tiles += [
            tile_buffer("argument", width, read.data_format, cores),
            tile_buffer("result", width, made.data_format, cores),
        ]
        if read.layout is Layout.ROW_MAJOR:
            stick_bytes = width * TILE * (read.data_format.element_bytes or 0) + 2 * spec.dram.alignment_bytes
            pads.append(scratchpad("sticks", stick_bytes, read.data_format, cores))
    return (*tiles, *reversed(pads))


def _tilized_shards(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of shards that are tilized where they lie: those that stay in their scheme, and rows of whole tiles for L1."""
    before, after = read.spec.memory_config, made.spec.memory_config
    if before.is_sharded() and before.memory_layout is after.memory_layout:
        return _view("argument", read, spec), _view("result", made, spec)
    in_l1 = after == MemoryConfig(buffer_type=BufferType.L1)
    if before.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED or before.shard_spec is None or not in_l1:
        return ()
    if before.shard_spec.shape[0] % TILE:
        return ()
    view = _view("argument", read, spec)
    return view, tile_buffer("result", made.spec.matrix[1] // TILE, made.spec.data_format, view.cores)


def _padded_shards(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of WIDTH shards that are padded and stay: the rows of an image on their way, and a stick of the padding."""
    places = {one.spec.memory_config.memory_layout for one in (read, made)}
    before, after = read.spec.memory_config.shard_spec, made.spec.memory_config.shard_spec
    if before is None or after is None or places != {TensorMemoryLayout.WIDTH_SHARDED} or len(made.spec.shape) == 1:
        return ()
    if (before.grid, before.shape[1]) != (after.grid, after.shape[1]):
        return ()
    across, view = _shard_tiles(made.spec)[1], _view("result", made, spec)
    tiles = BUFFERING * made.spec.padded_shape[-2] // TILE * across
    stick = across * TILE * (read.spec.data_format.element_bytes or 0)
    pad = _view("padding", read, spec)._replace(size_bytes=stick, page_bytes=stick, view_of=None, scratchpad=True)
    return tile_buffer("argument", tiles, read.spec.data_format, view.cores), view, pad


def _untilized_shards(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of shards that are untilized: where they lie, if they stay; otherwise rows of tiles on their way."""
    place, shards = read.spec.memory_config, read.spec.memory_config.shard_spec
    if shards is None:
        return ()
    if place == made.spec.memory_config:
        return _view("argument", read, spec), _view("result", made, spec)
    high, across = _shard_tiles(read.spec)
    tiles, cores = (BUFFERING if high > 1 else 1) * across, read.spec.data_cores
    even = all(side % part == 0 for side, part in zip(read.spec.matrix, shards.shape, strict=True))
    first = tile_buffer("argument", tiles, read.spec.data_format, cores)
    if even:
        first = _view("argument", read, spec)._replace(cores=cores)
    return first, tile_buffer("result", tiles, made.spec.data_format, cores)


def _unpadded_shards(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Of shards whose padding is cut off: all rows of an image at a time if they stay shards, otherwise one."""
    place = read.spec.memory_config
    if not place.is_sharded():
        return ()
    high, across = _shard_tiles(read.spec)
    view = _view("argument", read, spec)
    if not made.spec.memory_config.is_sharded():
        return view, tile_buffer("result", BUFFERING * across, made.spec.data_format, view.cores)
    if place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED or images_of_shard(read.spec):
        high = read.spec.padded_shape[-2] // TILE
    is_half_tile = made.spec.padded_shape[-1] == HALF_TILE and made.spec.shape[-2] % TILE == 0
    tiles = HALF_TILES if is_half_tile else BUFFERING * high * across
    rows = tile_buffer("rows", tiles, made.spec.data_format, view.cores)
    return view, rows, _last_view("result", made, spec)


def _shard_tiles(tensor: TensorSpec) -> tuple[int, int]:
    """Tiles down and across a shard."""
    rows, columns = tensor.shards.shape
    return div_up(rows, TILE), div_up(columns, TILE)


def _dealt(rows: int, spec: DeviceSpec, *, by_columns: bool) -> tuple[CoreRangeSet, int]:
    """The cores that share rows of tiles evenly, and how many each has."""
    used, core_rows = dealt_evenly(rows, spec.grid.cores)
    return first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=not by_columns).merged(), core_rows


def _view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on the shards of a tensor."""
    shards, data_format = tensor.spec.shards, tensor.spec.data_format
    page_bytes = data_format.tile_bytes
    size = prod(shards.shape) * page_bytes // TILE**2
    if tensor.spec.layout is Layout.ROW_MAJOR:
        page_bytes = shards.shape[1] * (data_format.element_bytes or 0)
        size = shards.shape[0] * round_up(page_bytes, spec.l1.alignment_bytes)
    return CircularBuffer(
        name=name,
        size_bytes=size,
        page_bytes=page_bytes,
        data_format=data_format,
        cores=shards.grid,
        view_of=tensor.name,
    )


def _last_view(name: str, tensor: PlanTensor, spec: DeviceSpec) -> CircularBuffer:
    """A buffer on the shards of rows, as long as the last of them."""
    view, rows, shard_rows = _view(name, tensor, spec), tensor.spec.matrix[0], tensor.spec.shards.shape[0]
    last = rows - (div_up(rows, shard_rows) - 1) * shard_rows
    return view._replace(size_bytes=view.size_bytes // shard_rows * last)


def shard_buffers(
    conversion: Conversion, read: PlanTensor, made: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the programs that deal pages.

    A view of the shards, and as many tiles of the other format if there is one; sticks on their way into shards are
    aligned in a scratchpad.
    """
    alignment_bytes = spec.dram.alignment_bytes
    pad: tuple[CircularBuffer, ...] = ()
    match conversion:
        case Conversion.INTERLEAVED_TO_SHARDED | Conversion.RESHARD:
            shards, other = made, read
        case Conversion.SHARDED_TO_INTERLEAVED:
            shards, other = read, made
        case _:
            return ()
    view = _view("shards", shards, spec)._replace(cores=shards.spec.data_cores)
    if conversion is Conversion.INTERLEAVED_TO_SHARDED and made.spec.layout is Layout.ROW_MAJOR:
        stick = round_up(view.page_bytes, alignment_bytes) + alignment_bytes
        pad = (
            view._replace(name="sticks", size_bytes=STICKS * stick, page_bytes=stick, view_of=None, scratchpad=True),
        )
    if conversion is Conversion.RESHARD:
        view = view._replace(size_bytes=resharded_bytes(made.spec, view.size_bytes, spec))
        pad = _unaligned_pad(read.spec, view, spec)
    if shards.spec.data_format == other.spec.data_format:
        return (view, *pad)
    return view, tile_buffer("converted", view.size_bytes // view.page_bytes, other.spec.data_format, view.cores)


def resharded_bytes(made: TensorSpec, shard_bytes: int, spec: DeviceSpec) -> int:
    """Bytes of a reshard's view of a shard: as many whole pages, aligned, as the tensor has bytes for without that."""
    tensor = made.buffer(spec)
    page_bytes = aligned_page_bytes(tensor.page_bytes, tensor.buffer_type, spec)
    return min(shard_bytes, tensor.size_bytes // page_bytes * page_bytes)


def _unaligned_pad(read: TensorSpec, view: CircularBuffer, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Room for two whole shards that a reshard reads, if HEIGHT shards are of rows that L1 would align."""
    shards, place = read.memory_config.shard_spec, read.memory_config
    if read.layout is Layout.TILE or shards is None or place.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return ()
    row_bytes = read.buffer(spec).page_bytes
    aligned = aligned_page_bytes(row_bytes, place.buffer_type, spec)
    if aligned == row_bytes:
        return ()
    size = BUFFERING * shards.shape[0] * aligned
    return (view._replace(name="unaligned", size_bytes=size, page_bytes=aligned, view_of=None),)


def untilize_codegen_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that makes rows of interleaved tiles: two pieces of a row of tiles in, and two out."""
    cores, piece_tiles = dealt_pieces(source, spec)
    ends, tiles = (("tiles", source), ("rows", made)), BUFFERING * piece_tiles
    return tuple(tile_buffer(name, tiles, tensor.data_format, cores) for name, tensor in ends)


def images_of_shard(source: TensorSpec) -> int:
    """Whole images that a HEIGHT shard holds, if it holds several, whatever is left over; otherwise 0."""
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return 0
    images = shards.shape[0] // source.padded_shape[-2]
    return images if images > 1 else 0
