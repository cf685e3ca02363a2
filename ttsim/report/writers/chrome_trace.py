"""A timeline as a Chrome trace, which Perfetto and chrome://tracing open: the same bytes for the same timeline.

A process is a core, a thread one of its stages with the processor that it runs on; process 0 is the device. Times are
microseconds with fractions, which keep single cycles.
"""

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ttsim.report.page.trace import Core, Flow, Slice, Trace
from ttsim.report.printable import printable

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
        yield _slice(one, processes, threads)
    for level in trace.levels:
        held = {"circular buffers": level.circular_bytes, "buffers": level.buffer_bytes}
        yield {"ph": "C", "name": "L1 of a core (B)", "pid": DEVICE, "ts": _time(level.start_nanoseconds), "args": held}
    for number, flow in enumerate(trace.flows):
        yield from _flow(number, flow, processes, threads)


def _process(process: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}


def _thread(process: int, thread: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": {"sort_index": thread}}


def _slice(one: Slice, processes: Mapping[Core, int], threads: Mapping[str, int]) -> Event:
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


def _flow(number: int, one: Flow, processes: Mapping[Core, int], threads: Mapping[str, int]) -> Iterator[Event]:
    same = {"id": number, "name": one.name, "cat": "network"}
    leaves, arrives = _time(one.start_nanoseconds), _time(one.end_nanoseconds)
    thread = threads[one.source_stage] if one.source_stage else WHOLE
    yield {"ph": "s", **same, "pid": processes[one.source], "tid": thread, "ts": leaves}
    yield {"ph": "f", "bp": "e", **same, "pid": processes[one.target], "tid": WHOLE, "ts": arrives}


def _time(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, DIGITS)


def _name(name: str) -> str:
    return printable(name[:LONGEST])
