"""Pages of reports: one of layers that were run, and one of a network that ran."""

from collections.abc import Sequence

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycles.explain import cycles, explain_inclusion, percent, time
from ttsim.report.cycles.launches import launch_lines
from ttsim.report.cycles.report import INCLUDES, LEAVES_OUT, CycleReport
from ttsim.report.memory.figures import LayerResult, OperationUse, Summary
from ttsim.report.memory.l1_map import CIRCULAR, Held, l1_map
from ttsim.report.network.report import NetworkReport
from ttsim.report.page.figures import Page, Part
from ttsim.report.page.parts import deeds, deeds_of_pass, grid_of, roofs, stages_of
from ttsim.types.layer import Layer

COUNTED = explain_inclusion(INCLUDES, LEAVES_OUT)


def page_of_layers(results: Sequence[LayerResult], spec: DeviceSpec) -> Page:
    """The page of layers that were run, each with all that is known of it.

    Args:
        results: The layers.
        spec: The device.
    """
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


def page_of_network(network: NetworkReport, report: CycleReport, spec: DeviceSpec) -> Page:
    """The page of a network that ran.

    Args:
        network: Its operations in order.
        report: The cycles of the same calls.
        spec: The device.
    """
    usable = spec.l1.usable_bytes
    found = deeds_of_pass(network.operations, report.operations, usable)
    part = Part(
        name="network",
        asked=(("calls", f"{network.calls}"), ("device operations", f"{len(network.operations)}")),
        verdict=tuple(_network_verdict(network)),
        error=None,
        deeds=found,
        total=report.total if report.operations else None,
        calls=report.calls,
        memory=(),
        l1=network.l1,
        grid=grid_of(spec, report.total.cores, network.l1),
        stages=stages_of(found),
        roofs=roofs(found),
        kinds=network.kinds,
        layers=network.layers,
        advice=report.advice,
        between=tuple(launch_lines(network.launches)),
    )
    return Page(
        title=f"network on {spec.name}", device=spec.name, clock_hz=spec.clock_hz, parts=(part,), counted=COUNTED
    )


def _part_of_layer(result: LayerResult, spec: DeviceSpec) -> Part:
    summary = result.summary
    operations = result.reached if summary is None else summary.operations
    report = None if summary is None else summary.cycles
    timed, calls = ((), ()) if report is None else (report.operations, report.calls)
    found = deeds(
        [(one.name, one.circular_bytes, one.buffer_bytes) for one in operations], timed, calls, spec.l1.usable_bytes
    )
    memory = l1_map([_held(one) for one in operations], spec)
    return Part(
        name=result.layer.name,
        asked=tuple(_asked(result.layer)),
        verdict=() if summary is None else tuple(_verdict(summary)),
        error=result.error,
        deeds=found,
        total=report.total if report is not None and report.operations else None,
        calls=calls,
        memory=operations,
        l1=memory,
        grid=grid_of(spec, () if report is None else report.total.cores, memory),
        stages=stages_of(found),
        roofs=roofs(found),
        partitions=() if summary is None else summary.partitions,
        accuracy=None if summary is None else summary.accuracy,
        advice=None if report is None else report.advice,
        between=() if report is None else tuple(launch_lines(report.launches)),
        source=result.source,
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


def _network_verdict(network: NetworkReport) -> list[str]:
    """What came out, the most important first."""
    mark, missing = network.high_water, len(network.untimed)
    lines = [
        f"It ran: {cycles(network.cycles)} cycles, {time(network.nanoseconds)} of kernel time, in "
        f"{len(network.operations)} device operations of {network.calls} calls"
        + (f", not counting {missing} that no model knows." if missing else ".")
    ]
    if mark.operation is not None:
        lines.append(
            f"L1 of a core is at most {percent(mark.share)} full ({mark.total_bytes:,} of {mark.usable_bytes:,} B), in "
            f"#{mark.operation} {network.operations[mark.operation].name}."
        )
    return lines
