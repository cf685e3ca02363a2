"""The report on cycles, its table, and the launch overhead between operations."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import Lazy
from ops.launch import Launch, Replay, between_kernels_nanoseconds
from ops.passes.cycles import ASSUMPTIONS
from ttsim.report.advice import Advice, explain_advice
from ttsim.report.cycles import CallRun, CallTime, OperationTime, Totals, call_times, totals
from ttsim.report.explain import explain_call, explain_inclusion, not_counting, untimed_lines, where_measured
from ttsim.report.formatting import (
    TableColumn,
    count_of,
    cycles,
    heaviest,
    percent,
    short_name,
    table_lines,
    time,
    wrapped,
)
from ttsim.report.rows import Report

ERROR_SHARE: Final = 0.04  # mean, on tests outside the fit: docs/reference/cycles.md, Between operations
BASES: Final = {
    Replay.TRACE: "fitted to a public benchmark of dispatch",
    Replay.WARM_CACHE: "not validated; the host's time is that of one public run, without Python",
    Replay.FIRST_CALL: "not validated; binaries are copied, compiling is not counted",
}


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The launch overhead of all programs of a report for one way of launching."""

    reading: str  # Which way: "trace replay", "warm program cache" or "first call"
    between_nanoseconds: int  # Time without a running kernel, from the first command to the last kernel's end
    total_nanoseconds: int
    basis: str  # The source of the figure


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """The launch overhead of all programs of a report for each way of launching."""

    programs: int  # Launched programs; programs without a cycle model count with 0 cycles
    readings: tuple[LaunchTime, ...]  # Trace replay, warm program cache, first call; none if no program was launched
    error_share: float = ERROR_SHARE  # Mean error of a trace replay, if the assumptions hold
    assumes: tuple[str, ...] = ASSUMPTIONS  # Assumptions about programs that a plan does not state


def launch_times(
    launches: Sequence[Launch], kernel_nanoseconds: float, spec: DeviceSpec, replays: Collection[Replay] = BASES
) -> LaunchTimes:
    """The launch overhead of programs in order, whose kernels take `kernel_nanoseconds`.

    `replays` are the ways of launching to compute.
    """
    between = between_kernels_nanoseconds(launches, spec, replays) if launches else {}
    readings = (
        LaunchTime(replay.value, round(apart), round(kernel_nanoseconds + apart), BASES[replay])
        for replay, apart in between.items()
    )
    return LaunchTimes(len(launches), tuple(readings))


def launch_lines(launches: LaunchTimes) -> list[str]:
    """The line of a report about launches; empty if nothing was launched."""
    if not launches.readings:
        return []
    return [
        f"Between operations, in no figure above: {launch_summary(launches)} (not counting compiling). "
        f"Trace replays of a public benchmark are off by {percent(launches.error_share)} in the mean; the others are "
        "not validated."
    ]


def launch_summary(launches: LaunchTimes) -> str:
    """The dispatch overhead of each way of launching."""
    return ", ".join(f"{reading.reading} {time(reading.between_nanoseconds)}" for reading in launches.readings)


class Line(NamedTuple):
    """A line of the table: an operation of a call, or the whole call."""

    name: str
    cores: int
    of: OperationTime | Totals
    share: str = ""  # Of the call
    bound_by: str = ""


def _math(line: Line, share: float) -> str:
    """A share of the work of the matrix units as text; empty if they do no work."""
    return percent(share) if line.of.math.issued_flops else ""


def _rate(bytes_per_second: float) -> str:
    return f"{count_of(bytes_per_second)}B/s" if bytes_per_second else ""


CALL_TABLE: Final[Sequence[TableColumn[Line]]] = (
    TableColumn("operation", lambda line: short_name(line.name), words=True),
    TableColumn("cycles", lambda line: cycles(line.of.cycles)),
    TableColumn("time", lambda line: time(line.of.nanoseconds), goes=8),
    TableColumn("of call", lambda line: line.share, goes=9),
    TableColumn("bound by", lambda line: line.bound_by, words=True),
    TableColumn("cores", lambda line: str(line.cores), goes=7),
    TableColumn("math", lambda line: _math(line, line.of.math.utilization), goes=6),
    TableColumn("useful", lambda line: _math(line, line.of.math.useful_share), goes=5),
    TableColumn("DRAM", lambda line: _rate(line.of.traffic.dram_bytes_per_second), goes=4),
    TableColumn("network", lambda line: _rate(line.of.traffic.network_bytes_per_second), goes=3),
    TableColumn("uncontended", lambda line: cycles(line.of.cycles_without_contention), goes=2),
    TableColumn("of roof", lambda line: percent(line.of.roofline.share) if line.of.roofline.cycles else "", goes=1),
)


def call_lines(calls: Sequence[CallTime], width: int | None = None, most: int | None = None) -> list[str]:
    """The operations of each call, then their sum if there are several operations or several calls.

    `most` limits the operations of a call to the longest.
    """
    lines: list[Line] = []
    for call in calls:
        shown, _ = heaviest(call.operations, most, lambda op: op.cycles)
        lines += [Line(op.name, op.core_count, op, percent(op.share), op.bound_by) for op in shown]
        if len(calls) > 1 or len(call.operations) != 1:
            lines.append(Line(call.name, len(call.total.cores), call.total))
    return table_lines(CALL_TABLE, lines, width)


INCLUDES = (
    "kernel time of every device operation, from the first core's start to the last core's end",
    "operations run one after the other",
)
LEAVES_OUT = (
    "dispatch and launch of programs, and gaps between operations",
    "compiling kernels at the first call",
    "preparing weights and bias on the host",
    "copies between host and device",
)


@dataclass(frozen=True, kw_only=True, repr=False)
class CycleReport(Report):
    """The cycles of calls on a device.

    ``print(report)`` shows a table; all figures are fields, and ``to_json()`` has them under the same names.

    Attributes:
        device: Name of the device.
        clock_hz: Clock of the worker cores, in Hz.
        worker_cores: Cores of the whole grid.
        calls: The calls in order, each with its device operations.
        total: All calls together.
        launches: The dispatch overhead, which no other figure includes; computed when it is read.
        includes: What the cycles count.
        leaves_out: What the cycles do not count.
        advice: Changes that would make the calls faster; None if not requested.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> report = ttnn.estimate_cycles(ttnn.relu, tensor, device=device)
        >>> report.cycles == sum(operation.cycles for operation in report.operations)
        True
        >>> print(report.table(80).splitlines()[0])
        wormhole_n150: ... cycles ... at 1 GHz
        >>> report.to_json().startswith("{")
        True
    """

    FORMAT = 2

    device: str
    clock_hz: int
    worker_cores: int
    calls: tuple[CallTime, ...]
    total: Totals
    launches: Lazy[LaunchTimes] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    includes: tuple[str, ...] = INCLUDES
    leaves_out: tuple[str, ...] = LEAVES_OUT
    advice: Advice | None = None

    @property
    def cycles(self) -> int:
        """Of all calls."""
        return self.total.cycles

    @property
    def nanoseconds(self) -> float:
        """Of all calls."""
        return self.total.nanoseconds

    @property
    def operations(self) -> tuple[OperationTime, ...]:
        """The device operations of all calls, in order."""
        return tuple(operation for call in self.calls for operation in call.operations)

    @property
    def headline(self) -> str:
        """The cycles of the calls, in one line."""
        missing = not_counting([op for call in self.calls for op in call.untimed])
        error = self.total.error
        bar = "" if error.share is None else f" (error expected: {percent(error.share)}{where_measured(error)})"
        taken = f"{cycles(self.cycles)} cycles{bar}, {time(self.nanoseconds)} at {self.clock_hz / 1e9:g} GHz"
        return f"{self.device}: {taken}{missing}"

    def explain(self) -> str:
        """An explanation of the time and of what limits it, as text."""
        if not self.calls:
            return f"No call that takes cycles was made on {self.device}."
        paragraphs = [explain_call(call, self.device) for call in self.calls] + launch_lines(self.launches)
        advice = [] if self.advice is None else [explain_advice(self.advice)]
        return "\n".join([*paragraphs, *advice, explain_inclusion(self.includes, self.leaves_out)])

    def table(self, width: int | None = None) -> str:
        """A table with notes, in lines of `width` characters; columns that do not fit are dropped. None keeps all."""
        if not self.calls:
            return self.explain()
        untimed = (line for call in self.calls for line in untimed_lines(call))
        after = (*untimed, *launch_lines(self.launches), explain_inclusion(self.includes, self.leaves_out))
        below = (line for text in after for line in wrapped(text, width, indent=2))
        return "\n".join([*wrapped(self.headline, width, indent=2), *call_lines(self.calls, width), *below])


def cycle_report(calls: Sequence[CallRun], spec: DeviceSpec, kind: type[CycleReport] = CycleReport) -> CycleReport:
    """The report, an instance of `kind`, on calls that ran in sequence on a device."""
    result = call_times(calls)
    total = result[0].total if len(result) == 1 else totals(calls, spec)
    return kind(
        device=spec.name,
        clock_hz=spec.clock_hz,
        worker_cores=spec.grid.cores,
        calls=result,
        total=total,
        launches=lambda: launch_times([launch for call in calls for launch in call.launches], total.nanoseconds, spec),
    )
