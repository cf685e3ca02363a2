"""Spaces of studies: axes of layers, settings and devices, their product, and the TOML files that describe them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, product, repeat
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, get_args

from device.errors import ArgumentError, SpecError, nearest, shown
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import Lowering, lowering_of
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
from ops.sensitivity.fields import Field, fields_of, numeric_fields
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values, default_spec
from ttsim.runtime.types.configs import Conv2dConfig, WormholeComputeKernelConfig
from ttsim.runtime.types.layer import Layer, Setting, checked
from ttsim.study.evaluate import LAYER_INPUTS, Point
from ttsim.study.layers.read import DEFAULT_LAYERS, check_keys, layers_said, leaves, read_layers, read_toml
from ttsim.study.layers.run import compute_config, conv_config, slice_config
from ttsim.study.networks.replay import RecordedNetwork, read_network

LAYER, CONFIG, COMPUTE, DEVICE, LOWERING = "layer", "config", "compute", "device", "lowering"
NONE_IS_A_VALUE: Final = ("dtype", "slice")  # fields of a layer that may be left to the library
ANY_LAYER: Final = Layer(in_channels=32, out_channels=32, input_height=32, input_width=32)  # to check settings with
MOST_DEVICES: Final = 10_000  # each takes some milliseconds to make
MOST_VALUES: Final = 1000  # of a range
RANGE: Final = ("from", "to", "step", "factor")
SWEEP_KEYS: Final = ("layers", "common", "layer", "devices", "vary", "tune", "values", "l1_small_size", "strict")
SWEEP_KINDS: Final = {  # of values of a sweep's file, with their names in messages
    "devices": (list, "a list"),
    "vary": (dict, "a table"),
    "tune": (bool, "true or false"),
    "l1_small_size": (int, "an integer"),
    "strict": (bool, "true or false"),
}
# What costs may name besides fields of the device: figures of a machine, and of its energy for all layers
JUDGED: Final = ("area_mm2", "energy_joules", "average_watts", "energy_delay_joule_seconds")
DESIGN_TABLES: Final = ("device", "space", "costs", "counts")
DESIGN_KEYS: Final = (*DESIGN_TABLES, "layers", "only", "common", "layer", "networks", "tune")


class Variant(NamedTuple):
    """A layer with the values of some axes."""

    layer: Layer
    lowering: str = Lowering.ZERO_INSERTION.value
    labels: Mapping[str, Any] = MappingProxyType({})  # The values, by the names of the axes


def of_config(axis: str) -> bool:
    """Whether the axis of this name is a config of a call, in contrast to another call."""
    return axis in ("slice", LOWERING) or axis.startswith((f"{CONFIG}.", f"{COMPUTE}."))


class Axis(NamedTuple):
    """Values of one setting of a sweep."""

    kind: str  # "layer", "config" (Conv2dConfig), "compute" (compute config), "device", or "lowering"
    field: str  # Name of the field there
    values: tuple[Any, ...]  # In order; None leaves a setting of a config out

    @property
    def name(self) -> str:
        """The name in columns of a table: "config.shard_layout", "device.dram.banks", "slice", "lowering"."""
        return self.field if self.kind in (LAYER, LOWERING) else f"{self.kind}.{self.field}"

    def as_given(self, layer: Layer) -> tuple[Any, ...]:
        """The axis with only the layer's own value, for configs; all values for other settings."""
        if not of_config(self.name):
            return self.values
        if self.kind == LOWERING:
            return (Lowering.ZERO_INSERTION.value,)
        if self.kind == LAYER:
            return (layer.slice,)
        default = getattr(Conv2dConfig(), self.field) if self.kind == CONFIG else None
        return (getattr(layer, self.kind).get(self.field, default if default in self.values else None),)

    def on(self, variant: Variant, value: Any) -> Variant:
        """A variant with a value of this axis, for settings of layers and configs."""
        layer, labels = variant.layer, {**variant.labels, self.name: value}
        if self.kind == LOWERING:
            return Variant(layer, value, labels)
        if self.kind == LAYER:
            return Variant(replace(layer, **{self.field: value}), variant.lowering, labels)
        table = {name: old for name, old in getattr(layer, self.kind).items() if name != self.field}
        changed_table: dict[str, Any] = {self.kind: table if value is None else {**table, self.field: value}}
        return Variant(replace(layer, **changed_table), variant.lowering, labels)


def axis(name: str, values: Sequence[Any], device: DeviceSpec) -> Axis:
    """An axis by the name of its setting, with checked values.

    The name is a field of a layer, of Conv2dConfig, of the compute config or of the device (`dram.banks`), or
    "lowering", with an optional prefix `layer.`, `config.`, `compute.` or `device.`. There must be at least one value
    and no repeated values. Raises ArgumentError for an unknown setting or a wrong value; ArgumentTypeError for a wrong
    type in a config; SpecError for a wrong value of a device's field.
    """
    if isinstance(values, str | Mapping) or not isinstance(values, Sequence) or not values:
        raise ArgumentError(f"sweep: {name} needs a list of values, not {shown(values)}")
    if _twice([(type(value), value) for value in values]) is not None:  # 1 and true are two values
        raise ArgumentError(f"sweep: {name} has a value twice: {shown(values)}; give each once")
    kind, field = setting_of(name, device)
    return Axis(kind, field, tuple(_value(kind, field, value, device) for value in values))


def setting_of(name: str, device: DeviceSpec) -> tuple[str, str]:
    """Kind and field of a setting; raises ArgumentError if the name is unknown or ambiguous."""
    known = {
        LAYER: tuple(field for field in LAYER_INPUTS if field != "seed"),
        CONFIG: tuple(vars(Conv2dConfig())),
        COMPUTE: tuple(vars(WormholeComputeKernelConfig())),
        LOWERING: (LOWERING,),
        DEVICE: (GRID, *(field.name for field in fields_of(device) if field.name != "name")),
    }
    kind, dot, field = name.partition(".")
    if dot and kind in known:
        if field not in known[kind]:
            raise ArgumentError(f"sweep: {kind} has no field {shown(field)}{nearest(field, known[kind])}")
        return kind, field
    kinds = [kind for kind, names in known.items() if name in names]
    if len(kinds) > 1:
        ways = " or ".join(f"{kind}.{name}" for kind in kinds)
        raise ArgumentError(f"sweep: {name} is a field of more than one thing; write {ways}")
    if not kinds:
        every = [field for names in known.values() for field in names]
        raise ArgumentError(
            f"sweep: there is nothing called {shown(name)} to vary{nearest(name, every)}; give a field of a layer, of "
            "Conv2dConfig, of the compute config or of a device, or lowering"
        )
    return kinds[0], name


def _value(kind: str, field: str, value: Any, device: DeviceSpec) -> Any:
    where = f"sweep: {kind}.{field}"
    if kind == DEVICE:
        value = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        changed(device, [f"{field}={value}"])
    elif kind == LOWERING:
        value = lowering_of(value, "sweep").value
    elif kind == LAYER:
        if value is not None or field not in NONE_IS_A_VALUE:
            value = checked(where, field, value)
            slice_config(replace(ANY_LAYER, **{field: value}))
    elif value is not None:
        if not isinstance(value, Setting):
            raise ArgumentError(f"{where} must be a plain value, not {shown(value)}")
        config: dict[str, Any] = {kind: {field: value}}
        layer = replace(ANY_LAYER, **config)
        conv_config(layer)
        compute_config(layer, None)
    return value


def _twice(values: Sequence[Any]) -> Any:
    return next((value for value in values if values.count(value) > 1), None)


class Sample(NamedTuple):
    """A point of a space."""

    point: Point
    labels: Mapping[str, Any]  # Its values, by the names of the axes
    given: bool  # Whether it has the layer's own config
    added: bool = False  # Whether it has the layer's own config, and values that the axes do not combine


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The layers, devices and axes of a sweep; its points are their product, and each layer's own config."""

    layers: tuple[Layer, ...]  # Each a transposed convolution
    devices: tuple[DeviceSpec, ...]  # Each with a name of its own
    axes: tuple[Axis, ...] = ()  # Settings that are varied
    tune: bool | None = None  # As of `Point`; None tunes where several machines are compared and no config is varied
    values: Values = "off"  # As of `Point`
    l1_small_size: int = USUAL_L1_SMALL_SIZE  # As of `Point`
    strict: bool = True  # As of `Point`

    def __post_init__(self) -> None:
        """Raises ArgumentError for layers, devices or axes of the same name."""
        for what in ("layers", "devices", "axes"):
            names = [item.name for item in getattr(self, what)]
            if not names and what != "axes":
                raise ArgumentError(f"sweep: there are no {what}; give at least one")
            twice = _twice(names)
            if twice is not None:
                raise ArgumentError(f"sweep: two of the {what} are called {shown(twice)}; give each a name of its own")

    def machines(self) -> list[tuple[DeviceSpec, Mapping[str, Any]]]:
        """Each device with each combination of varied field values, and these values by axis name."""
        axes = [axis for axis in self.axes if axis.kind == DEVICE]
        machines: list[tuple[DeviceSpec, Mapping[str, Any]]] = []
        for device, values in product(self.devices, list(product(*(axis.values for axis in axes)))):
            labels = {axis.name: value for axis, value in zip(axes, values, strict=True)}
            changes = [f"{axis.field}={value}" for axis, value in zip(axes, values, strict=True)]
            machines.append((changed(device, changes), labels))
        return machines

    @property
    def tuned(self) -> bool:
        """Whether each point is tuned."""
        several = len(self.devices) * prod(len(axis.values) for axis in self.axes if axis.kind == DEVICE) > 1
        return several and not any(of_config(axis.name) for axis in self.axes) if self.tune is None else self.tune

    def samples(self) -> Iterator[Sample]:
        """All points; the last axis varies fastest, then devices, then layers. Own configs come first."""
        return chain.from_iterable(self.groups())

    def groups(self) -> Iterator[Iterator[Sample]]:
        """The points of each layer on each device, in the same order; each group is made when it is read."""
        for layer, machine in product(self.layers, self.machines()):
            yield self._group(layer, *machine)

    def _group(self, layer: Layer, spec: DeviceSpec, device_labels: Mapping[str, Any]) -> Iterator[Sample]:
        others = {name: getattr(self, name) for name in ("values", "l1_small_size", "strict")} | {"tune": self.tuned}
        axes = [axis for axis in self.axes if axis.kind != DEVICE]
        own = [axis.as_given(layer) for axis in axes]
        added = (
            variant
            for variant in _variants(layer, axes, own)
            if any(variant.labels[axis.name] not in axis.values for axis in axes)
        )
        combined = _variants(layer, axes, [axis.values for axis in axes])
        for variant, beyond in chain(zip(added, repeat(True)), zip(combined, repeat(False))):
            given = all(variant.labels[axis.name] in values for axis, values in zip(axes, own, strict=True))
            point = Point(layer=variant.layer, spec=spec, lowering=variant.lowering, **others)
            yield Sample(point, {**device_labels, **variant.labels}, given, beyond)


def _variants(layer: Layer, axes: Sequence[Axis], values: Sequence[Sequence[Any]]) -> Iterator[Variant]:
    """A layer with each combination of values of some axes; the last axis varies fastest."""
    variants: Iterator[Variant] = iter([Variant(layer)])
    for axis, own in zip(axes, values, strict=True):
        variants = _on_axis(variants, axis, own)
    return variants


def _on_axis(variants: Iterator[Variant], axis: Axis, values: Sequence[Any]) -> Iterator[Variant]:
    for variant in variants:
        for value in values:
            yield axis.on(variant, value)


Run: TypeAlias = tuple[Layer | RecordedNetwork, int]  # what a machine runs, and how often


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignAxis:
    """A field of a device that a design varies."""

    name: str  # Of the field, or "grid"
    values: tuple[str, ...]  # Each in its shortest spelling

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that the axis changes."""
        return (f"{GRID}.cols", f"{GRID}.rows") if self.name == GRID else (self.name,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A space of machines, with their costs and the layers whose times are added."""

    base: DeviceSpec  # The device that is varied
    axes: tuple[DesignAxis, ...]  # Varied fields and their values
    costs: Mapping[str, Formula]  # Formulas over fields, by name; less is better
    layers: tuple[Layer, ...]  # Each with a name of its own
    networks: tuple[RecordedNetwork, ...] = ()  # Likewise
    counts: Mapping[str, int] = field(default_factory=dict)  # How often each layer or network runs, if not once
    tune: bool = True  # Whether each layer, and the convolutions of each network, are tuned on each machine

    def __post_init__(self) -> None:
        """Raises ArgumentError for an empty or a too large space."""
        if not self.axes or not self.work:
            raise ArgumentError("design: there is nothing to vary or nothing to run; give [space] and layers")
        twice = _twice([layer.name for layer in self.layers] + [network.name for network in self.networks])
        if twice is not None:
            raise ArgumentError(f"design: two layers are called {shown(twice)}; give each a name of its own")
        if self.devices > MOST_DEVICES:
            raise ArgumentError(
                f"design: a space has at most {MOST_DEVICES:,} devices, not {self.devices:,}; vary fewer fields, or "
                "give fewer values"
            )

    @property
    def work(self) -> tuple[Layer | RecordedNetwork, ...]:
        """The layers and networks that each machine runs."""
        return (*self.layers, *self.networks)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The layers and networks, each with its number of runs."""
        return tuple((layer, self.count(layer.name)) for layer in self.work)

    def count(self, layer: str) -> int:
        """The number of runs of a layer or a network."""
        return self.counts.get(layer, 1)

    @property
    def devices(self) -> int:
        """The number of combinations of values."""
        return prod(len(axis.values) for axis in self.axes)

    def device(self, values: Mapping[str, str]) -> DeviceSpec | str:
        """The device with these values by axis name, or the reason why it is invalid."""
        try:
            return changed(self.base, [f"{name}={value}" for name, value in values.items()])
        except SpecError as error:
            return str(error)


def read_sweep(path: Path) -> dict[str, Any]:
    """The arguments of `ttsim.sweep` from a file.

    A file has ``layers = "FILE"``, or ``[[layer]]`` tables like a file of layers; ``devices``, a list of names or
    files; a table ``[vary]`` with a list of values for each setting (the text "none" leaves it to the library); and
    ``tune``, ``values``, ``l1_small_size``, ``strict``. Paths are relative to the file's folder. Raises ArgumentError,
    with file and key, for an invalid entry; OSError if the file cannot be read.
    """
    document = read_toml(path, "a sweep")
    check_keys(str(path), document, SWEEP_KEYS)
    for name, (kind, wanted) in SWEEP_KINDS.items():
        value = document.get(name, kind())
        if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
            raise ArgumentError(f"{path}: {name} must be {wanted}, not {shown(value)}")
    if document.get("values", "off") not in get_args(Values):
        known = ", ".join(get_args(Values))
        raise ArgumentError(f"{path}: values must be one of {known}, not {shown(document['values'])}")
    arguments: dict[str, Any] = {
        name: document[name] for name in ("tune", "values", "l1_small_size", "strict") if name in document
    }
    if "devices" in document:
        arguments["devices"] = [device_beside(path, device) for device in document["devices"]]
    if "vary" in document:
        arguments["vary"] = {
            name: [None if value == "none" else value for value in values] if isinstance(values, list) else values
            for name, values in leaves(document["vary"])
        }
    layers = layers_said(document, path)
    return arguments if layers is None else {**arguments, "layers": layers}


def device_beside(path: Path, device: Any) -> str:
    """A device; the path of a device file is relative to the folder of `path`, the file that names the device."""
    if not isinstance(device, str):
        raise ArgumentError(f"{path}: devices must be names or files, not {shown(device)}")
    base, changes = split_changes(device)
    return SEPARATOR.join((str(path.parent / base) if base.endswith(".toml") else base, *changes))


def read_design(path: Path, *, device: str | None = None, changes: Sequence[str] = ()) -> Design:
    """The design of a file: `[device]`, `[space]`, `[costs]`, `[counts]`, `tune`, and layers by path or table.

    `device` replaces the device of the file but keeps its changes; `changes` are applied last.
    """
    document = read_toml(path, "a design")
    check_keys(str(path), document, DESIGN_KEYS)
    tables = {name: document.get(name, {}) for name in DESIGN_TABLES}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise ArgumentError(f"{path}: {name} must be a table, not {shown(table)}; write it as [{name}]")
        if isinstance(table.get("tune"), bool):
            raise ArgumentError(f"{path}: tune is a key of the file, not of [{name}]; move it in front of all tables")
    fields = dict(tables["device"])
    name = fields.pop("base", default_spec())
    if not isinstance(name, str):
        raise ArgumentError(f"{path}: device.base must be the name of a device or a file, not {shown(name)}")
    base = changed(load_spec(device or name), [f"{field}={_text(value)}" for field, value in leaves(fields)])
    base = changed(base, changes)
    networks = _networks(path, document)
    layers = _layers(path, document, needed=not networks)
    axes = tuple(_axes(tables["space"], base))
    numeric = [*(field.name for field in numeric_fields(base)), *JUDGED]
    costs = {}
    for cost, text in tables["costs"].items():
        try:
            costs[cost] = formula(text, numeric)
        except ArgumentError as error:
            raise ArgumentError(f"design: costs.{cost}: {error}") from error
    counts = dict(leaves(tables["counts"]))
    check_keys("design: counts", counts, [layer.name for layer in layers] + [network.name for network in networks])
    for layer, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ArgumentError(f"design: counts.{layer} must be an integer of at least 1, not {shown(count)}")
    tune = document.get("tune", True)
    if not isinstance(tune, bool):
        raise ArgumentError(f"{path}: tune must be true or false, not {shown(tune)}")
    return Design(base=base, axes=axes, costs=costs, layers=layers, networks=networks, counts=counts, tune=tune)


def _axes(table: Mapping[str, Any], base: DeviceSpec) -> Iterator[DesignAxis]:
    known = {field.name: field for field in fields_of(base)}
    for name, values in leaves(table, whole=RANGE):
        if name != GRID and name not in known:
            raise ArgumentError(f"design: space: unknown field {shown(name)}{nearest(name, [*known, GRID])}")
        if isinstance(values, Mapping):
            values = list(_range(known.get(name), name, values))
        if not isinstance(values, list) or not values:
            raise ArgumentError(
                f"design: space.{name} must be a list of values, or {{from = ..., to = ..., step = ...}}, "
                f"not {shown(values)}"
            )
        spellings = []
        for value in values:
            read = read_change(f"{name}={_text(value)}", known)
            spellings.append("x".join(str(side) for _, side in read) if len(read) > 1 else spelled(*read[0]))
        twice = _twice(spellings)
        if twice is not None:
            raise ArgumentError(f"design: space.{name} has {twice} twice; keep one of them")
        yield DesignAxis(name=name, values=tuple(spellings))


def _range(field: Field | None, name: str, table: Mapping[str, Any]) -> Iterator[Value]:
    """Values of a range, both ends included, with equal differences or equal ratios."""
    where = f"design: space.{name}"
    check_keys(where, table, RANGE)
    if field is None or not field.numeric or "from" not in table or "to" not in table or len(table) != 3:
        raise ArgumentError(
            f"{where}: a range is {{from, to, step}} or {{from, to, factor}} of a number, "
            f"not {shown(dict(table))}; or give a list of values"
        )
    exact = {key: Fraction(repr(read_value(field, _text(table[key])))) for key in RANGE[:3] if key in table}
    factor = table.get("factor")
    if "step" not in exact and (
        not isinstance(factor, int | float) or isinstance(factor, bool) or not 1 < factor < float("inf")
    ):
        raise ArgumentError(f"{where}: factor must be a number above 1, not {shown(factor)}; such as 2")
    low, high, step = exact["from"], exact["to"], exact.get("step")
    if not 0 < low <= high or (step is not None and step <= 0):
        raise ArgumentError(f"{where}: a range goes upward, from above zero, not {shown(dict(table))}")
    for count in range(MOST_VALUES + 1):
        value = low * Fraction(repr(factor)) ** count if step is None else low + step * count
        if value > high:
            return
        yield round(value) if isinstance(field.value, int) else float(value)
    raise ArgumentError(f"{where}: a range has at most {MOST_VALUES} values; take larger steps")


def _layers(path: Path, document: Mapping[str, Any], *, needed: bool) -> tuple[Layer, ...]:
    """The layers of the design or of another file, filtered by name; the default layers if the design needs some."""
    only = document.get("only", "")
    if not isinstance(only, str):
        raise ArgumentError(f"{path}: only must be a part of the names of layers, not {shown(only)}")
    every = layers_said(document, path) or (read_layers(DEFAULT_LAYERS) if needed or only else ())
    chosen = tuple(layer for layer in every if only in layer.name)
    if every and not chosen:
        raise ArgumentError(f"{path}: no layer has {shown(only)} in its name; leave only away for all of them")
    return chosen


def _networks(path: Path, document: Mapping[str, Any]) -> tuple[RecordedNetwork, ...]:
    """The recorded networks of a design, whose paths are relative to its folder."""
    named = document.get("networks", [])
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ArgumentError(f"{path}: networks must be a list of files of `ttsim exec --record`, not {shown(named)}")
    return tuple(read_network(path.parent / name) for name in named)


def _text(value: Any) -> str:
    """A TOML value as `changed` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return str(value)
