"""Layers designed on random machines: `tune` finds nothing faster, and more of a resource makes no layer slower.

Trials from `LAYERS * n` on are the layers of a seed on its n-th four machines: a random one, two fields of which have
less and more of a resource. `tune` with its front runs on each of the four: the search of a design is the first part of
it, and ends with the proof that nothing is faster. So 160 trials are 640 pairs of a machine and a layer. All pairs of
machines are compared of which one has more of everything.

Where such a machine is over 1 % slower, the report's own function must find the cause, and the cause must hold: where
ways through the networks are named, the layer, tuned anew on both machines with networks whose ways cost nothing, must
not be slower. That a rule of the planner does it is proven by the plan of the machine with less, which takes less time
on the one with more than the plan that the library makes there.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, Final

import numpy as np

import ttsim
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from tools.fuzz.finding import Finding
from tools.random_calls.drafts import Choices
from ttsim.runtime.types.layer import Layer
from ttsim.study.design_result import DesignPoint, DesignResult
from ttsim.study.evaluate import Evaluator, Point, row_of
from ttsim.study.larger import WORSE, Side, cause_of, slowdown, without_ways
from ttsim.study.layers.run import planned
from ttsim.study.space import Design, DesignAxis
from ttsim.study.store import Verdict

LAYERS: Final = 20  # of a seed, each on all its machines
CARDS: Final = ("wormhole_n150", "blackhole_p150")
GRIDS: Final = ((2, 2), (4, 4), (5, 4), (4, 8), (8, 8), (8, 8), (10, 8))
L1_BYTES: Final = (786_432, 1_048_576, 1_499_136)
RATES: Final = ("noc.flit_bytes", "dram.bank_bytes_per_second", "clock_hz")
FACTORS: Final = (0.5, 1.0, 1.0, 2.0)  # of a card's rates
RESOURCES: Final = ("grid", "grid", "l1.bytes", "dram.banks", *RATES)
MORE: Final = (1.25, 1.5, 2.0)  # so many times as much of a resource
MORE_CORES: Final = (0, 1, 2, 4)  # columns or rows
CHANNELS: Final = (16, 32, 48, 64, 96, 128, 256, 512)
SIDES: Final = (4, 8, 10, 16, 24, 32)


def check(seed: int, index: int) -> Finding:
    """A layer on four machines; a fault where `tune` is faster, or more of a resource is slower without a rule."""
    four, number = divmod(index, LAYERS)
    base, axes = machines(Choices(np.random.default_rng([seed, 0, four])))
    layer = _layer(Choices(np.random.default_rng([seed, 1, number])))
    space = Design(base=base, axes=axes, costs={}, layers=(layer,))
    found = ttsim.design(space)
    explained, faults = _slower_with_more(space, found)
    slower = [text for point in found.points for text in _slower_than_tuned(space, point)]
    text = "\n".join([*slower, *faults])
    ran = any(point.nanoseconds is not None for point in found.points)
    outcome = "fault" if text else "slower with a cause" if explained else "right" if ran else "none fits"
    return Finding(outcome=outcome, text=text, again=f"{layer} on {base.name} with {axes}")


def machines(draw: Choices) -> tuple[DeviceSpec, tuple[DesignAxis, DesignAxis]]:
    """A machine, and two of its fields with less and more of a resource."""
    card = ttsim.load_spec(draw.pick(CARDS))
    cols, rows = draw.pick(GRIDS)
    changes = [f"grid={cols}x{rows}", f"l1.bytes={draw.pick(L1_BYTES)}"]
    changes += [f"{name}={_times(card, name, draw.pick(FACTORS))}" for name in RATES]
    base, first = ttsim.changed(card, changes), draw.pick(RESOURCES)
    second = draw.pick([name for name in RESOURCES if name != first])
    return base, (_axis(draw, base, first), _axis(draw, base, second))


def _axis(draw: Choices, base: DeviceSpec, name: str) -> DesignAxis:
    if name == "grid":
        more = [draw.pick(MORE_CORES), draw.pick(MORE_CORES)]
        more[0] += not any(more)
        sizes = (base.grid.cols, base.grid.rows), (base.grid.cols + more[0], base.grid.rows + more[1])
        return DesignAxis(name=name, values=tuple(f"{cols}x{rows}" for cols, rows in sizes))
    return DesignAxis(name=name, values=tuple(str(_times(base, name, factor)) for factor in (1, draw.pick(MORE))))


def _times(spec: DeviceSpec, name: str, factor: float) -> int:
    """A field of a device, so many times, in whole units; sizes of L1 and links stay multiples of 32 bytes."""
    part, _, field = name.rpartition(".")
    value: float = getattr(getattr(spec, part) if part else spec, field)
    grain = 32 if field in ("bytes", "flit_bytes") else 1
    return div_up(round(value * factor), grain) * grain


def _layer(draw: Choices) -> Layer:
    kernel, height, width = draw.pick((2, 2, 3, 4)), draw.pick(SIDES), draw.pick(SIDES)
    return Layer(
        name="up", in_channels=draw.pick(CHANNELS), out_channels=draw.pick(CHANNELS), input_height=height,
        input_width=width, kernel_size=(kernel, kernel), stride=(draw.pick((1, 2, 2)),) * 2,
        padding=(draw.below(2) if kernel > 2 else 0,) * 2, bias=draw.chance(0.5),
        input_memory=draw.pick(("dram", "dram", "l1")), input_layout=draw.pick(("ROW_MAJOR", "ROW_MAJOR", "TILE")),
    )  # fmt: skip


def _slower_than_tuned(space: Design, point: DesignPoint) -> Iterator[str]:
    """Whether `tune` finds a faster config of the layer on a machine than the design, or one where that has none."""
    spec = space.device(point.values)
    if isinstance(spec, str):
        yield f"no machine {dict(point.values)}: {spec}"
        return
    try:
        with planned(space.layers[0], Point(layer=space.layers[0], spec=spec)) as (device, options):
            best: Any = ttsim.tune(ttsim.conv_transpose2d, device=device, **options).best
    except ttsim.TTSimError:
        best = None
    ours = point.layers[0].cycles
    if best is not None and (ours is None or ours > best.cycles):
        yield f"design has {ours} cycles on {spec.name}, tune {best.cycles}"


def _slower_with_more(space: Design, found: DesignResult) -> tuple[list[str], list[str]]:
    """The causes of slowdowns by more, and the pairs of machines whose slowdown has none that holds."""
    points: Sequence[DesignPoint] = found.points  # in order of the space: less first on each axis
    explained, faults = [], []
    for (less, small), (more, large) in permutations(enumerate(points), 2):
        if less & ~more or small.nanoseconds is None:
            continue  # not less of everything, or not known
        if large.nanoseconds is None:
            faults.append(
                f"with {dict(large.values)} it does not run, with {dict(small.values)} it does: {large.reason}"
            )
            continue
        than = f"{dict(large.values)} than with {dict(small.values)}"
        share = slowdown(small.layers[0], large.layers[0])
        if share > WORSE:
            cause = cause_of(space.layers[0], share, _side(space, small), _side(space, large))
            text = f"{100 * share:.2f} % slower with {than}: {cause.reason}"
            if not cause.is_whole or (cause.parts.networks > WORSE and not _by_ways(space, small, large)):
                faults.append(text)
            else:
                explained.append(text)
    return explained, faults


def _side(space: Design, point: DesignPoint) -> Side:
    """A machine, and the row of the layer there."""
    spec, layer = _spec(space, point), point.layers[0]
    found = {"verdict": Verdict.FITS, "arguments": layer.arguments, "bound_by": layer.bound_by}
    row = row_of(Point(layer=space.layers[0], spec=spec), keyed=False, grid_rules=layer.grid_rules, **found)
    return Side(spec, row)


def _by_ways(space: Design, small: DesignPoint, large: DesignPoint) -> bool:
    """Whether the layer, tuned anew, is no slower where ways through the networks cost nothing."""
    times = []
    for point in (small, large):
        spec = without_ways(_spec(space, point))
        row = Evaluator().row(Point(layer=space.layers[0], spec=spec, tune=True), keyed=False)
        times.append((row.cycles or 0) / spec.clock_hz)
    return times[1] <= (1 + WORSE) * times[0]


def _spec(space: Design, point: DesignPoint) -> DeviceSpec:
    spec = space.device(point.values)
    if isinstance(spec, str):
        raise AssertionError(spec)
    return spec
