"""The commands sweep, tune and design: their flags, their actions, and their output."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, get_args

from device.errors import ArgumentError, TTSimError, shown
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.api.convolutions import conv_transpose2d
from ttsim.report.formatting import printable, terminal_width, text
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.terminal import progress
from ttsim.runtime.settings import Values, add_changes, add_device, chosen_device, default_spec
from ttsim.runtime.types.layer import SEVERAL, Layer, setting
from ttsim.study.design import DesignResult, design
from ttsim.study.interrupts import ending_of
from ttsim.study.layers.read import add_layers_flags, add_opening_flags, chosen_layers
from ttsim.study.layers.run import Settings, planned
from ttsim.study.space import read_sweep
from ttsim.study.store import Verdict
from ttsim.study.sweep import Progress, SweepResult, Watch, best_table, sweep
from ttsim.study.sweep_page import page_of_sweep
from ttsim.study.tune.space import ALLOWED, SEARCHED, SHORT
from ttsim.study.tune.tune import EFFORT, short, tune


def command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], help: str, about: str | None = None, **more: Any
) -> argparse.ArgumentParser:
    """The parser of a command, added to the result of `add_subparsers`; `run` returns the exit code."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=about, **more)
    parser.set_defaults(run=run)
    return parser


def add_switches(parser: argparse.ArgumentParser, switches: Mapping[str, str]) -> None:
    """Adds flags without a value, with their texts."""
    for name, help in switches.items():
        parser.add_argument(name, action="store_true", help=help)


def settings_of(options: argparse.Namespace, *, values: Values, suggestions: bool) -> Settings:
    """The settings of the flags that choose and open a device; raises SpecError for an unknown device."""
    spec, strict = load_spec(chosen_device(options)), not options.no_strict
    return Settings(
        spec=spec, values=values, l1_small_size=options.l1_small_size, strict=strict, suggestions=suggestions
    )


def add_sweep(commands: Any) -> None:
    """Adds the command to the result of `add_subparsers`."""
    about = (
        "Plans and times every combination of layers, devices and settings, and prints the best of each layer on each "
        "device."
    )
    parser = command(commands, "sweep", sweep_command, "run layers with many configs on many devices", about)
    add = parser.add_argument
    add("space", nargs="?", type=Path, metavar="FILE", help="TOML file of layers, devices and settings")
    vary = "values of a setting, such as shard_layout=none,HEIGHT_SHARDED or dram.banks=6,12; may be repeated"
    add("--vary", action="append", type=varied, default=[], metavar="KEY=V,V", help=vary)
    add_layers_flags(parser)
    add("--device", nargs="+", metavar="NAME", help="names or TOML files")
    add_changes(parser)
    add("--values", choices=get_args(Values), help="exact or fast: the accuracy of each point, too (default: off)")
    add_opening_flags(parser, l1_small_size=None)
    add("--file", type=Path, metavar="FILE", help="JSONL file that gets all rows; those that it has are not made again")
    add("--processes", type=int, metavar="N", help="how many (default: one on each core, where there are many points)")
    add(
        "--scheduler", metavar="ADDRESS", help="of dask.distributed, such as tcp://127.0.0.1:8786, instead of processes"
    )
    add("--top", type=int, default=1, metavar="N", help="print the N fastest points of each layer (default: 1)")
    _add_results(parser, table="points", document="points")
    add("--html", type=Path, metavar="FILE", help="write a page with charts and all points, too")


def _add_results(parser: argparse.ArgumentParser, *, table: str, document: str) -> None:
    parser.add_argument("--csv", type=Path, metavar="FILE", help=f"write a table of all {table}")
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write all {document} as JSON")


def _write(options: argparse.Namespace, result: SweepResult | DesignResult) -> None:
    for path, content in ((options.csv, result.to_csv), (options.json, result.to_json)):
        if path is not None:
            path.write_text(content(), encoding="utf-8", newline="")


def sweep_command(options: argparse.Namespace) -> int:
    """Runs a sweep and returns the exit code; raises TTSimError as `ttsim.sweep`, OSError for files.

    The exit code is 0 even if points do not fit, 1 if ttsim failed at a point, 130 or 143 if interrupted or terminated.
    """
    try:
        arguments = _arguments(options, {} if options.space is None else read_sweep(options.space))
        if options.top < 1:
            raise ArgumentError(f"sweep: --top must be at least 1, not {options.top}")
        with progress("points") as begin:
            result = sweep(**arguments, watch=_steps(begin))
    except KeyboardInterrupt as interrupt:
        advice = "give --file to keep rows" if options.file is None else f"the same command goes on with {options.file}"
        code, word = ending_of(interrupt)
        sys.stderr.write(f"ttsim: {word}; {printable(advice)}\n")
        return code
    _write(options, result)
    if options.html is not None:
        options.html.write_text(page_html(page_of_sweep(result)), encoding="utf-8")
    if result.note:
        sys.stderr.write(f"ttsim: {printable(result.note)}\n")
    sys.stdout.write(best_table(result, terminal_width(), options.top))
    return int(bool({Verdict.FAILED.value, Verdict.LOST.value} & set(result.verdicts)))


def _steps(begin: Callable[[int], Callable[[], None]]) -> Watch:
    """A watch that shows the progress of a sweep, without the rows that its file already had."""
    step: Callable[[], None] | None = None
    shown = 0

    def watch(now: Progress) -> None:
        nonlocal shown, step
        step = step or begin(now.total - now.found)
        while shown < now.done - now.found:
            step()
            shown += 1

    return watch


def varied(text: str) -> tuple[str, list[Any]]:
    """A setting and its values; raises ArgumentTypeError if either is missing."""
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise argparse.ArgumentTypeError(f"what is varied is KEY=VALUE,VALUE, not {shown(text)}")
    return key, [_plain(key, value.strip()) for value in values.split(",")]


def _plain(key: str, text: str) -> Any:
    """A value from text: none, true, false, a number, sizes such as 2x2, or words."""
    if text.lower() == "none":
        return None
    if key.removeprefix("layer.") in SEVERAL:
        sides = [int(side) if side.isdecimal() else side for side in text.split("x")]
        return sides if len(sides) > 1 else sides[0]
    return setting(f"{key}={text}")[1] if text else text


def _arguments(options: argparse.Namespace, file: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a sweep from a file, overridden by flags; raises ArgumentError if they contradict each other."""
    ways = {name: getattr(options, name) for name in ("file", "processes", "scheduler")}
    flags = {name: getattr(options, name) for name in ("values", "l1_small_size") if getattr(options, name) is not None}
    names = options.device or file.get("devices") or [default_spec()]
    devices = [with_changes(name, options.changes) for name in names]
    vary = dict(options.vary)
    if len(vary) < len(options.vary):
        raise ArgumentError("sweep: --vary names a setting twice; give all its values at once")
    if options.no_strict:
        flags["strict"] = False
    layers = chosen_layers(options, where="sweep", said=file.get("layers"))
    return file | ways | flags | {"devices": devices, "vary": file.get("vary", {}) | vary, "layers": layers}


WORTH_TELLING: Final = 1.5  # times as fast: the threshold of the last line of `ttsim run`


def add_tune(commands: Any) -> None:
    """Adds the command to the result of `add_subparsers`."""
    about = (
        "Compares all configs of a layer that can differ, and prints the fastest, why it is, and those that are slower "
        "but take less L1 or are more exact."
    )
    parser = command(commands, "tune", tune_command, "find the best config of layers", about)
    add_layers_flags(parser)
    add_device(parser)
    add_opening_flags(parser)
    add = parser.add_argument
    changed = ", ".join((*SHORT, *ALLOWED))
    add("--allow", type=names, default=(), metavar="FIELD,...", help=f"change the result's precision, too: {changed}")
    add("--keep", type=names, default=(), metavar="FIELD,...", help=f"leave as given: {', '.join(SEARCHED)}")
    add("--effort", type=int, default=EFFORT, metavar="N", help=f"calls that may be tried (default: {EFFORT})")
    add_switches(parser, {"--json": "print JSON instead of words"})


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def tune_command(options: argparse.Namespace) -> int:
    """Tunes the chosen layers and returns the exit code: 1 if a layer has no config that runs."""
    settings = settings_of(options, values="off", suggestions=False)
    results = []
    for layer in chosen_layers(options, where="tune"):
        with planned(layer, settings) as (device, arguments):
            chosen = {name: getattr(options, name) for name in ("allow", "keep", "effort")}
            results.append(tune(conv_transpose2d, device=device, name=layer.name, **chosen, **arguments))
        if not options.json:
            sys.stdout.write(f"{results[-1]}\n")
            sys.stdout.flush()
    if options.json:
        sys.stdout.write(text({"format": 1, "layers": [tuned.to_dict() for tuned in results]}) + "\n")
    return int(any(tuned.best is None for tuned in results))


def faster_line(layers: Sequence[Layer], settings: Settings) -> str:
    """The layers for which a short search finds a much faster config; empty if there is none.

    A layer that does not run, or whose search fails, is left out.
    """
    gains = []
    for layer in layers:
        with suppress(TTSimError), planned(layer, settings) as (device, arguments):
            gain = short(conv_transpose2d, arguments, device).gain_over_given
            if gain is not None and gain > WORTH_TELLING:
                gains.append((layer.name, gain))
    if not gains:
        return ""
    words = ", ".join(f"{printable(name)} {gain:.1f} times" for name, gain in sorted(gains, key=lambda pair: -pair[1]))
    return f"Another config would make these much faster (`ttsim tune` prints it): {words}"


def add_design(commands: Any) -> None:
    """Adds the command to the result of `add_subparsers`."""
    about = (
        "Works out what layers take on every machine of a space, and what each machine costs, and prints the machines "
        "of which no other is better in time and all costs (docs/how-to/design-a-machine.md)."
    )
    parser = command(commands, "design", design_command, "vary fields of a device against costs", about)
    parser.add_argument("space", type=Path, metavar="FILE", help="TOML file of a device, a space, costs and layers")
    processes = "how many (default: one on each core, where there is much to do)"
    parser.add_argument("--processes", type=int, metavar="N", help=processes)
    _add_results(parser, table="machines", document="figures")


def design_command(options: argparse.Namespace) -> int:
    """Designs a machine and returns the exit code: 1 if no machine runs all layers; raises as `ttsim.design`."""
    with progress("layers") as begin:
        result = design(options.space, processes=options.processes, watch=begin)
    _write(options, result)
    sys.stdout.write(f"{result}\n")
    return int(not result.front)
