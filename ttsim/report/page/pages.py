"""Pages of reports: one of layers that were run, and one of a network that ran."""

from collections.abc import Sequence
from dataclasses import replace

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycles.explain import cycles, explain_inclusion, percent, time
from ttsim.report.cycles.launches import launch_lines
from ttsim.report.cycles.report import INCLUDES, LEAVES_OUT, CycleReport
from ttsim.report.memory.figures import LayerResult, OperationUse, Summary
from ttsim.report.memory.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.calls import page_of_pass, part_of_pass
from ttsim.report.page.figures import Page, Part, Source
from ttsim.report.page.parts import deeds, deeds_of_pass, excesses, grid_of, roofs, stages_of, steps, times
from ttsim.report.page.roofline import roof_chart
from ttsim.types.layer import Layer

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
    found = deeds_of_pass(network.operations, spec.l1.usable_bytes, report.calls)
    part = replace(
        part_of_pass(network),
        deeds=found,
        total=report.total if report.operations else None,
        calls=report.calls,
        grid=grid_of(spec, report.total.cores, network.l1),
        stages=stages_of(found),
        roofs=roofs(found),
        excesses=excesses(found),
        chart=roof_chart(found),
        advice=report.advice,
        sources=tuple(sources),
    )
    return replace(page_of_pass(network), parts=(part,))


def _part_of_layer(result: LayerResult, spec: DeviceSpec) -> Part:
    summary = result.summary
    operations = result.reached if summary is None else summary.operations
    report = None if summary is None else summary.cycles
    calls = None if report is None else report.calls
    found = deeds([(one.name, one.circular_bytes, one.buffer_bytes) for one in operations], calls, spec.l1.usable_bytes)
    memory = l1_map([_held(one) for one in operations], spec)
    return Part(
        name=result.layer.name,
        asked=tuple(_asked(result.layer)),
        verdict=() if summary is None else tuple(_verdict(summary)),
        error=result.error,
        deeds=found,
        total=report.total if report is not None and report.operations else None,
        calls=calls or (),
        memory=operations,
        l1=memory,
        grid=grid_of(spec, () if report is None else report.total.cores, memory),
        stages=stages_of(found),
        roofs=roofs(found),
        excesses=excesses(found),
        chart=roof_chart(found),
        steps=steps(len(operations)),
        times=times(0.0 if report is None else report.nanoseconds),
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


def _verdict(summary: Summary) -> list[str]:
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
