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
from tools.validate.rows import VALIDATORS, validate
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings, run_layer

VALUES: Final = (
    "0", "-1", "1", "7", "nan", "inf", "-inf", "1e400", "1e-300", "0.5", "true", "'x'", '""', "[]", "{}", "[1,2]",
    "[0,0]", "[[1]]", "99999999999", "1e9", '"1MiB"', '"relu"', "x", '"\\u001b[31m"', "1979-05-27", "0x10", "=", "[",
    "]", "#", '"HEIGHT_SHARDED"', "{a=1}",
)  # fmt: skip
CELLS: Final = ("", "x", "0", "-1", "nan", "inf", "1.5", "7", "1000003", "9" * 30, "[/]", "\x1b[31m", "1x2", "bfloat16")
PIECES: Final = ("", "\x00", "=", "[", '"', "\u202e", "é")
DATA: Final = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured"
ROWS: Final = 3
ADVISED: Final = 20  # one file in so many is searched for advice, too, which takes a hundred times as long


def pick(rng: np.random.Generator, options: Sequence[str]) -> str:
    """One of several texts."""
    return options[int(rng.integers(len(options)))]


def check_spec(seed: int, index: int) -> Finding:
    """A damaged description of a device: a SpecError, or a device that plans a call."""
    rng = np.random.default_rng([seed, index])
    name = pick(rng, list(catalog_names()))
    whole = files("device").joinpath("spec", "catalog", f"{name}.toml").read_text(encoding="utf-8")
    text, cycles = damaged(whole, rng), bool(rng.random() < 0.5)

    def run(path: Path) -> None:
        spec, advice = ttsim.load_spec(str(path)), index % ADVISED == 0
        run_layer(read_layers(DEFAULT_LAYERS)[-1], Settings(spec=spec, values="off", cycles=cycles, suggestions=advice))

    return _of_file(text, "device.toml", run, (ttsim.TTSimError,), whole=whole)


def check_layers(seed: int, index: int) -> Finding:
    """A damaged file of layers: a ValueError that names it, or layers that run or say why they cannot."""
    rng = np.random.default_rng([seed, index])
    common, *layers = DEFAULT_LAYERS.read_text(encoding="utf-8").split("[[layer]]")
    whole = f"{common}[[layer]]{pick(rng, layers)}"
    text, cycles = damaged(whole, rng), bool(rng.random() < 0.3)

    def run(path: Path) -> None:
        spec, advice = ttsim.load_spec("wormhole_n150"), index % ADVISED == 0
        for layer in read_layers(path):
            run_layer(layer, Settings(spec=spec, values="off", cycles=cycles, suggestions=advice))

    return _of_file(text, "layers.toml", run, (ValueError, ttsim.TTSimError), whole=whole)


def check_rows(seed: int, index: int) -> Finding:
    """A damaged file of measured rows: each is predicted or listed, or the file is refused in a line."""
    rng = np.random.default_rng([seed, index])
    kind = pick(rng, list(VALIDATORS))
    with (DATA / f"{kind}.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    chosen = [rows[0], *(list(rows[int(at)]) for at in rng.integers(1, len(rows), ROWS))]
    for _ in range(int(rng.integers(1, 4))):
        row = chosen[int(rng.integers(0 if rng.random() < 0.1 else 1, len(chosen)))]
        column = int(rng.integers(len(row)))
        if rng.random() < 0.9:
            row[column] = pick(rng, CELLS)
        else:
            del row[column]
    text = StringIO()
    csv.writer(text).writerows(chosen)
    return _of_file(text.getvalue(), f"{kind}.csv", validate, (ValueError,))


def damaged(text: str, rng: np.random.Generator) -> str:
    """A TOML text with values, keys, lines or characters changed."""
    lines = text.splitlines()
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        way = rng.random()
        if "=" in lines[at] and way < 0.7:
            key, value = lines[at].split("=", 1)
            number = re.search(r"\d+", value)
            if number is not None and rng.random() < 0.5:
                factor = float(rng.choice([0, 0.01, 0.5, 2, 3, 100]))
                lines[at] = f"{key}={value[: number.start()]}{int(int(number[0]) * factor)}{value[number.end() :]}"
            else:
                lines[at] = f"{key}= {pick(rng, VALUES)}"
        elif way < 0.8:
            del lines[at]
            lines = lines or [""]
        elif way < 0.9:
            lines.insert(at, pick(rng, lines))
        else:
            cut = int(rng.integers(len(lines[at]) + 1))
            lines[at] = lines[at][:cut] + pick(rng, PIECES) + lines[at][cut + 1 :]
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
