"""Programs that write into a cache [users, heads, rows, columns]: all rows of a user, or one row of every user.

Source: tt-metal (kv_cache), compared with plans of the real library.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, shard_view, tile_buffer
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement

UPDATED_TOGETHER = 2  # users whose rows of tiles follow each other without a wait, if their number is even


@dataclass(frozen=True, slots=True)
class FillCache(DataMovement):
    """Copies the first input, [1, heads, rows, columns], into the rows of a user of the last input; padding counts."""

    user: int
    row: int  # The first

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The cache with the rows."""
        source, cache = _padded(given(inputs[0])), given(inputs[1])
        filled = _padded(cache)
        filled[self.user, :, self.row : self.row + source.shape[-2]] = source[0]
        return filled[:, :, : cache.shape[-2], : cache.shape[-1]]

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The rows of tiles that are read are written."""
        return copy_movement(read, written.changed(shape=read.shape), spec)


@dataclass(frozen=True, slots=True)
class UpdateCache(DataMovement):
    """Copies each row of the first input, [1, heads, users, columns], into a row of its user in the last input."""

    row: int
    first: int  # Row of the first input that is the first user's

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The cache with the rows; a row after the rows of a head is a row of the next head."""
        source, cache = _padded(given(inputs[0])), given(inputs[1])
        updated = _padded(cache)
        users, heads, rows, columns = updated.shape
        flat = updated.reshape(-1, columns)
        taken = source[0, :, self.first : self.first + users].swapaxes(0, 1).reshape(-1, columns)
        at = np.arange(users * heads) * rows + self.row
        inside = at < len(flat)
        flat[at[inside]] = taken[inside].astype(flat.dtype)
        return updated[:, :, : cache.shape[-2], : cache.shape[-1]]

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A row of tiles of every user and head is read, changed and written."""
        *heads, _, columns = written.padded_shape
        changed = written.changed(shape=(*heads, TILE, columns), padded_shape=None)
        return copy_movement(changed, changed, spec)


def _padded(values: Array) -> Array:
    """A copy of values of whole tiles, with zeros as padding."""
    return np.pad(values, ((0, 0), (0, 0), *((0, -side % TILE) for side in values.shape[-2:])))


def _cores(source: TensorSpec, blocks: int, spec: DeviceSpec) -> CoreRangeSet:
    """The cores with shards, or the first cores, row by row, for the blocks."""
    if source.memory_config.is_sharded():
        return source.shards.grid
    return first_cores(min(blocks, spec.grid.cores), spec.grid.cols, spec.grid.rows).merged()


def fill_cache_buffers(source: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on their way, or the shards."""
    rows = source.spec.matrix[0] // TILE
    if source.spec.memory_config.is_sharded():
        return (shard_view("rows", source, spec),)
    return (tile_buffer("rows", BUFFERING, source.spec.data_format, _cores(source.spec, rows, spec)),)


def update_cache_buffers(
    source: PlanTensor, cache: TensorSpec, spec: DeviceSpec, *, wide: bool
) -> tuple[CircularBuffer, ...]:
    """Rows of tiles of the cache and of the input, both also untilized, and updated rows; all updated rows of a head.

    Untilized rows are float32 if ``wide`` or if the cache is float32.
    """
    heads, whole = source.spec.matrix[0] // TILE, cache.data_format == FLOAT32
    cores, columns, users = _cores(source.spec, heads, spec), cache.padded_shape[-1] // TILE, cache.padded_shape[0]
    together = BUFFERING * (1 if users % UPDATED_TOGETHER else UPDATED_TOGETHER) * columns
    elements = FLOAT32 if wide or whole else BFLOAT16
    depth = columns if whole else BUFFERING * columns
    rows = (
        shard_view("rows", source, spec)
        if source.spec.memory_config.is_sharded()
        else tile_buffer("rows", depth, source.spec.data_format, cores)
    )
    return (
        tile_buffer("cache", together, cache.data_format, cores),
        rows,
        tile_buffer("cache_elements", together, elements, cores),
        tile_buffer("row_elements", columns if whole else together, elements, cores),
        tile_buffer("updated", source.spec.padded_shape[-2] * columns, cache.data_format, cores),
    )
