"""The circular buffers of data movement programs that a graph capture shows, in order of allocation.

Most movements use dataflow buffers, or none but views of their tensors, and a capture shows neither. Three make
circular buffers: cutting a slice out of an image, writing rows of an interleaved slice back, and untilizing
interleaved tiles by generated code. Source: tt-metal 0.81.1 (padded_slice, slice_write, untilize), compared with
recorded runs.
"""

from math import prod
from typing import Final

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up, round_up
from device.numbers.formats import DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import paged_buffer, tile_buffer
from ops.programs.movement.ends import dealt_pieces

SLICE_ROWS_OF_TILES: Final = 4  # rows of tiles on their way through a core that slices
BUFFERING: Final = 2  # double buffering
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


def untilize_codegen_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of the program that makes rows of interleaved tiles: two pieces of a row of tiles in, and two out."""
    cores, piece_tiles = dealt_pieces(source, spec)
    ends, tiles = (("tiles", source), ("rows", made)), BUFFERING * piece_tiles
    return tuple(tile_buffer(name, tiles, tensor.data_format, cores) for name, tensor in ends)


def _tiles_across(channels: int, width: int) -> int:
    """Most tiles that one shard of ``width`` channels lies in; it need not start where a tile does."""
    starts = range(0, channels, width)
    return max(div_up(min(start + width, channels), TILE) - start // TILE for start in starts)
