"""The circular buffers of group_norm on interleaved images (tt-metal 0.81.1).

Cores share rows of tiles, and parts of the channels; each reads its tiles three times, a block of them at a time. A
program in which a core has whole images makes room for a second group of cores, which is empty.
"""

from dataclasses import dataclass

from device.cores import CoreRange, CoreRangeSet, core_rectangle
from device.numbers.formats import BFLOAT16, DataFormat, div_up
from device.plan import CircularBuffer
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.normalization.group_norm import CENTERED, GroupNorm

SUM_BYTES = 16  # of a core's sum of a block, as it is sent to another core
BLOCK_TILES = 64  # of a core, for each of which the library makes a block, up to a power of two
FEW_TILES = 8  # that are one block in any case


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """How a core's rows of tiles of an image are cut."""

    high: int  # Rows of tiles of an image
    wide: int  # Tiles of a group
    count: int  # Blocks

    @property
    def tiles(self) -> int:
        """Tiles of a block."""
        return self.high // self.count * self.wide

    @property
    def sums(self) -> int:
        """Number of sums of a core: one per block, and one for the remaining rows."""
        left = self.high % self.count
        return self.count + (left // (self.high // self.count) + 1 if left else 0)


def chosen_blocks(high: int, wide: int, data_format: DataFormat, *, few: bool) -> int:
    """The number of blocks that the library chooses; with ``few``, two blocks if one would have too many tiles."""
    wanted, count = high * wide // BLOCK_TILES, 1
    while count < wanted:
        count *= 2
    if few and count == 1 and data_format == BFLOAT16 and high * wide > FEW_TILES:
        count = 2
    return min(count, high)


def cores_of(grid: tuple[int, int], parts: int) -> CoreRangeSet:
    """The cores of a grid that work: as many columns as hold all parts."""
    return core_rectangle(grid[0] // parts * parts, grid[1])


def row_buffers(op: GroupNorm, blocks: Blocks, *, whole_images: bool, room: int) -> tuple[CircularBuffer, ...]:
    """The buffers in order of allocation; buffers of blocks list each core separately.

    The program of two passes keeps a core's tiles of an image if all buffers then take at most ``room`` bytes.
    """
    single = sorted(op.cores.cores(), key=lambda core: (core.x, core.y))
    apart, nobody = CoreRangeSet([CoreRange(core, core) for core in single]), CoreRangeSet()
    wide = op.core_tiles[1]

    def block(name: str, data_format: DataFormat, tiles: int = blocks.tiles, empty: int = 0) -> list[CircularBuffer]:
        rest = [tile_buffer(f"{name}_2", empty, data_format, nobody)] if whole_images else []
        return [tile_buffer(name, tiles, data_format, apart), *rest]

    held = op.own_groups if op.welford else BUFFERING * (1 + op.padded)  # masks
    rows: list[tuple[str, int, DataFormat | None]] = [
        ("scaler", 1, op.between),
        ("epsilon", 1, BFLOAT16),
        ("global_scaler", 1, op.between),
        ("weight", wide, op.weight_format),
        ("bias", wide, op.bias_format),
        ("mask", held * blocks.wide, op.mask_format),
    ]
    gathered = div_up(blocks.sums * op.partners * SUM_BYTES, op.between.tile_bytes)
    sums = {"partial": 1, "partial_squares": 1, "gathered": gathered, "mean": 1, "variance": 1, "inverse_roots": 1}
    between = [buffer for name in ("x", "centered", "squares", "scaled") for buffer in block(name, op.between)]
    if op.welford:
        rows = [row for row in rows if not row[0].endswith("scaler")]
        sums = {"partial": BUFFERING, "gathered": BUFFERING * op.own_groups, "inverse_roots": op.own_groups}
        few = {"x": 1, "centered": CENTERED}
        between = [buffer for name, tiles in few.items() for buffer in block(name, op.between, tiles, tiles)]
        between += block("scaled", op.between)
    rest = (
        *block("tiles", op.data_format),
        *(block("result_tiles", op.data_format, BUFFERING * blocks.tiles) if op.to_rows else []),
        *(tile_buffer(name, tiles, fmt, op.cores) for name, tiles, fmt in rows if fmt is not None),
        *between,
        *(tile_buffer(name, tiles, op.between, op.cores) for name, tiles in sums.items()),
    )
    tiles, image_tiles = blocks.tiles, blocks.high * wide
    taken = (
        sum(buffer.size_bytes for buffer in rest if buffer.cores.num_cores())
        + (tiles + image_tiles) * op.data_format.tile_bytes
    )
    if op.welford and taken <= room:
        tiles = image_tiles
    counts = {"input": tiles, "output": blocks.tiles}
    ends = [tile_buffer(name, count, op.data_format, apart) for name, count in counts.items()]
    ends += [tile_buffer(f"{name}_2", 0, op.data_format, nobody) for name in counts if whole_images]
    return (*ends, *rest)
