"""The command line: run transposed convolutions and look at devices.

usage: python -m ttsim --version
       python -m ttsim run [--layers FILE | flags of one layer] [--device NAME or FILE] [--values fast|off] [--json]
                           [-v] [--no-suggestions] [--html FILE [--baseline FILE]] [--report DIR]
       python -m ttsim devices [NAME or FILE ...] [--json]
       python -m ttsim exec [--device SPEC] [--values exact|fast|off] [--no-strict] [--report DIR] SCRIPT [ARGUMENT ...]
       python -m ttsim compare BEFORE AFTER [--fail-over PERCENT] [--device-id NUMBER]
       python -m ttsim tune [--layers FILE | flags of one layer] [--device NAME or FILE] [--allow FIELD,...] [--json]
       python -m ttsim design FILE [--csv FILE] [--json FILE]
       python -m ttsim sweep [FILE] [--vary KEY=VALUE,VALUE ...] [--device NAME ...] [--file FILE] [--csv FILE]
       python -m ttsim pytest [--device SPEC] [--values exact|fast|off] [--no-strict] [arguments of pytest]

--set FIELD=VALUE, wherever a device is chosen, changes a field of it: --set dram.banks=16 --set l1.bytes=2MiB.
"""

from ttsim.study.interrupts import INTERRUPTED, ending_of, ending_on_sigterm  # before what takes long to load

# isort: split
import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, get_args

from rich.console import Console

from device.errors import ArgumentError, TTSimError, shown
from device.spec.device_spec import catalog_names
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.dropin.choices import add_choices, chosen, environment
from ttsim.dropin.script import run_script, run_tests, within
from ttsim.recording.profiling import Profile
from ttsim.recording.saving import reserved_name, save_report
from ttsim.report.comparison import compare
from ttsim.report.comparison_page import page_of_comparison
from ttsim.report.devices import explained
from ttsim.report.formatting import file_name, printable, printable_lines, short_name
from ttsim.report.pages import page_of_layers
from ttsim.report.reported import read_layers, read_report
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.json import devices_as_json, fields_as_json, layers_as_json
from ttsim.report.writers.table import print_devices, print_fields, print_layers
from ttsim.report.writers.terminal import progress, say
from ttsim.runtime.settings import Values, add_changes, add_device
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE, shortened
from ttsim.study.command import add_design, add_sweep, add_switches, add_tune, command, faster_line, settings_of
from ttsim.study.layers.read import add_layers_flags, add_opening_flags, chosen_layers
from ttsim.study.layers.run import run_layer
from ttsim.study.store import model_version

VERSION = "0.1.0"
FOLLOWED: Final = "ttnn 0.81.1"  # plans, memory, errors and values are compared with recorded runs of it
WIDTH_OF_A_PIPE = 160  # columns of a table that goes to a file
LONGEST_MESSAGE = 1000  # places of what the parser says
LONGEST_PATH = 200  # characters of a path that cannot be opened


class Parser(argparse.ArgumentParser):
    """Whose errors steer no terminal, whatever was given."""

    def error(self, message: str) -> NoReturn:
        """Ends the program with exit status 2."""
        super().error(short_name(message, LONGEST_MESSAGE))


class Version(argparse.Action):
    """Prints the versions, which are looked up only then, and ends the program."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Takes no values."""
        print(version_line())
        parser.exit()


def version_line() -> str:
    """Versions of ttsim and of the library that it follows, and which model exactly: equal texts give equal figures."""
    return f"ttsim {VERSION}, following {FOLLOWED}, model {model_version()}"


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = Parser(prog="ttsim", description="Transposed convolution on a simulated device.")
    parser.add_argument("--version", action=Version, nargs=0, help="of ttsim, of the ttnn it follows, and of the model")
    commands = parser.add_subparsers(dest="command", required=True)
    add_run(commands)
    devices = command(
        commands, "devices", devices_command, "list devices, show all figures of one, what differs between two"
    )
    devices.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(catalog_names())}, or TOML files")
    add_changes(devices)
    explain = "each field's unit and source, and what it moves: about 24 s for all fields of a device"
    add_switches(devices, {"--explain": explain})
    devices.add_argument("--only", default="", metavar="TEXT", help="explain the fields whose name contains this")
    add_switches(devices, {"--json": "print JSON instead of a table"})
    about = "Runs an unchanged script; `import ttnn` gives ttsim there. Its own arguments come after its name."
    script = command(commands, "exec", exec_command, "run a script that imports ttnn", about)
    add_choices(script)
    script.add_argument("--report", type=Path, metavar="DIR", help="write the cycles of each device into this folder")
    add_switches(script, {"--tune": "find the best configs of its convolutions and their output layouts"})
    script.add_argument("script", type=Path, metavar="SCRIPT", help="a Python file")
    script.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="of the script")
    about = (
        "Matches the device operations of two reports in order: what takes longer, and what is different. A file "
        "ending in .csv is an ops_perf_results of tt-metal's profiler, or ours; any other a report in JSON."
    )
    compared = command(
        commands, "compare", compare_command, "compare two reports, or a report and what a card's profiler wrote", about
    )
    source = "of run --json, --report or to_json(), or of a card"
    compared.add_argument("before", type=Path, metavar="BEFORE", help=source)
    compared.add_argument("after", type=Path, metavar="AFTER", help="likewise")
    limit = "exit with 1 if it takes longer by more than this"
    compared.add_argument("--fail-over", type=percent_share, metavar="PERCENT", help=limit)
    compared.add_argument("--html", type=Path, metavar="FILE", help="write a page of both, too")
    compared.add_argument("--device-id", type=int, metavar="NUMBER", help="of a CSV with several devices, this one")
    about = "Runs pytest on unchanged tests, with the fixtures of tt-metal; it takes all arguments of pytest."
    tests = command(commands, "pytest", pytest_command, "run tests that import ttnn", about, allow_abbrev=False)
    add_choices(tests)
    add_sweep(commands)
    add_tune(commands)
    add_design(commands)
    return parser


def add_run(commands: Any) -> None:
    """Adds the command that runs layers to the result of `add_subparsers`."""
    about = "Runs one layer from flags, the layers of a file, or the eight layers of two U-Nets."
    parser = command(commands, "run", run_command, "run layers and report what they use", about)
    add = parser.add_argument
    add_layers_flags(parser)
    add_device(parser)
    add("--values", choices=get_args(Values), default="exact", help="exact: bit for bit; off: plan memory only")
    add_opening_flags(parser)
    advice = "do not look for what would fit, or be faster, and what the cycles hang on"
    add_switches(parser, {"--no-suggestions": advice})
    add("-v", "--verbose", action="store_true", help="every buffer, what each stage does, and all advice")
    summary = "of several layers, one line for each alone"
    add_switches(parser, {"--summary": summary, "--json": "print JSON instead of tables"})
    add("--report", type=Path, metavar="DIR", help="write what ttnn-visualizer and tt-perf-report open, for each layer")
    add("--html", type=Path, metavar="FILE", help="write a page that needs nothing else, too")
    add("--baseline", type=Path, metavar="FILE", help="lay an earlier run --json of the same layers over that page")


def run_command(options: argparse.Namespace) -> int:
    """Run the chosen layers; one that fails does not stop the others. Returns the exit code."""
    if options.baseline and not options.html:
        raise ArgumentError("run: --baseline is laid over the page of --html; give --html FILE as well")
    baselines = read_layers(options.baseline, "run") if options.baseline else {}
    settings = settings_of(options, values=options.values, suggestions=not options.no_suggestions)
    layers, results = chosen_layers(options, where="run"), []
    with progress("layers") as begin:
        done = begin(len(layers))
        for layer in layers:
            results.append(run_layer(layer, settings, watch=_saver(options.report, layer.name)))
            done()
    if options.html is not None:
        options.html.write_text(page_html(page_of_layers(results, settings.spec, baselines)), encoding="utf-8")
    if options.json:
        print(layers_as_json(results))
    else:
        print_layers(console(), results, each=not options.summary, details=options.verbose)
        ran = [result.layer for result in results if result.error is None]
        if settings.suggestions and (line := faster_line(ran, settings)):
            print(line)
    return int(any(result.error is not None for result in results))


def _saver(folder: Path | None, layer: str) -> Callable[[Profile], object] | None:
    """Writes what a layer did into a folder, if there is one, under the layer's name beside earlier reports."""
    if folder is None:
        return None
    return lambda profile: save_report(folder, profile, name=reserved_name(folder, file_name(layer)))


def devices_command(options: argparse.Namespace) -> int:
    """Show devices. Returns the exit code."""
    if options.only and not options.explain:
        raise ArgumentError("devices: --only chooses among the fields of --explain; give both or neither")
    names = [with_changes(name, options.changes) for name in options.names or catalog_names()]
    if not options.explain:
        specs = [load_spec(name) for name in names]
        print(devices_as_json(specs)) if options.json else print_devices(console(), specs)
        return 0
    devices = []
    for name in names:
        with progress(f"fields of {name}") as begin:
            devices.append(explained(name, options.only, watch=begin))
    if options.json:
        print(fields_as_json(devices))
        return 0
    for device in devices:
        print_fields(console(), device)
    return 0


def exec_command(options: argparse.Namespace) -> int:
    """Run a script; an error that it raises is shown as Python would show it, and steers no terminal.

    Returns the exit code.
    """
    options.script.open("rb").close()  # a script that is not there is told in one line
    variables = chosen(options)
    try:
        with environment(variables):
            errors = Console(stderr=True)
            tell = partial(say, errors, indent=2)
            tuned = run_script(options.script, options.arguments, options.report, tell, tunes=options.tune)
        if tuned:
            print(tuned)
    except (Exception, KeyboardInterrupt) as error:
        sys.stdout.flush()
        if variables.get(TRACEBACK_VARIABLE) is None:
            error.__traceback__ = within(error.__traceback__, options.script)
        with environment(variables), shortened(error):
            lines = traceback.format_exception(error)
        sys.stderr.write("\t".join(map(printable_lines, "".join(lines).split("\t"))))
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def compare_command(options: argparse.Namespace) -> int:
    """Compare two reports. Returns the exit code."""
    comparison = compare(*(read_report(path, options.device_id) for path in (options.before, options.after)))
    if options.html is not None:
        page = page_of_comparison(comparison, (str(options.before), str(options.after)))
        options.html.write_text(page_html(page), encoding="utf-8")
    print(comparison)
    if options.fail_over is None or not comparison.fails(options.fail_over):
        return 0
    print(f"ttsim: compare: it takes longer by more than {100 * options.fail_over:g} %", file=sys.stderr)
    return 1


def percent_share(text: str) -> float:
    """A share, from 5 or 5%; raises ArgumentTypeError for anything else."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise argparse.ArgumentTypeError(f"give a percentage from 0 on, such as 5%, not {shown(text)}")
    return share


def pytest_command(options: argparse.Namespace) -> int:
    """Run tests. Returns the exit code."""
    with environment(chosen(options)):
        return run_tests(options.arguments)


def console() -> Console:
    """A console that keeps tables whole when it writes to a pipe."""
    return Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_A_PIPE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; a mistake in it is told in one line. Returns the exit code."""
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if options.command == "pytest":
        options.arguments = rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    own = options.command not in ("exec", "pytest")  # what scripts make of SIGTERM is theirs
    try:
        with ending_on_sigterm() if own else nullcontext():
            code: int = options.run(options)
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        code, word = ending_of(interrupt)
        sys.stderr.write(f"ttsim: {word}\n")
    except (TTSimError, OSError, MemoryError) as error:
        print(f"ttsim: {printable(described(error))}", file=sys.stderr)
        return 2
    return code


def described(error: BaseException) -> str:
    """An error in a line; a path that is too long for one is cut."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.strerror}: {shown(str(error.filename), LONGEST_PATH)}"
    return str(error) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
