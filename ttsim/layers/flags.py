"""A layer out of command-line flags: one flag for each field of `Layer`, and two that take settings by name."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from device.errors import ArgumentError, shown
from ttsim.layers.read import CHOICES, DEFAULT_LAYERS, LEAST, LENGTHS, layer_of, read_layers
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


def layer_from_flags(options: argparse.Namespace) -> Layer | None:
    """The layer that the flags describe; None if none of them was given.

    Raises:
        ArgumentError: They do not describe a layer.
    """
    given = {name: value for name, value in vars(options).items() if value is not None and is_layer_flag(name)}
    if not given or set(given) == {"seed"}:
        return None
    return layer_of(fields_of(given), where="run")


def chosen_layers(options: argparse.Namespace, *, where: str) -> tuple[Layer, ...]:
    """The layers of a command: the one that flags describe, or those of a file whose names have a text in them.

    Args:
        options: The flags of a layer, ``layers``, ``only`` and ``seed``.
        where: The command, for errors.

    Raises:
        ArgumentError: Flags and a file were given together, or no layer is left.
        OSError: The file cannot be read.
    """
    layer = layer_from_flags(options)
    if layer is not None:
        if options.layers is not None or options.only:
            raise ArgumentError(f"{where}: give --layers FILE (with --only) or the flags of one layer, not both")
        return (layer,)
    path = options.layers or DEFAULT_LAYERS
    layers = tuple(layer for layer in read_layers(path) if options.only in layer.name)
    if not layers:
        raise ArgumentError(f"{where}: no layer of {path} has {shown(options.only)} in its name")
    return layers if options.seed is None else tuple(replace(layer, seed=options.seed) for layer in layers)


def is_layer_flag(name: str) -> bool:
    """Whether an option describes a layer."""
    return name == "shape" or name in Layer.__dataclass_fields__


def fields_of(given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a layer out of the flags that were given."""
    fields = dict(given)
    if "shape" in fields:
        fields.update(sizes_of(fields.pop("shape")))
    if "in_channels" in fields:
        fields.setdefault("out_channels", fields["in_channels"])
    for name, lengths in LENGTHS.items():
        if name in fields and len(fields[name]) == 1 and 1 not in lengths:
            fields[name] = fields[name][0]
    for name in SETTINGS:
        if name in fields:
            fields[name] = dict(fields[name])
    return fields


def sizes_of(shape: Sequence[int]) -> dict[str, int]:
    """The four sizes of an input.

    Raises:
        ArgumentError: There are not four.
    """
    if len(shape) != 4:
        raise ArgumentError(f"run: --shape must be N,H,W,C, not {','.join(map(str, shape))}")
    return dict(zip(("batch_size", "input_height", "input_width", "in_channels"), shape, strict=True))
