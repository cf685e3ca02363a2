"""Frozen dataclasses of numbers, texts and such dataclasses: to and from plain dicts, and copied with changes."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from dataclasses import replace as dataclass_replace
from typing import Any, get_args, get_origin, get_type_hints

from device.errors import SpecError
from device.spec.checks import nearest


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
        values: Its fields.
        where: Key under which ``values`` stood, for messages.

    Raises:
        SpecError: A key is unknown or missing, or a value has the wrong type.
    """
    if not isinstance(values, Mapping):
        raise SpecError(f"{where or 'device'} must be a table of {cls.__name__}, not {values!r}; write it as [{where}]")
    kinds = get_type_hints(cls)
    names = [field.name for field in fields(cls)]
    for key in values:
        if key not in names:
            raise SpecError(f"unknown key {_join(where, key)!r}{nearest(key, names)}; keys here are {', '.join(names)}")
    missing = [field.name for field in fields(cls) if field.name not in values and field.default is MISSING]
    if missing:
        raise SpecError(
            f"missing {'key' if len(missing) == 1 else 'keys'} {', '.join(_join(where, name) for name in missing)}; "
            "give every figure, or extend a device that has them (extends = ...)"
        )
    return cls(**{key: _convert(kinds[key], value, _join(where, key)) for key, value in values.items()})


def replace_fields(spec: Any, changes: Mapping[str, object], *, nested: bool) -> Any:
    """A copy of a dataclass with changes, each ``field=value`` or, if ``nested``, ``part_field=value``.

    Raises:
        SpecError: A name is unknown, or a value has the wrong type.
    """
    kinds = get_type_hints(type(spec))
    own: dict[str, Any] = {}
    parts: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        if name in kinds:
            own[name] = _convert(kinds[name], value, name)
            continue
        part, field = _split(name, kinds) if nested else ("", "")
        if not part:
            guess = nearest(name, _spellings(kinds, nested))
            raise SpecError(
                f"unknown field {name!r}{guess}; give a field of the spec, or part_field of one of its parts"
            )
        parts.setdefault(part, {})[field] = value
    for part, part_changes in parts.items():
        own[part] = replace_fields(own.get(part, getattr(spec, part)), part_changes, nested=False)
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


def _convert(kind: Any, value: Any, where: str) -> Any:
    """``value`` as the type a field wants."""
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise SpecError(f"{where} must be a list, not {value!r}; write it in square brackets")
        return tuple(_convert(get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if is_dataclass(kind):
        return from_mapping(kind, value, where)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    raise SpecError(f"{where} must be {_KINDS[kind]}, not {value!r}; correct its value")


_KINDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _join(where: str, key: str) -> str:
    """The dotted name of a key."""
    return f"{where}.{key}" if where else key
