"""The program that splits tiles into parts of equal width: the operation, its cores, buffers and values.

Source: tt-metal (data_movement/split), compared with recorded plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from device.cores import CoreRangeSet, core_rectangle
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import Array, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.data_movement.movement import DataMovement

LEAST_TILES = 2  # on each side of an image that the program splits


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitWidth(DataMovement):
    """A tensor cut along its last axis into equal parts, each an output."""

    shape: tuple[int, ...]
    parts: int

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """The parts, in order."""
        cut = np.split(given(inputs[0]).reshape(self.shape), self.parts, axis=-1)
        return tuple(np.ascontiguousarray(part) for part in cut)


def split_cores(source: TensorSpec, parts: int, spec: DeviceSpec) -> CoreRangeSet | None:
    """The cores that split a tensor: each image has as many columns of cores as divide its tiles; None for slices."""
    shape = (1, 1, *source.shape)
    images, (rows, columns) = prod(shape[:-2]), shape[-2:]
    if source.layout is not Layout.TILE or len(source.shape) < 2 or columns % (parts * TILE) or images > spec.grid.cols:
        return None
    if rows // TILE < LEAST_TILES or columns // TILE < LEAST_TILES:
        return None
    if len(source.shape) > 3 and prod(source.shape[:-3]) > 1 and parts != 2:  # seen as one image, for two parts alone
        return None
    across = _most(columns // TILE, spec.grid.rows, parts)
    down = _most(div_up(rows, TILE), spec.grid.cols // images, 1)
    return None if across == 0 else core_rectangle(images * down, across)


def _most(tiles: int, cores: int, unit: int) -> int:
    """The largest number of cores that divides the tiles and is a multiple of a unit; 0 if none exists."""
    return next((count for count in range(cores, 0, -1) if tiles % count == count % unit == 0), 0)


def split_buffers(source: TensorSpec, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    """Two tiles on their way through each core."""
    return (tile_buffer("tiles", BUFFERING, source.data_format, cores),)
