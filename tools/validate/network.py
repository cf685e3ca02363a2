"""Sum up the device operations of a network, and hold the sum against its measured time.

usage: python -m tools.validate.network [--model NAME] [--device NAME ...] [--layers FILE] [--flow FILE] [--ops FILE]
                                        [--as-planned] [--json OUT]

The layers run one after the other on a simulated device, with what stands between them: everything finds the shards and
the memory that the one before left. The sum holds every device operation; one that is not simulated is printed with it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from device.spec.device_spec import DeviceSpec, load_spec
from tools.command import tool_parser
from tools.validate.network_rows import NetworkStep, WholeFigure, figures_of, steps_of
from tools.validate.network_run import LayerTime, Software, TimedKind, run_network, softwares, total_ns, totals
from tools.validate.prediction import NotPredictedError, device_spec
from tools.validate.report import console, table
from tools.validate.rows import MEASURED, read_rows

_NOT_SEEN = {"shard_seen": "", "notes": "sharded as the release plans it; a profile shows otherwise"}
DEVICES = {"n150": "wormhole_n150", "p100": "blackhole_p100", "p150": "blackhole_p150"}
KERNELS = ("Conv2d", "Matmul")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTime:
    """A network on one device."""

    model: str
    spec: DeviceSpec
    times: Mapping[Software, Sequence[LayerTime]]  # What became of its steps, by whose kernels were timed
    figures: Sequence[WholeFigure]  # What is known of the whole, on devices of this architecture; measurements first
    measured: WholeFigure | None  # The measurement on this device; None if there is none

    @property
    def title(self) -> str:
        """Which network on which device."""
        return f"{self.model} on {self.spec.name}"


def time_network(
    model: str, spec: DeviceSpec, steps: Sequence[NetworkStep], figures: Sequence[WholeFigure]
) -> NetworkTime:
    """Times a network on a device."""

    def is_here(figure: WholeFigure) -> bool:
        try:
            return figure.measured and device_spec(figure.row).name == spec.name
        except NotPredictedError:
            return False

    here = [figure for figure in figures if figure.row["arch"] == spec.arch]
    return NetworkTime(
        model=model,
        spec=spec,
        times={software: run_network(steps, spec, software) for software in softwares(spec)},
        figures=here,
        measured=next(filter(is_here, here), None),
    )


def layers_table(network: NetworkTime) -> Table:
    """One line for each layer, in microseconds; stages as the release has them."""
    rows = []
    for layer, *others in zip(*network.times.values(), strict=True):
        if layer.step.row is None:
            continue
        named = (("Halo",), ("Move",), KERNELS)
        sums = [total_ns(kind for kind in layer.operations if kind.name in names) for names in named]
        cells = [*sums, layer.time_ns - sum(sums), layer.time_ns, *(other.time_ns for other in others)]
        shown = [_us(cell) if layer.operations else "-" for cell in cells]
        before = _us(total_ns(layer.between)) if layer.between else ""
        rows.append([layer.step.row["layer"], shape(layer), layer.scheme, *shown, before])
    numbers = ["halo", "move", "conv", "other", *(software.value for software in network.times), "before it"]
    title = f"{network.title}: calls of convolutions, predicted us"
    return table(title, ["layer", "shape", "output on"], numbers, rows)


def kinds_table(network: NetworkTime) -> Table:
    """Sums by kind of operation, in microseconds."""
    rows = []
    for where, chosen in (("in the calls", "operations"), ("between them", "between")):
        spent = {software: defaultdict[str, list[float]](list) for software in network.times}
        for software, times in network.times.items():
            for kind in (kind for layer in times for kind in getattr(layer, chosen)):
                spent[software][kind.name].append(kind.time_ns)
        first = next(iter(spent.values()))
        for name in sorted(first, key=lambda name: -sum(first[name])):
            rows.append([where, name, str(len(first[name])), *(_us(sum(own[name])) for own in spent.values())])
    numbers = ["count", *(software.value for software in network.times)]
    return table(f"{network.title}: predicted us by kind of operation", ["where", "operation"], numbers, rows)


def whole_table(network: NetworkTime) -> Table:
    """The sum beside every figure of the whole network, in milliseconds."""
    sums = [totals(times) for times in network.times.values()]
    parts = (
        ("calls of convolutions", "calls_ns"),
        ("what stands between them", "between_ns"),
        ("all that is timed", "timed_ns"),
    )
    rows = [[what, "", *(_ms(getattr(total, name)) for total in sums)] for what, name in parts]
    for figure in network.figures:
        row, kind = figure.row, "measured" if figure.measured else "target"
        source = row["source_path"] if figure.measured else row["notes"] or row["source_path"]
        shares = (f"{100 * (total.timed_ns / figure.time_ns - 1):+.1f} %" for total in sums)
        rows.append([f"{kind}, {row['device']}: {source}", _ms(figure.time_ns), *shares])
    numbers = ["ms", *(f"timed, {software.value}" for software in network.times)]
    return table(f"{network.title}: the sum beside the whole network", ["what"], numbers, rows)


def problems_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Layers and rows without a time, with the reason."""
    return table("not timed", ["layer or row", "reason"], [], rows)


def sentences(network: NetworkTime) -> list[str]:
    """What the sum is, and what it leaves out, in words."""
    lines, measured = [], network.measured
    for software, times in network.times.items():
        sums = totals(times)
        missing, count = ", ".join(f"{n} {name}" for name, n in sums.left_out.items()), sum(sums.left_out.values())
        text = f"{network.spec.name}, kernels of the {software.value}: the convolutions take {_ms(sums.calls_ns)} ms"
        text += f", with what stands between them {_ms(sums.timed_ns)} ms in {sums.operations} operations."
        text += f" Left out: {count} operations ({missing})." if count else " Nothing is left out."
        if measured is None:
            text += " There is no measurement of this device."
        else:
            counted = f", {measured.operations} were measured" if measured.operations else ""
            text += f" With them {sums.operations + count} operations run here{counted}. Of the measured "
            text += f"{_ms(measured.time_ns)} ms the convolutions are {100 * sums.calls_ns / measured.time_ns:.1f} %, "
            text += f"all that is timed {100 * sums.timed_ns / measured.time_ns:.1f} %."
        if sums.failed:
            text += f" The sum is too low: {sums.failed} layers are listed as not timed."
        lines.append(text)
    if len(network.times) > 1 and measured is not None:
        targets = [figure for figure in network.figures if not figure.measured]
        nearest = min(targets, key=lambda figure: abs(figure.time_ns - measured.time_ns), default=None)
        text = "The measurement does not say its software."
        if nearest is not None and "2025" in nearest.row["notes"]:
            text += " That it is of 2025 is inferred: it lies near the target of the 2025-12 tree and far from the "
            text += "current one."
        lines.append(text)
    lines.append(
        "Only totals of this network are published, no time of a layer or an operation: errors of operations may "
        "cancel out in the sum. No constant was fitted to the total; the readings (shards that a profile shows, whose "
        "software) were chosen with it known."
    )
    return lines


def shape(layer: LayerTime) -> str:
    """What a layer computes, in short."""
    row = layer.step.row or {}
    kind = "T" if row["op"] == "conv_transpose2d" else ""
    return f"{row['in_h']}x{row['in_w']} {row['in_c']}->{row['out_c']} {kind}k{row['k']}s{row['s']}"


def _us(time_ns: float) -> str:
    return f"{time_ns / 1e3:.1f}"


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f}"


def document(network: NetworkTime) -> dict[str, Any]:
    """A network with all columns of its layers, times in nanoseconds."""

    def kinds(operations: Iterable[TimedKind]) -> list[dict[str, Any]]:
        return [{"name": kind.name, "predicted_ns": kind.time_ns} for kind in operations]

    softwares = []
    for software, times in network.times.items():
        sums = totals(times)
        figures = {"calls_ns": sums.calls_ns, "between_ns": sums.between_ns, "left_out": dict(sums.left_out)}
        layers = [
            {
                **(layer.step.row or {}),
                "before": layer.step.flow["before"],
                "output_on": layer.scheme,
                "predicted_ns": layer.time_ns if layer.operations else None,
                "operations": kinds(layer.operations),
                "between": kinds(layer.between),
                "left_out": list(layer.left_out),
                "reason": layer.reason,
            }
            for layer in times
        ]
        softwares.append({"software": software.value, **figures, "layers": layers})
    whole = [{**figure.row, "time_ns": figure.time_ns, "measured": figure.measured} for figure in network.figures]
    return {
        "model": network.model,
        "device": network.spec.name,
        "measured_ns": None if network.measured is None else network.measured.time_ns,
        "figures": whole,
        "software": softwares,
    }


def main() -> None:
    """Times the network of the command line on every device that is asked for."""
    parser = tool_parser("tools.validate.network", __doc__)
    parser.add_argument("--model", default="vgg_unet", help="a network of the files (default vgg_unet)")
    parser.add_argument("--device", nargs="+", default=["n150", "p100"], choices=DEVICES, help="default n150 p100")
    parser.add_argument("--layers", type=Path, default=MEASURED / "model_layers.csv", help="its convolutions")
    parser.add_argument("--flow", type=Path, default=MEASURED / "model_flow.csv", help="what stands between them")
    parser.add_argument("--ops", type=Path, default=MEASURED / "model_ops.csv", help="times of whole networks")
    parser.add_argument(
        "--as-planned", action="store_true", help="shard as the release plans it, also where a profile shows otherwise"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every layer with its prediction")
    options = parser.parse_args()
    missing = [path for path in (options.layers, options.flow, options.ops) if not path.is_file()]
    if missing:
        parser.error(f"no such file: {', '.join(map(str, missing))}")
    steps, unmatched = steps_of(options.model, read_rows(options.layers), read_rows(options.flow))
    if not any(step.row is not None for step in steps):
        parser.error(f"no layer of {options.model} is both in {options.layers} and in {options.flow}")
    if options.as_planned:
        steps = [replace(step, flow={**step.flow, **_NOT_SEEN}) if step.flow["shard_seen"] else step for step in steps]
    figures, unread = figures_of(options.model, read_rows(options.ops))
    screen, documents = console(), []
    for name in options.device:
        network = time_network(options.model, load_spec(DEVICES[name]), steps, figures)
        documents.append(document(network))
        for shown in (layers_table(network), kinds_table(network), whole_table(network)):
            screen.print(shown)
        for line in sentences(network):
            screen.print(line, highlight=False, soft_wrap=True)
        first = next(iter(network.times.values()))
        troubles = [(f"{name}, {layer.step.flow['layer'] or 'end'}", layer.reason) for layer in first if layer.reason]
        if troubles:
            screen.print(problems_table(troubles))
    for row in (step.flow for step in steps if step.flow["notes"]):
        screen.print(f"of {row['layer']}: {row['notes']}", highlight=False, soft_wrap=True)
    if unmatched or unread:
        rows = [(row["layer"], reason) for row, reason in unmatched]
        screen.print(problems_table(rows + [(row["source_path"], reason) for row, reason in unread]))
    if options.json is not None:
        options.json.write_text(json.dumps(documents, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
