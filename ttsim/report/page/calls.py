"""Pages of what reports know by themselves, without the device: one of calls, and one of a pass through a network."""

from dataclasses import replace
from typing import Final

from ttsim.report.cycles.explain import counted, cycles, explain_inclusion, percent, time
from ttsim.report.cycles.launches import launch_lines
from ttsim.report.cycles.report import CycleReport
from ttsim.report.memory.l1_map import L1Map
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.figures import Grid, Page, Part
from ttsim.report.page.parts import deeds, deeds_of_pass, excesses, grid_of_cores, roofs, stages_of, steps, times
from ttsim.report.page.roofline import roof_chart

NO_L1: Final = L1Map(base_bytes=0, end_bytes=0, base_share=0.0, operations=0, blocks=())
NO_GRID: Final = Grid(columns=0, rows=0, cells=())
NO_REFERENCE: Final = "Not known: what a network should give, only its script knows."


def page_of_calls(report: CycleReport) -> Page:
    """The page of a report on cycles alone."""
    operations, total, calls = report.operations, report.total, report.calls
    callers = [call.name for call in calls for _ in call.in_order]
    ran = deeds([(one.name, 0, 0) for call in calls for one in call.in_order], calls, 0)
    found = tuple(replace(deed, place=caller) for deed, caller in zip(ran, callers, strict=True))
    ran_in = counted(len(operations), "device operation")
    told = f"{cycles(total.cycles)} cycles, {time(total.nanoseconds)} of kernel time, in {ran_in}"
    part = Part(
        name=calls[0].name if len(calls) == 1 else f"{len(calls)} calls",
        asked=(("calls", f"{len(calls)}"), ("device operations", f"{len(operations)}")),
        verdict=(f"It takes {told}{_without(sum(len(one.untimed) for one in calls))}.",),
        error=None,
        deeds=found,
        total=total if operations else None,
        calls=calls,
        memory=(),
        l1=NO_L1,
        grid=grid_of_cores(total.cores),
        stages=stages_of(found),
        roofs=roofs(found),
        excesses=excesses(found),
        chart=roof_chart(found),
        times=times(total.nanoseconds),
        advice=report.advice,
        between=tuple(launch_lines(report.launches)),
    )
    return _page(report, part)


def page_of_pass(network: NetworkReport) -> Page:
    """The page of a report on a network alone."""
    return _page(network, part_of_pass(network))


def part_of_pass(network: NetworkReport) -> Part:
    """A report on a network as a part of a page."""
    return Part(
        name="network",
        asked=(("calls", f"{network.calls}"), ("device operations", f"{len(network.operations)}")),
        verdict=tuple(_verdict(network)),
        error=None,
        deeds=deeds_of_pass(network.operations, network.high_water.usable_bytes),
        total=None,
        calls=(),
        memory=(),
        l1=network.l1,
        grid=NO_GRID,
        stages=(),
        roofs=(),
        steps=steps(len(network.operations)),
        times=times(network.nanoseconds),
        kinds=network.kinds,
        layers=network.layers,
        unknown_accuracy=NO_REFERENCE if network.operations else "",
        between=tuple(launch_lines(network.launches)),
    )


def _page(report: CycleReport | NetworkReport, part: Part) -> Page:
    return Page(
        title=f"{part.name} on {report.device}",
        device=report.device,
        clock_hz=report.clock_hz,
        parts=(part,),
        counted=explain_inclusion(report.includes, report.leaves_out),
    )


def _verdict(network: NetworkReport) -> list[str]:
    """What came out, the most important first."""
    mark = network.high_water
    if mark.operation is None:
        return ["No device operation ran."]
    return [
        f"It ran: {cycles(network.cycles)} cycles, {time(network.nanoseconds)} of kernel time, in "
        f"{counted(len(network.operations), 'device operation')} of {counted(network.calls, 'call')}"
        f"{_without(len(network.untimed))}.",
        f"L1 of a core is at most {percent(mark.share)} full ({mark.total_bytes:,} of {mark.usable_bytes:,} B), in "
        f"#{mark.operation} {network.operations[mark.operation].name}.",
    ]


def _without(missing: int) -> str:
    return f", not counting {missing} that no model knows" if missing else ""
