"""What passes between the kernels of a report: a line beside its cycles, which do not have it in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from device.spec.device_spec import DeviceSpec
from ops.launch import Launch, Replay, between_kernels_nanoseconds
from ops.passes.cycles import ASSUMPTIONS
from ttsim.report.cycles.explain import percent, time

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
