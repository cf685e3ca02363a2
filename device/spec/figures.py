"""Frozen dataclasses of figures: to and from plain dicts, copied with changes, and checked.

Figures are numbers, texts, and such dataclasses again.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import replace as dataclass_replace
from typing import Any, get_args, get_origin, get_type_hints

from device.errors import SpecError, nearest, shown
from device.spec.kinds import has_kind
from device.spec.units import read_number


def to_plain(value: Any) -> Any:
    """A dataclass as dicts, lists, numbers and texts."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return value


def from_mapping(cls: Any, values: Mapping[str, Any], where: str = "") -> Any:
    """A dataclass of plain dicts; inverse of ``to_plain``.

    Args:
        cls: The dataclass to make.
        where: Key under which ``values`` stood, for messages.

    Raises:
        SpecError: A key is unknown or missing, or a value has the wrong type.
    """
    check_table(cls.__name__, values, where)
    names = [field.name for field in fields(cls)]
    needed = [field.name for field in fields(cls) if field.default is MISSING]
    check_keys(values, known=names, needed=needed, where=where)
    kinds = get_type_hints(cls)
    return cls(**{key: convert(kinds[key], value, _join(where, key)) for key, value in values.items()})


def check_table(kind: str, values: object, where: str) -> None:
    """What stands under a key is a table; ``kind`` says of what.

    Raises:
        SpecError: It is none.
    """
    if not isinstance(values, Mapping):
        raise SpecError(f"{where or 'device'} must be a table of {kind}, not {shown(values)}; write it as [{where}]")


def check_keys(values: Mapping[str, Any], *, known: Iterable[str], needed: Iterable[str], where: str = "") -> None:
    """A table has the keys it needs, and none that nobody knows.

    Raises:
        SpecError: A key is unknown (the nearest right one is given) or missing.
    """
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
        changes: By name.
        nested: Whether fields of its parts can be changed, too.
        other_names: What else could have been given, for suggestions.
        where: Key under which the dataclass stands: of it hang the units of its numbers, and messages.

    Raises:
        SpecError: A name is unknown, or a value has the wrong type.
    """
    kinds = get_type_hints(type(spec))
    own: dict[str, Any] = {}
    parts: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        if name in kinds:
            own[name] = convert(kinds[name], value, _join(where, name))
            continue
        part, field = _split(name, kinds) if nested else ("", "")
        if not part:
            guess = nearest(name, [*_spellings(kinds, nested), *other_names])
            raise SpecError(
                f"unknown field {shown(name)}{guess}; give a field of the spec, or part_field of one of its parts"
            )
        parts.setdefault(part, {})[field] = value
    for part, part_changes in parts.items():
        own[part] = replace_fields(own.get(part, getattr(spec, part)), part_changes, nested=False, where=part)
    return dataclass_replace(spec, **own)


def _split(name: str, kinds: Mapping[str, Any]) -> tuple[str, str]:
    """The part and the field of ``part_field``; two empty texts if there is none."""
    for part, kind in kinds.items():
        field = name.removeprefix(f"{part}_")
        if field != name and is_dataclass(kind) and field in {item.name for item in fields(kind)}:
            return part, field
    return "", ""


def _spellings(kinds: Mapping[str, Any], nested: bool) -> list[str]:
    """Every name that ``replace_fields`` knows."""
    parts = [(part, kind) for part, kind in kinds.items() if nested and is_dataclass(kind)]
    return [*kinds, *(f"{part}_{field.name}" for part, kind in parts for field in fields(kind))]


def convert(kind: Any, value: Any, where: str) -> Any:
    """``value`` as the type a field wants; a text with a unit as the number that it is in the field's own."""
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise SpecError(f"{where} must be a list, not {shown(value)}; write it in square brackets")
        return tuple(convert(get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if is_dataclass(kind):
        return from_mapping(kind, value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > sys.float_info.max:
            raise SpecError(f"{where} must be at most {sys.float_info.max:g}; give a smaller number")
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():  # such as 1e9
        return int(value)
    if isinstance(value, str) and kind in (int, float) and has_kind(where):
        return read_number(where, value, whole=kind is int)
    raise SpecError(f"{where} must be {_KINDS[kind]}, not {shown(value)}; correct its value")


_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _join(where: str, key: str) -> str:
    """The dotted name of a key."""
    return f"{where}.{key}" if where else key


def require_positive(part: str, spec: Any) -> None:
    """Every number of a part is above zero and a float can hold it (those of torus columns and rows are tuples)."""
    for field in fields(spec):
        value = getattr(spec, field.name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and value > sys.float_info.max:
            raise SpecError(f"{part}: {field.name} must be at most {sys.float_info.max:g}; give a smaller number")
        if number and not value > 0:
            raise SpecError(f"{part}: {field.name} must be a number above zero, not {value}; give a positive number")


def require_at_most(part: str, spec: Any, most: int, *names: str) -> None:
    """Each of the named fields is no larger."""
    for name in names:
        value = getattr(spec, name)
        if value > most:
            raise SpecError(f"{part}: {name} must be at most {most}, not {value}; give a smaller number")


def require_powers_of_two(part: str, spec: Any, *names: str) -> None:
    """Each of the named fields is a power of two."""
    for name in names:
        value = getattr(spec, name)
        if value & (value - 1):
            below = 1 << (value.bit_length() - 1)
            raise SpecError(f"{part}: {name} must be a power of two, not {value}; the nearest below is {below}")


def require_share(part: str, spec: Any, *names: str) -> None:
    """Each of the named fields is a part of a whole."""
    for name in names:
        value = getattr(spec, name)
        if value > 1:
            raise SpecError(f"{part}: {name} must be a part of 1, not {value}; give a number above 0 and up to 1")


def require_multiple(part: str, spec: Any, name: str, of: str) -> None:
    """One field is a multiple of another."""
    value, unit = getattr(spec, name), getattr(spec, of)
    if value % unit:
        raise SpecError(
            f"{part}: {name} must be a multiple of {of} ({unit}), not {value}; {value - value % unit + unit} would do"
        )


def require_room(part: str, name: str, top_bytes: int, base_bytes: int) -> None:
    """A memory ends above its base."""
    if top_bytes <= base_bytes:
        raise SpecError(
            f"{part}: {name} must be above base_bytes ({base_bytes}), not {top_bytes}; raise {name} or lower base_bytes"
        )
