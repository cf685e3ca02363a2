"""Layers from TOML files and from command-line flags, with errors that name the wrong entry.

A file has one ``[[layer]]`` table per layer, whose keys are the fields of `Layer`. A ``[common]`` table may have fields
of all layers; ``config`` and ``compute`` of a layer are merged with the common tables by key.
"""

import argparse
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, nearest, shown
from ttsim.runtime.types.layer import FIELDS, KINDS, TABLE, Layer, checked


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The document of a TOML file; `what` names it in messages. Raises ArgumentError or OSError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:  # no TOML, no text, or no path at all
        raise ArgumentError(f"{path}: {what} is TOML: {error}") from error


def check_keys(where: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raises ArgumentError for an unknown key, and suggests the nearest known key."""
    for key in table:
        if key not in known:
            hint = nearest(key, known).removeprefix(", ") or f"known are {', '.join(known)}"
            raise ArgumentError(f"{where}: unknown key {shown(key)}; {hint}")


def leaves(table: Mapping[str, Any], *, whole: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Dotted names and values of nested tables; a quoted name with dots means the same as a nested table.

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
    """All layers of a file, in order."""
    return layers_of(read_toml(path, "a file of layers"), str(path))


def layers_of(document: Mapping[str, Any], path: str) -> tuple[Layer, ...]:
    """All layers of a document, in order; raises ArgumentError if a layer is invalid."""
    check_keys(path, document, ("common", "layer"))
    tables, common = document.get("layer", []), document.get("common", {})
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ArgumentError(f"{path}: a file of layers has at least one [[layer]] table")
    if not isinstance(common, dict):
        raise ArgumentError(f"{path}: common must be a table, not {shown(common)}")
    return tuple(
        layer_of(merged(common, table), where=f"{path}: layer {number} {shown(table.get('name', ''))}")
        for number, table in enumerate(tables, start=1)
    )


def layers_said(document: Mapping[str, Any], path: Path) -> tuple[Layer, ...] | None:
    """The layers of a document, from its own tables or from the file ``layers = "FILE"`` in the same folder.

    None if the document has no layers. Raises ArgumentError if it has both forms, or an invalid layer; OSError if the
    file cannot be read.
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
    """A layer's table merged over the common table; sub-tables are merged by key."""
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
        verb = "is" if len(missing) == 1 else "are"
        raise ArgumentError(f"{where}: a layer needs {', '.join(REQUIRED)}; {', '.join(missing)} {verb} missing")
    return Layer(**{name: checked(where, name, value) for name, value in table.items()})


SHAPE: Final = ("batch_size", "input_height", "input_width", "in_channels")  # the fields of --shape
WINDOW: Final = ("kernel_size", "stride", "padding", "output_padding", "dilation", "groups")
DEFINING: Final = ("shape", "name", *SHAPE, "out_channels", *WINDOW)  # flags that define one layer


def layer_from_flags(settings: Mapping[str, Any], *, where: str) -> Layer:
    """The layer that flags describe; raises ArgumentError if they describe none."""
    settings = dict(settings)
    if "shape" in settings:
        shape = settings.pop("shape")
        if len(shape) != len(SHAPE):
            raise ArgumentError(f"{where}: --shape must be N,H,W,C, not {','.join(map(str, shape))}")
        settings.update(zip(SHAPE, shape, strict=True))
    if "in_channels" in settings:
        settings.setdefault("out_channels", settings["in_channels"])
    return layer_of(settings, where=where)


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a layer from flags, in the form of a file."""
    settings: dict[str, Any] = {name: getattr(options, name, None) for name in ("shape", *FIELDS)}
    settings = {name: value for name, value in settings.items() if value is not None}
    for name in settings.keys() & FIELDS.keys():
        value = settings[name]
        single = isinstance(value, tuple) and len(value) == 1
        settings[name] = dict(value) if KINDS[name] is TABLE else value[0] if single else value
    return settings


def chosen_layers(options: argparse.Namespace, *, where: str, said: Sequence[Layer] | None = None) -> tuple[Layer, ...]:
    """The layers of a command: the layer of the flags, or the layers of a file, filtered by name.

    Flags that define a layer (`DEFINING`) create one layer; other flags, such as --config, change every layer of the
    file. `said` are layers of another source, used instead of the default file. Raises ArgumentError if both a layer's
    sizes and a file are given, or no layer is left; OSError if the file cannot be read.
    """
    given = _given(options)
    sizes = [name for name in DEFINING if name in given]
    if sizes and (options.layers is not None or options.only):
        flag = "--" + sizes[0].replace("_", "-")
        raise ArgumentError(
            f"{where}: {flag} defines one layer, --layers and --only choose layers of a file: give one or the other"
        )
    if sizes:
        return (layer_from_flags(given, where=where),)
    every = read_layers(options.layers or DEFAULT_LAYERS) if options.layers is not None or said is None else said
    layers = tuple(layer for layer in every if options.only in layer.name)
    if not layers:
        near = nearest(options.only, [layer.name for layer in every])
        raise ArgumentError(
            f"{where}: no layer has {shown(options.only)} in its name{near}; leave --only away for all of them"
        )
    return tuple(changed_layer(layer, given, where=where) for layer in layers) if given else layers


def changed_layer(layer: Layer, changes: Mapping[str, Any], *, where: str) -> Layer:
    """A layer with changed fields; configs are merged by field. Raises ArgumentError."""
    checks = {name: checked(where, name, value) for name, value in changes.items()}
    tables = {name: {**getattr(layer, name), **value} for name, value in checks.items() if KINDS[name] is TABLE}
    return replace(layer, **{**checks, **tables})
