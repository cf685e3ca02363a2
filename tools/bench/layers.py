"""The eight layers: the simulator against torch's own transposed convolution, planning alone, and with cycles."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

from device.spec.device_spec import load_spec
from tools.bench.figure import Figure, least_seconds
from ttsim.layers.exact import Inputs, make_inputs
from ttsim.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.layers.run import Settings, call, place, summary_of
from ttsim.runtime.defaults import DEFAULT_SPEC, Values
from ttsim.types.layer import Layer

LIMIT_OF_TORCH = 2.0
LIMIT_PLANNING_MS = 5.0
LIMIT_CYCLES_MS = 6.5
GENERATIONS = ("wormhole_n150", "blackhole_p150")
torch: Any = import_module("torch") if find_spec("torch") else None


def threads() -> int:
    """Threads that numpy's BLAS uses here, and torch is told to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def settings_of(values: Values, *, cycles: bool) -> Settings:
    """How the layers are run."""
    return Settings(spec=load_spec(DEFAULT_SPEC), values=values, cycles=cycles)


def call_seconds(layer: Layer, inputs: Inputs, settings: Settings, *, read: bool) -> float:
    """One call on a fresh device with its input in place, the report of its figures included.

    Without values it is the work of one thread, whose own time counts, whatever else the machine does meanwhile.

    Args:
        layer: What to run.
        inputs: Its numbers.
        settings: How.
        read: Whether the output is read back.
    """
    clock = time.thread_time if settings.values == "off" else time.perf_counter
    placed = place(layer, inputs, settings)
    start = clock()
    called = call(placed)
    summary_of(placed, called)
    if read:
        called.output.cpu().to_numpy()
    seconds = clock() - start
    placed.device.close()
    return seconds


def torch_call(layer: Layer, inputs: Inputs) -> Callable[[], object]:
    """The same in torch, float32, on tensors in torch's own order that are in place."""
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
    return partial(torch.nn.functional.conv_transpose2d, x, w, b, **options)


def bench_layers(repeats: int) -> Iterator[Figure]:
    """Values, planning and report of every layer, taking turns with torch where it is installed."""
    settings = settings_of("fast", cycles=True)
    ours = theirs = 0.0
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        other = None if torch is None else torch_call(layer, inputs)
        seconds, torch_seconds = [], []
        for _ in range(repeats + 1):  # the first turn warms both up
            seconds.append(call_seconds(layer, inputs, settings, read=True))
            if other is not None:
                torch_seconds.append(least_seconds(other, 1))
        ours += min(seconds)
        yield Figure(bench="layers", case=layer.name, name="ttsim", value=1e3 * min(seconds), unit="ms")
        if other is not None:
            theirs += min(torch_seconds)
            yield Figure(bench="layers", case=layer.name, name="torch", value=1e3 * min(torch_seconds), unit="ms")
            ratio = min(seconds) / min(torch_seconds)
            yield Figure(bench="layers", case=layer.name, name="of torch", value=ratio, unit="x")
    yield Figure(bench="layers", case="all eight", name="ttsim", value=1e3 * ours, unit="ms")
    if torch is not None:
        yield Figure(bench="layers", case="all eight", name="torch", value=1e3 * theirs, unit="ms")
        ratio = ours / theirs
        yield Figure(bench="layers", case="all eight", name="of torch", value=ratio, unit="x", limit=LIMIT_OF_TORCH)


def bench_planning(repeats: int) -> Iterator[Figure]:
    """Planning of every layer: values off, cycles off, report included."""
    settings = settings_of("off", cycles=False)
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        seconds = min(call_seconds(layer, inputs, settings, read=False) for _ in range(max(repeats, 5)))
        yield Figure(
            bench="planning", case=layer.name, name="plan", value=1e3 * seconds, unit="ms", limit=LIMIT_PLANNING_MS
        )


def bench_cycles(repeats: int) -> Iterator[Figure]:
    """Plan, memory map, cycles and their report, on a device of each generation: each layer, and the median of them."""
    for device in GENERATIONS:
        settings = Settings(spec=load_spec(device), values="off", cycles=True)
        found = []
        for layer in read_layers(DEFAULT_LAYERS):
            inputs = make_inputs(layer)
            turns = range(max(repeats, 5))
            found.append(1e3 * min(call_seconds(layer, inputs, settings, read=False) for _ in turns))
            yield Figure(bench="cycles", case=f"{device} {layer.name}", name="report", value=found[-1], unit="ms")
        case = f"{device}, median"
        yield Figure(bench="cycles", case=case, name="report", value=median(found), unit="ms", limit=LIMIT_CYCLES_MS)
