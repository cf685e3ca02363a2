"""Pages of what reports know by themselves, without the device: one of calls, and one of a pass through a network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ttsim.report.cycles.advice import Advice
from ttsim.report.cycles.explain import cycles, percent, time
from ttsim.report.cycles.figures import CallTime, Totals
from ttsim.report.cycles.launches import LaunchTimes, launch_lines
from ttsim.report.memory.l1_map import L1Map
from ttsim.report.network.figures import HighWater, PassOperation, Sum
from ttsim.report.page.figures import Grid, Page, Part
from ttsim.report.page.parts import deeds, deeds_of_pass, excesses, grid_of_cores, roofs, stages_of, steps, times

NO_L1: Final = L1Map(base_bytes=0, end_bytes=0, base_share=0.0, operations=0, blocks=())
NO_GRID: Final = Grid(columns=0, rows=0, cells=())
NO_REFERENCE: Final = "Not known: what a network should give, only its script knows."


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a page is about.

    Attributes:
        name: Its name.
        clock_hz: Its clock.
        counted: What the cycles of the report count, and what not.
    """

    name: str
    clock_hz: int
    counted: str

    def page(self, title: str, *parts: Part) -> Page:
        """A page about the device."""
        return Page(
            title=f"{title} on {self.name}", device=self.name, clock_hz=self.clock_hz, parts=parts, counted=self.counted
        )


def page_of_calls(
    subject: Subject, calls: Sequence[CallTime], total: Totals, launches: LaunchTimes, advice: Advice | None
) -> Page:
    """The page of a report on cycles; the other arguments are its fields.

    Args:
        subject: What the page is about.
        calls: In order.
        total: All together.
        launches: What passes between operations.
        advice: What would make them faster.
    """
    operations = [one for call in calls for one in call.operations]
    callers = [call.name for call in calls for _ in call.operations]
    ran = deeds([(one.name, 0, 0) for one in operations], operations, (), 0)
    found = tuple(replace(deed, place=caller) for deed, caller in zip(ran, callers, strict=True))
    named = calls[0].name if len(calls) == 1 else f"{len(calls)} calls"
    told = f"{cycles(total.cycles)} cycles, {time(total.nanoseconds)} of kernel time, in {len(operations)} device"
    part = Part(
        name=named,
        asked=(("calls", f"{len(calls)}"), ("device operations", f"{len(operations)}")),
        verdict=(f"It takes {told} operations{_without(sum(len(one.untimed) for one in calls))}.",),
        error=None,
        deeds=found,
        total=total if operations else None,
        calls=tuple(calls),
        memory=(),
        l1=NO_L1,
        grid=grid_of_cores(total.cores),
        stages=stages_of(found),
        roofs=roofs(found),
        excesses=excesses(found),
        times=times(total.nanoseconds),
        advice=advice,
        between=tuple(launch_lines(launches)),
    )
    return subject.page(named, part)


def part_of_pass(
    operations: Sequence[PassOperation],
    *,
    calls: int,
    kinds: Sequence[Sum],
    layers: Sequence[Sum],
    high_water: HighWater,
    l1: L1Map,
    launches: LaunchTimes,
) -> Part:
    """A report on a network as a part of a page; the arguments are its fields."""
    ends = [one.start_nanoseconds + one.nanoseconds for one in operations]
    return Part(
        name="network",
        asked=(("calls", f"{calls}"), ("device operations", f"{len(operations)}")),
        verdict=tuple(_verdict(operations, calls, high_water)),
        error=None,
        deeds=deeds_of_pass(operations, high_water.usable_bytes),
        total=None,
        calls=(),
        memory=(),
        l1=l1,
        grid=NO_GRID,
        stages=(),
        roofs=(),
        steps=steps(len(operations)),
        times=times(max(ends, default=0.0)),
        kinds=tuple(kinds),
        layers=tuple(layers),
        unknown_accuracy=NO_REFERENCE if operations else "",
        between=tuple(launch_lines(launches)),
    )


def _verdict(operations: Sequence[PassOperation], calls: int, mark: HighWater) -> list[str]:
    """What came out, the most important first."""
    if mark.operation is None:
        return ["No device operation ran."]
    last, fullest = operations[-1], operations[mark.operation]
    ends = last.start_nanoseconds + last.nanoseconds
    missing = sum(bool(one.untimed) for one in operations)
    return [
        f"It ran: {cycles(sum(one.cycles for one in operations))} cycles, {time(ends)} of kernel time, in "
        f"{len(operations)} device operations of {calls} calls{_without(missing)}.",
        f"L1 of a core is at most {percent(mark.share)} full ({mark.total_bytes:,} of {mark.usable_bytes:,} B), in "
        f"#{mark.operation} {fullest.name}.",
    ]


def _without(missing: int) -> str:
    return f", not counting {missing} that no model knows" if missing else ""
