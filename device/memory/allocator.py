"""Addresses of buffers: DRAM from the bottom, L1 from the top, and the separate L1_SMALL region, in lock-step.

A buffer has the same address in every bank, whether it uses the bank or not, so each memory has one free list. Rules
and texts are those of tt-metal's allocator (bank_manager.cpp, l1_banking_allocator.cpp).
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from weakref import ReferenceType

from device.errors import DeviceError, OutOfMemoryError
from device.memory.buffers import Buffer
from device.memory.layouts import BufferSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from device.spec.device_spec import DeviceSpec


class Block(NamedTuple):
    """A piece of an address range."""

    address: int  # Its first byte
    size_bytes: int
    allocated: bool  # Whether it is in use
    # Number in the real allocator's table: a part cut off a block gets a new number, or the number that was freed last;
    # a block that joins another frees its number, and the lower block keeps its own
    number: int = 0


class Blocks(NamedTuple):
    """The state of a free list; it is replaced as a whole, so that an interrupt cannot leave a partial change."""

    free: tuple[tuple[int, int], ...]  # (start, end) of the free blocks, sorted, never touching
    used: Mapping[int, int]  # Bytes of the blocks in use, by address
    numbers: Mapping[int, int]  # Number of each block, by address
    spare: tuple[int, ...]  # Numbers given up, the latest last


class FreeList:
    """The blocks of one address range; ``known`` is their state.

    A request takes the end of the highest (``top_down``) or lowest free block that is large enough. This is the rule of
    tt-metal's allocator (free_list_opt.cpp with its policy FIRST), as tested with ttnn 0.81.1; it does not search for
    the best fit. Sizes are rounded up to ``alignment_bytes``, the smallest allocation; nothing fits in a range of 0
    bytes.
    """

    def __init__(
        self, base: int, size_bytes: int, *, alignment_bytes: int, top_down: bool, known: Blocks | None = None
    ) -> None:
        self.base = base
        self.size_bytes = size_bytes
        self._alignment_bytes = alignment_bytes
        self._top_down = top_down
        self.known = known or Blocks(
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
        """The place of a block of ``wanted`` bytes, and the blocks with it; None and the old blocks if none fits."""
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
        """An independent copy of the list."""
        return FreeList(
            self.base, self.size_bytes, alignment_bytes=self._alignment_bytes, top_down=self._top_down, known=self.known
        )

    def free(self, address: int) -> bool:
        """Frees a block; False if no block starts at the address."""
        while True:
            before = self.known
            if address not in before.used:
                return False
            after = _without_block(before, address)
            if self.known is before:
                self.known = after
                return True

    def occupy(self, regions: Sequence[tuple[int, int]]) -> None:
        """Replaces the used blocks by these regions (start, end), with lengths rounded up.

        Raises:
            DeviceError: A region is empty, exceeds the range or overlaps another region.
        """
        free, used, start = [], dict[int, int](), self.base
        for begin, end in sorted(regions):
            after = begin + round_up(end - begin, self._alignment_bytes)
            if not start <= begin < after <= self.base + self.size_bytes:
                raise DeviceError(
                    f"blocks in use must follow each other in {self.base} to {self.base + self.size_bytes} B without "
                    f"overlapping, and {begin} to {end} B does not"
                )
            free += [(start, begin)] if start < begin else []
            used[begin], start = after - begin, after
        free += [(start, self.base + self.size_bytes)] if start < self.base + self.size_bytes else []
        begins = sorted([*used, *(begin for begin, _ in free)])
        self.known = Blocks(
            free=tuple(free), used=used, numbers={begin: number for number, begin in enumerate(begins)}, spare=()
        )

    @property
    def addresses(self) -> tuple[int, ...]:
        """Addresses of the blocks in use, the oldest first."""
        return tuple(self.known.used)

    @property
    def allocated_bytes(self) -> int:
        """Bytes in use, including rounding."""
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

    @property
    def largest_hole_bytes(self) -> int:
        """Length of the longest free block above the lowest block in use; 0 if there is none."""
        lowest = self.lowest_used
        return max((end - start for start, end in self.known.free if lowest is not None and start > lowest), default=0)

    def blocks(self) -> tuple[Block, ...]:
        """All blocks by address; together they cover the whole range."""
        numbers = self.known.numbers
        free = (Block(start, end - start, False, numbers[start]) for start, end in self.known.free)
        used = (Block(address, size, True, numbers[address]) for address, size in self.known.used.items())
        return tuple(sorted((*free, *used)))

    def spare_numbers(self) -> tuple[int, ...]:
        """Numbers of freed blocks, the latest last."""
        return self.known.spare


def _without_block(blocks: Blocks, address: int) -> Blocks:
    """The blocks after the block at ``address`` is freed and merged with free neighbors."""
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


_MEMORIES: Final = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class BankStatistics:
    """The occupancy of a memory."""

    num_banks: int  # Banks; L1 has one a core, and L1_SMALL none if no region was set apart
    total_bytes_per_bank: int  # Bytes that can be allocated
    allocated_bytes_per_bank: int  # Bytes in use, rounding included
    free_bytes_per_bank: int  # Bytes not in use
    largest_free_bytes_per_bank: int  # Longest block not in use


class Allocator:
    """The free lists of a device; only L1_SMALL buffers use the top ``l1_small_bytes`` (rounded up) of L1.

    Raises:
        DeviceError: The region is negative or leaves no L1.
    """

    def __init__(
        self, spec: DeviceSpec, l1_small_bytes: int = 0, *, lists: Mapping[BufferType, FreeList] | None = None
    ) -> None:
        """Starts empty, or with the free lists of an allocator with the same spec and region."""
        small = round_up(l1_small_bytes, spec.l1.allocation_alignment_bytes)
        if l1_small_bytes < 0 or small >= spec.l1.usable_bytes:
            raise DeviceError(
                f"l1_small_size must be at least 0 and below the {spec.l1.usable_bytes} B of L1, not {l1_small_bytes}; "
                "32768 is usual"
            )
        self.spec = spec
        self.l1_small_bytes = small
        l1, dram = spec.l1, spec.dram
        unit = l1.allocation_alignment_bytes
        self._lists = lists or {
            BufferType.DRAM: FreeList(
                dram.base_bytes, dram.usable_bytes, alignment_bytes=dram.alignment_bytes, top_down=False
            ),
            BufferType.L1: FreeList(l1.base_bytes, l1.usable_bytes - small, alignment_bytes=unit, top_down=True),
            BufferType.L1_SMALL: FreeList(l1.bytes - small, small, alignment_bytes=unit, top_down=True),
        }

    def copy(self) -> "Allocator":
        """An independent copy of the allocator."""
        lists = {memory: blocks.copy() for memory, blocks in self._lists.items()}
        return Allocator(self.spec, self.l1_small_bytes, lists=lists)

    def allocate(self, buffer: BufferSpec) -> int:
        """Address of a new buffer, the same in every bank.

        Raises:
            OutOfMemoryError: No free block is large enough; the first line is the real library's.
            DeviceError: The buffer type has no allocator, or the buffer is empty.
        """
        if min(buffer.page_bytes, buffer.bank_bytes, buffer.size_bytes) < 1:
            raise DeviceError(
                f"a buffer must hold at least one byte, not {buffer.size_bytes} B in pages of {buffer.page_bytes} B; "
                "empty tensors need no buffer"
            )
        address = self._list(buffer.buffer_type).allocate(buffer.bank_bytes)
        if address is None:
            raise OutOfMemoryError(self._out_of_memory(buffer))
        return address

    def free(self, address: int, buffer_type: BufferType) -> bool:
        """Frees the buffer at an address; False if none starts there (harmless, as in the real library)."""
        return self._list(buffer_type).free(address)

    def occupy(self, buffer_type: BufferType, regions: Sequence[tuple[int, int]]) -> None:
        """Replaces the used blocks of a memory by these regions; raises DeviceError if they overlap."""
        try:
            self._list(buffer_type).occupy(regions)
        except DeviceError as error:
            raise DeviceError(f"{buffer_type.name}: {error}") from None

    def addresses(self, buffer_type: BufferType) -> tuple[int, ...]:
        """Addresses in use, the oldest first."""
        return self._list(buffer_type).addresses

    def statistics(self, buffer_type: BufferType) -> BankStatistics:
        """The occupancy of a memory."""
        blocks = self._list(buffer_type)
        return BankStatistics(
            num_banks=self.num_banks(buffer_type),
            total_bytes_per_bank=blocks.size_bytes,
            allocated_bytes_per_bank=blocks.allocated_bytes,
            free_bytes_per_bank=blocks.free_bytes,
            largest_free_bytes_per_bank=blocks.largest_free_bytes,
        )

    def blocks(self, buffer_type: BufferType) -> tuple[Block, ...]:
        """Used and free blocks of a memory, by address."""
        return self._list(buffer_type).blocks()

    def spare_numbers(self, buffer_type: BufferType) -> tuple[int, ...]:
        """Numbers of freed blocks; see Block."""
        return self._list(buffer_type).spare_numbers()

    def num_banks(self, buffer_type: BufferType) -> int:
        """Number of banks of an interleaved buffer."""
        if buffer_type is BufferType.DRAM:
            return self.spec.dram.banks
        return self.spec.grid.cores if self._list(buffer_type).size_bytes else 0

    def page_stride(self, buffer: BufferSpec) -> int:
        """Bytes from one page of a buffer to the next in the same bank."""
        memory = self.spec.dram if buffer.buffer_type is BufferType.DRAM else self.spec.l1
        return round_up(buffer.page_bytes, memory.alignment_bytes)

    @property
    def lowest_l1_address(self) -> int | None:
        """The address of the lowest L1 buffer, without L1_SMALL; None if there is none."""
        return self._lists[BufferType.L1].lowest_used

    @property
    def largest_l1_hole_bytes(self) -> int:
        """Length of the longest free block above the lowest L1 buffer; 0 if there is none."""
        return self._lists[BufferType.L1].largest_hole_bytes

    def _list(self, buffer_type: BufferType) -> FreeList:
        result = self._lists.get(buffer_type)
        if result is None:
            known = ", ".join(memory.name for memory in _MEMORIES)
            raise DeviceError(f"buffers can be allocated in {known}, not in {buffer_type.name}; choose one of them")
        return result

    def _out_of_memory(self, buffer: BufferSpec) -> str:
        small = buffer.buffer_type is BufferType.L1_SMALL
        interleaved = buffer.memory_layout is TensorMemoryLayout.INTERLEAVED
        stride = self.page_stride(buffer)
        banks = self.num_banks(buffer.buffer_type) if interleaved else buffer.num_cores
        size_bytes = div_up(buffer.size_bytes, buffer.page_bytes) * stride if interleaved else buffer.bank_bytes * banks
        stats = self.statistics(buffer.buffer_type)
        text = (
            f"Out of Memory: Not enough space to allocate {size_bytes} B {buffer.buffer_type.name} buffer across "
            f"{banks} banks, where each bank needs to store {buffer.bank_bytes} B, but bank size is "
            f"{stats.total_bytes_per_bank} B (allocated: {stats.allocated_bytes_per_bank} B, free: "
            f"{stats.free_bytes_per_bank} B, largest free block: {stats.largest_free_bytes_per_bank} B)."
        )
        if small and not stats.total_bytes_per_bank:
            text += (
                " The L1_SMALL region is 0 B because it is reserved at device open; "
                "set l1_small_size large enough for this allocation when opening the device."
            )
        elif small:
            text += " The L1_SMALL region is sized at device open; increase l1_small_size when opening the device."
        return f"{text}\n{self._way_out(buffer, stats)}"

    def _way_out(self, buffer: BufferSpec, stats: BankStatistics) -> str:
        """Advice for a buffer that does not fit."""
        unit = self.spec.l1.allocation_alignment_bytes
        wanted = round_up(buffer.bank_bytes, unit)
        if buffer.buffer_type is BufferType.L1_SMALL:
            return (
                f"l1_small_size={round_up(stats.allocated_bytes_per_bank + wanted, unit)} would have held it together "
                "with what is there; clearing the program cache frees what earlier programs keep"
            )
        if stats.free_bytes_per_bank >= wanted:
            return (
                "The free bytes are enough but lie apart: free tensors in between, or allocate the long-lived ones "
                "first"
            )
        missing = wanted - stats.free_bytes_per_bank
        elsewhere = "keep it in DRAM, " if buffer.buffer_type is BufferType.L1 else ""
        return (
            f"{missing} B a bank are missing: free tensors that are not needed any more, spread the tensor over more "
            f"cores, {elsewhere}use a smaller data format, or process it in parts"
        )


class _Owner(ReferenceType[object]):
    """A weak reference to the owner of a buffer; when the owner dies, the buffer is added to the orphans.

    The callback is a C method, so that no interrupt can come between.
    """

    __slots__ = ("buffer",)

    buffer: Buffer


class Owners:
    """The owners of a device's buffers; true while there are buffers whose owner died."""

    __slots__ = ("_orphans",)

    def __init__(self) -> None:
        self._orphans: deque[_Owner] = deque()

    def __bool__(self) -> bool:
        return bool(self._orphans)

    def own(self, buffer: Buffer, owner: object) -> None:
        """Ties the lifetime of a buffer to its owner."""
        reference = _Owner(owner, self._orphans.append)
        reference.buffer = buffer
        buffer.owner = reference

    def collect(self, free: Callable[[Buffer], None]) -> None:
        """Frees the buffers of dead owners, oldest first; safe against interrupts."""
        while self._orphans:
            free(self._orphans[0].buffer)
            self._orphans.popleft()
