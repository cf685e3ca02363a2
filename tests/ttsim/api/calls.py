"""Tensors by a short text, convolutions, what a call runs as a graph capture sees it, and how a call is refused.

put(device, "2x3x32x64 tile bfloat8_b height/32x64/6")   small whole numbers, places as in `tests.build.place`
put_all(device, "64x32 rows + 64x30 rows")               several, of different numbers
conv(device, (4, 4), (32, 32), words="l1 tile", bias=8)  a convolution of ones, 2 x 2 at stride 2
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttsim
from tests.build import FORMATS, LAYOUTS, place
from tests.sizes import conv_sizes
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


def conv_arguments(
    device: ttsim.Device,
    size: tuple[int, int] = (4, 4),
    channels: tuple[int, int] = (32, 32),
    kernel: tuple[int, int] = (2, 2),
    stride: tuple[int, int] = (2, 2),
    *,
    words: str = "",
    seed: int | None = None,
    bias: float | None = None,
    transposed: bool = True,
    groups: int = 1,
    config: dict[str, Any] | None = None,
    **call: Any,
) -> dict[str, Any]:
    """Arguments of a convolution of an image of ones, or of random numbers with a seed.

    ``words`` say where the image is (`put`; "host" leaves it there), ``bias`` is a number for all channels, ``config``
    are fields of a Conv2dConfig, and the rest replaces arguments of the function.
    """
    rng = np.random.default_rng(seed)

    def values(*shape: int) -> Any:
        return np.ones(shape, np.float32) if seed is None else rng.standard_normal(shape, dtype=np.float32)

    ins, outs = channels
    sides = (ins, outs // max(groups, 1)) if transposed else (outs, ins // max(groups, 1))
    arguments = {
        "input_tensor": call.get("input_tensor")
        or put(None if words == "host" else device, f"0 {words}", values(1, 1, size[0] * size[1], ins)),
        "weight_tensor": ttsim.Tensor(values(*sides, *kernel), ttsim.bfloat16),
        "device": device,
        **conv_sizes(*size, *channels, *kernel),
        **{"stride": stride, "groups": groups},
        "conv_config": None if config is None else ttsim.Conv2dConfig(**config),
    }
    if bias is not None:
        arguments["bias_tensor"] = ttsim.Tensor(np.full((1, 1, 1, outs), bias, np.float32), ttsim.bfloat16)
    return arguments | call


def conv(device: ttsim.Device, *shape: Any, transposed: bool = True, **options: Any) -> Any:
    """A call of conv_transpose2d or conv2d with `conv_arguments`."""
    function = ttsim.conv_transpose2d if transposed else ttsim.conv2d
    return function(**conv_arguments(device, *shape, transposed=transposed, **options))
