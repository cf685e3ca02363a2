"""What programs take that put axes in another order: whole pages go elsewhere, or pieces of them, row by row.

Composed of measured actions: tiles are waited for as in copies, pieces of rows are asked for and written one behind
the other as the sticks of other movements are. Nothing was fitted. Against public profiler rows on Blackhole
(transposes and permutes of interleaved tensors, 20 and 110 cores) whole tiles come out 1 to 9 % too fast, and pieces
between 46 % too fast and 8 % too slow.
"""

from dataclasses import replace
from math import prod

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import FACE, TILE, Layout
from device.numbers.block_floats import div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.movement.ends import Ends, ends_of
from ops.programs.movement.movement import Access, Movement, Pages
from ops.programs.movement.movements import copy_movement
from ops.programs.rearrange.permuting import keeps_tiles


def turned_movement(source: TensorSpec, target: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec) -> Movement:
    """The movement of a program.

    Args:
        source: What it reads.
        target: What it writes.
        axes: The axis of the source that each axis of the target is; those before its own have one element.
    """
    in_tiles, last_stays = source.layout is Layout.TILE, axes[-1] == len(axes) - 1
    if keeps_tiles(axes) if in_tiles else last_stays:
        return copy_movement(source, target, spec)
    ends = ends_of(source, target, spec)
    if in_tiles and axes[-1] >= len(axes) - 2:
        return _rows_of_tiles(ends, source)
    return _blocks(ends, source, axes, spec)


def _rows_of_tiles(ends: Ends, source: TensorSpec) -> Movement:
    """Each tile is waited for, and its rows are written face by face."""
    lines = prod(source.shape[:-1]) * div_up(source.shape[-1], FACE)
    reads = replace(ends.read, access=Access.WAIT)
    writes = _pieces(ends.written, lines, FACE * _element_bytes(source), ends.cores.num_cores())
    return Movement(cores=ends.cores, reads=reads, writes=writes, blocks=reads.core_pages)


def _blocks(ends: Ends, source: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec) -> Movement:
    """Blocks of both axes that are last, before and behind, read and written in pieces; of tiles, face by face.

    What is written of a tile is whole: the padding of a ragged one, too.
    """
    shape = (1,) * (len(axes) - len(source.shape)) + source.shape
    moved, columns = shape[axes[-1]], shape[-1]
    others = prod(source.shape[:-1]) // moved
    high, wide = div_up(moved, TILE), div_up(columns, TILE)
    blocks = others * high * wide
    core_blocks = div_up(blocks, spec.grid.cores)
    cores = first_cores(div_up(blocks, core_blocks), spec.grid.cols, spec.grid.rows)
    faces = TILE // FACE if source.layout is Layout.TILE else 1
    longest, size = TILE // faces, _element_bytes(source)
    reads = _pieces(ends.read, others * moved * wide * faces, min(longest, columns) * size, cores.num_cores())
    writes = _pieces(ends.written, others * columns * high * faces, min(longest, moved) * size, cores.num_cores())
    return Movement(cores=cores, reads=reads, writes=writes, blocks=core_blocks)


def _pieces(pages: Pages, count: int, piece_bytes: int, cores: int) -> Pages:
    """A side whose pages are got at in pieces, one behind the other."""
    return replace(
        pages,
        access=Access.STICKS,
        core_pages=div_up(count, cores),
        page_bytes=piece_bytes,
        all_pages=count,
        tiles=False,
    )


def _element_bytes(tensor: TensorSpec) -> int:
    return tensor.data_format.element_bytes or 1
