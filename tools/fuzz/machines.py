"""Layers designed on random machines: `tune` finds nothing faster, and more of a resource makes no layer slower.

Trials from `LAYERS * n` on are the layers of a seed on its n-th four machines: a random one, two fields of which have
less and more of a resource.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, Final

import numpy as np

import ttsim
from device.spec.device_spec import DeviceSpec
from tools.fuzz.finding import Finding
from tools.random_calls.drafts import Choices
from ttsim.runtime.types.layer import Layer
from ttsim.study.design_result import DesignPoint, DesignResult
from ttsim.study.evaluate import Point
from ttsim.study.larger import NO_RULE, WORSE
from ttsim.study.layers.run import planned
from ttsim.study.space import Design, DesignAxis

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
UNNAMED: Final = NO_RULE.partition(";")[0]  # begins a reason that names no rule


def check(seed: int, index: int) -> Finding:
    """A layer on four machines; a fault where `tune` is faster, or more of a resource is slower without a rule."""
    four, number = divmod(index, LAYERS)
    base, axes = machines(Choices(np.random.default_rng([seed, 0, four])))
    layer = _layer(Choices(np.random.default_rng([seed, 1, number])))
    space = Design(base=base, axes=axes, costs={}, layers=(layer,))
    found = ttsim.design(space)
    text = "\n".join([*_slower_than_tuned(space, found), *_slower_with_more(found)])
    ran = sum(point.nanoseconds is not None for point in found.points)
    outcome = "fault" if text else "slower by a rule" if found.slower else "right" if ran else "none fits"
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
    return max(grain, round(value * factor) // grain * grain)


def _layer(draw: Choices) -> Layer:
    kernel, height, width = draw.pick((2, 2, 3, 4)), draw.pick(SIDES), draw.pick(SIDES)
    return Layer(
        name="up", in_channels=draw.pick(CHANNELS), out_channels=draw.pick(CHANNELS), input_height=height,
        input_width=width, kernel_size=(kernel, kernel), stride=(draw.pick((1, 2, 2)),) * 2,
        padding=(draw.below(2) if kernel > 2 else 0,) * 2, bias=draw.chance(0.5),
        input_memory=draw.pick(("dram", "dram", "l1")), input_layout=draw.pick(("ROW_MAJOR", "ROW_MAJOR", "TILE")),
    )  # fmt: skip


def _slower_than_tuned(space: Design, found: DesignResult) -> Iterator[str]:
    """The machines on which `tune` finds a faster config than the design, or one where the design has none."""
    for point in found.points:
        spec = space.device(point.values)
        if isinstance(spec, str):
            yield f"no machine {dict(point.values)}: {spec}"
            continue
        try:
            with planned(space.layers[0], Point(layer=space.layers[0], spec=spec)) as (device, options):
                best: Any = ttsim.tune(ttsim.conv_transpose2d, device=device, **options).best
        except ttsim.TTSimError:
            best = None
        ours = point.layers[0].cycles
        if best is not None and (ours is None or ours > best.cycles):
            yield f"design has {ours} cycles on {spec.name}, tune {best.cycles}"


def _slower_with_more(found: DesignResult) -> Iterator[str]:
    """The pairs of machines of which the one with more is slower, and the report names no rule."""
    points: Sequence[DesignPoint] = found.points  # in order of the space: less first on each axis
    for (less, small), (more, large) in permutations(enumerate(points), 2):
        if less & ~more or small.nanoseconds is None:
            continue  # not less of everything, or not known
        if large.nanoseconds is None:
            yield f"with {dict(large.values)} it does not run, with {dict(small.values)} it does: {large.reason}"
            continue
        share = large.nanoseconds / small.nanoseconds - 1
        named = [each for each in found.slower if not each.reason.startswith(UNNAMED)]
        if share > WORSE and not named:
            yield f"{100 * share:.2f} % slower with {dict(large.values)} than with {dict(small.values)}"
