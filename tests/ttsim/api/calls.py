"""Tensors by a short text, what a call runs as a graph capture sees it, and how a call is refused.

put(device, "2x3x32x64 tile bfloat8_b height/32x64/6")   small whole numbers, places as in `tests.build.place`
put_all(device, "64x32 rows + 64x30 rows")               several, of different numbers
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttsim
from tests.build import FORMATS, LAYOUTS, place
from ttsim.graph import RunMode, begin_graph_capture, end_graph_capture

Node = dict[str, Any]


def numbers(*shape: int, first: int = 0) -> Any:
    """Whole numbers that bfloat16 holds."""
    return ((np.arange(np.prod(shape)).reshape(shape) + first) % 251).astype(np.float32)


def put(device: ttsim.Device | None, text: str, values: Any = None, first: int = 0) -> ttsim.Tensor:
    """A tensor by its shape, format (bfloat16), layout (rows) and place (DRAM)."""
    shape, *words = text.split()
    if values is None:
        values = numbers(*map(int, shape.split("x")), first=first)
    dtype = getattr(ttsim, next((word for word in words if word in FORMATS), "bfloat16"))
    layout = next((LAYOUTS[word] for word in words if word in LAYOUTS), ttsim.ROW_MAJOR_LAYOUT)
    on_device = None if device is None else place(text)
    return ttsim.from_torch(values, dtype, layout=layout, device=device, memory_config=on_device)


def put_all(device: ttsim.Device | None, text: str) -> list[ttsim.Tensor]:
    return [put(device, words, first=7 * number) for number, words in enumerate(text.split(" + "))]


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


def buffers(call: Callable[[], Any]) -> list[tuple[int, int]]:
    """Size of each circular buffer of a call, and whether it lies in a tensor."""
    nodes = [node["params"] for node in captured(call)[2] if node["node_type"] == "circular_buffer_allocate"]
    return [(int(node["size"]), int(node["globally_allocated"])) for node in nodes]


def refusal(call: Callable[[], Any]) -> str:
    """The class of a call's error without "Error", and its text."""
    with pytest.raises(ttsim.TTSimError) as error:
        call()
    return f"{type(error.value).__name__.removesuffix('Error')}: {error.value}"
