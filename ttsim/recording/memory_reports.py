"""Statistics of a device's memories with ttnn's names, and the CSV files that the real library dumps.

The block table is the table of tt-metal's allocator: addresses are relative to the start of the bank's allocatable
range, and blocks have the allocator's numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from device.errors import ArgumentError, DeviceError, shown
from device.memory.allocator import Allocator, Block
from device.memory.memory_config import BufferType
from ttsim.runtime.device import Device
from ttsim.runtime.session import locked
from ttsim.runtime.types.call import require_type

NONE = 2**64 - 1  # how the real library writes "no block" in a block table
REPORTS = Path("generated") / "reports"
MEMORIES = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)
SMALLEST_CLASS_BYTES = 1024
LAST_CLASS_BYTES = 128 << 20
COLUMNS = ("Block", "Address", "Size", "PrevID", "NextID", "Allocated")
KEYS = ("blockID", "address", "size", "prevID", "nextID", "allocated")  # of a block table
COLUMN_WIDTH = 12
USES = ("no", "yes")
TOTALS = ("total_bytes_per_bank", "allocated_bytes_per_bank", "free_bytes_per_bank", "largest_free_bytes_per_bank")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryView:
    """The occupancy of a memory, in bytes of one bank; field names are ttnn's.

    Examples:
        >>> view = ttnn.get_memory_view(device, ttnn.BufferType.L1)
        >>> view.total_bytes_per_bank >= view.largest_contiguous_bytes_free_per_bank
        True
    """

    num_banks: int
    total_bytes_per_bank: int
    total_bytes_allocated_per_bank: int
    total_bytes_free_per_bank: int
    largest_contiguous_bytes_free_per_bank: int
    block_table: tuple[dict[str, str], ...]


def get_memory_view(device: Device, buffer_type: BufferType) -> MemoryView:
    """The occupancy of a memory of a device.

    Args:
        device: The device.
        buffer_type: DRAM, L1 or L1_SMALL.

    Returns:
        Sizes in bytes of one bank, and the allocator's block table.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: ``buffer_type`` is TRACE, which is not simulated.

    Examples:
        >>> view = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
        >>> view.num_banks, view.total_bytes_per_bank
        (12, 1072693184)
    """
    require_type("get_memory_view", Device, device=device)
    require_type("get_memory_view", BufferType, buffer_type=buffer_type)
    if buffer_type not in MEMORIES:
        raise DeviceError("get_memory_view: traces are not simulated; ask for DRAM, L1 or L1_SMALL")
    allocator = _as_it_is(device)
    statistics = allocator.statistics(buffer_type)
    rows = _block_table(allocator.blocks(buffer_type), NONE)
    return MemoryView(
        num_banks=statistics.num_banks,
        total_bytes_per_bank=statistics.total_bytes_per_bank,
        total_bytes_allocated_per_bank=statistics.allocated_bytes_per_bank,
        total_bytes_free_per_bank=statistics.free_bytes_per_bank,
        largest_contiguous_bytes_free_per_bank=statistics.largest_free_bytes_per_bank,
        block_table=tuple(dict(zip(KEYS, map(str, row), strict=True)) for row in rows),
    )


def dump_device_memory_state(device: Device, prefix: str = "") -> None:
    """Writes three CSV files about the memories of a device into generated/reports of the working directory.

    Args:
        device: The device.
        prefix: Prefix of the file names.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: ``prefix`` cannot be part of a file name.
        OSError: A file cannot be written.

    Examples:
        >>> from contextlib import chdir
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, chdir(folder):
        ...     ttnn.dump_device_memory_state(device, "before_")
    """
    require_type("dump_device_memory_state", Device, device=device)
    require_type("dump_device_memory_state", str, prefix=prefix)
    REPORTS.mkdir(parents=True, exist_ok=True)
    for name, text in memory_reports(device).items():
        try:
            (REPORTS / f"{prefix}{name}").write_text(text, encoding="utf-8")
        except ValueError:
            raise ArgumentError(
                f"dump_device_memory_state: prefix must be part of a file's name, not {shown(prefix)}"
            ) from None


def memory_reports(device: Device, *, before_closing: bool = False) -> dict[str, str]:
    """The texts of the real library's three memory reports, by file name.

    With `before_closing`, a closed device is reported with its memories before closing.
    """
    last = device.machine.at_close if before_closing else None
    allocator = _as_it_is(device) if last is None else last
    statistics = {memory: allocator.statistics(memory) for memory in MEMORIES}
    l1 = statistics[BufferType.L1]
    files = {
        "l1_usage_summary.csv": [
            "This report indicates available space for interleaving L1 buffers",
            ", Largest Contiguous Free Block (B), Total Free L1 Space (B)",
            f",{l1.largest_free_bytes_per_bank},{l1.largest_free_bytes_per_bank * l1.num_banks}",
        ],
        "memory_usage_summary.csv": [
            ", Total Allocatable Size (B), Total Allocated (B), Total Free (B), Largest Free Block (B)",
            *(f",{','.join(str(getattr(memory, name)) for name in TOTALS)}" for memory in statistics.values()),
        ],
        "detailed_memory_usage.csv": [line for memory in MEMORIES for line in _details(allocator, memory)],
    }
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in files.items()}


def _as_it_is(device: Device) -> Allocator:
    """A consistent copy of the device's blocks between two calls, safe against other threads."""
    return locked(device.machine, lambda: device.machine.allocator.copy())


def _block_table(blocks: Sequence[Block], none: object) -> list[tuple[object, ...]]:
    """Number, address, size, neighbors and use of blocks, sorted by number."""
    numbers = [none, *(block.number for block in blocks), none]
    return sorted(
        (block.number, block.address - blocks[0].address, block.size_bytes, before, after, USES[block.allocated])
        for block, before, after in zip(blocks, numbers, numbers[2:], strict=False)
    )


def _details(allocator: Allocator, memory: BufferType) -> Iterator[str]:
    """Totals over all banks of a memory, then the allocator's statistics of one bank."""
    statistics, blocks = allocator.statistics(memory), allocator.blocks(memory)
    yield f",{memory.name}"
    for name, total in zip(("allocatable", "allocated", "free"), TOTALS, strict=False):
        yield f",Total {name} (B):,{getattr(statistics, total) * statistics.num_banks}"
    yield "FreeListOpt allocator info:"
    yield "segregated free blocks by size:"
    yield from _size_classes(blocks, statistics.total_bytes_per_bank)
    yield f"Free slots in block table: {_listed(allocator.spare_numbers(memory))}"
    yield "Block table:"
    for row in (COLUMNS, *_block_table(blocks, "none")):
        yield "".join(f"{cell!s:>{COLUMN_WIDTH}} " for cell in row)


def _size_classes(blocks: Sequence[Block], total_bytes: int) -> Iterator[str]:
    """Free blocks by power of two."""
    longest = (LAST_CLASS_BYTES // SMALLEST_CLASS_BYTES).bit_length()
    count = min(max((total_bytes // SMALLEST_CLASS_BYTES).bit_length(), 2), longest)
    members: list[list[int]] = [[] for _ in range(count)]
    for block in blocks:
        if not block.allocated:
            size_class = (block.size_bytes // SMALLEST_CLASS_BYTES).bit_length() - 1
            members[min(max(size_class, 0), count - 1)].append(block.number)
    for index, numbers in enumerate(members):
        low = SMALLEST_CLASS_BYTES << index
        high = "inf" if index == count - 1 else low << 1
        yield f"  Size class {index}: ({low} - {high}) blocks: {_listed(numbers)}"


def _listed(numbers: Sequence[int]) -> str:
    return "".join(f"{number} " for number in numbers)
