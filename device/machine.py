"""A device: its description, memories, program cache and recorders. It does not know operations."""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from device.errors import CircularBufferError, DeviceClosedError, OutOfMemoryError
from device.memory.allocator import Allocator, Owners
from device.memory.buffers import Buffer, Memory, Placement, Region, check, check_count, check_pages, place
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBuffer,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    Moment,
    Refused,
)
from device.spec.device_spec import DeviceSpec, load_spec

_HOLDER: Final = "holder"
_LONGEST_WAIT: Final = 0.05  # seconds between two looks, should an interrupt have kept a thread from telling the others


class Turn:
    """A lock that records its owner atomically, so that no interrupt comes between locking and recording.

    The record is a dict entry with the thread's identifier; locking creates the entry in one interpreter step. Locking
    again is harmless, and one release releases the lock.
    """

    __slots__ = ("_holder", "_released")

    def __init__(self) -> None:
        self._holder: dict[str, int] = {}
        self._released = threading.Event()

    @property
    def mine(self) -> bool:
        """Whether this thread holds it."""
        return self._holder.get(_HOLDER) == threading.get_ident()

    def take(self, *, wait: bool = True) -> bool:
        """Waits for the lock and takes it; without ``wait``, returns False if another thread holds it."""
        mine = threading.get_ident()
        while self._holder.setdefault(_HOLDER, mine) != mine:
            if not wait:
                return False
            self._released.clear()
            if _HOLDER in self._holder:
                self._released.wait(_LONGEST_WAIT)
        return True

    def give(self) -> None:
        """Releases the lock; harmless for a thread that does not hold it."""
        if self.mine:
            self._holder.clear()
            if not self._released.is_set():  # someone waits, who looks at the holder after taking the flag down
                self._released.set()


class Program(NamedTuple):
    """A program with the addresses of its circular buffers."""

    addresses: tuple[int, ...]  # One for each circular buffer
    regions: tuple[Region, ...]  # How far the circular buffers reach that take L1 of their own
    number: int  # Running number on the device, for messages
    noun: str  # What the real library calls its buffers
    resident: tuple[Buffer, ...] = ()  # Buffers that stay as long as the program stays cached


class Machine:
    """One simulated device from a spec, a name of the catalog, or a TOML file.

    Only L1_SMALL buffers may use the top ``l1_small_bytes`` of L1; an ``allocator`` has its own value.

    Raises:
        DeviceError: ``l1_small_bytes`` is negative or leaves no L1.
    """

    def __init__(self, spec: DeviceSpec | str, *, l1_small_bytes: int = 0, allocator: Allocator | None = None) -> None:
        self.spec = load_spec(spec)
        self._allocator = allocator or Allocator(self.spec, l1_small_bytes)
        self.turn = Turn()  # taken by every thread that changes what lies on the device
        self.caller: int | None = None  # identifier of the thread whose call runs
        self._owners = Owners()
        self.memory = Memory()
        self.program_cache: dict[Hashable, Program] = {}
        self.keeps_programs = True  # whether programs are cached at all
        self.recorders: list[list[Event]] = []  # each gets every event
        self.closed = False
        self.at_close: Allocator | None = None  # the contents of the memories before the machine was closed
        self._buffer_count = 0
        self._program_count = 0

    @property
    def l1_small_bytes(self) -> int:
        """Bytes reserved for L1_SMALL buffers, rounded up to the allocator's alignment."""
        return self._allocator.l1_small_bytes

    @property
    def l1_room_bytes(self) -> int:
        """Bytes of a core below its lowest L1 buffer."""
        lowest = self._allocator.lowest_l1_address
        top = self.spec.l1.bytes - self.l1_small_bytes if lowest is None else lowest
        return top - self.spec.l1.base_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def copy(self) -> "Machine":
        """A copy of the device for trials: its buffers have no contents, and it has no recorders."""
        other = Machine(self.spec, allocator=self.allocator.copy())
        other.closed, other.keeps_programs = self.closed, self.keeps_programs
        other._buffer_count, other._program_count = self._buffer_count, self._program_count
        twins = {}
        for buffer in self.memory.live():
            twin = Buffer(buffer.spec, buffer.address, device_spec=self.spec, name=buffer.name, number=buffer.number)
            other.memory.add(twin)
            twins[buffer.number] = twin
        other.program_cache = {
            key: program._replace(
                resident=tuple(twins[buffer.number] for buffer in program.resident if buffer.number in twins)
            )
            for key, program in self.program_cache.items()
        }
        return other

    def record(self, event: Event) -> None:
        """Sends an event to all recorders."""
        for recorder in self.recorders:
            recorder.append(event)

    def allocate(
        self,
        buffer: BufferSpec,
        name: str = "",
        *,
        by: str = "tt::tt_metal::create_device_tensor",
        placed: bool = True,
        tensor: TensorSpec | None = None,
    ) -> Buffer:
        """Allocates a buffer; reading it raises an error until values are stored.

        The buffer of an empty tensor takes no memory and is not recorded.

        Args:
            by: The allocating function of the real library.
            placed: False: the buffer gets address 0 and takes no memory, as in a capture without dispatch.
            tensor: The tensor in the buffer, for recorders.

        Raises:
            OutOfMemoryError: No free block is large enough.
            DeviceClosedError: The device was closed.
        """
        self.require_open()
        result, placed = None, placed and buffer.size_bytes > 0
        try:
            address = self._allocator.allocate(buffer) if placed else 0
            self._buffer_count += 1
            result = Buffer(buffer, address, device_spec=self.spec, name=name, number=self._buffer_count, placed=placed)
            if placed:
                self.memory.add(result)
            if buffer.size_bytes:
                self.record(BufferAllocated(result.number, name, address, buffer, by, tensor))
            return result
        except OutOfMemoryError as error:
            self.record(Refused(str(error), buffer))
            raise
        except BaseException:  # an interrupt: what was half made is taken back
            if result is not None:
                self._release(result)
            self._free_unknown(buffer.buffer_type)
            raise

    def free(self, buffer: Buffer, *, by: str = "Tensor::deallocate") -> None:
        """Frees a buffer; calling it twice is harmless, as in the real library."""
        if not buffer.allocated:
            return
        try:
            self._release(buffer)
        except BaseException:  # an interrupt: what was begun is brought to its end
            self._release(buffer)
            raise
        if buffer.spec.size_bytes:
            self.record(BufferFreed(buffer.number, buffer.name, buffer.address, buffer.spec, by))

    def make_program(
        self,
        operation: str,
        circular_buffers: Sequence[CircularBuffer],
        tensors: Mapping[str, int],
        *,
        placed: bool = True,
        dataflow: bool = False,
    ) -> Program:
        """Allocates the circular buffers of a new program and releases those of the previous program.

        Call it after the operation's outputs and resident tensors were allocated, for every operation that is not in
        the program cache, even without circular buffers. The program has no resident buffers yet.

        Args:
            circular_buffers: The circular buffers, in order of allocation.
            tensors: Address of each tensor that a circular buffer is a view of.
            placed: False: all addresses are 0 and only the size of dataflow buffers is checked, as in a capture without
                dispatch.
            dataflow: The buffers are dataflow buffers, which differ only in name and in captures.

        Raises:
            CircularBufferError: There are too many buffers, or they exceed L1 or overlap other buffers.
            DeviceClosedError: The device was closed.
        """
        self.require_open()
        noun = "dataflow buffer" if dataflow else "circular buffer"
        self._refuse_if(lambda: check_count(len(circular_buffers), self.spec.l1, noun=noun))
        counts = [
            (place if buffer.number is None else buffer.number, buffer.size_bytes // buffer.page_bytes)
            for place, buffer in enumerate(circular_buffers)
        ]
        self._refuse_if(lambda: check_pages(counts, noun=noun))
        self._program_count += 1
        self.record(CircularBuffersFreed())
        requests = [(buffer.size_bytes, buffer.cores) for buffer in circular_buffers if buffer.view_of is None]
        # Nobody asks where circular buffers lie that are neither placed nor checked
        placement = place(requests, self.spec.l1) if placed or dataflow else Placement((0,) * len(requests), ())
        local = iter(placement.addresses)
        addresses = []
        shown = not placed or dataflow or bool(requests)  # views alone allocate nothing, and a capture shows nothing
        for buffer in circular_buffers:
            view = buffer.view_of is not None
            address = next(local) if buffer.view_of is None else tensors[buffer.view_of] + buffer.offset_bytes
            address = address if placed else 0
            addresses.append(address)
            if shown:
                kind = (view, dataflow, buffer.scratchpad)
                self.record(
                    CircularBufferAllocated(operation, buffer.name, buffer.size_bytes, address, buffer.cores, *kind)
                )
        program = Program(tuple(addresses), placement.regions, self._program_count, noun)
        if placed:
            self._check(program)
        elif dataflow:  # whose size alone the real library checks even then
            self._refuse_if(lambda: check(program.regions, self.spec.l1, lowest_l1_address=None, program=0, noun=noun))
        return program

    def run_cached(self, key: Hashable) -> None:
        """Checks a cached program's circular buffers against the current L1; releases those of the previous program."""
        self.require_open()
        self.record(CircularBuffersFreed())
        self._check(self.program_cache[key])

    def cache_program(self, key: Hashable, program: Program, resident: Sequence[Buffer] = ()) -> None:
        """Caches a program and its resident buffers; replaces an earlier program of the same key.

        With a disabled cache, the program, its circular buffers and its resident buffers are freed after it ran.
        """
        self.require_open()
        if not self.keeps_programs:
            self.record(CircularBuffersFreed())
            for buffer in resident:
                self.free(buffer)
            return
        before = self.program_cache.pop(key, None)
        for buffer in () if before is None else before.resident:
            self.free(buffer)
        self.program_cache[key] = program._replace(resident=tuple(resident))

    def clear_program_cache(self) -> None:
        """Removes all programs and frees their resident buffers."""
        try:
            self._drop_programs(0)
        except BaseException:
            self._drop_programs(0)
            raise

    def read(self, buffer_type: BufferType, bank: int, address: int, size_bytes: int) -> NDArray[np.uint8]:
        """Bytes at an address: uint8 [size_bytes], all of one buffer; L1 and L1_SMALL are one memory here.

        ``bank`` is a DRAM bank, or a core counted row by row.

        Raises:
            MemoryAccessError: Some bytes belong to no buffer.
            PoisonError: Some bytes were never written.
        """
        return self.memory.read(buffer_type, bank, address, size_bytes)

    def close(self) -> None:
        """Frees everything; closing twice is harmless."""
        if not self.closed and self.at_close is None:  # an empty allocator takes its place
            self.at_close, self._allocator = self.allocator, Allocator(self.spec, self.l1_small_bytes)
        self.clear_program_cache()
        self.closed = True
        for buffer in self.memory.live():
            self.free(buffer)

    def begin(self) -> "Moment":
        """Saves the state for ``roll_back``; frees the buffers of collected owners."""
        self.collect()
        return Moment(self._buffer_count, len(self.program_cache), tuple(self.recorders))

    def roll_back(self, moment: "Moment", *, programs: bool) -> None:
        """Frees the buffers without an owner that were allocated since a saved state; may be repeated.

        With ``programs``, it also removes programs that were cached and recorders that were added since.
        """
        if programs:
            self.recorders[:] = moment.recorders
            self._drop_programs(moment.programs)
        resident = {buffer.number for program in self.program_cache.values() for buffer in program.resident}
        for buffer in self.memory.live():
            unowned = buffer.owner is None or buffer.owner() is None
            if buffer.number > moment.buffers and unowned and buffer.number not in resident:
                self.free(buffer)
        self.collect()

    def collect(self) -> None:
        """Frees buffers whose owner died while they could not be freed."""
        self._owners.collect(self.free)

    def own(self, buffer: Buffer, owner: object) -> None:
        """Ties the lifetime of a buffer to its owner.

        If the owner cannot free the buffer when it dies, because of an interrupt or because another thread uses the
        device, the next user of the device frees the buffer.
        """
        self._owners.own(buffer, owner)

    @property
    def allocator(self) -> Allocator:
        """The allocator of addresses."""
        if self._owners:
            was_mine = self.turn.mine
            try:
                if self.turn.take(wait=False):
                    self.collect()
                if not was_mine:
                    self.turn.give()
            except BaseException:  # an interrupt, wherever it came
                if not was_mine:
                    self.turn.give()
                raise
        return self._allocator

    def _release(self, buffer: Buffer) -> None:
        """Removes a buffer from all tables; may be repeated after an interrupt."""
        if buffer.placed and self.memory.holds(buffer):
            self._allocator.free(buffer.address, buffer.spec.buffer_type)
            self.memory.remove(buffer)
        buffer.free()

    def _free_unknown(self, buffer_type: BufferType) -> None:
        """Frees addresses that belong to no buffer."""
        for address in self._allocator.addresses(buffer_type):
            if not self.memory.has(buffer_type, address):
                self._allocator.free(address, buffer_type)

    def _drop_programs(self, count: int) -> None:
        """Removes all programs except the oldest ``count``, and frees their resident buffers; may be repeated."""
        for key in list(self.program_cache)[count:]:
            for buffer in self.program_cache[key].resident:
                self.free(buffer)
            del self.program_cache[key]

    def _check(self, program: Program) -> None:
        regions, number, noun = program.regions, program.number, program.noun
        lowest = self._allocator.lowest_l1_address
        self._refuse_if(lambda: check(regions, self.spec.l1, lowest_l1_address=lowest, program=number, noun=noun))

    def _refuse_if(self, rule: Callable[[], None]) -> None:
        """A context that records an error of its body as a refusal."""
        try:
            rule()
        except CircularBufferError as error:
            self.record(Refused(str(error)))
            raise

    def require_open(self) -> None:
        """Raises DeviceClosedError if the device was closed."""
        if self.closed:
            raise DeviceClosedError(f"device {self.spec.name} was closed; open a new one")
