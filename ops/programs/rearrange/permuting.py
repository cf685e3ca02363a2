"""The buffers of programs that put axes in any order.

Source: tt-metal 0.81.1 (data_movement/permute), compared with recorded plans.
"""

from math import prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    volume_tiles,
)

FACE_ROW = 16  # elements of a row of a face


def keeps_tiles(axes: tuple[int, ...]) -> bool:
    """Whether whole tiles go elsewhere, turned or not: the last two axes stay the last two."""
    return set(axes[-2:]) == {len(axes) - 2, len(axes) - 1}


def permute_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: rows that stay whole, tiles that do, or blocks of both axes that are last."""
    if source.layout is Layout.ROW_MAJOR:
        return _row_buffers(source, axes, spec)
    if keeps_tiles(axes):
        return _tile_buffers(source, axes, volume_tiles(made), spec)
    if axes[-1] in (len(axes) - 2, len(axes) - 1):
        return _tile_row_buffers(source, made, axes, spec)
    return _block_buffers(source, made, axes, spec)


def _row_buffers(source: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    data_format, columns = source.data_format, source.shape[-1]
    rows = prod(source.shape[:-1])
    if axes[-1] == len(axes) - 1:
        page = round_up(row_bytes(source, columns), page_alignment_bytes(source.memory_config, spec))
        return (buffer("rows", BUFFERING * page, data_format, page_cores(rows, spec.grid)),)
    moved = source.shape[axes[-1]]
    cores = page_cores(rows // moved * div_up(moved, TILE) * div_up(columns, TILE), spec.grid)
    size = BUFFERING * data_format.tile_bytes
    return tuple(buffer(name, size, data_format, cores) for name in ("read", "turned", "tiled"))


def _tile_buffers(
    source: TensorSpec, axes: tuple[int, ...], tiles: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two tiles, and two that are turned if the last two axes are swapped."""
    names = ("tiles",) if axes[-1] == len(axes) - 1 else ("tiles", "turned")
    cores, size = page_cores(tiles, spec.grid), BUFFERING * source.data_format.tile_bytes
    return tuple(buffer(name, size, source.data_format, cores) for name in names)


def _tile_row_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two tiles whose rows, or columns, go elsewhere; a row of a number where they leave a tile ragged."""
    rank, data_format = len(axes), source.data_format
    turns = axes[-1] == rank - 2
    high = made.padded_shape[-1 if turns else -2]
    cores = page_cores(max(volume_tiles(source), volume_tiles(made) // (high // TILE)), spec.grid)
    whole = buffer("tiles", BUFFERING * data_format.tile_bytes, data_format, cores)
    fill = (_fill(source, whole),) if source.shape[axes[-2]] % TILE else ()
    turned = (buffer("turned", whole.size_bytes, data_format, cores),) if turns else ()
    return whole, *fill, *turned


def _block_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Blocks of both axes that are last, before and behind, in three stages; short reads need room to be aligned."""
    data_format, moved, columns = source.data_format, source.shape[axes[-1]], source.shape[-1]
    others = prod(source.shape[:-1]) // moved
    blocks = others * div_up(moved, TILE) * div_up(columns, TILE)
    cores = page_cores(max(blocks, volume_tiles(made) // (made.padded_shape[-2] // TILE)), spec.grid)
    short = page_alignment_bytes(source.memory_config, spec) - FACE_ROW * (data_format.element_bytes or 1)
    size = BUFFERING * (data_format.tile_bytes + max(0, short))
    stages = tuple(buffer(name, size, data_format, cores) for name in ("read", "tiled", "turned"))
    return (*stages, _fill(source, stages[0])) if source.shape[axes[-2]] % TILE else stages


def _fill(source: TensorSpec, beside: CircularBuffer) -> CircularBuffer:
    """A row of a face of the number that fills tiles."""
    element_bytes = source.data_format.element_bytes or 1  # block floats count as bytes
    return buffer("fill", FACE_ROW * element_bytes, source.data_format, beside.cores)
