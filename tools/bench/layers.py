"""The eight layers: the simulator against torch's own transposed convolution, planning alone, and with cycles."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from uuid import uuid4

from device.spec.device_spec import DeviceSpec, load_spec
from tools.bench.figure import TORCH, Figure, beside_torch, clock_of, in_turns, threads, timed, torch
from tools.machine import load_loops
from ttsim.runtime.settings import DEFAULT_SPEC, Values
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Inputs, Settings, call, make_inputs, place, summary_of

NEW, FIRST, AGAIN = "first call on a new spec", "first call on a new device", "call again"
ALL = "all eight"
# What holds on two threads of a quiet machine with AVX512-BF16, with some room: wanted are 1.0 for every layer and 0.7
# in sum.
LIMITS_OF_TORCH = {NEW: 3.0, FIRST: 1.4, AGAIN: 1.1}  # of every layer
LIMITS_OF_TORCH_IN_SUM = {NEW: 0.8, FIRST: 0.5, AGAIN: 0.45}
LIMIT_PLANNING_MS = 5.0
REPORT_NEW, REPORT, REPORT_AGAIN = "report on a new spec", "report on a new device", "report again"
LIMITS_CYCLES_MS = {REPORT_NEW: 6.0, REPORT: 1.6, REPORT_AGAIN: 1.0}  # 3.8 to 5.7, 0.8 to 1.4 and 0.4 to 0.6
GENERATIONS = ("wormhole_n150", "blackhole_p150")


def settings_of(values: Values, *, cycles: bool, spec: str = DEFAULT_SPEC) -> Settings:
    """How the layers are run."""
    return Settings(spec=load_spec(spec), values=values, cycles=cycles)


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
        placed = replace(placed, before=(*placed.before, *placed.events))
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
    names = ("stride", "padding", "output_padding", "dilation", "groups")
    options = {name: getattr(layer, name) for name in names}
    return partial(torch.nn.functional.conv_transpose2d, x, w, b, **options)


def bench_layers(repeats: int) -> Iterator[Figure]:
    """Values, planning and report of every layer, and torch if installed: on a new spec, on a new device, and again."""
    load_loops()
    how = {NEW: {"new": True}, FIRST: {}, AGAIN: {"again": True}}
    yield from layers_beside_torch("fast", how, repeats, LIMITS_OF_TORCH, LIMITS_OF_TORCH_IN_SUM)


def layers_beside_torch(
    values: Values,
    how: Mapping[str, Mapping[str, bool]],
    repeats: int,
    limits: Mapping[str, float],
    limits_in_sum: Mapping[str, float],
) -> Iterator[Figure]:
    """The eight layers: what calls take, each of which is made in some ways, and torch where it is installed."""
    totals, settings = Counter[str](), settings_of(values, cycles=True)
    for layer in read_layers(DEFAULT_LAYERS):
        inputs = make_inputs(layer)
        ops: dict[str, Callable[[], float]] = {
            name: partial(call_seconds, layer, inputs, settings, read=True, **options) for name, options in how.items()
        }
        if torch is not None:
            ops[TORCH] = timed(torch_call(layer, inputs))
        seconds = in_turns(ops, repeats)
        totals.update(seconds)
        yield from beside_torch(layer.name, seconds, limits)
    yield from beside_torch(ALL, totals, limits_in_sum)


def bench_planning(repeats: int) -> Iterator[Figure]:
    """Planning of every layer on a new spec: values off, cycles off, report included."""
    settings = settings_of("off", cycles=False)
    for layer in read_layers(DEFAULT_LAYERS):
        plan = partial(call_seconds, layer, make_inputs(layer), settings, read=False, new=True)
        value = 1e3 * min(plan() for _ in range(max(repeats, 5)))
        yield Figure(layer.name, "plan", value, limit=LIMIT_PLANNING_MS)


def bench_cycles(repeats: int) -> Iterator[Figure]:
    """Plan, memory map, cycles and report of each layer, and the median, on a device of each generation.

    Each is measured on a new spec, on a new device, and where the same was done before.
    """
    layers = [(layer, make_inputs(layer)) for layer in read_layers(DEFAULT_LAYERS)]
    for device in GENERATIONS:
        settings = settings_of("off", cycles=True, spec=device)
        for name, limit in LIMITS_CYCLES_MS.items():
            new, again = name == REPORT_NEW, name == REPORT_AGAIN
            run = partial(call_seconds, settings=settings, read=False, new=new, again=again)
            ops = {layer.name: partial(run, layer, inputs) for layer, inputs in layers}
            least = in_turns(ops, max(repeats, 5))
            yield from (Figure(f"{device} {case}", name, 1e3 * seconds) for case, seconds in least.items())
            yield Figure(f"{device}, median", name, 1e3 * median(least.values()), limit=limit)
