"""The blocks of one address range in use and free, as tt-metal's allocator deals them out."""

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from device.numbers.integers import round_up


class Block(NamedTuple):
    """A piece of an address range."""

    address: int  # Its first byte
    size_bytes: int
    allocated: bool  # Whether it is in use
    # What the real allocator's table calls it: a part of a block that is cut off gets a new number, or the one given up
    # last; a block that joins another gives its number up, to the lower one of the two
    number: int = 0


class Blocks(NamedTuple):
    """What a free list knows; never changed, but replaced as a whole, so that no interrupt leaves half a change."""

    free: tuple[tuple[int, int], ...]  # (start, end) of the free blocks, sorted, never touching
    used: Mapping[int, int]  # Bytes of the blocks in use, by address
    numbers: Mapping[int, int]  # Number of each block, by address
    spare: tuple[int, ...]  # Numbers given up, the latest last

    @property
    def key(self) -> Hashable:
        """The same in their order, which tells the oldest; equal keys stay equal whatever is done to both alike."""
        return self.free, tuple(self.used.items()), tuple(self.numbers.items()), self.spare


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

    Attributes:
        known: The blocks.
    """

    def __init__(self, base: int, size_bytes: int, *, alignment_bytes: int, top_down: bool) -> None:
        self.base = base
        self.size_bytes = size_bytes
        self._alignment_bytes = alignment_bytes
        self._top_down = top_down
        self.known = Blocks(
            free=((base, base + size_bytes),) if size_bytes else (),
            used={},
            numbers={base: 0} if size_bytes else {},
            spare=(),
        )

    def allocate(self, size_bytes: int) -> int | None:
        """Address of a new block; None if no free block is large enough."""
        wanted = round_up(max(size_bytes, 1), self._alignment_bytes)
        while True:
            before = self.known
            address, after = self._with_block(before, wanted)
            if address is None:
                return None
            if self.known is before:  # nothing was freed meanwhile, by a tensor that the interpreter collected
                self.known = after
                return address

    def _with_block(self, blocks: Blocks, wanted: int) -> tuple[int | None, Blocks]:
        """Where a block of ``wanted`` bytes goes, and the blocks with it; None and the same if it fits nowhere."""
        indices = range(len(blocks.free))
        for index in reversed(indices) if self._top_down else indices:
            start, end = blocks.free[index]
            if end - start < wanted:
                continue
            address, rest = (end - wanted, (start, end - wanted)) if self._top_down else (start, (start + wanted, end))
            numbers, spare = dict(blocks.numbers), blocks.spare
            number = numbers.pop(start)
            left: tuple[tuple[int, int], ...] = ()
            if rest[0] < rest[1]:
                left = (rest,)
                numbers[rest[0]] = spare[-1] if spare else len(numbers) + 1
                spare = spare[:-1]
            numbers[address] = number
            free = (*blocks.free[:index], *left, *blocks.free[index + 1 :])
            return address, Blocks(free=free, used={**blocks.used, address: wanted}, numbers=numbers, spare=spare)
        return None, blocks

    def copy(self) -> "FreeList":
        """Another list with the same blocks; what happens to one leaves the other as it is."""
        other = FreeList(self.base, self.size_bytes, alignment_bytes=self._alignment_bytes, top_down=self._top_down)
        other.known = self.known
        return other

    def free(self, address: int) -> bool:
        """Give a block back; False if none starts there."""
        while True:
            before = self.known
            if address not in before.used:
                return False
            after = _without_block(before, address)
            if self.known is before:
                self.known = after
                return True

    @property
    def addresses(self) -> tuple[int, ...]:
        """Addresses of the blocks in use, the oldest first."""
        return tuple(self.known.used)

    @property
    def allocated_bytes(self) -> int:
        """Bytes in use, rounding included."""
        return sum(self.known.used.values())

    @property
    def free_bytes(self) -> int:
        """Bytes that are not in use."""
        return self.size_bytes - self.allocated_bytes

    @property
    def largest_free_bytes(self) -> int:
        """Length of the longest free block; 0 if there is none."""
        return max((end - start for start, end in self.known.free), default=0)

    @property
    def lowest_used(self) -> int | None:
        """Lowest address in use."""
        return min(self.known.used, default=None)

    def blocks(self) -> tuple[Block, ...]:
        """All blocks, by address; together they are the whole range."""
        numbers = self.known.numbers
        free = (Block(start, end - start, False, numbers[start]) for start, end in self.known.free)
        used = (Block(address, size, True, numbers[address]) for address, size in self.known.used.items())
        return tuple(sorted((*free, *used)))

    def spare_numbers(self) -> tuple[int, ...]:
        """Numbers of blocks that were given up, the latest last."""
        return self.known.spare


def _without_block(blocks: Blocks, address: int) -> Blocks:
    """The blocks when the one at ``address`` is given back and has joined its free neighbors."""
    free, used, numbers, spare = list(blocks.free), dict(blocks.used), dict(blocks.numbers), list(blocks.spare)
    start, end = address, address + used.pop(address)
    index = bisect_left(free, (start, end))
    joins_next = index < len(free) and free[index][0] == end
    if index and free[index - 1][1] == start:
        spare.append(numbers.pop(start))
        start = free.pop(index - 1)[0]
        index -= 1
    if joins_next:
        spare.append(numbers.pop(end))
        end = free.pop(index)[1]
    insort(free, (start, end))
    return Blocks(free=tuple(free), used=used, numbers=numbers, spare=tuple(spare))
