"""Programs that write into a cache whose rows are in blocks: one row of every user, or all rows of a user.

A table maps rows of a user to blocks of the cache [blocks, heads, rows, columns]; without a table, every user has one
block. Source: tt-metal (experimental/paged_cache), compared with plans of ttnn 0.81.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, aligned_page, buffer, row_bytes, shard_view, tile_buffer
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement

SKIPPED = -1  # As a row of a user, or as a block: nothing is written


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedUpdateCache(DataMovement):
    """Copies each row [heads, columns] of the first input, [1, users, heads, columns], to its user in the last input.

    Inputs between them are the users' row numbers, unless ``rows`` has them, and the table of blocks, if given.
    """

    rows: tuple[int, ...]
    has_table: bool
    shared: bool  # Whether all users write into the one block of the cache
    modulo: int | None = None  # Rows of a user wrap around at this number

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The cache with the rows."""
        source, cache = given(inputs[0]), given(inputs[-1])
        rows = self.rows or given(inputs[1]).reshape(-1)
        table = given(inputs[-2]) if self.has_table else None
        updated = cache.copy()
        _, heads, block_rows, _ = cache.shape
        for user, row in enumerate(map(int, rows)):
            if row == SKIPPED:
                continue
            block, at = (0 if self.shared else user), row if self.modulo is None else row % self.modulo
            if table is not None:
                block, at = int(table[user, at // block_rows]), at % block_rows
            updated[block, :, at] = source[0, user, :heads].astype(cache.dtype)
        return updated

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A row of tiles of every user and head is read, changed and written."""
        users, heads, columns = read.shape[1], written.padded_shape[1], written.padded_shape[-1]
        changed = written.changed(shape=(users, heads, TILE, columns), padded_shape=None)
        return copy_movement(changed, changed, spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedFillCache(DataMovement):
    """Copies the rows of the first input, [users, heads, rows, columns], into the users' blocks of the last input.

    Inputs between them are the table of blocks, and the users' rows in the table unless ``user`` is given.
    """

    user: int | None
    modulo: int | None = None  # Rows of a user wrap around at this number

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The cache with the rows; padding counts."""
        source, table, cache = given(inputs[0]), given(inputs[1]), given(inputs[-1])
        users = [self.user] if self.user is not None else given(inputs[2]).reshape(-1)
        filled, block_rows = cache.copy(), cache.shape[-2]
        whole = [(0, -side % TILE) for side in source.shape[-2:]]
        source = np.pad(source, ((0, 0), (0, 0), *whole))[..., : cache.shape[-1]]
        for number, user in enumerate(users):
            for first in range(0, source.shape[-2], block_rows):
                block = int(table[user, (first if self.modulo is None else first % self.modulo) // block_rows])
                part = source[number, :, first : first + block_rows]
                if block != SKIPPED:
                    filled[block, :, : part.shape[-2]] = part
        return filled

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The rows of tiles that are read are written."""
        place = read.memory_config if written.memory_config.is_sharded() else written.memory_config
        return copy_movement(read, written.changed(shape=read.shape, padded_shape=None, memory_config=place), spec)


def paged_update_buffers(
    source: PlanTensor, cache: TensorSpec, table: TensorSpec | None, spec: DeviceSpec, *, wide: bool, by_tensor: bool
) -> tuple[CircularBuffer, ...]:
    """Rows of tiles of the cache and the shard of a user, both also untilized, and updated rows; indices and blocks.

    Untilized rows are float32 if ``wide`` or if the cache is float32.
    """
    cores, columns = source.spec.shards.grid, source.spec.padded_shape[-1] // TILE
    elements = FLOAT32 if wide or cache.data_format == FLOAT32 else BFLOAT16
    together = BUFFERING * columns
    return (
        tile_buffer("cache", together, cache.data_format, cores),
        shard_view("rows", source, spec),
        tile_buffer("cache_elements", together, elements, cores),
        tile_buffer("row_elements", together, elements, cores),
        tile_buffer("updated", source.spec.padded_shape[1] * columns, cache.data_format, cores),
        *((tile_buffer("indices", 1, INT32, cores),) if by_tensor else ()),
        *(() if table is None else (buffer("blocks", row_bytes(table), INT32, cores),)),
    )


def paged_fill_buffers(
    source: TensorSpec, table: TensorSpec, numbers: Sequence[TensorSpec | None], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two rows of tiles in transit, a row of the table, and values given as tensors: users, valid rows."""
    rows, columns = source.matrix[0] // TILE, source.padded_shape[3] // TILE
    cores = first_cores(min(rows, spec.grid.cores), spec.grid.cols, spec.grid.rows).merged()
    return (
        tile_buffer("rows", BUFFERING * columns, source.data_format, cores),
        buffer("blocks", aligned_page(table, spec), INT32, cores),
        *(
            buffer(name, tensor.volume * 4, tensor.data_format, cores)
            for name, tensor in zip(("users", "valid"), numbers, strict=True)
            if tensor is not None
        ),
    )
