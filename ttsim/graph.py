"""ttnn.graph: captures of calls, figures extracted from captures, and queries."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from device.cores import PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import BufferType
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    UsagePerCore as PeakMemoryUsagePerCore,
    usage_per_core,
)
from ttsim.recording import capture, capture as capture_graph
from ttsim.recording.capture import Node, captured_nodes, levelized_graph
from ttsim.recording.queries import (
    extract_mock_allocator_state as extract_mock_allocator_state,
    query_op_constraints as query_op_constraints,
    query_op_constraints_with_initial_state as query_op_constraints_with_initial_state,
    query_op_runtime as query_op_runtime,
    query_op_runtime_with_initial_state as query_op_runtime_with_initial_state,
)
from ttsim.runtime.queried import (
    AllocationRecord as AllocationRecord,
    ConstraintQueryResponse as ConstraintQueryResponse,
    ExecutionStatus as ExecutionStatus,
    MockAllocatorState as MockAllocatorState,
    QueryOutput as QueryOutput,
    ResourceUsage as ResourceUsage,
    RuntimeQueryResponse as RuntimeQueryResponse,
)
from ttsim.runtime.session import Capture, current, remember
from ttsim.runtime.types.call import require_type, required_integer
from ttsim.runtime.types.signatures import public
from ttsim.runtime.types.tensors import Shape

__all__ = [
    *("PeakMemoryUsagePerCore", "RunMode", "TensorInfo", "begin_graph_capture"),
    *("count_intermediate_and_output_tensors", "end_graph_capture", "end_graph_capture_to_file"),
    *("extract_calltrace", "extract_levelized_graph", "extract_output_info", "extract_output_tensors"),
    *("extract_peak_L1_memory_usage", "extract_resource_usage_per_core", "is_graph_capture_active"),
    *("pretty_format", "pretty_print"),
    *("AllocationRecord", "ConstraintQueryResponse", "ExecutionStatus", "MockAllocatorState", "QueryOutput"),
    *("ResourceUsage", "RuntimeQueryResponse", "extract_mock_allocator_state", "query_op_constraints"),
    *("query_op_constraints_with_initial_state", "query_op_runtime", "query_op_runtime_with_initial_state"),
]


class RunMode(PlainEnum):
    """Whether captured calls run on the device.

    NO_DISPATCH plans calls without allocating: addresses are 0, no program is cached, and results have no values.

    Examples:
        >>> ttnn.graph.RunMode.NO_DISPATCH.value
        1
    """

    NORMAL = 0
    NO_DISPATCH = 1


def begin_graph_capture(run_mode: RunMode = RunMode.NORMAL) -> None:
    """Records the calls of this thread on all devices until `end_graph_capture`; captures may nest.

    Args:
        run_mode: NORMAL runs the calls; NO_DISPATCH only plans them.

    Raises:
        ArgumentTypeError: The argument is not a RunMode.

    Examples:
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device))
        >>> nodes = ttnn.graph.end_graph_capture()
        >>> nodes[0]["node_type"]
        'capture_start'
    """
    require_type("begin_graph_capture", RunMode, run_mode=run_mode)
    remember(replace(current(), captures=(*current().captures, Capture(dispatch=run_mode is RunMode.NORMAL))))


def is_graph_capture_active() -> bool:
    """Whether a capture is active in this thread.

    Returns:
        True between `begin_graph_capture` and `end_graph_capture`.

    Examples:
        >>> ttnn.graph.is_graph_capture_active()
        False
    """
    return bool(current().captures)


def end_graph_capture() -> list[Node]:
    """Ends the innermost capture.

    Returns:
        The nodes of the capture, in ttnn's format; an empty list if no capture is active.

    Examples:
        >>> ttnn.graph.begin_graph_capture()
        >>> [node["node_type"] for node in ttnn.graph.end_graph_capture()]
        ['capture_start', 'capture_end']
    """
    captures = current().captures
    if not captures:
        return []
    captures[-1].stop()
    remember(replace(current(), captures=captures[:-1]))
    return captured_nodes(captures[-1].events, captures[-1].op_models)


def end_graph_capture_to_file(report_path: str | Path) -> list[Node]:
    """Ends the innermost capture and writes its nodes into a JSON file; creates the folder of the file.

    Args:
        report_path: Path of the file.

    Returns:
        The nodes of the capture.

    Raises:
        TypeError: ``report_path`` is not a path.
        OSError: The file cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> ttnn.graph.begin_graph_capture()
        >>> with TemporaryDirectory() as folder:
        ...     len(ttnn.graph.end_graph_capture_to_file(f"{folder}/graph.json"))
        2
    """
    nodes, path = end_graph_capture(), Path(report_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"graph": nodes}, indent=1), encoding="utf-8")
    return nodes


@contextmanager
def _reading(function: str, trace: object) -> Iterator[None]:
    """A context that raises ArgumentTypeError if a trace is not a list of nodes."""
    try:
        yield
    except (TypeError, LookupError, ValueError, AttributeError, StopIteration):
        text = f"{function}: trace must be a list of nodes of end_graph_capture(), not {shown(trace)}"
        raise ArgumentTypeError(text) from None


def pretty_format(captured_graph: Sequence[Mapping[str, Any]]) -> str:
    """The nodes of a capture as text, one line for each node.

    Args:
        captured_graph: Nodes of `end_graph_capture`.

    Returns:
        The lines.

    Raises:
        ArgumentTypeError: The argument is not a list of nodes.

    Examples:
        >>> ttnn.graph.begin_graph_capture()
        >>> len(ttnn.graph.pretty_format(ttnn.graph.end_graph_capture()).splitlines())
        2
    """
    with _reading("pretty_format", captured_graph):
        return capture_graph.pretty_format(captured_graph)


def pretty_print(captured_graph: Sequence[Mapping[str, Any]]) -> None:
    """Writes the text of `pretty_format` to the standard output.

    Args:
        captured_graph: Nodes of `end_graph_capture`.

    Raises:
        ArgumentTypeError: The argument is not a list of nodes.

    Examples:
        >>> ttnn.graph.begin_graph_capture()
        >>> ttnn.graph.pretty_print(ttnn.graph.end_graph_capture())
        Capture Start
        ...
    """
    sys.stdout.write(pretty_format(captured_graph) + "\n")


def extract_resource_usage_per_core(
    trace: Sequence[Mapping[str, Any]], interleaved_storage_cores: int | None = None
) -> PeakMemoryUsagePerCore:
    """The peak memory of one core during a capture.

    Args:
        trace: Nodes of `end_graph_capture`.
        interleaved_storage_cores: Not used, as in ttnn.

    Returns:
        Peak bytes of circular buffers (peak_cb), of L1 buffers (peak_l1), and of their sum (peak_total).

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> ttnn.graph.extract_resource_usage_per_core(ttnn.graph.end_graph_capture()).peak_total
        8192
    """
    with _reading("extract_resource_usage_per_core", trace):
        return usage_per_core(capture.events(trace))


def extract_peak_L1_memory_usage(trace: Sequence[Mapping[str, Any]]) -> int:  # noqa: N802 - ttnn's name
    """The peak of ttnn's rough estimate: total sizes of L1 buffers over all cores plus circular buffers of one core.

    Args:
        trace: Nodes of `end_graph_capture`.

    Returns:
        Bytes.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.

    Examples:
        >>> ttnn.graph.begin_graph_capture()
        >>> ttnn.graph.extract_peak_L1_memory_usage(ttnn.graph.end_graph_capture())
        0
    """
    circular = peak = 0
    live: dict[int, int] = {}
    with _reading("extract_peak_L1_memory_usage", trace):
        events = capture.events(trace)
    for event in events:
        if isinstance(event, CircularBufferAllocated):
            circular += event.size_bytes
        elif isinstance(event, CircularBuffersFreed):
            circular = 0
        elif isinstance(event, BufferAllocated) and event.buffer.buffer_type is not BufferType.DRAM:
            live[event.number] = event.buffer.size_bytes
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
        peak = max(peak, circular + sum(live.values()))
    return peak


def extract_calltrace(trace: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of all functions of a capture, in order of their start.

    Args:
        trace: Nodes of `end_graph_capture`.

    Returns:
        The names.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> ttnn.graph.extract_calltrace(ttnn.graph.end_graph_capture())[:2]
        ['ttnn.relu', 'UnaryDeviceOperation']
    """
    with _reading("extract_calltrace", trace):
        return [node["params"]["name"] for node in trace if node["node_type"] == "function_start"]


def extract_levelized_graph(trace: Sequence[Mapping[str, Any]], max_level: int = 1) -> list[dict[str, Any]]:
    """The functions of a capture down to a level, their input tensors, and the edges between them.

    Args:
        trace: Nodes of `end_graph_capture`.
        max_level: The deepest level; functions that the script calls have level 1.

    Returns:
        Vertices: counter, name, stacking_level, arguments, in_edges, out_edges, internals, output_info, output_shape.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes, or ``max_level`` is not an integer.
        ArgumentError: ``max_level`` is negative.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> [vertex["name"] for vertex in ttnn.graph.extract_levelized_graph(ttnn.graph.end_graph_capture())]
        ['ttnn.relu']
    """
    level = required_integer("extract_levelized_graph", "max_level", max_level)
    if level < 0:
        raise ArgumentError(f"extract_levelized_graph: max_level must be at least 0, not {level}; 1 is usual")
    with _reading("extract_levelized_graph", trace):
        return levelized_graph(trace, level)


class TensorInfo(NamedTuple):
    """An output in a capture: shape, bytes of its buffer over all cores, and memory (DRAM or L1).

    Examples:
        >>> ttnn.graph.TensorInfo(ttnn.Shape((32, 32)), 2048, ttnn.BufferType.L1)
        TensorInfo(shape=Shape([32, 32]), size=2048, type=L1)
    """

    shape: Shape
    size: int  # Bytes of its buffer, over all cores
    type: BufferType  # DRAM or L1

    def __repr__(self) -> str:
        """As the real library prints it."""
        return f"TensorInfo(shape={self.shape}, size={self.size}, type={self.type.name})"


def extract_output_tensors(trace: Sequence[Mapping[str, Any]]) -> set[int]:
    """The outputs of the last device operation of a capture.

    Args:
        trace: Nodes of `end_graph_capture`.

    Returns:
        The counters of the nodes of these tensors.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.
        DeviceError: No device operation created a tensor.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> len(ttnn.graph.extract_output_tensors(ttnn.graph.end_graph_capture()))
        1
    """
    with _reading("extract_output_tensors", trace):
        for node in reversed(trace):
            outputs = {counter for counter in node["connections"] if trace[counter]["node_type"] == "tensor"}
            if node["node_type"] == "function_end" and outputs:
                return outputs
    raise DeviceError(
        "No function_end node with tensor connections found in the trace\n"
        "capture a call that runs a device operation and makes a tensor"
    )


def extract_output_info(trace: Sequence[Mapping[str, Any]]) -> list[TensorInfo]:
    """Shape, bytes and memory of the outputs of the last device operation of a capture.

    Args:
        trace: Nodes of `end_graph_capture`.

    Returns:
        A TensorInfo for each output.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.
        DeviceError: No device operation created a tensor.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> ttnn.graph.extract_output_info(ttnn.graph.end_graph_capture())
        [TensorInfo(shape=Shape([32, 32]), size=2048, type=DRAM)]
    """
    wanted, infos = extract_output_tensors(trace), []
    for node in trace:
        if node["node_type"] == "buffer":
            for counter in wanted.intersection(node["connections"]):
                sides = json.loads(trace[counter]["params"]["shape"].removeprefix("Shape(").removesuffix(")"))
                kind = BufferType.L1 if node["params"]["type"] == "L1" else BufferType.DRAM
                infos.append(TensorInfo(Shape(sides), int(node["params"]["size"]), kind))
    return infos


def count_intermediate_and_output_tensors(trace: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The numbers of intermediate and of output tensors, as the real library (0.81.1) counts them.

    Args:
        trace: Nodes of `end_graph_capture`.

    Returns:
        0, since the real library finds no intermediate tensor, and the number of outputs of the last device operation.

    Raises:
        ArgumentTypeError: ``trace`` is not a list of nodes.
        DeviceError: No device operation created a tensor.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        >>> output = ttnn.relu(tensor)
        >>> ttnn.graph.count_intermediate_and_output_tensors(ttnn.graph.end_graph_capture())
        (0, 1)
    """
    return 0, len(extract_output_tensors(trace))


__dir__ = public(globals())
