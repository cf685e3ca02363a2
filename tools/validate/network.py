"""Sum up the device operations of a network, and hold the sum against its measured time.

usage: python -m tools.validate.network [--model NAME] [--device NAME ...] [--layers FILE] [--flow FILE] [--ops FILE]
The layers run one after the other on a simulated device, with what stands between them: everything finds the shards and
the memory that the one before left. The sum holds every device operation; what is not planned is listed. Nothing here
is fitted: the constants are those of the device's description.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from rich.table import Table

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32, div_up
from device.spec.device_spec import DeviceSpec, load_spec
from device.spec.releases import DEFAULT_RELEASE, release_names, release_of
from ops.op_models import OP_MODELS
from tools.command import run_tool, tool_parser
from tools.validate.network_walk import BETWEEN, NetworkStep, Walk, device_of, needed_again, operand_shapes, steps_of
from tools.validate.prediction import NotPredictedError, Row, device_spec
from tools.validate.report import console, table
from tools.validate.rows import MEASURED, read_rows
from ttsim.recording.profiling import profile, timed_call
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import RanCall

DEVICES: Final = {"n150": "wormhole_n150", "p100": "blackhole_p100", "p150": "blackhole_p150"}
CLOSING: Final = (
    "Only totals of this network are published, no time of a layer or an operation: errors of operations may cancel "
    "out in the sum. No constant was fitted to the total. A measurement does not say its release: it is inferred from "
    "the shards that a profile shows and from the target of the 2025-12 tree; no measurement is of release 0.81.1."
)


def releases_of(spec: DeviceSpec) -> list[str]:
    """The releases that time a network on a device; 2025 only where its kernels have constants of their own.

    No network that was measured is as old as halos by task, and none combines two sharded tensors.
    """
    rules = {name: release_of(name) for name in release_names()}
    names = [name for name, of in rules.items() if not of.halo_by_task and of.combined_shards != "full"]
    own = [name for name in names if release_of(name).costs]
    return [name for name in names if name not in own or spec.family in release_of(name).costs]


class Timed(NamedTuple):
    """A device operation and its time."""

    name: str  # Without the ending that all share
    time_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """What became of one step of a network."""

    step: NetworkStep
    operations: tuple[Timed, ...] = ()  # Device operations of its call; none for the end of the network
    between: tuple[Timed, ...] = ()  # Device operations before it
    scheme: str = ""  # How its output is dealt to how many cores
    reason: str = ""  # Why it was not timed, or not entirely; empty if it was

    @property
    def time_ns(self) -> float:
        """Of the call."""
        return total_ns(self.operations)


def total_ns(operations: Iterable[Timed]) -> float:
    """The time of some operations together."""
    return sum(operation.time_ns for operation in operations)


class Totals(NamedTuple):
    """Sums over a network."""

    calls_ns: float  # Of all calls of convolutions
    between_ns: float  # Of what is timed between them
    timed_ns: float  # Of both
    operations: int  # Device operations that are timed
    failed: int  # Layers without a time, or with a part of it missing


def totals(times: Sequence[LayerTime]) -> Totals:
    """Sums up the steps of a network."""
    calls_ns = sum(layer.time_ns for layer in times)
    between_ns = sum(total_ns(layer.between) for layer in times)
    count = sum(len(layer.operations) + len(layer.between) for layer in times)
    return Totals(calls_ns, between_ns, calls_ns + between_ns, count, sum(bool(layer.reason) for layer in times))


class WholeFigure(NamedTuple):
    """A figure of the whole network on one device."""

    row: Row  # As it stands in its file
    time_ns: float  # Time of one run of the network
    measured: bool  # It was measured; otherwise it is a target that somebody set


def figures_of(model: str, operations: Sequence[Row]) -> tuple[list[WholeFigure], list[tuple[Row, str]]]:
    """What is known of the time of a whole network, measurements first, and rows that give no time."""
    figures, left = list[WholeFigure](), list[tuple[Row, str]]()
    for row in (row for row in operations if row["model"].partition(" ")[0] == model):
        value, images = float(row["value"]), int(row["batch"] or 1)
        times_ns = {"ms": value * 1e6, "samples/s": images / value * 1e9}
        if row["unit"] in times_ns:
            figures.append(WholeFigure(row, times_ns[row["unit"]], "measured" in row["kind"]))
        else:
            left.append((row, f"a figure in {row['unit']} gives no time"))
    return sorted(figures, key=lambda figure: not figure.measured), left


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkTime:
    """A network on one device."""

    title: str  # Which network on which device
    times: Mapping[str, Sequence[LayerTime]]  # What became of its steps, by release; the default release first
    figures: Sequence[WholeFigure]  # What is known of the whole, on devices of this architecture; measurements first
    measured: WholeFigure | None  # The measurement on this device; None if there is none


def time_network(
    model: str, spec: DeviceSpec, steps: Sequence[NetworkStep], figures: Sequence[WholeFigure]
) -> NetworkTime:
    """Times a network on a device, as each release plans it and by the release's kernels."""

    def is_here(figure: WholeFigure) -> bool:
        try:
            return figure.measured and device_spec(figure.row).name == spec.name
        except NotPredictedError:
            return False

    here = [figure for figure in figures if figure.row["arch"] == spec.arch]
    return NetworkTime(
        title=f"{model} on {spec.name}",
        times={release: run_network(steps, spec.replace(release=release)) for release in releases_of(spec)},
        figures=here,
        measured=next(filter(is_here, here), None),
    )


def run_network(steps: Sequence[NetworkStep], spec: DeviceSpec) -> list[LayerTime]:
    """Times all convolutions of a network on a fresh device."""
    with device_of(steps, spec, "off") as device:
        walk = Walk(device, needed_again(steps))
        return [_step(walk, step) for step in steps]


def _step(walk: Walk, step: NetworkStep) -> LayerTime:
    """The result of one step, which includes its errors."""
    if step.word not in BETWEEN:
        walk.x = None
        return LayerTime(step=step, reason=f"before it stands {step.word}, which is not known")
    result = LayerTime(step=step)
    walk.begin(step)
    try:
        with profile(walk.device) as profiled:
            BETWEEN[step.word](walk, step)
        between, missing = _times(profiled.calls, walk.device.spec)
        result = replace(result, between=between, reason="; ".join(missing))
        if step.row is None:
            return result
        with profile(walk.device) as profiled:
            output = walk.convolve(step, *map(_empty, operand_shapes(step.row)))
    except (DeviceError, ValueError, KeyError) as error:
        walk.x = None
        return replace(result, reason=f"not planned: {str(error).splitlines()[0]}")
    operations, more = _times(profiled.calls, walk.device.spec)
    return replace(result, operations=operations, scheme=_scheme(output), reason="; ".join(missing + more))


def _times(calls: Iterable[RanCall], spec: DeviceSpec) -> tuple[tuple[Timed, ...], list[str]]:
    """The operations of calls with their times, and what is not timed."""
    timed = [timed_call(call, spec, op_models=OP_MODELS) for call in calls]
    times = tuple(
        Timed(operation.name.removesuffix("DeviceOperation"), operation.taken.cycles / spec.clock_hz * 1e9)
        for call in timed
        for operation in call.operations
    )
    return times, [f"{missing.name} is not timed: {missing.reason}" for call in timed for missing in call.untimed]


def _empty(shape: tuple[int, ...]) -> Tensor:
    """A host tensor of zeros that takes no memory."""
    return Tensor.of_host(np.broadcast_to(np.float32(0), shape), TensorSpec(shape, FLOAT32, Layout.ROW_MAJOR))


def _scheme(output: Tensor) -> str:
    config = output.memory_config()
    if config.shard_spec is None:
        return f"interleaved {config.buffer_type.name}"
    shards = prod(map(div_up, output.padded_shape[-2:], config.shard_spec.shape))
    return f"{config.memory_layout.name.partition('_')[0].lower()} {min(shards, config.shard_spec.grid.num_cores())}"


def layers_table(network: NetworkTime) -> Table:
    """One line for each layer, in microseconds; shards and stages as in the default release."""
    rows = []
    for layer, *others in zip(*network.times.values(), strict=True):
        if (row := layer.step.row) is None:
            continue
        named = (("Halo",), ("Move",), ("Conv2d", "Matmul"))
        sums = [total_ns(operation for operation in layer.operations if operation.name in names) for names in named]
        cells = [*sums, layer.time_ns - sum(sums), layer.time_ns, *(other.time_ns for other in others)]
        shown = [_us(cell) if layer.operations else "-" for cell in cells]
        kind = "T" if row["op"] == "conv_transpose2d" else ""
        shape = f"{row['in_h']}x{row['in_w']} {row['in_c']}->{row['out_c']} {kind}k{row['k']}s{row['s']}"
        before = _us(total_ns(layer.between)) if layer.between else ""
        rows.append([row["layer"], shape, layer.scheme, *shown, before])
    numbers = ["halo", "move", "conv", "other", *(f"release {name}" for name in network.times), "before it"]
    title = f"{network.title}: calls of convolutions, predicted us"
    return table(title, ["layer", "shape", "output on"], numbers, rows)


def kinds_table(network: NetworkTime) -> Table:
    """Sums by kind of operation, in microseconds."""
    spent = defaultdict[tuple[str, str], dict[str, list[float]]](lambda: defaultdict(list))
    for release, times in network.times.items():
        for layer in times:
            for where, operations in (("in the calls", layer.operations), ("between them", layer.between)):
                for operation in operations:
                    spent[where, operation.name][release].append(operation.time_ns)
    rows = [
        [*key, f"{len(own[DEFAULT_RELEASE])}", *(_us(sum(own[release])) for release in network.times)]
        for key, own in sorted(spent.items(), key=lambda item: (item[0][0] < "c", -sum(item[1][DEFAULT_RELEASE])))
    ]
    numbers = ["count", *(f"release {name}" for name in network.times)]
    return table(f"{network.title}: predicted us by kind of operation", ["where", "operation"], numbers, rows)


def whole_table(network: NetworkTime) -> Table:
    """The sum beside every figure of the whole network, in milliseconds."""
    sums = [totals(times) for times in network.times.values()]
    parts = ("calls of convolutions", "what stands between them", "all that is timed")
    rows = [[part, "", *(_ms(total[place]) for total in sums)] for place, part in enumerate(parts)]
    for figure in network.figures:
        row, kind = figure.row, "measured" if figure.measured else "target"
        source = row["source_path"] if figure.measured else row["notes"] or row["source_path"]
        shares = (f"{100 * (total.timed_ns / figure.time_ns - 1):+.1f} %" for total in sums)
        rows.append([f"{kind}, {row['device']}: {source}", _ms(figure.time_ns), *shares])
    numbers = ["ms", *(f"timed, release {name}" for name in network.times)]
    return table(f"{network.title}: the sum beside the whole network", ["what"], numbers, rows)


def sentences(network: NetworkTime) -> list[str]:
    """What the sum is, in words."""
    lines, measured = [], network.measured
    for release, times in network.times.items():
        sums = totals(times)
        text = f"{network.title}, release {release}: the convolutions take {_ms(sums.calls_ns)} ms, with "
        text += f"what stands between them {_ms(sums.timed_ns)} ms in {sums.operations} operations."
        if measured is None:
            text += " There is no measurement of this device."
        else:
            counted = f" in {measured.row['n_ops']} operations" if measured.row["n_ops"] else ""
            text += f" {_ms(measured.time_ns)} ms{counted} were measured."
        text += f" The sum is too low: {sums.failed} layers are listed as not timed." if sums.failed else ""
        lines.append(text)
    return [*lines, CLOSING]


def _us(time_ns: float) -> str:
    return f"{time_ns / 1e3:.1f}"


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f}"


def main() -> None:
    """Times the network of the command line on every device that is asked for."""
    parser = tool_parser("tools.validate.network", __doc__)
    parser.add_argument("--model", default="vgg_unet", help="a network of the files (default vgg_unet)")
    parser.add_argument("--device", nargs="+", default=["n150", "p100"], choices=DEVICES, help="default n150 p100")
    parser.add_argument("--layers", type=Path, default=MEASURED / "model_layers.csv", help="its convolutions")
    parser.add_argument("--flow", type=Path, default=MEASURED / "model_flow.csv", help="what stands between them")
    parser.add_argument("--ops", type=Path, default=MEASURED / "model_ops.csv", help="times of whole networks")
    options = parser.parse_args()
    steps, unmatched = steps_of(options.model, read_rows(options.layers), read_rows(options.flow))
    if not any(step.row is not None for step in steps):
        parser.error(f"no layer of {options.model} is both in {options.layers} and in {options.flow}")
    figures, unread = figures_of(options.model, read_rows(options.ops))
    screen = console()
    problems = [(row["layer"], reason) for row, reason in unmatched]
    problems += [(row["source_path"], reason) for row, reason in unread]
    for name in options.device:
        network = time_network(options.model, load_spec(DEVICES[name]), steps, figures)
        for shown in (layers_table(network), kinds_table(network), whole_table(network)):
            screen.print(shown)
        for line in sentences(network):
            screen.print(line, highlight=False, soft_wrap=True)
        first = next(iter(network.times.values()))
        problems += [(f"{name}, {layer.step.flow['layer'] or 'end'}", layer.reason) for layer in first if layer.reason]
    for row in (step.flow for step in steps if step.flow["notes"]):
        screen.print(f"of {row['layer']}: {row['notes']}", highlight=False, soft_wrap=True)
    if problems:
        screen.print(table("not timed", ["layer or row", "reason"], [], problems))


if __name__ == "__main__":
    sys.exit(run_tool("tools.validate.network", main))
