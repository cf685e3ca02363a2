"""Formats a capture as text and as a levelized graph, as the real library does."""

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
    """One line for each node of a capture, indented by function; lines are filled to 50 columns."""
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
    """The vertices of a levelized graph down to `max_level`, as the real library (0.81.1) extracts them.

    A vertex is a dict: counter (its number), name, stacking_level, arguments, in_edges and out_edges (numbers of
    vertices), internals (vertices of the next level that ran inside), output_info (the text of this tensor in the
    arguments of its first reader of the same level) and output_shape. The tensors of level 1 come before the functions.
    """
    return _Graph(trace, max_level).vertices


class _Graph:
    def __init__(self, trace: Nodes, max_level: int) -> None:
        self.trace = trace
        self.numbers: dict[int, int] = {}  # counter of a node -> number of its vertex
        self.vertices: list[Vertex] = []
        starts = list(_of_kind(trace, "function_start"))
        self.function_ends = {node["counter"]: self._end(node) for node in starts}
        for node in _of_kind(trace, "tensor"):
            if node["stacking_level"] == TENSOR_LEVEL:
                self._add(node, f"tensor[{node['params']['tensor_id']}]", [node["params"]["shape"]])
        for node in starts:
            if node["stacking_level"] <= max_level:
                shapes = [result["params"]["shape"] for result in self._outputs(self.function_ends[node["counter"]])]
                self._add(node, node["params"]["name"], list(dict.fromkeys(shapes)))
        self.makers = self._makers()
        for counter, number in self.numbers.items():
            self._link(trace[counter], number)
        for vertex in self.vertices:
            vertex["output_info"] = self._output_info(vertex)

    def _add(self, node: Mapping[str, Any], name: str, shapes: list[str]) -> None:
        self.numbers[node["counter"]] = len(self.vertices)
        self.vertices.append(
            {
                "arguments": [argument for argument in node["arguments"] if isinstance(argument, str)],
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
        leads_to = _of_kind([self.trace[counter] for counter in start["connections"]], "function_end")
        return next(node for node in leads_to if node["params"]["name"] == start["params"]["name"])

    def _outputs(self, end: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        return _of_kind([self.trace[counter] for counter in end["connections"]], "tensor")

    def _makers(self) -> dict[int, int]:
        """Counter of the outermost function that made each tensor, by the tensor's counter."""
        makers: dict[int, int] = {}
        for start, end in sorted(self.function_ends.items(), key=lambda pair: pair[1]["counter"]):
            for tensor in self._outputs(end):
                known = makers.get(tensor["counter"])
                if known is None or end["stacking_level"] < self.function_ends[known]["stacking_level"]:
                    makers[tensor["counter"]] = start
        return makers

    def _link(self, node: Mapping[str, Any], number: int) -> None:
        vertex, counter = self.vertices[number], node["counter"]
        if node["node_type"] == "tensor":
            vertex["in_edges"] += self._known([self.makers.get(counter)])
            return
        # The source of a tensor is its own vertex, or else its maker
        vertex["in_edges"] += self._known(
            [tensor if tensor in self.numbers else self.makers.get(tensor) for tensor in node["input_tensors"]]
        )
        for source in dict.fromkeys(vertex["in_edges"]):
            if source != number:
                self.vertices[source]["out_edges"].append(number)
        below = node["stacking_level"] + 1
        inside = [inner for inner in self.numbers if counter < inner < self.function_ends[counter]["counter"]]
        functions = _of_kind([self.trace[inner] for inner in inside], "function_start")
        vertex["internals"] = [
            self.numbers[function["counter"]] for function in functions if function["stacking_level"] == below
        ]

    def _known(self, counters: Sequence[int | None]) -> list[int]:
        return [self.numbers[counter] for counter in counters if counter in self.numbers]

    def _output_info(self, vertex: Vertex) -> list[str]:
        """The first argument of the first reader of the same level whose first argument is a tensor."""
        readers = (self.vertices[number] for number in vertex["out_edges"])
        text = (reader["arguments"][:1] for reader in readers if reader["stacking_level"] == vertex["stacking_level"])
        return next((arguments for arguments in text if arguments and arguments[0].startswith("Tensor(")), [])


def _of_kind(nodes: Nodes, kind: str) -> Iterator[Mapping[str, Any]]:
    return (node for node in nodes if node["node_type"] == kind)
