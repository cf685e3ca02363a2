"""What a design goes over: a device, axes of its fields, costs by formula, and the layers whose time counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final

from device.errors import ArgumentError, SpecError, shown
from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import GRID, Formula, changed
from ttsim.types.layer import Layer

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
