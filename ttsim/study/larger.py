"""Layers that are slower on a machine with more of a resource, and the causes.

Three runs decompose a slowdown exactly: the smaller machine with its plan, the larger machine with the same plan, and
the larger machine with its own plan. Repeating the first two with free networks isolates longer and busier routes. The
cost of the other plan is attributed to planner rules that apply only on the larger machine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import fsum
from operator import attrgetter, le
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ttsim.recording.profiling import cycles_of
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.layer import Layer
from ttsim.study.design_result import DesignPoint, LayerOutcome
from ttsim.study.front_details import calls_on
from ttsim.study.networks.replay import RecordedNetwork
from ttsim.study.space import DesignAxis
from ttsim.study.store import Row

WORSE: Final = 0.01  # of the time: less is not told
RESOURCES: Final = frozenset({"grid.cols", "grid.rows", "l1.bytes", "dram.banks", "clock_hz"})
RATES: Final = ("bytes_per_second", "bytes_per_cycle", "flit_bytes")  # ends of names of fields of which more is better
MOST_RULES: Final = 3  # of the planner that are told of a layer or a network
WAYS: Final = "the same plan takes {:.3g} % longer, because ways through the networks are longer or busier"
NO_CAUSE: Final = "neither a rule of the planner nor the ways through the networks do it; bound by {}"
NO_CYCLES: Final = 1e-9  # more than none, which no machine has
WIDER: Final = 1 << 20  # so many times as wide, no link is busy


@dataclass(frozen=True, slots=True)
class Pair:
    """A layer on two machines of a space that is slower on the machine with more of a resource."""

    layer: int  # Its number
    axis: str  # What there is more of
    small: int  # Number of the point with less
    large: int
    share: float  # By which part of its time it is slower


class Side(NamedTuple):
    """A machine, and the row of a layer on it."""

    spec: DeviceSpec
    row: Row


class Parts(NamedTuple):
    """The parts of a slowdown, relative to the time on the machine with less; their sum is the slowdown."""

    planner: float  # The library's own plan takes longer than that of the machine with less
    networks: float  # That plan takes longer than on the machine with less, but not on networks without ways
    rest: float  # The plan takes longer even there


class Cause(NamedTuple):
    """The cause of a slowdown."""

    parts: Parts
    reason: str  # A line each
    is_whole: bool  # Whether rules of the planner and the networks make all of the slowdown but `WORSE`


def slower_pairs(
    axes: Sequence[DesignAxis], points: Sequence[DesignPoint], specs: Sequence[DeviceSpec | str]
) -> tuple[Pair, ...]:
    """The largest slowdown of each layer by more of each resource, with all other fields of the space the same.

    Args:
        axes: Fields of the space.
        points: Its machines.
        specs: The device of each machine, or a text if the device is invalid.
    """
    found: dict[tuple[str, int], Pair] = {}
    for axis in axes:
        if not all(name in RESOURCES or name.endswith(RATES) for name in axis.fields):
            continue
        figures = attrgetter(*axis.fields)
        groups: dict[tuple[str, ...], list[tuple[tuple[float, ...], int]]] = {}
        for number, (point, spec) in enumerate(zip(points, specs, strict=True)):
            if not isinstance(spec, str):
                size = figures(spec) if len(axis.fields) > 1 else (figures(spec),)
                others = tuple(value for name, value in point.values.items() if name != axis.name)
                groups.setdefault(others, []).append((size, number))
        for group in groups.values():
            for pair in _of_group(axis.name, group, points):
                key = axis.name, pair.layer
                if key not in found or pair.share > found[key].share:
                    found[key] = pair
    return tuple(sorted(found.values(), key=lambda pair: -pair.share))


def _of_group(
    axis: str, group: Sequence[tuple[tuple[float, ...], int]], points: Sequence[DesignPoint]
) -> Iterator[Pair]:
    """The layers that are slower on the machine with more of a resource; all other fields are the same."""
    for (less, small), (more, large) in permutations(group, 2):
        if less != more and all(map(le, less, more)):
            for number, sides in enumerate(zip(points[small].layers, points[large].layers, strict=False)):
                share = slowdown(*sides)
                if share > WORSE:
                    yield Pair(number, axis, small, large, share)


def slowdown(before: LayerOutcome, after: LayerOutcome) -> float:
    """The slowdown of a layer as a share of its time; 0 unless it runs on both machines."""
    if not before.nanoseconds or after.nanoseconds is None:
        return 0.0
    return after.nanoseconds / before.nanoseconds - 1


def cause_of(layer: Layer | RecordedNetwork, share: float, small: Side, large: Side) -> Cause:
    """The cause of a layer's slowdown on the machine with more, relative to its time on the machine with less."""
    parts = parts_of(layer, small, large)
    known = small.row.grid_rules.splitlines()
    rules = [rule for rule in large.row.grid_rules.splitlines() if rule not in known]
    causes = [(parts.planner, rules[:MOST_RULES]), (parts.networks, [WAYS.format(100 * parts.networks)])]
    reasons, left = [], share
    for part, lines in sorted(causes, key=lambda cause: -cause[0]):
        if left > WORSE and part > 0 and lines:
            reasons += lines
            left -= part
    if left > WORSE:
        reasons.append(NO_CAUSE.format(large.row.bound_by))
    return Cause(parts, "\n".join(reasons), left <= WORSE)


def parts_of(layer: Layer | RecordedNetwork, small: Side, large: Side) -> Parts:
    """The parts of the slowdown of a layer between two machines."""
    plan, own = (calls_on(layer, side.spec, side.row) for side in (small, large))
    before, held, after = _time(plan, small.spec), _time(plan, large.spec), _time(own, large.spec)
    if not before or not own:
        return Parts(0.0, 0.0, 0.0)
    rest = _time(plan, without_ways(large.spec)) - _time(plan, without_ways(small.spec))
    return Parts((after - held) / before, (held - before - rest) / before, rest / before)


def without_ways(spec: DeviceSpec) -> DeviceSpec:
    """A machine whose networks have no hop latency and unlimited links."""
    wide = spec.noc.flit_bytes * WIDER
    noc = replace(spec.noc, hop_cycles=NO_CYCLES, crossing_cycles=NO_CYCLES, merging_share=1.0, flit_bytes=wide)
    return replace(spec, noc=noc)


def _time(calls: Sequence[RanCall], spec: DeviceSpec) -> float:
    """Nanoseconds of planned calls on a machine."""
    return fsum(nanoseconds(cycles_of(call, spec), spec.clock_hz) for call in calls)
