"""The circular buffers of a pool program, in order of allocation, and the L1 that they take together.

Source: tt-metal 0.81.1 (pool_utils), compared with recorded plans.
"""

from dataclasses import dataclass

from device.cores import CoreRangeSet
from device.memory.tiles import FACE, TILE
from device.numbers.formats import BFLOAT16, UINT16, DataFormat
from device.numbers.integers import div_up, round_up
from device.plan import CircularBuffer
from ops.programs.actions.pieces import buffer

WIDEST = 8  # tiles of channels that are reduced at once
BUFFERING = 2
ENTRY_BYTES = 6  # of a list in DRAM for each row of the result, by the library's estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """What decides the buffers."""

    taps: int  # Numbers under a window
    channels: int
    out_shard: tuple[int, int]  # Rows and columns of a shard of the result
    data_format: DataFormat
    tiled: bool  # The result is in tiles
    config_tensor_in_dram: bool = False  # The lists that say where windows begin are read from DRAM

    @property
    def channel_tiles(self) -> int:
        """Tiles of a core's channels."""
        return div_up(self.channels, TILE)

    @property
    def window_bytes(self) -> int:
        """Bytes of the sticks under a window, whole tiles."""
        rows = self.taps if self.taps <= FACE else TILE  # those of a face are tilized without the rest of their tile
        elements = min(self.channel_tiles, WIDEST) * TILE * rows
        return 2 * round_up(elements, TILE**2)

    @property
    def out_bytes(self) -> int:
        """Bytes of a shard of the result."""
        rows, columns = self.out_shard
        if self.tiled:
            return rows * columns // TILE**2 * self.data_format.tile_bytes
        return rows * columns * (BFLOAT16.element_bytes or 0)

    @property
    def l1_bytes(self) -> int:
        """Bytes of all that is no view of an input."""
        pre_tilized = BFLOAT16.tile_bytes * self.channel_tiles if self.tiled else 0
        lists = ENTRY_BYTES * self.out_shard[0] + 2 if self.config_tensor_in_dram else 0
        windows = 2 * BUFFERING * self.window_bytes
        return 3 * BFLOAT16.tile_bytes + windows + pre_tilized + lists + round_up(self.out_bytes, TILE)


def pool_buffers(
    sizes: PoolSizes, *, halo: str, halo_bytes: int, indices: str, indices_bytes: int, output: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """The buffers.

    Args:
        sizes: What decides them.
        halo: Name of the sticks.
        halo_bytes: Bytes of a shard of them.
        indices: Name of the lists that say where windows begin.
        indices_bytes: Bytes of a list, of which each of two readers takes half.
        output: Name of the result.
        cores: Where the program runs.
    """
    in_dram = sizes.config_tensor_in_dram

    def one_page(
        name: str, size_bytes: int, view_of: str | None = None, data_format: DataFormat = BFLOAT16
    ) -> CircularBuffer:
        return buffer(name, size_bytes, data_format, cores, view_of)

    tile = BFLOAT16.tile_bytes
    made = [
        one_page("scalar", BUFFERING * tile),
        one_page("least", tile),
        one_page("sticks", halo_bytes, halo),
        one_page(
            "reader_indices",
            indices_bytes if in_dram else round_up(indices_bytes // 2, 4),
            None if in_dram else indices,
            UINT16,
        ),
        *(one_page(f"windows_{reader}", BUFFERING * sizes.window_bytes) for reader in (0, 1)),
    ]
    if sizes.tiled:
        made.append(one_page("untilized", tile * sizes.channel_tiles))
    made.append(one_page("output", sizes.out_bytes, output, sizes.data_format))
    return tuple(made)
