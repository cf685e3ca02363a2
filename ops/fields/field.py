"""Every field of a device with its unit, and whether a machine is better with more or with less of it.

A field's name ends in its unit, so that rules over names do for a field that is new, too; the few that count things
are listed. A name that no rule knows is refused, for a figure without a unit can not be held to anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import isclose
from typing import Any

from device.errors import SpecError
from device.spec.device_spec import DeviceSpec
from ops.meanings import COSTS


class Better(Enum):
    """Which way a machine is better that differs in one figure, for a program that stays as it is."""

    LARGER = "larger"
    SMALLER = "smaller"
    NEITHER = ""


class Dimension(Enum):
    """What becomes of a figure where everything happens in less time: on a faster clock, or in fewer cycles of it."""

    CLOCK = "a rate of the clock"
    RATE = "bytes in a second"
    TIME = "time on a clock of its own"
    CYCLES = "cycles"
    CYCLE_RATE = "bytes in a cycle"
    NUMBER = "a number"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a device.

    Attributes:
        path: Keys that lead to it.
        value: What it is.
        unit: Of the value; empty of a plain number, a text or a flag.
        dimension: Of the value.
        better: Which way.
    """

    path: tuple[str | int, ...]
    value: Any
    unit: str
    dimension: Dimension
    better: Better

    @property
    def name(self) -> str:
        """As it is written: `dram.banks`, `reader.tilize[0].dst_16bit_cycles`."""
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)[1:]

    @property
    def numeric(self) -> bool:
        """Whether it is a number: neither text nor flag nor list of places."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)


# What is counted, by its whole name: unit and which way is better.
_COUNTED: dict[str, tuple[str, Better]] = {
    "grid.cols": ("cores", Better.NEITHER),  # more cores, and longer ways between them
    "grid.rows": ("cores", Better.NEITHER),
    "l1.circular_buffers": ("", Better.LARGER),
    "dram.banks": ("banks", Better.LARGER),
    "noc.cols": ("nodes", Better.SMALLER),
    "noc.rows": ("nodes", Better.SMALLER),
    "noc.flit_bytes": ("bytes/cycle", Better.LARGER),
    "data_movement.processors": ("processors", Better.LARGER),
    "compute.dst_tiles": ("tiles", Better.LARGER),
    "compute.stationary_tiles": ("tiles", Better.NEITHER),  # fewer fetches, of which each is waited for
}
# The others by how their names end; the first ending that fits counts.
_ENDINGS: dict[str, tuple[str, Dimension, Better]] = {
    "_bytes_per_second": ("bytes/s", Dimension.RATE, Better.LARGER),
    "_bytes_per_cycle": ("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "_bytes_per_ns": ("bytes/ns", Dimension.RATE, Better.LARGER),
    "_cycles": ("cycles", Dimension.CYCLES, Better.SMALLER),
    "wait_share": ("", Dimension.NUMBER, Better.SMALLER),
    "waiting_share": ("", Dimension.NUMBER, Better.SMALLER),
    "_share": ("", Dimension.NUMBER, Better.LARGER),
    "_factor": ("", Dimension.NUMBER, Better.SMALLER),  # of what else is to be done
    "_links": ("links", Dimension.NUMBER, Better.LARGER),
    "buffer_bytes": ("bytes", Dimension.NUMBER, Better.LARGER),
    "write_bytes": ("bytes", Dimension.NUMBER, Better.LARGER),
    "packet_bytes": ("bytes", Dimension.NUMBER, Better.LARGER),
    "_bytes": ("bytes", Dimension.NUMBER, Better.NEITHER),
    "bytes": ("bytes", Dimension.NUMBER, Better.NEITHER),
    "_ghz": ("GHz", Dimension.CLOCK, Better.LARGER),
    "_hz": ("Hz", Dimension.CLOCK, Better.LARGER),
    "_ns": ("ns", Dimension.TIME, Better.SMALLER),
    "_nanoseconds": ("ns", Dimension.TIME, Better.SMALLER),
}
_OF_THE_PLANNER = "reader"  # right or wrong, they decide plans and nothing else
_PER_CYCLE = "bytes/cycle"


def fields_of(spec: DeviceSpec) -> tuple[Field, ...]:
    """Every field of a device, in the order of its file.

    Raises:
        SpecError: A number's name does not tell its unit.
    """
    return tuple(_field(path, value) for path, value in _leaves(spec.to_dict(), ()))


def numeric_fields(spec: DeviceSpec) -> tuple[Field, ...]:
    """Those that are numbers; arguments as of `fields_of`."""
    return tuple(field for field in fields_of(spec) if field.numeric)


def with_values(spec: DeviceSpec, values: dict[tuple[str | int, ...], Any]) -> DeviceSpec:
    """A copy with other values of some fields, by their paths; a whole number is rounded.

    Raises:
        SpecError: The changed device contradicts itself.
    """
    changed = spec.to_dict()
    for path, value in values.items():
        inner: Any = changed
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = round(value) if type(inner[path[-1]]) is int else value
    return DeviceSpec.from_dict(changed, COSTS)


def scaled(spec: DeviceSpec, field: Field, factor: float) -> DeviceSpec | None:
    """A copy with a field so many times as large; None if it can not be, or is not another after rounding."""
    value = field.value * factor
    whole = round(value) if isinstance(field.value, int) else value
    if isclose(whole, field.value):
        return None
    try:
        return with_values(spec, {field.path: whole})
    except SpecError:
        return None


def others(spec: DeviceSpec, field: Field) -> tuple[DeviceSpec, ...]:
    """Copies in which a field that is no number is another: a flag the other way, places without gaps or with one."""
    if isinstance(field.value, bool):
        return (with_values(spec, {field.path: not field.value}),)
    if not isinstance(field.value, list):
        return ()
    placed = ([0, *field.value[1:]], list(range(len(field.value))))
    return tuple(with_values(spec, {field.path: places}) for places in placed if places != field.value)


def _leaves(values: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Whatever is no table, with the keys that lead to it; a list of numbers is one value."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(values, list | tuple) and values and isinstance(values[0], dict):
        for number, value in enumerate(values):
            yield from _leaves(value, (*path, number))
    else:
        yield path, values


def _field(path: tuple[str | int, ...], value: Any) -> Field:
    plain = Field(path, value, "", Dimension.NUMBER, Better.NEITHER)
    if not plain.numeric:
        return plain
    unit, dimension, better = _kind(plain.name)
    return Field(path, value, unit, dimension, Better.NEITHER if path[0] == _OF_THE_PLANNER else better)


def _kind(name: str) -> tuple[str, Dimension, Better]:
    """Unit, dimension and direction of a number."""
    if name in _COUNTED:
        unit, better = _COUNTED[name]
        return unit, Dimension.CYCLE_RATE if unit == _PER_CYCLE else Dimension.NUMBER, better
    for ending, kind in _ENDINGS.items():
        if name.endswith(ending):
            return kind
    raise SpecError(
        f"{name}: nobody knows the unit of this figure; let its name end in one of {', '.join(_ENDINGS)}, or list it"
    )
