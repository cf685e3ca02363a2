"""What inserted zeros cost: eight layers in both lowerings, as the tables of docs/explanation/phase-lowering.md.

usage: python -m tools.zeros [--device NAME ...] [--update FILE]

Cycles are those of the whole call, of its halo and of its convolution; headroom is what L1 has left at the tightest
moment, so that a call with any fits. --update writes the tables into a document, between the lines that mark them.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from device.errors import ArgumentError, DeviceError
from ops.op_models import load_spec
from tools.command import run_tool, tool_parser
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, call, make_inputs, place, summary_of

DEVICES = ("wormhole_n150", "blackhole_p150")
LOWERINGS = ("zero_insertion", "phase")
HALO, CONVOLUTIONS = "HaloDeviceOperation", ("Conv2dDeviceOperation", "PhaseConv2dDeviceOperation")
BEGIN, END = "<!-- python -m tools.zeros -->\n", "<!-- end -->\n"
HEADINGS = (
    *("layer", "scheme, cores", "zero insertion", "phase", "of it", "halo", "convolution", "bound by"),
    "headroom, KiB",
)


class Cost(NamedTuple):
    """One layer in one lowering."""

    scheme: str  # How it is sharded, and on how many cores
    cycles: int  # Of the whole call
    halo: int  # Of its halos, one a slice
    convolution: int
    bound_by: str  # The stage that binds the longest of them
    headroom_bytes: int  # Least room between circular buffers and L1 buffers


def cost_of(layer: Layer, device: str, lowering: str) -> Cost:
    """The cost of a layer; raises DeviceError if it does not fit."""
    placed = place(layer, make_inputs(layer, values=False), Settings(spec=load_spec(device), values="off"))
    placed = replace(placed, arguments=placed.arguments | {"lowering": lowering})
    with placed.device:
        called = call(placed)
        summary = summary_of(placed, called)
    result, partition = called.profile.report().calls[0], summary.partitions[0]
    halos = [operation.cycles for operation in result.operations if operation.name == HALO]
    convolutions = [operation for operation in result.operations if operation.name in CONVOLUTIONS]
    cycles = [convolution.cycles for convolution in convolutions]
    scheme = f"{partition.scheme.removesuffix('_SHARDED')}, {partition.output_cores}"
    bound_by = max(convolutions, key=lambda convolution: convolution.cycles).bound_by
    return Cost(scheme, result.total.cycles, sum(halos), sum(cycles), bound_by, summary.l1.headroom_bytes)


def cells(layer: Layer, device: str) -> list[str]:
    """A row of the table; what does not fit is said in place of the figures."""
    try:
        costs = [cost_of(layer, device, lowering) for lowering in LOWERINGS]
    except (ArgumentError, DeviceError) as error:
        return [layer.name, str(error).splitlines()[0], *[""] * (len(HEADINGS) - 2)]
    frame, phase = costs
    pairs = [", ".join(f"{cost[at]:,.0f}" for cost in costs) for at in (2, 3)]
    pairs += [f"{frame.bound_by}, {phase.bound_by}", ", ".join(f"{cost.headroom_bytes / 1024:.0f}" for cost in costs)]
    share = f"{phase.cycles / frame.cycles:.0%}"
    return [layer.name, frame.scheme, f"{frame.cycles:,.0f}", f"{phase.cycles:,.0f}", share, *pairs]


def tables(devices: list[str]) -> Iterator[str]:
    """The lines of a table for each device."""
    layers = read_layers(DEFAULT_LAYERS)
    for device in devices:
        yield f"{device}, cycles; of two figures the first is zero insertion's:"
        yield ""
        yield f"| {' | '.join(HEADINGS)} |"
        yield f"|{'---|' * len(HEADINGS)}"
        yield from (f"| {' | '.join(cells(layer, device))} |" for layer in layers)
        yield ""


def updated(document: str, text: str, mark: str = BEGIN) -> str:
    """A document with the text between its marks, the first of which is given; ValueError if it has none."""
    before, begin, rest = document.partition(mark)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the document has no lines {mark.strip()} and {END.strip()}, between which tables belong")
    return f"{before}{begin}{text}{end}{after}"


def main() -> None:
    """Print the tables, or write them into a document."""
    parser = tool_parser("tools.zeros", __doc__)
    parser.add_argument("--device", nargs="+", default=list(DEVICES), help="names of the catalog, or TOML files")
    parser.add_argument("--update", type=Path, help="the document")
    options = parser.parse_args()
    text = "\n".join(tables(options.device))
    if options.update is None:
        print(text, end="")
        return
    document = options.update.read_text(encoding="utf-8")
    options.update.write_text(updated(document, f"\n{text}\n"), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_tool("tools.zeros", main))
