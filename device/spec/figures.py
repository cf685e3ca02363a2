"""Frozen dataclasses of figures: conversion to and from dicts, copies with changes, checks and units."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace as dataclass_replace
from enum import Enum
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast, get_args, get_origin, get_type_hints

from device.errors import SpecError, nearest, shown

LARGEST_FIGURE: Final = 1 << 60  # of any device: 64 bits hold sums of such numbers, and a float their products


class Better(Enum):
    """Whether larger or smaller values of a figure make a machine better, for a fixed program."""

    LARGER = "larger"
    SMALLER = "smaller"
    NEITHER = ""


class Dimension(Enum):
    """How a figure scales if everything takes less time: on a faster clock, or in fewer cycles."""

    CLOCK = "a rate of the clock"
    RATE = "bytes in a second"
    TIME = "time on a clock of its own"
    CYCLES = "cycles"
    CYCLE_RATE = "bytes in a cycle"
    NUMBER = "a number"


class Kind(NamedTuple):
    """What kind of number a figure is."""

    unit: str  # Of the number; empty of a plain one
    dimension: Dimension  # Of the number
    better: Better  # Which way a machine is better


def kind_of(name: str) -> Kind:
    """The kind of number of a figure such as `dram.banks` or `reader.tilize[0].dst_16bit_cycles`; raises SpecError."""
    if kind := _kind_or_none(name):
        return kind
    raise SpecError(
        f"{name}: nobody knows the unit of this figure; let its name end in one of {', '.join(_ENDINGS)}, or list it"
    )


def has_kind(name: str) -> bool:
    """Whether the name of a figure determines its unit."""
    return _kind_or_none(name) is not None


def _kind_or_none(name: str) -> Kind | None:
    return _COUNTED.get(name) or next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


# What is counted, by its whole name: unit and which way is better.
_COUNTED: Final[Mapping[str, Kind]] = MappingProxyType({
    "grid.cols": Kind("cores", Dimension.NUMBER, Better.NEITHER),  # more cores, and longer ways between them
    "grid.rows": Kind("cores", Dimension.NUMBER, Better.NEITHER),
    "l1.circular_buffers": Kind("", Dimension.NUMBER, Better.LARGER),
    "dram.banks": Kind("banks", Dimension.NUMBER, Better.LARGER),
    "dram_costs.bank_channels": Kind("channels", Dimension.NUMBER, Better.NEITHER),
    "dram_costs.row_banks": Kind("banks", Dimension.NUMBER, Better.LARGER),
    "dram_costs.bank_groups": Kind("groups", Dimension.NUMBER, Better.LARGER),
    "dram_costs.queued_bursts": Kind("bursts", Dimension.NUMBER, Better.LARGER),
    "dram_costs.drained_bursts": Kind("bursts", Dimension.NUMBER, Better.NEITHER),
    "noc.cols": Kind("nodes", Dimension.NUMBER, Better.SMALLER),
    "noc.rows": Kind("nodes", Dimension.NUMBER, Better.SMALLER),
    "noc.flit_bytes": Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "data_movement.processors": Kind("processors", Dimension.NUMBER, Better.LARGER),
    "compute.dst_tiles": Kind("tiles", Dimension.NUMBER, Better.LARGER),
    "compute.vector_lanes": Kind("numbers/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "compute.stationary_tiles": Kind("tiles", Dimension.NUMBER, Better.NEITHER),  # fewer fetches, some waited for
})  # fmt: skip
# The others by how their names end; the first ending that fits counts.
_ENDINGS: Final[Mapping[str, Kind]] = MappingProxyType({
    "_bytes_per_second": Kind("bytes/s", Dimension.RATE, Better.LARGER),
    "_bytes_per_cycle": Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "_bytes_per_ns": Kind("bytes/ns", Dimension.RATE, Better.LARGER),
    "_cycles": Kind("cycles", Dimension.CYCLES, Better.SMALLER),
    "wait_share": Kind("", Dimension.NUMBER, Better.SMALLER),
    "waiting_share": Kind("", Dimension.NUMBER, Better.SMALLER),
    "_share": Kind("", Dimension.NUMBER, Better.LARGER),
    "_factor": Kind("", Dimension.NUMBER, Better.SMALLER),  # of what else is to be done
    "_links": Kind("links", Dimension.NUMBER, Better.LARGER),
    "buffer_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "write_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "packet_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "_bytes": Kind("bytes", Dimension.NUMBER, Better.NEITHER),
    "bytes": Kind("bytes", Dimension.NUMBER, Better.NEITHER),
    "_ghz": Kind("GHz", Dimension.CLOCK, Better.LARGER),
    "_hz": Kind("Hz", Dimension.CLOCK, Better.LARGER),
    "_ns": Kind("ns", Dimension.TIME, Better.SMALLER),
    "_nanoseconds": Kind("ns", Dimension.TIME, Better.SMALLER),
    "_femtojoules": Kind("fJ", Dimension.NUMBER, Better.SMALLER),
    "_limit_milliwatts": Kind("mW", Dimension.NUMBER, Better.NEITHER),
    "_milliwatts": Kind("mW", Dimension.NUMBER, Better.SMALLER),
    "_square_micrometers": Kind("um2", Dimension.NUMBER, Better.SMALLER),
})  # fmt: skip


_DECIMAL: Final = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
_SIZES: Final = {
    "bytes": Fraction(1),
    **{f"{prefix}B": Fraction(10**power) for prefix, power in _DECIMAL.items()},
    **{f"{prefix}B": Fraction(2**power) for prefix, power in _BINARY.items()},
}
# What can be measured, and its units, smaller ones first: how much each is of one and the same.
_KINDS: Final[Mapping[str, Mapping[str, Fraction]]] = MappingProxyType(
    {
        "a size": _SIZES,
        "a frequency": {f"{prefix}Hz": Fraction(10**power) for prefix, power in _DECIMAL.items()},
        "a rate": {
            **{f"{size}/ns": factor * 10**9 for size, factor in _SIZES.items()},
            **{f"{size}/s": factor for size, factor in _SIZES.items()},
        },
        "a time": {"ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 10**3), "s": Fraction(1)},
        "bytes in a cycle": {f"{size}/cycle": factor for size, factor in _SIZES.items()},
        "cycles": {"cycles": Fraction(1)},
        "a part of a whole": {"": Fraction(1), "%": Fraction(1, 100), "percent": Fraction(1, 100)},
    }
)  # fmt: skip
_NUMBER: Final = re.compile(r"([+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?(\d+))?)\s*(.*)", flags=re.DOTALL)
_LONGEST_NUMBER: Final = 400  # characters
_LONGEST_EXPONENT: Final = 3


def read_number(name: str, text: str, *, whole: bool) -> int | float:
    """The number of a text in the field's unit; the text may have a unit; ``whole`` requires an integer."""
    exact = _exact(name, text, whole)
    if not whole:
        return _nearest_float(name, exact)
    if exact.denominator > 1:
        raise SpecError(f"{name} must be a whole number, not {shown(text)}; {round(exact)} would do")
    return int(exact)


def spelled_number(name: str, value: float) -> str:
    """The shortest text that `read_number` reads as a value, in a unit in which it is at least 1."""
    whole = isinstance(value, int)
    texts = [*_in_units(name, value), repr(value).removesuffix(".0")]
    return min((text for text in texts if _exact(name, text, whole) == Fraction(repr(value))), key=len)


def _exact(name: str, text: str, whole: bool) -> Fraction:
    number, unit = _split(name, text, whole)
    return number * _factor(name, unit, text, whole)


def _nearest_float(name: str, exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise SpecError(f"{name} must be at most {LARGEST_FIGURE:,}; give a smaller number") from None


def _in_units(name: str, value: float) -> Iterator[str]:
    """A number in each unit that makes it at least 1, the largest unit first."""
    units, own = _units(name, isinstance(value, int)), kind_of(name).unit
    for unit, factor in reversed(list(units.items())):
        number = float(Fraction(value) * units.get(own, Fraction(1)) / factor)
        if unit and abs(number) >= 1:
            yield repr(number).removesuffix(".0") + unit


def _split(name: str, text: str, whole: bool) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or len(match[1]) > _LONGEST_NUMBER:
        raise SpecError(f"{name} must be a number, not {shown(text)}; {_way_out(name, whole)}")
    if len(match[2] or "") > _LONGEST_EXPONENT:
        raise SpecError(f"{name} must have an exponent of at most three digits, not {shown(text)}; shorten it")
    return Fraction(match[1].replace("_", "")), match[3].strip()


def _factor(name: str, unit: str, text: str, whole: bool) -> Fraction:
    """The factor from a unit to the field's own unit; raises SpecError if the unit does not fit the field."""
    units, own = _units(name, whole), kind_of(name).unit
    if not unit or (unit == own and unit not in units):
        return Fraction(1)
    if unit in units:
        return units[unit] / units[own]
    of = next((kind for kind, known in _KINDS.items() if unit in known), None)
    if of is None:
        every = [unit_name for known in _KINDS.values() for unit_name in known if unit_name]
        raise SpecError(f"{name}: unknown unit {shown(unit)}{nearest(unit, units or every)}; {_way_out(name, whole)}")
    raise SpecError(
        f"{name} is {f'in {own}' if own else 'a plain number'}, not {of} as {shown(text)} is; {_way_out(name, whole)}"
    )


def _units(name: str, whole: bool) -> Mapping[str, Fraction]:
    """The units of a number; empty for counts."""
    own = kind_of(name).unit
    if whole and not own:
        return {}
    return next((units for units in _KINDS.values() if own in units), {})


def _way_out(name: str, whole: bool) -> str:
    own = kind_of(name).unit
    units = [unit for unit in _units(name, whole) if unit not in ("", own)]
    plain = f"give a plain number{f' of {own}' if own else ''}"
    return f"{plain}, or one with {', '.join(units)}" if units else plain


def to_plain(value: Any) -> Any:
    """A dataclass as dicts, lists, numbers and strings."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def from_mapping(cls: Any, values: Mapping[str, Any], where: str = "") -> Any:
    """A dataclass from dicts; inverse of ``to_plain``. ``where`` is the key of ``values``, for messages.

    Raises:
        SpecError: A key is unknown or missing, or a value has the wrong type.
    """
    check_table(cls.__name__, values, where)
    names = [field.name for field in fields(cls)]
    needed = [field.name for field in fields(cls) if field.default is MISSING]
    check_keys(values, known=names, needed=needed, where=where)
    kinds = types_of(cls)
    return cls(**{key: convert(kinds[key], value, _join(where, key)) for key, value in values.items()})


@cache
def types_of(cls: Any) -> Mapping[str, Any]:
    """The types of the fields of a dataclass, cached because thousands of copies are made."""
    return get_type_hints(cls)


def check_table(kind: str, values: object, where: str) -> None:
    """Raises SpecError unless the value is a table; ``kind`` says what the table describes."""
    if not isinstance(values, Mapping):
        raise SpecError(f"{where or 'device'} must be a table of {kind}, not {shown(values)}; write it as [{where}]")


def check_keys(values: Mapping[str, Any], *, known: Iterable[str], needed: Iterable[str], where: str = "") -> None:
    """Raises SpecError for a missing or unknown key of a table; the error suggests the nearest known key."""
    names = list(known)
    for key in values:
        if key not in names:
            raise SpecError(f"unknown key {_join(where, key)!r}{nearest(key, names)}; keys here are {', '.join(names)}")
    missing = [_join(where, name) for name in needed if name not in values]
    if missing:
        raise SpecError(
            f"missing {'key' if len(missing) == 1 else 'keys'} {', '.join(missing)}; "
            "give every figure, or extend a device that has them (extends = ...)"
        )


def replace_fields(
    spec: Any, changes: Mapping[str, object], *, nested: bool, other_names: Iterable[str] = (), where: str = ""
) -> Any:
    """A copy of a dataclass with changes, each ``field=value`` or, if ``nested``, ``part_field=value``.

    Args:
        other_names: Further valid names, for suggestions.
        where: Key of the dataclass, which determines the units of its numbers and appears in messages.

    Raises:
        SpecError: A name is unknown, or a value has the wrong type.
    """
    kinds = types_of(cast(Any, type(spec)))
    own: dict[str, Any] = {}
    changes_by_part: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        if name in kinds:
            own[name] = convert(kinds[name], value, _join(where, name))
            continue
        part, field = _figures_split(name, kinds) if nested else ("", "")
        if not part:
            guess = nearest(name, [*_spellings(kinds, nested), *other_names])
            raise SpecError(
                f"unknown field {shown(name)}{guess}; give a field of the spec, or part_field of one of its parts"
            )
        changes_by_part.setdefault(part, {})[field] = value
    for part, part_changes in changes_by_part.items():
        own[part] = replace_fields(own.get(part, getattr(spec, part)), part_changes, nested=False, where=part)
    return dataclass_replace(spec, **own)


def _figures_split(name: str, kinds: Mapping[str, Any]) -> tuple[str, str]:
    """The part and the field of ``part_field``; two empty texts if there is none."""
    for part, kind in kinds.items():
        field = name.removeprefix(f"{part}_")
        if field != name and is_dataclass(kind) and field in {item.name for item in fields(kind)}:
            return part, field
    return "", ""


def _spellings(kinds: Mapping[str, Any], nested: bool) -> list[str]:
    """Every name that ``replace_fields`` accepts."""
    parts = [(part, kind) for part, kind in kinds.items() if nested and is_dataclass(kind)]
    return [*kinds, *(f"{part}_{field.name}" for part, kind in parts for field in fields(kind))]


def convert(kind: Any, value: Any, where: str) -> Any:
    """``value`` converted to the type of a field; a text with a unit becomes a number in the field's unit."""
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise SpecError(f"{where} must be a list, not {shown(value)}; write it in square brackets")
        return tuple(convert(get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if is_dataclass(kind):
        return from_mapping(kind, value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST_FIGURE:
            raise SpecError(f"{where} must be at most {LARGEST_FIGURE:,}; give a smaller number")
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():  # such as 1e9
        return int(value)
    if isinstance(value, str) and kind in (int, float) and has_kind(where):
        return read_number(where, value, whole=kind is int)
    raise SpecError(f"{where} must be {_FIGURES_KINDS[kind]}, not {shown(value)}; correct its value")


_FIGURES_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def require_positive(part: str, spec: Any) -> None:
    """Requires every number of a part to be above zero and at most `LARGEST_FIGURE`; torus columns may be tuples."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value > LARGEST_FIGURE:
            raise SpecError(f"{part}: {field.name} must be at most {LARGEST_FIGURE:,}; give a smaller number")
        if number and not value > 0:
            raise SpecError(f"{part}: {field.name} must be a number above zero, not {value}; give a positive number")


def require_at_most(part: str, spec: Any, most: int, *names: str) -> None:
    """Requires each of the named fields to be at most a limit."""
    for name in names:
        value = getattr(spec, name)
        if value > most:
            raise SpecError(f"{part}: {name} must be at most {most}, not {value}; give a smaller number")


def require_powers_of_two(part: str, spec: Any, *names: str) -> None:
    """Requires each of the named fields to be a power of two."""
    for name in names:
        value = getattr(spec, name)
        if value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise SpecError(f"{part}: {name} must be a power of two, not {value}; the nearest below is {below}")


def require_share(part: str, spec: Any, *names: str) -> None:
    """Requires each of the named fields to be at most 1."""
    for name in names:
        value = getattr(spec, name)
        if value > 1:
            raise SpecError(f"{part}: {name} must be a part of 1, not {value}; give a number above 0 and up to 1")


def require_multiple(part: str, spec: Any, name: str, of: str) -> None:
    """Requires one field to be a multiple of another."""
    value, unit = getattr(spec, name), getattr(spec, of)
    if value % unit:
        raise SpecError(
            f"{part}: {name} must be a multiple of {of} ({unit}), not {value}; {value - value % unit + unit} would do"
        )


def require_room(part: str, name: str, top_bytes: int, base_bytes: int) -> None:
    """Requires the end of a memory to be above its base."""
    if top_bytes <= base_bytes:
        raise SpecError(
            f"{part}: {name} must be above base_bytes ({base_bytes}), not {top_bytes}; raise {name} or lower base_bytes"
        )
