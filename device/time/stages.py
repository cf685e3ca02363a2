"""The cycles of a device operation, as a report shows them.

A *stage* is a part of a core that works by itself and waits for others at circular buffers and semaphores: a data
movement processor, the unpackers, the matrix unit, the packer, or a network or memory that several cores share. Cores
that do the same work are timed once, as a group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, NamedTuple, TypeVar, overload

from device.cores import CoreCoord, CoreRangeSet
from device.time.network import Ways

ValueT = TypeVar("ValueT")


class Lazy(Generic[ValueT]):
    """A field of a frozen dataclass whose value is given, or computed by ``derive`` at the first access.

    The class has no slots: a slot of the field's name would hide this descriptor. Copying, comparing and writing the
    dataclass access the field, and so find the value. With ``derive`` None, the value has to be given.
    """

    def __init__(self, derive: Callable[[Any], ValueT] | None = None) -> None:
        self.derive = derive

    def __set_name__(self, owner: type, name: str) -> None:
        """Stores the name of the value."""
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Lazy[ValueT]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> ValueT: ...

    def __get__(self, instance: object | None, owner: type) -> "ValueT | Lazy[ValueT]":
        """The value, computed once; on the class this field, which marks a derived value.

        Raises:
            AttributeError: On the class, because the field has no default.
        """
        if instance is None:
            if self.derive is None:
                raise AttributeError(self.name)
            return self
        value = instance.__dict__[self.name]
        if value is self and self.derive is not None:
            value = instance.__dict__[self.name] = self.derive(instance)
        elif callable(value):
            value = instance.__dict__[self.name] = value()
        result: ValueT = value
        return result

    def __set__(self, instance: object, value: ValueT | Callable[[], ValueT]) -> None:
        """Stores a given value; the dataclass is frozen, so only its constructor calls this."""
        instance.__dict__[self.name] = value


class Stage(StrEnum):
    """Parts of a core, or resources that cores share, that can bind an operation; a report prints the value."""

    START = "start"
    READER = "reader"
    SECOND_READER = "second reader"
    ACT_MULTICAST = "activation multicast"
    WEIGHT_READER = "weight reader"
    WEIGHT_MULTICAST = "weight multicast"
    TILIZE = "tilize"
    UNPACK = "unpack"
    MATH = "math"
    PACK = "pack"
    BIAS = "bias"
    UNTILIZE = "untilize"
    WRITER = "writer"
    NETWORK = "network"
    DRAM = "dram"

    __hash__ = str.__hash__  # that of an enumeration looks its name up; stages are keys of all that is timed


SHARED: Final = (Stage.DRAM, Stage.NETWORK)  # stages in which a core only waits


class StageCycles(NamedTuple):
    """One stage of one core."""

    stage: Stage
    busy_cycles: float
    # Cycles it waits for another stage between its first and its last work; 0 if that is not modeled
    stall_cycles: float = 0.0
    # Cycles of it on the critical path, which add up to the operation's over all stages; 0 if not known
    critical_cycles: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroupCycles:
    """Cores with the same work."""

    cores: CoreRangeSet
    cycles: float  # From the start of the program to the end of the last stage of these cores
    stages: tuple[StageCycles, ...]  # In the order of the pipeline


class MovedBytes(NamedTuple):
    """Bytes that some cores move in equal parts."""

    cores: CoreRangeSet
    dram_bytes: int  # From and to DRAM, by all of them
    network_bytes: int  # That they send to other cores (a multicast counts once), likewise


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes that all cores together move over a network, from one kind of node to another."""

    network: int  # 0: right, then down; 1: up, then left
    sent_bytes: int  # That leave their sources; a multicast counts once
    link_bytes: int  # Bytes times links: every link that a byte passes counts it
    taken_bytes: int  # That are written where they arrive: of a multicast by every receiver
    from_dram: bool = False  # Banks of DRAM send them; otherwise the L1 of cores
    to_dram: bool = False  # Banks of DRAM take them; otherwise the L1 of cores
    # The ways that they take, worked out when they are asked for; None where it is not known where the banks are
    ways: Callable[[], Ways] | None = field(default=None, compare=False)


class TileWork(NamedTuple):
    """The work of all cores together between their L1 and their registers, and within their L1."""

    unpacked_tiles: int = 0  # That unpackers read from L1
    unpacked_bytes: int = 0
    packed_tiles: int = 0  # That packers write to L1
    packed_bytes: int = 0
    copied_bytes: int = 0  # That data movement processors copy from the L1 of a core to that same L1


class CoreCycles(NamedTuple):
    """Whole cycles of all cores of an operation together."""

    ended: int  # From the start of the program until the work of each core ends
    busy: int  # In which the busiest stage of each core works, not counting what cores share


def work_together(parts: Iterable[TileWork]) -> TileWork:
    """The work of several parts of an operation."""
    return TileWork(*map(sum, zip(TileWork(), *parts, strict=True)))


def _slowest(operation: "OperationCycles") -> CoreGroupCycles:
    return max(operation.groups, key=lambda group: group.cycles)


def _core_count(operation: "OperationCycles") -> int:
    return sum(group.cores.num_cores() for group in operation.groups)


def _core_cycles(operation: "OperationCycles") -> CoreCycles:
    """Cycles of all cores; a core in several groups counts with the group that ends last."""
    spent: dict[CoreCoord, CoreCycles] = {}
    for group in operation.groups:
        own = [stage.busy_cycles for stage in group.stages if stage.stage not in SHARED]
        each = CoreCycles(round(group.cycles), round(min(max(own, default=0.0), group.cycles)))
        if len(operation.groups) == 1:
            count = group.cores.num_cores()
            return CoreCycles(count * each.ended, count * each.busy)
        for core in group.cores.cores():
            spent[core] = max(spent.get(core, each), each)
    return CoreCycles(sum(each.ended for each in spent.values()), sum(each.busy for each in spent.values()))


def _working(operation: "OperationCycles") -> frozenset[Stage]:
    return frozenset(stage.stage for group in operation.groups for stage in group.stages if stage.busy_cycles > 0)


def _between_cores(operation: "OperationCycles") -> int:
    return sum(each.sent_bytes for each in operation.transfers or () if not (each.from_dram or each.to_dram))


def _moved_evenly(operation: "OperationCycles") -> tuple[MovedBytes, ...]:
    cores = CoreRangeSet([core_range for group in operation.groups for core_range in group.cores.ranges]).merged()
    dram_bytes = operation.dram_read_bytes + operation.dram_written_bytes
    return (MovedBytes(cores, dram_bytes, operation.network_bytes),)


@dataclass(frozen=True, kw_only=True)
class OperationCycles:
    """One device operation.

    Attributes:
        groups: Groups of cores with the same work; the slowest group determines ``cycles``.
        slowest: The first of the groups that end last. This, the next two and the binding stage are derived from the
            groups unless given; a copy with other groups must set them again.
        cores: Cores that take part.
        working: Stages that work on any core.
        moved: The bytes above by core; equal for all cores if a model does not distinguish cores.
        core_cycles: Cycles of all cores together.
        transfers: The transfers over the networks; None if a model only knows DRAM bytes.
        tile_work: The data that unpackers, packers and processors move within cores; None if a model does not count it.
    """

    cycles: float  # Kernel cycles: from the first core's start to the last core's end; dispatch is not in it
    groups: Lazy[tuple[CoreGroupCycles, ...]] = Lazy()
    slowest: Lazy[CoreGroupCycles] = Lazy(_slowest)
    cores: Lazy[int] = Lazy(_core_count)
    working: Lazy[frozenset[Stage]] = Lazy(_working)
    # The stage with most cycles on the critical path, or the busiest where that path is not known
    bound_by: Lazy[Stage] = Lazy(lambda operation: binding_stage(operation.slowest.stages))
    dram_read_bytes: int = 0  # Bytes read from DRAM, by all cores
    dram_written_bytes: int = 0  # Bytes written to DRAM, by all cores
    # Bytes that cores send to other cores (a multicast counts once); what goes from and to DRAM is counted above
    network_bytes: Lazy[int] = Lazy(_between_cores)
    issued_flops: int = 0  # Multiplications and additions that the matrix units do, padding and inserted zeros included
    useful_flops: Lazy[int] = Lazy(lambda operation: 0)  # Those that the result needs
    # Part of ``cycles`` that is due to cores sharing links, banks or receivers
    contention_cycles: Lazy[float] = Lazy(lambda operation: 0.0)
    moved: Lazy[tuple[MovedBytes, ...]] = Lazy(_moved_evenly)
    core_cycles: Lazy[CoreCycles] = Lazy(_core_cycles)
    transfers: Lazy[tuple[Transfer, ...] | None] = Lazy(lambda operation: None)
    tile_work: Lazy[TileWork | None] = Lazy(lambda operation: None)


def binding_stage(stages: Iterable[StageCycles]) -> Stage:
    """The stage with most cycles on the critical path; among equals the busiest, then the first."""
    return max(stages, key=lambda stage: (stage.critical_cycles, stage.busy_cycles)).stage


def nanoseconds(cycles: float, clock_hz: int) -> float:
    """Converts cycles to nanoseconds; the only function that does."""
    return cycles / clock_hz * 1e9
