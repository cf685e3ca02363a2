"""Free and used blocks of one address range: first fit by address, with coalescing."""

from bisect import bisect_left, insort
from typing import NamedTuple

from device.rounding import round_up


class Block(NamedTuple):
    """A piece of an address range.

    Attributes:
        address: Its first byte.
        size_bytes: Its length.
        allocated: Whether it is in use.
    """

    address: int
    size_bytes: int
    allocated: bool


class FreeList:
    """Where the blocks of one address range are.

    A request takes the free block that lies highest (``top_down``) or lowest and is large enough, and the end of it
    that points that way. That is the rule of tt-metal's allocator (free_list_opt.cpp with its policy FIRST); a block
    that fits better further down is passed over, as the real library 0.81.1 does when holes are made for it.

    Args:
        base: First address.
        size_bytes: Length; 0 for a range in which nothing fits.
        alignment_bytes: Sizes are rounded up to this; the smallest allocation.
        top_down: Whether blocks are taken from the upper end.
    """

    def __init__(self, base: int, size_bytes: int, *, alignment_bytes: int, top_down: bool) -> None:
        self.base = base
        self.size_bytes = size_bytes
        self._alignment_bytes = alignment_bytes
        self._top_down = top_down
        self._free: list[tuple[int, int]] = [(base, base + size_bytes)] if size_bytes else []  # sorted, never touching
        self._used: dict[int, int] = {}  # address -> bytes

    def allocate(self, size_bytes: int) -> int | None:
        """Address of a new block; None if no free block is large enough."""
        wanted = round_up(max(size_bytes, 1), self._alignment_bytes)
        indices = range(len(self._free))
        for index in reversed(indices) if self._top_down else indices:
            start, end = self._free[index]
            if end - start < wanted:
                continue
            address, rest = (end - wanted, (start, end - wanted)) if self._top_down else (start, (start + wanted, end))
            self._free[index : index + 1] = [rest] if rest[0] < rest[1] else []
            self._used[address] = wanted
            return address
        return None

    def copy(self) -> "FreeList":
        """Another list with the same blocks; what happens to one leaves the other as it is."""
        other = FreeList(self.base, self.size_bytes, alignment_bytes=self._alignment_bytes, top_down=self._top_down)
        other._free, other._used = list(self._free), dict(self._used)
        return other

    def free(self, address: int) -> bool:
        """Give a block back; False if none starts there."""
        size_bytes = self._used.pop(address, None)
        if size_bytes is None:
            return False
        start, end = address, address + size_bytes
        index = bisect_left(self._free, (start, end))
        if index < len(self._free) and self._free[index][0] == end:
            end = self._free.pop(index)[1]
        if index and self._free[index - 1][1] == start:
            start = self._free.pop(index - 1)[0]
        insort(self._free, (start, end))
        return True

    @property
    def allocated_bytes(self) -> int:
        """Bytes in use, rounding included."""
        return sum(self._used.values())

    @property
    def free_bytes(self) -> int:
        """Bytes that are not in use."""
        return self.size_bytes - self.allocated_bytes

    @property
    def largest_free_bytes(self) -> int:
        """Length of the longest free block; 0 if there is none."""
        return max((end - start for start, end in self._free), default=0)

    @property
    def lowest_used(self) -> int | None:
        """Lowest address in use."""
        return min(self._used, default=None)

    def blocks(self) -> tuple[Block, ...]:
        """All blocks, by address; together they are the whole range."""
        free = (Block(start, end - start, False) for start, end in self._free)
        used = (Block(address, size_bytes, True) for address, size_bytes in self._used.items())
        return tuple(sorted((*free, *used)))
