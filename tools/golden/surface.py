"""The public names of ttsim: what they are, their signatures and docstrings, and the stub that type checkers read."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Final

import ttsim
from tools.golden.plain import ROOT, plain
from tools.golden.store import Sections, title

# Modules that ttnn has, too, and those that users import for themselves. The pytest plugin gives fixtures, which the
# command line's pytest runs.
MODULES: Final = (
    *("graph", "onednn", "errors", "experimental", "cluster", "database", "device", "tracer", "model_preprocessing"),
    "torch",
)
PRIVATE_HOME: Final = re.compile(r"\b(?:ttsim|ops|device|tools)(?:\.\w+)*\.(?=[A-Z]\w*)")  # modules may move
FUNCTION: Final = re.compile(r"<function ([\w.<>]+) at <address>>")


def surface_sections() -> Sections:
    """Names, signatures, docstrings and the stub."""
    listed = [sys.executable, "-c", "import ttsim; print(*dir(ttsim), sep='\\n')"]  # where nothing else was imported
    names = subprocess.run(listed, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = {title("ttsim", "names"): names}
    for path, value in public():
        found |= {title(path, aspect): text for aspect, text in _aspects(value).items()}
    stub = Path(ttsim.__file__).with_name("__init__.pyi")
    found[title("ttsim", "stub")] = "\n".join(sorted(_stub_names(stub)))
    return found


def public() -> Iterator[tuple[str, Any]]:
    """Every public name with its value; the public attributes of classes and modules with dots."""
    for name in sorted(set(dir(ttsim)) - {name for name in dir(ttsim) if name.startswith("_")}):
        value = getattr(ttsim, name)
        if isinstance(value, ModuleType):
            continue
        yield name, value
        if inspect.isclass(value):
            yield from ((f"{name}.{one}", inspect.getattr_static(value, one)) for one in _members(value))
    for module in MODULES:
        try:
            found = resolve_name(f"ttsim.{module}")
        except (ImportError, AttributeError):  # resolve_name asks the package where the import fails
            continue  # of an extra that is not installed
        for name in sorted(getattr(found, "__all__", [one for one in vars(found) if not one.startswith("_")])):
            value = getattr(found, name)
            if not isinstance(value, ModuleType):
                yield f"{module}.{name}", value


def _members(value: type) -> list[str]:
    """Public attributes of a class and of its bases, but for those of Python's own."""
    mine = {
        one
        for base in value.__mro__
        if base.__module__.split(".")[0] in ("ttsim", "ops", "device")
        for one in vars(base)
    }
    return sorted(one for one in mine if not one.startswith("_"))


def _aspects(value: Any) -> dict[str, str]:
    """Kind, signature, annotations and docstring of a value."""
    if isinstance(value, Enum) or not (callable(value) or isinstance(value, property | classmethod | staticmethod)):
        shown = (
            sorted(map(repr, value)) if isinstance(value, set | frozenset) else value
        )  # sets have no order of their own
        return {"value": _plain(f"{type(value).__name__} {shown!r}")}
    target: Any = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    kinds = ", ".join(base.__name__ for base in value.__mro__) if inspect.isclass(value) else type(value).__name__
    found = {"kind": kinds, "docstring": inspect.getdoc(target) or ""}
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return found
    lines = [f"returns {_annotation(signature.return_annotation)}"]
    bare = []
    for parameter in signature.parameters.values():
        lines.append(f"{parameter.name}: {_annotation(parameter.annotation)}")
        bare.append(parameter.replace(annotation=inspect.Parameter.empty))
    plainly = signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)
    return {**found, "signature": _plain(f"{plainly}"), "annotations": "\n".join(lines)}


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return "nothing"
    return _plain(inspect.formatannotation(annotation) if not isinstance(annotation, str) else annotation)


def _plain(text: str) -> str:
    """A text without the homes of classes, which users do not name, and without addresses."""
    return FUNCTION.sub("<function>", PRIVATE_HOME.sub("", plain(text)))


def _stub_names(path: Path) -> Iterator[str]:
    """What a stub exports, a line each: the homes of the names are not public."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    yield from re.findall(r"\b(\w+) as \1\b", text)
