"""Figures of device operations and calls: cycles, time, stages, cores, traffic, roofline, and expected errors."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import fsum, hypot
from typing import Any, Final, NamedTuple

from device.cores import CoreRangeSet
from device.errors import ArgumentError
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import CoreGroupCycles, Lazy, OperationCycles, Stage, StageCycles, nanoseconds
from ops.launch import Launch
from ops.op_model import Detail
from ops.passes.counts import ActionCounts, counts_of, counts_together
from ops.passes.cycles import TimedOperation, expected_error
from ops.passes.floors import product_cycles
from ttsim.report.energy import Energy, energy_of, energy_together
from ttsim.report.formatting import percent
from ttsim.report.rows import Column, Derived, Row

NO_MEASUREMENT: Final = "no measurement"
DIGITS: Final = 6  # significant decimals of a model's cycles
NETWORKS: Final = 2
TIE_SHARE: Final = 0.05  # of an operation's cycles: stages nearer to each other than the model can tell apart
LEAST_NANOSECONDS: Final = 1  # of a kernel: viewers take 0 for a failed measurement
DOES: Final[Mapping[Stage, str]] = {  # the same for every operation
    Stage.START: "kernels start",
    Stage.READER: "data is brought in",
    Stage.SECOND_READER: "the second processor brings data in",
    Stage.ACT_MULTICAST: "blocks of activations are sent on",
    Stage.WEIGHT_READER: "weights are brought in",
    Stage.WEIGHT_MULTICAST: "blocks of weights are sent on",
    Stage.TILIZE: "rows become tiles",
    Stage.UNPACK: "tiles are brought to the matrix unit",
    Stage.MATH: "the matrix unit multiplies",
    Stage.PACK: "results are packed into L1",
    Stage.BIAS: "the bias is added",
    Stage.UNTILIZE: "tiles become rows",
    Stage.WRITER: "data is written to where it belongs",
    Stage.NETWORK: "transfers wait for others on the networks",
    Stage.DRAM: "DRAM delivers or takes data",
}
Ranges = tuple[tuple[int, int, int, int], ...]  # rectangles: first column, first row, last column, last row
Core = tuple[int, int]  # column and row


def share_of(part: float, whole: float) -> float:
    """`part` / `whole`; 0 if `whole` is 0."""
    return part / whole if whole else 0.0


def kernel_nanoseconds(cycles: float, spec: DeviceSpec) -> int:
    """Cycles as whole nanoseconds, at least `LEAST_NANOSECONDS`."""
    return max(round(nanoseconds(cycles, spec.clock_hz)), LEAST_NANOSECONDS)


def ranges_of(cores: CoreRangeSet) -> Ranges:
    """Cores as rectangles."""
    return tuple((cores.start.x, cores.start.y, cores.end.x, cores.end.y) for cores in cores.merged().ranges)


def cores_in(ranges: Ranges) -> Iterator[Core]:
    """Every core of some rectangles, row by row."""
    for left, top, right, bottom in ranges:
        yield from ((column, row) for row in range(top, bottom + 1) for column in range(left, right + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """The expected error of an operation's cycles."""

    share: float | None  # Nine of ten configurations outside the fit lie within twice it; None without a measurement
    configurations: int  # How many were measured
    text: str  # Where the figure comes from, or why there is none


def error_bar(operation: TimedOperation, architecture: str) -> ErrorBar:
    """The expected error of an operation on an architecture, from rows of that architecture only."""
    error, composed_of = (
        expected_error(operation.kind, architecture, operation.place),
        operation.description.composed_of,
    )
    if error is None:
        composition = f"; composed of {composed_of}" if composed_of else ""
        return ErrorBar(share=None, configurations=0, text=f"{NO_MEASUREMENT}{composition}")
    measured = f"{error.configurations} configurations" if error.configurations > 1 else "one configuration"
    older = error.older_release
    seen = f"of the kernels of release {older}, not of today's" if older else "that the fit had not seen"
    text = f"{operation.kind} ({operation.place}): {measured} {seen}"
    return ErrorBar(share=error.share, configurations=error.configurations, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalError:
    """The expected error of several operations together."""

    share: float | None  # Error of the cycles with a measurement; None if there are none
    unmeasured_share: float  # Share of all cycles in operations without a measurement


def total_error(operations: Sequence[tuple[str, float, ErrorBar]]) -> TotalError:
    """The expected error of operations in sequence, each with its measured kind, its cycles or time, and its error.

    Errors of one kind are added linearly, errors of different kinds in quadrature.
    """
    off: defaultdict[str, list[float]] = defaultdict(list)
    measured = 0.0
    for kind, cycles, bar in operations:
        if bar.share is not None:
            off[kind].append(bar.share * cycles)
            measured += cycles
    cycles = sum(cycles for _, cycles, _ in operations)
    return TotalError(
        share=hypot(*map(fsum, off.values())) / measured if measured else None,
        unmeasured_share=1 - measured / cycles if cycles else 0.0,
    )


def whole(cycles: float) -> int:
    """Cycles rounded to the nearest integer, half to even."""
    if isinstance(cycles, int):
        return cycles
    return int(cycles) if cycles.is_integer() else round(round(cycles, DIGITS))


def whole_operation(timed: OperationCycles) -> OperationCycles:
    """An operation in whole cycles: no core group ends after the operation, and critical cycles add up exactly."""
    cycles = whole(timed.cycles)
    rounded: dict[str, Any] = {
        "cycles": cycles,
        "groups": lambda: tuple(_whole_group(group, cycles) for group in timed.groups),
        "slowest": lambda: _whole_group(timed.slowest, cycles),
        "contention_cycles": lambda: min(cycles, whole(timed.contention_cycles)),
    }
    names = ("cores", "working", "bound_by", "useful_flops", "moved", "core_cycles", "transfers", "tile_work")
    lazy = {name: partial(getattr, timed, name) for name in names}
    return OperationCycles(**{**vars(timed), **lazy, **rounded})


def _whole_group(group: CoreGroupCycles, most: int) -> CoreGroupCycles:
    cycles = min(most, whole(group.cycles))
    return CoreGroupCycles(cores=group.cores, cycles=cycles, stages=tuple(_whole_stages(group.stages)))


def _whole_stages(stages: Iterable[StageCycles]) -> Iterable[StageCycles]:
    """Rounds critical cycles at their ends on the path, one stage after the other."""
    end, whole_end = 0.0, 0
    for stage in stages:
        end += stage.critical_cycles
        critical = whole(end) - whole_end if stage.critical_cycles else 0
        whole_end += critical
        yield StageCycles(stage.stage, whole(stage.busy_cycles), whole(stage.stall_cycles), critical)


class StageTime(Row, figures="stage does busy_cycles stall_cycles critical_cycles"):
    """A stage of a core, or of several operations together; shares are relative to the operations' cycles."""

    of_cycles: float
    stage: str  # Its name: "reader", "math", "writer" ..
    does: str  # Its work in this operation, as text
    busy_cycles: int
    stall_cycles: int  # Cycles of waiting for another stage; 0 if waiting is not modeled
    critical_cycles: int  # Cycles on the critical path; over all stages these add up to the whole

    busy_share = Column[float](lambda stage: share_of(stage.busy_cycles, stage.of_cycles))
    stall_share = Column[float](lambda stage: share_of(stage.stall_cycles, stage.of_cycles))
    critical_share = Column[float](lambda stage: share_of(stage.critical_cycles, stage.of_cycles))


def stage_times(
    stages: Iterable[StageCycles], *, of_cycles: float, words: Mapping[Stage, str] = DOES
) -> tuple[StageTime, ...]:
    """Stages in whole cycles, summed by name in pipeline order, with shares of `of_cycles` and descriptions."""
    cycles: defaultdict[Stage, list[tuple[float, ...]]] = defaultdict(list)
    for stage, *own in stages:
        cycles[stage].append(tuple(own))
    sums = ((stage, zip(*cycles[stage], strict=True)) for stage in Stage if stage in cycles)
    return tuple(StageTime(of_cycles, stage.value, words[stage], *map(int, map(sum, own))) for stage, own in sums)


def tied_stages(stages: Sequence[StageTime], bound_by: str, cycles: int) -> tuple[str, ...]:
    """Stages that limit an operation about as much as its binding stage, the nearest first.

    A tied stage has at least half of the binding stage's cycles on the critical path, and differs by at most
    `TIE_SHARE` of the operation's cycles (a stage that takes longer than the binding stage, such as the start, does not
    count). Busy cycles are used if no critical path is known.
    """
    spent = spent_cycles(stages)
    most = spent.pop(bound_by, 0)
    near = [name for name, own in spent.items() if 2 * own >= most > 0 and abs(most - own) <= TIE_SHARE * cycles]
    return tuple(sorted(near, key=lambda name: -spent[name]))


def spent_cycles(stages: Sequence[StageTime]) -> dict[str, int]:
    """Critical cycles of each stage, or busy cycles if no critical path is known."""
    walked = any(stage.critical_cycles for stage in stages)
    return {stage.stage: stage.critical_cycles if walked else stage.busy_cycles for stage in stages}


class CoreGroupTime(Row):
    """Cores that do the same work."""

    group: CoreGroupCycles  # In whole cycles
    of_cycles: int
    words: Mapping[Stage, str]  # Descriptions of the stages

    cores = Column[str](lambda group: str(group.group.cores.merged()))  # As ttnn prints them
    ranges = Column[Ranges](lambda group: ranges_of(group.group.cores))
    cycles = Column[int](lambda group: group.group.cycles)  # From the start of the program to their last stage's end
    share = Column[float](lambda group: share_of(group.cycles, group.of_cycles))
    stages = Column[tuple[StageTime, ...]](  # Of each of these cores, in the order of the pipeline
        lambda group: stage_times(group.group.stages, of_cycles=group.of_cycles, words=group.words)
    )
    coordinates = Derived[tuple[Core, ...]](lambda group: tuple(cores_in(group.ranges)))  # Rectangle by rectangle
    idle_share = Derived[float](lambda group: 1 - group.share)  # Share of the operation's cycles after their end


class Sums(NamedTuple):
    """Sums of the work of operations in sequence; roofs are computed for each operation and added."""

    cycles: int  # Whole ones
    core_cycles: int  # Cycles times cores, added up
    dram_read_bytes: int
    dram_written_bytes: int
    network_bytes: int
    issued_flops: int  # Of the matrix units
    product_cycles: int  # Of all tile products; one takes `phase_cycles` for each fidelity phase
    math_roof: int  # Least cycles of matrix units
    dram_roof: int
    network_roof: int
    roof: int  # The largest of each operation's

    @property
    def dram_bytes(self) -> int:
        """Bytes read and written."""
        return self.dram_read_bytes + self.dram_written_bytes

    def rate(self, count: float, spec: DeviceSpec) -> float:
        """A count per second."""
        return share_of(count, nanoseconds(self.cycles, spec.clock_hz) / 1e9)


NOTHING: Final = (0,) * len(Sums._fields)


class Traffic(Row):
    """Bytes moved, and their average rates."""

    sums: Sums
    spec: DeviceSpec

    dram_read_bytes = Column[int](lambda row: row.sums.dram_read_bytes)
    dram_written_bytes = Column[int](lambda row: row.sums.dram_written_bytes)
    dram_bytes_per_second = Column[float](lambda row: row.sums.rate(row.sums.dram_bytes, row.spec))  # Read and written
    # Share of the data sheet's rate
    dram_share = Column[float](lambda row: row.dram_bytes_per_second / row.spec.dram.peak_bytes_per_second)
    network_bytes = Column[int](lambda row: row.sums.network_bytes)  # Between cores; a multicast counts once
    network_bytes_per_second = Column[float](lambda row: row.sums.rate(row.sums.network_bytes, row.spec))


class MathUse(Row, figures="issued_flops useful_flops"):
    """The work of the matrix units."""

    sums: Sums
    spec: DeviceSpec
    useful_flops: int  # Needed for the result; for a call, by its definition

    issued_flops = Column[int](lambda row: row.sums.issued_flops)  # With padding and inserted zeros
    useful_share = Column[float](lambda row: share_of(row.useful_flops, row.issued_flops))
    product_cycles = Column[int](lambda row: row.sums.product_cycles)  # Of tile products, on all cores together
    # Product cycles as a share of the cycles of the cores that take part, and of all worker cores of the device
    utilization = Column[float](lambda row: share_of(row.product_cycles, row.sums.core_cycles))
    device_utilization = Column[float](lambda row: share_of(row.product_cycles, row.spec.grid.cores * row.sums.cycles))
    flops_per_second = Column[float](lambda row: row.sums.rate(row.useful_flops, row.spec))  # Useful FLOP


class Roofline(Row):
    """The minimum cycles that each resource of the device needs for the work."""

    sums: Sums

    math_cycles = Column[int](lambda row: row.sums.math_roof)  # Tile products, spread over all worker cores
    dram_cycles = Column[int](lambda row: row.sums.dram_roof)  # Bytes to and from DRAM, at the best achieved rate
    # The bytes between cores, with both networks of the cores that take part
    network_cycles = Column[int](lambda row: row.sums.network_roof)
    cycles = Column[int](lambda row: row.sums.roof)  # The largest of the three
    # The resource that needs most cycles; "none" if no resource needs any
    bound = Column[str](lambda row: max(row.limits, key=row.limits.__getitem__) if row.sums.roof else "none")
    share = Column[float](lambda row: share_of(row.sums.roof, row.sums.cycles))  # `cycles` of the estimated cycles
    # Arithmetic intensity; 0 without bytes to or from DRAM
    issued_flops_per_dram_byte = Column[float](lambda row: share_of(row.sums.issued_flops, row.sums.dram_bytes))
    limits = Derived[dict[str, int]](  # The least cycles by resource
        lambda row: {"math": row.math_cycles, "DRAM": row.dram_cycles, "network": row.network_cycles}
    )


CORE_FIGURES: Final = "column row cycles share busy_cycles busy_share stall_cycles stall_share dram_bytes network_bytes"


class CoreTime(Row, figures=CORE_FIGURES, kw_only=True):
    """One core over a call, or over all calls; shares are relative to all cycles."""

    column: int
    row: int
    of_cycles: int
    cycles: int = 0  # From the start to the end of its work, summed over the operations
    busy_cycles: int = 0  # Cycles of its busiest stage, summed over the operations
    stall_cycles: int = 0  # Cycles of the stage that waits most, summed; 0 if waiting is not modeled
    dram_bytes: int = 0  # Bytes from and to DRAM; equal for all cores if a model does not tell them apart
    network_bytes: int = 0  # Bytes sent to other cores; equal for all cores if a model does not tell them apart
    circular_bytes: int = 0  # The most circular buffer bytes of an operation; only set for pages

    share = Column[float](lambda core: share_of(core.cycles, core.of_cycles))
    busy_share = Column[float](lambda core: share_of(core.busy_cycles, core.of_cycles))
    stall_share = Column[float](lambda core: share_of(core.stall_cycles, core.of_cycles))


def core_times(operations: Sequence[OperationCycles], of_cycles: int) -> tuple[CoreTime, ...]:
    """The sums of every core's whole cycles and bytes, row by row.

    A core in several groups of an operation ends with the last group. The first cores of a group get the remainder of
    bytes that do not divide evenly.
    """
    sums: defaultdict[Core, defaultdict[str, Any]] = defaultdict(lambda: defaultdict(int))
    for operation in operations:
        longest: dict[Core, tuple[float, float, float]] = {}
        for group in operation.groups:
            busy = max((stage.busy_cycles for stage in group.stages), default=0)
            took = (group.cycles, busy, max((stage.stall_cycles for stage in group.stages), default=0))
            for core in group.cores.cores():
                longest[core.y, core.x] = max(longest.get((core.y, core.x), took), took)
        for at, took in longest.items():
            for name, cycles in zip(("cycles", "busy_cycles", "stall_cycles"), took, strict=True):
                sums[at][name] += cycles
        for moved in operation.moved:
            count = moved.cores.num_cores()
            for name in ("dram_bytes", "network_bytes"):
                each, more = divmod(getattr(moved, name), count)
                for number, core in enumerate(moved.cores.cores() if each or more else ()):
                    sums[core.y, core.x][name] += each + (number < more)
    return tuple(
        CoreTime(column=column, row=row, of_cycles=of_cycles, **figures)
        for (row, column), figures in sorted(sums.items())
        if "cycles" in figures
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UntimedOperation:
    """A device operation that ran without a model of time."""

    name: str
    reason: str
    position: int  # Index among the device operations of its call, timed or not


class OperationTime(Row, kw_only=True):
    """A device operation with a model of time."""

    timed: TimedOperation  # Its cycles are not None
    spec: DeviceSpec
    call_cycles: int  # Cycles of all operations of its call that have a model

    name = Column[str](lambda op: op.timed.name)  # As a graph capture shows it
    cycles = Column[int](lambda op: whole(op.timed.cycles.cycles))  # From the first core's start to the last one's end
    nanoseconds = Column[float](lambda op: nanoseconds(op.cycles, op.spec.clock_hz))
    share = Column[float](lambda op: share_of(op.cycles, op.call_cycles))  # Of the call's cycles
    bound_by = Column[str](lambda op: op.taken.bound_by.value)  # The stage that binds it
    # Stages that the model cannot tell apart from the binding stage
    tied_with = Column[tuple[str, ...]](lambda op: tied_stages(op.stages, op.bound_by, op.cycles))
    facts = Column[tuple[Detail, ...]](lambda op: op.timed.description.facts)  # How it was planned
    error = Column[ErrorBar](lambda op: error_bar(op.timed, op.spec.arch))
    core_count = Column[int](lambda op: op.taken.cores)  # Cores that take part
    # Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    fidelity_phases = Column[int](lambda op: op.timed.fidelity_phases)
    # Part of its cycles due to cores that share links, banks or receivers
    contention_cycles = Column[int](lambda op: op.taken.contention_cycles)
    cycles_without_contention = Column[int](lambda op: op.cycles - op.contention_cycles)
    stages = Column[tuple[StageTime, ...]](  # Of the cores that end last
        lambda op: stage_times(op.taken.slowest.stages, of_cycles=op.cycles, words=op.words)
    )
    groups = Column[tuple[CoreGroupTime, ...]](  # All cores, the slowest first
        lambda op: tuple(
            CoreGroupTime(group, op.cycles, op.words)
            for group in sorted(op.taken.groups, key=lambda group: -group.cycles)
        )
    )
    traffic = Column[Traffic](lambda op: Traffic(op.sums, op.spec))
    math = Column[MathUse](lambda op: MathUse(op.sums, op.spec, op.taken.useful_flops))
    roofline = Column[Roofline](lambda op: Roofline(op.sums))  # Its lower bounds
    dram_bytes_per_cycle = Column[float](lambda op: share_of(op.sums.dram_bytes, op.cycles))  # From and to DRAM
    actions = Column[ActionCounts](lambda op: counts_of(op.timed, op.taken, op.spec))
    energy = Column[Energy](lambda op: energy_of(op.actions, op.cycles, op.spec))

    taken = Derived[OperationCycles](lambda op: whole_operation(op.timed.cycles))
    words = Derived[Mapping[Stage, str]](lambda op: {**DOES, **op.timed.description.stages})  # What its stages do
    sums = Derived[Sums](lambda op: _sums(op.taken, op.fidelity_phases, op.spec))
    limit_shares = Derived[dict[str, float]](  # The least cycles by resource, as shares of the operation's cycles
        lambda op: {name: share_of(cycles, op.cycles) for name, cycles in op.roofline.limits.items()}
    )
    issued_flops_per_second = Derived[float](lambda op: op.math.issued_flops / op.nanoseconds * 1e9)
    cycles_above_roof = Derived[int](lambda op: op.cycles - op.roofline.cycles)
    roof_nanoseconds = Derived[float](lambda op: nanoseconds(op.roofline.cycles, op.spec.clock_hz))
    ends = Derived[dict[Core, int]](lambda op: _ends(op.groups))
    # The cycle in which the first core ends, and the mean over all cores
    first_end = Derived[int](lambda op: min(op.ends.values(), default=op.cycles))
    mean_end = Derived[float](lambda op: sum(op.ends.values()) / len(op.ends) if op.ends else op.cycles)

    def on_core(self, column: int, row: int) -> CoreGroupTime:
        """The work of one core; raises ArgumentError if the core does not take part."""
        for group in self.groups:
            if (column, row) in group.coordinates:
                return group
        raise ArgumentError(f"{self.name}: core {column}-{row} takes no part; {self.core_count} others do")


def _sums(taken: OperationCycles, fidelity_phases: int, spec: DeviceSpec) -> Sums:
    """The work of an operation, and its roofs."""
    cycles, products = whole(taken.cycles), product_cycles(taken, fidelity_phases, spec)
    roofs = (
        whole(products / spec.grid.cores),
        whole(shared_cycles(spec, taken.dram_read_bytes + taken.dram_written_bytes)),
        whole(taken.network_bytes / (NETWORKS * taken.cores * spec.noc.link_bytes_per_cycle)),
    )
    moved = (taken.dram_read_bytes, taken.dram_written_bytes, taken.network_bytes)
    return Sums(cycles, taken.cores * cycles, *moved, taken.issued_flops, whole(products), *roofs, max(roofs))


def _ends(groups: Sequence[CoreGroupTime]) -> dict[Core, int]:
    """The cycle in which each core ends, row by row; a core of several groups ends with the last group."""
    end_cycles: dict[Core, int] = {}
    for group in groups:
        end_cycles.update((core, max(end_cycles.get(core, 0), group.cycles)) for core in group.coordinates)
    return dict(sorted(end_cycles.items(), key=lambda end: end[0][::-1]))


class Totals(Row, kw_only=True):
    """Operations in sequence, together."""

    operations: tuple[OperationTime, ...]
    spec: DeviceSpec
    useful_flops: int  # Multiplications and additions of the calls' definitions

    cycles = Column[int](lambda total: sum(op.cycles for op in total.operations))
    nanoseconds = Column[float](lambda total: nanoseconds(total.cycles, total.spec.clock_hz))
    contention_cycles = Column[int](lambda total: sum(op.contention_cycles for op in total.operations))
    cycles_without_contention = Column[int](lambda total: total.cycles - total.contention_cycles)
    roof_nanoseconds = Derived[float](lambda total: nanoseconds(total.roofline.cycles, total.spec.clock_hz))
    stages = Column[tuple[StageTime, ...]](  # Of the slowest cores of each operation, added up by stage
        lambda total: stage_times(
            (stage for op in total.operations for stage in op.taken.slowest.stages), of_cycles=total.cycles
        )
    )
    cores = Column[tuple[CoreTime, ...]](  # Every core that took part, row by row
        lambda total: core_times([op.taken for op in total.operations], total.cycles)
    )
    traffic = Column[Traffic](lambda total: Traffic(total.sums, total.spec))
    # The matrix units; `utilization` is weighted by the cores and cycles of each operation
    math = Column[MathUse](lambda total: MathUse(total.sums, total.spec, total.useful_flops))
    # The operations' rooflines added up; `bound` is the largest part of the sum
    roofline = Column[Roofline](lambda total: Roofline(total.sums))
    error = Column[TotalError](
        lambda total: total_error([(op.timed.kind, op.cycles, op.error) for op in total.operations])
    )
    actions = Column[ActionCounts](lambda total: counts_together(op.actions for op in total.operations))
    energy = Column[Energy](lambda total: energy_together(op.energy for op in total.operations))
    sums = Derived[Sums](
        lambda total: Sums(*map(sum, zip(NOTHING, *(op.sums for op in total.operations), strict=True)))
    )


@dataclass(frozen=True, kw_only=True)
class CallRun:
    """A call that ran, and its device operations."""

    name: str
    ran: tuple[TimedOperation, ...]  # In order, with and without a model
    spec: DeviceSpec
    # Multiplications and additions of its definition; None for the sum over the operations
    useful_flops: int | None = None
    decisions: tuple[Decision, ...] = ()  # The planner's choices
    # What was launched, untimed operations included, in order; computed when it is read
    launches: Lazy[tuple[Launch, ...]] = Lazy(lambda call: ())  # noqa: RUF009 (a descriptor, not a default)

    @cached_property
    def in_order(self) -> tuple[OperationTime | UntimedOperation, ...]:
        """All device operations that ran, in order, with and without a model."""
        together = sum(whole(op.cycles.cycles) for op in self.ran if op.cycles is not None)
        return tuple(
            UntimedOperation(name=op.name, reason=op.reason, position=position)
            if op.cycles is None
            else OperationTime(timed=op, spec=self.spec, call_cycles=together)
            for position, op in enumerate(self.ran)
        )

    operations = Derived[tuple[OperationTime, ...]](  # Those with a model
        lambda call: tuple(op for op in call.in_order if isinstance(op, OperationTime))
    )
    untimed = Derived[tuple[UntimedOperation, ...]](  # Those without a model, which figures leave out
        lambda call: tuple(op for op in call.in_order if isinstance(op, UntimedOperation))
    )
    total = Derived[Totals](lambda call: totals([call], call.spec))


def totals(calls: Sequence[CallRun], spec: DeviceSpec) -> Totals:
    """The figures of calls in sequence; a call without a FLOP count has the FLOPs of its operations."""
    useful = (
        sum(op.taken.useful_flops for op in call.operations) if call.useful_flops is None else call.useful_flops
        for call in calls
    )
    return Totals(operations=tuple(op for call in calls for op in call.operations), spec=spec, useful_flops=sum(useful))


MOST_BINDING: Final = 3  # stages in a text


def bound_cycles(total: Totals) -> Counter[str]:
    """The cycles of device operations by their binding stage."""
    spent = Counter[str]()
    for op in total.operations:
        spent[op.bound_by] += op.cycles
    return spent


def binding(spent: Counter[str]) -> str:
    """The binding stages with most cycles and their shares: "network 52.0 %, unpack 31.0 %"; empty without cycles."""
    most = [(stage, cycles) for stage, cycles in spent.most_common(MOST_BINDING) if cycles]
    return ", ".join(f"{stage} {percent(share_of(cycles, spent.total()))}" for stage, cycles in most)


class CallTime(Row, kw_only=True):
    """One call of a function, in a report."""

    run: CallRun
    report_cycles: int

    name = Column[str](lambda call: call.run.name)
    share = Column[float](lambda call: share_of(call.run.total.cycles, call.report_cycles))
    total = Column[Totals](lambda call: call.run.total)  # Its operations together
    operations = Column[tuple[OperationTime, ...]](lambda call: call.run.operations)
    # Operations without a model, which no figure includes
    untimed = Column[tuple[UntimedOperation, ...]](lambda call: call.run.untimed)
    decisions = Column[tuple[Decision, ...]](lambda call: call.run.decisions)  # The planner's choices and their reasons


def call_times(calls: Sequence[CallRun]) -> tuple[CallTime, ...]:
    """The figures of each call of a report."""
    together = sum(call.total.cycles for call in calls)
    return tuple(CallTime(run=call, report_cycles=together) for call in calls)
