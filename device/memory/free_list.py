"""Free and used blocks of one address range: first fit by address, with coalescing."""

from bisect import bisect_left, insort
from typing import NamedTuple

from device.numbers.integers import round_up


class Block(NamedTuple):
    """A piece of an address range.

    Attributes:
        address: Its first byte.
        size_bytes: Its length.
        allocated: Whether it is in use.
        number: What the real allocator's table calls it: a part of a block that is cut off gets a new number, or the
            one given up last; a block that joins another gives its number up, to the lower one of the two.
    """

    address: int
    size_bytes: int
    allocated: bool
    number: int = 0


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
        self._numbers: dict[int, int] = {base: 0} if size_bytes else {}  # address -> number of the block there
        self._spare: list[int] = []  # numbers given up

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
            number = self._numbers.pop(start)
            if rest[0] < rest[1]:
                self._numbers[rest[0]] = self._spare.pop() if self._spare else len(self._numbers) + 1
            self._numbers[address] = number
            return address
        return None

    def copy(self) -> "FreeList":
        """Another list with the same blocks; what happens to one leaves the other as it is."""
        other = FreeList(self.base, self.size_bytes, alignment_bytes=self._alignment_bytes, top_down=self._top_down)
        other._free, other._used = list(self._free), dict(self._used)
        other._numbers, other._spare = dict(self._numbers), list(self._spare)
        return other

    def free(self, address: int) -> bool:
        """Give a block back; False if none starts there."""
        size_bytes = self._used.pop(address, None)
        if size_bytes is None:
            return False
        start, end = address, address + size_bytes
        index = bisect_left(self._free, (start, end))
        joins_next = index < len(self._free) and self._free[index][0] == end
        if index and self._free[index - 1][1] == start:
            self._spare.append(self._numbers.pop(start))
            start = self._free.pop(index - 1)[0]
            index -= 1
        if joins_next:
            self._spare.append(self._numbers.pop(end))
            end = self._free.pop(index)[1]
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
        numbers = self._numbers
        free = (Block(start, end - start, False, numbers[start]) for start, end in self._free)
        used = (Block(address, size_bytes, True, numbers[address]) for address, size_bytes in self._used.items())
        return tuple(sorted((*free, *used)))

    def spare_numbers(self) -> tuple[int, ...]:
        """Numbers of blocks that were given up, the latest last."""
        return tuple(self._spare)
