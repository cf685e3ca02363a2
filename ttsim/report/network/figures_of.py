"""The figures of a report on a network, from what ran: each computed once, here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from device.cores import CoreRangeSet
from device.memory.buffers import place
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ttsim.report.cycles.sums import share_of
from ttsim.report.memory.l1_map import CIRCULAR, Held, ranges_of
from ttsim.report.memory.summary import fullest_core_bytes
from ttsim.report.network.figures import HighWater, LivingBuffer, LivingCircularBuffer, PassOperation, Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class RanOperation:
    """A device operation that ran, as it was read."""

    name: str  # As a graph capture shows it
    call: int
    function: str
    where: str  # The lines of the script that made the call
    cycles: int | None  # In whole ones; None where no model knows it
    bound_by: str  # The stage that binds it
    core_count: int  # Cores that take part
    untimed: str  # Why no model knows it
    circular_buffers: tuple[CircularBuffer, ...]  # Those of its program that are no views, in order of allocation
    buffers: tuple[LivingBuffer, ...]  # In L1 at the fullest moment while it ran, oldest first


def pass_operations(ran: Sequence[RanOperation], spec: DeviceSpec) -> tuple[PassOperation, ...]:
    """The operations of a pass, one after the other."""
    everything = sum(one.cycles or 0 for one in ran)
    found, before = [], 0
    for number, one in enumerate(ran):
        taken = one.cycles or 0
        found.append(
            PassOperation(
                number=number,
                name=one.name,
                call=one.call,
                function=one.function,
                where=one.where,
                start_nanoseconds=nanoseconds(before, spec.clock_hz),
                cycles=taken,
                nanoseconds=nanoseconds(taken, spec.clock_hz),
                share=share_of(taken, everything),
                bound_by=one.bound_by,
                core_count=one.core_count,
                circular_bytes=fullest_core_bytes(one.circular_buffers),
                buffer_bytes=sum(buffer.bank_bytes for buffer in one.buffers),
                untimed=one.untimed,
            )
        )
        before += taken
    return tuple(found)


def sums(
    operations: Sequence[PassOperation], spec: DeviceSpec, *, by: Callable[[PassOperation], str]
) -> tuple[Sum, ...]:
    """Operations put together, in order of their first one.

    Args:
        by: What they must have in common.
    """
    together: dict[str, list[PassOperation]] = {}
    for one in operations:
        together.setdefault(by(one), []).append(one)
    everything = sum(one.cycles for one in operations)
    return tuple(_sum(name, parts, everything, spec) for name, parts in together.items())


def _sum(name: str, parts: Sequence[PassOperation], of_cycles: int, spec: DeviceSpec) -> Sum:
    cycles = sum(one.cycles for one in parts)
    return Sum(
        name=name,
        functions=tuple(dict.fromkeys(one.function for one in parts)),
        calls=len({one.call for one in parts}),
        count=len(parts),
        untimed=sum(bool(one.untimed) for one in parts),
        cycles=cycles,
        nanoseconds=nanoseconds(cycles, spec.clock_hz),
        share=share_of(cycles, of_cycles),
        l1_bytes=max(one.l1_bytes for one in parts),
    )


def high_water(ran: Sequence[RanOperation], operations: Sequence[PassOperation], spec: DeviceSpec) -> HighWater:
    """The fullest moment of a pass; of several the first."""
    usable = spec.l1.usable_bytes
    if not operations:
        return HighWater(operation=None, nanoseconds=0.0, usable_bytes=usable, total_bytes=0, share=0.0)
    fullest = max(operations, key=lambda one: one.l1_bytes)
    there = ran[fullest.number]
    return HighWater(
        operation=fullest.number,
        nanoseconds=fullest.start_nanoseconds,
        usable_bytes=usable,
        total_bytes=fullest.l1_bytes,
        share=fullest.l1_bytes / usable,
        circular_buffers=tuple(_circular(one.name, one.size_bytes, one.cores) for one in there.circular_buffers),
        buffers=there.buffers,
    )


def held(one: RanOperation, spec: DeviceSpec) -> tuple[Held, ...]:
    """What lies in L1 at the fullest moment of an operation: its circular buffers, and buffers, oldest first."""
    requests = [(circular.size_bytes, circular.cores) for circular in one.circular_buffers]
    addresses = place(requests, spec.l1).addresses
    return (
        *(
            Held(
                name=circular.name,
                kind=CIRCULAR,
                address=address,
                size_bytes=circular.size_bytes,
                cores=str(circular.cores),
                ranges=ranges_of(circular.cores),
            )
            for circular, address in zip(one.circular_buffers, addresses, strict=True)
        ),
        *(
            Held(
                name=buffer.name,
                kind=buffer.memory,
                address=buffer.address,
                size_bytes=buffer.bank_bytes,
                made=f"{buffer.function}, {buffer.where}" if buffer.where else buffer.function,
            )
            for buffer in one.buffers
        ),
    )


def _circular(name: str, size_bytes: int, cores: CoreRangeSet) -> LivingCircularBuffer:
    return LivingCircularBuffer(name=name, size_bytes=size_bytes, cores=str(cores))
