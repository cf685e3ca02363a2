"""Pages of reports: of calls, of a network that ran, and of layers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycle_report import INCLUDES, LEAVES_OUT, CycleReport, launch_lines
from ttsim.report.explain import explain_inclusion
from ttsim.report.formatting import counted, cycles, percent, time
from ttsim.report.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.memory import LayerResult, OperationUse, Summary
from ttsim.report.network import NetworkReport
from ttsim.report.page_parts import (
    Page,
    Part,
    Source,
    grid_of,
    grid_of_cores,
)
from ttsim.report.runs import Runs
from ttsim.runtime.types.layer import Layer

NO_REFERENCE: Final = "Not known: what a network should give, only its script knows."


def page_of_calls(report: CycleReport) -> Page:
    """The page of a report on cycles alone."""
    operations, total, calls = report.operations, report.total, report.calls
    found = Runs(report.clock_hz)
    for number, call in enumerate(calls):
        for taken in call.run.in_order:
            found.add(name=taken.name, call=number, function=call.name, where="", taken=taken)
    ran_in = counted(len(operations), "device operation")
    told = f"{cycles(total.cycles)} cycles, {time(total.nanoseconds)} of kernel time, in {ran_in}"
    part = Part(
        name=calls[0].name if len(calls) == 1 else f"{len(calls)} calls",
        asked=(("calls", f"{len(calls)}"), ("device operations", f"{len(operations)}")),
        verdict=(f"It takes {told}{_without(sum(len(one.untimed) for one in calls))}.",),
        operations=tuple(found),
        total=total if operations else None,
        calls=calls,
        grid=grid_of_cores(total.cores),
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
        operations=network.operations,
        detailed=False,
        l1=network.l1,
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


COUNTED = explain_inclusion(INCLUDES, LEAVES_OUT)
NO_VALUES = 'Not known: the layer ran without values; values="exact" or "fast" has them.'


def page_of_layers(results: Sequence[LayerResult], spec: DeviceSpec) -> Page:
    """The page of layers that were run, each with all that is known of it."""
    failed = sum(one.error is not None for one in results)
    name = results[0].layer.name if len(results) == 1 else f"{len(results)} layers"
    verdict = f", {failed} failed" if failed and len(results) > 1 else " failed" if failed else ""
    return Page(
        title=f"{name} on {spec.name}{verdict}",
        device=spec.name,
        clock_hz=spec.clock_hz,
        parts=tuple(_part_of_layer(one, spec) for one in results),
        counted=COUNTED,
    )


def page_of_network(
    network: NetworkReport, report: CycleReport, spec: DeviceSpec, sources: Sequence[Source] = ()
) -> Page:
    """The page of a network that ran.

    Args:
        network: Its operations in order.
        report: The cycles of the same calls.
        sources: Its convolutions as Python.
    """
    part = replace(
        part_of_pass(network),
        detailed=True,
        total=report.total if report.operations else None,
        calls=report.calls,
        grid=grid_of(spec, report.total.cores, network.l1),
        advice=report.advice,
        sources=tuple(sources),
    )
    return replace(page_of_pass(network), parts=(part,))


def _part_of_layer(result: LayerResult, spec: DeviceSpec) -> Part:
    summary = result.summary
    operations = result.reached if summary is None else summary.operations
    report = None if summary is None else summary.cycles
    calls = None if report is None else report.calls
    each = [None] * len(operations) if calls is None else [taken for call in calls for taken in call.run.in_order]
    found = Runs(spec.clock_hz, spec)
    for use, taken in zip(operations, each, strict=True):
        l1 = (use.circular_bytes, use.buffer_bytes)
        found.add(name=use.name, call=0, function="", where="", taken=taken, l1=l1)
    memory = l1_map([_held(one) for one in operations], spec)
    return Part(
        name=result.layer.name,
        asked=tuple(_asked(result.layer)),
        verdict=() if summary is None else tuple(_pages_verdict(summary)),
        error=result.error,
        operations=tuple(found),
        total=report.total if report is not None and report.operations else None,
        calls=calls or (),
        memory=operations,
        l1=memory,
        grid=grid_of(spec, () if report is None else report.total.cores, memory),
        partitions=() if summary is None else summary.partitions,
        accuracy=None if summary is None else summary.accuracy,
        unknown_accuracy=NO_VALUES if summary is not None and summary.accuracy is None else "",
        advice=None if report is None else report.advice,
        between=() if report is None else tuple(launch_lines(report.launches)),
        sources=(Source(name=result.layer.name, text=result.source),) if result.source else (),
    )


def _held(one: OperationUse) -> tuple[Held, ...]:
    """What lies in L1 with an operation."""
    return (
        *(
            Held(
                name=circular.name,
                kind=CIRCULAR,
                address=circular.address,
                size_bytes=circular.size_bytes,
                cores=circular.cores,
                ranges=circular.ranges,
            )
            for circular in one.circular_buffers
            if not circular.view
        ),
        *(
            Held(name=buffer.name, kind=buffer.memory, address=buffer.address, size_bytes=buffer.bank_bytes)
            for buffer in one.buffers
            if buffer.memory != "DRAM"
        ),
    )


def _asked(layer: Layer) -> list[tuple[str, str]]:
    image = f"{layer.batch_size}x{layer.input_height}x{layer.input_width}x{layer.in_channels}"
    return [
        ("input", f"{image} {layer.input_dtype} {layer.input_layout} in {layer.input_memory}"),
        ("output channels", f"{layer.out_channels}"),
        ("kernel", "x".join(map(str, layer.kernel_size))),
        ("stride", "x".join(map(str, layer.stride))),
        ("padding", ", ".join(map(str, layer.padding))),
        ("groups", f"{layer.groups}"),
    ]


def _pages_verdict(summary: Summary) -> list[str]:
    """What came out, the most important first."""
    use, output = summary.l1, summary.output
    lines = [
        f"It fits: L1 of a core is at most {percent(use.peak_share)} full ({use.peak_total_bytes:,} of "
        f"{use.usable_bytes:,} B), {use.headroom_bytes:,} B stay free at the tightest moment."
    ]
    if summary.cycles is not None and summary.cycles.operations:
        report = summary.cycles
        lines.append(f"It takes {cycles(report.cycles)} cycles, {time(report.nanoseconds)} of kernel time.")
    lines.append(
        f"It gives {'x'.join(map(str, output.shape))} {output.dtype} {output.layout}, images of "
        f"{output.height}x{output.width}; {output.place}."
    )
    return lines
