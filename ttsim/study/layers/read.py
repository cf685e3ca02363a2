"""Reads layers from TOML, with errors that name the wrong entry.

A file holds one ``[[layer]]`` table per layer, whose keys are the fields of `Layer`. A ``[common]`` table may hold
fields of all layers; ``config`` and ``compute`` of a layer are merged with the common tables key by key.
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
    """The document of a TOML file; `what` names it in messages. Raises ArgumentError or OSError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no TOML, no text, or no path at all
        raise ArgumentError(f"{path}: {what} is TOML: {error}") from error


def check_keys(where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse an unknown key and suggest the nearest known key."""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise ArgumentError(f"{where}: unknown key {shown(key)}; {hint}")


def leaves(table: Mapping[str, Any], *, whole: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Dotted names and values: `dram.banks = 16` is a nested table, and so is a quoted name with dots.

    A nested table that has one of the keys `whole` is a value.
    """
    waiting = [*table.items()][::-1]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Mapping) and not set(value) & set(whole):
            waiting += [(f"{name}.{key}", inner) for key, inner in [*value.items()][::-1]]
        else:
            yield name, value


DEFAULT_LAYERS = Path(__file__).parent / "unet_conv_transpose2d.toml"
REQUIRED = tuple(name for name, field in FIELDS.items() if field.default is field.default_factory is MISSING)


def read_layers(path: Path) -> tuple[Layer, ...]:
    """All layers of a file, in order.

    Raises ArgumentError, with file, layer and key, if the file is no TOML or has an invalid layer; OSError if
    unreadable.
    """
    return layers_of(read_toml(path, "a file of layers"), str(path))


def layers_of(document: Mapping[str, Any], path: str) -> tuple[Layer, ...]:
    """All layers of a document, in order; raises ArgumentError if a layer is invalid."""
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
    """The layers of another document, from its own tables or the file ``layers = "FILE"`` in the same folder.

    None if the document has neither. Raises ArgumentError if it has both, or an invalid layer; OSError if the file
    cannot be read.
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
    """A layer's table on top of the common one; sub-tables are merged key by key."""
    both = dict(common)
    for key, value in table.items():
        under = both.get(key)
        both[key] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return both


def layer_of(table: Mapping[str, Any], *, where: str = "layer") -> Layer:
    """A checked layer from plain values; raises ArgumentError for an unknown or missing key or a wrong value."""
    check_keys(where, table, tuple(FIELDS))
    missing = [name for name in REQUIRED if name not in table]
    if missing:
        raise ArgumentError(f"{where}: a layer needs {', '.join(REQUIRED)}; {', '.join(missing)} is missing")
    return Layer(**{name: checked(where, name, value) for name, value in table.items()})
