"""What a sweep found, to look at, to plot and to hand on."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from ttsim.report.plain import csv_text, text
from ttsim.study.points.row import Row, Verdict

FORMAT: Final = 1  # raised when a column changes its meaning or goes
FIGURES: Final = tuple(one.name for one in fields(Row) if one.name not in ("key", "layer", "device", "inputs"))
TAIL: Final = (*FIGURES, "nanoseconds", "key")  # columns behind those of what a point is


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fastest point of a layer on a device."""

    layer: str
    device: str
    labels: Mapping[str, Any] | None  # The point's value on each axis; None if no point runs
    row: Row | None  # The point's row; None if no point runs
    fitting: int  # Points that run
    points: int  # All points of this layer on this device
    slowest_cycles: int | None  # Of the slowest point that runs, to see what the choice means; None if none runs
    nanoseconds: float | None  # Of the fastest one; None if none runs
    reason: str  # Why the first of the points does not run that do not, in a line; empty if all run


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepResult:
    """Every point of a sweep with its row.

    Attributes:
        axes: Names of the settings that were varied.
        samples: Values on the axes, by name, and row of each point, in order.
        note: What the user should know of the file; empty if nothing.
    """

    axes: tuple[str, ...]
    samples: tuple[tuple[Mapping[str, Any], Row], ...]
    note: str = ""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The row of each point, in order."""
        return tuple(row for _, row in self.samples)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many points there are of each verdict."""
        return dict(Counter(row.verdict.value for row in self.rows))

    @property
    def plans(self) -> int:
        """How many plans differ among those of points that run."""
        return len({row.plan_key for row in self.rows if row.plan_key is not None})

    def records(self) -> list[dict[str, Any]]:
        """A flat dict of each point, all with the same keys: ``pandas.DataFrame(result.records())``."""
        made = [_record(labels, row) for labels, row in self.samples]
        names = list(dict.fromkeys(name for record in made for name in record if name not in TAIL))
        return [{name: record.get(name) for name in (*names, *TAIL)} for record in made]

    def best(self) -> tuple[Best, ...]:
        """The fastest point of each layer on each device, in order; of equal ones the first.

        A point with operations that have no model is behind all without.
        """
        groups: dict[tuple[str, str], list[tuple[Mapping[str, Any], Row]]] = {}
        for labels, row in self.samples:
            groups.setdefault((row.layer, row.device), []).append((labels, row))
        return tuple(_best(layer, device, group) for (layer, device), group in groups.items())

    def to_csv(self) -> str:
        """A line of column names, then one for each point; what is unknown is empty."""
        records = self.records()
        return csv_text(list(records[0]) if records else [], records)

    def to_json(self) -> str:
        """All records; the same bytes for the same points."""
        return text({"format": FORMAT, "axes": list(self.axes), "points": self.records()})


def _record(labels: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """All of a point, flat; sizes of several axes are text, as in `Row.inputs`."""
    values = row.to_dict()
    inputs = values.pop("inputs")
    others = {name: value for name, value in labels.items() if name not in inputs}
    made = {"layer": row.layer, "device": row.device, **others, **inputs, **values}
    return made | {"nanoseconds": row.nanoseconds}


def _best(layer: str, device: str, group: list[tuple[Mapping[str, Any], Row]]) -> Best:
    runs = [(labels, row) for labels, row in group if row.verdict is Verdict.FITS]
    labels, row = min(runs, key=lambda one: (one[1].untimed_operations, one[1].cycles), default=(None, None))
    return Best(
        layer=layer,
        device=device,
        labels=labels,
        row=row,
        fitting=len(runs),
        points=len(group),
        slowest_cycles=max((row.cycles or 0 for _, row in runs), default=None),
        nanoseconds=None if row is None else row.nanoseconds,
        reason=next((row.error.partition("\n")[0] for _, row in group if row.error), ""),
    )
