"""Measure the simulator.

usage: python -m tools.bench [--layers] [--planning] [--cycles] [--plans] [--import] [--exact] [--memory]
                             [--onednn] [--networks] [--questions] [--repeats N] [--check]

Without a choice, everything is measured. Every figure is the best of some repeats. Devices of one spec share the plans
and cycles of equal calls. Figures "on a new spec" are of a device under a name that no device had: everything is
planned and timed, as in a script's first call. Those "on a new device" are of another device of a spec that has seen
the call: plans and cycles are found, memory and weights are not.

layers    the eight layers with values="fast": the call on tensors that are in place, the report of its figures, the
          output read back; on a new spec, on a new device, and where all of that was done on the device with the same
          tensors before; against torch.nn.functional.conv_transpose2d in float32 in the same process with the same
          number of threads, in turns, where torch is installed. Accuracy against float64 is not part of it. Where the
          process has one core (taskset -c 0), the time of its thread counts, so that a busy machine gives the same
          figures.
planning  the same calls with values="off" and cycles=False, on a new spec
cycles    the same with cycles=True, on a new spec, on a new device and again, of each generation
plans     plan_convolution alone over recorded calls, in processor time; and the blocks of memory kept after all of
          them were planned N times more
exact     the eight layers as above with values="exact", on a new device, with numba where it is installed, and once
          each in an interpreter without it; one whole call, and picoseconds of a multiply-add in one fidelity phase for
          each engine
import    `import ttsim` in a fresh interpreter, and what a first call loads
memory    peak of the allocations of Python and numpy (tracemalloc) in a fresh interpreter, from before the tensors are
          made to after the output is read, against the bytes of input, weights and output; the layer ran once before
networks  a whole pass of each recorded network (tests/data/measured/model_layers.csv, model_flow.csv) with
          values="fast", from the image to the output on the host, its report included; on a new spec, on a new device,
          and on one that carried out the same before; against torch's own forward pass of the same layers in float32
questions `ttsim ask` with many questions at once: memory and time of random transposed convolutions, on all cores
onednn    oneDNN's transposed convolution and its gradients in float32 with values="fast", against torch's
"""

import platform
import sys
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from tools.bench.exact import bench_exact
from tools.bench.figure import Figure, threads
from tools.bench.layers import bench_cycles, bench_layers, bench_planning
from tools.bench.networks import bench_networks
from tools.bench.onednn import bench_onednn
from tools.bench.plans import bench_imports, bench_memory, bench_plans
from tools.bench.questions import bench_questions
from tools.command import run_tool, tool_parser
from tools.machine import processor

BENCHES: dict[str, Callable[[int], Iterator[Figure]]] = {
    "layers": bench_layers,
    "planning": bench_planning,
    "cycles": bench_cycles,
    "plans": bench_plans,
    "import": bench_imports,
    "exact": bench_exact,
    "memory": bench_memory,
    "onednn": bench_onednn,
    "networks": bench_networks,
    "questions": bench_questions,
}  # a new benchmark is one more entry: it takes the number of repeats and yields figures

WIDTH_OF_A_PIPE = 120


def print_table(figures: list[tuple[str, Figure]]) -> None:
    """A row for each figure of a benchmark."""
    table = Table(title=f"Python {platform.python_version()}, {processor()}, {threads()} threads")
    for heading in ("bench", "case", "figure"):
        table.add_column(heading)
    for heading in ("value", "limit", ""):
        table.add_column(heading, justify="right")
    for bench, figure in figures:
        limit = "" if figure.limit is None else f"{figure.limit:g} {figure.unit}"
        verdict = "" if figure.limit is None else "ok" if figure.within else "over"
        table.add_row(bench, figure.case, figure.name, f"{figure.value:.3f} {figure.unit}", limit, verdict)
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_A_PIPE)
    console.print(table)


def main() -> None:
    """Measures what was asked for and prints it."""
    parser = tool_parser("tools.bench", __doc__)
    for name in BENCHES:
        parser.add_argument(f"--{name}", action="append_const", const=name, dest="chosen", help=f"measure {name}")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each that count (default 3)")
    parser.add_argument("--check", action="store_true", help="exit 1 if a figure is over its limit")
    options = parser.parse_args()
    chosen = options.chosen or list(BENCHES)
    figures = [(name, figure) for name in BENCHES if name in chosen for figure in BENCHES[name](options.repeats)]
    print_table(figures)
    if options.check and not all(figure.within for _, figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(run_tool("tools.bench", main))
