"""What a sweep goes over: layers, devices, and axes of settings, whose product are its points."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from device.errors import ArgumentError, shown
from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import changed
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values
from ttsim.study.points.point import Point
from ttsim.study.sweep.axis import DEVICE, Axis, Variant
from ttsim.types.layer import Layer


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
