"""Converts events into the nodes that the real library's ``end_graph_capture`` returns, and back.

A node is a dict: counter, node_type, params, connections (counters of its successors), arguments, input_tensors
(counters of the tensors that a function reads) and stacking_level; the end node of a function that ran device
operations has duration_ns, their kernel time. The real library's host operations on weights are not recorded.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from device.cores import CoreRangeSet
from device.memory.layouts import BufferSpec, TensorSpec, layout_fields
from device.memory.memory_config import TILE, BufferType, MemoryConfig, TensorMemoryLayout
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    OperationBegin,
    OperationEnd,
    WrittenTensor,
)
from ops.op_model import Ends, OpModels
from ops.passes.cycles import timed_operation
from ttsim.report.cycles import kernel_nanoseconds, whole

MESH_ID = 1  # the real library numbers the first mesh so
DEVICE_ID = 0  # and the first device of it
FACE = TILE // 2
DEVICE = "<MeshDevice>"


def host_params(spec: TensorSpec, number: int) -> dict[str, object]:
    """The parameters of a node of a host tensor."""
    element_bytes = spec.data_format.element_bytes or 1  # the real library counts block floats as 1
    return {
        "dtype": _dtype(spec),
        "layout": f"Layout::{spec.layout.name}",
        "shape": shape_text(spec),
        "size": spec.volume * element_bytes,
        "storage_type": "HOST",
        "tensor_id": number,
    }


def device_params(tensor: WrittenTensor, buffer: Mapping[str, object]) -> dict[str, object]:
    """The parameters of a node of a device tensor; `buffer` are the parameters of its buffer."""
    where = {"address": tensor.address, "device_id": DEVICE_ID, "mesh_device_id": MESH_ID}
    return {
        **host_params(tensor.spec, tensor.number),
        "address": tensor.address,
        "buffer_type": buffer["buffer_type"],
        "device_id": buffer["device_id"],
        "device_tensors": json.dumps([where], separators=(",", ":")),
        "memory_config": str(tensor.spec.memory_config),
        "storage_type": "DEVICE",
    }


def buffer_params(place: BufferSpec | MemoryConfig, size_bytes: int) -> dict[str, object]:
    """The common parameters of nodes about a buffer of this size."""
    kind = place.buffer_type
    return {
        "buffer_type": kind.value,
        "device_id": MESH_ID,
        "layout": place.memory_layout.name,
        "size": size_bytes,
        "type": "DRAM" if kind is BufferType.DRAM else "L1",
    }


def tensor_text(spec: TensorSpec, *, storage: str) -> str:
    """The text of a tensor argument; `storage` is DeviceStorage or HostStorage."""
    return (
        f"Tensor(storage={storage}(),tensor_spec=TensorSpec(logical_shape={shape_text(spec)},tensor_layout="
        f"{layout_fields(spec)}{spec.memory_config})))"
    )


def shape_text(spec: TensorSpec) -> str:
    """The logical shape."""
    return f"Shape({list(spec.shape)})"


def _dtype(spec: TensorSpec) -> str:
    return f"DataType::{spec.data_format.name.upper()}"


Node = dict[str, Any]
TO_DEVICE: Final = "Tensor::to_device"  # the function that allocates a buffer for a host tensor
CPU: Final = "Tensor::cpu"  # the function that reads a device tensor
CIRCULAR = ("circular_buffer_allocate", "globally_allocated")  # kind of node, and its key for views
DATAFLOW = ("dataflow_buffer_allocate", "borrows_memory")
SCRATCHPAD = "scratchpad_allocate"


class NodeText(NamedTuple):
    """The kernel time and the attributes of a finished device operation."""

    nanoseconds: int = 0  # Kernel time; 0 without a model, or if the operation did not run
    attributes: tuple[tuple[str, str], ...] = ()  # Printed by the real library's profiler, by name


Tell = Callable[[OperationBegin, OperationEnd], NodeText]


def nodes(events: Sequence[Event], tell: Tell = lambda begin, end: NodeText()) -> list[Node]:
    """The nodes of a capture; `tell` is called at the end of each device operation, in order."""
    numbers = [event.number for event in events if isinstance(event, BufferAllocated)]
    numbers += [source.tensor.number for event in events if isinstance(event, OperationBegin) for source in event.read]
    writer = _Writer(tell, first_number=1 + max(numbers, default=0))
    writer.node("capture_start", None)
    for event in events:
        writer.write(event)
    writer.finish()
    return writer.nodes


def events(trace: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events of buffers and circular buffers in nodes, without names and grids."""
    result: list[Event] = []
    for node in trace:
        kind, params = node["node_type"], node["params"] or {}
        if kind in ("buffer_allocate", "buffer_deallocate"):
            number = node["connections"][0] if node["connections"] else -1
            make = BufferAllocated if kind == "buffer_allocate" else BufferFreed
            result.append(make(number, "", int(params.get("address", 0)), _buffer(params)))
        elif kind in (CIRCULAR[0], DATAFLOW[0], SCRATCHPAD):
            dataflow = kind != CIRCULAR[0]
            view = str(params.get(DATAFLOW[1] if dataflow else CIRCULAR[1])) == "1"
            size, address = int(params["size"]), int(params["address"])
            result.append(CircularBufferAllocated("", "", size, address, CoreRangeSet(), view, dataflow))
        elif kind == "circular_buffer_deallocate_all":
            result.append(CircularBuffersFreed())
    return result


def _buffer(params: Mapping[str, Any]) -> BufferSpec:
    kind = BufferType(int(params["buffer_type"])) if "buffer_type" in params else BufferType[params["type"]]
    layout, cores = TensorMemoryLayout[params["layout"]], int(params.get("num_cores", 0))
    size, page, bank = (int(params[name]) for name in ("size", "page_size", "max_size_per_bank"))
    return BufferSpec(kind, layout, size_bytes=size, page_bytes=page, bank_bytes=bank, num_cores=cores)


class _Open(NamedTuple):
    """A running function: its node, its event, and the nanoseconds of its device operations so far."""

    node: Node
    begin: OperationBegin
    taken: list[int]


class _Writer:
    """Converts events into nodes and tracks open functions and live buffers."""

    def __init__(self, tell: Tell, *, first_number: int) -> None:
        self.nodes: list[Node] = []
        self._tell = tell
        self._next_number = first_number  # of a tensor on the host, which has no buffer number
        self._open: list[_Open] = []
        self._buffers: dict[tuple[int, int], int] = {}  # (buffer number, address) -> counter of its buffer node
        self._ended: dict[int, Node] = {}  # stacking level -> the function_end that waits for its successor

    def write(self, event: Event) -> None:
        match event:
            case OperationBegin(name=name, read=read):
                on_device = [tensor_text(source.tensor.spec, storage="DeviceStorage") for source in read[:1]]
                self._begin(event, [*on_device, "1"] if name == CPU else ())
            case OperationEnd():
                self._end(event)
            case BufferAllocated() | BufferFreed():
                self._buffer_event(event)
            case CircularBufferAllocated(shown=True, scratchpad=scratchpad):
                kind, view = DATAFLOW if event.dataflow else CIRCULAR
                place = {"address": event.address, "core_range_set": str(event.cores), "device_id": DEVICE_ID}
                views = {} if scratchpad else {view: "1" if event.view else "0"}
                self._child(SCRATCHPAD if scratchpad else kind, {**place, **views, "size": event.size_bytes})
            case CircularBuffersFreed():
                freed = self._child("circular_buffer_deallocate_all", {"device_id": MESH_ID})
                freed["connections"] += [function.node["counter"] for function in self._open[-1:]]

    def finish(self) -> None:
        """Ends functions that an error left open, and the capture."""
        while self._open:
            self._end(OperationEnd(self._open[-1].begin.name))
        end = self.node("capture_end", None)
        self._ended.pop(1, self.nodes[0])["connections"].append(end["counter"])

    def node(self, kind: str, params: Mapping[str, object] | None) -> Node:
        node: Node = {
            "arguments": [],
            "connections": [],
            "counter": len(self.nodes),
            "input_tensors": [],
            "node_type": kind,
            "params": None if params is None else dict(params),
            "stacking_level": len(self._open),
        }
        self.nodes.append(node)
        return node

    def _child(self, kind: str, params: Mapping[str, object]) -> Node:
        """Appends a node and connects the open function to it."""
        node = self.node(kind, params)
        if self._open:
            self._open[-1].node["connections"].append(node["counter"])
        return node

    def _begin(self, begin: OperationBegin, arguments: Sequence[str] = ()) -> None:
        result = self._child("function_start", {"inputs": str(len(arguments)), "name": begin.name})
        result["arguments"] = list(arguments)
        if not self._open:
            self.nodes[0]["connections"].append(result["counter"])
        self._open.append(_Open(result, begin, []))
        result["stacking_level"] = len(self._open)
        waiting = self._ended.pop(len(self._open), None)
        if waiting is not None:
            waiting["connections"].append(result["counter"])
        read = [self._device_tensor(source.tensor, source.buffer) for source in begin.read]
        for node in (*read, *map(self._host_tensor, begin.hosts)):
            node["connections"].append(result["counter"])
            result["input_tensors"].append(node["counter"])

    def _end(self, event: OperationEnd) -> None:
        """Ends the open function and connects its end node to the outputs and to the next function."""
        start, begin, taken = self._open[-1]
        aborted = {"aborted": "true"} if event.aborted else {}
        result = self._child("function_end", {**aborted, "name": event.name})
        self._ended.pop(len(self._open) + 1, None)
        self._ended[len(self._open)] = result
        if begin.op is not None and not event.aborted:
            text = self._tell(begin, event)
            taken.append(text.nanoseconds)
            attributes = ", ".join(f"{name}={value}" for name, value in text.attributes)
            tensors = ", ".join(tensor_text(source.tensor.spec, storage="DeviceStorage") for source in begin.read)
            start["arguments"] = [f"operation_attributes_t({attributes})", f"{{{tensors}}}"]
            start["params"] |= {"inputs": str(len(start["arguments"])), "program_cache_hit": event.cached}
        if sum(taken):
            result["duration_ns"] = sum(taken)
        outputs = (*map(self._device_tensor, event.made), *map(self._host_tensor, event.hosts))
        result["connections"] += [output["counter"] for output in outputs]
        self._open.pop()
        if self._open:
            self._open[-1].taken.extend(taken)

    def _host_tensor(self, spec: TensorSpec) -> Node:
        self._next_number += 1
        return self.node("tensor", host_params(spec, self._next_number - 1))

    def _device_tensor(self, tensor: WrittenTensor, lies_in: BufferSpec | None = None) -> Node:
        """Appends a tensor and connects it to its buffer; appends the buffer as well if the capture lacks it.

        The capture lacks buffers from before the capture, and buffers of empty tensors, which are not allocated.
        """
        key = (tensor.number, tensor.address)
        known = self._buffers.get(key)
        if known is not None:
            params = self.nodes[known]["params"]
        elif lies_in is not None:
            params = buffer_params(lies_in, lies_in.size_bytes)
        else:
            assert not tensor.spec.volume, f"buffer {tensor.number} was neither read nor allocated"
            params = buffer_params(tensor.spec.memory_config, 0)
        node = self.node("tensor", device_params(tensor, params))
        buffer = self._child("buffer", params) if known is None else self.nodes[known]
        self._buffers[key] = buffer["counter"]
        buffer["connections"].append(node["counter"])
        return node

    def _buffer_event(self, event: BufferAllocated | BufferFreed) -> None:
        """Appends the allocation or release of a buffer to the open function."""
        buffer, key, freed = event.buffer, (event.number, event.address), isinstance(event, BufferFreed)
        spec = None if freed else event.tensor
        if event.by == TO_DEVICE and spec is not None:
            host = TensorSpec(spec.shape, spec.data_format, spec.layout, padded_shape=spec.padded_shape)
            arguments = [tensor_text(host, storage="HostStorage"), DEVICE, "<optional>"]
            self._begin(OperationBegin(event.by, hosts=(host,)), arguments)
        elif event.by:
            arguments = [] if spec is None else [shape_text(spec), _dtype(spec), f"Layout::{spec.layout.name}", DEVICE]
            arguments += [] if spec is None else [str(spec.memory_config)]
            self._begin(OperationBegin(event.by), arguments)
        if key not in self._buffers:
            self._buffers[key] = self._child("buffer", buffer_params(buffer, buffer.size_bytes))["counter"]
        params = buffer_params(buffer, buffer.size_bytes) | {
            "address": event.address,
            "max_size_per_bank": buffer.bank_bytes,
            "num_cores": buffer.num_cores,
            "page_size": buffer.page_bytes,
        }
        result = self._child("buffer_deallocate" if freed else "buffer_allocate", params)
        result["connections"].append(self._buffers[key])
        if event.by:
            tensor = () if spec is None else (WrittenTensor(event.number, event.address, spec),)
            self._end(OperationEnd(event.by, made=tensor))
        if freed:
            del self._buffers[key]


def captured_nodes(events: Sequence[Event], op_models: OpModels) -> list[Node]:
    """The nodes of a capture, timed by `op_models`; equal programs are timed once."""
    known: dict[object, NodeText] = {}

    def tell(begin: OperationBegin, end: OperationEnd) -> NodeText:
        if begin.spec is None or not end.made:
            return NodeText()
        written = end.made[0].spec
        read = [one.tensor.spec for one in begin.read] or [written]
        ends = Ends(read=read[0], written=written, others=tuple(read[1:]))
        key = (begin.name, begin.op, ends, begin.spec, begin.dispatched)
        if key not in known:
            timed = timed_operation(begin.name, begin.op, ends, begin.spec, op_models)
            cycles = timed.cycles if begin.dispatched else None
            takes = 0 if cycles is None else kernel_nanoseconds(whole(cycles.cycles), begin.spec)
            known[key] = NodeText(takes, timed.description.attributes)
        return known[key]

    return nodes(events, tell)


WIDTH = 50
STEP = "    "
TEXTS = {
    "capture_start": "Capture Start",
    "capture_end": "Capture End",
    "function_start": "Function Start: {name}",
    "function_end": "Function End:   {name}",
    "tensor": "Add Tensor: {tensor_id}",
    "buffer": "Add Device Buffer",
    "buffer_allocate": "Allocate Device Buffer",
    "buffer_deallocate": "Deallocate Device Buffer",
    "circular_buffer_allocate": "Allocate Circular Buffer",
    "circular_buffer_deallocate_all": "Deallocate All Circular Buffers",
}
GraphNode = Mapping[str, Any]
Vertex = dict[str, Any]
TENSOR_LEVEL = 1  # tensors of deeper levels are no vertices


def pretty_format(captured_graph: Sequence[GraphNode]) -> str:
    """One line per node of a capture, indented by function; lines are padded to 50 columns."""
    lines, indent = [], ""
    for node in captured_graph:
        kind, params = node["node_type"], node["params"] or {}
        if kind == "function_end":
            indent = indent[: -len(STEP)]
        text = TEXTS[kind].format_map(params) if kind in TEXTS else kind.replace("_", " ").title()
        lines.append(f"{indent}{text:{WIDTH - len(indent)}}\n")
        if kind == "function_start":
            indent += STEP
    return "".join(lines)


def levelized_graph(trace: Sequence[GraphNode], max_level: int) -> list[Vertex]:
    """The vertices of a levelized graph down to `max_level`, as the real library (0.81.1) extracts them.

    A vertex is a dict: counter (its number), name, stacking_level, arguments, in_edges and out_edges (numbers of
    vertices), internals (vertices of the next level that ran inside), output_info (the text of this tensor in the
    arguments of its first reader of the same level) and output_shape. The tensors of level 1 come before the functions.
    """
    starts = {node["counter"]: node for node in trace if node["node_type"] == "function_start"}
    ends = {counter: _end(trace, start) for counter, start in starts.items()}
    outputs = {counter: list(_reached(trace, end, "tensor")) for counter, end in ends.items()}
    tensors = [node for node in trace if node["node_type"] == "tensor" and node["stacking_level"] == TENSOR_LEVEL]
    functions = [start for start in starts.values() if start["stacking_level"] <= max_level]
    numbers = {node["counter"]: number for number, node in enumerate((*tensors, *functions))}
    makers: dict[int, int] = {}  # counter of a tensor -> counter of the outermost function that made the tensor
    for start in sorted(ends, key=lambda start: (ends[start]["stacking_level"], ends[start]["counter"])):
        for tensor in outputs[start]:
            makers.setdefault(tensor["counter"], start)

    vertices: list[Vertex] = []
    for counter, number in numbers.items():
        node = trace[counter]
        is_tensor, level = counter not in starts, node["stacking_level"]
        shapes = [tensor["params"]["shape"] for tensor in ([node] if is_tensor else outputs[counter])]
        # The source of a tensor is its maker; of what a function reads, the tensor's own vertex or else its maker
        sources = (tensor if tensor in numbers else makers.get(tensor) for tensor in node["input_tensors"])
        read = [makers.get(counter)] if is_tensor else list(sources)
        inside = (
            () if is_tensor else (inner for inner in functions if counter < inner["counter"] < ends[counter]["counter"])
        )
        vertices.append(
            {
                "arguments": [argument for argument in node["arguments"] if isinstance(argument, str)],
                "counter": number,
                "in_edges": [numbers[source] for source in read if source in numbers],
                "internals": [numbers[inner["counter"]] for inner in inside if inner["stacking_level"] == level + 1],
                "name": f"tensor[{node['params']['tensor_id']}]" if is_tensor else node["params"]["name"],
                "out_edges": [],
                "output_info": [],
                "output_shape": list(dict.fromkeys(shapes)),
                "stacking_level": level,
            }
        )
    for reader in vertices[len(tensors) :]:
        for source in dict.fromkeys(reader["in_edges"]):
            if source != reader["counter"]:
                vertices[source]["out_edges"].append(reader["counter"])
    for source in vertices:
        readers = (vertices[number] for number in source["out_edges"])
        level = source["stacking_level"]
        texts = (reader["arguments"][:1] for reader in readers if reader["stacking_level"] == level)
        source["output_info"] = next((text for text in texts if text and text[0].startswith("Tensor(")), [])
    return vertices


def _reached(trace: Sequence[GraphNode], node: GraphNode, kind: str) -> Iterator[GraphNode]:
    reached = (trace[counter] for counter in node["connections"])
    return (node for node in reached if node["node_type"] == kind)


def _end(trace: Sequence[GraphNode], start: GraphNode) -> GraphNode:
    ends = _reached(trace, start, "function_end")
    return next(end for end in ends if end["params"]["name"] == start["params"]["name"])
