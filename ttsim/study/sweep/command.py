"""`ttsim sweep`: its flags, what it does, and what it prints."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from device.errors import ArgumentError, shown
from ops.sensitivity.changes import with_changes
from ttsim.report.columns import terminal_width
from ttsim.report.printable import printable
from ttsim.report.writers.progress import progress
from ttsim.runtime.settings import Values, add_changes, default_spec
from ttsim.study.interrupts import exit_code, word_for
from ttsim.study.layers.flags import add_layers_flags, add_opening_flags, chosen_layers, setting
from ttsim.study.layers.read import LENGTHS
from ttsim.study.points.row import Verdict
from ttsim.study.sweep.charts import write_plot
from ttsim.study.sweep.read import read_sweep
from ttsim.study.sweep.sweep import Progress, Watch, sweep
from ttsim.study.sweep.tables import best_table


def add_sweep(commands: Any) -> None:
    """Adds the command to what `add_subparsers` gave."""
    parser = commands.add_parser(
        "sweep",
        help="run layers with many configs on many devices",
        description="Plans and times every combination of layers, devices and settings, and prints the best of each "
        "layer on each device.",
    )
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
    add("--csv", type=Path, metavar="FILE", help="write a table of all points")
    add("--json", type=Path, metavar="FILE", help="write all points as JSON")
    add("--plot", type=Path, metavar="FILE", help="write charts: an .svg or .html that needs nothing else")
    add("--across", nargs=2, default=(), metavar="KEY", help="the two settings of heat maps (default: the first two)")


def sweep_command(options: argparse.Namespace) -> int:
    """Runs a sweep. Returns the exit code: 0 though points do not fit, 1 if ttsim failed at one, 130 or 143 if ended.

    Raises:
        TTSimError: As of `ttsim.sweep`.
        OSError: A file cannot be read or written.
    """
    try:
        said = {} if options.space is None else read_sweep(options.space)
        asked = said | _flags(options, said)
        ways = {name: getattr(options, name) for name in ("file", "processes", "scheduler")}
        with progress("points") as begin:
            result = sweep(**asked, **ways, watch=_steps(begin))
    except KeyboardInterrupt as interrupt:
        kept = "give --file to keep rows" if options.file is None else f"the same command goes on with {options.file}"
        sys.stderr.write(f"ttsim: {word_for(interrupt)}; {printable(kept)}\n")
        return exit_code(interrupt)
    for path, made in ((options.csv, result.to_csv), (options.json, result.to_json)):
        if path is not None:
            path.write_text(made(), encoding="utf-8", newline="")
    if options.plot is not None:
        write_plot(result, options.plot, options.across)
    if result.note:
        sys.stderr.write(f"ttsim: {printable(result.note)}\n")
    sys.stdout.write(best_table(result, terminal_width()))
    return int(bool({Verdict.FAILED.value, Verdict.LOST.value} & set(result.verdicts)))


def _steps(begin: Callable[[int], Callable[[], None]]) -> Watch:
    """What shows how far a sweep is; rows that its file had are no work, and do not count."""
    steps: list[Callable[[], None]] = []
    shown = 0

    def watch(now: Progress) -> None:
        nonlocal shown
        if not steps:
            steps.append(begin(now.total - now.found))
        for _ in range(now.done - now.found - shown):
            steps[0]()
        shown = now.done - now.found

    return watch


def varied(text: str) -> tuple[str, list[Any]]:
    """A setting and its values; raises ArgumentTypeError without either."""
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise argparse.ArgumentTypeError(f"what is varied is KEY=VALUE,VALUE, not {shown(text)}")
    return key, [_plain(key, one.strip()) for one in values.split(",")]


def _plain(key: str, text: str) -> Any:
    """A value out of a text: none, true, false, a number, sizes such as 2x2, or words."""
    if text.lower() == "none":
        return None
    if key.removeprefix("layer.") in LENGTHS:
        sides = [int(side) if side.isdecimal() else side for side in text.split("x")]
        return sides if len(sides) > 1 else sides[0]
    return setting(f"{key}={text}")[1] if text else text


def _flags(options: argparse.Namespace, said: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a sweep that were given as flags, which stand above those of a file.

    Raises:
        ArgumentError: They contradict each other.
        OSError: A file of layers cannot be read.
    """
    given: dict[str, Any] = {name: getattr(options, name) for name in ("values", "l1_small_size")}
    given = {name: value for name, value in given.items() if value is not None}
    names = options.device or said.get("devices") or [default_spec()]
    given["devices"] = [with_changes(name, options.changes) for name in names]
    given["vary"] = said.get("vary", {}) | dict(options.vary)
    if len(dict(options.vary)) < len(options.vary):
        raise ArgumentError("sweep: --vary names a setting twice; give all its values at once")
    if options.no_strict:
        given["strict"] = False
    given["layers"] = chosen_layers(options, where="sweep", said=said.get("layers"))
    return given
