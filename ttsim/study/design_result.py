"""The result of a design: every machine with its time and its costs, and the front, as text and as figures."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ops.passes.sensitivity import Sensitivity
from ttsim.report.formatting import counted, csv_text, fitted, printable_lines, text, time
from ttsim.runtime.shown import Headed, html_table
from ttsim.study.explore import BATCH
from ttsim.study.space import JUDGED

FORMAT: Final = 1  # raised when a field changes its meaning or goes
FIGURES: Final = (
    *("nanoseconds", "given_nanoseconds", "cycles_error_share", "untimed_operations", *JUDGED),
    *("device", "reason"),
)
NOT_LOOKED: Final = "not looked at"
STRONGEST: Final = 5  # sensitivities, and slowdowns, that are listed
LONGEST_REASON: Final = 76  # characters of a line


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerOutcome:
    """The result of a layer on a machine."""

    layer: str
    count: int  # How often a network runs it
    verdict: str  # "fits", "does not fit", "refused" or "failed", as of `ttsim.study.store.Verdict`
    error: str  # Why it does not run; empty if it does
    cycles: int | None  # Cycles of one run, of all device operations that have a model; None if the layer does not run
    nanoseconds: float | None  # The same in time
    cycles_error_share: float | None  # Expected error of the cycles; None without a measurement
    untimed_operations: int | None  # Device operations without a model, which the cycles leave out
    l1_peak_bytes: int | None  # Of a core, at its fullest moment: circular buffers and buffers together
    l1_headroom_bytes: int | None  # Between circular buffers and buffers, of the tightest device operation
    bound_by: str | None  # The stages that bind most of its cycles, with their shares
    # The config that makes a layer faster or fit, as Python, or how many convolutions of a network have another one;
    # empty if there is no other config
    arguments: str = ""
    given_nanoseconds: float | None = None  # Time with the layer's own config; None if that does not run
    energy_femtojoules: int | None = None  # Of one run, by a table that nothing validates; None if it is not known
    grid_rules: str = ""  # What rules of the planner do to its cores, a line each; empty where a config names them


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignPoint:
    """A machine of the space."""

    values: Mapping[str, str]  # By axis
    device: str = ""  # Its name; empty if the values contradict each other
    # Why there is no such machine, which layer does not run, or "not looked at"; empty if all layers run
    reason: str = ""
    costs: Mapping[str, float] = field(default_factory=dict)  # By name; empty without such a machine
    nanoseconds: float | None = None  # Time of all layers, each multiplied by its count; None if a layer does not run
    given_nanoseconds: float | None = None  # The same with the layers' own configs
    # Expected error: the mean of the layers' shares, weighted by time; None if a layer has none
    cycles_error_share: float | None = None
    untimed_operations: int | None = None  # Of all layers together
    area_mm2: float | None = None  # Of the chip, by a table that nothing validates, as are the three below
    energy_joules: float | None = None  # Of all layers, each multiplied by its count; None if it is not known
    average_watts: float | None = None
    energy_delay_joule_seconds: float | None = None
    layers: tuple[LayerOutcome, ...] = ()  # Result of each layer


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisEffect:
    """The effect of a field in the space."""

    name: str
    values: int  # How many
    read: bool  # Whether any point reads it; if not, it was collapsed
    # The largest slowdown from its fastest to its slowest value, with all other fields fixed; None if no two values run
    moves_share: float | None
    decides: bool  # Whether a change of this field alone can decide if all layers run
    priced: bool  # Whether a cost names it


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowerLayer:
    """A layer that is slower on a machine with more of a resource, while all other fields of the space are the same."""

    layer: str
    axis: str  # The field, or "grid"
    smaller: str  # Its value on the faster machine
    larger: str
    others: Mapping[str, str]  # The other fields of the space on both machines
    share: float  # By which part of the time it is slower
    planner_share: float  # The part of it that another plan makes: the smaller machine's takes less on the larger one
    networks_share: float  # The part of it that longer or busier ways through the networks make, with the same plan
    # What rules of the planner do on the larger machine and what its networks do, a line each; where these do not make
    # all of it but 1 %, what binds
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceStep:
    """A machine with the next smaller or larger value of one field of the space, and all other fields the same."""

    value: str
    # Of all layers, as a part of the time of the machine beside it, each tuned if layers are; None if one does not run
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEffect:
    """The effect of a field on the time of a machine of the front.

    The figure changes while configs and plans stay fixed; None if the field changes plans, or has no effect.
    """

    machine: int  # Its number among the points
    name: str
    value: str
    varied: bool  # Whether the field is one of the space
    time_elasticity: float | None  # d log(time) / d log(figure), as of `Sensitivity`
    doubled_time: float | None  # Time with twice the figure, of the time as it is; None if no machine can have it
    halved_time: float | None  # Time with half of it
    steps: tuple[SpaceStep, ...]  # Machines beside it in the space that were looked at, the value before first


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationSides:
    """A device operation of a layer on the base device and on the fastest machine, matched in order."""

    layer: str
    count: int  # How often a network runs the layer
    position: int  # Among the matched operations of the layer
    operation: str  # Its kind: Conv2d, Halo ..
    before_nanoseconds: float | None  # On the base device; None where it does not run there, or has no model
    after_nanoseconds: float | None  # On the fastest machine, likewise
    more_nanoseconds: float | None  # After less before, of one run; an operation that does not run counts 0
    before_cycles: int | None
    after_cycles: int | None
    before_bound: str  # The stage that binds it
    after_bound: str
    differences: str  # Cores, fidelity, tensors, and the stages that changed most


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DesignResult(Headed):
    """Every machine of a design; ``print(result)`` shows the front, ``to_json()`` has all figures. `design` returns it.

    Attributes:
        base: Name of the device that was varied.
        layers: Names of the layers, whose times are added.
        axes: The effect of each field.
        points: Every machine, in order of the space.
        front: Indices of the points of the Pareto front of time and all costs, the fastest first; of equal points only
            the first.
        tuned: Whether each layer was tuned on each machine.
        alike: For each point of the front, the number of other points with the same time and costs.
        looked: Number of pairs of layer and machine that were evaluated; the results of all others equal one of these.
        sensitivity: Elasticities of the time on the base device with fixed plans, the strongest first.
        convergence: If an optimizer chose machines, the hypervolume of their front after each batch, as a share of the
            final one; if the last batches still grow, more evaluations would find more.
        slower: Layers that become slower by more than 1 % with more of a resource, with the largest slowdown of each.
        effects: Effects of the fields of the space, and of the strongest others, on the first machines of the front.
        sides: The device operations of each layer on the base device and on the fastest machine, in order; empty if the
            base device is not in the space, does not run all layers, or is the fastest.

    Examples:
        >>> result = ttnn.DesignResult(
        ...     base="wormhole_n150", layers=(), axes=(), points=(), front=(), tuned=False, alike=(), looked=0,
        ...     sensitivity=())
        >>> result.records()
        []
    """

    base: str
    layers: tuple[str, ...]
    axes: tuple[AxisEffect, ...]
    points: tuple[DesignPoint, ...]
    front: tuple[int, ...]
    tuned: bool
    alike: tuple[int, ...]
    looked: int
    sensitivity: tuple[Sensitivity, ...]
    convergence: tuple[float, ...] = ()
    slower: tuple[SlowerLayer, ...] = ()
    effects: tuple[FieldEffect, ...] = ()
    sides: tuple[OperationSides, ...] = ()

    def to_json(self) -> str:
        """All figures; the same bytes for the same design."""
        return text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return {"format": FORMAT, **asdict(self)}

    def records(self) -> list[dict[str, Any]]:
        """A flat dict of each machine, all with the same keys: ``pandas.DataFrame(found.records())``."""
        costs = list(dict.fromkeys(name for point in self.points for name in point.costs))
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
        """A line of column names, then one line per machine; unknown cells are empty."""
        records = self.records()
        return csv_text(list(records[0]), records)

    @property
    def headline(self) -> str:
        """The numbers of machines and layers, and of machines that run all layers, in one line."""
        run = sum(point.nanoseconds is not None for point in self.points)
        return (
            f"Design around {self.base}: {len(self.points):,} machines, {counted(len(self.layers), 'layer')}; "
            f"{run:,} machines run all of them."
        )

    def __str__(self) -> str:
        """The front; then the effect of each field, and the failures."""
        lines = [
            self.headline,
            f"Worked out: {self.looked:,} of {len(self.points) * len(self.layers):,} layers on machines; the others "
            "agree with one of them in all that is read.",
            *self._convergence(),
            "",
            *self._front(),
            "",
            "Fields of the space:",
            *(f"  {axis.name}: {effect_text(axis)}" for axis in self.axes),
            *self._slower(),
            *self._effects(),
            *self._sides(),
        ]
        if self.sensitivity:
            varied = {axis.name for axis in self.axes}
            held = "configs of the file and plans" if self.tuned else "plans"
            lines += ["", f"Strongest figures of {self.base} with {held} held, log(time) over log(figure):"]
            for effect in self.sensitivity[:STRONGEST]:
                elsewhere = "" if effect.figure in varied else ", not varied here"
                lines.append(f"  {effect.figure}: {effect.time_elasticity:+.3f}{elsewhere}")
        reasons = Counter(_shortened(point.reason) for point in self.points if point.reason not in ("", NOT_LOOKED))
        if reasons:
            lines += ["", "Machines that do not run all layers:"]
            lines += [f"  {count:,} x {reason}" for reason, count in reasons.items()]
        lines += [*self._binding(), "", *self._configs()]
        return printable_lines("\n".join(lines))

    def _slower(self) -> list[str]:
        """The largest slowdowns caused by more of a resource, with the planner's rule."""
        lines = []
        for each in self.slower[:STRONGEST]:
            others = ", ".join(f"{name} {value}" for name, value in each.others.items())
            sizes = f"{each.axis} {each.larger} than with {each.smaller}" + (f" ({others})" if others else "")
            lines.append(f"  {each.layer}: {100 * each.share:.3g} % slower with {sizes}:")
            lines += [f"    {line}" for line in each.reason.splitlines()]
        left = len(self.slower) - STRONGEST
        return ["", "Slower with more:", *lines, *([f"  and {left} more"] if left > 0 else [])] if lines else []

    def _effects(self) -> list[str]:
        """The effects of fields on machines of the front."""
        lines = []
        for at in dict.fromkeys(effect.machine for effect in self.effects):
            own = [effect for effect in self.effects if effect.machine == at]
            cells = [
                [
                    effect.name,
                    effect.value,
                    "" if effect.time_elasticity is None else f"{effect.time_elasticity:+.3f}",
                    *("" if time is None else change_text(time) for time in (effect.halved_time, effect.doubled_time)),
                    steps_text(effect),
                ]
                for effect in own
            ]
            lines += ["", f"What changes {self._machine(at)}:", *fitted([EFFECT_CELLS, *cells], None, words=WORDS)]
        if not lines:
            return []
        held = "configs and plans" if self.tuned else "plans"
        left = len(self.front) - len({effect.machine for effect in self.effects})
        more = f" {counted(left, 'machine')} more of the front: not looked at." if left else ""
        note = f"Log(time) over log(field), half and twice: only the figure changes, with {held} held."
        anew = "tuned anew" if self.tuned else "planned anew"
        return [*lines, note, f"Beside in the space: the machine of another value, {anew}.{more}"]

    def _machine(self, at: int) -> str:
        """A machine by the fields that distinguish the front."""
        point = self.points[at]
        return ", ".join(f"{name} {point.values[name]}" for name in self._front_axes)

    def _sides(self) -> list[str]:
        """The operations whose time differs most between the base device and the fastest machine."""
        moved = [side for side in self.sides if side.more_nanoseconds]
        most = sorted(moved, key=lambda side: -abs(side.count * (side.more_nanoseconds or 0.0)))[:MOST_SIDES]
        if not most:
            return []
        cells = [
            [
                side.layer,
                side.operation,
                *("" if own is None else time(own) for own in (side.before_nanoseconds, side.after_nanoseconds)),
                time(side.more_nanoseconds or 0.0, "+"),
                " -> ".join(dict.fromkeys(filter(None, (side.before_bound, side.after_bound)))),
                side.differences,
            ]
            for side in most
        ]
        head = f"Operations that gain and lose most, from {self.base} to the fastest machine:"
        left = len(moved) - len(most)
        more = [f"  and {left} more"] if left else []
        return ["", head, *fitted([SIDE_CELLS, *cells], None, words=WORDS), *more]

    def _binding(self) -> list[str]:
        """The bottleneck of each layer and network on the fastest machine, and the peak of L1."""
        fastest = self.points[self.front[0]].layers if self.front else ()
        told = [
            f"  {each.layer}: {each.bound_by}; L1 of a core at most {each.l1_peak_bytes:,} B"
            for each in fastest
            if each.bound_by and each.l1_peak_bytes is not None
        ]
        return ["", "What binds on the fastest machine, in shares of the cycles:", *told] if told else []

    def _convergence(self) -> list[str]:
        """The growth of the front with the machines that an optimizer chose."""
        if not self.convergence:
            return []
        looked = sum(point.reason != NOT_LOOKED for point in self.points if point.device)
        shares = ", ".join(f"{100 * share:.3g} %" for share in self.convergence)
        return [f"An optimizer looked at {looked:,} machines; hypervolume of the front after each {BATCH}: {shares}"]

    def _configs(self) -> list[str]:
        """The kind of configs, and the configs of the fastest machine that differ from the layers' own."""
        if not self.tuned:
            return [
                "Layers have the configs of the file. Without `tune = false` in the file, each layer is tuned on each",
                "machine, and may be faster, or fit where its own config does not.",
            ]
        fastest = self.points[self.front[0]].layers if self.front else ()
        found = [f"  {layer.layer}: {layer.arguments}" for layer in fastest if layer.arguments]
        head = "Each layer was tuned on each machine, as by `ttsim tune`."
        return [head, "Configs of the fastest machine that are not those of the file:", *found] if found else [head]

    def _repr_html_(self) -> str:
        return html_table(self._front_cells(), words=self._front_axes, caption=self.headline)

    def _front(self) -> list[str]:
        """A line for each machine of the front."""
        if not self.front:
            return ["No machine runs all layers."]
        return ["Pareto front, the fastest first:", *fitted(self._front_cells(), None, words=self._front_axes)]

    @property
    def _front_axes(self) -> list[str]:
        """The fields that distinguish machines of the front."""
        return [axis.name for axis in self.axes if axis.read or axis.priced]

    def _front_cells(self) -> list[list[str]]:
        """Headings, and the cells of each machine of the front."""
        costs, names = list(self.points[self.front[0]].costs) if self.front else [], self._front_axes
        rows = [[*names, "time", *["as given"] * self.tuned, "error", *costs, "alike"]]
        for at, others in zip(self.front, self.alike, strict=True):
            point = self.points[at]
            share = "" if point.cycles_error_share is None else f"{100 * point.cycles_error_share:.1f} %"
            figures = [f"{point.costs[name]:.6g}" for name in costs]
            values = [point.values[name] for name in names]
            given = "does not run" if point.given_nanoseconds is None else time(point.given_nanoseconds)
            times = [time(point.nanoseconds or 0), *[given] * self.tuned]
            rows.append([*values, *times, share, *figures, f"{others or ''}"])
        return rows


EFFECT_CELLS: Final = ("field", "value", "log/log", "half", "twice", "beside in the space")
SIDE_CELLS: Final = ("layer", "operation", "before", "after", "change", "bound by", "what differs")
WORDS: Final = ("field", "beside in the space", "layer", "operation", "bound by", "what differs")
MOST_SIDES: Final = 10  # operations that the text lists


def change_text(time_share: float) -> str:
    """A time relative to the current time: "+12.5 %"."""
    return f"{100 * (time_share - 1):+.1f} %"


def steps_text(effect: FieldEffect) -> str:
    """The neighboring machines in the space: "6: +80.1 %, 24: does not run"."""
    return ", ".join(
        f"{step.value}: {'does not run' if step.time is None else change_text(step.time)}" for step in effect.steps
    )


def effect_text(axis: AxisEffect) -> str:
    """The effect of a field on the time of all layers, and on whether they run."""
    decided = "decides whether layers fit" if axis.decides else ""
    if not axis.read:
        return f"no layer reads it; its values ({axis.values}) were collapsed"
    if axis.moves_share is None:
        return decided or ("one value" if axis.values == 1 else "no two of its values run")
    moved = f"moves time by up to {100 * axis.moves_share:.3g} %" if axis.moves_share else "moves no time"
    return f"{moved}; {decided}" if decided else moved


def _shortened(reason: str) -> str:
    line = reason.splitlines()[0]
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 3]}..."
