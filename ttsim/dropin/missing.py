"""Errors for names that ttnn may have and ttsim does not have, and for a script's own modules that ttsim's shadow."""

import sys
from collections.abc import Collection
from difflib import get_close_matches
from importlib.machinery import PathFinder
from opcode import opmap
from pathlib import Path
from types import FrameType, ModuleType

_IMPORT_FROM = opmap["IMPORT_FROM"]


def missing_name(module: ModuleType, name: str, known: Collection[str], asking: FrameType) -> Exception:
    """The error of one line for a name that a module does not have, under the name that the asking code has for it.

    It says what a script can do, the nearest names, and how to list all names. An ImportError for ``from`` imports,
    else an AttributeError.
    """
    names = {**asking.f_globals, **asking.f_locals}
    owner = next((alias for alias, value in names.items() if value is module), module.__name__)
    package = owner.partition(".")[0]
    near = (
        get_close_matches(name, known, n=3)
        or [known_name for known_name in known if name.lower() in known_name.lower().split("_")][:3]
    )
    nearest = f"; the nearest names: {', '.join(near)}" if near else ""
    way_out = shadowed("ttsim") or (
        f"ttsim does not simulate it; compute it on the host, between {package}.to_torch and {package}.from_torch, or "
        f"leave it out{nearest}; dir({owner}) lists all names"
    )
    return _error(module, name, owner, f": {way_out}", asking)


def missing_in_package(package: ModuleType, name: str, asking: FrameType) -> Exception:
    """The error for a name that ``device`` or ``ops`` does not have; it names a module of the script of that name."""
    shadow = "" if name.startswith("__") else shadowed(package.__name__)
    return _error(package, name, package.__name__, shadow and f": {shadow}", asking)


def shadowed(package: str) -> str:
    """Which file or folder of the script a package of ttsim shadows, and what to do; "" if there is none."""
    places = [place for place in sys.path if not (Path(place) / "ttsim" / "__init__.py").exists()]
    spec = next(filter(None, (PathFinder.find_spec(package, [place]) for place in places)), None)
    if spec is None:
        return ""
    path = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return (
        f"{path.removesuffix('__init__.py')} is not imported, because {package!r} is a package of ttsim, which was "
        "imported first; rename your file or folder"
    )


def _error(module: ModuleType, name: str, owner: str, rest: str, asking: FrameType) -> Exception:
    """An ImportError if the asking code is at a ``from`` import, else an AttributeError."""
    if asking.f_code.co_code[asking.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {owner!r}{rest}", name=owner)
    return AttributeError(f"module {owner!r} has no attribute {name!r}{rest}", name=name, obj=module)
