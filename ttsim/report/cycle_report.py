"""The report on cycles that users get, with its table and the launch overhead between operations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Lazy
from ops.launch import Launch, Replay, between_kernels_nanoseconds
from ops.passes.cycles import ASSUMPTIONS
from ttsim.report.advice import Advice, explain_advice
from ttsim.report.cycles import CallRun, CallTime, OperationTime, Totals, call_times, totals
from ttsim.report.explain import explain_call, explain_inclusion, not_counting, untimed_lines, where_measured
from ttsim.report.formatting import count_of, cycles, fitted, percent, short_name, terminal_width, text, time, wrapped
from ttsim.report.rows import as_dict

ERROR_SHARE: Final = 0.04  # mean, on tests that the fit has not seen: docs/cycles.md, Between operations
BASES: Final = {
    Replay.TRACE: "fitted to a public benchmark of dispatch",
    Replay.WARM_CACHE: "not validated; the host's time is that of one public run, without Python",
    Replay.FIRST_CALL: "not validated; binaries are copied, compiling is not counted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTime:
    """The programs of a report in one queue, launched in one way."""

    reading: str  # Which way: "trace replay", "warm program cache" or "first call"
    between_nanoseconds: int  # From the first command to the last kernel's end, what no kernel fills
    total_nanoseconds: int
    basis: str  # What stands behind the figure


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTimes:
    """Launch and dispatch of all programs of a report."""

    programs: int  # How many were launched; those without a model of their cycles count as if they took none
    readings: tuple[LaunchTime, ...]  # Trace replay, warm program cache, first call; none if no program was launched
    error_share: float = ERROR_SHARE  # Mean error of a trace replay, as far as programs are as assumed
    assumes: tuple[str, ...] = ASSUMPTIONS  # What is assumed of programs where a plan does not say it


def launch_times(launches: Sequence[Launch], kernel_nanoseconds: float, spec: DeviceSpec) -> LaunchTimes:
    """The launches of a report, in order.

    Args:
        launches: The programs of all its calls.
        kernel_nanoseconds: What their kernels take.
    """
    between = between_kernels_nanoseconds(launches, spec)
    readings = [
        LaunchTime(
            reading=replay.value,
            between_nanoseconds=round(between[replay]),
            total_nanoseconds=round(kernel_nanoseconds + between[replay]),
            basis=basis,
        )
        for replay, basis in (BASES.items() if launches else ())
    ]
    return LaunchTimes(programs=len(launches), readings=tuple(readings))


def launch_lines(launches: LaunchTimes) -> list[str]:
    """The line of a report; none if nothing was launched."""
    if not launches.readings:
        return []
    return [
        f"Between operations, in no figure above: {launch_summary(launches)} (not counting compiling). "
        f"Trace replays of a public benchmark are off by {percent(launches.error_share)} in the mean; the others are "
        "not validated."
    ]


def launch_summary(launches: LaunchTimes) -> str:
    """What passes between operations, in each reading."""
    return ", ".join(f"{one.reading} {time(one.between_nanoseconds)}" for one in launches.readings)


HEADINGS = ("operation", "cycles", "time", "of call", "bound by", "cores", "math", "useful", "DRAM", "network",
            "uncontended", "of roof")  # fmt: skip
WORDS = ("operation", "bound by")
LEAST_NEEDED = ("of roof", "uncontended", "network", "DRAM", "useful", "math", "cores", "time", "of call")


def operation_row(one: OperationTime) -> tuple[str, ...]:
    """One operation."""
    return (
        short_name(one.name),
        cycles(one.cycles),
        time(one.nanoseconds),
        percent(one.share),
        one.bound_by,
        str(one.core_count),
        *_shared_cells(one),
        cycles(one.cycles_without_contention),
        _roof(one),
    )


def total_row(call: CallTime) -> tuple[str, ...]:
    """All of a call."""
    total = call.total
    return (
        short_name(call.name),
        cycles(total.cycles),
        time(total.nanoseconds),
        "",
        "",
        str(len(total.cores)),
        *_shared_cells(total),
        cycles(total.cycles_without_contention),
        _roof(total),
    )


def rows(call: CallTime, *, alone: bool = True) -> list[tuple[str, ...]]:
    """The operations of a call; then all together, if there are several or it is not alone in its table."""
    found = [operation_row(one) for one in call.operations]
    return found if alone and len(found) == 1 else [*found, total_row(call)]


def table_lines(calls: Sequence[CallTime], width: int | None = None) -> list[str]:
    """A table in plain characters, figures to the right. Where there are several calls, a row with its name ends each.

    Args:
        calls: Whose operations it shows.
        width: Characters of a line; columns that do not fit are left out. None: all are there.
    """
    table = [HEADINGS, *(row for call in calls for row in rows(call, alone=len(calls) == 1))]
    return fitted(table, width, words=WORDS, least_needed=LEAST_NEEDED)


def _shared_cells(one: OperationTime | Totals) -> tuple[str, ...]:
    """Math utilization, useful share, and rates of DRAM and network."""
    math, traffic = one.math, one.traffic
    multiplies = math.issued_flops > 0
    return (
        percent(math.utilization) if multiplies else "",
        percent(math.useful_share) if multiplies else "",
        f"{count_of(traffic.dram_bytes_per_second)}B/s" if traffic.dram_bytes_per_second else "",
        f"{count_of(traffic.network_bytes_per_second)}B/s" if traffic.network_bytes_per_second else "",
    )


def _roof(one: OperationTime | Totals) -> str:
    return percent(one.roofline.share) if one.roofline.cycles else ""


FORMAT = 2  # raised when a field changes its meaning or goes
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


@dataclass(frozen=True, kw_only=True)
class CycleReport:
    """What calls took on a device.

    ``print(report)`` shows a table; all figures are fields, and lie the same way in ``to_json()``.

    Attributes:
        device: Its name.
        clock_hz: Its clock.
        worker_cores: Of the whole grid.
        calls: In order, each with its operations.
        total: All together.
        launches: What passes between operations; no other figure has it in. Found out when asked for.
        includes: What the cycles count.
        leaves_out: What they do not count.
        advice: What would make them faster; None where nobody asked.
    """

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

    def explain(self) -> str:
        """Where the time goes and what bounds it, in words."""
        if not self.calls:
            return f"No call that takes cycles was made on {self.device}."
        paragraphs = [explain_call(call, self.device) for call in self.calls]
        advice = [] if self.advice is None else [explain_advice(self.advice)]
        counted = explain_inclusion(self.includes, self.leaves_out)
        return "\n".join([*paragraphs, *launch_lines(self.launches), *advice, counted])

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return {"format": FORMAT, **as_dict(self)}

    def to_json(self) -> str:
        """All figures; the same bytes for the same calls."""
        return text(self.to_dict())

    def table(self, width: int | None = None) -> str:
        """A table, and what it counts.

        Args:
            width: Characters of a line: what does not fit is left out column by column, and words go on below. None:
                everything, on lines as long as it takes.
        """
        if not self.calls:
            return self.explain()
        missing = not_counting([one for call in self.calls for one in call.untimed])
        error = self.total.error
        bar = "" if error.share is None else f" (error expected: {percent(error.share)}{where_measured(error)})"
        taken = f"{cycles(self.cycles)} cycles{bar}, {time(self.nanoseconds)} at {self.clock_hz / 1e9:g} GHz"
        head = f"{self.device}: {taken}{missing}"
        untimed = (line for call in self.calls for line in untimed_lines(call))
        after = (*untimed, *launch_lines(self.launches), explain_inclusion(self.includes, self.leaves_out))
        below = (line for text in after for line in wrapped(text, width, indent=2))
        return "\n".join([*wrapped(head, width, indent=2), *table_lines(self.calls, width), *below])

    def __str__(self) -> str:
        """The table: as wide as the terminal where one shows it, whole elsewhere."""
        return self.table(terminal_width())


def cycle_report(calls: Sequence[CallRun], spec: DeviceSpec) -> CycleReport:
    """The report on calls that ran one after the other on a device."""
    made = call_times(calls)
    total = made[0].total if len(made) == 1 else totals(calls, spec)
    return CycleReport(
        device=spec.name,
        clock_hz=spec.clock_hz,
        worker_cores=spec.grid.cores,
        calls=made,
        total=total,
        launches=lambda: launch_times([one for call in calls for one in call.launches], total.nanoseconds, spec),
    )
