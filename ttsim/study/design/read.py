"""A design out of a TOML file: `[device]`, `[space]`, `[costs]`, and layers."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, nearest, shown
from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import GRID, Formula, Value, changed, formula, load_spec, read_change, read_value, spelled
from ops.sensitivity.fields import Field, fields_of
from ttsim.runtime.settings import default_spec
from ttsim.study.design.space import Design, DesignAxis
from ttsim.study.layers.read import DEFAULT_LAYERS, check_keys, layers_said, leaves, read_layers, read_toml
from ttsim.types.layer import Layer

KEYS: Final = ("device", "space", "costs", "counts", "layers", "only", "common", "layer")
BASE: Final = "base"
RANGE: Final = ("from", "to", "step", "factor")
MOST_VALUES: Final = 1000  # of a range


def read_design(path: Path) -> Design:
    """The design that a file describes; a path of layers in it starts at its folder.

    Raises:
        ArgumentError: The file is no TOML, or says something that is no design.
        SpecError: A device or a field is unknown, or a value is none of the field.
        OSError: A file cannot be read.
    """
    document = read_toml(path, "a design")
    check_keys(str(path), document, KEYS)
    tables = {name: _table(path, name, document.get(name, {})) for name in ("device", "space", "costs", "counts")}
    base, layers = _device(path, tables["device"]), _layers(path, document)
    return Design(
        base=base,
        axes=tuple(_axes(tables["space"], base)),
        costs=_costs(tables["costs"], base),
        layers=layers,
        counts=_counts(tables["counts"], [layer.name for layer in layers]),
    )


def _table(path: Path, name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ArgumentError(f"{path}: {name} must be a table, not {shown(value)}; write it as [{name}]")
    return value


def _device(path: Path, table: Mapping[str, Any]) -> DeviceSpec:
    """The device, with the fields that are changed for all of the space."""
    base = table.get(BASE, default_spec())
    if not isinstance(base, str):
        raise ArgumentError(f"{path}: device.{BASE} must be the name of a device or a file, not {shown(base)}")
    fields = {name: value for name, value in table.items() if name != BASE}
    return changed(load_spec(base), [f"{name}={_text(value)}" for name, value in leaves(fields)])


def _axes(table: Mapping[str, Any], base: DeviceSpec) -> Iterator[DesignAxis]:
    """A field and its values; each in its shortest spelling."""
    known = {field.name: field for field in fields_of(base)}
    for name, given in leaves(table, whole=RANGE):
        if name != GRID and name not in known:
            raise ArgumentError(f"design: space: unknown field {shown(name)}{nearest(name, [*known, GRID])}")
        if isinstance(given, Mapping):
            given = list(_range(known.get(name), name, given))
        if not isinstance(given, list) or not given:
            raise ArgumentError(
                f"design: space.{name} must be a list of values, or {{from = ..., to = ..., step = ...}}, "
                f"not {shown(given)}"
            )
        values = [_spelled(f"{name}={_text(value)}", known) for value in given]
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ArgumentError(f"design: space.{name} has {twice} twice; keep one of them")
        yield DesignAxis(name=name, values=tuple(values))


def _spelled(change: str, known: Mapping[str, Field]) -> str:
    """The value of a change as shortly as it can be written."""
    read = read_change(change, known)
    if len(read) > 1:
        return "x".join(str(value) for _, value in read)
    ((field, value),) = read
    return spelled(field, value)


def _range(field: Field | None, name: str, given: Mapping[str, Any]) -> Iterator[Value]:
    """Values of a range, both ends included, in steps of equal difference or of equal ratio."""
    check_keys(f"design: space.{name}", given, RANGE)
    if field is None or not field.numeric or "from" not in given or "to" not in given or len(given) != 3:
        raise ArgumentError(
            f"design: space.{name}: a range is {{from, to, step}} or {{from, to, factor}} of a number, "
            f"not {shown(dict(given))}; or give a list of values"
        )
    low, high = (_exact(read_value(field, _text(given[end]))) for end in ("from", "to"))
    by_step = "step" in given
    step = _exact(read_value(field, _text(given["step"]))) if by_step else _factor(name, given["factor"])
    if not low <= high or low <= 0 or (step <= 0 if by_step else step <= 1):
        raise ArgumentError(f"design: space.{name}: a range goes upward, from above zero, not {shown(dict(given))}")
    for count in range(MOST_VALUES + 1):
        value = low + step * count if by_step else low * step**count
        if value > high:
            return
        yield round(value) if isinstance(field.value, int) else float(value)
    raise ArgumentError(f"design: space.{name}: a range has at most {MOST_VALUES} values; take larger steps")


def _factor(name: str, value: Any) -> Fraction:
    """The ratio of two values of a range."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 < value < float("inf"):
        raise ArgumentError(f"design: space.{name}: factor must be a number above 1, not {shown(value)}; such as 2")
    return Fraction(repr(value))


def _exact(value: Value) -> Fraction:
    return Fraction(repr(value))


def _costs(table: Mapping[str, Any], base: DeviceSpec) -> dict[str, Formula]:
    """A formula for each cost."""
    known = [field.name for field in fields_of(base) if field.numeric]
    found = {}
    for name, text in table.items():
        try:
            found[name] = formula(text, known)
        except ArgumentError as error:
            raise ArgumentError(f"design: costs.{name}: {error}") from error
    return found


def _counts(table: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """How often each layer runs, of those that do not run once."""
    counts = dict(leaves(table))
    check_keys("design: counts", counts, names)
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ArgumentError(f"design: counts.{name} must be an integer of at least 1, not {shown(count)}")
    return counts


def _layers(path: Path, document: Mapping[str, Any]) -> tuple[Layer, ...]:
    """Layers of the design itself, of another file, or the usual ones; those alone whose names contain a text."""
    only = document.get("only", "")
    if not isinstance(only, str):
        raise ArgumentError(f"{path}: only must be a part of the names of layers, not {shown(only)}")
    found = layers_said(document, path) or read_layers(DEFAULT_LAYERS)
    chosen = tuple(layer for layer in found if only in layer.name)
    if not chosen:
        raise ArgumentError(f"{path}: no layer has {shown(only)} in its name; leave only away for all of them")
    return chosen


def _text(value: Any) -> str:
    """A value of TOML as `changed` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return str(value)
