"""The square blocks of tiles in which programs tilize and untilize wide interleaved tensors.

A program gives each core whole rows of tiles, unless rows are wide and blocks occupy more cores; rows that do not fit
into L1 are always cut into blocks. A core has the block of one place in every image. Source: tt-metal 0.81.1
(work_split_tilize), compared with plans of the real library.
"""

from dataclasses import dataclass, replace
from math import isqrt, prod

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import dealt_evenly
from ops.programs.movement.ends import Ends
from ops.programs.movement.movement import Pages
from ops.programs.movement.work import Conversion

WIDE_TILES = 32  # rows of tiles that are no wider are not cut
BLOCK_CONVERSIONS = (
    Conversion.TILIZE,
    Conversion.TILIZE_WITH_VAL_PADDING,
    Conversion.UNTILIZE,
    Conversion.UNTILIZE_WITH_UNPADDING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileBlocks:
    """How the tiles of a tensor's images are cut into blocks."""

    side: int  # Tiles on each side of a block; blocks at the right and lower edge may have fewer
    high: int  # Tiles down an image
    wide: int  # Tiles across an image
    images: int
    row_wise: bool  # Blocks go to the cores row by row, not column by column

    @property
    def down(self) -> int:
        """Blocks down an image."""
        return div_up(self.high, self.side)

    @property
    def across(self) -> int:
        """Blocks across an image."""
        return div_up(self.wide, self.side)

    @property
    def num_cores(self) -> int:
        """Cores, of which each has one block of every image."""
        return self.down * self.across

    @property
    def last_wide(self) -> int:
        """Tiles across the blocks at the right edge."""
        return self.wide - (self.across - 1) * self.side

    def cores(self, spec: DeviceSpec) -> CoreRangeSet:
        """The cores, in the order of their blocks: row by row of an image, each from the left."""
        return first_cores(self.num_cores, spec.grid.cols, spec.grid.rows, row_wise=self.row_wise)

    def cores_by_width(self, spec: DeviceSpec) -> dict[int, CoreRangeSet]:
        """Tiles across a block, and the cores with blocks of this width; the widest blocks first."""
        of_width: dict[int, list[CoreRange]] = {}
        for number, core in enumerate(self.cores(spec).cores(row_major=self.row_wise)):
            width = self.last_wide if number % self.across == self.across - 1 else self.side
            of_width.setdefault(width, []).append(CoreRange(core, core))
        widest_first = sorted(of_width, reverse=True)
        return {width: CoreRangeSet(set(CoreRangeSet(of_width[width]).merged().ranges)) for width in widest_first}


def tile_blocks(
    conversion: Conversion, source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, on_one_core: bool = False
) -> TileBlocks | None:
    """The blocks of a program that tilizes or untilizes; None where each core has whole rows of tiles.

    Args:
        on_one_core: One core does all.
    """
    sharded = source.memory_config.is_sharded() or target.memory_config.is_sharded()
    if on_one_core or sharded or conversion not in BLOCK_CONVERSIONS:
        return None
    tiles, cores = target if target.layout is Layout.TILE else source, spec.grid.cores
    high, wide = (side // TILE for side in (TILE, *tiles.padded_shape)[-2:])
    images = prod(tiles.padded_shape[:-2])
    core_tiles = div_up(prod((1, *source.padded_shape)[-2:]) // TILE**2, cores)

    def cut(rows: int) -> TileBlocks:
        return TileBlocks(
            side=_block_side(core_tiles, rows, wide, cores),
            high=rows,
            wide=wide,
            images=images,
            row_wise=conversion is Conversion.UNTILIZE,
        )

    blocks = cut(high)
    if blocks.num_cores > cores:
        return None
    if wide * (source.data_format.tile_bytes + target.data_format.tile_bytes) >= spec.l1.usable_bytes:
        return blocks
    # To choose, Untilize counts the blocks that all images would have as one, though it cuts every image
    counted = cut(high * images) if conversion is Conversion.UNTILIZE else blocks
    is_wide = wide > WIDE_TILES and (counted.high > WIDE_TILES or wide > counted.high)
    by_rows, _ = dealt_evenly(high * images, cores)
    return blocks if is_wide and by_rows < counted.num_cores else None


def in_blocks(ends: Ends, blocks: TileBlocks, spec: DeviceSpec) -> Ends:
    """Both sides of a program that works in blocks; the core counted is one with a whole block of every image."""
    rows, columns = (min(side, blocks.side) for side in (blocks.high, blocks.wide))

    def of_block(pages: Pages, tensor: TensorSpec) -> Pages:
        if pages.tiles:
            return replace(pages, core_pages=blocks.images * rows * columns)
        high, wide = (1, *tensor.shape)[-2:]
        page_bytes = min(columns * TILE, wide) * (tensor.data_format.element_bytes or 0)
        sticks = blocks.images * min(rows * TILE, high)
        return replace(pages, core_pages=sticks, page_bytes=page_bytes, all_pages=div_up(pages.all_bytes, page_bytes))

    return replace(
        ends,
        cores=blocks.cores(spec).merged(),
        width_tiles=columns,
        core_tile_rows=blocks.images * rows,
        read=of_block(ends.read, ends.source),
        written=of_block(ends.written, ends.target),
    )


def _block_side(core_tiles: int, high: int, wide: int, cores: int) -> int:
    """Tiles on a side of the smallest square that holds a core's tiles and leaves a core over; 1 if there is none."""
    first = isqrt(core_tiles) + (isqrt(core_tiles) ** 2 != core_tiles)
    for side in range(max(first, 1), max(first, high, wide) + 1):
        if div_up(wide, side) * div_up(high, side) < cores:
            return side
    return 1
