"""Files of budgets: the subject, device and budgeted figures of each entry.

A file has one ``[[budget]]`` table per entry. An entry names one subject of `SUBJECTS`, and figures of `FIGURES`.
Keys of `SETTINGS` may be set above all tables, for every entry, or in an entry.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from device.errors import ArgumentError, TTSimError, nearest, shown
from ops.sensitivity.changes import load_spec, with_changes
from ttsim.report.comparison import Reported
from ttsim.report.reported import LONGEST_PATH
from ttsim.runtime.settings import SPEC_VARIABLE, STRICT_VARIABLE, USUAL_L1_SMALL_SIZE, VALUES_VARIABLE, Values
from ttsim.runtime.types.layer import Layer
from ttsim.study.ask.question import call_of, checked_fields
from ttsim.study.layers.read import DEFAULT_LAYERS, check_keys, layer_of, layers_said, read_layers, read_toml
from ttsim.study.layers.run import compute_config, conv_config, slice_config
from ttsim.study.space import device_beside

DEFAULT_BAND_PERCENT: Final = 2
NANOSECONDS_OF_A_MICROSECOND: Final = 1000
LARGEST: Final = 2**63  # integers of TOML are below
OPERATIONS, OPERATION_CYCLES = "operations", "operation_cycles"

Number = int | Fraction
Names = tuple[str, ...]


def _microseconds(nanoseconds: int | None) -> Number | None:
    return None if nanoseconds is None else Fraction(nanoseconds, NANOSECONDS_OF_A_MICROSECOND)


# The figures that an entry may limit, and how a report gives them; None where the report does not know one
FIGURES: Final[Mapping[str, Callable[[Reported], Number | None]]] = {
    "cycles": lambda report: report.cycles,
    "time_us": lambda report: _microseconds(report.whole_nanoseconds),
    "time_ns": lambda report: report.whole_nanoseconds,
    "trace_replay_us": lambda report: _microseconds(report.replay_nanoseconds),
    "l1_peak_bytes": lambda report: report.l1_peak_bytes,
    "dram_bytes": lambda report: report.dram_bytes,
    OPERATIONS: lambda report: len(report.operations),
}
OF_KERNELS: Final = ("cycles", "time_us", "time_ns")  # figures of kernel time
OF_TIME: Final = (*OF_KERNELS, "trace_replay_us")


@dataclass(frozen=True, slots=True)
class Script:
    """A script that imports ttnn and opens one device, which is measured."""

    path: Path
    arguments: tuple[str, ...]
    variables: Mapping[str, str]  # Environment variables that choose its device


# What an entry measures; a path is that of a report, a mapping a call of an operation by the fields of `ttsim ask`
Subject = Layer | Path | Script | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An entry of a file."""

    name: str
    line: int  # Of the entry in the file, from 1
    subject: Subject
    device: str  # Text for `load_spec`; empty for a report
    l1_small_size: int
    strict: bool
    band: Fraction  # Share of a budget by which a measured figure may differ from it
    figures: Mapping[str, Number | Names]  # Budgets in the file's order; `OPERATIONS` is a count, or names
    operation_cycles: tuple[int, ...] | None  # Of the named operations, which explain a change; None if left out


class BudgetFile(NamedTuple):
    """A file of budgets."""

    path: Path
    text: str
    document: dict[str, Any]
    budgets: tuple[Budget, ...]


SETTINGS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "device": ("a name or a file", lambda value: isinstance(value, str)),
    "set": ("a list of changes, such as ['dram.banks=16']", lambda value: _is_list_of(value, str)),
    "release": ("the name of a release", lambda value: isinstance(value, str)),
    "l1_small_size": ("an integer of at least 0", lambda value: _is_whole(value)),
    "strict": ("true or false", lambda value: isinstance(value, bool)),
    "band_percent": ("a number of at least 0", lambda value: _is_number(value)),
}
OF_DEVICE: Final = ("device", "set", "release", "strict")
# The subjects of entries, and the keys that go with each
SUBJECTS: Final[Mapping[str, Sequence[str]]] = {
    "layer": (*OF_DEVICE, "l1_small_size"),
    "op": (*OF_DEVICE, "l1_small_size", "args", "kwargs"),
    "report": (),
    "script": (*OF_DEVICE, "arguments", "values"),
}
FILE_KEYS: Final = (*SETTINGS, "layers", "common", "layer", "budget")
# The head of a table: one bracket or two, and its name
HEAD: Final = re.compile(r"^[ \t]*(\[\[?)[ \t]*([^\[\],=\n]*?)[ \t]*\]\]?[ \t]*(?:#.*)?\r?$", re.MULTILINE)
ENTRY_HEAD: Final = ("[[", "budget")


def read_budgets(path: Path, *, device: str | None = None, changes: Sequence[str] = ()) -> BudgetFile:
    """The budgets of a file. `device` replaces each entry's device but keeps its changes; `changes` are applied last.

    Raises ArgumentError with file, line and entry for an invalid entry; OSError if a file cannot be read.
    """
    document, text = read_toml(path, "a file of budgets"), path.read_bytes().decode()
    check_keys(str(path), document, FILE_KEYS)
    tables = document.get("budget")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise ArgumentError(f"{path}: a file of budgets has at least one [[budget]] table")
    common = {name: value for name, value in document.items() if name in SETTINGS}
    _check_settings(str(path), common)
    reader = _Reader(path, common, layers_said(document, path) or read_layers(DEFAULT_LAYERS), device, changes)
    budgets = tuple(map(reader.budget, entry_lines(text, len(tables)), tables))
    for name, count in Counter(budget.name for budget in budgets).items():
        if count > 1:
            raise ArgumentError(
                f'{path}: {count} budgets are called {shown(name)}; give each a name = "..." of its own'
            )
    return BudgetFile(path, text, document, budgets)


def entry_spans(text: str, entries: int) -> list[tuple[int, int]]:
    """The start of each [[budget]] table and of the next table, as offsets in the text.

    Empty if the file writes its entries in another form.
    """
    heads = [(head.start(), head.groups()) for head in HEAD.finditer(text)]
    spans = [(start, end) for (start, head), (end, _) in pairwise([*heads, (len(text), ())]) if head == ENTRY_HEAD]
    return spans if len(spans) == entries else []


def entry_lines(text: str, entries: int) -> list[int]:
    """The line of each entry, from 1; 1 for all entries if they are not [[budget]] tables."""
    return [text.count("\n", 0, start) + 1 for start, _ in entry_spans(text, entries)] or [1] * entries


def _check_settings(where: str, table: Mapping[str, Any]) -> None:
    for name, (wanted, accepts) in SETTINGS.items():
        if name in table and not accepts(table[name]):
            raise ArgumentError(f"{where}: {name} must be {wanted}, not {shown(table[name])}")


class _Reader(NamedTuple):
    """Reads the entries of a file."""

    path: Path
    common: Mapping[str, Any]  # Settings of all entries
    layers: Sequence[Layer]  # That entries name
    device: str | None  # Instead of each entry's
    changes: Sequence[str]  # Of every device, behind its own

    def budget(self, line: int, table: Mapping[str, Any]) -> Budget:
        """The budget of an entry; raises ArgumentError."""
        kinds = [kind for kind in SUBJECTS if kind in table]
        called = next((text for text in (table.get("name"), *map(table.get, kinds)) if isinstance(text, str)), "")
        where = f"{self.path}:{line}: budget {shown(called)}" if called else f"{self.path}:{line}"
        if len(kinds) != 1:
            given = f", not by {' and '.join(kinds)}" if kinds else ""
            raise ArgumentError(f"{where}: name what is measured, by one of the keys {', '.join(SUBJECTS)}{given}")
        (kind,) = kinds
        check_keys(where, table, ("name", kind, *SUBJECTS[kind], "band_percent", *FIGURES, OPERATION_CYCLES))
        _check_settings(where, table)
        settings = {**self.common, **table}
        device = "" if kind == "report" else self._device(where, settings)
        subject = self._subject(where, kind, settings, device)
        name = table.get("name", subject.name if isinstance(subject, Layer) else table[kind])
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"{where}: name must be a text, not {shown(name)}")
        figures, cycles = _figures(where, table)
        return Budget(
            name=name,
            line=line,
            subject=subject,
            device=device,
            l1_small_size=settings.get("l1_small_size", USUAL_L1_SMALL_SIZE),
            strict=settings.get("strict", True),
            band=Fraction(repr(settings.get("band_percent", DEFAULT_BAND_PERCENT))) / 100,
            figures=figures,
            operation_cycles=cycles,
        )

    def _device(self, where: str, settings: Mapping[str, Any]) -> str:
        """The device of an entry, with all changes."""
        name = self.device or settings.get("device")
        if name is None:
            raise ArgumentError(f'{where}: name the device in front of all tables, such as device = "n150"')
        release = [f"release={settings['release']}"] if "release" in settings else []
        # Scripts may change the folder before they open the device
        base = device_beside(Path("here" if self.device else self.path).absolute(), name)
        with _named(where):
            device = with_changes(base, [*settings.get("set", ()), *release, *self.changes])
            load_spec(device)
        return device

    def _subject(self, where: str, kind: str, table: Mapping[str, Any], device: str) -> Subject:
        if kind == "layer":
            return self._layer(where, table["layer"])
        if kind == "op":
            question = {
                name: table[name] for name in ("op", "args", "kwargs", "l1_small_size", "strict") if name in table
            }
            question["device"] = device
            with _named(where):
                call_of(checked_fields(question))
            return question
        if not isinstance(table[kind], str) or not table[kind]:
            raise ArgumentError(f"{where}: {kind} must be the path of a file, not {shown(table[kind])}")
        path: Path = self.path.parent / table[kind]
        try:
            path.open("rb").close()  # a file that is not there is an error of the entry
        except OSError as error:
            raise ArgumentError(f"{where}: {shown(str(path), LONGEST_PATH)}: {error.strerror}") from None
        if kind == "report":
            return path
        arguments, values = table.get("arguments", []), table.get("values", "off")
        if not _is_list_of(arguments, str):
            raise ArgumentError(f"{where}: arguments must be a list of texts, not {shown(arguments)}")
        if values not in get_args(Values):
            raise ArgumentError(f"{where}: values must be one of {', '.join(get_args(Values))}, not {shown(values)}")
        strict = "1" if table.get("strict", True) else "0"
        variables = {SPEC_VARIABLE: device, VALUES_VARIABLE: values, STRICT_VARIABLE: strict}
        return Script(path, tuple(arguments), variables)

    def _layer(self, where: str, said: Any) -> Layer:
        """The layer of a name or a table, with checked configs."""
        if isinstance(said, Mapping):
            layer = layer_of(said, where=f"{where}: layer")
        else:
            known = {layer.name: layer for layer in self.layers}
            if not isinstance(said, str) or said not in known:
                near = nearest(str(said), known) or f"; the layers are {', '.join(known)}"
                raise ArgumentError(f"{where}: no layer is called {shown(said)}{near}")
            layer = known[said]
        with _named(where):
            conv_config(layer), compute_config(layer, None), slice_config(layer)
        return layer


@contextmanager
def _named(where: str) -> Iterator[None]:
    """A context that adds the entry's name to errors."""
    try:
        yield
    except TTSimError as error:
        raise ArgumentError(f"{where}: {error}") from error


def _figures(where: str, table: Mapping[str, Any]) -> tuple[dict[str, Number | Names], tuple[int, ...] | None]:
    """The figures of an entry, and the cycles of its named operations; raises ArgumentError."""
    figures = {name: _figure(f"{where}: {name}", name, table[name]) for name in table if name in FIGURES}
    if not figures:
        raise ArgumentError(
            f"{where}: no figure is limited; write one or more of {', '.join(FIGURES)} (0 until --update fills it in)"
        )
    cycles = table.get(OPERATION_CYCLES)
    if cycles is None:
        return figures, None
    if not isinstance(cycles, list) or not all(map(_is_whole, cycles)):
        raise ArgumentError(
            f"{where}: {OPERATION_CYCLES} must be a list of integers of at least 0, not {shown(cycles)}"
        )
    operations = figures.get(OPERATIONS)
    if not isinstance(operations, tuple) or len(cycles) not in (0, len(operations)):
        raise ArgumentError(
            f"{where}: {OPERATION_CYCLES} has an integer for each name of {OPERATIONS} = [...]; write both lists"
        )
    return figures, tuple(cycles)


def _figure(where: str, name: str, value: Any) -> Number | Names:
    """The budget of a figure; raises ArgumentError."""
    if _is_whole(value):
        return int(value)
    if name == OPERATIONS and _is_list_of(value, str):
        return tuple(value)
    if name.endswith("_us") and _is_number(value):
        exact = Fraction(repr(value))
        if (exact * NANOSECONDS_OF_A_MICROSECOND).denominator == 1:
            return exact
    wanted = "a number with three decimals or fewer," if name.endswith("_us") else "an integer"
    names = ", or a list of the names of device operations" if name == OPERATIONS else ""
    large = "; budgets are below 2^63" if isinstance(value, int | float) and value >= LARGEST else ""
    raise ArgumentError(f"{where} must be {wanted} from 0 on{names}, not {shown(value)}{large}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and 0 <= value < LARGEST)


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)
