"""Nodes of a graph capture, as the real library's ``end_graph_capture`` returns them, made of events; and back.

A node is a dict: counter, node_type, params, connections (counters of what it leads to), arguments, input_tensors and
stacking_level. Of tensors there are the outputs of device operations; events carry no inputs, so neither do the nodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from device.cores import CoreRangeSet
from device.events import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    MadeTensor,
    OperationBegin,
    OperationEnd,
)
from device.memory.layouts import BufferSpec
from device.memory.memory_config import BufferType, TensorMemoryLayout

Node = dict[str, Any]
MESH_ID = 1  # the real library numbers the first mesh so
DEVICE_ID = 0  # and the first device of it
CIRCULAR = ("circular_buffer_allocate", "globally_allocated")  # kind of node, and what it calls a view
DATAFLOW = ("dataflow_buffer_allocate", "borrows_memory")
SCRATCHPAD = "scratchpad_allocate"


def nodes(events: Iterable[Event]) -> list[Node]:
    """The nodes of a capture."""
    writer = _Writer()
    writer.node("capture_start", None)
    for event in events:
        writer.write(event)
    writer.finish()
    return writer.nodes


def events(trace: Sequence[Mapping[str, Any]]) -> list[Event]:
    """What the nodes say of buffers and circular buffers; names and grids are left out."""
    found: list[Event] = []
    for node in trace:
        kind, params = node["node_type"], node["params"] or {}
        if kind in ("buffer_allocate", "buffer_deallocate"):
            number = node["connections"][0] if node["connections"] else -1
            make = BufferAllocated if kind == "buffer_allocate" else BufferFreed
            found.append(make(number, "", int(params.get("address", 0)), _buffer(params)))
        elif kind in (CIRCULAR[0], DATAFLOW[0], SCRATCHPAD):
            dataflow = kind != CIRCULAR[0]
            view = str(params.get(DATAFLOW[1] if dataflow else CIRCULAR[1])) == "1"
            size, address = int(params["size"]), int(params["address"])
            found.append(CircularBufferAllocated("", "", size, address, CoreRangeSet(), view, dataflow))
        elif kind == "circular_buffer_deallocate_all":
            found.append(CircularBuffersFreed())
    return found


class _Writer:
    """Turns events into nodes, keeping the open functions and the live buffers."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._open: list[Node] = []
        self._buffers: dict[tuple[int, int], int] = {}  # (buffer number, address) -> counter of its buffer node
        self._ended: dict[int, Node] = {}  # stacking level -> the function_end that waits for its successor

    def write(self, event: Event) -> None:
        """Appends the nodes of an event."""
        if isinstance(event, OperationBegin):
            self._begin(event.name)
        elif isinstance(event, OperationEnd):
            ended = self._end(event.name, aborted=event.aborted)
            for made in event.made:
                self._tensor(ended, made)
        elif isinstance(event, BufferAllocated | BufferFreed):
            self._buffer_event(event)
        elif isinstance(event, CircularBufferAllocated):
            if event.shown:
                self._circular_buffer(event)
        elif isinstance(event, CircularBuffersFreed):
            freed = self._child("circular_buffer_deallocate_all", {"device_id": MESH_ID})
            if self._open:
                freed["connections"].append(self._open[-1]["counter"])

    def finish(self) -> None:
        """Ends the functions that an error left open, and the capture."""
        while self._open:
            self._end(self._open[-1]["params"]["name"])
        end = self.node("capture_end", None)
        last = self._ended.pop(1, self.nodes[0])
        last["connections"].append(end["counter"])

    def node(self, kind: str, params: Mapping[str, object] | None) -> Node:
        """Appends a node."""
        made: Node = {
            "arguments": [],
            "connections": [],
            "counter": len(self.nodes),
            "input_tensors": [],
            "node_type": kind,
            "params": None if params is None else dict(params),
            "stacking_level": len(self._open),
        }
        self.nodes.append(made)
        return made

    def _child(self, kind: str, params: Mapping[str, object]) -> Node:
        """Appends a node that the open function leads to."""
        made = self.node(kind, params)
        if self._open:
            self._open[-1]["connections"].append(made["counter"])
        return made

    def _begin(self, name: str) -> None:
        made = self._child("function_start", {"inputs": "0", "name": name})
        if not self._open:
            self.nodes[0]["connections"].append(made["counter"])
        self._open.append(made)
        made["stacking_level"] = len(self._open)
        waiting = self._ended.pop(len(self._open), None)
        if waiting is not None:
            waiting["connections"].append(made["counter"])

    def _end(self, name: str, *, aborted: bool = False) -> Node:
        made = self._child("function_end", {"aborted": "true", "name": name} if aborted else {"name": name})
        self._ended.pop(len(self._open) + 1, None)
        self._ended[len(self._open)] = made
        self._open.pop()
        return made

    def _tensor(self, ended: Node, made: MadeTensor) -> None:
        """Appends an output, which the end of its operation and its buffer lead to."""
        buffer = self._buffers.get((made.number, made.address))
        params = {} if buffer is None else dict(self.nodes[buffer]["params"])
        params |= {
            "address": made.address,
            "dtype": f"DataType::{made.spec.data_format.name.upper()}",
            "layout": f"Layout::{made.spec.layout.name}",
            "memory_config": str(made.spec.memory_config),
            "shape": f"Shape({list(made.spec.shape)})",
            "storage_type": "DEVICE",
            "tensor_id": made.number,
        }
        params.pop("type", None)
        node = self.node("tensor", params)
        ended["connections"].append(node["counter"])
        if buffer is not None:
            self.nodes[buffer]["connections"].append(node["counter"])

    def _circular_buffer(self, event: CircularBufferAllocated) -> None:
        kind, view = DATAFLOW if event.dataflow else CIRCULAR
        lies_on = {} if event.scratchpad else {view: "1" if event.view else "0"}
        params = {
            "address": event.address,
            "core_range_set": str(event.cores),
            "device_id": DEVICE_ID,
            **lies_on,
            "size": event.size_bytes,
        }
        self._child(SCRATCHPAD if event.scratchpad else kind, params)

    def _buffer_event(self, event: BufferAllocated | BufferFreed) -> None:
        buffer, key = event.buffer, (event.number, event.address)
        allocated = isinstance(event, BufferAllocated)
        if event.by:
            self._begin(event.by)
        if key not in self._buffers:
            self._buffers[key] = self._child("buffer", _shared(buffer))["counter"]
        params = _shared(buffer) | {
            "address": event.address,
            "max_size_per_bank": buffer.bank_bytes,
            "num_cores": buffer.num_cores,
            "page_size": buffer.page_bytes,
        }
        made = self._child("buffer_allocate" if allocated else "buffer_deallocate", params)
        made["connections"].append(self._buffers[key])
        if not allocated:
            del self._buffers[key]
        if event.by:
            self._end(event.by)


def _shared(buffer: BufferSpec) -> dict[str, object]:
    """What every node about a buffer says."""
    kind = buffer.buffer_type
    return {
        "buffer_type": kind.value,
        "device_id": MESH_ID,
        "layout": buffer.memory_layout.name,
        "size": buffer.size_bytes,
        "type": "DRAM" if kind is BufferType.DRAM else "L1",
    }


def _buffer(params: Mapping[str, Any]) -> BufferSpec:
    """The buffer that a node tells of."""
    kind = BufferType(int(params["buffer_type"])) if "buffer_type" in params else BufferType[params["type"]]
    return BufferSpec(
        buffer_type=kind,
        memory_layout=TensorMemoryLayout[params["layout"]],
        size_bytes=int(params["size"]),
        page_bytes=int(params["page_size"]),
        bank_bytes=int(params["max_size_per_bank"]),
        num_cores=int(params.get("num_cores", 0)),
    )
