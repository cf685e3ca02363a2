"""Points of a space that cannot differ are looked into once: those that agree in every field that was read.

A point is worked out on a device that notes which of its fields are read. Whatever has the same values in these fields
gives the same row: the same calculation reads the same figures. Which fields that are is found out for each point anew,
since a machine with less memory may take another way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from device.spec.device_spec import DeviceSpec
from ops.fields.asked import fields_asked
from ttsim.experiments.design.space import DesignAxis
from ttsim.experiments.point import Evaluator, Point
from ttsim.experiments.row import Row
from ttsim.types.layer import Layer

Asked: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardPoint(Point):
    """A point on a device that notes what is read; making its key would read all, and nobody needs it."""

    @property
    def key(self) -> str:
        """None."""
        return ""


class Collapsing:
    """Rows of points of a design, each worked out once.

    Attributes:
        asked: Axes that any point read.
        looked: How many points were worked out.
    """

    def __init__(self, axes: Sequence[DesignAxis]) -> None:
        self.asked: set[str] = set()
        self.looked = 0
        self._axes = tuple(axes)
        self._known: dict[str, dict[Asked, dict[tuple[str, ...], Row]]] = {}

    def row(self, layer: Layer, spec: DeviceSpec, values: Mapping[str, str]) -> Row:
        """What becomes of a layer on a device of the space.

        Args:
            layer: The layer, with a name of its own.
            spec: The device.
            values: By the names of axes, what the device has; spelled alike where they are.
        """
        known = self._known.setdefault(layer.name, {})
        for asked, rows in known.items():
            row = rows.get(tuple(values[name] for name in asked))
            if row is not None:
                return replace(row, device=spec.name, error=row.error.replace(row.device, spec.name))
        row, asked = self._look(layer, spec)
        known.setdefault(asked, {})[tuple(values[name] for name in asked)] = row
        return row

    def _look(self, layer: Layer, spec: DeviceSpec) -> tuple[Row, Asked]:
        """A row, and the axes whose fields were read for it."""
        rows: list[Row] = []
        point = HeardPoint(layer=layer, spec=spec)
        read = fields_asked(lambda heard: rows.append(Evaluator().row(replace(point, spec=heard))), spec)
        asked = tuple(axis.name for axis in self._axes if read.intersection(axis.fields))
        self.asked.update(asked)
        self.looked += 1
        return rows[0], asked
