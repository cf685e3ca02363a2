"""The commands sweep, tune and design: their actions and their output."""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from device.errors import ArgumentError, TTSimError
from ops.sensitivity.changes import with_changes
from ttsim.api.convolutions import conv_transpose2d
from ttsim.report.formatting import printable, terminal_width, text
from ttsim.report.writers.terminal import progress
from ttsim.runtime.settings import default_spec
from ttsim.runtime.types.layer import SEVERAL, Layer, setting
from ttsim.study.design import design
from ttsim.study.design_page import page_of_design
from ttsim.study.interrupts import ending_of
from ttsim.study.layers.read import chosen_layers
from ttsim.study.layers.run import Settings, conv_config, planned
from ttsim.study.options import STDOUT, settings_of, write_results
from ttsim.study.space import read_design, read_sweep
from ttsim.study.store import Verdict
from ttsim.study.sweep import Progress, Watch, best_table, sweep
from ttsim.study.sweep_page import page_of_sweep
from ttsim.study.tune.tune import fastest, tune


def sweep_command(options: argparse.Namespace) -> int:
    """Runs a sweep and returns the exit code; raises TTSimError like `ttsim.sweep`, OSError for files.

    The exit code is 0 even if points do not fit, 1 if ttsim failed at a point, 130 or 143 if interrupted or terminated.
    """
    try:
        arguments = _arguments(options, {} if options.space is None else read_sweep(options.space))
        if options.top < 1:
            raise ArgumentError(f"sweep: --top must be at least 1, not {options.top}")
        with progress("points", quiet=options.quiet) as begin:
            result = sweep(**arguments, watch=_steps(begin))
    except KeyboardInterrupt as interrupt:
        advice = "give --file to keep rows" if options.file is None else f"the same command goes on with {options.file}"
        code, word = ending_of(interrupt)
        sys.stderr.write(f"ttsim: {word}; {printable(advice)}\n")
        return code
    page = partial(page_of_sweep, result)
    printed = write_results(options, csv=result.to_csv, json=result.to_json, page=page)
    if result.note and not options.quiet:
        sys.stderr.write(f"ttsim: {printable(result.note)}\n")
    if not printed:
        sys.stdout.write(best_table(result, terminal_width(), options.top))
    return int(bool({Verdict.FAILED.value, Verdict.LOST.value} & set(result.verdicts)))


def _steps(begin: Callable[[int], Callable[[], None]]) -> Watch:
    """A callback that shows the progress of a sweep, not counting the rows that its file already had."""
    step: Callable[[], None] | None = None
    shown = 0

    def watch(now: Progress) -> None:
        nonlocal shown, step
        step = step or begin(now.total - now.found)
        while shown < now.done - now.found:
            step()
            shown += 1

    return watch


def _plain(key: str, text: str) -> Any:
    """Parses a value: none, true, false, a number, sizes such as 2x2, or text."""
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
    vary = {key: [_plain(key, value) for value in values] for key, values in options.vary}
    if len(vary) < len(options.vary):
        raise ArgumentError("sweep: --vary names a setting twice; give all its values at once")
    if options.no_strict:
        flags["strict"] = False
    if options.tune is not None:
        flags["tune"] = options.tune
    layers = chosen_layers(options, where="sweep", said=file.get("layers"))
    for layer in layers if options.config else ():
        conv_config(layer)  # a wrong field of the flags is refused before any point
    return file | ways | flags | {"devices": devices, "vary": file.get("vary", {}) | vary, "layers": layers}


def tune_command(options: argparse.Namespace) -> int:
    """Tunes the chosen layers and returns the exit code: 1 if a layer has no config that runs."""
    settings = settings_of(options, values="off", suggestions=False)
    chosen: dict[str, Any] = {name: getattr(options, name) for name in ("allow", "keep", "effort")}
    results = []
    for layer in chosen_layers(options, where="tune"):
        with progress(f"tuning {layer.name}", quiet=options.quiet), planned(layer, settings) as (device, arguments):
            results.append(tune(conv_transpose2d, device=device, name=layer.name, **chosen, **arguments))
        if options.json != STDOUT:
            sys.stdout.write(f"{results[-1]}\n")
            sys.stdout.flush()
    write_results(options, json=lambda: text({"format": 1, "layers": [tuned.to_dict() for tuned in results]}) + "\n")
    return int(any(tuned.best is None for tuned in results))


WORTH_TELLING: Final = 1.5  # times as fast: the threshold of the last line of `ttsim run`
# The search for that line: few calls, without fields that seldom pay or change the layer's output layout
SHORT_EFFORT: Final = 40
SHORT_SEARCH_KEEPS: Final = ("core_grid", "transpose_shards", "output_layout", "reallocate_halo_output")


def faster_line(layers: Sequence[Layer], settings: Settings) -> str:
    """The layers for which a short search finds a much faster config; empty if there is none.

    A layer that does not run, or whose search fails, is left out.
    """
    gains = []
    for layer in layers:
        with suppress(TTSimError), planned(layer, settings) as (device, arguments):
            found = fastest(conv_transpose2d, arguments, device, keep=SHORT_SEARCH_KEEPS, effort=SHORT_EFFORT)
            gain = found.gain_over_given
            if gain is not None and gain > WORTH_TELLING:
                gains.append((layer.name, gain))
    if not gains:
        return ""
    words = ", ".join(f"{printable(name)} {gain:.1f} times" for name, gain in sorted(gains, key=lambda pair: -pair[1]))
    return f"Another config would make these much faster (`ttsim tune` prints it): {words}"


def design_command(options: argparse.Namespace) -> int:
    """Designs a machine and returns the exit code: 1 if no machine runs all layers; raises like `ttsim.design`."""
    space = read_design(options.space, device=options.device, changes=options.changes)
    with progress("layers", quiet=options.quiet) as begin:
        chosen = {"evaluations": options.evaluations, "seed": options.seed, "rows": options.file}
        result = design(space, processes=options.processes, watch=begin, **chosen)
    page = partial(page_of_design, result)
    if not write_results(options, csv=result.to_csv, json=result.to_json, page=page):
        sys.stdout.write(f"{result}\n")
    return int(not result.front)
