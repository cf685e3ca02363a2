"""The record of a profile, and report files for other tools in tt-metal's directory layout."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import count, groupby
from pathlib import Path
from typing import Final

from device.errors import ArgumentError, ArgumentTypeError, shown
from device.plan import (
    Allocate,
    CircularBufferAllocated,
    CircularBuffersFreed,
    DeviceOp,
    Event,
    Operation,
    OperationBegin,
    OperationEnd,
    Refuse,
    WrittenTensor,
)
from device.spec.device_spec import DeviceSpec
from ops.op_model import op_model_of
from ops.passes.cycles import operations_of
from ttsim.recording.capture import Node, NodeText, nodes
from ttsim.recording.memory_reports import memory_reports
from ttsim.recording.profiling import Profile, ends_of_operations, page_of_run, places, runs_of, sources, stacks_of
from ttsim.report.actions import counts_yaml
from ttsim.report.cycle_report import cycle_report
from ttsim.report.exports import cluster_descriptor, config, database, device_log, npe_files, ops_perf_results
from ttsim.report.network import OpRun, names_read, network_report, placed_buffers
from ttsim.report.record import Record, RecordedCall, known_arch, numbered
from ttsim.report.timelines import Document, timeline
from ttsim.report.trace import trace_json_gz
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.json import report_json
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.call import require_type


def record_of(profile: Profile, name: str) -> Record:
    """The record of all calls of a profile so far; the profile may continue."""
    device, spec = profile.device, profile.device.spec
    seen = [call for call in profile.calls if call.ran or call.error]
    taken = profile.taken()
    operations = runs_of(profile.ran, taken, spec)
    tensors = numbered(tensor for call in seen for tensor in _tensors(call))
    of_calls = (list(group) for _, group in groupby(operations, key=lambda op: op.call))
    calls = []
    for number, (call, where, stack) in enumerate(zip(seen, places(seen), stacks_of(seen), strict=True), start=1):
        ran = next(of_calls) if call.ran else []
        carried_out = (index for index, step in enumerate(call.plan.steps) if not isinstance(step, Refuse))
        read = {name for step in operations_of(call.plan, carried_out) for name in names_read(step)}
        recorded = RecordedCall(
            number=number,
            function=call.function,
            where=where,
            stack=stack,
            before=call.before,
            events=call.events,
            nanoseconds=sum(op.kernel_nanoseconds for op in ran),
            arguments=tuple(_arguments(call)),
            inputs=tuple(tensors[tensor] for name, tensor in call.inputs if name in read),
            outputs=tuple(tensors[tensor] for _, tensor in call.results),
            error=call.error,
            nodes=tuple(_nodes(call, ran, spec)),
        )
        calls.append(recorded)
    return Record(
        name=name,
        spec=spec,
        l1_small_bytes=device.machine.l1_small_bytes,
        calls=tuple(calls),
        operations=tuple(operations),
        sources=sources(seen),
        tensors=tensors,
        timelines=tuple(_timelines(operations, profile)),
        cycles=cycle_report(taken, spec),
        network=network_report(operations, spec),
    )


def _timelines(operations: Iterable[OpRun], profile: Profile) -> Iterator[tuple[int, Document]]:
    """The network traffic of programs by program number, each program once."""
    spec, programs = profile.device.spec, dict[int, DeviceOp | None]()
    for run in operations:
        programs.setdefault(run.program, run.step.op)
    for program, op in programs.items():
        model = op_model_of(op, profile.device.op_models)
        sent = () if model.sent is None else model.sent(op, spec)
        if sent:
            yield program, timeline(sent, spec, known_arch(spec) or "unknown")


def _tensors(call: RanCall) -> Iterator[WrittenTensor]:
    yield from (tensor for _, tensor in call.inputs)  # including the tensors that the call writes into
    for end in ends_of_operations(call.events):
        yield from end.made
    yield from (tensor for _, tensor in call.results)


def _arguments(call: RanCall) -> Iterator[tuple[str, str]]:
    """The arguments in the script, or else the tensors of the plan, followed by the planner's choices."""
    yield from call.given
    if not call.given:
        allocated = {step.tensor for step in call.plan.steps if isinstance(step, Allocate)}
        programs = (step for step in call.plan.steps if isinstance(step, Operation))
        allocated |= {result.tensor for step in programs for result in (*step.outputs, *step.resident)}
        own = ((name, spec) for name, spec in call.plan.tensors.items() if name not in allocated)
        yield from ((name, f"{list(spec.shape)} {spec.data_format.name} {spec.layout.name}") for name, spec in own)
    for decision in call.plan.decisions:
        yield decision.name, str(decision.value)


def _nodes(call: RanCall, operations: Sequence[OpRun], spec: DeviceSpec) -> list[Node]:
    """The graph of a call: a function node around all its events, with the kernel time of each device operation.

    If the call did not fit, the graph has only the device operation that could not be allocated.
    """
    inside: Iterable[Event] = _with_circular_buffers(call, spec)
    if call.error:
        refused = (event for event in call.events if isinstance(event, OperationEnd) and event.aborted)
        inside = (event for end in refused for event in (OperationBegin(end.name), end))
    events = [OperationBegin(call.function), *inside, OperationEnd(call.function, aborted=bool(call.error))]
    text = (NodeText(op.kernel_nanoseconds, op.attributes) for op in operations)
    return nodes(events, lambda begin, end: next(text))


def _with_circular_buffers(call: RanCall, spec: DeviceSpec) -> Iterator[Event]:
    """The events of a call, with the circular buffers (without views) of every device operation until its end.

    A capture lacks the circular buffers of cached programs and of programs with dataflow buffers.
    """
    steps = operations_of(call.plan, call.ran)
    shown = False
    for event in call.events:
        if isinstance(event, OperationEnd):
            step = next(steps)
            if not shown:
                for buffer, address in placed_buffers(step, spec):
                    where = (buffer.size_bytes, address, buffer.cores)
                    yield CircularBufferAllocated(step.name, buffer.name, *where, view=False)
            yield CircularBuffersFreed()
        if isinstance(event, CircularBufferAllocated):
            shown = shown or event.shown
        elif isinstance(event, OperationBegin):
            shown = False
        yield event


OF_TIME: Final = ("profile_log_device.csv", "npe_viz/manifest.json")  # without these, viewers ignore the other files
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
MEMORY: Final = Path("generated") / "ttnn" / "reports"
PERFORMANCE: Final = Path("generated") / "profiler" / "reports"
USAGE: Final = Path("generated") / "reports"


def save_report(directory: str | Path, profile: Profile, *, name: str = "report") -> Path:
    """Writes a profile as files for tools of Tenstorrent and others; equal calls give equal bytes.

    Use the directory as ``ttnn-visualizer --tt-metal-home``. It gets

    * generated/ttnn/reports/<name>: db.sqlite and config.json,
    * generated/profiler/reports/<name>, if a device operation ran: ops_perf_results_<name>.csv, which tt-perf-report
      reads as well, profile_log_device.csv, and npe_viz if data goes from core to core,
    * generated/reports/<name>_*.csv: the memories now, or before the device was closed, as `dump_device_memory_state`
      writes them,
    * <name>.html, a page without further files; <name>.trace.json.gz, a timeline for Perfetto; <name>.json; and
      <name>.counts.yaml, counts of actions for Accelergy.

    Args:
        directory: The directory, which several reports may share; a report of the same name is replaced.
        profile: The profile.
        name: Name of the report: up to 100 letters, digits, underscores, points and hyphens.

    Returns:
        The directory.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The name is not a valid file name on every system.
        OSError: A file cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with ttnn.profile(device) as profile, TemporaryDirectory() as folder:
        ...     written = ttnn.save_report(folder, profile, name="empty")
        ...     (written / "empty.html").exists()
        True
    """
    if not isinstance(directory, str | Path):
        raise ArgumentTypeError(f"save_report: directory must be a path, not {shown(directory)}")
    require_type("save_report", Profile, profile=profile)
    require_type("save_report", str, name=name)
    if NAME.fullmatch(name) is None:
        raise ArgumentError(
            "save_report: name must be up to 100 letters, digits, underscores, points and hyphens, none of the "
            f"last two in front, not {shown(name)}"
        )
    folder = Path(directory)
    files = report_files(profile, name)
    for path in {PERFORMANCE / name / file for file in (f"ops_perf_results_{name}.csv", *OF_TIME)} - set(files):
        with suppress(FileNotFoundError, NotADirectoryError, ValueError):
            (folder / path).unlink()  # Of an earlier report
    for path, content in files.items():
        try:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        except ValueError:
            raise ArgumentError(
                f"save_report: directory must be a path that the system can have, not {shown(directory)}"
            ) from None
    return folder


def reserved_name(directory: str | Path, name: str) -> str:
    """The first of ``<name>``, ``<name>-2``, ``<name>-3`` ... that no report of the directory has.

    The name is reserved atomically, so concurrent processes get different names. Creates the directory; raises OSError
    if the directory is not writable.
    """
    for number in count(1):
        free = name if number == 1 else f"{name}-{number}"
        try:
            (Path(directory) / MEMORY / free).mkdir(parents=True)
        except FileExistsError:
            if not (Path(directory) / MEMORY).is_dir():
                raise
            continue
        break
    return free


def report_files(profile: Profile, name: str) -> dict[Path, bytes]:
    """The files of a report, by their paths below its directory."""
    record, spec = record_of(profile, name), profile.device.spec
    page = page_of_run(profile, record.network, record.cycles)
    usage = memory_reports(profile.device, before_closing=True)
    texts = {
        MEMORY / name / "config.json": config(record),
        MEMORY / name / "cluster_descriptor.yaml": cluster_descriptor(record),
        Path(f"{name}.json"): report_json(record),
        Path(f"{name}.counts.yaml"): counts_yaml([record.cycles]),
        **{USAGE / f"{name}_{file}": text for file, text in usage.items()},
    }
    if record.operations:  # viewers refuse tables without rows
        times = {f"ops_perf_results_{name}.csv": ops_perf_results(record), OF_TIME[0]: device_log(record)}
        times |= {f"npe_viz/{file}": text for file, text in npe_files(record).items()}
        texts |= {PERFORMANCE / name / file: text for file, text in times.items()}
    return {
        MEMORY / name / "db.sqlite": database(record),
        Path(f"{name}.html"): page_html(page).encode(),
        Path(f"{name}.trace.json.gz"): trace_json_gz(record.network.operations, spec, name),
        **{path: text.encode() for path, text in texts.items()},
    }
