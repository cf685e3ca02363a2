"""Addresses of buffers: DRAM from the bottom, L1 from the top, a small region of L1 apart, all banks in lock-step.

A buffer has the same address in every bank, used there or not, so one free list stands for all banks of a memory. Rules
and texts are those of tt-metal's allocator (bank_manager.cpp, l1_banking_allocator.cpp).
"""

from dataclasses import dataclass
from typing import Final

from device.errors import DeviceError, OutOfMemoryError
from device.memory.free_list import Block, Blocks, FreeList
from device.memory.layouts import BufferSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.integers import div_up, round_up
from device.spec.device_spec import DeviceSpec

_MEMORIES: Final = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class BankStatistics:
    """How full a memory is."""

    num_banks: int  # Banks; L1 has one a core, and L1_SMALL none if no region was set apart
    total_bytes_per_bank: int  # Bytes that can be allocated
    allocated_bytes_per_bank: int  # Bytes in use, rounding included
    free_bytes_per_bank: int  # Bytes not in use
    largest_free_bytes_per_bank: int  # Longest block not in use


class Allocator:
    """The free lists of one device.

    Args:
        spec: The device.
        l1_small_bytes: Bytes at the top of L1 that only L1_SMALL buffers may use; rounded up to the allocation
            alignment.

    Raises:
        DeviceError: The region is negative or leaves no L1.
    """

    def __init__(self, spec: DeviceSpec, l1_small_bytes: int = 0) -> None:
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
        self._lists = {
            BufferType.DRAM: FreeList(
                dram.base_bytes, dram.usable_bytes, alignment_bytes=dram.alignment_bytes, top_down=False
            ),
            BufferType.L1: FreeList(l1.base_bytes, l1.usable_bytes - small, alignment_bytes=unit, top_down=True),
            BufferType.L1_SMALL: FreeList(l1.bytes - small, small, alignment_bytes=unit, top_down=True),
        }

    def copy(self) -> "Allocator":
        """Another allocator with the same blocks in use; what happens to one leaves the other as it is."""
        other = Allocator(self.spec, self.l1_small_bytes)
        other._lists = {memory: blocks.copy() for memory, blocks in self._lists.items()}
        return other

    def standing(self) -> tuple[Blocks, ...]:
        """The blocks of all memories."""
        return tuple(one.known for one in self._lists.values())

    def stand(self, standing: tuple[Blocks, ...]) -> None:
        """Lets all memories have other blocks, as `standing` gave them for this allocator."""
        for one, blocks in zip(self._lists.values(), standing, strict=True):
            one.known = blocks

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
        """Give an address back; False if no buffer begins there (harmless, as in the real library)."""
        return self._list(buffer_type).free(address)

    def addresses(self, buffer_type: BufferType) -> tuple[int, ...]:
        """Addresses in use, the oldest first."""
        return self._list(buffer_type).addresses

    def statistics(self, buffer_type: BufferType) -> BankStatistics:
        """How full a memory is."""
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
        """Numbers of blocks that are in use no more, see Block."""
        return self._list(buffer_type).spare_numbers()

    def num_banks(self, buffer_type: BufferType) -> int:
        """Banks over which an interleaved buffer spreads."""
        if buffer_type is BufferType.DRAM:
            return self.spec.dram.banks
        return self.spec.grid.cores if self._list(buffer_type).size_bytes else 0

    def page_stride(self, buffer: BufferSpec) -> int:
        """Bytes from one page of a buffer to the next in the same bank."""
        memory = self.spec.dram if buffer.buffer_type is BufferType.DRAM else self.spec.l1
        return round_up(buffer.page_bytes, memory.alignment_bytes)

    @property
    def lowest_l1_address(self) -> int | None:
        """Where the lowest L1 buffer begins (L1_SMALL does not count); None if there is none."""
        return self._lists[BufferType.L1].lowest_used

    def _list(self, buffer_type: BufferType) -> FreeList:
        """The free list of a memory."""
        found = self._lists.get(buffer_type)
        if found is None:
            known = ", ".join(memory.name for memory in _MEMORIES)
            raise DeviceError(f"buffers can be allocated in {known}, not in {buffer_type.name}; choose one of them")
        return found

    def _out_of_memory(self, buffer: BufferSpec) -> str:
        """The text for a buffer that does not fit."""
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
        """What would make room for a buffer that does not fit."""
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
