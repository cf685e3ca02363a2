"""The eight layers: the simulator against torch's own transposed convolution, and planning alone."""

import os
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from device.spec import load_spec
from tools.bench.figure import Figure, least_seconds
from ttsim.device import Values
from ttsim.layers.exact import Inputs, make_inputs
from ttsim.layers.layer import Layer
from ttsim.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.layers.run import DEFAULT_DEVICE, Settings, call, place, summary_of

LIMIT_OF_TORCH = 2.0
LIMIT_PLANNING_MS = 5.0
torch: Any = import_module("torch") if find_spec("torch") else None


def threads() -> int:
    """Threads that numpy's BLAS uses here, and torch is told to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settings_of(values: Values, *, cycles: bool) -> Settings:
    """How the layers are run."""
    return Settings(spec=load_spec(DEFAULT_DEVICE), values=values, cycles=cycles)


def layer_seconds(layer: Layer, inputs: Inputs, settings: Settings, repeats: int, *, read: bool) -> float:
    """The shortest of several calls, each on a fresh device with its input in place, report of the figures included.

    Args:
        layer: What to run.
        inputs: Its numbers.
        settings: How.
        repeats: How often.
        read: Whether the output is read back.
    """
    best = float("inf")
    for _ in range(repeats):
        placed = place(layer, inputs, settings)
        start = time.perf_counter()
        result = call(placed)
        summary_of(placed, result)
        if read:
            result.output.cpu().to_numpy()
        best = min(best, time.perf_counter() - start)
        placed.device.close()
    return best


def torch_seconds(layer: Layer, inputs: Inputs, repeats: int) -> float:
    """The shortest of several calls of torch in float32, tensors in its own order in place."""
    torch.set_num_threads(threads())
    x = torch.from_numpy(inputs.x).permute(0, 3, 1, 2).contiguous()
    w = torch.from_numpy(inputs.w)
    b = None if inputs.b is None else torch.from_numpy(inputs.b.reshape(-1))
    options = {
        "stride": layer.stride,
        "padding": layer.padding,
        "output_padding": layer.output_padding,
        "dilation": layer.dilation,
        "groups": layer.groups,
    }
    with torch.no_grad():
        return least_seconds(lambda: torch.nn.functional.conv_transpose2d(x, w, b, **options), repeats)


def bench_layers(repeats: int) -> Iterator[Figure]:
    """Values, planning and report of every layer, against torch where it is installed."""
    ours = theirs = 0.0
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        seconds = layer_seconds(layer, inputs, settings_of("fast", cycles=True), repeats, read=True)
        ours += seconds
        yield Figure(bench="layers", case=layer.name, name="ttsim", value=1e3 * seconds, unit="ms")
        if torch is not None:
            other = torch_seconds(layer, inputs, max(repeats, 3))
            theirs += other
            yield Figure(bench="layers", case=layer.name, name="torch", value=1e3 * other, unit="ms")
            yield Figure(bench="layers", case=layer.name, name="of torch", value=seconds / other, unit="x")
    yield Figure(bench="layers", case="all eight", name="ttsim", value=1e3 * ours, unit="ms")
    if torch is not None:
        yield Figure(bench="layers", case="all eight", name="torch", value=1e3 * theirs, unit="ms")
        ratio = ours / theirs
        yield Figure(bench="layers", case="all eight", name="of torch", value=ratio, unit="x", limit=LIMIT_OF_TORCH)


def bench_planning(repeats: int) -> Iterator[Figure]:
    """Planning of every layer: values off, cycles off, report included."""
    for layer in read_layers(DEFAULT_LAYERS):
        settings = settings_of("off", cycles=False)
        seconds = layer_seconds(layer, make_inputs(layer), settings, max(repeats, 5), read=False)
        yield Figure(
            bench="planning", case=layer.name, name="plan", value=1e3 * seconds, unit="ms", limit=LIMIT_PLANNING_MS
        )
