"""What a call runs, as a graph capture sees it."""

from collections.abc import Callable
from typing import Any

from ttsim.graph import RunMode, begin_graph_capture, end_graph_capture

Node = dict[str, Any]


def captured(call: Callable[[], Any], mode: RunMode = RunMode.NORMAL) -> tuple[list[str], Any, list[Node]]:
    """The device operations of a call without the end of their names, its result, and all nodes of the capture."""
    begin_graph_capture(mode)
    result = call()
    nodes = end_graph_capture()
    names = [node["params"]["name"] for node in nodes if node["node_type"] == "function_start"]
    return [name.removesuffix("DeviceOperation") for name in names if name.endswith("DeviceOperation")], result, nodes


def operations(call: Callable[[], Any]) -> list[str]:
    """The device operations of a call alone."""
    return captured(call)[0]
