"""Errors for names that ttsim does not have, and for a script's own modules that packages of ttsim shadow."""

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from opcode import opmap
from pathlib import Path
from types import FrameType, ModuleType

import ttsim
from device.errors import NotSimulatedError
from ttsim.runtime.settings import FALLBACK_VARIABLE, falls_back

PACKAGE = "ttnn"
SIBLINGS: tuple[str, ...] = vars(ttsim)["_SIBLINGS"]  # packages beside ttsim
WITH_NAMES = ("core", "experimental", "kv_cache", "transformer")  # modules of ttnn whose names are known, too
_IMPORT_FROM = opmap["IMPORT_FROM"]

# Names of releases before 0.81.1 that switch a cache of compiled kernels, of which there are none
OF_A_COMPILER = frozenset(("device.DisablePersistentKernelCache", "device.EnablePersistentKernelCache"))


def instead_of(module: ModuleType, name: str, asking: FrameType) -> object:
    """A substitute for a name that a module of ttsim does not have.

    With TTSIM_FALLBACK=host, it is a function that the host computes, if torch has it. For any other function or class
    of ttnn, it raises an error when called, so scripts can import and reference the name. Raises the error of
    `missing_name` for a name that ttnn does not have either.
    """
    __tracebackhide__ = True  # pytest reads it
    if module.__name__ not in SIBLINGS and falls_back():
        function = import_module("ttsim.runtime.fallback").stand_in(module.__name__, name)  # rarely needed
        if function is not None:
            return function
    tail = module.__name__.rpartition(".")[2]
    dotted = f"{tail}.{name}" if tail in WITH_NAMES else name
    if f"{tail}.{name}" in OF_A_COMPILER:
        return _do_nothing
    if module.__name__.partition(".")[0] in ("ttsim", PACKAGE) and dotted in names_of_ttnn() and not name.isupper():
        return _refusing(dotted, _way_out(name, f"{PACKAGE}.{tail}" if tail in WITH_NAMES else PACKAGE, dir(module)))
    raise missing_name(module, name, asking)


def _do_nothing() -> None:
    """A function that enables or disables a feature that ttsim does not have."""


@cache
def names_of_ttnn() -> frozenset[str]:
    """The public names of ttnn 0.81.1; names of the modules `WITH_NAMES` include the module; modules end in a dot."""
    return frozenset(Path(__file__).with_name("ttnn_names.txt").read_text(encoding="utf-8").split())


@cache
def _refusing(name: str, text: str) -> object:
    """A function, or a class for a capitalized name, that raises NotSimulatedError when called."""

    def refuse(*_: object, **__: object) -> None:
        raise NotSimulatedError(f"{name}: {text}")

    last = name.rpartition(".")[2]
    refuse.__name__ = refuse.__qualname__ = last
    refuse.__doc__ = f"Refuses every call: {text}."
    return type(last, (), {"__init__": refuse, "__doc__": refuse.__doc__}) if last[0].isupper() else refuse


def missing_name(module: ModuleType, name: str, asking: FrameType) -> Exception:
    """The one-line error for a name that a module does not have, with the name that the accessing code uses.

    It names a module of the script that a package of ttsim shadows. For a module of ttnn it gives an alternative, the
    nearest names, and how to list all names. An ImportError for ``from`` imports, else an AttributeError.
    """
    tail = module.__name__.rpartition(".")[2]
    own = f"{PACKAGE}.{tail}" if module.__name__.startswith("ttsim.") else module.__name__
    owner = next((alias for alias, value in {**asking.f_globals, **asking.f_locals}.items() if value is module), own)
    rest = "" if name.startswith("_") else shadowed(module.__name__)
    if not name.startswith("_") and not rest and module.__name__ not in SIBLINGS:
        rest = _way_out(name, owner, [known for known in dir(module) if not known.startswith("_")])
    rest = rest and f": {rest}"
    if asking.f_code.co_code[asking.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {owner!r}{rest}", name=owner)
    return AttributeError(f"module {owner!r} has no attribute {name!r}{rest}", name=name, obj=module)


def _way_out(name: str, owner: str, known: Sequence[str]) -> str:
    """An alternative for a missing name of ttnn."""
    package = owner.partition(".")[0]
    near = (
        get_close_matches(name, known, n=3)
        or [known_name for known_name in known if name.lower() in known_name.lower().split("_")][:3]
    )
    nearest = f"; the nearest names: {', '.join(near)}" if near else ""
    return (
        f"ttsim does not simulate it; compute it on the host, between {package}.to_torch and {package}.from_torch, or "
        f"with {FALLBACK_VARIABLE}=host, or leave it out{nearest}; dir({owner}) lists all names"
    )


def shadowed(package: str) -> str:
    """The script's file or folder that a package of ttsim shadows, and the remedy; "" if there is none."""
    if package not in (*SIBLINGS, "ttsim"):
        return ""
    places = [place for place in sys.path if not (Path(place) / "ttsim" / "__init__.py").exists()]
    spec = next(filter(None, (PathFinder.find_spec(package, [place]) for place in places)), None)
    if spec is None:
        return ""
    path = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return (
        f"{path.removesuffix('__init__.py')} is not imported, because {package!r} is a package of ttsim, which was "
        "imported first; rename your file or folder"
    )
