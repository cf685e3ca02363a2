"""The command line: the table of commands, and the actions of run, devices, exec, compare, pytest and completion."""

from ttsim.study.interrupts import INTERRUPTED, ending_of, ending_on_sigterm  # before what takes long to load

# isort: split
import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from device.errors import ArgumentError, TTSimError, shown
from device.spec.device_spec import catalog_names
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.dropin.choices import chosen, environment
from ttsim.dropin.script import run_script, run_tests, script_profiles, within
from ttsim.recording.profiling import Profile
from ttsim.recording.saving import reserved_name, save_report
from ttsim.report.actions import counts_yaml, energy_lines
from ttsim.report.comparison import compare
from ttsim.report.comparison_page import page_of_comparison
from ttsim.report.cycle_report import CycleReport
from ttsim.report.devices import explained
from ttsim.report.dram import dram_lines
from ttsim.report.formatting import file_name, printable_lines, short_name
from ttsim.report.links import links_lines
from ttsim.report.pages import page_of_layers
from ttsim.report.reported import read_layers, read_report
from ttsim.report.writers.json import devices_as_json, fields_as_json, layers_as_json
from ttsim.report.writers.table import print_devices, print_fields, print_layers
from ttsim.report.writers.terminal import console_on, progress, say, show
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE, shortened
from ttsim.study.ask.agents import mcp_command
from ttsim.study.ask.command import ask_command
from ttsim.study.check.command import check_command
from ttsim.study.command import design_command, faster_line, sweep_command, tune_command
from ttsim.study.completion import SHELLS, completion
from ttsim.study.executor import rare_collections
from ttsim.study.layers.read import chosen_layers
from ttsim.study.layers.run import TOO_LARGE, run_layer
from ttsim.study.options import (
    DEVICE,
    LAYERS,
    LONGEST_MESSAGE,
    OPENING,
    Command,
    Parser,
    parsed,
    parser_of,
    settings_of,
    write_results,
)
from ttsim.study.store import model_version

VERSION = "0.1.0"
FOLLOWED: Final = "ttnn 0.81.1"  # plans, memory, errors and values are compared with recorded runs of it
LONGEST_PATH = 200  # characters of a path that cannot be opened


class Version(argparse.Action):
    """Looks up and prints the versions, and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Takes no values."""
        print(version_line())
        parser.exit()


def version_line() -> str:
    """Versions of ttsim, of the real library, and of the model: equal texts mean equal figures."""
    return f"ttsim {VERSION}, following {FOLLOWED}, model {model_version()}"


def run_command(options: argparse.Namespace) -> int:
    """Runs the chosen layers; a failing layer does not stop the others. Returns the exit code."""
    if options.baseline and not options.html:
        raise ArgumentError("run: --baseline is laid over the page of --html; give --html FILE as well")
    baselines = read_layers(options.baseline, "run") if options.baseline else {}
    settings = settings_of(options, values=options.values or "exact", suggestions=not options.no_suggestions)
    settings = replace(settings, lowering=options.lowering)
    layers, results = chosen_layers(options, where="run"), []
    with progress("layers", quiet=options.quiet) as begin:
        done = begin(len(layers))
        for layer in layers:
            results.append(run_layer(layer, settings, watch=_saver(options.report, layer.name)))
            done()
    if all(result.mistake for result in results):
        raise ArgumentError(f"run: {layers[0].name}: {results[0].error}")
    links = options.links is not None
    page = partial(page_of_layers, results, settings.spec, baselines, links=links)
    reports = [result.summary.cycles for result in results if result.summary and result.summary.cycles]
    texts = {"json": partial(layers_as_json, results, links=links), "counts": partial(counts_yaml, reports)}
    if not write_results(options, **texts, page=page):
        each, details = not options.summary, options.verbose
        print_layers(console_on(sys.stdout), results, each=each, details=details, notes=not options.quiet)
        for report in reports:
            _show_options(report, options)
        ran = [result.layer for result in results if result.error is None]
        if settings.suggestions and not options.quiet:
            with progress("searching for faster configs"):
                line = faster_line(ran, settings)
            print(line, end="\n" * bool(line))
    return int(any(result.error is not None for result in results))


def _show_options(report: CycleReport, options: argparse.Namespace) -> None:
    """Prints the tables of a report that flags ask for."""
    console = console_on(sys.stdout)
    if options.energy:
        show(console, ["", *energy_lines(report, console.width)])
    if options.dram:
        show(console, ["", *dram_lines(report.operations, console.width)])
    if options.links is not None:
        show(console, ["", *links_lines(report, options.links, console.width)])


def _saver(folder: Path | None, layer: str) -> Callable[[Profile], object] | None:
    """A function that writes the report of a layer into a folder, if given, without replacing earlier reports."""
    if folder is None:
        return None
    return lambda profile: save_report(folder, profile, name=reserved_name(folder, file_name(layer)))


def devices_command(options: argparse.Namespace) -> int:
    """Show devices. Returns the exit code."""
    if options.only and not options.explain:
        raise ArgumentError("devices: --only chooses among the fields of --explain; give both or neither")
    names = [with_changes(name, options.changes) for name in options.name or catalog_names()]
    if not options.explain:
        specs = [load_spec(name) for name in names]
        if not write_results(options, json=partial(devices_as_json, specs)):
            print_devices(console_on(sys.stdout), specs)
        return 0
    devices = []
    for name in names:
        with progress(f"fields of {name}", quiet=options.quiet) as begin:
            devices.append(explained(name, options.only, watch=begin))
    if not write_results(options, json=partial(fields_as_json, devices)):
        for device in devices:
            print_fields(console_on(sys.stdout), device)
    return 0


def exec_command(options: argparse.Namespace) -> int:
    """Runs a script; its errors are shown like Python's, with control characters escaped.

    Returns the exit code.
    """
    options.script.open("rb").close()  # a script that is not there is told in one line
    variables, script = chosen(options), str(options.script.absolute())
    try:
        with environment(variables):
            tell = None if options.quiet else partial(say, console_on(sys.stderr), indent=2)
            bar = partial(progress, quiet=options.quiet)
            tuned = run_script(
                options.script, options.arguments, options.report, tell, tunes=options.tune, record=options.record,
                progress=bar,
            )  # fmt: skip
        if tuned:
            print(tuned)
    except (Exception, KeyboardInterrupt) as error:
        sys.stdout.flush()
        if variables.get(TRACEBACK_VARIABLE) is None:
            own = within(error.__traceback__, script)
            if own is None and isinstance(error, TTSimError | OSError):  # of a report, not of the script
                raise
            if own is not None or isinstance(error, SyntaxError):
                error.__traceback__ = own
        with environment(variables), shortened(error):
            lines = traceback.format_exception(error)
        sys.stderr.write("\t".join(map(printable_lines, "".join(lines).split("\t"))))
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def compare_command(options: argparse.Namespace) -> int:
    """Compare two reports. Returns the exit code."""
    files = (options.before, options.after)
    comparison = compare(*(read_report(path, options.device_id) for path in files))
    page = partial(page_of_comparison, comparison, (str(files[0]), str(files[1])))
    if not write_results(options, json=comparison.to_json, page=page):
        print(comparison)
    if options.fail_over is None or not comparison.fails(options.fail_over):
        return 0
    print(f"ttsim: compare: it takes longer by more than {100 * options.fail_over:g} %", file=sys.stderr)
    return 1


def pytest_command(options: argparse.Namespace) -> int:
    """Run tests. Returns the exit code."""
    with environment(chosen(options)):
        return run_tests(options.arguments)


def completion_command(options: argparse.Namespace) -> int:
    """Prints the script that completes commands, flags and device names in a shell. Returns the exit code."""
    print(completion(COMMANDS, options.shell), end="")
    return 0


SCRIPTED: Final = (*DEVICE, "--values", "--no-strict", "--fallback", "--traceback")
COMMANDS: Final = (
    Command(
        name="run",
        group="layers",
        help="run layers and report memory, accuracy and cycles",
        about="Runs one layer from flags, the layers of a file, or the eight transposed convolutions of two U-Nets.",
        run=run_command,
        options=(
            *(*LAYERS, *DEVICE, "--values", *OPENING, "--lowering", "--no-suggestions", "--verbose", "--summary"),
            *("--energy", "--dram", "--links", "--quiet", "--json", "--counts", "--html", "--baseline", "--report"),
        ),
        examples=(
            "--shape 1,16,16,32 --out-channels 16 --stride 2 --device n150 --values off --no-suggestions",
            "--only d4.up --config shard_layout=HEIGHT_SHARDED --values off --no-suggestions",
        ),
    ),
    Command(
        name="tune",
        group="layers",
        help="find the fastest config of layers",
        about="Compares all configs of a layer that can differ, and prints the fastest with the reason, and slower "
        "configs that use less L1 or are more exact.",
        run=tune_command,
        options=(*LAYERS, *DEVICE, *OPENING, "--allow", "--keep", "--effort", "--quiet", "--json"),
        examples=("--shape 1,8,8,64 --out-channels 32 --stride 2 --keep core_grid --effort 10",),
    ),
    Command(
        name="sweep",
        group="layers",
        help="run layers with many configs on many devices",
        about="Plans and times every combination of layers, devices and settings, and prints the best of each layer "
        "on each device.",
        run=sweep_command,
        options=(
            *(*LAYERS, *DEVICE, "--values", *OPENING, "--vary", "--tune", "--file", "--processes", "--scheduler"),
            *("--top", "--quiet", "--json", "--csv", "--html"),
        ),
        examples=(
            "--shape 1,8,8,64 --out-channels 32 --stride 2 --device n150 p150 --vary lowering=zero_insertion,phase",
        ),
        places={"SPACE": {"nargs": "?", "type": Path, "help": "TOML file of layers, devices and settings"}},
        changes={
            "--device": {"nargs": "+", "action": "extend"},
            "--tune": {
                "action": argparse.BooleanOptionalAction,
                "help": "tune each point (default: where several machines are compared and no config is varied)",
            },
        },
    ),
    Command(
        name="design",
        group="layers",
        help="vary fields of a device against costs",
        about="Runs layers on every machine of a space, computes what each machine costs, and prints the machines of "
        "which no other is better in time and all costs (docs/how-to/design-a-machine.md).",
        run=design_command,
        options=(*DEVICE, "--evaluations", "--seed", "--file", "--processes", "--quiet", "--json", "--csv", "--html"),
        examples=("machines.toml --device n150 --processes 1",),
        places={"SPACE": {"type": Path, "help": "TOML file of a device, a space, costs and layers"}},
    ),
    Command(
        name="ask",
        group="compilers and CI",
        help="answer questions about calls, as lines of JSON",
        about="Reads questions about memory and time of calls, a line of JSON each, and answers each with a line, in "
        "order, on all cores (docs/how-to/ask.md).",
        run=ask_command,
        options=("--socket", "--processes", "--timeout", "--quiet"),
        examples=("questions.jsonl --processes 1",),
        places={"FILE": {"nargs": "?", "type": Path, "help": "of questions; stdin without"}},
    ),
    Command(
        name="mcp",
        group="compilers and CI",
        help="serve estimates to agents over the Model Context Protocol",
        about="Answers an agent's calls of tools on stdin and stdout: estimate, constraints, choose, tune, compare, "
        "explain and devices (docs/how-to/agents.md). Needs `pip install 'ttsim[mcp]'`.",
        run=mcp_command,
        options=(),
        examples=(),
    ),
    Command(
        name="exec",
        group="scripts",
        help="run a script that imports ttnn",
        about="Runs an unchanged script, for which `import ttnn` gives ttsim. Its own arguments come after its name.",
        run=exec_command,
        options=(*SCRIPTED, "--report", "--record", "--tune", "--quiet"),
        examples=("--device n150 --values off my_script.py",),
        places={
            "SCRIPT": {"type": Path, "help": "a Python file"},
            "ARGUMENTS": {"nargs": argparse.REMAINDER, "help": "of the script"},
        },
    ),
    Command(
        name="pytest",
        group="scripts",
        help="run tests that import ttnn",
        about="Runs pytest on unchanged tests, with the fixtures of tt-metal; all other flags are pytest's.",
        run=pytest_command,
        options=SCRIPTED,
        examples=("--values off my_tests.py",),
        passes_on=True,
    ),
    Command(
        name="compare",
        group="reports and devices",
        help="compare two reports, or a report and a card's profile",
        about="Matches the device operations of two reports in order, and prints what takes longer and what differs. "
        "A file ending in .csv is an ops_perf_results of tt-metal's profiler, or of ttsim; any other a report in JSON.",
        run=compare_command,
        options=("--fail-over", "--device-id", "--quiet", "--json", "--html"),
        examples=("before.json after.json --fail-over 5%",),
        places={
            "BEFORE": {"type": Path, "help": "of run --json, --report or to_json(), or of a card"},
            "AFTER": {"type": Path, "help": "the report to compare with BEFORE"},
        },
    ),
    Command(
        name="check",
        group="reports and devices",
        help="check budgets of layers, scripts and reports",
        about="Measures what the entries of a file of budgets name, and compares time, L1, DRAM traffic and device "
        "operations with their budgets: a figure above its band fails, and so does a figure below, which asks for a "
        "new budget (docs/how-to/check-budgets.md).",
        run=partial(check_command, run_script=script_profiles),
        options=(*DEVICE, "--update", "--processes", "--quiet", "--json", "--junit", "--annotations"),
        examples=("budgets.toml --junit budgets.xml",),
        places={"BUDGETS": {"type": Path, "help": "TOML file of budgets"}},
    ),
    Command(
        name="devices",
        group="reports and devices",
        help="list devices, their fields, and what differs",
        about="Lists devices, prints all figures of one device, or what differs between two.",
        run=devices_command,
        options=("--set", "--explain", "--only", "--quiet", "--json"),
        examples=("n150", "n150 'n150, dram.banks=16'"),
        places={"NAME": {"nargs": "*", "help": "names or TOML files of devices"}},
    ),
    Command(
        name="completion",
        group="shell",
        help="print a script that completes commands and flags",
        about="Prints the completion of a shell: `ttsim completion bash > "
        "~/.local/share/bash-completion/completions/ttsim`, or `source <(ttsim completion zsh)` in ~/.zshrc, or "
        "`ttsim completion fish > ~/.config/fish/completions/ttsim.fish`.",
        run=completion_command,
        options=(),
        examples=("bash",),
        places={"SHELL": {"choices": SHELLS, "help": ", ".join(SHELLS)}},
    ),
)


def build_parser() -> Parser:
    """The parser of the whole command line."""
    return parser_of(COMMANDS, Version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; an invalid command line prints one line on stderr and returns the exit code 2."""
    if None in (sys.stdout, sys.stderr):  # which the caller closed
        nothing = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
        sys.stdout, sys.stderr = sys.stdout or nothing, sys.stderr or nothing
    try:
        options = parsed(COMMANDS, build_parser(), arguments)
        own = options.command not in ("exec", "pytest")  # scripts handle SIGTERM, garbage and encodings themselves
        if own and isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.encoding.lower().startswith("utf"):
            sys.stdout.reconfigure(errors="replace")
        with ending_on_sigterm() if own else nullcontext(), rare_collections() if own else nullcontext():
            code: int = options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        code, word = ending_of(interrupt)
        sys.stderr.write(f"ttsim: {word}\n")
    except (TTSimError, OSError, MemoryError) as error:
        print(f"ttsim: {described(error)}", file=sys.stderr)
        return 1 if isinstance(error, TOO_LARGE) else 2
    return code


def described(error: BaseException) -> str:
    """An error in one line without control characters; long texts and paths are shortened."""
    if isinstance(error, OSError) and error.strerror:
        file = "" if error.filename is None else f": {shown(str(error.filename), LONGEST_PATH)}"
        return f"{error.strerror}{file}"
    lines = (str(error) or type(error).__name__).splitlines()
    return short_name("; ".join(line.strip(" ;") for line in lines), LONGEST_MESSAGE)


if __name__ == "__main__":
    sys.exit(main())
