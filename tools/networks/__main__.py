"""Runs model tests out of a checkout of tt-metal, and prints a scoreboard.

usage: python -m tools.networks CHECKOUT [--models NAME,...] [--device NAME] [--values fast|exact|off]
                                [--fallback host] [--weights random] [--limit SECONDS] [--processes N] [--json FILE]
                                [--details]

For each model: tests that passed, tests that only something outside of ttsim stops (weights, downloads, packages, skips
of the test itself), tests that fail, the share of device operations without a time, the seconds of the longest test,
the predicted kernel time of the whole model beside tt-metal's expected one, and the first obstacle. tools/networks/
models.toml lists the models. The checkout is not changed; nothing is downloaded. Packages that a model imports (torch,
torchvision, transformers, ...) must be installed. With --weights random, files of weights that are not there are left
out, so that a model keeps the weights of its constructor.
"""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table

from device.errors import ArgumentError
from ops.sensitivity.changes import load_spec
from tools.command import run_tool, tool_parser
from tools.networks.plugin import RESULTS_VARIABLE, WEIGHTS_VARIABLE

HOME: Final = Path(__file__).resolve().parents[2]
MODELS: Final = Path(__file__).with_name("models.toml")
LEFT_OUT: Final = ("perf", "demo", "e2e", "stability", "imagenet", "upstream")  # parts of paths that need a card
# Parts of messages that tell what only the world outside of ttsim can mend
OUTSIDE: Final = (
    *("No module named", "couldn't connect", "Connection", "HTTP", "URLError", "offline", "not found in cache"),
    *("No such file", "FileNotFoundError", "LocalEntryNotFound", "huggingface", "does not appear to have a file"),
    *(
        "requires the",
        "cannot import name",
        "Weights file",
        "Failed to download",
        "Name or service",
        "gdown",
        "Error downloading",
        "Environment variable",
        "Unable to load",
    ),
)
Line = Mapping[str, Any]


class Model(NamedTuple):
    """A model of the scoreboard; models.toml explains the fields."""

    name: str
    folder: str
    whole: str = ""
    samples: int = 1
    samples_per_second: Mapping[str, float] = {}

    def files(self, checkout: Path) -> list[Path]:
        """The test files of the model, relative to the checkout."""
        root = (checkout / "models").resolve()
        folders = [(root / self.folder).resolve()] if self.folder.startswith("..") else root.glob(self.folder)
        found = {
            file.relative_to(checkout.resolve())
            for folder in folders
            for file in folder.rglob("test_*.py")
            if not any(part in str(file.relative_to(folder)).lower() for part in LEFT_OUT)
        }
        return sorted(found)


def ran(checkout: Path, arguments: Sequence[str], weights: str, limit_seconds: float, file: Path) -> list[Line]:
    """What became of the tests of a file."""
    with TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        paths = os.pathsep.join([str(HOME), str(checkout.resolve()), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"PYTHONPATH": paths, RESULTS_VARIABLE: str(results), "HF_HUB_OFFLINE": "1"}
        environment["TT_METAL_HOME"] = str(checkout.resolve())
        environment[WEIGHTS_VARIABLE] = weights
        options = [
            "-p",
            "tools.networks.plugin",
            "-p",
            "no:cacheprovider",
            "-q",
            "-o",
            "addopts=",
            "-o",
            "timeout=0",
            "--import-mode=importlib",
        ]
        command = [sys.executable, "-m", "ttsim", "pytest", *arguments, *options, str(file)]
        ended = ""
        try:
            done = subprocess.run(
                command,
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit_seconds,
                check=False,
            )
            if done.returncode not in (0, 1, 5) and not results.exists():
                said = (done.stderr or done.stdout).strip().splitlines()
                ended = said[-1][:300] if said else f"ended with exit code {done.returncode} and no word"
        except subprocess.TimeoutExpired:
            ended = f"did not end in {limit_seconds:g} s"
        lines = (
            [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []
        )
    if ended:
        lines.append({"test": str(file), "outcome": "failed", "message": ended, "seconds": limit_seconds})
    return lines


def kind(line: Line) -> str:
    """passed, outside or failed."""
    outside = line["outcome"] == "skipped" or any(text.lower() in line["message"].lower() for text in OUTSIDE)
    ours = "ttnn" in line["message"].partition(":")[2] and "cannot import name" in line["message"]
    return "passed" if line["outcome"] == "passed" else "outside" if outside and not ours else "failed"


def row(model: Model, lines: Sequence[Line], arch: str) -> dict[str, Any]:
    """The figures of a model."""
    counts = {name: sum(kind(line) == name for line in lines) for name in ("passed", "outside", "failed")}
    operations = sum(line.get("operations", 0) for line in lines)
    whole = [line for line in lines if model.whole and model.whole in line["test"]]
    predicted = max((line.get("milliseconds", 0.0) for line in whole), default=0.0)
    rate = model.samples_per_second.get(arch)
    obstacles = [line["message"] for wanted in ("failed", "outside") for line in lines if kind(line) == wanted]
    return {
        "model": model.name,
        **counts,
        "untimed_share": sum(line.get("untimed", 0) for line in lines) / operations if operations else None,
        "seconds": max((line["seconds"] for line in lines), default=0.0),
        "predicted_ms": predicted or None,
        "expected_ms": 1e3 * model.samples / rate if rate else None,
        "obstacle": obstacles[0] if obstacles else "" if lines else "the checkout has no such model",
    }


FORMATS: Final = {"untimed_share": "{:.1%}", "seconds": "{:.1f}", "predicted_ms": "{:.3f}", "expected_ms": "{:.3f}"}


def scoreboard(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of the rows and their sum."""
    table = Table(*[name.replace("_", " ") for name in rows[0]], title="model tests of the checkout", show_lines=False)
    for values in rows:
        cells = [FORMATS.get(name, "{}").format(value) if value is not None else "" for name, value in values.items()]
        table.add_row(*[cell[:100] for cell in cells])
    sums = {name: sum(values[name] for values in rows) for name in ("passed", "outside", "failed")}
    table.add_section()
    table.add_row("all", *map(str, sums.values()))
    return table


def main() -> int:
    """Prints the scoreboard, or says why there is none."""
    parser = tool_parser("tools.networks", __doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--models", default="")
    parser.add_argument("--device", default="wormhole_n150")
    parser.add_argument("--values", default="fast")
    parser.add_argument("--fallback")
    parser.add_argument("--weights", choices=("random",), default="")
    parser.add_argument("--limit", type=float, default=900.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    if not (options.checkout / "models").is_dir():
        raise ArgumentError(f"{options.checkout} is no checkout of tt-metal: it has no folder models")
    wanted = [name for name in options.models.split(",") if name]
    models = [Model(**entry) for entry in tomllib.loads(MODELS.read_text(encoding="utf-8"))["model"]]
    if unknown := set(wanted) - {model.name for model in models}:
        raise ArgumentError(f"there is no model {', '.join(sorted(unknown))} in {MODELS.name}")
    models = [model for model in models if not wanted or model.name in wanted]
    arguments = ["--device", options.device, "--values", options.values]
    arguments += ["--fallback", options.fallback] if options.fallback else []
    tests = [(model, file) for model in models for file in model.files(options.checkout)]
    lines: dict[str, list[Line]] = {model.name: [] for model in models}
    console = Console(width=220 if not sys.stdout.isatty() else None)
    with ThreadPoolExecutor(options.processes) as pool:
        one = partial(ran, options.checkout, arguments, options.weights, options.limit)
        for (model, _), found in zip(tests, pool.map(one, [file for _, file in tests]), strict=True):
            lines[model.name] += found
            for line in found if options.details else ():
                console.print(
                    f"{model.name} {kind(line)} {line['seconds']} s {line['test']}: {line['message']}", markup=False
                )
    arch = load_spec(options.device).arch
    rows = [row(model, lines[model.name], arch) for model in models]
    if options.json:
        options.json.write_text(json.dumps({"models": rows, "tests": lines}, indent=1) + "\n", encoding="utf-8")
    console.print(scoreboard(rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_tool("tools.networks", main))
