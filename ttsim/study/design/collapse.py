"""Points of a space that cannot differ are looked into once: those that agree in every field that was read.

A point is worked out on a device that notes which of its fields are read. Whatever has the same values in these fields
gives the same row: the same calculation reads the same figures. Which fields that are is found out for each point anew,
since a machine with less memory may take another way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from device.spec.device_spec import DeviceSpec
from ops.sensitivity.read_set import fields_asked
from ttsim.study.design.space import DesignAxis
from ttsim.study.points.point import Evaluator, Point
from ttsim.study.points.row import Row
from ttsim.types.layer import Layer

Asked: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardPoint(Point):
    """A point on a device that notes what is read; making its key would read all, and nobody needs it."""

    @property
    def key(self) -> str:
        """None."""
        return ""


class Machine(NamedTuple):
    """A device of a space, and what it has by the names of axes, spelled alike where that is alike."""

    spec: DeviceSpec
    values: Mapping[str, str]


class LayerRows(NamedTuple):
    """The rows of a layer on machines, in order; axes that any of them read; and how many were worked out."""

    rows: tuple[Row, ...]
    asked: frozenset[str]
    looked: int


def rows_of(layer: Layer, machines: Sequence[Machine], axes: Sequence[DesignAxis]) -> LayerRows:
    """What becomes of a layer on machines of a space."""
    known = Collapsing(layer, axes)
    rows = tuple(known.row(machine) for machine in machines)
    return LayerRows(rows, frozenset(known.asked), known.looked)


class Collapsing:
    """Rows of a layer on the machines of a space, each worked out once.

    Attributes:
        asked: Axes that any point read.
        looked: How many points were worked out.
    """

    def __init__(self, layer: Layer, axes: Sequence[DesignAxis]) -> None:
        self.asked: set[str] = set()
        self.looked = 0
        self._layer = layer
        self._axes = tuple(axes)
        self._known: dict[Asked, dict[tuple[str, ...], Row]] = {}

    def row(self, machine: Machine) -> Row:
        """What becomes of the layer on a machine."""
        spec, values = machine
        for asked, rows in self._known.items():
            row = rows.get(tuple(values[name] for name in asked))
            if row is not None:
                return replace(row, device=spec.name, error=row.error.replace(row.device, spec.name))
        row, asked = self._look(spec)
        self._known.setdefault(asked, {})[tuple(values[name] for name in asked)] = row
        return row

    def _look(self, spec: DeviceSpec) -> tuple[Row, Asked]:
        """A row, and the axes whose fields were read for it."""
        rows: list[Row] = []
        point = HeardPoint(layer=self._layer, spec=spec)
        read = fields_asked(lambda heard: rows.append(Evaluator().row(replace(point, spec=heard))), spec)
        asked = tuple(axis.name for axis in self._axes if read.intersection(axis.fields))
        self.asked.update(asked)
        self.looked += 1
        return rows[0], asked
