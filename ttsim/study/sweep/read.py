"""What a sweep goes over, out of a TOML file: layers, devices, and values by setting."""

from pathlib import Path
from typing import Any, Final, get_args

from device.errors import ArgumentError, shown
from ops.sensitivity.changes import SEPARATOR, split_changes
from ttsim.runtime.settings import Values
from ttsim.study.layers.read import check_keys, layers_said, leaves, read_toml

KEYS: Final = ("layers", "common", "layer", "devices", "vary", "values", "l1_small_size", "strict")
KINDS: Final = {"devices": list, "vary": dict, "l1_small_size": int, "strict": bool}
NAMES: Final = {list: "a list", dict: "a table", int: "an integer", bool: "true or false"}


def read_sweep(path: Path) -> dict[str, Any]:
    """What a file says of a sweep, by the names of the arguments of `ttsim.sweep`.

    A file holds ``layers = "FILE"``, or ``[[layer]]`` tables as a file of layers does; ``devices``, a list of names or
    files; a table ``[vary]`` with a list of values for each setting (the text "none" leaves it to the library); and
    ``values``, ``l1_small_size``, ``strict``. Paths in it start at its own folder.

    Raises:
        ArgumentError: The file is no TOML, or says something else; the message names file and key.
        OSError: The file cannot be read.
    """
    document = read_toml(path, "a sweep")
    check_keys(str(path), document, KEYS)
    for name, kind in KINDS.items():
        given = document.get(name, kind())
        if not isinstance(given, kind) or isinstance(given, bool) is not (kind is bool):
            raise ArgumentError(f"{path}: {name} must be {NAMES[kind]}, not {shown(given)}")
    if document.get("values", "off") not in get_args(Values):
        known = ", ".join(get_args(Values))
        raise ArgumentError(f"{path}: values must be one of {known}, not {shown(document['values'])}")
    found: dict[str, Any] = {name: document[name] for name in ("values", "l1_small_size", "strict") if name in document}
    if "devices" in document:
        found["devices"] = [_device(path, one) for one in document["devices"]]
    if "vary" in document:
        found["vary"] = {name: _values(given) for name, given in leaves(document["vary"])}
    layers = layers_said(document, path)
    return found if layers is None else {**found, "layers": layers}


def _device(path: Path, name: Any) -> str:
    """A device, whose file, if it is one, lies in the folder of the sweep's."""
    if not isinstance(name, str):
        raise ArgumentError(f"{path}: devices must be names or files, not {shown(name)}")
    base, changes = split_changes(name)
    return SEPARATOR.join((str(path.parent / base) if base.endswith(".toml") else base, *changes))


def _values(given: Any) -> Any:
    """The values of a setting; "none" leaves it to the library."""
    return [None if one == "none" else one for one in given] if isinstance(given, list) else given
