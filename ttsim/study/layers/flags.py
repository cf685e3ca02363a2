"""Layers out of command-line flags: those of a file, or one by a flag for each field of `Layer`; and how they run."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from device.errors import ArgumentError, shown
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE
from ttsim.study.layers.read import CHOICES, DEFAULT_LAYERS, LEAST, LENGTHS, layer_of, read_layers
from ttsim.types.layer import Layer, Setting

HELP = {
    "name": "what reports call it",
    "in_channels": "C",
    "out_channels": "O; C if left out",
    "kernel_size": "rows,columns; one number for both",
    "padding": "rows,columns or top,bottom,left,right",
    "slice": "l1_full, or H:n or W:n for n DRAM slices (0: as few as fit)",
    "seed": "of the random numbers",
    "weights_dtype": "of the weights on the host; --config weights_dtype=... for what they are prepared as",
}
SWITCHES = ("input_4d",)
SETTINGS = {
    "config": "a field of Conv2dConfig, such as shard_layout=HEIGHT_SHARDED; may be repeated",
    "compute": "a field of the compute config, such as math_fidelity=LoFi; may be repeated",
}
NUMBERS = [name for name in LEAST if name != "seed"]
TEXTS = ("name", "slice")


def add_layers_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `chosen_layers` reads."""
    parser.add_argument(
        "--layers", type=Path, metavar="FILE", help=f"TOML file of layers (default: {DEFAULT_LAYERS.name})"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="of several layers, those whose name contains this")
    add_layer_flags(parser)


def add_opening_flags(parser: argparse.ArgumentParser, *, l1_small_size: int | None = USUAL_L1_SMALL_SIZE) -> None:
    """Adds the flags of how a device is opened.

    Args:
        l1_small_size: Bytes that are kept without the flag; None where something else may say them.
    """
    parser.add_argument(
        "--l1-small-size", type=int, default=l1_small_size, metavar="BYTES", help="L1 kept for index tables"
    )
    parser.add_argument("--no-strict", action="store_true", help="accept what the real library accepts and gets wrong")


def add_layer_flags(parser: argparse.ArgumentParser) -> None:
    """A flag for every field; none has a default, so that what was given can be told apart."""
    group = parser.add_argument_group("one layer from flags")
    group.add_argument("--shape", type=integers, metavar="N,H,W,C", help="of the input, all four at once")
    for name in (*NUMBERS, "seed"):
        group.add_argument(flag(name), type=int, metavar="N", help=HELP.get(name))
    for name in LENGTHS:
        group.add_argument(flag(name), type=integers, metavar="N,N", help=HELP.get(name))
    for name, known in CHOICES.items():
        group.add_argument(flag(name), choices=known, help=HELP.get(name))
    for name in TEXTS:
        group.add_argument(flag(name), help=HELP.get(name))
    for name in ("bias", "mirror_kernel"):
        group.add_argument(flag(name), action=argparse.BooleanOptionalAction, default=None)
    for name in SWITCHES:
        group.add_argument(flag(name), action="store_const", const=True, help="input of shape [N, H, W, C]")
    for name, text in SETTINGS.items():
        group.add_argument(flag(name), action="append", type=setting, metavar="KEY=VALUE", help=text)


def flag(name: str) -> str:
    """The flag of a field."""
    return "--" + name.replace("_", "-")


def integers(text: str) -> tuple[int, ...]:
    """Comma-separated integers; raises ValueError for anything else, which argparse reports."""
    return tuple(int(part) for part in text.split(","))


def setting(text: str) -> tuple[str, Setting]:
    """KEY=VALUE with true, false and numbers understood; raises ArgumentTypeError without a key or a value."""
    key, _, value = text.partition("=")
    if not key or not value:
        raise argparse.ArgumentTypeError(f"a setting is KEY=VALUE, not {shown(text)}")
    words: dict[str, Setting] = {"true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    return key, int(value) if value.lstrip("-").isdecimal() else value


def layer_from_flags(options: argparse.Namespace, *, where: str) -> Layer | None:
    """The layer that the flags describe; None if none of them was given.

    Args:
        options: The flags of a layer.
        where: The command, for errors.

    Raises:
        ArgumentError: They do not describe a layer.
    """
    given = {name: value for name, value in vars(options).items() if value is not None and is_layer_flag(name)}
    if not given or set(given) == {"seed"}:
        return None
    return layer_of(fields_of(given, where), where=where)


def chosen_layers(options: argparse.Namespace, *, where: str, said: Sequence[Layer] | None = None) -> tuple[Layer, ...]:
    """The layers of a command: the one that flags describe, or those of a file whose names have a text in them.

    Args:
        options: The flags of a layer, ``layers``, ``only`` and ``seed``.
        where: The command, for errors.
        said: Layers that something else says, where no flag does; those of the usual file without it.

    Raises:
        ArgumentError: Flags and a file were given together, or no layer is left.
        OSError: The file cannot be read.
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


def is_layer_flag(name: str) -> bool:
    """Whether an option describes a layer."""
    return name == "shape" or name in Layer.__dataclass_fields__


def fields_of(given: dict[str, Any], where: str) -> dict[str, Any]:
    """Fields of a layer out of the flags that were given; errors as of `sizes_of`."""
    fields = dict(given)
    if "shape" in fields:
        fields.update(sizes_of(fields.pop("shape"), where))
    if "in_channels" in fields:
        fields.setdefault("out_channels", fields["in_channels"])
    for name, lengths in LENGTHS.items():
        if name in fields and len(fields[name]) == 1 and 1 not in lengths:
            fields[name] = fields[name][0]
    for name in SETTINGS:
        if name in fields:
            fields[name] = dict(fields[name])
    return fields


def sizes_of(shape: Sequence[int], where: str) -> dict[str, int]:
    """The four sizes of an input.

    Raises:
        ArgumentError: There are not four.
    """
    if len(shape) != 4:
        raise ArgumentError(f"{where}: --shape must be N,H,W,C, not {','.join(map(str, shape))}")
    return dict(zip(("batch_size", "input_height", "input_width", "in_channels"), shape, strict=True))
