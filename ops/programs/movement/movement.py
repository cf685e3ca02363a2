"""A data movement program as the pages that each side reads and writes: what its cycles are counted from."""

from dataclasses import dataclass
from enum import Enum

from device.cores import CoreRangeSet
from device.numbers.formats import BFLOAT16, DataFormat


class Access(Enum):
    """How a core gets at pages.

    Attributes:
        STREAM: One request after the other.
        STICKS: The same for rows of a row-major tensor; those read from DRAM are waited for in groups.
        ROWS: Sticks that come out of a row of tiles, written where they belong; the row is waited for.
        BOX: Sticks of a part of an image: an address is worked out for each.
        WAIT: Every page, or every group of pages, is waited for.
        BOUNCE: The same, and it is copied once more within L1.
        LOCAL: Within the core, in one piece.
        LOCAL_STICKS: Within the core, stick by stick.
    """

    STREAM = "stream"
    STICKS = "sticks"
    ROWS = "rows"
    BOX = "box"
    WAIT = "wait"
    BOUNCE = "bounce"
    LOCAL = "local"
    LOCAL_STICKS = "local sticks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages that one side of a movement reads or writes.

    Attributes:
        access: How.
        core_pages: Pages of the core with most of them.
        page_bytes: Bytes of a page.
        all_pages: Pages of all cores.
        tiles: They are tiles; otherwise sticks.
        in_dram: They are in DRAM; otherwise in L1.
        in_flight: Pages asked for before the first of them is waited for, where pages are waited for.
    """

    access: Access
    core_pages: int
    page_bytes: int
    all_pages: int
    tiles: bool
    in_dram: bool
    in_flight: int = 1

    @property
    def all_bytes(self) -> int:
        """Bytes of all cores."""
        return self.all_pages * self.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One data movement program.

    Attributes:
        cores: Cores that take part.
        reads: What they read; None if their input is in place already.
        writes: What they write; None if their output is in place already.
        blocks: Blocks that a core's stages hand on to each other; 1 if each begins when the one before has ended.
        tilized_tiles: Tiles a core makes of sticks.
        formats: The formats before and after that, or before and after a cast.
        untilized_rows: Rows of tiles a core makes sticks of.
        width_tiles: Tiles of such a row.
        cast_tiles: Tiles a core casts to another format.
        segments: Pieces of rows a core moves between pages.
        stores: Words that a processor fills, or bytes that it copies by itself.
        reshards: Shards are dealt anew.
    """

    cores: CoreRangeSet
    reads: Pages | None = None
    writes: Pages | None = None
    blocks: int = 1
    tilized_tiles: int = 0
    formats: tuple[DataFormat, DataFormat] = (BFLOAT16, BFLOAT16)
    untilized_rows: int = 0
    width_tiles: int = 1
    cast_tiles: int = 0
    segments: int = 0
    stores: int = 0
    reshards: bool = False
