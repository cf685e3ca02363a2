"""Layers that are slower on a machine that has more of a resource, each with the planner's rule that makes it so."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from operator import attrgetter, le
from typing import Final

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import GRID
from ttsim.study.design_result import DesignPoint, LayerOutcome, SlowerLayer
from ttsim.study.space import DesignAxis

WORSE: Final = 0.01  # of the time: less is not told
RESOURCES: Final = frozenset({"grid.cols", "grid.rows", "l1.bytes", "dram.banks", "clock_hz"})
RATES: Final = ("bytes_per_second", "bytes_per_cycle", "flit_bytes")  # ends of names of fields of which more is better
NO_RULE: Final = "its config names its cores, so that no rule of the planner does it; bound by {}"
LONGER: Final = "the rings of the networks are longer"


def slower_layers(
    axes: Sequence[DesignAxis], points: Sequence[DesignPoint], specs: Sequence[DeviceSpec | str]
) -> tuple[SlowerLayer, ...]:
    """The largest slowdown of each layer by more of each resource, with all other fields of the space the same.

    Args:
        axes: Fields of the space.
        points: Its machines.
        specs: The device of each machine; a text where there is none.
    """
    found: dict[tuple[str, str], SlowerLayer] = {}
    for axis in axes:
        if not all(name in RESOURCES or name.endswith(RATES) for name in axis.fields):
            continue
        figures = attrgetter(*axis.fields)
        groups: dict[tuple[str, ...], list[tuple[tuple[float, ...], DesignPoint]]] = {}
        for point, spec in zip(points, specs, strict=True):
            if not isinstance(spec, str):
                size = figures(spec) if len(axis.fields) > 1 else (figures(spec),)
                others = tuple(value for name, value in point.values.items() if name != axis.name)
                groups.setdefault(others, []).append((size, point))
        for group in groups.values():
            for slower in _of_group(axis.name, group):
                key = axis.name, slower.layer
                if key not in found or slower.share > found[key].share:
                    found[key] = slower
    return tuple(sorted(found.values(), key=lambda slower: -slower.share))


def _of_group(axis: str, group: Sequence[tuple[tuple[float, ...], DesignPoint]]) -> Iterator[SlowerLayer]:
    """The layers that are slower on one of two machines, which has more of a resource and is else the same."""
    for (less, small), (more, large) in permutations(group, 2):
        if less == more or not all(map(le, less, more)):
            continue
        others = {name: value for name, value in small.values.items() if name != axis}
        for before, after in zip(small.layers, large.layers, strict=False):
            share = _slowdown(before, after)
            if share > WORSE:
                yield SlowerLayer(
                    layer=before.layer,
                    axis=axis,
                    smaller=small.values[axis],
                    larger=large.values[axis],
                    others=others,
                    share=share,
                    reason=_reason(axis, after),
                )


def _slowdown(before: LayerOutcome, after: LayerOutcome) -> float:
    """By which part of its time a layer is slower; 0 where it does not run on both machines."""
    if not before.nanoseconds or after.nanoseconds is None:
        return 0.0
    return after.nanoseconds / before.nanoseconds - 1


def _reason(axis: str, after: LayerOutcome) -> str:
    rules = after.grid_rules or NO_RULE.format(after.bound_by)
    return f"{rules}\n{LONGER}" if axis == GRID else rules
