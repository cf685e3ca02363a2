"""ttsim.sweep: every point of a space, looked into by a crew, kept in a file, and told as a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from device.errors import ArgumentError, shown
from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import load_spec
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values, default_spec
from ttsim.study.executor.crew import crew_of
from ttsim.study.executor.running import Run
from ttsim.study.layers.read import DEFAULT_LAYERS, layer_of, read_layers
from ttsim.study.points.point import Point
from ttsim.study.points.row import Row, Verdict
from ttsim.study.points.version import model_version
from ttsim.study.sweep.axis import axis
from ttsim.study.sweep.result import SweepResult
from ttsim.study.sweep.space import Space
from ttsim.study.sweep.store import Store
from ttsim.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a sweep is."""

    total: int  # Points that differ
    done: int  # Those whose rows are there
    found: int  # Of them, those that the file had


Watch = Callable[[Progress], object]
Layers: TypeAlias = str | Path | Layer | Sequence[Layer | Mapping[str, Any]] | None
Devices: TypeAlias = str | Path | DeviceSpec | Sequence[str | Path | DeviceSpec] | None


def sweep(
    layers: Layers = None,
    devices: Devices = None,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    values: Values = "off",
    l1_small_size: int = USUAL_L1_SMALL_SIZE,
    strict: bool = True,
    file: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> SweepResult:
    """Looks into every combination of layers, devices and settings.

    Args:
        layers: A TOML file of layers, a layer, or several, as `Layer` or as a dict of its fields; by default the eight
            layers of two U-Nets.
        devices: What `ttsim.load_spec` takes, or several; by default the usual device.
        vary: Values by setting: fields of a layer, of Conv2dConfig, of the compute config, of a device (`dram.banks`),
            or "lowering". None as a value of a config's field leaves it to the library.
        values: "exact" or "fast" for the accuracy of each point, too, which takes longer.
        l1_small_size: As of open_device.
        strict: As of open_device.
        file: JSONL file that gets a row for each point; rows that it has are not worked out again.
        processes: How many; 1 for this one alone. By default one on each core, where there are many points.
        scheduler: Address of a scheduler of dask.distributed, whose workers look into points instead.
        watch: Told how far it is.

    Raises:
        ArgumentError: The space is empty or names something that does not exist, or the file is of something else.
        SpecError: A device is unknown, or cannot be changed like that.
        DeviceError: Processes die whatever they look into.
        OSError: A file cannot be read or written.
    """
    if vary is not None and not isinstance(vary, Mapping):
        raise ArgumentError(f"sweep: vary must be a dict of settings and their values, not {shown(vary)}")
    specs = tuple(load_spec(one) for one in _several(default_spec() if devices is None else devices))
    space = Space(
        layers=_layers(layers),
        devices=specs,
        axes=tuple(axis(name, given, specs[0]) for name, given in (vary or {}).items() if specs),
        values=values,
        l1_small_size=l1_small_size,
        strict=strict,
    )
    samples = [(sample.point.key, sample) for sample in space.samples()]
    points = {key: sample.point for key, sample in samples}
    with nullcontext() if file is None else Store(Path(file), model_version()) as store:
        rows = _rows(points, store, processes=processes, scheduler=scheduler, watch=watch)
        note = "" if store is None else store.note
    return SweepResult(
        axes=tuple(one.name for one in space.axes),
        samples=tuple((sample.labels, rows[key]) for key, sample in samples),
        note=note,
    )


def _rows(
    points: Mapping[str, Point],
    store: Store | None,
    *,
    processes: int | None,
    scheduler: str | None,
    watch: Watch | None,
) -> dict[str, Row]:
    """A row for each point, by their keys: those that the file has, and the others by a crew, which the file gets."""
    rows: dict[str, Row] = {} if store is None else {key: store.rows[key] for key in points if key in store.rows}
    found = len(rows)
    missing = [point for key, point in points.items() if key not in rows]

    def tell() -> None:
        if watch is not None:
            watch(Progress(total=len(points), done=len(rows), found=found))

    def take(made: Iterable[Row]) -> None:
        kept = list(made)
        if store is not None:
            store.append(row for row in kept if row.verdict is not Verdict.LOST)  # a lost one is tried again
        rows.update({row.key: row for row in kept})
        tell()

    tell()
    if missing:
        quick = len(missing) if all(point.values == "off" for point in missing) else None
        with crew_of(processes=processes, scheduler=scheduler, quick=quick) as crew:
            Run(missing, crew, take).go()
    return rows


def _several(given: Any) -> Sequence[Any]:
    """One thing as a list of it."""
    return [given] if isinstance(given, str | Path | Layer | DeviceSpec | Mapping) else list(given)


def _layers(given: Any) -> tuple[Layer, ...]:
    """Layers, from whatever names them."""
    if given is None:
        return read_layers(DEFAULT_LAYERS)
    if isinstance(given, str | Path):
        return read_layers(Path(given))
    return tuple(one if isinstance(one, Layer) else layer_of(one, where="sweep") for one in _several(given))
