"""How the time of fixed plans depends on each figure of a machine: cycles are computed again on a changed spec.

The figures are every number in the parts of a spec, at any depth, except figures that only decide plans, and the tables
of programs, which are no property of a machine.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import log
from typing import Any, Final, NamedTuple, TypeAlias

from device.errors import SpecError
from device.spec.device_spec import DeviceSpec, machine_fields

# Parts and figures that decide plans: the grid, sizes of memories, the planner's own rates.
PLANNED: Final = (
    "grid", "l1", "dram.bank_bytes", "dram.base_bytes", "reader.clock_ghz", "reader.local", "reader.dram",
    "reader.multicast",
)  # fmt: skip
STEP: Final = 1.01  # to both sides, for the slope
FINE: Final = 1.001  # a finer step, which has a tenth of the effect unless there is a jump between
DIGITS: Final = 6  # further ones depend on the order of additions, which differs between versions of Python

CyclesOn: TypeAlias = Callable[[DeviceSpec], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The effect of a figure of the machine on the time of plans."""

    figure: str  # The figure, as part.field; of entries in a list, all of them together
    value: float  # The value of the figure; of a list, the first entry's
    # d log(cycles) / d log(figure), by `STEP` or one to both sides; from half to twice where there is no slope, for the
    # time jumps between them, or both are slower or both faster
    cycles_elasticity: float
    time_elasticity: float  # d log(time) / d log(figure), which differs where the figure is the clock
    doubled_time: float | None  # Time with twice the figure, of the time as it is; None if no machine can have it
    halved_time: float | None  # Time with half of it


def sensitivities(
    spec: DeviceSpec, cycles_on: CyclesOn, figures: Sequence[str] | None = None
) -> tuple[Sensitivity, ...]:
    """The figures (all, or those given) that change the cycles of the plans, strongest first."""
    before = cycles_on(spec)
    if not before:
        return ()
    paths = machine_figures(spec) if figures is None else figures
    results = [_sensitivity(spec, path, before, cycles_on) for path in paths]
    moving = [result for result in results if result is not None]
    return tuple(sorted(moving, key=lambda result: (-abs(result.time_elasticity), result.figure)))


def machine_figures(spec: DeviceSpec) -> tuple[str, ...]:
    """The numbers of a machine by their paths, in order."""
    paths = (path for name in machine_fields() for path in _paths(getattr(spec, name), name))
    planned = tuple(f"{prefix}." for prefix in PLANNED)
    return tuple(dict.fromkeys(path for path in paths if not f"{path}.".startswith(planned)))


def scaled(spec: DeviceSpec, path: str, factor: float) -> DeviceSpec:
    """The machine with one figure multiplied; integers are rounded, but always change. May raise SpecError."""
    changed: DeviceSpec = _scaled(spec, path.split("."), factor)
    return changed


def _paths(value: Any, path: str) -> Iterator[str]:
    """Numbers at and below a value."""
    if isinstance(value, bool | str):
        return
    if isinstance(value, int | float):
        yield path
    elif is_dataclass(value):
        for field in fields(value):
            yield from _paths(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, tuple) and value and all(map(is_dataclass, value)):
        yield from _paths(value[0], path)  # entries have the same fields


def _scaled(value: Any, path: list[str], factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_scaled(entry, path, factor) for entry in value)
    if path:
        name, *rest = path
        return replace(value, **{name: _scaled(getattr(value, name), rest, factor)})
    if isinstance(value, float):
        return value * factor
    nearest = round(value * factor)
    if nearest == value:
        nearest += 1 if factor > 1 else -1
    return nearest


def _value(spec: DeviceSpec, path: str) -> float:
    value: Any = spec
    for name in path.split("."):
        value = getattr(value[0] if isinstance(value, tuple) else value, name)
    return float(value)


class _Changed(NamedTuple):
    """A changed figure, and the resulting cycles of the plans."""

    value: float
    cycles: float
    seconds: float

    def over(self, here: "_Changed") -> float:
        """The logarithm of its time over the time of another."""
        return round(log(self.seconds / here.seconds), DIGITS)


def _sensitivity(spec: DeviceSpec, path: str, before: float, cycles_on: CyclesOn) -> Sensitivity | None:
    """The effect of a figure; None if twice and half of it change nothing, or if it cannot be changed alone."""

    def at(factor: float) -> _Changed | None:
        try:
            other = scaled(spec, path, factor)
        except SpecError:
            return None
        cycles = cycles_on(other)
        return _Changed(_value(other, path), cycles, cycles / other.clock_hz)

    here = _Changed(_value(spec, path), before, before / spec.clock_hz)
    doubled, halved = at(2.0), at(0.5)
    if all(change is None or change[1:] == here[1:] for change in (doubled, halved)):
        return None
    low, high = at(1 / STEP) or here, at(STEP) or here
    # A power of two, perhaps; or there is no slope
    if low == high or low.over(here) * high.over(here) > 0 or _jumps(here, (low, at(1 / FINE)), (high, at(FINE))):
        low, high = halved or here, doubled or here
    span = log(high.value / low.value)
    return Sensitivity(
        figure=path,
        value=here.value,
        cycles_elasticity=round(log(high.cycles / low.cycles) / span, DIGITS),
        time_elasticity=round(log(high.seconds / low.seconds) / span, DIGITS),
        doubled_time=None if doubled is None else round(doubled.seconds / here.seconds, DIGITS),
        halved_time=None if halved is None else round(halved.seconds / here.seconds, DIGITS),
    )


def _jumps(here: _Changed, *sides: tuple[_Changed, _Changed | None]) -> bool:
    """Whether a finer step of a figure, after its neighbor, has far more than its share of the neighbor's effect."""
    for far, near in sides:
        if near is not None and near.value != far.value:
            share = (near.value - here.value) / (far.value - here.value)
            if abs(near.over(here)) > (1 + share) / 2 * abs(far.over(here)):
                return True
    return False
