"""What users see around calls: files of reports, the command line, and public names."""

import gzip
import inspect
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Final

import ttsim
from tools.golden.answers import ROOT, Aspects, execute, lines_of, namespace, opened, outcome, plain
from tools.golden.calls import Call
from tools.golden.store import Sections, titled

EVERY: Final = 40  # calls of a group of which the first one's files are recorded


def exported(call: Call) -> bool:
    """Whether the files of a call are recorded."""
    return call.number % (EVERY // 4 if call.group in ("network", "trace", "repeated") else EVERY) == 0


def export_aspects(call: Call, device: str) -> Aspects:
    """The files that `save_report` writes of a call, whether it runs or fails."""
    with opened(call, device, strict=False) as simulated, ttsim.profile(simulated) as profile:
        names = namespace(simulated, random=False)
        aspects = outcome(lambda: execute(call.given, names), named="given")
        if not aspects:
            aspects |= outcome(lambda: execute(call.text, names), named="result")
        with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
            aspects |= outcome(lambda: ttsim.save_report(Path(temporary), profile), named="saving")
            return aspects | _files(Path(temporary), Path(temporary))


def _files(folder: Path, within: Path) -> Aspects:
    """The files below a folder, by their paths within another one."""
    paths = sorted(path for path in within.rglob("*") if path.is_file())
    return {f"file {path.relative_to(folder).as_posix()}": plain(_file_text(path)) for path in paths}


def _file_text(path: Path) -> str:
    """A file as text with short lines: databases as statements, JSON as lines of figures and words."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(path)) as database:
            return "\n".join(database.iterdump())
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8", errors="backslashreplace")
    return lines_of(json.loads(text)) if path.name.endswith((".json", ".json.gz")) else text


# What a command finds in its folder; those that end in .txt have their name without that.
FILES: Final = Path(__file__).with_name("files")
# Columns of the terminal, and arguments, by name.
COMMANDS: Final[dict[str, list[Any]]] = tomllib.loads(
    Path(__file__).with_name("commands.toml").read_text(encoding="utf-8")
)
LAYER_IN_JSON: Final = "run --shape 1,16,16,32 --out-channels 16 --stride 2 --values off --no-suggestions --json"
BEFORE_COMPARE: Final = {"before.json": "", "after.json": " --config act_block_h_override=32"}


def command_sections(name: str) -> Sections:
    """Exit status, output, error output and written files of a command, run in a folder of its own."""
    columns, arguments = COMMANDS[name]
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        folder = Path(temporary)
        (folder / "out").mkdir()
        for path in FILES.iterdir():
            shutil.copy(path, folder / path.name.removesuffix(".txt"))
        for file, more in BEFORE_COMPARE.items() if arguments.startswith("compare") else ():
            (folder / file).write_text(_run(LAYER_IN_JSON + more, folder, 80).stdout, encoding="utf-8")
        ended = _run(arguments, folder, columns)
        aspects = {"arguments": arguments, "exit status": f"{ended.returncode}"}
        aspects |= {"output": plain(ended.stdout), "error output": plain(ended.stderr)}
        return titled(name, aspects | _files(folder, folder / "out"))


def _run(arguments: str, folder: Path, columns: int) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a folder, as in a terminal without colors that is so many columns wide."""
    chosen = {"COLUMNS": f"{columns}", "NO_COLOR": "1", "PYTHONPATH": f"{ROOT}", "PYTHONWARNINGS": "ignore"}
    own = ("TTSIM_", "TTNN_", "PYTEST_")
    return subprocess.run(
        [sys.executable, "-m", "ttsim", *arguments.split()],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(own)} | chosen,
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
        stdin=subprocess.DEVNULL,
    )


# Modules that ttnn has, too, and those that users import for themselves. The pytest plugin gives fixtures, which the
# command line's pytest runs.
MODULES: Final = [
    "graph",
    "onednn",
    "errors",
    "experimental",
    "cluster",
    "database",
    "device",
    "tracer",
    "model_preprocessing",
    "torch",
]
PRIVATE_HOME: Final = re.compile(r"\b(?:ttsim|ops|device|tools)(?:\.\w+)*\.(?=[A-Z]\w*)")  # modules may move
FUNCTION: Final = re.compile(r"<function ([\w.<>]+) at <address>>")


def surface_sections() -> Sections:
    """Names, signatures, docstrings and the stub."""
    listed = [sys.executable, "-c", "import ttsim; print(*dir(ttsim), sep='\\n')"]  # where nothing else was imported
    names = subprocess.run(listed, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    stub = Path(ttsim.__file__).with_name("__init__.pyi")
    text = stub.read_text(encoding="utf-8") if stub.exists() else ""
    sections = titled("ttsim", {"names": names, "stub": "\n".join(sorted(re.findall(r"\b(\w+) as \1\b", text)))})
    for path, value in public():
        sections |= titled(path, _aspects(value))
    return sections


def public() -> Iterator[tuple[str, Any]]:
    """Every public name with its value; the public attributes of classes and modules with dots."""
    for name in sorted(name for name in dir(ttsim) if not name.startswith("_")):
        value = getattr(ttsim, name)
        if not isinstance(value, ModuleType):
            yield name, value
        if inspect.isclass(value):
            yield from ((f"{name}.{member}", inspect.getattr_static(value, member)) for member in _members(value))
    for module in MODULES:
        try:
            home = resolve_name(f"ttsim.{module}")
        except (ImportError, AttributeError):  # resolve_name asks the package where the import fails
            continue  # of an extra that is not installed
        for name in sorted(getattr(home, "__all__", [name for name in vars(home) if not name.startswith("_")])):
            value = getattr(home, name)
            if not isinstance(value, ModuleType):
                yield f"{module}.{name}", value


def _members(value: type) -> list[str]:
    """Public attributes of a class and of its bases, but for those of Python's own."""
    bases = [base for base in value.__mro__ if base.__module__.split(".")[0] in ("ttsim", "ops", "device")]
    return sorted({member for base in bases for member in vars(base) if not member.startswith("_")})


def _aspects(value: Any) -> Aspects:
    """Kind, signature, annotations and docstring of a value."""
    if isinstance(value, Enum) or not (callable(value) or isinstance(value, property | classmethod | staticmethod)):
        # sets have no order of their own
        shown = sorted(map(repr, value)) if isinstance(value, set | frozenset) else value
        return {"value": _plain(f"{type(value).__name__} {shown!r}")}
    target: Any = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    kinds = ", ".join(base.__name__ for base in value.__mro__) if inspect.isclass(value) else type(value).__name__
    result = {"kind": kinds, "docstring": inspect.getdoc(target) or ""}
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return result
    empty, parameters = inspect.Parameter.empty, signature.parameters.values()
    bare = [parameter.replace(annotation=empty) for parameter in parameters]
    lines = [f"returns {_annotation(signature.return_annotation)}"]
    lines += [f"{parameter.name}: {_annotation(parameter.annotation)}" for parameter in parameters]
    plainly = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return {**result, "signature": _plain(f"{plainly}"), "annotations": "\n".join(lines)}


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return "nothing"
    return _plain(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def _plain(text: str) -> str:
    """A text without the homes of classes, which users do not name, and without addresses."""
    return FUNCTION.sub("<function>", PRIVATE_HOME.sub("", plain(text)))
