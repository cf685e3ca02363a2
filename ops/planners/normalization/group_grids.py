"""Cores that a group_norm takes: of sharded tensors, and of interleaved ones."""

from dataclasses import dataclass

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up

CHANNELS_TOGETHER = 8  # channels of a core are a multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """The images to normalize."""

    channels: int
    groups: int
    pixels: int  # Of all images


def virtual_columns(columns: int, images: Images) -> int:
    """Number of parts with equal numbers of whole groups and whole tiles of channels; 0 if there is none."""
    for parts in range(min(columns, images.groups), 0, -1):
        if images.channels // parts % TILE == 0 and images.groups % parts == 0:
            return parts
    return 0


def fits_rows(grid: tuple[int, int], images: Images, batches: int) -> bool:
    """Whether the cores of a grid share rows of tiles evenly, and each image is of equally many cores."""
    columns, tile_rows = virtual_columns(grid[0], images), div_up(images.pixels, TILE)
    parts = grid[0] // columns * grid[1] if columns and grid[0] % columns == 0 else 0
    if not parts or parts > tile_rows or tile_rows % parts:
        return False
    return parts < batches or parts % batches == 0


def shared_rows(grid: tuple[int, int], images: Images) -> int:
    """Number of parts of the rows of tiles on a caller's grid, whose last columns may stay idle."""
    columns = virtual_columns(grid[0], images)
    return grid[0] // columns * grid[1] if columns else 0


def interleaved_grid(grid: tuple[int, int], images: Images, batches: int = 1) -> tuple[int, int] | None:
    """The widest grid within another that fits, and the highest of its width; None if none fits."""
    for across in range(grid[0], 0, -1):
        for down in range(grid[1], 0, -1):
            if fits_rows((across, down), images, batches):
                return across, down
    return None


def sharded_grid(
    grid: tuple[int, int], images: Images, *, by_height: bool, by_rows: bool
) -> tuple[MemoryConfig, tuple[int, int]] | None:
    """The shards of images on cores of a grid, and their columns and rows of cores; None if groups do not divide.

    Shards are assigned along columns of cores unless ``by_rows``.
    """
    lines, across = (grid[1], grid[0]) if by_rows else grid
    tile_rows, group = div_up(images.pixels, TILE), images.channels // images.groups
    most = lines * across if by_height else lines
    down = next(cores for cores in range(min(most, tile_rows), 0, -1) if tile_rows % cores == 0)
    parts, turned = 1, not by_height and not by_rows
    if not by_height:
        parts = next((cores for cores in range(across, 0, -1) if _divides(images, group, cores)), 0)
    if not parts:
        return None
    shape = (div_up(images.pixels, down * TILE) * TILE, images.channels // parts)
    if turned:
        shape = shape[::-1]
    dealt = (parts, down) if by_rows else (down, parts)
    size = (min(down, lines), div_up(down, lines)) if by_height else dealt
    layout = TensorMemoryLayout.HEIGHT_SHARDED if by_height else TensorMemoryLayout.BLOCK_SHARDED
    cores = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(size[0] - 1, size[1] - 1)))
    orientation = ShardOrientation.COL_MAJOR if turned else ShardOrientation.ROW_MAJOR
    return MemoryConfig(layout, BufferType.L1, ShardSpec(cores, shape, orientation)), size


def _divides(images: Images, group: int, cores: int) -> bool:
    part = images.channels // cores
    return images.channels // CHANNELS_TOGETHER % cores == 0 and part % group == 0 and part >= TILE


def widest_span(channels: int, group: int) -> int:
    """The largest number of tiles that a group of channels touches."""
    return max((begin + group - 1) // TILE - begin // TILE + 1 for begin in range(0, channels, group))
