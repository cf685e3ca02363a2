"""The program of attention of one token per user: queries [1, users, heads, size], keys and values in a cache.

Cores share the chunks of keys of a head, and their first core joins the parts. Source: tt-metal
(transformer/sdpa_decode), compared with plans of ttnn 0.81.1. Values were never compared with the kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import Array, DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Detail, Ends, ValuesContext, given
from ops.programs.attention.sdpa import UNCOMPARED, score_tile_cycles, weighted
from ops.programs.attention.softmax import stored
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.kernel_costs import read_page_cycles

SKIPPED = -1  # As the position of a user: no result is written


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeAttention(DataMovement):
    """softmax(q @ k.T * scale) @ v for each user, over the keys up to the user's position, or the last of them.

    Behind queries, keys and values are the users' positions, unless ``positions`` has them or all keys count, the
    table of the blocks that hold the keys of each user, and the sinks of the heads [heads, 1], if there are any.
    """

    scale: float
    causal: bool
    positions: tuple[int, ...]
    by_tensor: bool
    has_table: bool
    data_format: DataFormat  # Of the queries and of the result
    key_format: DataFormat
    fp32_dest: bool
    phases: int  # Fidelity phases of the products
    users: int
    head_rows: int  # Rows of tiles of heads
    key_heads: int
    keys: int  # Of a user
    size: int  # Columns of a head
    cores: CoreRangeSet
    core_keys: int  # Tiles of keys of the core with most of them, of all its heads
    window: int = 0  # Keys that a user sees, up to the user's position; 0 for all
    has_mask: bool = False  # Whose numbers are not simulated
    has_sinks: bool = False

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """[1, users, heads, size] in storage of the queries' format."""
        query, key, value = (given(array).astype(np.float32) for array in inputs[:3])
        positions = given(inputs[3]).reshape(-1) if self.by_tensor else self.positions
        if self.has_table:
            table = given(inputs[-2 if self.has_sinks else -1])
            key, value = (_joined(cache, table) for cache in (key, value))
        sinks = given(inputs[-1]).astype(np.float32)[:, :1] if self.has_sinks else None
        share, result = query.shape[2] // key.shape[1], np.zeros_like(query)
        for user in range(query.shape[1]):
            seen = int(positions[user]) + 1 if self.causal else key.shape[2]
            own, first = user % len(key), max(0, seen - self.window) if self.window else 0
            for head in range(key.shape[1] if seen > 0 else 0):
                rows = slice(head * share, (head + 1) * share)
                scores = query[0, user, rows] @ key[own, head, first:seen].T
                result[0, user, rows] = weighted(
                    scores, value[own, head, first:seen], self.scale, wide=self.fp32_dest,
                    sink=None if sinks is None else sinks[rows],
                )  # fmt: skip
        packed = stored(result, self.data_format, context.arithmetic, wide=self.fp32_dest)
        return packed.astype(self.data_format.storage, copy=False)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles of scores pass products and the softmax; every core reads its keys and values once."""
        wide = div_up(self.size, TILE)
        math = self.head_rows * self.core_keys * score_tile_cycles(spec, wide, self.phases)
        read = 2 * self.core_keys * wide * read_page_cycles(spec, self.key_format.tile_bytes)
        kept = 2 * self.users * self.key_heads * div_up(self.keys, TILE) * wide * self.key_format.tile_bytes
        moved = self.users * self.head_rows * wide * self.data_format.tile_bytes
        shared = shared_cycles(spec, 2 * moved + kept)
        return Composed(
            cores=self.cores,
            body_cycles=max(math + read / max(1, self.core_keys), read, shared),
            stages={
                Stage.READER: (read, "keys and values are read"),
                Stage.MATH: (math, "products of tiles, exponentials, sums"),
                Stage.DRAM: (shared, "all cores share the banks"),
            },
            steps="reading, products, vector functions and packing of tiles",
            details=(
                UNCOMPARED,
                Detail("keys", self.keys, f"{self.keys} keys of every user count, as at the last position"),
            ),
            dram_read_bytes=moved + kept,
            dram_written_bytes=moved,
        )


def _joined(cache: Array, table: Array) -> Array:
    """The rows of each user, [users, heads, rows, size], out of the blocks that a table names."""
    blocks = cache[np.clip(table, 0, len(cache) - 1)]  # users, blocks, heads, rows, size
    users, count, heads, rows, size = blocks.shape
    return np.asarray(blocks.swapaxes(1, 2).reshape(users, heads, count * rows, size))
