"""Layers from command-line flags: the layers of a file, or one layer from a flag for each field of `Layer`."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, shown
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE
from ttsim.runtime.types.layer import FIELDS, KINDS, TABLE, Layer, integers
from ttsim.study.layers.read import DEFAULT_LAYERS, layer_of, read_layers

SHAPE: Final = ("batch_size", "input_height", "input_width", "in_channels")  # the fields of --shape


def add_layers_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `chosen_layers` reads."""
    parser.add_argument(
        "--layers", type=Path, metavar="FILE", help=f"TOML file of layers (default: {DEFAULT_LAYERS.name})"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="of several layers, those whose name contains this")
    add_layer_flags(parser)


def add_opening_flags(parser: argparse.ArgumentParser, *, l1_small_size: int | None = USUAL_L1_SMALL_SIZE) -> None:
    """Adds the flags that open a device; `l1_small_size` is None if another source may set it."""
    parser.add_argument(
        "--l1-small-size", type=int, default=l1_small_size, metavar="BYTES", help="L1 kept for index tables"
    )
    parser.add_argument("--no-strict", action="store_true", help="accept what the real library accepts and gets wrong")


def add_layer_flags(parser: argparse.ArgumentParser) -> None:
    """Adds a flag for every field; no flag has a default, so that given flags can be told apart."""
    group = parser.add_argument_group("one layer from flags")
    group.add_argument("--shape", type=integers, metavar="N,H,W,C", help="of the input, all four at once")
    for name, field in FIELDS.items():
        if name != "source":
            group.add_argument(flag(name), default=None, help=field.metadata["help"], **KINDS[name].flag)


def flag(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


def layer_from_flags(options: argparse.Namespace, *, where: str) -> Layer | None:
    """The layer of the flags, None if none was given; raises ArgumentError if they describe no layer."""
    settings: dict[str, Any] = {name: getattr(options, name, None) for name in ("shape", *FIELDS)}
    settings = {name: value for name, value in settings.items() if value is not None}
    if not settings or set(settings) == {"seed"}:
        return None
    if "shape" in settings:
        shape = settings.pop("shape")
        if len(shape) != len(SHAPE):
            raise ArgumentError(f"{where}: --shape must be N,H,W,C, not {','.join(map(str, shape))}")
        settings.update(zip(SHAPE, shape, strict=True))
    if "in_channels" in settings:
        settings.setdefault("out_channels", settings["in_channels"])
    for name, value in settings.items():
        if KINDS[name] is TABLE:
            settings[name] = dict(value)
        elif isinstance(value, tuple) and len(value) == 1:
            settings[name] = value[0]
    return layer_of(settings, where=where)


def chosen_layers(options: argparse.Namespace, *, where: str, said: Sequence[Layer] | None = None) -> tuple[Layer, ...]:
    """The layers of a command: that of the flags, or those of a file, filtered by name.

    `said` are the layers of another source, used without flags instead of the default file. Raises ArgumentError if
    both flags and a file are given, or no layer is left; OSError if the file cannot be read.
    """
    layer = layer_from_flags(options, where=where)
    if layer is not None:
        if options.layers is not None or options.only:
            raise ArgumentError(f"{where}: give --layers FILE (with --only) or the flags of one layer, not both")
        return (layer,)
    every = read_layers(options.layers or DEFAULT_LAYERS) if options.layers is not None or said is None else said
    layers = tuple(layer for layer in every if options.only in layer.name)
    if not layers:
        raise ArgumentError(f"{where}: no layer has {shown(options.only)} in its name; leave --only away for all")
    return layers if options.seed is None else tuple(replace(layer, seed=options.seed) for layer in layers)
