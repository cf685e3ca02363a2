"""Buffers and their contents, which can be read by address.

Contents are stored per buffer, as values; bytes are computed on demand, so no array has the size of a memory. Reading
an unwritten byte (poison), or a byte outside every buffer, raises an error.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from weakref import ReferenceType

import numpy as np

from device.cores import CoreRange, CoreRangeSet
from device.errors import CircularBufferError, MemoryAccessError, PoisonError
from device.memory.layouts import BufferSpec, PagePlaces, TensorSpec, decode_pages, encode_pages, page_places
from device.memory.memory_config import BufferType, TensorMemoryLayout
from device.numbers.formats import Array, round_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import L1Spec

MOST_PAGES: Final = (1 << 16) - 1  # of a circular buffer
_SIZES: Final = ("buffer_type", "size_bytes", "page_bytes", "bank_bytes")


class PageLocation(NamedTuple):
    """The bank and address of a page."""

    bank: int  # DRAM bank, or core counted row by row
    address: int  # First byte


class Unwritten(NamedTuple):
    """The last channels of a tensor that an operation did not write."""

    channels: int  # The first channels, which were written
    text: str  # Of the error of reading the others


class Buffer:
    """Memory that a tensor owns, at one address in every bank.

    Attributes:
        number: Running number on its device.
        name: The purpose of the buffer.
        allocated: False once it was freed.
        placed: False for a buffer that never got an address (a capture without dispatch).
        owner: A weak reference to the object that keeps it; None without an owner.
        unwritten: The part that an operation left unwritten; None if there is none.
    """

    __slots__ = (
        "_pages",
        "_tensor",
        "_values",
        "address",
        "allocated",
        "device_spec",
        "name",
        "number",
        "owner",
        "placed",
        "spec",
        "unwritten",
    )

    def __init__(
        self,
        spec: BufferSpec,
        address: int,
        *,
        device_spec: DeviceSpec,
        name: str = "",
        number: int = 0,
        placed: bool = True,
    ) -> None:
        self.number = number
        self.name = name
        self.spec = spec
        self.address = address
        self.allocated = True
        self.placed = placed
        self.unwritten: Unwritten | None = None
        self.owner: ReferenceType[object] | None = None
        self.device_spec = device_spec
        self._values: Array | None = None
        self._tensor: TensorSpec | None = None
        self._pages: Array | None = None

    def __repr__(self) -> str:
        """Name, size and address."""
        state = "" if self.allocated else ", freed"
        memory = self.spec.buffer_type.name
        return f"Buffer({self.name!r}, {self.spec.size_bytes} B in {memory} at {self.address}{state})"

    @property
    def num_pages(self) -> int:
        """Pages of the buffer."""
        return self.spec.size_bytes // self.spec.page_bytes

    @property
    def written(self) -> bool:
        """Whether values were stored."""
        return self._values is not None

    def store(self, values: Array, tensor: TensorSpec) -> None:
        """Stores values; the array is not copied, so it must not change afterwards.

        ``values`` have the tensor's shape or padded shape, in its format's storage type; the tensor must fit this
        buffer.

        Raises:
            MemoryAccessError: The buffer was freed, or its layout or size does not fit the tensor. Interleaved buffers
                may have spare pages after the tensor's.
        """
        self._require_allocated("written")
        wanted = tensor.buffer(self.device_spec)
        if any(getattr(wanted, name) != getattr(self.spec, name) for name in _SIZES) and not self._has_spare(wanted):
            raise MemoryAccessError(f"{self!r} was allocated as {self.spec} and can not hold a tensor of {wanted}")
        self._values, self._tensor, self._pages, self.unwritten = values, tensor, None, None

    def _has_spare(self, wanted: BufferSpec) -> bool:
        """Whether interleaved pages of a tensor are the first of this buffer's."""
        layouts = {wanted.memory_layout, self.spec.memory_layout}
        alike = (wanted.buffer_type, wanted.page_bytes) == (self.spec.buffer_type, self.spec.page_bytes)
        return alike and layouts == {TensorMemoryLayout.INTERLEAVED} and wanted.size_bytes < self.spec.size_bytes

    @property
    def values(self) -> Array:
        """The stored values; raises PoisonError if there are none, MemoryAccessError if the buffer was freed."""
        self._require_allocated("read")
        if self._values is None:
            raise PoisonError(f"{self!r} is read before anything was written to it; store values first")
        return self._values

    def pages(self) -> Array:
        """Bytes in memory: uint8 [pages, page_bytes], computed on the first call; raises like `values`."""
        values = self.values
        if self._pages is None and self._tensor is not None:
            self._pages = encode_pages(values, self._tensor)
            self._pages.setflags(write=False)
        assert self._pages is not None
        return self._pages

    def decoded(self) -> Array:
        """The values decoded from the bytes, in the padded shape."""
        pages = self.pages()
        assert self._tensor is not None
        return decode_pages(pages, self._tensor)

    def page_location(self, page: int) -> PageLocation:
        """Bank and address of a page of the stored tensor."""
        if not 0 <= page < self.num_pages:
            raise MemoryAccessError(f"{self!r} has pages 0 to {self.num_pages - 1}, not {page}")
        places = self._places()
        return PageLocation(int(places.banks[page]), self.address + int(places.offsets[page]))

    def read(self, bank: int, address: int, size_bytes: int) -> Array:
        """Bytes of one bank: uint8 [size_bytes].

        ``bank`` is a DRAM bank, or a core counted row by row.

        Raises:
            MemoryAccessError: Some bytes lie outside the buffer, or it was freed.
            PoisonError: Some bytes were never written: padding of pages, or a bank without a share.
        """
        self._require_allocated("read")
        start = address - self.address
        if size_bytes < 0 or start < 0 or start + size_bytes > self.spec.bank_bytes:
            end = self.address + self.spec.bank_bytes
            raise MemoryAccessError(
                f"{self!r} has addresses {self.address} to {end - 1} in each bank; {size_bytes} B from {address} reach "
                "outside"
            )
        image = self._image(bank)
        part = image[start : start + size_bytes]
        poison = np.flatnonzero(part < 0)
        if poison.size:
            raise PoisonError(
                f"{self!r}: bank {bank}, address {address + int(poison[0])} is read, but nobody has written it; it is "
                "padding, or this bank has no share of the buffer"
            )
        return part.astype(np.uint8)

    def forget(self) -> None:
        """Drops the contents; they are unknown from now on."""
        self._values = self._tensor = self._pages = None

    def free(self) -> None:
        """Drops the contents; every later read raises an error."""
        self.forget()
        self.allocated, self.owner = False, None

    def _image(self, bank: int) -> Array:
        """int16 [bank_bytes]: the bytes of one bank, -1 for bytes that were never written."""
        pages, places = self.pages(), self._places()
        image = np.full(self.spec.bank_bytes, -1, np.int16)
        for page in np.flatnonzero(places.banks == bank):
            offset = int(places.offsets[page])
            image[offset : offset + self.spec.page_bytes] = pages[page]
        return image

    def _places(self) -> PagePlaces:
        """Bank and address of each page of the stored tensor."""
        if self._tensor is None:
            raise PoisonError(f"{self!r} has no pages before anything was written to it; store values first")
        return page_places(self._tensor, self.device_spec)

    def _require_allocated(self, verb: str) -> None:
        if not self.allocated:
            raise MemoryAccessError(
                f"{self!r} is {verb} after it was freed; keep the tensor allocated, or compute it again"
            )


class Memory:
    """The live buffers of a device, by address."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[bool, int], Buffer] = {}  # by "is DRAM" and address

    def add(self, buffer: Buffer) -> None:
        """Adds a buffer."""
        self._buffers[buffer.spec.buffer_type is BufferType.DRAM, buffer.address] = buffer

    def holds(self, buffer: Buffer) -> bool:
        """Whether this buffer is live."""
        return self._buffers.get((buffer.spec.buffer_type is BufferType.DRAM, buffer.address)) is buffer

    def has(self, buffer_type: BufferType, address: int) -> bool:
        """Whether a buffer begins at an address."""
        return (buffer_type is BufferType.DRAM, address) in self._buffers

    def remove(self, buffer: Buffer) -> None:
        """Removes a buffer."""
        del self._buffers[buffer.spec.buffer_type is BufferType.DRAM, buffer.address]

    def live(self) -> tuple[Buffer, ...]:
        """All live buffers, oldest first."""
        return tuple(sorted(self._buffers.values(), key=lambda buffer: buffer.number))

    def at(self, buffer_type: BufferType, address: int) -> Buffer:
        """The buffer at an address, or MemoryAccessError; L1 and L1_SMALL are one memory here."""
        dram = buffer_type is BufferType.DRAM
        below_or_at = (start for of_dram, start in tuple(self._buffers) if of_dram is dram and start <= address)
        start = max(below_or_at, default=None)
        buffer = None if start is None else self._buffers[dram, start]
        if buffer is None or address >= buffer.address + buffer.spec.bank_bytes:
            below = f"; the nearest buffer below is {buffer!r}" if buffer else "; no buffer lies below"
            raise MemoryAccessError(f"address {address} in {buffer_type.name} belongs to no buffer{below}")
        return buffer

    def read(self, buffer_type: BufferType, bank: int, address: int, size_bytes: int) -> Array:
        """Bytes at an address; see ``Buffer.read``."""
        return self.at(buffer_type, address).read(bank, address, size_bytes)


class Region(NamedTuple):
    """The end of the circular buffers on a range of cores."""

    cores: CoreRange
    end: int  # First address behind its last circular buffer


class Placement(NamedTuple):
    """Circular buffers with their addresses."""

    addresses: tuple[int, ...]  # One for each request, in order
    regions: tuple[Region, ...]  # One for each distinct range of cores, in the order in which the requests name them


def place(requests: Sequence[tuple[int, CoreRangeSet]], l1: L1Spec) -> Placement:
    """Stacks circular buffers, in the order of tt-metal's program (program.cpp).

    Each distinct range of cores has a fill level. A buffer starts at the highest level of its own ranges, aligned, and
    raises the level of every range that shares a core with it, unless that range is a different one and already filled
    beyond the buffer's start. ``requests`` are the bytes per core and the cores of each buffer, without views.
    """
    numbers: dict[CoreRange, int] = {}  # of the distinct ranges, which are counted once for each set of cores
    known = {
        cores: [numbers.setdefault(core_range, len(numbers)) for core_range in cores.ranges]
        for cores in dict.fromkeys([cores for _, cores in requests])
    }
    ranges, levels = list(numbers), [l1.base_bytes] * len(numbers)
    addresses = []
    for size_bytes, cores in requests:
        level = max([levels[number] for number in known[cores]], default=l1.base_bytes)
        address = round_up(level, l1.circular_buffer_alignment_bytes)
        for own in known[cores]:
            for other, filled in enumerate(levels):
                if own == other or (address >= filled and ranges[own].overlaps(ranges[other])):
                    levels[other] = address + size_bytes
        addresses.append(address)
    return Placement(tuple(addresses), tuple(map(Region, ranges, levels)))


def check_count(count: int, l1: L1Spec, *, noun: str = "circular buffer") -> None:
    """Raises CircularBufferError for too many circular buffers; ``noun`` is the real library's word for them.

    Raises:
        CircularBufferError: With the real library's text in the first line (tt-metal, circular_buffer_config.cpp).
    """
    if count > l1.circular_buffers:
        raise CircularBufferError(
            f"Buffer index ({l1.circular_buffers}) exceeds max number of circular buffers per core "
            f"({l1.circular_buffers})\nThe program has {count} {noun}s: turn a bias, a split reader or config tensors "
            "in DRAM off, or give the device more (l1.circular_buffers)"
        )


def check_pages(counts: Iterable[tuple[int, int]], *, noun: str = "circular buffer") -> None:
    """Raises CircularBufferError for buffers (index, pages) with more pages than 16 bits count; ``noun`` as above.

    Raises:
        CircularBufferError: With the real library's text in the first line.
    """
    for index, pages in counts:
        if pages <= MOST_PAGES:
            continue
        first = (
            f"For buffer index {index}, number of CB pages {pages} is greater than {MOST_PAGES}. Would cause "
            "wraparound in the CB calculations."
        )
        if noun == "dataflow buffer":
            first = (
                f"DFB {index}: capacity {pages} exceeds the maximum {MOST_PAGES} (HW BUFFER_CAPACITY is 16 bits); "
                "reduce num_entries."
            )
        raise CircularBufferError(f"{first}\nSpread the tensor over more cores, or bring it into TILE_LAYOUT")


def check(
    regions: Iterable[Region],
    l1: L1Spec,
    *,
    lowest_l1_address: int | None,
    program: int,
    noun: str = "circular buffer",
) -> None:
    """Raises CircularBufferError for circular buffers that exceed L1 or overlap L1 buffers.

    Args:
        regions: The regions of one program.
        lowest_l1_address: Address of the lowest L1 buffer; None if there is none.
        program: Number of the program, for the message.
        noun: The real library's word for these buffers.
    """
    for cores, end in regions:
        if end > l1.bytes:
            raise CircularBufferError(
                f"Statically allocated {noun}s on core range {cores} grow to {end} B which is beyond max L1 "
                f"size of {l1.bytes} B\nThey are {end - l1.bytes} B too large even for empty L1: make the blocks of "
                "the operation smaller, turn double buffering off, or use smaller data formats"
            )
        if lowest_l1_address is not None and lowest_l1_address < end:
            raise CircularBufferError(
                f"Statically allocated {noun}s in program {program} clash with L1 buffers on core range "
                f"{cores}. L1 buffer allocated at {lowest_l1_address} and static {noun} region ends at {end}\n"
                f"They overlap by {end - lowest_l1_address} B: free L1 tensors that are not needed any more, make the "
                "blocks of the operation smaller, turn double buffering off, or spread the tensors over more cores"
            )
