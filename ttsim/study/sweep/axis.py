"""One setting that a sweep varies, and its values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from device.errors import ArgumentError, nearest, shown
from device.spec.device_spec import DeviceSpec
from ops.planners.onednn.plan import Lowering
from ops.sensitivity.changes import GRID, changed
from ops.sensitivity.fields import fields_of
from ttsim.study.layers.read import checked
from ttsim.study.layers.run import compute_config, conv_config, slice_config
from ttsim.study.points.point import LAYER_INPUTS
from ttsim.types.configs import Conv2dConfig, WormholeComputeKernelConfig
from ttsim.types.layer import Layer, Setting

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
