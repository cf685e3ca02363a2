"""The error for a name that ttnn may have and ttsim does not have."""

from collections.abc import Collection
from difflib import get_close_matches
from opcode import opmap
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
    way_out = (
        f"ttsim does not simulate it; compute it on the host, between {package}.to_torch and {package}.from_torch, or "
        f"leave it out{nearest}; dir({owner}) lists all names"
    )
    if asking.f_code.co_code[asking.f_lasti] == _IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {owner!r}: {way_out}", name=owner)
    text = f"module {owner!r} has no attribute {name!r}: {way_out}"
    return AttributeError(text, name=name, obj=module)
