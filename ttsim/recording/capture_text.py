"""The nodes of a capture as text, as the real library lays them out."""

from collections.abc import Mapping, Sequence
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
