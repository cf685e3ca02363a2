"""Explains why a call does not fit the device, and lists changes that make it fit; each change was simulated."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from device.errors import ArgumentError, DeviceError
from device.machine import Machine
from device.memory.buffers import Buffer
from device.memory.memory_config import BufferType
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    OperationBegin,
    OperationEnd,
    Plan,
    Refused,
)
from device.spec.device_spec import DeviceSpec
from ops.passes.memory import run_memory
from ops.planners.conv.alternatives import MOST_SLICES, TOGETHER, alternatives, automatic, costs, index_tensors_in_dram
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.plan import check_call, plan_call
from ops.window import NoWindowError
from ttsim.runtime.call_source import WHAT_FITS, conv_config_source, slice_config_source


class Consumer(NamedTuple):
    """A buffer, or a group of buffers, that takes memory."""

    text: str  # Its name and its operation
    size_bytes: int  # In one bank


class Shortage(NamedTuple):
    """A memory in which an allocation failed."""

    memory: BufferType
    consumers: tuple[Consumer, ...]  # Largest first
    cached: bool = False  # Circular buffers of a cached program did not fit: events do not name them


def shortage(events: Sequence[Event], before: Iterable[Buffer]) -> Shortage | None:
    """The memory in which an allocation of a call failed, or None; `before` are the buffers from before the call."""
    refused = [(index, event.buffer) for index, event in enumerate(events) if isinstance(event, Refused)]
    if not refused:
        return None
    (index, buffer), *_ = refused
    earlier = events[:index]
    memory = BufferType.L1 if buffer is None else buffer.buffer_type
    programs = _circular_buffers(earlier) if buffer is None else []
    sizes: Counter[str] = Counter()
    for consumer in (*_buffers(earlier, before, memory), *programs):
        sizes[consumer.text] += consumer.size_bytes
    largest = sorted(map(Consumer._make, sizes.items()), key=lambda consumer: (-consumer.size_bytes, consumer.text))
    return Shortage(memory, tuple(largest), cached=buffer is None and not programs)


def bank_bytes(spec: DeviceSpec, memory: BufferType, l1_small_bytes: int) -> int:
    """Bytes of one bank of a memory for buffers; for L1, including circular buffers."""
    if memory is BufferType.DRAM:
        return spec.dram.usable_bytes
    return l1_small_bytes if memory is BufferType.L1_SMALL else spec.l1.usable_bytes - l1_small_bytes


def _buffers(events: Iterable[Event], before: Iterable[Buffer], memory: BufferType) -> Iterator[Consumer]:
    """Buffers alive after the events; all index tensors of one program count as one consumer."""
    small = memory is BufferType.L1_SMALL
    old = "index tensors of programs cached before the call" if small else "buffer {!r} from before the call"
    live = {
        buffer.number: Consumer(old.format(buffer.name), buffer.spec.bank_bytes)
        for buffer in before
        if buffer.spec.buffer_type is memory
    }
    running: list[str] = []
    for event in events:
        if isinstance(event, OperationBegin):
            running.append(event.name)
        elif isinstance(event, OperationEnd):
            running.pop()
        elif isinstance(event, BufferAllocated) and event.buffer.buffer_type is memory:
            owner = f" of {running[-1]}" if running else ""
            text = f"index tensors{owner}" if small else f"buffer {event.name!r}{owner}"
            live[event.number] = Consumer(text, event.buffer.bank_bytes)
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
    yield from live.values()


def _circular_buffers(events: Iterable[Event]) -> list[Consumer]:
    """Circular buffers of the last program, without views."""
    buffers: list[Consumer] = []
    for event in events:
        if isinstance(event, CircularBuffersFreed):
            buffers.clear()
        elif isinstance(event, CircularBufferAllocated) and not event.view:
            buffers.append(Consumer(f"circular buffer {event.name!r} of {event.operation}", event.size_bytes))
    return buffers


class MachineSnapshot(NamedTuple):
    """The state of a device, on which trial calls are planned."""

    machine: Machine  # The device, which trials only read
    buffers: Mapping[str, Buffer]  # Buffers of the call's own tensors, by their names in a plan
    strict: bool  # Whether calls that the real library gets wrong are refused


class Trial(NamedTuple):
    """The result of a trial call."""

    events: tuple[Event, ...]  # Empty if the call was refused before
    # None if the call fits. Only the text: an exception would keep the caller's frames, and so tensors, alive.
    error: str | None
    plan: Plan | None = None  # None if the call was refused before


def attempt(
    call: ConvCall,
    snapshot: MachineSnapshot,
    *,
    l1_small_bytes: int | None = None,
    cached: bool = True,
    returns_weights: bool = True,
) -> Trial:
    """Plans a call and allocates its buffers on a copy of the device.

    `l1_small_bytes` is another size of the L1_SMALL region; `cached=False` clears the copy's program cache first; with
    `returns_weights` the caller keeps the prepared weights and bias.
    """
    events: list[Event] = []
    plan, refused, strict = None, None, snapshot.strict
    try:
        check_call(call, snapshot.machine.spec, strict=strict)
        machine = _copy(snapshot, l1_small_bytes, cached=cached)
        twins = l1_small_bytes is None
        inputs = {name: _input(machine, name, buffer, call, twins=twins) for name, buffer in snapshot.buffers.items()}
        free = machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
        machine.recorders.append(events)
        plan = plan_call(call, machine.spec, free_l1_bytes=free, returns_weights=returns_weights, strict=strict)
        run_memory(plan, machine, inputs)
    except (ArgumentError, DeviceError, NoWindowError) as error:
        refused = str(error)
    return Trial(tuple(events), refused, plan)


def _copy(snapshot: MachineSnapshot, l1_small_bytes: int | None, *, cached: bool) -> Machine:
    """A copy of the device, or the device reopened with another L1_SMALL size and the same tensors."""
    if l1_small_bytes is None:
        copy = snapshot.machine.copy()
        if not cached:
            copy.clear_program_cache()
        return copy
    resident = {buffer.number for program in snapshot.machine.program_cache.values() for buffer in program.resident}
    skipped = resident | {buffer.number for buffer in snapshot.buffers.values()}
    reopened = Machine(snapshot.machine.spec, l1_small_bytes=l1_small_bytes)
    live = [buffer for buffer in snapshot.machine.memory.live() if buffer.number not in skipped]
    for buffer in sorted(live, key=lambda buffer: fill_order(buffer.spec.buffer_type, buffer.address)):
        reopened.allocate(buffer.spec, buffer.name)
    return reopened


def fill_order(memory: BufferType, address: int) -> int:
    """The sort key by which buffers fill an empty memory: DRAM from its lowest address, L1 from its highest."""
    return address if memory is BufferType.DRAM else -address


def _input(machine: Machine, name: str, buffer: Buffer, call: ConvCall, *, twins: bool) -> Buffer:
    """The tensor of the call on the copy: the same buffer, or a new buffer if the input moves to another memory."""
    wanted = call.input.spec.buffer(machine.spec) if name == "input" else buffer.spec
    if twins and buffer.allocated and wanted == buffer.spec:
        return machine.memory.at(buffer.spec.buffer_type, buffer.address)
    return machine.allocate(wanted, name)


SHOWN: Final = 3  # consumers, and suggestions
TRIALS: Final = 24
STEPS: Final = 6000  # of all trials' events together, so that many slices do not take many seconds
L1_SMALL_SIZES: Final = tuple(1 << power for power in range(10, 18))


def explain_oom(call: ConvCall, snapshot: MachineSnapshot, *, planned: bool = True) -> str:
    """The explanation of an out-of-memory error; `planned` is False if planning failed and nothing was allocated."""
    short = _shortage(call, snapshot) if planned else None
    small = short is not None and short.memory is BufferType.L1_SMALL
    fitting = list(islice(_index_tensors(call, snapshot) if small else _configs(call, snapshot), SHOWN))
    if not fitting:
        fitting = list(islice(_left_to_the_library(call, snapshot), 1))
    nothing = "No config that was tried makes it fit as the device is now."
    lines = [] if short is None else _largest(short, snapshot)
    return "\n".join([*lines, WHAT_FITS if fitting else nothing, *(f"  {change}" for change in fitting)])


def _shortage(call: ConvCall, snapshot: MachineSnapshot) -> Shortage | None:
    """The shortage of a call; a cached program is planned again, because its circular buffers are not recorded."""
    live = snapshot.machine.memory.live()
    short = shortage(attempt(call, snapshot).events, live)
    if short is None or not short.cached:
        return short
    return shortage(attempt(call, snapshot, cached=False).events, live)


def _largest(short: Shortage, snapshot: MachineSnapshot) -> list[str]:
    machine = snapshot.machine
    total = bank_bytes(machine.spec, short.memory, machine.l1_small_bytes)
    where = "of a bank of DRAM" if short.memory is BufferType.DRAM else f"of a core's {short.memory.name}"
    if not short.consumers or not total:
        return []
    largest = [f"  {size} B ({100 * size / total:.0f} %): {text}" for text, size in short.consumers[:SHOWN]]
    return [f"The largest parts {where} ({total} B) at that moment:", *largest]


def _configs(call: ConvCall, snapshot: MachineSnapshot) -> Iterator[str]:
    """Changes of the call's configs that fit: the nearest of each kind."""
    free_l1_bytes = snapshot.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
    done: set[str] = set()
    fewest, steps = MOST_SLICES + 1, 0
    for kind, other in islice(alternatives(call, snapshot.machine.spec, free_l1_bytes=free_l1_bytes), TRIALS):
        slices = 0 if other.slice_config is None else other.slice_config.num_slices
        if kind in done or slices >= fewest or steps > STEPS:
            continue  # a smaller change already fits with as many slices
        if kind == TOGETHER and not slices and done:
            continue  # a single change already fits
        trial = attempt(other, snapshot)
        steps += len(trial.events)
        if trial.error is None:
            done.add(kind)
            fewest = slices if slices > 1 else fewest
            yield _changes(call, other)


def _left_to_the_library(call: ConvCall, snapshot: MachineSnapshot) -> Iterator[str]:
    """The call without its configs, then with other shard schemes, in slices that the library chooses."""
    for other in automatic(call):
        if other.arguments != call and attempt(other.arguments, snapshot).error is None:
            yield _changes(call, other.arguments)


def _index_tensors(call: ConvCall, snapshot: MachineSnapshot) -> Iterator[str]:
    if snapshot.machine.program_cache and attempt(call, snapshot, cached=False).error is None:
        yield "device.clear_program_cache()"
    other = index_tensors_in_dram(call)
    if other is not None and attempt(other.arguments, snapshot).error is None:
        yield _changes(call, other.arguments)
    for size in L1_SMALL_SIZES:
        if size > snapshot.machine.l1_small_bytes and attempt(call, snapshot, l1_small_bytes=size).error is None:
            yield f"ttnn.open_device(l1_small_size={size})"
            return


def _changes(call: ConvCall, other: ConvCall) -> str:
    """The arguments of `other` that differ from the call's, as Python, with their costs as a comment."""
    slices = other.slice_config
    sources = {
        "input": "input_tensor=ttnn.to_memory_config(input_tensor, ttnn.DRAM_MEMORY_CONFIG)",
        "memory_config": "memory_config=None",
        "conv_config": f"conv_config={conv_config_source(other.conv_config)}",
        "slice_config": f"dram_slice_config={None if slices is None else slice_config_source(slices)}",
    }
    changed = [source for name, source in sources.items() if getattr(other, name) != getattr(call, name)]
    notes = costs(call, other)
    return ", ".join(changed) + (f"  # {'; '.join(notes)}" if notes else "")
