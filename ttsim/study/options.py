"""The grammar of the command line: `OPTIONS` defines every option once, and each command lists its options."""

import argparse
import errno
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any, Final, NoReturn, get_args

from device.errors import ArgumentError, SpecError, nearest, shown
from device.spec.device_spec import catalog_name
from device.spec.releases import DEFAULT_RELEASE, release_names, release_of
from ops.planners.conv.arguments import Lowering
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.report.formatting import short_name
from ttsim.report.sections import Page
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.terminal import progress
from ttsim.runtime.settings import (
    DEFAULT_SPEC,
    FALLBACK_VARIABLE,
    FALLBACKS,
    SPEC_VARIABLE,
    STRICT_VARIABLE,
    USUAL_L1_SMALL_SIZE,
    VALUES_VARIABLE,
    Values,
    default_spec,
)
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE
from ttsim.runtime.types.layer import FIELDS, KINDS, integers, whole_number
from ttsim.study.layers.read import DEFAULT_LAYERS
from ttsim.study.layers.run import Settings
from ttsim.study.tune.space import ALLOWED, SEARCHED, SHORT
from ttsim.study.tune.tune import EFFORT

WIDTH_OF_HELP: Final = 78  # characters of a line
LONGEST_MESSAGE: Final = 1000  # characters of an error of the parser
STDOUT: Final = Path("-")
GITHUB: Final = "github"  # workflows whose annotations are written


def result_file(text: str) -> Path:
    """The file of a result; raises ArgumentTypeError for the name of a device or of a source file.

    So `ttsim devices --json n150`, where n150 was meant as a device, does not write a file n150.
    """
    path = Path(text)
    if catalog_name(text) is not None or path.suffix in (".toml", ".py"):
        raise argparse.ArgumentTypeError(f"{shown(text)} is read, not written; give it before the flag, or name a FILE")
    return path


def release_change(text: str) -> str:
    """The change that sets the release of a device; raises ArgumentTypeError for an unknown release."""
    try:
        release_of(text)
    except SpecError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return f"release={text}"


def percent_share(text: str) -> float:
    """A share, from 5 or 5%; raises ArgumentTypeError for anything else."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise argparse.ArgumentTypeError(f"give a percentage from 0 on, such as 5%, not {shown(text)}")
    return share


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def varied(text: str) -> tuple[str, list[str]]:
    """A setting and its values; raises ArgumentTypeError if either is missing."""
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise argparse.ArgumentTypeError(f"what is varied is KEY=VALUE,VALUE, not {shown(text)}")
    return key, [value.strip() for value in values.split(",")]


Option = Mapping[str, Any]  # Arguments of argparse's add_argument
_SWITCH: Final[Option] = {"action": "store_true"}
_SEVERAL: Final[Option] = {"action": "append", "default": []}
_NUMBER: Final[Option] = {"type": whole_number, "metavar": "N"}
_FILE: Final[Option] = {"type": Path, "metavar": "FILE"}
_RESULT: Final[Option] = {"type": result_file, "metavar": "FILE"}
_NAMES: Final[Option] = {"type": names, "default": (), "metavar": "FIELD,..."}
LAYER_FLAGS: Final = {"--" + name.replace("_", "-"): name for name in FIELDS if name != "source"}
OPTIONS: Final[Mapping[str, Option]] = {
    # layers
    "--layers": {**_FILE, "help": f"TOML file of layers (default: {DEFAULT_LAYERS.name})"},
    "--only": {"default": "", "metavar": "TEXT", "help": "the layers, or fields, whose name contains this"},
    "--shape": {"type": integers, "metavar": "N,H,W,C", "help": "of the input, all four at once"},
    **{flag: {"help": FIELDS[name].metadata["help"], **KINDS[name].flag} for flag, name in LAYER_FLAGS.items()},
    # the device and what it computes
    "--device": {
        "metavar": "NAME|FILE",
        "help": f"name, such as n150, or TOML file of a device (default: ${SPEC_VARIABLE}, or {DEFAULT_SPEC})",
    },
    "--set": {
        **_SEVERAL,
        "dest": "changes",
        "metavar": "FIELD=VALUE",
        "help": "change a field of the device, such as dram.banks=16, l1.bytes=2MiB, grid=9x7; may be repeated",
    },
    "--release": {
        **_SEVERAL,
        "dest": "changes",
        "type": release_change,
        "metavar": "NAME",
        "help": f"release whose rules plan: {', '.join(release_names())} (default: the device's, {DEFAULT_RELEASE})",
    },
    "--values": {"choices": get_args(Values), "help": f"off: plans and times only; in scripts {VALUES_VARIABLE}"},
    "--lowering": {
        "choices": tuple(Lowering),
        "default": Lowering.ZERO_INSERTION.value,
        "help": "how layers are computed: by zero_insertion, as ttnn does, or in a way that ttnn does not have",
    },
    "--l1-small-size": {**_NUMBER, "help": f"bytes of L1 for index tables (default: {USUAL_L1_SMALL_SIZE})"},
    "--no-strict": {
        **_SWITCH,
        "help": f"accept what the real library computes wrongly; in scripts {STRICT_VARIABLE}=0",
    },
    "--fallback": {
        "choices": FALLBACKS,
        "help": f"host: compute there what is not simulated, without a plan or a time; sets {FALLBACK_VARIABLE}",
    },
    "--traceback": {**_SWITCH, "help": f"show the frames inside ttsim of an error; sets {TRACEBACK_VARIABLE}=1"},
    # results
    "--json": {**_RESULT, "nargs": "?", "const": STDOUT, "help": "write JSON; without FILE to stdout, with no text"},
    "--csv": {**_RESULT, "help": "write a table of all rows"},
    "--counts": {**_RESULT, "help": "write the actions of all layers together as YAML for Accelergy"},
    "--html": {**_RESULT, "help": "write a page that opens offline"},
    "--baseline": {**_FILE, "help": "lay an earlier run --json of the same layers over the page of --html"},
    "--report": {"type": Path, "metavar": "DIR", "help": "write files for ttnn-visualizer and tt-perf-report"},
    "--quiet": {**_SWITCH, "help": "print results and errors only"},
    "--verbose": {**_SWITCH, "help": "print every operation, buffer and stage, and all advice"},
    "--summary": {**_SWITCH, "help": "print one line for each layer"},
    "--energy": {**_SWITCH, "help": "print energy and power by operation and part of the machine"},
    "--dram": {**_SWITCH, "help": "print row hits, refresh and the rate that GDDR6 would give, by operation"},
    "--links": {
        "nargs": "?",
        "const": "",
        "metavar": "OPERATION",
        "help": "print the busiest link of the networks by operation, and draw all links of one: its number or a part "
        "of its name (default: whose busiest link is busy longest); --json and --html have them, too",
    },
    "--no-suggestions": {**_SWITCH, "help": "do not search for configs that fit or are faster"},
    # tune, sweep and design
    "--allow": {**_NAMES, "help": f"also change fields that change the result: {', '.join((*SHORT, *ALLOWED))}"},
    "--keep": {**_NAMES, "help": f"do not change: {', '.join(SEARCHED)}"},
    "--effort": {**_NUMBER, "default": EFFORT, "help": f"calls to try (default: {EFFORT})"},
    "--vary": {
        **_SEVERAL,
        "type": varied,
        "metavar": "KEY=V,V",
        "help": "values of a setting, such as shard_layout=none,HEIGHT_SHARDED or dram.banks=6,12; may be repeated",
    },
    "--evaluations": {**_NUMBER, "help": "look at N machines only, chosen by an optimizer (needs optuna)"},
    "--seed": {**_NUMBER, "default": 0, "help": "of the optimizer (default: 0)"},
    "--file": {**_FILE, "help": "JSONL file of rows; points that have a row in it are not run again"},
    "--processes": {**_NUMBER, "help": "number of processes (default: one for each core if there are many points)"},
    "--scheduler": {"metavar": "ADDRESS", "help": "scheduler of dask.distributed, such as tcp://127.0.0.1:8786"},
    "--top": {**_NUMBER, "default": 1, "help": "print the N fastest points of each layer (default: 1)"},
    # ask
    "--socket": {"type": Path, "metavar": "PATH", "help": "answer on a Unix socket, until interrupted, not on stdin"},
    "--timeout": {
        "type": float,
        "default": 60.0,
        "metavar": "SECONDS",
        "help": "of a question; 0 for any (default: 60)",
    },
    # check
    "--junit": {**_RESULT, "help": "write JUnit XML, with a test case for each figure"},
    "--annotations": {
        "choices": (GITHUB, "none"),
        "help": "mark the entries of budgets that do not hold; default: in workflows of GitHub",
    },
    "--update": {**_SWITCH, "help": "write the measured figures over those that do not hold"},
    # compare, devices and exec
    "--fail-over": {"type": percent_share, "metavar": "PERCENT", "help": "exit with 1 if it takes longer by more"},
    "--device-id": {**_NUMBER, "help": "which device of a CSV with several"},
    "--explain": {**_SWITCH, "help": "print each field's unit, source and effects; takes 24 s for all fields"},
    "--record": {**_RESULT, "help": "write the calls of the script's device, by which `ttsim design` judges machines"},
    "--tune": {**_SWITCH, "help": "find the best configs of all convolutions and their output layouts"},
}
GONE: Final = {"--plot": "--html FILE writes a page", "--across": "the page of --html has a choice of two settings"}
SHORT_FLAGS: Final = {"--quiet": "-q", "--verbose": "-v"}
LAYERS: Final = ("--layers", "--only", "--shape", *LAYER_FLAGS)
DEVICE: Final = ("--device", "--set", "--release")
OPENING: Final = ("--l1-small-size", "--no-strict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its texts, the names of its options, and its positional arguments."""

    name: str
    group: str  # A heading of `ttsim --help`
    help: str  # A line of `ttsim --help`
    about: str
    run: Callable[[argparse.Namespace], int]  # Returns the exit code
    options: Sequence[str]
    examples: Sequence[str]  # Command lines that work, without the name of the program
    places: Mapping[str, Option] = field(default_factory=dict)  # Arguments without a flag
    changes: Mapping[str, Option] = field(default_factory=dict)  # Of options that differ in this command
    passes_on: bool = False  # Unknown flags are for another program


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with the nearest valid spelling."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -1,8,8,32 and -5% are values, too, which are refused

    def error(self, message: str) -> NoReturn:
        """Raises ArgumentError."""
        command = self.prog.partition(" ")[2]
        where = f"{command}: " if command else ""
        raise ArgumentError(short_name(f"{where}{message}; see {self.prog} --help", LONGEST_MESSAGE))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = [] if action.choices is None else list(map(str, action.choices))
        if known and value not in known:
            text = f"{shown(value)} is none of {', '.join(known)}{nearest(str(value), known)}"
            raise argparse.ArgumentError(action, text)


def parser_of(commands: Iterable[Command], version: type[argparse.Action]) -> Parser:
    """The parser of the whole command line."""
    formatter = argparse.RawDescriptionHelpFormatter
    groups: dict[str, list[str]] = {}
    for command in commands:
        groups.setdefault(command.group, []).append(f"  {command.name:<12}{command.help}\n")
    listed = "\n".join(f"{group}:\n{''.join(lines)}" for group, lines in groups.items())
    about = f"ttsim runs transposed convolutions on simulated Tenstorrent devices.\n\n{listed}"
    end = "`ttsim COMMAND --help` lists the flags of a command, with an example."
    usage = "ttsim COMMAND [flags]"
    parser = Parser(prog="ttsim", usage=usage, description=about, epilog=end, formatter_class=formatter)
    parser.add_argument("--version", action=version, nargs=0, help="print the versions of ttsim, ttnn and the model")
    inner = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for command in commands:
        places = " ".join(f"[{name}]" if "nargs" in how else name for name, how in command.places.items())
        own = inner.add_parser(
            command.name,
            prog=f"ttsim {command.name}",
            usage=f"ttsim {command.name} [flags] {places}".rstrip(),
            description=fill(command.about, WIDTH_OF_HELP),
            epilog="\n".join(["examples:", *(f"  ttsim {command.name} {example}" for example in command.examples)])
            if command.examples
            else None,
            formatter_class=formatter,
            allow_abbrev=not command.passes_on,
        )
        own.set_defaults(run=command.run)
        for name, how in command.places.items():
            own.add_argument(name.lower(), metavar=name, **how)
        group = own.add_argument_group("layers") if "--shape" in command.options else own
        for name in command.options:
            spellings = [SHORT_FLAGS[name], name] if name in SHORT_FLAGS else [name]
            how = {**OPTIONS[name], **command.changes.get(name, {})}
            (group if name in LAYERS else own).add_argument(*spellings, **how)
    return parser


def parsed(commands: Sequence[Command], parser: Parser, words: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line; raises ArgumentError for an invalid one, SystemExit after the help text."""
    options, rest = parser.parse_known_args(words)
    command = next(command for command in commands if command.name == options.command)
    if command.passes_on:
        options.arguments = rest
    elif rest:
        flag = next((word.partition("=")[0] for word in rest if word.startswith("-")), "")
        near = f"; {GONE[flag]}" if flag in GONE else nearest(flag, command.options)
        wrong = f"unknown flag {shown(flag)}{near}" if flag else f"unexpected argument {shown(rest[0])}"
        raise ArgumentError(f"{command.name}: {wrong}; see ttsim {command.name} --help")
    _require_places(command, options)
    return options


def _require_places(command: Command, options: argparse.Namespace) -> None:
    """Raises OSError for a result file that cannot be written, ArgumentError for two results in one file.

    The check runs before the command, so that no computed result is lost.
    """
    places: dict[Path, str] = {}
    for flag in command.options:
        path = getattr(options, flag.removeprefix("--").replace("-", "_"), None)
        if OPTIONS[flag].get("type") is result_file and path is not None and path != STDOUT:
            _require_writable(path)
            if path in places:
                raise ArgumentError(
                    f"{command.name}: {places[path]} and {flag} write {shown(str(path))}; name two files"
                )
            places[path] = flag
    folder: Path | None = getattr(options, "report", None)
    if folder is not None:
        _require_writable(folder, folder=True)


def _require_writable(path: Path, *, folder: bool = False) -> None:
    """Raises OSError if a file, or a folder with its parents, cannot be created at a path."""
    there = path.absolute()
    while not there.exists() and (folder or there == path.absolute()):
        there = there.parent
    if not there.exists():
        problem = errno.ENOENT
    elif there.is_dir() is not (folder or there != path.absolute()):
        problem = errno.EISDIR if there.is_dir() else errno.ENOTDIR
    elif not os.access(there, os.W_OK):
        problem = errno.EACCES
    else:
        return
    raise OSError(problem, os.strerror(problem), str(path))


def chosen_device(options: argparse.Namespace) -> str:
    """The device of the flags, or else of the environment, with its changes, as a text for `load_spec`."""
    return with_changes(options.device or default_spec(), options.changes)


def settings_of(options: argparse.Namespace, *, values: Values, suggestions: bool) -> Settings:
    """The settings of flags that select and open a device; raises SpecError for an unknown device."""
    small = USUAL_L1_SMALL_SIZE if options.l1_small_size is None else options.l1_small_size
    spec, strict = load_spec(chosen_device(options)), not options.no_strict
    return Settings(spec=spec, values=values, l1_small_size=small, strict=strict, suggestions=suggestions)


def write_results(
    options: argparse.Namespace, *, page: Callable[[], Page] | None = None, **results: Callable[[], str]
) -> bool:
    """Writes the results of given flags; returns whether a result was written to stdout; raises OSError.

    `page` is the result of --html.
    """
    if page is not None:
        results["html"] = lambda: page_html(page())
    paths = {name: path for name in results if (path := getattr(options, name)) is not None}
    with progress("writing", quiet=options.quiet):
        texts = {name: results[name]() for name in paths}
    for name, path in paths.items():
        if path == STDOUT:
            sys.stdout.write(texts[name].removesuffix("\n") + "\n")
        else:
            path.write_text(texts[name], encoding="utf-8", newline="")
    return STDOUT in paths.values()
