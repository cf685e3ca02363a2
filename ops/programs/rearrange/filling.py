"""A number in the padding of tiles, where they are: what it computes, and what it takes.

Source: tt-metal 0.81.1 (data_movement/fill_pad), compared with recorded plans. Cycles are composed: each tile with
padding is waited for, and written back as in measured copies.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from device.numbers.block_floats import div_up
from device.numbers.formats import Array
from device.plan import DeviceOp
from device.spec.device_spec import DeviceSpec
from ops.op_model import Ends
from ops.programs.movement.filling import ragged_tiles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import copy_movement
from ops.programs.rearrange.composed import composed


@dataclass(frozen=True, slots=True, kw_only=True)
class FillTiles(DeviceOp):
    """A number in the padding of tiles; what comes out has the padded shape."""

    shape: tuple[int, ...]
    padded_shape: tuple[int, ...]  # The same in whole tiles
    value: float


def filled(work: FillTiles, values: Array) -> Array:
    """The number behind the last row and column of every image, as the format holds it."""
    if values.size == prod(work.padded_shape) != prod(work.shape):
        values = values.reshape(work.padded_shape)[tuple(map(slice, work.shape))]
    behind = [(0, whole - side) for side, whole in zip(work.shape, work.padded_shape, strict=True)]
    return np.pad(values.reshape(work.shape), behind, constant_values=np.asarray(work.value, values.dtype))


def _movement(work: FillTiles, ends: Ends, spec: DeviceSpec) -> Movement:
    """A copy of the tiles that hold padding, in place."""
    moved = copy_movement(ends.read, ends.written, spec)
    if moved.reads is None or moved.writes is None:
        return moved
    tiles = ragged_tiles(work.shape)
    core_tiles = div_up(tiles, moved.cores.num_cores())
    sides = [replace(side, core_pages=core_tiles, all_pages=tiles) for side in (moved.reads, moved.writes)]
    return replace(moved, reads=sides[0], writes=sides[1], blocks=core_tiles)


OP_MODELS: Final = (composed(FillTiles, filled, _movement),)
