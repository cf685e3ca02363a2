"""A capture as text and as a levelized graph, as the real library makes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH = 50
STEP = "    "
TEXTS = {
    "capture_start": "Capture Start",
    "capture_end": "Capture End",
    "buffer": "Add Device Buffer",
    "buffer_allocate": "Allocate Device Buffer",
    "buffer_deallocate": "Deallocate Device Buffer",
    "circular_buffer_allocate": "Allocate Circular Buffer",
    "circular_buffer_deallocate_all": "Deallocate All Circular Buffers",
}


def pretty_format(captured_graph: Sequence[Mapping[str, Any]]) -> str:
    """One line for each node, what happens inside a function further in; lines are filled to 50 columns.

    Args:
        captured_graph: Nodes of end_graph_capture.
    """
    lines, indent = [], ""
    for node in captured_graph:
        kind, params = node["node_type"], node["params"] or {}
        if kind == "function_end":
            indent = indent[: -len(STEP)]
        lines.append(f"{indent}{_text(kind, params):{WIDTH - len(indent)}}\n")
        if kind == "function_start":
            indent += STEP
    return "".join(lines)


def _text(kind: str, params: Mapping[str, Any]) -> str:
    if kind == "function_start":
        return f"Function Start: {params['name']}"
    if kind == "function_end":
        return f"Function End:   {params['name']}"
    if kind == "tensor":
        return f"Add Tensor: {params['tensor_id']}"
    return TEXTS.get(kind, kind.replace("_", " ").title())


Vertex = dict[str, Any]
Nodes = Sequence[Mapping[str, Any]]
TENSOR_LEVEL = 1  # tensors of deeper levels are no vertices


def levelized_graph(trace: Nodes, max_level: int) -> list[Vertex]:
    """The vertices of a levelized graph, as the real library (0.81.1) extracts them.

    A vertex is a dict: counter (its number), name, stacking_level, arguments, in_edges and out_edges (numbers of
    vertices), internals (those of the next level that ran inside), output_info (the tensor that the first reader of
    the same level was told) and output_shape. Vertices are the tensors of level 1, then the functions.

    Args:
        trace: Nodes of a capture.
        max_level: The deepest level of a function that is a vertex.
    """
    return _Graph(trace, max_level).vertices


class _Graph:
    """The vertices while they are found, and which nodes they stand for."""

    def __init__(self, trace: Nodes, max_level: int) -> None:
        self.trace = trace
        self.numbers: dict[int, int] = {}  # counter of a node -> number of its vertex
        self.vertices: list[Vertex] = []
        starts = list(_of_kind(trace, "function_start"))
        self.ends = {node["counter"]: self._end(node) for node in starts}
        for node in _of_kind(trace, "tensor"):
            if node["stacking_level"] == TENSOR_LEVEL:
                self._add(node, f"tensor[{node['params']['tensor_id']}]", [node["params"]["shape"]])
        for node in starts:
            if node["stacking_level"] <= max_level:
                shapes = [result["params"]["shape"] for result in self._made(self.ends[node["counter"]])]
                self._add(node, node["params"]["name"], list(dict.fromkeys(shapes)))
        self.makers = self._makers()
        for counter, number in self.numbers.items():
            self._link(trace[counter], number)
        for vertex in self.vertices:
            vertex["output_info"] = self._told(vertex)

    def _add(self, node: Mapping[str, Any], name: str, shapes: list[str]) -> None:
        self.numbers[node["counter"]] = len(self.vertices)
        self.vertices.append(
            {
                "arguments": [one for one in node["arguments"] if isinstance(one, str)],
                "counter": len(self.vertices),
                "in_edges": [],
                "internals": [],
                "name": name,
                "out_edges": [],
                "output_info": [],
                "output_shape": shapes,
                "stacking_level": node["stacking_level"],
            }
        )

    def _end(self, start: Mapping[str, Any]) -> Mapping[str, Any]:
        """The node that ends a function."""
        leads_to = _of_kind([self.trace[one] for one in start["connections"]], "function_end")
        return next(node for node in leads_to if node["params"]["name"] == start["params"]["name"])

    def _made(self, end: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        return _of_kind([self.trace[one] for one in end["connections"]], "tensor")

    def _makers(self) -> dict[int, int]:
        """Counter of the outermost function that made each tensor, by the tensor's counter."""
        makers: dict[int, int] = {}
        for start, end in sorted(self.ends.items(), key=lambda pair: pair[1]["counter"]):
            for tensor in self._made(end):
                known = makers.get(tensor["counter"])
                if known is None or end["stacking_level"] < self.ends[known]["stacking_level"]:
                    makers[tensor["counter"]] = start
        return makers

    def _link(self, node: Mapping[str, Any], number: int) -> None:
        """The edges to a vertex, and what ran inside it."""
        vertex, counter = self.vertices[number], node["counter"]
        if node["node_type"] == "tensor":
            vertex["in_edges"] += self._known([self.makers.get(counter)])
            return
        # A tensor comes from itself, if it is a vertex, or from its maker
        vertex["in_edges"] += self._known(
            [one if one in self.numbers else self.makers.get(one) for one in node["input_tensors"]]
        )
        for source in dict.fromkeys(vertex["in_edges"]):
            if source != number:
                self.vertices[source]["out_edges"].append(number)
        below = node["stacking_level"] + 1
        inside = [one for one in self.numbers if counter < one < self.ends[counter]["counter"]]
        parts = _of_kind([self.trace[one] for one in inside], "function_start")
        vertex["internals"] = [self.numbers[part["counter"]] for part in parts if part["stacking_level"] == below]

    def _known(self, counters: Sequence[int | None]) -> list[int]:
        """The vertices of those nodes that are vertices."""
        return [self.numbers[counter] for counter in counters if counter in self.numbers]

    def _told(self, vertex: Vertex) -> list[str]:
        """What the first reader of the same level that was told a tensor was told."""
        readers = (self.vertices[one] for one in vertex["out_edges"])
        text = (reader["arguments"][:1] for reader in readers if reader["stacking_level"] == vertex["stacking_level"])
        return next((one for one in text if one and one[0].startswith("Tensor(")), [])


def _of_kind(nodes: Nodes, kind: str) -> Iterator[Mapping[str, Any]]:
    return (node for node in nodes if node["node_type"] == kind)
