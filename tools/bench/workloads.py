"""Run oneDNN's own list of deconvolutions in all three directions.

usage: python -m tools.bench.workloads FILE [--only TEXT] [--device NAME] [--most-macs N] [--plans] [--json]

Memory and cycles are those of the full sizes, in both lowerings of the forward operation. Values are computed with BLAS
and compared with float64; a workload of more than --most-macs multiply-adds is scaled down for that: its batch is
halved as far as it goes, then its input axes, the longest first. The last line counts what disagrees.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from device.memory.memory_config import BufferType
from device.numbers.formats import Array
from device.plan import BufferAllocated, BufferFreed, Event, Plan, usage_per_core
from device.spec.device_spec import DeviceSpec
from ops.passes.cycles import run_cycles
from ops.reference import conv_transpose, data_gradient, weights_gradient
from ttsim.onednn import OPERATIONS, Call, run
from ttsim.runtime.device import Device, open_device

TOLERANCE = 2e-6  # of the largest value, float32
MOST_MACS = 100_000_000
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sizes of one workload."""

    batch: int
    channels: tuple[int, int]  # I and O
    spatial: tuple[tuple[int, ...], tuple[int, ...]]  # Input and output sizes
    kernel: tuple[int, ...]
    attributes: Mapping[str, Any]

    @property
    def macs(self) -> int:
        """Multiply-adds, those that padding cuts off included."""
        each = self.channels[0] * self.channels[1] // int(self.attributes["groups"])
        return self.batch * prod(self.spatial[0]) * prod(self.kernel) * each


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is found of one direction of one workload."""

    workload: str
    direction: str  # Operation, and lowering if it has one
    cycles: float  # Kernel cycles at full size
    milliseconds: float  # The same in time
    l1_bytes: int  # Peak of a core's circular buffers
    dram_bytes: int  # Peak in the fullest DRAM bank
    error: float | None  # Against float64, relative to the largest value; None if no values were computed
    scale: str  # "1" or how the values were scaled down


def size_of(workload: Mapping[str, Any]) -> Size:
    """Sizes of an entry of the list."""
    names = ("strides", "pads_begin", "pads_end", "dilations", "output_padding", "groups")
    return Size(
        batch=workload["mb"],
        channels=(workload["ic"], workload["oc"]),
        spatial=(tuple(workload["in_spatial"]), tuple(workload["out_spatial"])),
        kernel=tuple(workload["kernel"]),
        attributes={**{name: workload[name] for name in names}, "weights_format": "IOX"},
    )


def scaled(size: Size, most_macs: int) -> tuple[Size, str]:
    """A workload of few enough multiply-adds, and what became of it."""
    batch, before = size.batch, [*size.spatial[0]]
    axes = list(before)
    each = size.macs // (size.batch * prod(before))
    while batch * prod(axes) * each > most_macs and (batch > 1 or max(axes) > 1):
        if batch > 1:
            batch //= 2
        else:
            longest = axes.index(max(axes))
            axes[longest] //= 2
    after = tuple(
        out - stride * (whole - part)
        for out, stride, whole, part in zip(size.spatial[1], size.attributes["strides"], before, axes, strict=True)
    )
    if min(after) < 1:
        return size, "1"
    made = Size(
        batch=batch,
        channels=size.channels,
        spatial=(tuple(axes), after),
        kernel=size.kernel,
        attributes=size.attributes,
    )
    same = batch == size.batch and axes == before
    return made, "1" if same else f"batch {batch}, input {'x'.join(map(str, axes))}"


def arrays_of(size: Size, *, empty: bool) -> dict[str, Array]:
    """src, weights and diff_dst, channels last; without numbers if they are to be ``empty``."""
    groups = int(size.attributes["groups"])
    shapes = {
        "src": (size.batch, *size.spatial[0], size.channels[0]),
        "weights": (size.channels[0], size.channels[1] // groups, *size.kernel),
        "diff_dst": (size.batch, *size.spatial[1], size.channels[1]),
    }
    if empty:
        return {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    rng = np.random.default_rng(prod(size.kernel) + size.macs % 1000)
    return {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def calls_of(size: Size, arrays: Mapping[str, Array]) -> Iterator[tuple[str, Call]]:
    """All directions of a workload."""
    src, weights, diff_dst = arrays["src"], arrays["weights"], arrays["diff_dst"]
    for lowering in ("frame", "phase"):
        call = OPERATIONS["ConvTranspose"].call([src, weights], size.attributes, lowering=lowering)
        yield f"forward, {lowering}", call
    yield "data", OPERATIONS["ConvTransposeBackwardData"].call([diff_dst, weights], size.attributes)
    shape = np.array(weights.shape, np.int32)
    yield "weights", OPERATIONS["ConvTransposeBackwardWeights"].call([src, diff_dst, shape], size.attributes)


def expected(direction: str, call: Call, arrays: Mapping[str, Array]) -> Array:
    """The result in float64, in the call's order."""
    src, diff_dst = (np.moveaxis(arrays[name], -1, 1) for name in ("src", "diff_dst"))
    problem, weights = call.problem, arrays["weights"]
    if direction == "weights":
        return weights_gradient(src, diff_dst, problem.geometry, groups=problem.groups)
    if direction == "data":
        return np.moveaxis(data_gradient(diff_dst, weights, problem.geometry, groups=problem.groups), 1, -1)
    return np.moveaxis(conv_transpose(src, weights, problem.geometry, groups=problem.groups), 1, -1)


def error_of(got: Array, want: Array) -> float:
    """The largest difference, relative to the largest value."""
    return float(np.abs(got - want).max(initial=0.0) / max(float(np.abs(want).max(initial=0.0)), 1e-30))


def cycles_of(plan: Plan, spec: DeviceSpec) -> float:
    """All device operations of a plan, one after the other."""
    return run_cycles(plan, spec).cycles


def peak_dram_bytes(events: list[Event]) -> int:
    """The most that lies in the fullest DRAM bank at one moment."""
    now = peak = 0
    for event in events:
        if isinstance(event, BufferAllocated | BufferFreed) and event.buffer.buffer_type is BufferType.DRAM:
            now += event.buffer.bank_bytes if isinstance(event, BufferAllocated) else -event.buffer.bank_bytes
            peak = max(peak, now)
    return peak


def rows_of(workload: Mapping[str, Any], planning: Device, computing: Device | None, most_macs: int) -> Iterator[Row]:
    """What is found of one workload."""
    size = size_of(workload)
    small, scale = scaled(size, most_macs)
    numbers = None if computing is None else arrays_of(small, empty=False)
    checked = {} if numbers is None else dict(calls_of(small, numbers))
    for direction, call in calls_of(size, arrays_of(size, empty=True)):
        events: list[Event] = []
        planning.clear_program_cache()  # a program that is found there shows no circular buffers
        with planning.recording(events):
            run(call, planning)
        error = None
        if numbers is not None:
            error = error_of(run(checked[direction], computing), expected(direction, checked[direction], numbers))
        cycles = cycles_of(call.plan(planning.spec), planning.spec)
        yield Row(
            workload=workload["descriptor"].split('"')[0],
            direction=direction,
            cycles=cycles,
            milliseconds=cycles / planning.spec.clock_hz * 1e3,
            l1_bytes=usage_per_core(events).peak_cb,
            dram_bytes=peak_dram_bytes(events),
            error=error,
            scale=scale if numbers is not None else "no values",
        )


def print_table(rows: list[Row], device: str) -> None:
    """One line for each row."""
    table = Table(title=f"deconvolutions of oneDNN on {device}, float32 as IEEE")
    for heading in ("workload", "direction"):
        table.add_column(heading, overflow="fold")
    for heading in ("cycles", "ms", "L1 KiB a core", "DRAM MiB a bank", "error", "values of"):
        table.add_column(heading, justify="right")
    for row in rows:
        error = "" if row.error is None else f"{row.error:.1e}"
        figures = (f"{row.cycles:.3g}", f"{row.milliseconds:.3f}", f"{row.l1_bytes / 1024:.0f}")
        table.add_row(row.workload, row.direction, *figures, f"{row.dram_bytes / MIB:.1f}", error, row.scale)
    Console(width=None if sys.stdout.isatty() else 180).print(table)


def main() -> None:
    """Run the list and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="workloads.json")
    parser.add_argument("--only", default="", help="part of a descriptor")
    parser.add_argument("--device", default="wormhole_n150")
    parser.add_argument("--most-macs", type=int, default=MOST_MACS)
    parser.add_argument("--plans", action="store_true", help="memory and cycles only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    listed = json.loads(options.file.read_text(encoding="utf-8"))["workloads"]
    chosen = [one for one in listed if one["enabled"] and options.only in one["descriptor"]]
    planning = open_device(spec=options.device, values="off")
    computing = None if options.plans else open_device(spec=options.device, values="fast")
    rows = [row for one in chosen for row in rows_of(one, planning, computing, options.most_macs)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print_table(rows, options.device)
        wrong = [row for row in rows if row.error is not None and not row.error <= TOLERANCE]
        worst = max((row.error for row in rows if row.error is not None), default=0.0)
        print(f"{len(chosen)} workloads, {len(rows)} directions, {len(wrong)} beyond {TOLERANCE:g}; worst {worst:.1e}")


if __name__ == "__main__":
    main()
