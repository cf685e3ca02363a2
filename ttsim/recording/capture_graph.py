"""Formats a capture as text and as a levelized graph, as the real library does."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    """One line for each node of a capture, indented by function; lines are filled to 50 columns."""
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
    starts = list(_of_kind(trace, "function_start"))
    ends = {start["counter"]: _end(trace, start) for start in starts}
    outputs = {counter: list(_reached(trace, end, "tensor")) for counter, end in ends.items()}
    tensors = [node for node in _of_kind(trace, "tensor") if node["stacking_level"] == TENSOR_LEVEL]
    functions = [start for start in starts if start["stacking_level"] <= max_level]
    numbers = {node["counter"]: number for number, node in enumerate((*tensors, *functions))}
    makers: dict[int, int] = {}  # counter of a tensor -> counter of the outermost function that made the tensor
    for start in sorted(ends, key=lambda start: (ends[start]["stacking_level"], ends[start]["counter"])):
        for tensor in outputs[start]:
            makers.setdefault(tensor["counter"], start)

    def vertex(node: GraphNode, name: str, shapes: list[str], sources: list[int | None], internals: list[int]) -> Vertex:
        return {
            "arguments": [argument for argument in node["arguments"] if isinstance(argument, str)],
            "counter": numbers[node["counter"]],
            "in_edges": [numbers[counter] for counter in sources if counter in numbers],
            "internals": internals,
            "name": name,
            "out_edges": [],
            "output_info": [],
            "output_shape": shapes,
            "stacking_level": node["stacking_level"],
        }

    vertices = []
    for node in tensors:
        params = node["params"]
        name = f"tensor[{params['tensor_id']}]"
        vertices.append(vertex(node, name, [params["shape"]], [makers.get(node["counter"])], []))
    for node in functions:
        counter, level = node["counter"], node["stacking_level"] + 1
        inside = (inner for inner in functions if counter < inner["counter"] < ends[counter]["counter"])
        internals = [numbers[inner["counter"]] for inner in inside if inner["stacking_level"] == level]
        shapes = list(dict.fromkeys(tensor["params"]["shape"] for tensor in outputs[counter]))
        # The source of a tensor is its own vertex, or else its maker
        sources = [tensor if tensor in numbers else makers.get(tensor) for tensor in node["input_tensors"]]
        vertices.append(vertex(node, node["params"]["name"], shapes, sources, internals))
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


def _of_kind(nodes: Sequence[GraphNode], kind: str) -> Iterator[GraphNode]:
    return (node for node in nodes if node["node_type"] == kind)


def _reached(trace: Sequence[GraphNode], node: GraphNode, kind: str) -> Iterator[GraphNode]:
    return _of_kind([trace[counter] for counter in node["connections"]], kind)


def _end(trace: Sequence[GraphNode], start: GraphNode) -> GraphNode:
    ends = _reached(trace, start, "function_end")
    return next(end for end in ends if end["params"]["name"] == start["params"]["name"])
