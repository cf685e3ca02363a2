"""Spaces of studies: axes of layers, settings and devices, their product, and the TOML files that describe them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

from device.errors import ArgumentError, SpecError, nearest, shown
from device.spec.device_spec import DeviceSpec
from ops.planners.onednn.plan import Lowering
from ops.sensitivity.changes import (
    GRID,
    SEPARATOR,
    Formula,
    Value,
    changed,
    formula,
    load_spec,
    read_change,
    read_value,
    spelled,
    split_changes,
)
from ops.sensitivity.fields import Field, fields_of
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values, default_spec
from ttsim.study.evaluate import LAYER_INPUTS, Point
from ttsim.study.layers.read import DEFAULT_LAYERS, check_keys, layers_said, leaves, read_layers, read_toml
from ttsim.study.layers.run import compute_config, conv_config, slice_config
from ttsim.types.configs import Conv2dConfig, WormholeComputeKernelConfig
from ttsim.types.layer import Layer, Setting, checked

LAYER, CONFIG, COMPUTE, DEVICE, LOWERING = "layer", "config", "compute", "device", "lowering"
NONE_IS_A_VALUE: Final = ("dtype", "slice")  # fields of a layer that may be left to the library
ANY_LAYER: Final = Layer(in_channels=32, out_channels=32, input_height=32, input_width=32)  # to check settings with


class Variant(NamedTuple):
    """A layer with values of some axes, and what they are."""

    layer: Layer
    lowering: str = Lowering.FRAME.value
    labels: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Values of one setting."""

    kind: str  # "layer", "config" (Conv2dConfig), "compute" (compute config), "device", or "lowering"
    field: str  # Name of the field there
    values: tuple[Any, ...]  # In order; None leaves a setting of a config out, as if nobody had given it

    @property
    def name(self) -> str:
        """As in the columns of a table: "config.shard_layout", "device.dram.banks", "slice", "lowering"."""
        return self.field if self.kind in (LAYER, LOWERING) else f"{self.kind}.{self.field}"

    def on(self, variant: Variant, value: Any) -> Variant:
        """A variant with one of the values; of a field of the layer, or the lowering."""
        layer, lowering, labels = variant
        if self.kind == LOWERING:
            lowering = value
        elif self.kind == LAYER:
            layer = _with(layer, self.field, value)
        else:
            before: Mapping[str, Setting] = getattr(layer, self.kind)
            table = {name: one for name, one in before.items() if name != self.field}
            table |= {} if value is None else {self.field: value}
            layer = _with(layer, self.kind, table)
        return Variant(layer, lowering, {**labels, self.name: value})


def axis(name: str, values: Sequence[Any], device: DeviceSpec) -> Axis:
    """An axis by the name of its setting.

    Args:
        name: A field of a layer, of Conv2dConfig, of the compute config or of a device (`dram.banks`), or "lowering";
            `layer.`, `config.`, `compute.` and `device.` may stand before it.
        values: At least one, none of them twice.
        device: To which a field of devices is applied, to see that it is there.

    Raises:
        ArgumentError: There is no such setting, or a value is none of it.
        ArgumentTypeError: A value of a config is of the wrong type.
        SpecError: A value is none of the device's field.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or not values:
        raise ArgumentError(f"sweep: {name} needs a list of values, not {shown(values)}")
    told = [(type(one), one) for one in values]  # 1 and true are two values
    if any(one in told[:at] for at, one in enumerate(told)):
        raise ArgumentError(f"sweep: {name} has a value twice: {shown(values)}; give each once")
    kind, field = setting_of(name, device)
    return Axis(kind=kind, field=field, values=tuple(_value(kind, field, value, device) for value in values))


def setting_of(name: str, device: DeviceSpec) -> tuple[str, str]:
    """Kind and field of a setting.

    Raises:
        ArgumentError: There is none of that name, or more than one.
    """
    known = settings(device)
    kind, dot, field = name.partition(".")
    if dot and kind in known:
        if field not in known[kind]:
            raise ArgumentError(f"sweep: {kind} has no field {shown(field)}{nearest(field, known[kind])}")
        return kind, field
    found = [kind for kind, names in known.items() if name in names]
    if len(found) > 1:
        ways = " or ".join(f"{kind}.{name}" for kind in found)
        raise ArgumentError(f"sweep: {name} is a field of more than one thing; write {ways}")
    if not found:
        every = [field for names in known.values() for field in names]
        raise ArgumentError(
            f"sweep: there is nothing called {shown(name)} to vary{nearest(name, every)}; give a field of a layer, of "
            "Conv2dConfig, of the compute config or of a device, or lowering"
        )
    return found[0], name


def settings(device: DeviceSpec) -> dict[str, tuple[str, ...]]:
    """What can be varied, by kind."""
    return {
        LAYER: tuple(name for name in LAYER_INPUTS if name != "seed"),
        CONFIG: tuple(vars(Conv2dConfig())),
        COMPUTE: tuple(vars(WormholeComputeKernelConfig())),
        LOWERING: (LOWERING,),
        DEVICE: (GRID, *(one.name for one in fields_of(device) if one.name != "name")),
    }


def _value(kind: str, field: str, value: Any, device: DeviceSpec) -> Any:
    """A value of an axis, checked."""
    where = f"sweep: {kind}.{field}"
    if kind == DEVICE:
        value = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        changed(device, [f"{field}={value}"])
    elif kind == LOWERING:
        if value not in [one.value for one in Lowering]:
            raise ArgumentError(f"sweep: lowering must be frame or phase, not {shown(value)}")
    elif kind == LAYER:
        if value is None and field in NONE_IS_A_VALUE:
            return None
        value = checked(where, field, value)
        slice_config(_with(ANY_LAYER, field, value))
    elif value is not None:
        if not isinstance(value, Setting):
            raise ArgumentError(f"{where} must be a plain value, not {shown(value)}")
        layer = _with(ANY_LAYER, kind, {field: value})
        conv_config(layer)
        compute_config(layer, None)
    return value


def _with(layer: Layer, field: str, value: Any) -> Layer:
    """A layer with another value of a field."""
    return replace(layer, **{field: value})


class Sample(NamedTuple):
    """A point of a sweep, and its value on each axis."""

    point: Point
    labels: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What a sweep goes over."""

    layers: tuple[Layer, ...]  # Each a transposed convolution
    devices: tuple[DeviceSpec, ...]  # Each with a name of its own
    axes: tuple[Axis, ...] = ()  # Settings that are varied
    values: Values = "off"  # As of `Point`
    l1_small_size: int = USUAL_L1_SMALL_SIZE  # As of `Point`
    strict: bool = True  # As of `Point`

    def __post_init__(self) -> None:
        """Refuses what could not be told apart in a table."""
        for what, names in (
            ("layers", [one.name for one in self.layers]),
            ("devices", [one.name for one in self.devices]),
            ("axes", [one.name for one in self.axes]),
        ):
            if not names and what != "axes":
                raise ArgumentError(f"sweep: there are no {what}; give at least one")
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ArgumentError(f"sweep: two of the {what} are called {shown(twice)}; give each a name of its own")

    def samples(self) -> Iterator[Sample]:
        """Layer by layer, device by device, axis by axis: the last one changes fastest, those of devices slowest.

        Raises:
            SpecError: A device cannot have the values of some axes together.
        """
        others = [axis for axis in self.axes if axis.kind != DEVICE]
        machines = list(self._machines())
        for layer in self.layers:
            variants = [Variant(layer)]
            for axis in others:
                variants = [axis.on(variant, value) for variant in variants for value in axis.values]
            for spec, labels in machines:
                for variant in variants:
                    point = Point(
                        layer=variant.layer,
                        spec=spec,
                        lowering=variant.lowering,
                        values=self.values,
                        l1_small_size=self.l1_small_size,
                        strict=self.strict,
                    )
                    yield Sample(point, {**labels, **variant.labels})

    def _machines(self) -> Iterator[tuple[DeviceSpec, dict[str, Any]]]:
        """Every device with every change of it, and its values on the axes."""
        axes = [axis for axis in self.axes if axis.kind == DEVICE]
        for device in self.devices:
            for values in product(*(axis.values for axis in axes)):
                changes = [f"{axis.field}={value}" for axis, value in zip(axes, values, strict=True)]
                yield changed(device, changes), {axis.name: one for axis, one in zip(axes, values, strict=True)}


MOST_DEVICES: Final = 10_000  # each takes some milliseconds to make


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignAxis:
    """A field that is varied."""

    name: str  # Of the field, or "grid"
    values: tuple[str, ...]  # As text, each as short as it can be written

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that it changes."""
        return (f"{GRID}.cols", f"{GRID}.rows") if self.name == GRID else (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A space of machines."""

    base: DeviceSpec  # The device that is varied
    axes: tuple[DesignAxis, ...]  # Which fields, and the values they take
    costs: Mapping[str, Formula]  # Formulas over fields, by name; less is better
    layers: tuple[Layer, ...]  # Each with a name of its own; their times are added
    # How often a network runs a layer, by its name; once, of those that are not here
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses a space of nothing, and one that is too large."""
        if not self.axes or not self.layers:
            raise ArgumentError("design: there is nothing to vary or nothing to run; give [space] and layers")
        names = [layer.name for layer in self.layers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"design: two layers are called {shown(twice)}; give each a name of its own")
        if self.devices > MOST_DEVICES:
            raise ArgumentError(
                f"design: a space has at most {MOST_DEVICES:,} devices, not {self.devices:,}; vary fewer fields, or "
                "give fewer values"
            )

    def count(self, layer: str) -> int:
        """How often a network runs a layer."""
        return self.counts.get(layer, 1)

    @property
    def devices(self) -> int:
        """How many combinations of values there are."""
        return prod(len(axis.values) for axis in self.axes)

    def device(self, values: Mapping[str, str]) -> DeviceSpec | str:
        """The device with some values, by the names of axes; or why there is no such device."""
        try:
            return changed(self.base, [f"{name}={value}" for name, value in values.items()])
        except SpecError as error:
            return str(error)


SWEEP_KEYS: Final = ("layers", "common", "layer", "devices", "vary", "values", "l1_small_size", "strict")
SWEEP_KINDS: Final = {"devices": list, "vary": dict, "l1_small_size": int, "strict": bool}
KIND_NAMES: Final = {list: "a list", dict: "a table", int: "an integer", bool: "true or false"}


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
    check_keys(str(path), document, SWEEP_KEYS)
    for name, kind in SWEEP_KINDS.items():
        given = document.get(name, kind())
        if not isinstance(given, kind) or isinstance(given, bool) is not (kind is bool):
            raise ArgumentError(f"{path}: {name} must be {KIND_NAMES[kind]}, not {shown(given)}")
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


DESIGN_KEYS: Final = ("device", "space", "costs", "counts", "layers", "only", "common", "layer")
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
    check_keys(str(path), document, DESIGN_KEYS)
    tables = {name: _table(path, name, document.get(name, {})) for name in ("device", "space", "costs", "counts")}
    base, layers = _read_device(path, tables["device"]), _layers(path, document)
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


def _read_device(path: Path, table: Mapping[str, Any]) -> DeviceSpec:
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
