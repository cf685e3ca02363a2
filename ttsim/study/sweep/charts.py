"""Charts of a sweep: the best of each layer, two settings against each other, time against memory."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, shown
from ttsim.study.plots.charts import Bars, Chart, Dot, HeatMap, Scatter
from ttsim.study.plots.drawing import to_html, to_svg
from ttsim.study.points.row import Row
from ttsim.study.sweep.result import SweepResult
from ttsim.study.sweep.tables import word_of, words_of

LAYER: Final = "layer"
DEVICE: Final = "device"
TIME: Final = "time, us"
MEMORY: Final = "L1 peak of a core, KiB"


def write_plot(result: SweepResult, path: Path, across: Sequence[str] = ()) -> None:
    """Writes the charts of a sweep.

    Args:
        path: A file whose name ends in .svg or .html.
        across: As of `charts_of`.

    Raises:
        ArgumentError: The name ends in something else, or an axis is none of the sweep's.
        OSError: The file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in (".svg", ".html"):
        raise ArgumentError(f"sweep: a plot is a file .svg or .html, not {shown(path.name)}")
    charts = charts_of(result, across)
    path.write_text(to_svg(charts) if suffix == ".svg" else to_html("ttsim sweep", charts), encoding="utf-8")


def charts_of(result: SweepResult, across: Sequence[str] = ()) -> list[Chart]:
    """The charts that a sweep has figures for.

    Args:
        across: Names of the two axes of heat maps, or "layer" and "device"; by default the first two that vary.

    Raises:
        ArgumentError: There are not two, or one is no axis of the sweep.
    """
    names = axes_of(result)
    chosen = [_axis(name, names) for name in across] or [name for name in names if name not in (LAYER, DEVICE)][:2]
    if across and len(set(chosen)) != 2:
        raise ArgumentError(f"sweep: a heat map has two different axes, not {', '.join(across)}")
    maps = _heat_maps(result, *chosen) if len(chosen) == 2 else []
    return [best_bars(result), *maps, *memory_fronts(result)]


def axes_of(result: SweepResult) -> dict[str, list[Any]]:
    """Values by axis of those axes that have more than one; layers and devices are axes, too."""
    found: dict[str, list[Any]] = {}
    for labels, row in result.samples:
        for name, value in _labels(labels, row).items():
            held = found.setdefault(name, [])
            if value not in held:
                held.append(value)
    return {name: values for name, values in found.items() if len(values) > 1}


def best_bars(result: SweepResult) -> Bars:
    """For each layer the least time on each device."""
    best = {(one.layer, one.device): one.nanoseconds for one in result.best()}
    layers, devices = (tuple(dict.fromkeys(names)) for names in zip(*best, strict=True))
    return Bars(
        title="The fastest of each layer",
        value_name=TIME,
        groups=layers,
        series=tuple((device, tuple(_us(best.get((layer, device))) for layer in layers)) for device in devices),
    )


def memory_fronts(result: SweepResult) -> list[Scatter]:
    """For each layer time against L1, a series for each device."""
    dots: dict[str, list[Dot]] = {row.layer: [] for row in result.rows}
    for labels, row in result.samples:
        time = _us(row.nanoseconds)
        if time is not None and row.l1_peak_bytes is not None:
            dot = Dot(x=time, y=row.l1_peak_bytes / 1024, name=words_of(labels), series=row.device)
            dots[row.layer].append(dot)
    return [
        Scatter(title=f"{layer}: time against memory", x_name=TIME, y_name=MEMORY, dots=tuple(own))
        for layer, own in dots.items()
    ]


def _heat_maps(result: SweepResult, x: str, y: str) -> list[HeatMap]:
    """The least time of all points of a cell: a map for each layer on each device, where these are no axis."""
    layers, devices = (any(name.split(".")[0] == kind for name in (x, y)) for kind in (LAYER, DEVICE))
    groups: dict[str, list[tuple[Mapping[str, Any], Row]]] = {}
    for labels, row in result.samples:
        named = ([] if layers else [row.layer]) + ([] if devices else [row.device])
        groups.setdefault(", ".join(named) or "all", []).append((labels, row))
    return [_heat_map(samples, name, x, y) for name, samples in groups.items()]


def _heat_map(samples: Sequence[tuple[Mapping[str, Any], Row]], name: str, x: str, y: str) -> HeatMap:
    cells: dict[tuple[str, str], float | None] = {}
    for labels, row in samples:
        values = _labels(labels, row)
        at, time = (word_of(values[y]), word_of(values[x])), _us(row.nanoseconds)
        cells[at] = _least(cells.get(at), time)
    rows, columns = (tuple(dict.fromkeys(at[side] for at in cells)) for side in (0, 1))
    return HeatMap(
        title=f"{name}: the least time by {x} and {y}",
        x_name=x,
        y_name=y,
        columns=columns,
        rows=rows,
        cells=tuple(tuple(cells.get((down, right)) for right in columns) for down in rows),
        unit="us",
    )


def _axis(name: str, known: Iterable[str]) -> str:
    """The axis of a name, which may leave out what stands before its first dot.

    Raises:
        ArgumentError: There is none.
    """
    found = [one for one in known if name in (one, one.split(".", 1)[-1])]
    if len(found) != 1:
        raise ArgumentError(f"sweep: {shown(name)} is none of the axes that vary: {', '.join(known) or 'none does'}")
    return found[0]


def _labels(labels: Mapping[str, Any], row: Row) -> dict[str, Any]:
    return {LAYER: row.layer, DEVICE: row.device, **labels}


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1000


def _least(*values: float | None) -> float | None:
    return min((one for one in values if one is not None), default=None)
