"""Layers out of TOML: what a file may say, and what it is told when it says something else.

A file holds one ``[[layer]]`` table per layer, whose keys are the fields of `Layer`. A ``[common]`` table may hold what
all of them share; ``config`` and ``compute`` of a layer add to the common ones key by key.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, shown
from ttsim.runtime.types.layer import FIELDS, Layer, checked


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """What a file holds.

    Args:
        what: It should be, for messages, such as "a sweep".

    Raises:
        ArgumentError: The file is no TOML.
        OSError: The file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no TOML, no text, or no path at all
        raise ArgumentError(f"{path}: {what} is TOML: {error}") from error


def check_keys(where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a key that is not known, naming the nearest right spelling."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise ArgumentError(f"{where}: unknown key {shown(key)}; {hint}")


def leaves(table: Mapping[str, Any], *, whole: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Names and what stands there: `dram.banks = 16` is a table within a table, and so is a quoted name with dots.

    Args:
        whole: A table within it that has one of these keys is a value.
    """
    waiting = [*table.items()][::-1]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Mapping) and not set(value) & set(whole):
            waiting += [(f"{name}.{key}", one) for key, one in [*value.items()][::-1]]
        else:
            yield name, value


DEFAULT_LAYERS = Path(__file__).parent / "unet_conv_transpose2d.toml"
REQUIRED = tuple(name for name, one in FIELDS.items() if one.default is one.default_factory is MISSING)


def read_layers(path: Path) -> tuple[Layer, ...]:
    """All layers of a file, in order.

    Raises ArgumentError if the file is no TOML, or says something that is no layer; the message names file, layer and
    key; OSError if the file cannot be read.
    """
    return layers_of(read_toml(path, "a file of layers"), str(path))


def layers_of(document: Mapping[str, Any], path: str) -> tuple[Layer, ...]:
    """All layers of what a file says, in order; raises ArgumentError if it says something that is no layer."""
    check_keys(path, document, ("common", "layer"))
    tables = document.get("layer", [])
    common = document.get("common", {})
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ArgumentError(f"{path}: a file of layers has at least one [[layer]] table")
    if not isinstance(common, dict):
        raise ArgumentError(f"{path}: common must be a table, not {shown(common)}")
    return tuple(
        layer_of(merged(common, table), where=f"{path}: layer {number} {shown(table.get('name', ''))}")
        for number, table in enumerate(tables, start=1)
    )


def layers_said(document: Mapping[str, Any], path: Path) -> tuple[Layer, ...] | None:
    """The layers that a file about something else says: tables of its own, or those of a file that it names.

    Args:
        document: What it says; ``layers = "FILE"`` names a file, from the folder of this one.

    Returns:
        In order; None if it says nothing of layers.

    Raises:
        ArgumentError: It says both, or something that is no layer.
        OSError: The file that it names cannot be read.
    """
    own = {name: document[name] for name in ("common", "layer") if name in document}
    if "layers" not in document:
        return layers_of(own, str(path)) if own else None
    named = document["layers"]
    if not isinstance(named, str):
        raise ArgumentError(f'{path}: layers must be a file of layers, not {shown(named)}; write layers = "FILE"')
    if own:
        raise ArgumentError(f'{path}: give layers = "FILE" or [[layer]] tables (with [common]), not both')
    return read_layers(path.parent / named)


def merged(common: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A layer's table on top of the common one; sub-tables are joined key by key."""
    both = dict(common)
    for key, value in table.items():
        under = both.get(key)
        both[key] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return both


def layer_of(table: Mapping[str, Any], *, where: str = "layer") -> Layer:
    """A checked layer out of plain values.

    Raises ArgumentError if a key is unknown or missing, or a value is not what its field takes.
    """
    check_keys(where, table, tuple(FIELDS))
    missing = [name for name in REQUIRED if name not in table]
    if missing:
        raise ArgumentError(f"{where}: a layer needs {', '.join(REQUIRED)}; {', '.join(missing)} is missing")
    return Layer(**{name: checked(where, name, value) for name, value in table.items()})
