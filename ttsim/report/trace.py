"""The timeline of a network for viewers of traces: slices of cores' stages, counters of L1, and flows between them.

The models know how long a stage works and waits, not when each of its blocks begins: a slice begins with its operation
and lasts as long as its stage works and waits. Groups of equal cores are timed once, and each core gets its slices.
"""

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage, nanoseconds
from ttsim.report.cycles import CoreGroupTime, OperationTime, StageTime
from ttsim.report.formatting import printable
from ttsim.report.page_parts import Part
from ttsim.report.runs import OpRun

HALO: Final = "HaloDeviceOperation"
MULTICASTS: Final = (Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST)
MOVES: Final = "BRISC/NCRISC"  # which of the two does it differs from program to program
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
Core = tuple[int, int]
Arguments = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What a core does for a time."""

    core: Core | None  # Column and row; None for the device
    stage: str  # Of the core; empty for the whole operation
    name: str
    start_nanoseconds: float  # When it begins
    nanoseconds: float  # How long it lasts
    arguments: Arguments  # Further figures, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """L1 of a core while an operation runs."""

    start_nanoseconds: float  # From when on
    circular_bytes: int  # Circular buffers, on the core that has most
    buffer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Something that goes from one core to another, or from one operation to the next."""

    name: str  # "halo", or the stage that sends
    source: Core  # Core that sends
    source_stage: str  # On which of its stages; empty for the whole operation
    target: Core  # Core that receives
    start_nanoseconds: float  # When it leaves
    end_nanoseconds: float  # When it arrives


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A timeline."""

    device: str
    clock_hz: int
    cores: tuple[Core, ...]  # Cores that do something, row by row: column and row
    # The stages of cores that do something, in the order of the pipeline, with their processors
    stages: tuple[tuple[str, str], ...]
    slices: tuple[Slice, ...]  # In order of operations
    levels: tuple[Level, ...]  # L1, one for each operation, and one behind the last
    flows: tuple[Flow, ...]  # In order of operations


def trace_of(part: Part, spec: DeviceSpec) -> Trace:
    """The timeline of what a page shows.

    Args:
        part: What ran.
    """
    timed = [(one, one.time) for one in part.operations if one.time is not None]
    slices = [one for op, time in timed for one in _slices(op, time, spec)]
    cores = sorted({one.core for one in slices if one.core is not None}, key=lambda core: (core[1], core[0]))
    used = {one.stage for one in slices}
    return Trace(
        device=spec.name,
        clock_hz=spec.clock_hz,
        cores=tuple(cores),
        stages=tuple((one.value, PROCESSORS.get(one, MOVES)) for one in Stage if one.value in used),
        slices=tuple(slices),
        levels=tuple(_levels(part)),
        flows=tuple(_flows(timed, spec)),
    )


def _slices(op: OpRun, time: OperationTime, spec: DeviceSpec) -> Iterator[Slice]:
    """The operation on the device, then on every core, then its stages there."""
    arguments = (("cycles", time.cycles), ("bound by", time.bound_by), ("operation", op.number))
    yield _slice(None, "", op, time.nanoseconds, arguments)
    for group in time.groups:
        whole = nanoseconds(group.cycles, spec.clock_hz)
        own = (("cycles", group.cycles), ("operation", op.number))
        stages = [(one.stage, *_extent(one, group, spec)) for one in group.stages if one.busy_cycles]
        for core in group.coordinates:
            yield _slice(core, "", op, whole, own)
            for stage, lasts, told in stages:
                yield _slice(core, stage, op, lasts, told)


def _slice(core: Core | None, stage: str, op: OpRun, lasts: float, arguments: Arguments) -> Slice:
    return Slice(
        core=core,
        stage=stage,
        name=op.name,
        start_nanoseconds=op.start_nanoseconds,
        nanoseconds=lasts,
        arguments=arguments,
    )


def _extent(stage: StageTime, group: CoreGroupTime, spec: DeviceSpec) -> tuple[float, Arguments]:
    """How long a stage works and waits, within its core's time; and its figures."""
    lasts = min(stage.busy_cycles + stage.stall_cycles, group.cycles)
    told = (("busy", stage.busy_cycles), ("waiting", stage.stall_cycles), ("critical", stage.critical_cycles))
    return nanoseconds(lasts, spec.clock_hz), told


def _levels(part: Part) -> Iterator[Level]:
    """L1 from each operation on."""
    for op in part.operations:
        yield Level(
            start_nanoseconds=op.start_nanoseconds,
            circular_bytes=op.circular_bytes,
            buffer_bytes=op.buffer_bytes,
        )
    if part.operations and part.total is not None:
        yield Level(start_nanoseconds=part.total.nanoseconds, circular_bytes=0, buffer_bytes=0)


def _flows(timed: Sequence[tuple[OpRun, OperationTime]], spec: DeviceSpec) -> Iterator[Flow]:
    """What halos leave on each core for the next operation, and from who multicasts to groups that do not."""
    for at, (op, time) in enumerate(timed):
        if op.name == HALO and at + 1 < len(timed):
            after = timed[at + 1][0].start_nanoseconds
            there = {core for group in timed[at + 1][1].groups for core in group.coordinates}
            for group in time.groups:
                begins = op.start_nanoseconds
                for core in group.coordinates:
                    if core in there:
                        yield _flow("halo", core, "", core, begins, after)
        for stage in MULTICASTS:
            yield from _multicast(op, time, stage, spec)


def _multicast(op: OpRun, time: OperationTime, stage: Stage, spec: DeviceSpec) -> Iterator[Flow]:
    """From the first core that sends to the first core of each group that does not."""
    senders = [group for group in time.groups if any(one.stage == stage and one.busy_cycles for one in group.stages)]
    if not senders:
        return
    source = senders[0].coordinates[0]
    spent = next(one.busy_cycles for one in senders[0].stages if one.stage == stage)
    arrives = op.start_nanoseconds + nanoseconds(min(spent, senders[0].cycles), spec.clock_hz)
    for group in time.groups:
        if group not in senders:
            yield _flow(stage.value, source, stage.value, group.coordinates[0], op.start_nanoseconds, arrives)


def _flow(name: str, source: Core, stage: str, target: Core, begins: float, ends: float) -> Flow:
    return Flow(
        name=name,
        source=source,
        source_stage=stage,
        target=target,
        start_nanoseconds=begins,
        end_nanoseconds=ends,
    )


DIGITS: Final = 4  # decimals of a microsecond
DEVICE: Final = 0  # the process that is no core
WHOLE: Final = 0  # the thread of whole operations
LONGEST: Final = 120  # characters of a name
NOTE: Final = (
    "Simulated. A stage's slice begins with its operation and lasts as long as the stage works and waits: the model "
    "knows how long that is, not when each block begins."
)
Event = dict[str, Any]


def trace_json_gz(trace: Trace) -> bytes:
    """The file.

    Args:
        trace: What it shows.
    """
    document = {
        "traceEvents": list(_events(trace)),
        "displayTimeUnit": "ns",
        "otherData": {"device": _name(trace.device), "clock_hz": trace.clock_hz, "note": NOTE},
    }
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii"))
    return packed.getvalue()


def _events(trace: Trace) -> Iterator[Event]:
    processes = {core: number for number, core in enumerate(trace.cores, start=1)}
    threads = {stage: number for number, (stage, _) in enumerate(trace.stages, start=1)}
    yield from _process(DEVICE, f"device {_name(trace.device)}")
    yield from _thread(DEVICE, WHOLE, "operations")
    for (column, row), process in processes.items():
        yield from _process(process, f"core {column}-{row}")
        yield from _thread(process, WHOLE, "operations")
        for stage, processor in trace.stages:
            yield from _thread(process, threads[stage], f"{processor} {stage}")
    for one in trace.slices:
        yield _chrome_trace_slice(one, processes, threads)
    for level in trace.levels:
        held = {"circular buffers": level.circular_bytes, "buffers": level.buffer_bytes}
        yield {"ph": "C", "name": "L1 of a core (B)", "pid": DEVICE, "ts": _time(level.start_nanoseconds), "args": held}
    for number, flow in enumerate(trace.flows):
        yield from _chrome_trace_flow(number, flow, processes, threads)


def _process(process: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}


def _thread(process: int, thread: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": {"sort_index": thread}}


def _chrome_trace_slice(one: Slice, processes: Mapping[Core, int], threads: Mapping[str, int]) -> Event:
    return {
        "ph": "X",
        "name": _name(one.name),
        "cat": one.stage or "operation",
        "pid": DEVICE if one.core is None else processes[one.core],
        "tid": threads[one.stage] if one.stage else WHOLE,
        "ts": _time(one.start_nanoseconds),
        "dur": _time(one.nanoseconds),
        "args": dict(one.arguments),
    }


def _chrome_trace_flow(
    number: int, one: Flow, processes: Mapping[Core, int], threads: Mapping[str, int]
) -> Iterator[Event]:
    same = {"id": number, "name": one.name, "cat": "network"}
    leaves, arrives = _time(one.start_nanoseconds), _time(one.end_nanoseconds)
    thread = threads[one.source_stage] if one.source_stage else WHOLE
    yield {"ph": "s", **same, "pid": processes[one.source], "tid": thread, "ts": leaves}
    yield {"ph": "f", "bp": "e", **same, "pid": processes[one.target], "tid": WHOLE, "ts": arrives}


def _time(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, DIGITS)


def _name(name: str) -> str:
    return printable(name[:LONGEST])
