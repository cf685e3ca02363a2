"""What device operations and calls take: cycles, time, stages, cores, traffic, roofline, and expected errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, hypot
from typing import Final, NamedTuple

from device.errors import ArgumentError
from device.memory.memory_config import TILE
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from device.time.network import bandwidth
from device.time.stages import CoreGroupCycles, Lazy, MovedBytes, OperationCycles, Stage, StageCycles, nanoseconds
from ops.launch import Launch
from ops.op_model import Description, Detail
from ops.passes.cycles import TimedOperation, expected_error
from ttsim.report.rows import SOURCE, Column, Row, ValueT

NO_MEASUREMENT: Final = "no measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """How far the cycles of an operation are to be expected off."""

    share: float | None  # Mean absolute error on configurations that the fit had not seen; None without a measurement
    configurations: int  # How many were measured
    text: str  # Where the figure comes from, or why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalError:
    """How far the cycles of several operations are to be expected off."""

    share: float | None  # Of the cycles whose models were measured; None if none was
    unmeasured_share: float  # Of all cycles, those of operations without a measurement


def error_bar(description: Description, architecture: str) -> ErrorBar:
    """What is to be expected of an operation."""
    found = expected_error(description.measured_as, architecture) if description.measured_as else None
    if found is None:
        made = f"; composed of {description.composed_of}" if description.composed_of else ""
        return ErrorBar(share=None, configurations=0, text=f"{NO_MEASUREMENT}{made}")
    text = f"{description.measured_as}: mean of {found.configurations} configurations that the fit had not seen"
    if found.architecture != architecture:
        text += f", all on {found.architecture}: on {architecture} nothing was measured"
    return ErrorBar(share=found.share, configurations=found.configurations, text=text)


def total_error(parts: Sequence[tuple[str, int, ErrorBar]]) -> TotalError:
    """What is to be expected of operations that run one after the other.

    Args:
        parts: What each was measured as, its cycles and its error.
    """
    everything = sum(cycles for _, cycles, _ in parts)
    off: dict[str, list[float]] = {}
    measured = 0
    for kind, cycles, bar in parts:
        if bar.share is not None:
            measured += cycles
            off.setdefault(kind, []).append(bar.share * cycles)
    return TotalError(
        share=hypot(*map(fsum, off.values())) / measured if measured else None,
        unmeasured_share=1 - measured / everything if everything else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """One stage of a core, or of several operations together."""

    stage: str  # Its name: "reader", "math", "writer" ..
    does: str  # What it does in this operation, in words
    busy_cycles: int
    stall_cycles: int  # It waits for another stage; 0 where that is not modeled
    critical_cycles: int  # It is what the end waits for; over all stages these add up to the whole
    busy_share: float
    stall_share: float
    critical_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreGroupTime:
    """Cores that do the same work."""

    cores: str  # Which, as ttnn prints them
    # The same as rectangles: first column, first row, last column, last row
    ranges: tuple[tuple[int, int, int, int], ...]
    cycles: int  # From the start of the program to the end of their last stage
    share: float  # Of the operation's cycles
    stages: tuple[StageTime, ...]  # Of each of these cores, in the order of the pipeline

    @property
    def coordinates(self) -> tuple[tuple[int, int], ...]:
        """(column, row) of each core, rectangle by rectangle."""
        return tuple(
            (column, row)
            for left, top, right, bottom in self.ranges
            for row in range(top, bottom + 1)
            for column in range(left, right + 1)
        )

    @property
    def idle_share(self) -> float:
        """Of the operation's cycles, those after the end of their last stage."""
        return 1 - self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes moved, and how fast on average."""

    dram_read_bytes: int
    dram_written_bytes: int
    dram_bytes_per_second: float  # Both together
    dram_share: float  # That of the data sheet's rate
    network_bytes: int  # What leaves a core over a network; a multicast counts once
    network_bytes_per_second: float  # The same in time


@dataclass(frozen=True, slots=True, kw_only=True)
class MathUse:
    """What the matrix units do."""

    issued_flops: int  # Multiplications and additions they do, padding and inserted zeros included
    useful_flops: int  # Those that the result needs; for a call, those of its definition
    useful_share: float  # The latter of the former
    product_cycles: int  # Cycles that the tile products alone take, on all cores together
    utilization: float  # Those of the cycles of the cores that take part
    device_utilization: float  # Those of the cycles of all worker cores of the device
    flops_per_second: float  # Useful ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """The least cycles each resource of the device needs for the work, all of it busy all the time."""

    math_cycles: int  # The tile products, spread over all worker cores
    dram_cycles: int  # The bytes to and from DRAM, at the rate that is achieved when all goes well
    network_cycles: int  # The bytes between cores, with both networks of the cores that take part
    cycles: int  # The largest of the three
    bound: str  # Its name: "math", "DRAM" or "network"; "none" if all are 0
    share: float  # `cycles` of the estimated ones: how near the work comes to its roof
    issued_flops_per_dram_byte: float  # Arithmetic intensity; 0 without bytes to or from DRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTime:
    """One core over a call, or over all."""

    column: int
    row: int
    cycles: int  # From the start to the end of its own work, added up over the operations
    share: float  # Of all cycles: the rest it waits for other cores, or has nothing to do
    busy_cycles: int  # Of its busiest stage in each operation, added up
    busy_share: float  # The same, of all cycles
    stall_cycles: int  # Of the stage that waits most in each operation, added up; 0 where waiting is not modeled
    stall_share: float  # The same, of all cycles
    dram_bytes: int = 0  # It moves from and to DRAM; where a model does not tell cores apart, as many as the others
    network_bytes: int = 0  # That leave it over a network, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class UntimedOperation:
    """A device operation that ran and that no model knows."""

    name: str
    reason: str
    position: int  # Where it stands among the device operations of its call, timed or not, from 0


class Sums(NamedTuple):
    """What operations that ran one after the other do, added up; the roofs of each are its own."""

    cycles: int = 0  # Whole ones
    core_cycles: int = 0  # The same, of all cores that take part
    dram_read_bytes: int = 0
    dram_written_bytes: int = 0
    network_bytes: int = 0
    issued_flops: int = 0  # Of the matrix units
    product_cycles: int = 0  # Of all tile products; one takes `phase_cycles` for each fidelity phase
    math_roof: int = 0  # Least cycles of matrix units
    dram_roof: int = 0
    network_roof: int = 0
    roof: int = 0  # The largest of each operation's


def added(parts: Sequence[Sums]) -> Sums:
    """What all of them do."""
    return Sums(*map(sum, zip(*parts, strict=True)))


def traffic(sums: Sums, spec: DeviceSpec) -> Traffic:
    """Bytes moved."""
    seconds = nanoseconds(sums.cycles, spec.clock_hz) / 1e9
    rate = share_of(sums.dram_read_bytes + sums.dram_written_bytes, seconds)
    return Traffic(
        dram_read_bytes=sums.dram_read_bytes,
        dram_written_bytes=sums.dram_written_bytes,
        dram_bytes_per_second=rate,
        dram_share=rate / spec.dram.peak_bytes_per_second,
        network_bytes=sums.network_bytes,
        network_bytes_per_second=share_of(sums.network_bytes, seconds),
    )


def math_use(sums: Sums, spec: DeviceSpec, *, useful_flops: int) -> MathUse:
    """What the matrix units do."""
    return MathUse(
        issued_flops=sums.issued_flops,
        useful_flops=useful_flops,
        useful_share=share_of(useful_flops, sums.issued_flops),
        product_cycles=sums.product_cycles,
        utilization=share_of(sums.product_cycles, sums.core_cycles),
        device_utilization=share_of(sums.product_cycles, spec.grid.cores * sums.cycles),
        flops_per_second=share_of(useful_flops, nanoseconds(sums.cycles, spec.clock_hz) / 1e9),
    )


def roofline(sums: Sums) -> Roofline:
    """What is needed at least."""
    limits = {"math": sums.math_roof, "DRAM": sums.dram_roof, "network": sums.network_roof}
    return Roofline(
        math_cycles=sums.math_roof,
        dram_cycles=sums.dram_roof,
        network_cycles=sums.network_roof,
        cycles=sums.roof,
        bound=max(limits, key=lambda name: limits[name]) if sums.roof else "none",
        share=share_of(sums.roof, sums.cycles),
        issued_flops_per_dram_byte=share_of(sums.issued_flops, sums.dram_read_bytes + sums.dram_written_bytes),
    )


def share_of(part: float, whole: float) -> float:
    """A part of a whole; 0 of nothing."""
    return part / whole if whole else 0.0


DIGITS: Final = 6  # decimals of a cycle that a model is trusted with


def whole(cycles: float) -> int:
    """The nearest whole number of cycles; of two the even one."""
    if isinstance(cycles, int):
        return cycles
    return int(cycles) if cycles.is_integer() else round(round(cycles, DIGITS))


def whole_operation(timed: OperationCycles) -> OperationCycles:
    """An operation in whole cycles: no group of cores ends after it, and critical cycles still add up to its own."""
    cycles = whole(timed.cycles)
    return OperationCycles(
        cycles=cycles,
        groups=lambda: tuple(_whole_group(group, cycles) for group in timed.groups),
        slowest=_whole_group(timed.slowest, cycles),
        cores=lambda: timed.cores,
        working=lambda: timed.working,
        bound_by=timed.bound_by,
        dram_read_bytes=timed.dram_read_bytes,
        dram_written_bytes=timed.dram_written_bytes,
        network_bytes=timed.network_bytes,
        issued_flops=timed.issued_flops,
        useful_flops=timed.useful_flops,
        contention_cycles=min(cycles, whole(timed.contention_cycles)),
        moved=lambda: timed.moved,
    )


def _whole_group(group: CoreGroupCycles, most: int) -> CoreGroupCycles:
    cycles = min(most, whole(group.cycles))
    return CoreGroupCycles(cores=group.cores, cycles=cycles, stages=tuple(_whole_stages(group.stages)))


def _whole_stages(stages: Iterable[StageCycles]) -> Iterable[StageCycles]:
    """Critical cycles are rounded where they end on the path, one stage behind the other."""
    end, whole_end = 0.0, 0
    for one in stages:
        critical = 0
        if one.critical_cycles:
            end += one.critical_cycles
            critical = whole(end) - whole_end
            whole_end += critical
        yield StageCycles(
            one.stage,
            whole(one.busy_cycles),
            whole(one.stall_cycles) if one.stall_cycles else 0,
            critical,
        )


FLOPS_OF_A_PRODUCT = 2 * TILE**3
NETWORKS = 2
TIE_SHARE: Final = 0.05  # of an operation's cycles: stages nearer to each other than the model can tell apart
DOES: Final[Mapping[Stage, str]] = {  # whatever the operation
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


def tied_stages(stages: Sequence[StageTime], bound_by: str, cycles: int) -> tuple[str, ...]:
    """Stages that bind an operation as well as the one that is called so, the nearest first.

    They have at least half of its cycles on the critical path, and differ from them by at most `TIE_SHARE` of the
    operation's (what takes longer than the stage that binds, as the start may, binds nothing); where no path is known,
    busy cycles count.
    """
    walked = any(stage.critical_cycles for stage in stages)
    counted = {one.stage: one.critical_cycles if walked else one.busy_cycles for one in stages}
    most = counted.get(bound_by, 0)
    near = [
        name
        for name, own in counted.items()
        if name != bound_by and 2 * own >= most > 0 and abs(most - own) <= TIE_SHARE * cycles
    ]
    return tuple(sorted(near, key=lambda name: -counted[name]))


def stage_times(
    stages: Iterable[StageCycles], *, of_cycles: float, words: Mapping[Stage, str] = DOES
) -> tuple[StageTime, ...]:
    """Stages added up by their names, in the order of the pipeline, with their shares of some cycles.

    Args:
        words: What each does.
    """
    added: dict[Stage, tuple[int, int, int]] = {}
    for one in stages:
        busy, stall, critical = added.get(one.stage, (0, 0, 0))
        busy, stall = busy + whole(one.busy_cycles), stall + whole(one.stall_cycles)
        added[one.stage] = (busy, stall, critical + whole(one.critical_cycles))
    return tuple(
        StageTime(
            stage=stage.value,
            does=words[stage],
            busy_cycles=busy,
            stall_cycles=stall,
            critical_cycles=critical,
            busy_share=share_of(busy, of_cycles),
            stall_share=share_of(stall, of_cycles),
            critical_share=share_of(critical, of_cycles),
        )
        for stage, (busy, stall, critical) in ((one, added[one]) for one in Stage if one in added)
    )


def _group_time(group: CoreGroupCycles, of_cycles: int, words: Mapping[Stage, str]) -> CoreGroupTime:
    cores = group.cores.merged()
    return CoreGroupTime(
        cores=str(cores),
        ranges=tuple((one.start.x, one.start.y, one.end.x, one.end.y) for one in cores.ranges),
        cycles=whole(group.cycles),
        share=share_of(group.cycles, of_cycles),
        stages=stage_times(group.stages, of_cycles=of_cycles, words=words),
    )


def _core_times(operations: Sequence[OperationCycles], of_cycles: float) -> tuple[CoreTime, ...]:
    """Every core's cycles, added up; a core of several groups of an operation is there until the last of them ends."""
    added: dict[tuple[int, int], tuple[int, int, int]] = {}
    for operation in operations:
        own: dict[tuple[int, int], tuple[int, int, int]] = {}
        for group in operation.groups:
            took = (
                whole(group.cycles),
                max((whole(stage.busy_cycles) for stage in group.stages), default=0),
                max((whole(stage.stall_cycles) for stage in group.stages), default=0),
            )
            for core in group.cores.cores():
                at = (core.y, core.x)
                own[at] = max(own.get(at, took), took)
        for at, (cycles, busy, stall) in own.items():
            before = added.get(at, (0, 0, 0))
            added[at] = (before[0] + cycles, before[1] + busy, before[2] + stall)
    moved = _core_bytes(one for operation in operations for one in operation.moved)
    return tuple(
        CoreTime(
            column=column,
            row=row,
            cycles=cycles,
            share=share_of(cycles, of_cycles),
            busy_cycles=busy,
            busy_share=share_of(busy, of_cycles),
            stall_cycles=stall,
            stall_share=share_of(stall, of_cycles),
            dram_bytes=moved.get((row, column), (0, 0))[0],
            network_bytes=moved.get((row, column), (0, 0))[1],
        )
        for (row, column), (cycles, busy, stall) in sorted(added.items())
    )


def _core_bytes(moved: Iterable[MovedBytes]) -> dict[tuple[int, int], tuple[int, int]]:
    """Bytes of DRAM and of the networks by row and column, whole ones: the first cores have what does not divide."""
    added: dict[tuple[int, int], tuple[int, int]] = {}
    for one in moved:
        if not one.dram_bytes and not one.network_bytes:
            continue
        count = one.cores.num_cores()
        (dram, more_dram), (network, more_network) = divmod(one.dram_bytes, count), divmod(one.network_bytes, count)
        for number, core in enumerate(one.cores.cores()):
            before = added.get((core.y, core.x), (0, 0))
            added[core.y, core.x] = (
                before[0] + dram + (number < more_dram),
                before[1] + network + (number < more_network),
            )
    return added


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSpan:
    """What one core does in a device operation."""

    column: int
    row: int
    cycles: int  # From the start of the program to the end of the core's last stage


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """A device operation in nanoseconds; whole figures of an `OperationTime`."""

    kernel: int  # From the first core's start to the last core's end
    least: int  # Of the core that ends first
    mean: int  # Of all cores that take part
    ideal: int  # What its roofline allows
    products: int  # What the matrix units alone need for its products
    dram: int  # What DRAM alone needs for its bytes


LEAST_NANOSECONDS: Final = 1  # of a kernel: viewers take none for a measurement that failed


def kernel_nanoseconds(cycles: float, spec: DeviceSpec) -> int:
    """Cycles in whole nanoseconds; a kernel takes at least `LEAST_NANOSECONDS`."""
    return max(round(nanoseconds(cycles, spec.clock_hz)), LEAST_NANOSECONDS)


OperationColumn = Column["OperationTime", ValueT]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OperationTime(Row):
    """One device operation that a model knows."""

    timed: TimedOperation = field(metadata=SOURCE)  # What ran; its cycles are not None
    spec: DeviceSpec = field(metadata=SOURCE)
    call_cycles: int = field(metadata=SOURCE)  # Of all operations of its call that a model knows

    name = OperationColumn[str](lambda op: op.timed.name)  # As a graph capture shows it
    cycles = OperationColumn[int](
        lambda op: whole(op.taken.cycles)
    )  # From the first core's start to the last one's end
    nanoseconds = OperationColumn[float](lambda op: nanoseconds(op.cycles, op.spec.clock_hz))  # The same in time
    share = OperationColumn[float](lambda op: share_of(op.cycles, op.call_cycles))  # Of the call's cycles
    bound_by = OperationColumn[str](lambda op: op.taken.bound_by.value)  # The stage that binds it
    # Stages that bind it just as well, as far as the model can tell
    tied_with = OperationColumn[tuple[str, ...]](lambda op: tied_stages(op.slowest_stages, op.bound_by, op.cycles))
    facts = OperationColumn[tuple[Detail, ...]](lambda op: op.timed.description.facts)  # How it was planned
    error = OperationColumn[ErrorBar](lambda op: error_bar(op.timed.description, op.spec.arch))  # Expected
    core_count = OperationColumn[int](lambda op: op.taken.cores)  # Cores that take part
    # Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    fidelity_phases = OperationColumn[int](lambda op: op.timed.fidelity_phases)
    # Part of its cycles due to cores that share links, banks or receivers
    contention_cycles = OperationColumn[int](lambda op: whole(op.taken.contention_cycles))
    cycles_without_contention = OperationColumn[int](lambda op: op.cycles - op.contention_cycles)
    stages = OperationColumn[tuple[StageTime, ...]](  # Of the cores that end last
        lambda op: op.slowest_stages
    )
    groups = OperationColumn[tuple[CoreGroupTime, ...]](  # All cores, the slowest first
        lambda op: tuple(
            _group_time(group, op.cycles, op.words) for group in sorted(op.taken.groups, key=lambda one: -one.cycles)
        )
    )
    traffic = OperationColumn[Traffic](lambda op: traffic(op.sums, op.spec))
    math = OperationColumn[MathUse](lambda op: math_use(op.sums, op.spec, useful_flops=op.taken.useful_flops))
    roofline = OperationColumn[Roofline](lambda op: roofline(op.sums))  # What it could take at best
    # From and to DRAM, on average
    dram_bytes_per_cycle = OperationColumn[float](
        lambda op: share_of(op.sums.dram_read_bytes + op.sums.dram_written_bytes, op.cycles)
    )

    @cached_property
    def taken(self) -> OperationCycles:
        """Its cycles in whole ones."""
        assert self.timed.cycles is not None
        return whole_operation(self.timed.cycles)

    @cached_property
    def slowest_stages(self) -> tuple[StageTime, ...]:
        """Stages of the cores that end last."""
        return stage_times(self.taken.slowest.stages, of_cycles=self.cycles, words=self.words)

    @property
    def words(self) -> Mapping[Stage, str]:
        """What its stages do."""
        return {**DOES, **self.timed.description.stages}

    @cached_property
    def sums(self) -> Sums:
        """What it does; a tile product takes `phase_cycles` for each of its fidelity phases."""
        taken, spec = self.taken, self.spec
        phases = taken.issued_flops / FLOPS_OF_A_PRODUCT * max(self.fidelity_phases, 1)
        products = spec.compute.phase_cycles * phases
        roofs = (
            whole(products / spec.grid.cores),
            whole((taken.dram_read_bytes + taken.dram_written_bytes) / bandwidth(spec)),
            whole(taken.network_bytes / (NETWORKS * taken.cores * spec.noc.link_bytes_per_cycle)),
        )
        return Sums(
            self.cycles,
            taken.cores * self.cycles,
            taken.dram_read_bytes,
            taken.dram_written_bytes,
            taken.network_bytes,
            taken.issued_flops,
            whole(products),
            *roofs,
            max(roofs),
        )

    @cached_property
    def spans(self) -> tuple[CoreSpan, ...]:
        """Every core's part, row by row; a core of several groups is there until the last of them ends."""
        ends: dict[tuple[int, int], int] = {}
        for group in self.groups:
            for column, row in group.coordinates:
                ends[row, column] = max(ends.get((row, column), 0), group.cycles)
        return tuple(CoreSpan(column=column, row=row, cycles=ends[row, column]) for row, column in sorted(ends))

    @cached_property
    def kernel(self) -> KernelTime:
        """Its times in whole nanoseconds."""
        ends = [span.cycles for span in self.spans] or [self.cycles]
        return KernelTime(
            kernel=kernel_nanoseconds(self.cycles, self.spec),
            least=kernel_nanoseconds(min(ends), self.spec),
            mean=kernel_nanoseconds(sum(ends) / len(ends), self.spec),
            ideal=kernel_nanoseconds(self.roofline.cycles, self.spec),
            products=kernel_nanoseconds(self.roofline.math_cycles, self.spec),
            dram=kernel_nanoseconds(self.roofline.dram_cycles, self.spec),
        )

    def on_core(self, column: int, row: int) -> CoreGroupTime:
        """What one core does.

        Raises:
            ArgumentError: It takes no part.
        """
        for group in self.groups:
            if (column, row) in group.coordinates:
                return group
        raise ArgumentError(f"{self.name}: core {column}-{row} takes no part; {self.core_count} others do")


TotalsColumn = Column["Totals", ValueT]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Totals(Row):
    """Operations that ran one after the other, together."""

    operations: tuple[OperationTime, ...] = field(metadata=SOURCE)
    spec: DeviceSpec = field(metadata=SOURCE)
    useful_flops: int = field(metadata=SOURCE)  # Multiplications and additions of the calls' definitions

    cycles = TotalsColumn[int](lambda total: total.sums.cycles)
    nanoseconds = TotalsColumn[float](lambda total: nanoseconds(total.cycles, total.spec.clock_hz))  # The same in time
    # Part of the cycles due to contention
    contention_cycles = TotalsColumn[int](lambda total: sum(op.contention_cycles for op in total.operations))
    cycles_without_contention = TotalsColumn[int](lambda total: total.cycles - total.contention_cycles)
    stages = TotalsColumn[tuple[StageTime, ...]](  # Of the slowest cores of each operation, added up by stage
        lambda total: stage_times(
            (stage for op in total.operations for stage in op.taken.slowest.stages), of_cycles=total.cycles
        )
    )
    cores = TotalsColumn[tuple[CoreTime, ...]](  # Every core that took part, row by row
        lambda total: _core_times([op.taken for op in total.operations], total.cycles)
    )
    traffic = TotalsColumn[Traffic](lambda total: traffic(total.sums, total.spec))
    # The matrix units; `utilization` is weighted by the cores and cycles of each operation
    math = TotalsColumn[MathUse](lambda total: math_use(total.sums, total.spec, useful_flops=total.useful_flops))
    # The operations' rooflines added up; `bound` is what most of the sum is
    roofline = TotalsColumn[Roofline](lambda total: roofline(total.sums))
    error = TotalsColumn[TotalError](  # How far the cycles are to be expected off
        lambda total: total_error([(op.timed.description.measured_as, op.cycles, op.error) for op in total.operations])
    )

    @cached_property
    def sums(self) -> Sums:
        """What all operations do."""
        return added([op.sums for op in self.operations])


@dataclass(frozen=True, kw_only=True)
class CallRun:
    """A call that ran, and the device operations that it ran.

    Attributes:
        launches: What was launched, untimed operations included, in order; found out when asked for.
    """

    name: str
    ran: tuple[TimedOperation, ...]  # In order, those that no model knows among them
    spec: DeviceSpec
    # Multiplications and additions of its definition; None for the sum over the operations
    useful_flops: int | None = None
    decisions: tuple[Decision, ...] = ()  # What the planner chose for the caller
    launches: Lazy[tuple[Launch, ...]] = Lazy(lambda call: ())  # noqa: RUF009 (a descriptor, not a default)

    @cached_property
    def in_order(self) -> tuple[OperationTime | UntimedOperation, ...]:
        """All device operations that ran, those that no model knows at their places."""
        together = sum(whole(one.cycles.cycles) for one in self.ran if one.cycles is not None)
        return tuple(
            UntimedOperation(name=one.name, reason=one.reason, position=position)
            if one.cycles is None
            else OperationTime(timed=one, spec=self.spec, call_cycles=together)
            for position, one in enumerate(self.ran)
        )

    @cached_property
    def operations(self) -> tuple[OperationTime, ...]:
        """Those that a model knows."""
        return tuple(one for one in self.in_order if isinstance(one, OperationTime))

    @cached_property
    def untimed(self) -> tuple[UntimedOperation, ...]:
        """Those that no model knows; figures leave them out."""
        return tuple(one for one in self.in_order if isinstance(one, UntimedOperation))

    @cached_property
    def total(self) -> Totals:
        """Its operations together."""
        return totals([self], self.spec)


CallColumn = Column["CallTime", ValueT]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CallTime(Row):
    """One call of a function, in a report."""

    run: CallRun = field(metadata=SOURCE)
    report_cycles: int = field(metadata=SOURCE)

    name = CallColumn[str](lambda call: call.run.name)
    share = CallColumn[float](
        lambda call: share_of(call.run.total.cycles, call.report_cycles)
    )  # Of the report's cycles
    total = CallColumn[Totals](lambda call: call.run.total)  # Its operations together
    operations = CallColumn[tuple[OperationTime, ...]](lambda call: call.run.operations)
    # Those that no model knows; no figure has them in
    untimed = CallColumn[tuple[UntimedOperation, ...]](lambda call: call.run.untimed)
    # What the planner chose for the caller, and what it came from
    decisions = CallColumn[tuple[Decision, ...]](lambda call: call.run.decisions)


def call_times(calls: Sequence[CallRun]) -> tuple[CallTime, ...]:
    """The figures of each call of a report."""
    together = sum(call.total.cycles for call in calls)
    return tuple(CallTime(run=call, report_cycles=together) for call in calls)


def totals(calls: Sequence[CallRun], spec: DeviceSpec) -> Totals:
    """The figures of calls that ran one after the other; what a call without a definition needs, its operations say."""
    useful = (
        sum(op.taken.useful_flops for op in call.operations) if call.useful_flops is None else call.useful_flops
        for call in calls
    )
    return Totals(operations=tuple(op for call in calls for op in call.operations), spec=spec, useful_flops=sum(useful))
