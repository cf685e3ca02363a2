"""The timeline of a run as a Chrome trace for Perfetto and chrome://tracing: the cores' stages, L1, and flows.

A process is a core, a thread is a stage with its processor; process 0 is the device. Times are fractional microseconds
with the resolution of a cycle. Equal runs give equal bytes.

The models give the busy and waiting time of a stage, but not the start of its blocks: a slice begins with its operation
and lasts as long as its stage is busy and waits. Groups of equal cores are timed once, and each core gets its slices.
"""

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage, nanoseconds
from ttsim.report.cycles import Core, OperationTime
from ttsim.report.formatting import printable
from ttsim.report.network import OpRun

HALO: Final = "HaloDeviceOperation"
MULTICASTS: Final = (Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST)
MOVES: Final = "BRISC/NCRISC"  # depends on the program
COMPUTES: Final = "TRISC0-2"
PROCESSORS: Final = {  # which processors of a core a stage keeps busy
    Stage.START: "all",
    Stage.TILIZE: COMPUTES,
    Stage.UNPACK: "TRISC0",
    Stage.MATH: "TRISC1",
    Stage.PACK: "TRISC2",
    Stage.BIAS: COMPUTES,
    Stage.UNTILIZE: COMPUTES,
    Stage.NETWORK: "networks",
    Stage.DRAM: "memory",
}
DIGITS: Final = 4  # decimals of a microsecond
DEVICE: Final = 0  # the process of the device
WHOLE: Final = ""  # the stage that stands for a whole operation, whose thread is 0
LONGEST: Final = 120  # characters of a name
NOTE: Final = (
    "Simulated. A stage's slice begins with its operation and lasts as long as the stage works and waits: the model "
    "knows how long that is, not when each block begins."
)
Event = dict[str, Any]


def trace_json_gz(operations: Sequence[OpRun], spec: DeviceSpec, name: str) -> bytes:
    """The compressed trace of the operations; `name` is the name of the report."""
    document = {
        "traceEvents": list(trace_events(operations, spec)),
        "displayTimeUnit": "ns",
        "otherData": {"report": _name(name), "device": _name(spec.name), "clock_hz": spec.clock_hz, "note": NOTE},
    }
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(text.encode("ascii"))
    return packed.getvalue()


def trace_events(operations: Sequence[OpRun], spec: DeviceSpec) -> Iterator[Event]:
    """Names of cores and stages, slices, levels of L1, flows."""
    timed = [(op, op.time) for op in operations if op.time is not None]
    groups = [group for _, time in timed for group in time.groups]
    cores = sorted({core for group in groups for core in group.coordinates}, key=lambda core: (core[1], core[0]))
    used = {stage.stage for group in groups for stage in group.stages if stage.busy_cycles}
    stages = [stage for stage in Stage if stage.value in used]
    processes = {core: number for number, core in enumerate(cores, start=1)}
    threads = {WHOLE: 0} | {stage.value: number for number, stage in enumerate(stages, start=1)}
    yield from _named("process", DEVICE, f"device {_name(spec.name)}")
    yield from _named("thread", DEVICE, "operations", 0)
    for (column, row), process in processes.items():
        yield from _named("process", process, f"core {column}-{row}")
        yield from _named("thread", process, "operations", 0)
        for stage in stages:
            yield from _named("thread", process, f"{PROCESSORS.get(stage, MOVES)} {stage.value}", threads[stage.value])
    for op, time in timed:
        yield from _slices(op, time, processes, threads, spec)
    yield from _levels(operations, known=bool(timed))
    for number, (name, source, sends, target, leaves, arrives) in enumerate(_flows(timed, spec)):
        same = {"id": number, "name": name, "cat": "network"}
        yield {"ph": "s", **same, "pid": processes[source], "tid": threads[sends], "ts": _time(leaves)}
        yield {"ph": "f", "bp": "e", **same, "pid": processes[target], "tid": 0, "ts": _time(arrives)}


def _named(kind: str, process: int, name: str, thread: int | None = None) -> Iterator[Event]:
    """The name of a process or a thread, and its sort index."""
    where = {"pid": process} if thread is None else {"pid": process, "tid": thread}
    place = process if thread is None else thread
    yield {"ph": "M", "name": f"{kind}_name", **where, "args": {"name": name}}
    yield {"ph": "M", "name": f"{kind}_sort_index", **where, "args": {"sort_index": place}}


def _slices(
    op: OpRun, time: OperationTime, processes: Mapping[Core, int], threads: Mapping[str, int], spec: DeviceSpec
) -> Iterator[Event]:
    """The slices of an operation: on the device, then on every core, then its stages on the core."""

    def piece(process: int, stage: str, lasts: float, arguments: dict[str, Any]) -> Event:
        what = {"ph": "X", "name": _name(op.name), "cat": stage or "operation", "pid": process, "tid": threads[stage]}
        return {**what, "ts": _time(op.start_nanoseconds), "dur": _time(lasts), "args": arguments}

    facts = {"cycles": time.cycles, "bound by": time.bound_by, "operation": op.number, "call": _name(op.place)}
    yield piece(DEVICE, WHOLE, time.nanoseconds, facts)
    for group in time.groups:
        whole, facts = nanoseconds(group.cycles, spec.clock_hz), {"cycles": group.cycles, "operation": op.number}
        for core in group.coordinates:
            yield piece(processes[core], WHOLE, whole, facts)
            for stage in group.stages:
                if stage.busy_cycles:
                    busy, waiting, critical = stage.busy_cycles, stage.stall_cycles, stage.critical_cycles
                    lasts = nanoseconds(min(busy + waiting, group.cycles), spec.clock_hz)
                    spent = {"busy": busy, "waiting": waiting, "critical": critical}
                    yield piece(processes[core], stage.stage, lasts, spent)


def _levels(operations: Sequence[OpRun], *, known: bool) -> Iterator[Event]:
    """The used L1 of a core from each operation on, and 0 after the last operation if times are known."""
    levels = [(op.start_nanoseconds, op.circular_bytes, op.buffer_bytes) for op in operations]
    if operations and known:
        levels.append((operations[0].runs.nanoseconds, 0, 0))
    for start, circular, buffers in levels:
        bytes_by_kind = {"circular buffers": circular, "buffers": buffers}
        yield {"ph": "C", "name": "L1 of a core (B)", "pid": DEVICE, "ts": _time(start), "args": bytes_by_kind}


Flow = tuple[str, Core, str, Core, float, float]  # name, sender, its stage, receiver, when it leaves and arrives


def _flows(timed: Sequence[tuple[OpRun, OperationTime]], spec: DeviceSpec) -> Iterator[Flow]:
    """Flows from halos to the next operation on each core, and from multicasting cores to the other groups."""
    for at, (op, time) in enumerate(timed):
        if op.name == HALO and at + 1 < len(timed):
            following, of_following = timed[at + 1]
            both = (core for group in time.groups for core in group.coordinates if core in of_following.ends)
            for core in both:
                yield "halo", core, WHOLE, core, op.start_nanoseconds, following.start_nanoseconds
        for stage in MULTICASTS:
            yield from _multicast(op, time, stage, spec)


def _multicast(op: OpRun, time: OperationTime, stage: Stage, spec: DeviceSpec) -> Iterator[Flow]:
    """Flows from the first core that runs the stage to the first core of each group without the stage."""
    spent = [sum(own.busy_cycles for own in group.stages if own.stage == stage) for group in time.groups]
    first = next((at for at, cycles in enumerate(spent) if cycles), None)
    if first is None:
        return
    sender = time.groups[first]
    arrives = op.start_nanoseconds + nanoseconds(min(spent[first], sender.cycles), spec.clock_hz)
    for group, sends in zip(time.groups, spent, strict=True):
        if not sends:
            yield stage.value, sender.coordinates[0], stage.value, group.coordinates[0], op.start_nanoseconds, arrives


def _time(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, DIGITS)


def _name(name: str) -> str:
    return printable(name[:LONGEST])
