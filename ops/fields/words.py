"""What the fields of a device mean, in the words of the dataclasses that hold them."""

import re
from inspect import cleandoc
from typing import Any, get_args, get_origin, get_type_hints

from device.spec.device_spec import DeviceSpec
from ops.meanings import COSTS

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*)$")


def words_of(path: tuple[str | int, ...]) -> str:
    """What a field means; `path` as of `ops.fields.field.Field`."""
    return _texts(_kind_of(path[:-1])).get(str(path[-1]), "")


def table_words(path: tuple[str | int, ...]) -> str:
    """What the table at a path means: of the device itself, what an empty path leads to."""
    text = cleandoc(_kind_of(path).__doc__ or "")
    return text.split("\n\n")[0].replace("\n", " ")


def _kind_of(path: tuple[str | int, ...]) -> Any:
    """The dataclass of a table."""
    kind: Any = DeviceSpec
    for key in path:
        costs = {one.TABLE: one for one in COSTS}
        if kind is DeviceSpec and key in costs:
            return costs[str(key)]
        if not isinstance(key, int):
            kind = get_type_hints(kind)[key]
            kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return kind


def _texts(kind: Any) -> dict[str, str]:
    """The attributes of a dataclass and its bases, by name."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        name = ""
        for line in cleandoc(one.__dict__.get("__doc__") or "").splitlines():  # since Python 3.13 it is clean
            if attribute := _ATTRIBUTE.match(line):
                name = attribute[1]
                found[name] = attribute[2]
            elif name and line.startswith(" " * 8):
                found[name] += f" {line.strip()}"
            else:
                name = ""
    return found
