"""Programs that split and join heads of one token per user: rows of 16 numbers move between tiles.

Sources: tt-metal (experimental/transformer), compared with plans of ttnn 0.81.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import Array
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import in_dram
from ops.programs.data_movement.movement import DataMovement, Movement, Pages

HALF_ROW = TILE // 2  # Numbers of a tile's row that lie together


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitDecodeHeads(DataMovement):
    """[1, 1, users, columns] becomes queries, keys and values [1, users, heads, head size], a user on each core.

    With an offset, its tensor has the first of ``users`` users.
    """

    users: int
    heads: int
    kv_heads: int

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """Queries, keys and values."""
        first = int(given(inputs[1]).reshape(-1)[0]) if len(inputs) > 1 else 0
        rows = given(inputs[0])[0, 0, first : first + self.users]
        rows = np.pad(rows, [(0, self.users - len(rows)), (0, 0)])  # of users that there are not
        parts = rows.reshape(1, self.users, self.heads + 2 * self.kv_heads, -1)
        queries, keys, values = np.split(parts, [self.heads, self.heads + self.kv_heads], axis=2)
        return queries, keys, values

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every core reads both halves of its user's row out of all tiles, into its own L1."""
        return _halves(read, written, 2 * read.padded_shape[-1] // TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDecodeHeads(DataMovement):
    """[1, users, heads, head size] becomes [1, 1, 32 users, heads * head size], a head on each core.

    Nothing writes the rows of users that there are not.
    """

    heads: int

    def moved(self, values: Array) -> Array:
        """Heads side by side; rows of users that there are not are zero."""
        _, users, _, size = values.shape
        rows = values[0, :, : self.heads].reshape(1, 1, users, self.heads * size)
        return np.pad(rows, [(0, 0), (0, 0), (0, max(0, TILE - users)), (0, 0)])

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every core reads both halves of its head's row of all users out of their tiles, into its own L1."""
        return _halves(read, written, 2 * read.shape[1] * read.padded_shape[-1] // TILE)


def _halves(read: TensorSpec, written: TensorSpec, core_pages: int) -> Movement:
    """Every core of the written shards reads half rows of tiles, one request at a time."""
    cores = written.shards.grid
    page_bytes = HALF_ROW * (read.data_format.element_bytes or 0)
    pages = Pages(
        core_pages=core_pages, page_bytes=page_bytes, all_pages=core_pages * cores.num_cores(), tiles=False,
        in_dram=in_dram(read),
    )  # fmt: skip
    return Movement(cores=cores, reads=pages)
