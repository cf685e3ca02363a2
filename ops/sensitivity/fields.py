"""The figures of a device as fields: path, unit, documentation, source."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc, getsource
from math import isclose
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from device.errors import SpecError
from device.spec.device_spec import DeviceSpec, extended_files
from device.spec.figures import Better, Dimension, kind_of
from device.spec.releases import release_names
from ops.op_models import COSTS


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a device."""

    path: tuple[str | int, ...]  # Keys that lead to it
    value: Any
    unit: str = ""  # Of the value; empty of a plain number, a text or a flag
    dimension: Dimension = Dimension.NUMBER
    better: Better = Better.NEITHER

    @property
    def name(self) -> str:
        """The dotted name: `dram.banks`, `reader.tilize[0].dst_16bit_cycles`."""
        return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in self.path)[1:]

    @property
    def numeric(self) -> bool:
        """Whether the field is a number, not a text, a flag or a list."""
        return isinstance(self.value, int | float) and not isinstance(self.value, bool)


def fields_of(spec: DeviceSpec) -> tuple[Field, ...]:
    """Every field of a device, in the order of its file; raises SpecError if a number's name does not imply a unit."""
    return tuple(_fields(spec.to_dict(), ()))


def numeric_fields(spec: DeviceSpec) -> tuple[Field, ...]:
    """The fields that are numbers; raises like `fields_of`."""
    return tuple(field for field in fields_of(spec) if field.numeric)


def _fields(value: Any, path: tuple[str | int, ...]) -> Iterator[Field]:
    """The fields at and below a value; a list of numbers is one field."""
    if isinstance(value, dict) or (isinstance(value, list | tuple) and value and isinstance(value[0], dict)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _fields(inner, (*path, key))
        return
    field = Field(path, value)
    if field.numeric:
        kind = kind_of(field.name)
        # Figures of the planner decide plans and nothing else, right or wrong
        field = Field(path, value, kind.unit, kind.dimension, Better.NEITHER if path[0] == "reader" else kind.better)
    yield field


def with_values(spec: DeviceSpec, values: dict[tuple[str | int, ...], Any]) -> DeviceSpec:
    """A copy with other values of fields, by path; integers are rounded. Raises SpecError if it is invalid."""
    changed = spec.to_dict()
    for path, value in values.items():
        inner: Any = changed
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = round(value) if type(inner[path[-1]]) is int else value
    return DeviceSpec.from_dict(changed, COSTS)


def scaled(spec: DeviceSpec, field: Field, factor: float) -> DeviceSpec | None:
    """A copy with a field multiplied by a factor; None if it is invalid, or unchanged after rounding."""
    value = field.value * factor
    if isclose(round(value) if isinstance(field.value, int) else value, field.value):
        return None
    return _valid(spec, field, value)


def others(spec: DeviceSpec, field: Field) -> tuple[DeviceSpec, ...]:
    """Copies with another value of a field that is not a number.

    Flags are inverted, lists of positions get no gap, a gap, or one position, and releases are replaced by other
    releases; other texts are not changed, and invalid devices are omitted.
    """
    if isinstance(field.value, bool):
        values: list[Any] = [not field.value]
    elif isinstance(field.value, list):
        values = [[0, *field.value[1:]], list(range(len(field.value))), [0] * len(field.value)]
    else:
        values = list(release_names()) if field.name == "release" else []
    possible = (_valid(spec, field, value) for value in values if value != field.value)
    return tuple(device for device in possible if device is not None)


def _valid(spec: DeviceSpec, field: Field, value: Any) -> DeviceSpec | None:
    """A copy with another value; None if the device would be invalid."""
    try:
        return with_values(spec, {field.path: value})
    except SpecError:
        return None


_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_COMMENTED = re.compile(r"((?:^ {4}# .*\n)*)^ {4}(\w+): [^#\n]*?(?: {2}# (.*))?$", re.MULTILINE)


def words_of(path: tuple[str | int, ...]) -> str:
    """The meaning of a field; `path` is the path of a `Field`."""
    return _texts(_kind_of(path[:-1])).get(str(path[-1]), "")


@cache
def _texts(kind: Any) -> dict[str, str]:
    """The texts of the fields of a dataclass and its bases, from comments or the docstring's Attributes."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        for above, name, behind in _COMMENTED.findall(getsource(base)):
            text = behind or " ".join(line.strip("# ") for line in above.splitlines())
            texts[name] = text and f"{text}."
        doc = cleandoc(base.__dict__.get("__doc__") or "")  # since Python 3.13 it is clean
        texts |= {name: " ".join(text.split()) for name, text in _ATTRIBUTE.findall(doc)}
    return texts


def table_words(path: tuple[str | int, ...]) -> str:
    """The meaning of the table at a path; an empty path is the device itself."""
    text = cleandoc(_kind_of(path).__doc__ or "")
    return text.split("\n\n")[0].replace("\n", " ")


def _kind_of(path: tuple[str | int, ...]) -> Any:
    kind: Any = DeviceSpec
    costs = {table.TABLE: table for table in COSTS}
    for key in path:
        if kind is DeviceSpec and key in costs:
            return costs[str(key)]
        if not isinstance(key, int):
            kind = get_type_hints(kind)[key]
            kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return kind


_TABLE = re.compile(r"\s*\[(\w+)\]")
_KEY = re.compile(r"\s*(\w+)\s*=")
_COMMENT = re.compile(r"""^(?:[^#"']|"[^"]*"|'[^']*')*#\s*(.*)$""")


def sources_of(device: str | Path) -> dict[str, str]:
    """The comment after each figure in the nearest file, by field name; raises SpecError if it is unreadable."""
    comments: dict[str, str] = {}
    for file in extended_files(device):
        table = ""
        for line in file.text.splitlines():
            if header := _TABLE.match(line):
                table = f"{header[1]}."
            elif key := _KEY.match(line):
                comment = _COMMENT.match(line)
                comments[table + key[1]] = comment[1] if comment else ""
    return comments


def source_of(name: str, sources: dict[str, str]) -> str:
    """The comment of a field, or of its table or list."""
    within = (key for key in sources if name == key or name.startswith((f"{key}.", f"{key}[")))
    return sources.get(max(within, key=len, default=""), "")
