"""Damaged files: descriptions of devices, files of layers, measured rows. Each is read, or refused in a line."""

import csv
import re
from collections.abc import Callable, Sequence
from difflib import unified_diff
from importlib.resources import files
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

import ttsim
from device.spec.device_spec import catalog_names
from tools.fuzz.finding import Finding, tried
from tools.random_calls.drafts import Choices
from tools.validate.rows import MEASURED, validate, validator_name
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, run_layer

VALUES: Final = (
    "0", "-1", "1", "7", "nan", "inf", "-inf", "1e400", "1e-300", "0.5", "true", "'x'", '""', "[]", "{}", "[1,2]",
    "[0,0]", "[[1]]", "99999999999", "1e9", '"1MiB"', '"relu"', "x", '"\\u001b[31m"', "1979-05-27", "0x10", "=", "[",
    "]", "#", '"HEIGHT_SHARDED"', "{a=1}",
)  # fmt: skip
CELLS: Final = ("", "x", "0", "-1", "nan", "inf", "1.5", "7", "1000003", "9" * 30, "[/]", "\x1b[31m", "1x2", "bfloat16")
PIECES: Final = ("", "\x00", "=", "[", '"', "\u202e", "é")
ROWS: Final = 3
ADVISED: Final = 20  # one file in so many is searched for advice, too, which takes a hundred times as long


def check_spec(seed: int, index: int) -> Finding:
    """A damaged description of a device: a SpecError, or a device that plans a call."""
    draw = Choices(np.random.default_rng([seed, index]))
    name = draw.pick(list(catalog_names()))
    whole = files("device").joinpath("spec", "catalog", f"{name}.toml").read_text(encoding="utf-8")
    layers = read_layers(DEFAULT_LAYERS)[-1:]
    run = _layers_run(lambda path: (ttsim.load_spec(str(path)), layers), draw.chance(0.4), index)
    return _of_file(damaged(whole, draw), "device.toml", run, (ttsim.TTSimError,), whole=whole)


def check_layers(seed: int, index: int) -> Finding:
    """A damaged file of layers: a ValueError that names it, or layers that run or say why they cannot."""
    draw = Choices(np.random.default_rng([seed, index]))
    common, *layers = DEFAULT_LAYERS.read_text(encoding="utf-8").split("[[layer]]")
    whole, spec = f"{common}[[layer]]{draw.pick(layers)}", ttsim.load_spec("wormhole_n150")
    run = _layers_run(lambda path: (spec, read_layers(path)), draw.chance(0.4), index)
    return _of_file(damaged(whole, draw), "layers.toml", run, (ValueError, ttsim.TTSimError), whole=whole)


def _layers_run(
    read: Callable[[Path], tuple[ttsim.DeviceSpec, Sequence[Layer]]], cycles: bool, index: int
) -> Callable[[Path], None]:
    """A function that reads a device and layers with the help of a file, and runs the layers on the device."""

    def run(path: Path) -> None:
        spec, layers = read(path)
        for layer in layers:
            run_layer(layer, Settings(spec=spec, values="off", cycles=cycles, suggestions=index % ADVISED == 0))

    return run


def check_rows(seed: int, index: int) -> Finding:
    """A damaged file of measured rows: each is predicted or listed, or the file is refused in a line."""
    draw = Choices(np.random.default_rng([seed, index]))
    path = draw.pick([path for path in sorted(MEASURED.glob("*.csv")) if validator_name(path)])
    with path.open(encoding="utf-8", newline="") as lines:
        head, *rows = csv.reader(lines)
    chosen = [head, *(list(draw.pick(rows)) for _ in range(ROWS))]
    for _ in range(draw.between(1, 3)):
        row = chosen[draw.below(len(chosen)) if draw.chance(0.1) else draw.between(1, ROWS)]
        column = draw.below(len(row))
        row[column : column + 1] = [draw.pick(CELLS)] if draw.chance(0.9) else []
    text = StringIO()
    csv.writer(text).writerows(chosen)
    return _of_file(text.getvalue(), path.name, validate, (ValueError,))


def damaged(text: str, draw: Choices) -> str:
    """A TOML text with values, keys, lines or characters changed."""
    lines = text.splitlines()
    for _ in range(draw.between(1, 3)):
        at, way = draw.below(len(lines)), draw.below(10)
        if "=" in lines[at] and way < 7:
            key, value = lines[at].split("=", 1)
            number = re.search(r"\d+", value)
            if number is not None and draw.chance(0.5):
                scaled = int(int(number[0]) * draw.pick((0, 0.01, 0.5, 2, 3, 100)))
                lines[at] = f"{key}={value[: number.start()]}{scaled}{value[number.end() :]}"
            else:
                lines[at] = f"{key}= {draw.pick(VALUES)}"
        elif way < 8:
            lines[at : at + 1] = [] if len(lines) > 1 else [""]
        elif way < 9:
            lines.insert(at, draw.pick(lines))
        else:
            cut = draw.below(len(lines[at]) + 1)
            lines[at] = lines[at][:cut] + draw.pick(PIECES) + lines[at][cut + 1 :]
    return "\n".join(lines) + "\n"


def _of_file(
    text: str, name: str, run: Callable[[Path], object], expected: tuple[type[Exception], ...], *, whole: str = ""
) -> Finding:
    """Runs something on a file; the text of the file, or its difference from the whole file, makes it happen again."""
    changed = unified_diff(whole.splitlines(), text.splitlines(), "whole", name, lineterm="", n=0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8", newline="")
        return tried(lambda: run(path), expected=expected, again="\n".join(changed))
