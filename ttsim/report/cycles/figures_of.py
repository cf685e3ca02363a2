"""Every figure of a report on cycles, computed once, from what the readings of a plan say.

Operations run one after the other, as on the device: figures of a call are sums. `CycleReport` is what users get.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from device.memory.memory_config import TILE
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from device.time.network import bandwidth
from device.time.stages import CoreGroupCycles, Lazy, MovedBytes, OperationCycles, Stage, StageCycles, nanoseconds
from ops.launch import Launch
from ops.op_model import NOTHING_TOLD, Description
from ttsim.report.cycles.errors import error_bar, total_error
from ttsim.report.cycles.figures import (
    CallTime,
    CoreGroupTime,
    CoreTime,
    OperationTime,
    StageTime,
    Totals,
    UntimedOperation,
)
from ttsim.report.cycles.sums import Sums, added, math_use, roofline, share_of, traffic
from ttsim.report.cycles.whole import whole

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationReading:
    """A device operation that ran, and what it takes."""

    name: str
    cycles: OperationCycles  # The reading of cycles, in whole ones (`whole_operation`)
    fidelity_phases: int = 0  # Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    account: Description = NOTHING_TOLD  # What its program tells of it

    @property
    def product_phases(self) -> float:
        """Fidelity phases of all its tile products."""
        return self.cycles.issued_flops / FLOPS_OF_A_PRODUCT * max(self.fidelity_phases, 1)


@dataclass(frozen=True, kw_only=True)
class TimedCall:
    """A call and the device operations that it ran.

    Attributes:
        launches: What was launched, untimed operations included, in order; found out when asked for.
    """

    name: str
    operations: tuple[OperationReading, ...]
    untimed: tuple[UntimedOperation, ...] = ()  # Those that no model knows; figures leave them out
    # Multiplications and additions of its definition; None for the sum over the operations
    useful_flops: int | None = None
    decisions: tuple[Decision, ...] = ()  # What the planner chose for the caller
    launches: Lazy[tuple[Launch, ...]] = Lazy(lambda call: ())  # noqa: RUF009 (a descriptor, not a default)

    def figures(self, spec: DeviceSpec) -> tuple[Totals, tuple[OperationTime, ...]]:
        """Those of all its operations together, and of each; worked out once for a device."""
        known: tuple[DeviceSpec, Totals, tuple[OperationTime, ...]] | None = self.__dict__.get("known")
        if known is None or known[0] is not spec:
            total = totals([self], spec)
            each = tuple(operation_time(one, spec, of_cycles=total.cycles) for one in self.operations)
            known = self.__dict__["known"] = (spec, total, each)
        return known[1:]


def call_times(calls: Sequence[TimedCall], spec: DeviceSpec) -> tuple[CallTime, ...]:
    """The figures of each call."""
    made = [call.figures(spec) for call in calls]
    everything = sum(total.cycles for total, _ in made)
    return tuple(
        CallTime(
            name=call.name,
            share=share_of(total.cycles, everything),
            total=total,
            operations=operations,
            untimed=call.untimed,
            decisions=call.decisions,
        )
        for call, (total, operations) in zip(calls, made, strict=True)
    )


def operation_time(operation: OperationReading, spec: DeviceSpec, *, of_cycles: float) -> OperationTime:
    """The figures of one operation.

    Args:
        operation: What ran.
        of_cycles: Cycles of the call, for its share.
    """
    timed, sums = operation.cycles, sums_of(operation, spec)
    return OperationTime(
        name=operation.name,
        cycles=whole(timed.cycles),
        nanoseconds=nanoseconds(timed.cycles, spec.clock_hz),
        share=share_of(timed.cycles, of_cycles),
        bound_by=timed.bound_by.value,
        tied_with=lambda: tied_stages(_stages_of(operation), timed.bound_by.value, whole(timed.cycles)),
        facts=lambda: operation.account.facts,
        error=error_bar(operation.account, spec.arch),
        core_count=timed.cores,
        fidelity_phases=operation.fidelity_phases,
        contention_cycles=whole(timed.contention_cycles),
        cycles_without_contention=whole(timed.cycles - timed.contention_cycles),
        stages=partial(_stages_of, operation),
        groups=partial(_group_times, operation),
        traffic=traffic(sums, spec),
        math=math_use(sums, spec, useful_flops=timed.useful_flops),
        roofline=roofline(sums),
    )


def totals(calls: Sequence[TimedCall], spec: DeviceSpec) -> Totals:
    """The figures of calls that ran one after the other."""
    operations = [operation for call in calls for operation in call.operations]
    sums = added([sums_of(operation, spec) for operation in operations])
    cycles = sums.cycles
    contention = sum(whole(operation.cycles.contention_cycles) for operation in operations)
    return Totals(
        cycles=cycles,
        nanoseconds=nanoseconds(cycles, spec.clock_hz),
        contention_cycles=contention,
        cycles_without_contention=cycles - contention,
        stages=lambda: stage_times(
            (stage for operation in operations for stage in operation.cycles.slowest.stages), of_cycles=cycles
        ),
        cores=partial(_core_times, operations, cycles),
        traffic=traffic(sums, spec),
        math=math_use(sums, spec, useful_flops=sum(_useful_flops(call) for call in calls)),
        roofline=roofline(sums),
        error=total_error(
            [
                (one.account.measured_as, whole(one.cycles.cycles), error_bar(one.account, spec.arch))
                for one in operations
            ]
        ),
    )


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


def sums_of(operation: OperationReading, spec: DeviceSpec) -> Sums:
    """What one operation does."""
    timed, cycles = operation.cycles, whole(operation.cycles.cycles)
    products = spec.compute.phase_cycles * operation.product_phases
    roofs = (
        whole(products / spec.grid.cores),
        whole((timed.dram_read_bytes + timed.dram_written_bytes) / bandwidth(spec)),
        whole(timed.network_bytes / (NETWORKS * timed.cores * spec.noc.link_bytes_per_cycle)),
    )
    return Sums(
        cycles,
        timed.cores * cycles,
        timed.dram_read_bytes,
        timed.dram_written_bytes,
        timed.network_bytes,
        timed.issued_flops,
        whole(products),
        *roofs,
        max(roofs),
    )


def _words(operation: OperationReading) -> dict[Stage, str]:
    """What its stages do."""
    return {**DOES, **operation.account.stages}


def _stages_of(operation: OperationReading) -> tuple[StageTime, ...]:
    """Those of the cores that end last."""
    timed = operation.cycles
    return stage_times(timed.slowest.stages, of_cycles=timed.cycles, words=_words(operation))


def _group_times(operation: OperationReading) -> tuple[CoreGroupTime, ...]:
    timed, words = operation.cycles, _words(operation)
    groups = sorted(timed.groups, key=lambda group: -group.cycles)
    return tuple(_group_time(group, whole(timed.cycles), words) for group in groups)


def _group_time(group: CoreGroupCycles, of_cycles: int, words: Mapping[Stage, str]) -> CoreGroupTime:
    cores = group.cores.merged()
    return CoreGroupTime(
        cores=str(cores),
        ranges=tuple((one.start.x, one.start.y, one.end.x, one.end.y) for one in cores.ranges),
        cycles=whole(group.cycles),
        share=share_of(group.cycles, of_cycles),
        stages=stage_times(group.stages, of_cycles=of_cycles, words=words),
    )


def _core_times(operations: Sequence[OperationReading], of_cycles: float) -> tuple[CoreTime, ...]:
    """Every core's cycles, added up; a core of several groups of an operation is there until the last of them ends."""
    added: dict[tuple[int, int], tuple[int, int, int]] = {}
    for operation in operations:
        own: dict[tuple[int, int], tuple[int, int, int]] = {}
        for group in operation.cycles.groups:
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
    moved = _core_bytes(one for operation in operations for one in operation.cycles.moved)
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


def _useful_flops(call: TimedCall) -> int:
    if call.useful_flops is not None:
        return call.useful_flops
    return sum(operation.cycles.useful_flops for operation in call.operations)
