"""The report on cycles that users get."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from device.spec.device_spec import DeviceSpec
from device.time.stages import Lazy
from ttsim.report.columns import terminal_width, wrapped
from ttsim.report.cycles.advice import Advice
from ttsim.report.cycles.advise import explain_advice
from ttsim.report.cycles.explain import (
    cycles,
    explain_call,
    explain_inclusion,
    not_counting,
    percent,
    time,
    untimed_lines,
    where_measured,
)
from ttsim.report.cycles.figures import CallTime, OperationTime, Totals
from ttsim.report.cycles.figures_of import TimedCall, call_times, totals
from ttsim.report.cycles.launches import LaunchTimes, launch_lines, launch_times
from ttsim.report.cycles.rows import table_lines
from ttsim.report.plain import text

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
        return {"format": FORMAT, **asdict(self)}

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


def cycle_report(calls: Sequence[TimedCall], spec: DeviceSpec) -> CycleReport:
    """The report on calls that ran one after the other on a device."""
    made = call_times(calls, spec)
    total = made[0].total if len(made) == 1 else totals(calls, spec)
    return CycleReport(
        device=spec.name,
        clock_hz=spec.clock_hz,
        worker_cores=spec.grid.cores,
        calls=made,
        total=total,
        launches=lambda: launch_times([one for call in calls for one in call.launches], total.nanoseconds, spec),
    )
