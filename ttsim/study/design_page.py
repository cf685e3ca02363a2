"""The page of a design: the fastest machine with its fields, time against a cost, a heat map, and all machines."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from ttsim.report.formatting import counted, percent, time
from ttsim.report.sections import (
    MOST_POINTS,
    Cell,
    Field,
    Page,
    Section,
    View,
    axis_around,
    gain,
    heat,
    lines,
    points,
    short,
    table,
    verdict,
)
from ttsim.study.design_result import (
    AxisEffect,
    DesignPoint,
    DesignResult,
    FieldEffect,
    LayerOutcome,
    OperationSides,
    effect_text,
    steps_text,
)
from ttsim.study.store import front
from ttsim.study.sweep import LONGEST_REASON

PICTURE: Final = "Time against cost"
PICTURE_NOTE: Final = "Points are machines that run all layers, of machines alike the first; a line joins the best."
FRONT, OTHERS = "on the front", "other machines"
AREA, ENERGY = "area in mm2, unvalidated", "energy in J, unvalidated"
MAP_NOTE: Final = "The least figure of all machines with the two values."


def page_of_design(result: DesignResult) -> Page:
    """The page of a design."""
    order = sorted(range(len(result.points)), key=lambda at: (at not in result.front, _time(result.points[at])))
    shown = [result.points[at] for at in order[:MOST_POINTS]]
    best = result.points[result.front[0]] if result.front else None
    base = next((point for point in result.points if point.device == result.base), None)
    varied = [axis.name for axis in result.axes if len({point.values[axis.name] for point in shown}) > 1]
    costs = list(best.costs) if best else []
    fields = _fields(result, costs)
    sections = [_verdict(result, best, base), _gain(result, best, base), *_pictures(result, shown, costs)]
    if len(varied) > 1:
        sections.append(heat("map", "Two fields", MAP_NOTE, source="operations", across=varied[1], down=varied[0],
                             figures=["time", *costs], axes=varied))  # fmt: skip
    note = f"The first {len(shown):,} of {len(order):,} machines." if len(shown) < len(order) else ""
    ops = [[at] for at in range(len(shown))]
    sections.append(table("operations", "Machines", fields, shown, ops=ops, note=note))
    sections.append(table("fields", "Fields of the space", EFFECTS, result.axes))
    effects = [_Effect(effect, _values(result.points[effect.machine])) for effect in result.effects]
    places = {at: place for place, at in enumerate(order)}
    sections.append(table("effects", "What to change next on machines of the front", NEXT, effects, note=NEXT_NOTE,
                          ops=[[places[effect.machine]] for effect in result.effects]))  # fmt: skip
    if best:
        sections.append(table("layers", "Layers on the fastest machine", LAYERS, best.layers))
    if best and base and base.nanoseconds is not None and base is not best:
        sides = [_Sides(*pair) for pair in zip(base.layers, best.layers, strict=True)]
        sections.append(table("sides", f"Layers on {result.base} and on the fastest machine", SIDES, sides))
    title = f"Operations on {result.base} and on the fastest machine"
    most = sorted(result.sides, key=lambda side: -abs(side.count * (side.more_nanoseconds or 0.0)))
    sections.append(table("operation_sides", title, OPERATION_SIDES, most, note=SIDES_NOTE))
    device = f"{counted(len(result.points), 'machine')} around {result.base}"
    return Page(title="Design", device=device, views=[View(name="design", sections=sections)])


def _time(point: DesignPoint) -> float:
    return float("inf") if point.nanoseconds is None else point.nanoseconds


def _values(point: DesignPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.values.items())


def _verdict(result: DesignResult, best: DesignPoint | None, base: DesignPoint | None) -> Section:
    run = sum(point.nanoseconds is not None for point in result.points)
    facts: list[tuple[str, Cell, str]] = [
        ("fastest", best.nanoseconds if best else None, "ns"),
        (result.base, base.nanoseconds if base else None, "ns"),
        *((f"{name} of the fastest", cost, "figure") for name, cost in (best.costs.items() if best else ())),
        ("error expected", best.cycles_error_share if best else None, "share"),
        ("machines", len(result.points), "number"),
        ("machines that run all layers", run, "number"),
        ("on the front", len(result.front), "number"),
    ]
    asked = {"layers": ", ".join(result.layers)}
    if best is None:
        return verdict("bad", "No machine runs all layers.", facts, asked)
    text = f"The fastest of {counted(run, 'machine')} that run all layers takes {time(_time(best))}."
    return verdict("known", text, facts, asked)


def _gain(result: DesignResult, best: DesignPoint | None, base: DesignPoint | None) -> Section:
    if best is None:
        reasons = [point.reason for point in result.points if point.reason]
        return gain("No machine runs all layers.", short(reasons[0], LONGEST_REASON) if reasons else "")
    flags = " ".join(f"--set {name}={value}" for name, value in best.values.items())
    detail = "The fastest machine of the front; these flags make it of the base device."
    if base is None or base.nanoseconds is None or best is base:
        return gain(f"Fastest: {_values(best)}", detail, flags)
    saved = 1 - _time(best) / base.nanoseconds
    return gain(f"Saves {percent(saved)} of {result.base}: {_values(best)}", detail, flags)


def _pictures(result: DesignResult, shown: Sequence[DesignPoint], costs: Sequence[str]) -> Iterator[Section]:
    """Time against the first cost, the area and the energy."""
    if not costs or not result.front:
        text = "There is nothing to draw without a cost or a machine that runs all layers."
        yield lines("picture", PICTURE, [text])
    else:
        yield _picture(result, shown, "picture", PICTURE, costs[0], lambda point: point.costs[costs[0]])
    if result.front:
        yield _picture(result, shown, "area", "Time against area", AREA, lambda point: point.area_mm2)
        yield _picture(result, shown, "energy", "Time against energy", ENERGY, lambda point: point.energy_joules)


def _picture(
    result: DesignResult,
    shown: Sequence[DesignPoint],
    name: str,
    title: str,
    across: str,
    of: Callable[[DesignPoint], float | None],
) -> Section:
    places: dict[tuple[float, float], int] = {}  # the first of the machines that are alike
    for at, point in enumerate(shown):
        value = None if point.nanoseconds is None else of(point)
        if value is not None and point.nanoseconds is not None:
            places.setdefault((value, point.nanoseconds), at)
    aims, best = list(places), _front(result)
    return points(
        name,
        title,
        PICTURE_NOTE,
        x=axis_around(across, "", [value for value, _ in aims]),
        y=axis_around("time of all layers", "ns", [taken for _, taken in aims]),
        source="operations",
        marks=[(*aim, FRONT if shown[at].device in best else OTHERS, at) for aim, at in places.items()],
        lines=[("", [aims[at] for at in front(aims)])],
    )


def _front(result: DesignResult) -> set[str]:
    return {result.points[at].device for at in result.front}


def _fields(result: DesignResult, costs: Sequence[str]) -> Sequence[Field[DesignPoint]]:
    best = _front(result)

    def cost_of(name: str) -> Field[DesignPoint]:
        return Field(name, lambda point: point.costs.get(name), "figure")

    def value_of(name: str) -> Field[DesignPoint]:
        return Field(name, lambda point: point.values[name])

    return (
        Field("machine", _values),
        Field("time", lambda point: point.nanoseconds, "ns"),
        Field("as given", lambda point: point.given_nanoseconds, "ns"),
        *map(cost_of, costs),
        Field(FRONT, lambda point: "yes" if point.device in best else ""),
        Field("error expected", lambda point: point.cycles_error_share, "share"),
        Field(AREA, lambda point: point.area_mm2, "figure"),
        Field(ENERGY, lambda point: point.energy_joules, "figure"),
        *(value_of(axis.name) for axis in result.axes),
        Field("not timed", lambda point: point.untimed_operations or None, "number"),
        Field("reason", lambda point: short(point.reason.partition("\n")[0], LONGEST_REASON)),
    )


EFFECTS: Final[Sequence[Field[AxisEffect]]] = (
    Field("field", lambda axis: axis.name),
    Field("values", lambda axis: axis.values, "number"),
    Field("moves time by up to", lambda axis: axis.moves_share, "share"),
    Field("effect", effect_text),
)


class _Effect(NamedTuple):
    """The effect of a field on a machine."""

    of: FieldEffect
    machine: str


def _more(time_share: float | None) -> float | None:
    return None if time_share is None else time_share - 1


NEXT_NOTE: Final = (
    "dlog time, half and twice: only the figure changes, with configs and plans held. Beside in the space: the machine "
    "of the value before or after, planned anew, and tuned where layers are. Changes are of the time of all layers."
)
NEXT: Final[Sequence[Field[_Effect]]] = (
    Field("field", lambda row: row.of.name),
    Field("value", lambda row: row.of.value),
    Field("of the space", lambda row: "yes" if row.of.varied else ""),
    Field("dlog time", lambda row: row.of.time_elasticity, "slope"),
    Field("time with half", lambda row: _more(row.of.halved_time), "share"),
    Field("time with twice", lambda row: _more(row.of.doubled_time), "share"),
    Field("beside in the space", lambda row: steps_text(row.of)),
    Field("machine", lambda row: row.machine),
)
SIDES_NOTE: Final = (
    "Of one run of the layer, matched in order by kind; the largest change of all runs first. Stages that changed most "
    "are named with their change, in cycles, or in ns where the clocks differ."
)
OPERATION_SIDES: Final[Sequence[Field[OperationSides]]] = (
    Field("layer", lambda side: side.layer),
    Field("#", lambda side: side.position, "number"),
    Field("operation", lambda side: side.operation, "operation"),
    Field("count", lambda side: side.count, "number"),
    Field("before", lambda side: side.before_nanoseconds, "ns"),
    Field("after", lambda side: side.after_nanoseconds, "ns"),
    Field("difference", lambda side: side.more_nanoseconds, "ns"),
    Field("cycles before", lambda side: side.before_cycles, "cycles"),
    Field("cycles after", lambda side: side.after_cycles, "cycles"),
    Field("bound before", lambda side: side.before_bound),
    Field("bound after", lambda side: side.after_bound),
    Field("what differs", lambda side: side.differences),
)


class _Sides(NamedTuple):
    """A layer on the base device, where it may fail, and on the fastest machine."""

    base: LayerOutcome
    best: LayerOutcome

    @property
    def more(self) -> float | None:
        """The difference in ns between the fastest machine and the base device."""
        before, after = self.base.nanoseconds, self.best.nanoseconds
        return None if before is None or after is None else after - before


SIDES: Final[Sequence[Field[_Sides]]] = (
    Field("layer", lambda sides: sides.best.layer),
    Field("count", lambda sides: sides.best.count, "number"),
    Field("before", lambda sides: sides.base.nanoseconds, "ns"),
    Field("after", lambda sides: sides.best.nanoseconds, "ns"),
    Field("difference", lambda sides: sides.more, "ns"),
    Field(
        "of before",
        lambda sides: None if sides.more is None or not sides.base.nanoseconds else sides.more / sides.base.nanoseconds,
        "share",
    ),
    Field("bound before", lambda sides: sides.base.bound_by or ""),
    Field("bound after", lambda sides: sides.best.bound_by or ""),
)
LAYERS: Final[Sequence[Field[LayerOutcome]]] = (
    Field("layer", lambda layer: layer.layer),
    Field("time", lambda layer: layer.nanoseconds, "ns"),
    Field("as given", lambda layer: layer.given_nanoseconds, "ns"),
    Field("count", lambda layer: layer.count, "number"),
    Field("L1 at most", lambda layer: layer.l1_peak_bytes, "B"),
    Field("headroom", lambda layer: layer.l1_headroom_bytes, "B"),
    Field("bound by", lambda layer: layer.bound_by or ""),
    Field("error expected", lambda layer: layer.cycles_error_share, "share"),
    Field("arguments", lambda layer: layer.arguments, "code"),
)
