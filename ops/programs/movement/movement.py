"""A data movement program as the pages that each side reads and writes: what its cycles are counted from."""

from dataclasses import dataclass
from enum import Enum

from device.cores import CoreRangeSet
from device.numbers.formats import BFLOAT16, DataFormat


class Access(Enum):
    """How a core gets at pages."""

    STREAM = "stream"  # One request after the other
    STICKS = "sticks"  # The same for rows of a row-major tensor; those read from DRAM are waited for in groups
    ROWS = "rows"  # Sticks that come out of a row of tiles, written where they belong; the row is waited for
    BOX = "box"  # Sticks of a part of an image: an address is worked out for each
    WAIT = "wait"  # Every page, or every group of pages, is waited for
    BOUNCE = "bounce"  # The same, and it is copied once more within L1
    LOCAL = "local"  # Within the core, in one piece
    LOCAL_STICKS = "local sticks"  # Within the core, stick by stick


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages that one side of a movement reads or writes."""

    access: Access
    core_pages: int  # Pages of the core with most of them
    page_bytes: int
    all_pages: int
    tiles: bool  # They are tiles; otherwise sticks
    in_dram: bool  # They are in DRAM; otherwise in L1
    in_flight: int = 1  # Pages asked for before the first of them is waited for, where pages are waited for

    @property
    def all_bytes(self) -> int:
        """Bytes of all cores."""
        return self.all_pages * self.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One data movement program."""

    cores: CoreRangeSet  # Cores that take part
    reads: Pages | None = None  # What they read; None if their input is in place already
    writes: Pages | None = None  # What they write; None if their output is in place already
    blocks: int = 1  # Blocks that a core's stages hand on to each other; 1 if each begins when the one before has ended
    tilized_tiles: int = 0  # Tiles a core makes of sticks
    # The formats before and after that, or before and after a cast
    formats: tuple[DataFormat, DataFormat] = (BFLOAT16, BFLOAT16)
    untilized_rows: int = 0  # Rows of tiles a core makes sticks of
    width_tiles: int = 1  # Tiles of such a row
    cast_tiles: int = 0  # Tiles a core casts to another format
    segments: int = 0  # Pieces of rows a core moves between pages
    stores: int = 0  # Words that a processor fills, or bytes that it copies by itself
    reshards: bool = False  # Shards are dealt anew
