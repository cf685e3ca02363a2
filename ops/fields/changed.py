"""A device with other values of some fields, as text says them: `dram.banks=16`, `l1.bytes=2MiB`, `grid=9x7`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeAlias

from device.errors import ArgumentTypeError, SpecError, nearest, shown
from device.spec.device_spec import LONGEST_NAME, DeviceSpec
from ops import meanings
from ops.fields.field import Field, fields_of, with_values
from ops.fields.units import Value, read_value, spelled

Keys: TypeAlias = tuple[str | int, ...]

GRID: Final = "grid"
SEPARATOR: Final = ", "
_GRID_SIZE: Final = re.compile(r"(\d{1,6})x(\d{1,6})")
_NEXT_CHANGE: Final = re.compile(r",\s*(?=[a-z]\w*(?:[.\[]\w+\]?)*=)")
_NO_CHANGE: Final = "a change is FIELD=VALUE, not {}; such as dram.banks=16"
_LONGEST_BASE: Final = 60  # characters of a device's name, where its changes are too long to be said


def changed(spec: DeviceSpec, changes: Sequence[str]) -> DeviceSpec:
    """A copy of a device with other values of some fields, checked as a whole; its name says what is another.

    Args:
        spec: The device.
        changes: Each is `field=value`, with the names that `ttsim devices NAME` prints: `dram.banks=16`,
            `clock_hz=1.2GHz`, `l1.bytes=2MiB`, `dram.achieved_share=90%`, `noc.worker_cols=1,2,3`,
            `compute.reciprocal_table=true`. `grid=9x7` stands for `grid.cols=9` and `grid.rows=7`; more columns or
            rows than the network names have one made for them. `name=...` names the device.

    Raises:
        SpecError: A field is unknown (the nearest right one is given) or named twice; a value is none of the field, or
            has a unit of something else; or the changed device contradicts itself.
        ArgumentTypeError: The changes are one text, not several.
    """
    if isinstance(changes, str):
        raise ArgumentTypeError(f"changes must be a list of texts, not one text; give [{shown(changes)}]")
    fields = {field.name: field for field in fields_of(spec)}
    values: dict[Keys, Value] = {}
    for text in changes:
        for field, value in _read(text, fields):
            if field.path in values:
                raise SpecError(f"{field.name} is changed twice, the second time by {shown(text)}; keep one of the two")
            values[field.path] = value
    if not values:
        return spec
    made = with_values(spec, values)
    return made if ("name",) in values else replace(made, name=_name(spec, made))


def load_spec(device: str | Path | DeviceSpec) -> DeviceSpec:
    """The spec of a device, with tables that every program's model understands.

    Args:
        device: A name of the catalog, the path of a TOML file (its name ends in ``.toml``), or a spec. Behind a name
            or a path there may be changes as of `changed`: ``"wormhole_n150, dram.banks=16, grid=9x7"``; a ``Path`` is
            taken as it stands.

    Raises:
        SpecError: The name is unknown, the file cannot be read, or what it says is no spec; a change is none.
    """
    base, changes = split_changes(device) if isinstance(device, str) else (device, ())
    spec = meanings.load_spec(base)
    return changed(spec, changes) if changes else spec


def split_changes(device: str) -> tuple[str, tuple[str, ...]]:
    """The name of a device, or its path, and the changes behind it."""
    base, *changes = _NEXT_CHANGE.split(device)
    return base, tuple(changes)


def with_changes(device: str, changes: Sequence[str]) -> str:
    """The text of a device with further changes, as `load_spec` takes it.

    Raises:
        SpecError: One of them is no change.
    """
    for text in changes:
        if not _NEXT_CHANGE.match(f"{SEPARATOR}{text.strip()}"):
            raise SpecError(_NO_CHANGE.format(shown(text)))
    return SEPARATOR.join((device, *(text.strip() for text in changes)))


def read_change(text: str, fields: Mapping[str, Field]) -> tuple[tuple[Field, Value], ...]:
    """Fields that a change names, and their values.

    Args:
        fields: Those of the device, by name.

    Raises:
        SpecError: There is no such field, or no such value of it.
    """
    return tuple(_read(text, fields))


def _read(text: str, fields: Mapping[str, Field]) -> Iterator[tuple[Field, Value]]:
    name, equals, value = (part.strip() for part in str(text).partition("="))
    if not (name and equals and value):
        raise SpecError(_NO_CHANGE.format(shown(text)))
    if name == GRID:
        size = _GRID_SIZE.fullmatch(value)
        if size is None:
            raise SpecError(f"grid must be COLUMNSxROWS, not {shown(value)}; such as grid=9x7")
        yield fields["grid.cols"], int(size[1])
        yield fields["grid.rows"], int(size[2])
        return
    if name not in fields:
        within = [one for one in fields if one.startswith((f"{name}.", f"{name}["))]
        if within:
            raise SpecError(f"{name} is no field but has some; give one of {', '.join(within)}")
        raise SpecError(f"unknown field {shown(name)}{nearest(name, fields)}; `ttsim devices NAME` prints all of them")
    yield fields[name], read_value(fields[name], value)


def _name(before: DeviceSpec, after: DeviceSpec) -> str:
    """The name of a changed device: what it was, and every field that is another, in the order of the device's file."""
    base, told = split_changes(before.name)
    said = dict(one.split("=", 1) for one in told)
    old = {field.name: field.value for field in fields_of(before)}
    order: dict[str, int] = {}
    for field in fields_of(after):
        name = GRID if field.path[0] == GRID else field.name
        order.setdefault(name, len(order))
        if field.value != old.get(field.name):
            said[name] = f"{after.grid.cols}x{after.grid.rows}" if name == GRID else spelled(field, field.value)
    changes = sorted(said, key=lambda name: order.get(name, -1))
    name = SEPARATOR.join((base, *(f"{one}={said[one]}" for one in changes)))
    if len(name) <= LONGEST_NAME:
        return name
    return f"{base[:_LONGEST_BASE]} with {len(changes)} changes ({_digest(after)})"


def _digest(spec: DeviceSpec) -> str:
    """A few letters that tell devices apart whatever their names are."""
    figures = {name: value for name, value in spec.to_dict().items() if name != "name"}
    return sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:8]
