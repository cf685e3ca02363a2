"""What a design found: every machine with its time and costs, the Pareto front, and what each field means."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ops.passes.sensitivity import Sensitivity
from ttsim.report.columns import aligned
from ttsim.report.plain import csv_text, text
from ttsim.report.printable import printable_lines

FORMAT: Final = 1  # raised when a field changes its meaning or goes
FIGURES: Final = ("nanoseconds", "cycles_error_share", "untimed_operations", "device", "reason")
STRONGEST: Final = 5  # sensitivities that are told
LONGEST_REASON: Final = 76  # characters of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOutcome:
    """A layer on a machine."""

    layer: str
    count: int  # How often a network runs it
    verdict: str  # "fits", "does not fit", "refused" or "failed", as of `ttsim.study.points.row.Verdict`
    error: str  # Why it does not run; empty if it does
    cycles: int | None  # Of all device operations that have a model, for one run; None where it does not run
    nanoseconds: float | None  # The same in time
    cycles_error_share: float | None  # How far the cycles are to be expected off; None where nothing was measured
    untimed_operations: int | None  # Device operations without a model, which the cycles leave out
    l1_headroom_bytes: int | None  # Between circular buffers and buffers, of the tightest device operation


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPoint:
    """A machine of the space."""

    values: Mapping[str, str]  # By axis
    device: str  # Its name; empty where there is no such machine
    reason: str  # Why there is no such machine, or which layer does not run; empty if all do
    costs: Mapping[str, float]  # By name; none where there is no such machine
    nanoseconds: float | None  # Of all layers together, each as often as a network runs it; None if not all run
    # How far that is to be expected off: the mean of the layers' shares by time; None where a layer has none
    cycles_error_share: float | None
    untimed_operations: int | None  # Of all layers together
    layers: tuple[LayerOutcome, ...]  # What becomes of each


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisEffect:
    """What a field means in the space."""

    name: str
    values: int  # How many
    read: bool  # Whether any point reads it; if not, it was collapsed
    # By how much the slowest of its values is slower than the fastest, at most, with all other fields held; 0 if it
    # moves no time; None where no two of its values run
    moves_share: float | None
    decides: bool  # Whether its values alone decide somewhere if all layers run
    priced: bool  # Whether a cost names it


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignResult:
    """Every machine of a space; ``print(result)`` shows the front, ``to_json()`` has all figures.

    Attributes:
        base: Name of the device that was varied.
        layers: Names of the layers whose times are added.
        axes: What each field means.
        points: Every machine, in order of the space.
        front: Numbers of the points of which no other is better in time and all costs, the fastest first; of points
            that are alike in all of these the first.
        alike: For each point of the front, how many others are as good in everything.
        looked: Layers on machines that were worked out; the others could not differ from one of them.
        sensitivity: On the base device with its plans held: what each figure means for the time, the strongest first.
    """

    base: str
    layers: tuple[str, ...]
    axes: tuple[AxisEffect, ...]
    points: tuple[DesignPoint, ...]
    front: tuple[int, ...]
    alike: tuple[int, ...]
    looked: int
    sensitivity: tuple[Sensitivity, ...]

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """All figures; the same bytes for the same design."""
        return text(self.to_dict())

    def records(self) -> list[dict[str, Any]]:
        """A flat dict of each machine, all with the same keys: ``pandas.DataFrame(found.records())``."""
        costs = list(next((point.costs for point in self.points if point.device), {}))
        return [
            {
                **point.values,
                **{f"cost.{name}": point.costs.get(name) for name in costs},
                **{name: getattr(point, name) for name in FIGURES},
                "front": at in self.front,
            }
            for at, point in enumerate(self.points)
        ]

    def to_csv(self) -> str:
        """A line of column names, then one for each machine; what is unknown is empty."""
        records = self.records()
        return csv_text(list(records[0]), records)

    def __str__(self) -> str:
        """The front; then what each field means, and what does not run."""
        run = sum(point.nanoseconds is not None for point in self.points)
        lines = [
            f"Design around {self.base}: {len(self.points):,} machines, {len(self.layers)} layers; "
            f"{run:,} machines run all of them.",
            f"Worked out: {self.looked:,} of {len(self.points) * len(self.layers):,} layers on machines; the others "
            "agree with one of them in all that is read.",
            "",
            *(self._front() if self.front else ["No machine runs all layers."]),
            "",
            *self._fields(),
            *self._sensitivities(),
            *self._refusals(),
        ]
        return printable_lines("\n".join(lines))

    def _front(self) -> list[str]:
        """A line for each machine of the front."""
        costs = list(self.points[self.front[0]].costs)
        names = [axis.name for axis in self.axes if axis.read or axis.priced]
        rows = [[*names, "time", "error", *costs, "alike"]]
        for at, alike in zip(self.front, self.alike, strict=True):
            point = self.points[at]
            share = "" if point.cycles_error_share is None else f"{100 * point.cycles_error_share:.1f} %"
            figures = [f"{point.costs[name]:.6g}" for name in costs]
            values = [point.values[name] for name in names]
            rows.append([*values, f"{(point.nanoseconds or 0) / 1000:,.2f} us", share, *figures, f"{alike or ''}"])
        return ["Pareto front, the fastest first:", *aligned(rows, words=range(len(names)))]

    def _fields(self) -> list[str]:
        """A line for each field of the space."""
        return ["Fields of the space:", *(f"  {one.name}: {_means(one)}" for one in self.axes)]

    def _sensitivities(self) -> list[str]:
        """Which figures of the base device mean most, in the space or not."""
        if not self.sensitivity:
            return []
        varied = {axis.name for axis in self.axes}
        told = [
            f"  {one.figure}: {one.time_elasticity:+.3f}{'' if one.figure in varied else ', not varied here'}"
            for one in self.sensitivity[:STRONGEST]
        ]
        head = f"Strongest figures of {self.base} with plans held, log(time) over log(figure):"
        return ["", head, *told]

    def _refusals(self) -> list[str]:
        """Why machines do not run all layers, with how many."""
        counts: dict[str, int] = {}
        for point in self.points:
            if point.reason:
                told = _shortened(point.reason)
                counts[told] = counts.get(told, 0) + 1
        if not counts:
            return []
        lines = (f"  {count:,} x {told}" for told, count in counts.items())
        return ["", "Machines that do not run all layers:", *lines]


def _means(axis: AxisEffect) -> str:
    """What a field means, in words."""
    decided = "decides whether layers fit" if axis.decides else ""
    if not axis.read:
        return f"no layer reads it; its values ({axis.values}) were collapsed"
    if axis.moves_share is None:
        return decided or ("one value" if axis.values == 1 else "no two of its values run")
    if axis.moves_share == 0:
        return f"moves no time{f'; {decided}' if decided else ''}"
    return f"moves time by up to {100 * axis.moves_share:.3g} %{f'; {decided}' if decided else ''}"


def _shortened(reason: str) -> str:
    line = reason.splitlines()[0]
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 3]}..."
