"""`ttsim tune`: its flags, what it does, and what it prints; and the line with which `ttsim run` ends."""

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import Any, Final

from device.errors import TTSimError
from ops.sensitivity.changes import load_spec
from ttsim.api.conv_transpose2d import conv_transpose2d
from ttsim.report.plain import text
from ttsim.report.printable import printable
from ttsim.runtime.settings import add_device, chosen_device
from ttsim.study.layers.flags import add_layers_flags, add_opening_flags, chosen_layers
from ttsim.study.layers.run import Placed, Settings, make_inputs, place
from ttsim.study.tune.arithmetic import ALLOWED, SHORT
from ttsim.study.tune.space import SEARCHED
from ttsim.study.tune.tune import EFFORT, short, tune
from ttsim.study.tune.tuned import Tuned
from ttsim.types.layer import Layer

WORTH_TELLING: Final = 1.5  # times as fast: what `ttsim run` says in its last line


def add_tune(commands: Any) -> None:
    """Adds the command to what `add_subparsers` gave."""
    parser = commands.add_parser(
        "tune",
        help="find the best config of layers",
        description="Compares all configs of a layer that can differ, and prints the fastest, why it is, and those "
        "that are slower but take less L1 or are more exact.",
    )
    add_layers_flags(parser)
    add_device(parser)
    add_opening_flags(parser)
    add = parser.add_argument
    changed = ", ".join((*SHORT, *ALLOWED))
    add("--allow", type=names, default=(), metavar="FIELD,...", help=f"change the result's precision, too: {changed}")
    add("--keep", type=names, default=(), metavar="FIELD,...", help=f"leave as given: {', '.join(SEARCHED)}")
    add("--effort", type=int, default=EFFORT, metavar="N", help=f"calls that may be tried (default: {EFFORT})")
    add("--json", action="store_true", help="print JSON instead of words")


def names(given: str) -> tuple[str, ...]:
    """Comma-separated names."""
    return tuple(part.strip() for part in given.split(",") if part.strip())


def tune_command(options: argparse.Namespace) -> int:
    """Tunes the chosen layers. Returns the exit code: 1 if one has no config that runs.

    Raises:
        TTSimError: A flag, a file or a device is wrong.
        OSError: A file cannot be read.
    """
    settings = Settings(
        spec=load_spec(chosen_device(options)),
        values="off",
        l1_small_size=options.l1_small_size,
        strict=not options.no_strict,
        suggestions=False,
    )
    found = []
    for layer in chosen_layers(options, where="tune"):
        found.append(tune_layer(layer, settings, allow=options.allow, keep=options.keep, effort=options.effort))
        if not options.json:
            sys.stdout.write(f"{found[-1]}\n")
            sys.stdout.flush()
    if options.json:
        sys.stdout.write(text({"format": 1, "layers": [one.to_dict() for one in found]}) + "\n")
    return int(any(one.best is None for one in found))


def tune_layer(
    layer: Layer,
    settings: Settings,
    *,
    allow: Collection[str] = (),
    keep: Collection[str] = (),
    effort: int = EFFORT,
) -> Tuned:
    """What a tuner finds for a layer on a device of its own; arguments and errors as of `tune`."""
    placed = _placed(layer, settings)
    with placed.device as device:
        return tune(
            conv_transpose2d, device=device, allow=allow, keep=keep, effort=effort, name=layer.name, **_options(placed)
        )


def faster_line(layers: Sequence[Layer], settings: Settings) -> str:
    """Which of some layers have a much faster config, found by a short search; empty if none has.

    A layer that does not run, or whose search fails, is left out.
    """
    gains = []
    for layer in layers:
        try:
            placed = _placed(layer, settings)
            with placed.device as device:
                gain = short(conv_transpose2d, _options(placed), device).gain_over_given
        except TTSimError:
            continue
        if gain is not None and gain > WORTH_TELLING:
            gains.append((layer.name, gain))
    if not gains:
        return ""
    told = ", ".join(f"{printable(name)} {gain:.1f} times" for name, gain in sorted(gains, key=lambda one: -one[1]))
    return f"Another config would make these much faster (`ttsim tune` prints it): {told}"


def _placed(layer: Layer, settings: Settings) -> Placed:
    return place(layer, make_inputs(layer, values=False), settings)


def _options(placed: Placed) -> dict[str, Any]:
    return {name: value for name, value in placed.arguments.items() if name != "device"}
