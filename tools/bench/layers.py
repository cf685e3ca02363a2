"""The eight layers: the simulator against torch's own transposed convolution, planning alone, and with cycles."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any
from uuid import uuid4

from device.spec.device_spec import DeviceSpec, load_spec
from tools.bench.figure import Figure, all_locked, least_seconds, run_times
from tools.machine import load_loops
from ttsim.runtime.settings import DEFAULT_SPEC, Values
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Inputs, Settings, call, make_inputs, place, summary_of

NEW, FIRST, AGAIN, TORCH = "first call on a new spec", "first call on a new device", "call again", "torch"
ALL = "all eight"
# What holds on two threads of a quiet machine with AVX512-BF16, with some room: wanted are 1.0 for every layer and 0.7
# in sum.
LIMITS_OF_TORCH = {NEW: 3.0, FIRST: 1.4, AGAIN: 1.1}  # of every layer
LIMITS_OF_TORCH_IN_SUM = {NEW: 0.8, FIRST: 0.5, AGAIN: 0.45}
LIMIT_PLANNING_MS = 5.0
REPORT_NEW, REPORT, REPORT_AGAIN = "report on a new spec", "report on a new device", "report again"
LIMITS_CYCLES_MS = {REPORT_NEW: 6.0, REPORT: 1.6, REPORT_AGAIN: 1.0}  # 3.8 to 5.7, 0.8 to 1.4 and 0.4 to 0.6
GENERATIONS = ("wormhole_n150", "blackhole_p150")
torch: Any = import_module("torch") if find_spec("torch") else None


def threads() -> int:
    """Threads that numpy's BLAS uses here, and torch is told to use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def clock_of(working: int) -> Callable[[], float]:
    """What so many threads are timed by: of one, its own time counts, whatever else the machine does meanwhile."""
    return time.thread_time if working == 1 else time.perf_counter


def settings_of(values: Values, *, cycles: bool) -> Settings:
    """How the layers are run."""
    return Settings(spec=load_spec(DEFAULT_SPEC), values=values, cycles=cycles)


def unseen(spec: DeviceSpec) -> DeviceSpec:
    """The spec under a name that no device had: nothing that devices share is there for it."""
    return spec.replace(name=f"{spec.name} {uuid4()}")


def call_seconds(
    layer: Layer, inputs: Inputs, settings: Settings, *, read: bool, new: bool = False, again: bool = False
) -> float:
    """Seconds of one call on a new device with its input in place, the report of its figures included.

    Devices of one spec share caches: ``new`` says that no device had the spec before, ``again`` that the same call ran,
    and was reported, on the device once before. ``read`` reads the output back.
    """
    clock = clock_of(1 if settings.values == "off" else threads())
    settings = replace(settings, spec=unseen(settings.spec)) if new else settings
    placed = place(layer, inputs, settings)
    if again:
        summary_of(placed, call(placed))
        placed = replace(placed, before=len(placed.events))
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
    """Values, planning and report of every layer, and torch if installed: on a new spec, on a new device, and again."""
    settings = settings_of("fast", cycles=True)
    load_loops()

    def ops(layer: Layer, inputs: Inputs) -> dict[str, Callable[[], float]]:
        return {
            NEW: partial(call_seconds, layer, inputs, settings, read=True, new=True),
            FIRST: partial(call_seconds, layer, inputs, settings, read=True),
            AGAIN: partial(call_seconds, layer, inputs, settings, read=True, again=True),
        }

    yield from beside_torch("layers", ops, repeats, LIMITS_OF_TORCH, LIMITS_OF_TORCH_IN_SUM)


def beside_torch(
    bench: str,
    works_of: Callable[[Layer, Inputs], dict[str, Callable[[], float]]],
    repeats: int,
    limits: Mapping[str, float],
    limits_in_sum: Mapping[str, float],
) -> Iterator[Figure]:
    """The eight layers: what works take and, where torch is installed, how many times as long as torch."""
    totals: dict[str, float] = {}
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        ops = works_of(layer, inputs)
        if torch is not None:
            ops[TORCH] = partial(least_seconds, torch_call(layer, inputs), 1, clock=clock_of(threads()))
        shortest = {}
        for name, seconds in all_locked(ops, repeats).items():
            shortest[name] = min(seconds)
            totals[name] = totals.get(name, 0.0) + min(seconds)
            yield run_times(bench, layer.name, name, seconds)
        yield from of_torch(bench, layer.name, shortest, limits)
    for name, total in totals.items():
        yield Figure(bench=bench, case=ALL, name=name, value=1e3 * total, unit="ms")
    yield from of_torch(bench, ALL, totals, limits_in_sum)


def of_torch(bench: str, case: str, shortest: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[Figure]:
    """How many times torch's seconds the others take."""
    for name in shortest if TORCH in shortest else ():
        if name != TORCH:
            ratio, limit = shortest[name] / shortest[TORCH], limits.get(name)
            yield Figure(bench=bench, case=case, name=f"{name}, of torch", value=ratio, unit="x", limit=limit)


def bench_planning(repeats: int) -> Iterator[Figure]:
    """Planning of every layer on a new spec: values off, cycles off, report included."""
    settings = settings_of("off", cycles=False)
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        seconds = min(call_seconds(layer, inputs, settings, read=False, new=True) for _ in range(max(repeats, 5)))
        yield Figure(
            bench="planning", case=layer.name, name="plan", value=1e3 * seconds, unit="ms", limit=LIMIT_PLANNING_MS
        )


def bench_cycles(repeats: int) -> Iterator[Figure]:
    """Plan, memory map, cycles and report of each layer, and the median, on a device of each generation.

    Each is measured on a new spec, on a new device, and where the same was done before.
    """
    layers = read_layers(DEFAULT_LAYERS)
    inputs = {layer.name: make_inputs(layer) for layer in layers}
    for device in GENERATIONS:
        settings = Settings(spec=load_spec(device), values="off", cycles=True)
        for name, limit in LIMITS_CYCLES_MS.items():
            options = {"new": name == REPORT_NEW, "again": name == REPORT_AGAIN}
            ops = {
                layer.name: partial(call_seconds, layer, inputs[layer.name], settings, read=False, **options)
                for layer in layers
            }
            least = {case: 1e3 * min(seconds) for case, seconds in all_locked(ops, max(repeats, 5)).items()}
            for case, shortest in least.items():
                yield Figure(bench="cycles", case=f"{device} {case}", name=name, value=shortest, unit="ms")
            middle = median(least.values())
            yield Figure(bench="cycles", case=f"{device}, median", name=name, value=middle, unit="ms", limit=limit)
