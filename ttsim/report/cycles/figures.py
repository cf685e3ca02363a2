"""The figures of a report on cycles, as frozen values; `figures_of` computes them, writers lay them out.

Shares lie between 0 and 1. Cycles are those of the device's clock, estimates rounded to whole ones (`whole`).
"""

from dataclasses import dataclass

from device.errors import ArgumentError
from device.plan import Decision
from device.time.stages import Lazy
from ops.op_model import Detail
from ttsim.report.cycles.errors import ErrorBar, TotalError


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


@dataclass(frozen=True, kw_only=True)
class OperationTime:
    """One device operation.

    Attributes:
        tied_with: Stages that bind it just as well, as far as the model can tell. This, the facts, the stages and
            the groups are found out when asked for.
        facts: How it was planned: scheme, blocks, readers ...
        stages: Of the cores that end last.
        groups: All cores, the slowest first.
    """

    name: str  # As a graph capture shows it
    cycles: int  # From the first core's start to the last core's end
    nanoseconds: float  # The same in time
    share: float  # Of the call's cycles
    bound_by: str  # The stage that binds it
    tied_with: Lazy[tuple[str, ...]] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    facts: Lazy[tuple[Detail, ...]] = Lazy()  # noqa: RUF009
    error: ErrorBar  # How far its cycles are to be expected off
    core_count: int  # Cores that take part
    fidelity_phases: int  # 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    contention_cycles: int  # Part of `cycles` due to cores that share links, banks or receivers
    cycles_without_contention: int
    stages: Lazy[tuple[StageTime, ...]] = Lazy()  # noqa: RUF009
    groups: Lazy[tuple[CoreGroupTime, ...]] = Lazy()  # noqa: RUF009
    traffic: Traffic
    math: MathUse  # The matrix units
    roofline: Roofline  # What it could take at best

    def on_core(self, column: int, row: int) -> CoreGroupTime:
        """What one core does.

        Raises:
            ArgumentError: It takes no part.
        """
        for group in self.groups:
            if (column, row) in group.coordinates:
                return group
        raise ArgumentError(f"{self.name}: core {column}-{row} takes no part; {self.core_count} others do")


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


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Operations that ran one after the other, together.

    Attributes:
        stages: Of the slowest cores of each operation, added up by stage; computed when asked for.
        cores: Every core that took part, row by row; computed when asked for.
    """

    cycles: int
    nanoseconds: float  # The same in time
    contention_cycles: int  # Part of them due to contention
    cycles_without_contention: int
    stages: Lazy[tuple[StageTime, ...]] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    cores: Lazy[tuple[CoreTime, ...]] = Lazy()  # noqa: RUF009
    traffic: Traffic
    math: MathUse  # The matrix units; `utilization` is weighted by the cores and cycles of each operation
    roofline: Roofline  # The operations' rooflines added up; `bound` is what most of it is
    error: TotalError  # How far the cycles are to be expected off


@dataclass(frozen=True, slots=True, kw_only=True)
class UntimedOperation:
    """A device operation that ran and that no model knows."""

    name: str
    reason: str
    position: int  # Where it stands among the device operations of its call, timed or not, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """One call of a function."""

    name: str
    share: float  # Of the report's cycles
    total: Totals  # Its operations together
    operations: tuple[OperationTime, ...]
    untimed: tuple[UntimedOperation, ...] = ()  # Those that no model knows; no figure has them in
    decisions: tuple[Decision, ...] = ()  # What the planner chose for the caller, and what it came from

    @property
    def in_order(self) -> tuple[OperationTime | UntimedOperation, ...]:
        """All device operations that ran, those that no model knows at their places."""
        timed, untimed = iter(self.operations), {one.position: one for one in self.untimed}
        count = len(self.operations) + len(self.untimed)
        return tuple(untimed[place] if place in untimed else next(timed) for place in range(count))
