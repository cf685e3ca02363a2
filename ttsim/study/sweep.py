"""ttsim.sweep: evaluates every point of a space, stores the rows in a file, and makes tables."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import Any, Final, NamedTuple, TypeAlias, overload

from device.errors import ArgumentError, ArgumentTypeError, shown
from device.spec.device_spec import DeviceSpec
from ops.sensitivity.changes import load_spec
from ttsim.report.formatting import (
    counted,
    csv_text,
    cycles,
    fitted,
    percent,
    printable,
    short_name,
    terminal_width,
    text,
    time,
)
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values, default_spec
from ttsim.runtime.shown import Headed, html_table
from ttsim.runtime.types.layer import Layer
from ttsim.study.executor import Run, workers
from ttsim.study.layers.read import DEFAULT_LAYERS, layer_of, read_layers
from ttsim.study.space import Space, axis, of_config
from ttsim.study.store import PackedRows, Row, Store, Verdict, model_version

Sample: TypeAlias = tuple[Mapping[str, Any], Row]


class Samples(Sequence[Sample]):
    """The axis values and the row of each point, created when they are read."""

    def __init__(self) -> None:
        self.rows: Mapping[str, Row] = {}  # By key
        self._names: tuple[str, ...] = ()  # Of the axes
        self._keys: list[str] = []
        self._values: list[tuple[Any, ...]] = []

    def add(self, labels: Mapping[str, Any], key: str) -> None:
        """Adds a point: its axis values, the names of the axes, and the key of its row."""
        self._names = self._names or tuple(labels)
        self._keys.append(key)
        self._values.append(tuple(labels.values()))

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, number: int) -> Sample: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Sample, ...]: ...
    def __getitem__(self, number: int | slice) -> Sample | tuple[Sample, ...]:
        if isinstance(number, slice):
            return tuple(self[each] for each in range(*number.indices(len(self))))
        return dict(zip(self._names, self._values[number], strict=True)), self.rows[self._keys[number]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


FORMAT: Final = 1  # raised when a column changes its meaning or goes
NO_FIGURES: Final = ("key", "layer", "device", "inputs", "changes")  # a sweep has no networks
FIGURES: Final = tuple(field.name for field in fields(Row) if field.name not in NO_FIGURES)
ENERGY: Final = ("energy_joules", "average_watts", "energy_delay_joule_seconds")
TAIL: Final = ("given", *FIGURES, "nanoseconds", *ENERGY, "key")  # columns behind those of the point's settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The fastest point of a layer on a device."""

    layer: str
    device: str
    labels: Mapping[str, Any] | None  # The point's value on each axis; None if no point runs
    row: Row | None  # The point's row; None if no point runs
    fitting: int  # Points that run
    points: int  # All points of this layer on this device
    slowest_cycles: int | None  # Cycles of the slowest point that runs; None if none runs
    nanoseconds: float | None  # Of the fastest one; None if none runs
    given: Row | None  # The row of the layer's own config; None if it is not known
    is_given: bool  # Whether the layer's own config is this point
    reason: str  # The first error of a point, in a line; empty if all run


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SweepResult(Headed):
    """Every point of a sweep with its row: ``best()`` has the fastest, ``records()`` a flat dict of each point.

    Attributes:
        axes: Names of the settings that were varied.
        samples: The axis values by name, and the row, of each point, in order.
        note: A remark on the file, or empty.
        given: Indices of the points with the layer's own config.
        added: Indices of points with the layer's own config that are no combination of axis values.

    Examples:
        >>> layer = {"in_channels": 32, "out_channels": 16, "input_height": 8, "input_width": 8, "stride": 2}
        >>> result = ttnn.sweep(layer, "wormhole_n150", processes=1)
        >>> result.best()[0].row.cycles == result.records()[0]["cycles"]
        True
        >>> result.to_csv().splitlines()[0][:13]
        'layer,device,'
    """

    axes: tuple[str, ...]
    samples: Sequence[Sample]
    note: str = ""
    given: frozenset[int] = frozenset()
    added: frozenset[int] = frozenset()

    @property
    def rows(self) -> tuple[Row, ...]:
        """The row of each point, in order."""
        return tuple(row for _, row in self.samples)

    @property
    def verdicts(self) -> dict[str, int]:
        """The number of points of each verdict."""
        return dict(Counter(row.verdict.value for _, row in self.samples))

    @property
    def plans(self) -> int:
        """The number of different plans among points that run."""
        return len({row.plan_key for _, row in self.samples if row.plan_key is not None})

    @property
    def headline(self) -> str:
        """The number of points of each verdict, in one line."""
        counts = f"{counted(len(self.samples), 'point')}, {counted(self.plans, 'different plan')}"
        return f"{counts}: {', '.join(f'{count} {what}' for what, count in self.verdicts.items())}"

    def __str__(self) -> str:
        return best_table(self, terminal_width()).rstrip()

    def _repr_html_(self) -> str:
        return html_table([HEADINGS, *map(_cells, self.best())], words=WORDS, caption=self.headline)

    def records(self) -> list[dict[str, Any]]:
        """A flat dict of each point, all with the same keys: ``pandas.DataFrame(result.records())``."""
        return list(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        """An iterator over the dicts of `records`."""
        kinds = {(*labels, "", *row.inputs): (labels, row) for labels, row in self.samples}  # by the names that differ
        named = (name for labels, row in kinds.values() for name in _record(labels, row) if name not in TAIL)
        names = (*dict.fromkeys(named), *TAIL)
        for number, (labels, row) in enumerate(self.samples):
            record = _record(labels, row) | {"given": number in self.given}
            yield {name: record.get(name) for name in names}

    def best(self, top: int = 1) -> tuple[Best, ...]:
        """The fastest points of each layer on each device, in order; the first of equal points wins.

        Points with operations that have no model follow all other points.

        Args:
            top: Maximum number of points of each layer on each device, the fastest first.
        """
        groups: dict[tuple[str, str], _Group] = {}
        for number, (labels, row) in enumerate(self.samples):
            group = groups.setdefault((row.layer, row.device), _Group())
            group.points += 1
            group.reason = group.reason or row.error.partition("\n")[0]
            if row.verdict is Verdict.FITS:
                group.runs.append((row.untimed_operations, row.cycles, number))
            if number in self.given:
                group.given[_call(labels)] = number
        return tuple(best for names, group in groups.items() for best in self._best(*names, group, top))

    def _best(self, layer: str, device: str, group: "_Group", top: int) -> Iterator[Best]:
        """The fastest points of one layer on one device; one entry with the reason if none runs."""
        best: Sequence[int | None] = [number for *_, number in sorted(group.runs)[:top]] or [None]
        for number in best:
            labels, row = (None, None) if number is None else self.samples[number]
            given = next(iter(group.given.values()), None) if labels is None else group.given.get(_call(labels))
            yield Best(
                layer=layer,
                device=device,
                labels=labels,
                row=row,
                fitting=len(group.runs),
                points=group.points,
                slowest_cycles=max((cycles or 0 for _, cycles, _ in group.runs), default=None),
                nanoseconds=None if row is None else row.nanoseconds,
                given=None if given is None else self.samples[given][1],
                is_given=number in self.given and not (row and row.arguments),
                reason=group.reason,
            )

    def to_csv(self) -> str:
        """A line of column names, then one line per point; unknown cells are empty."""
        records = self._records()
        first = next(records, {})
        return csv_text(list(first), chain([first] if first else [], records))

    def to_json(self) -> str:
        """All records; the same bytes for the same points."""
        head = text({"format": FORMAT, "axes": list(self.axes), "points": []})
        points = ",\n".join(indent(text(record), "  ") for record in self._records())
        return head.removesuffix("[]\n}") + f"[\n{points}\n ]\n}}" if points else head


@dataclass(slots=True)
class _Group:
    """The points of a layer on a device."""

    points: int = 0
    runs: list[tuple[Any, Any, int]] = field(default_factory=list)  # Untimed operations, cycles, and number of each
    given: dict[tuple[Any, ...], int] = field(default_factory=dict)  # Numbers of points with the layer's own config
    reason: str = ""  # The first error, in a line


def _record(labels: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """A flat dict of a point."""
    inputs, values = row.inputs, {name: getattr(row, name) for name in FIGURES}
    values |= {"verdict": row.verdict.value, "key": row.key}
    others = {name: value for name, value in labels.items() if name not in inputs}
    figures = {name: getattr(row, name) for name in ("nanoseconds", *ENERGY)}
    return {"layer": row.layer, "device": row.device, **others, **inputs, **values, "given": None, **figures}


def _call(labels: Mapping[str, Any]) -> tuple[Any, ...]:
    """The axis values that determine the call of a point, without configs."""
    return tuple(value for name, value in labels.items() if not of_config(name))


class Progress(NamedTuple):
    """The progress of a sweep."""

    total: int  # Points that differ
    done: int  # Points with rows
    found: int  # Points with rows from the file


Watch = Callable[[Progress], object]
Layers: TypeAlias = str | Path | Layer | Sequence[Layer | Mapping[str, Any]] | None
Devices: TypeAlias = str | Path | DeviceSpec | Sequence[str | Path | DeviceSpec] | None


def sweep(
    layers: Layers = None,
    devices: Devices = None,
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    tune: bool | None = None,
    values: Values = "off",
    l1_small_size: int = USUAL_L1_SMALL_SIZE,
    strict: bool = True,
    file: str | Path | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> SweepResult:
    """Runs every combination of layers, devices and settings.

    Args:
        layers: A TOML file of layers, or one or several layers, each a `Layer` or a dict of its fields; None for the
            eight transposed convolutions of two U-Nets.
        devices: One or several arguments of `load_spec`; None for the environment variable TTSIM_DEVICE, or else
            "wormhole_n150".
        vary: Values by setting: fields of a layer, of Conv2dConfig, of the compute config, of a device
            (`dram.banks`), or "lowering". The value None of a config's field leaves the choice to the library.
        tune: Whether each point uses its fastest config, found by the search of `tune`, which takes some fifty times as
            long; None tunes if several machines are compared and no config is varied.
        values: "exact" or "fast" computes the accuracy of each point as well, which takes longer.
        l1_small_size: Bytes of L1 reserved for index tensors, as in `open_device`.
        strict: Refuse calls that the real library computes wrongly, as in `open_device`.
        file: A JSONL file that receives a row for each point; points with a row in the file are not run again.
        processes: Number of processes; 1 for this process, None for one per core if there are many points.
        scheduler: Address of a dask.distributed scheduler, whose workers run the points instead.
        watch: A callback that receives the progress: counts of points and of finished rows.

    Returns:
        Every point with its row.

    Raises:
        ArgumentTypeError: ``layers`` or ``devices`` has a wrong type.
        ArgumentError: The space is empty or names an unknown setting, or ``file`` is not a file of rows.
        SpecError: A device is unknown, or a change of a device is invalid.
        DeviceError: A process dies at every point.

    Examples:
        >>> layer = {"in_channels": 32, "out_channels": 16, "input_height": 8, "input_width": 8, "stride": 2}
        >>> result = ttnn.sweep(layer, "wormhole_n150", vary={"act_block_h_override": [0, 32]}, processes=1)
        >>> result.verdicts
        {'fits': 2}
    """
    if vary is not None and not isinstance(vary, Mapping):
        raise ArgumentError(f"sweep: vary must be a dict of settings and their values, not {shown(vary)}")
    specs = tuple(load_spec(device) for device in _several("devices", default_spec() if devices is None else devices))
    space = Space(
        layers=_layers(layers),
        devices=specs,
        axes=tuple(axis(name, axis_values, specs[0]) for name, axis_values in (vary or {}).items() if specs),
        tune=tune,
        values=values,
        l1_small_size=l1_small_size,
        strict=strict,
    )
    # Points take as much memory as their rows, so that they are made where they are needed, and not kept
    samples, numbers, given, added = Samples(), dict[str, int](), set[int](), set[int]()
    starts: list[int] = []  # The number of the first point of each group
    for group in space.groups():
        starts.append(len(samples))
        for number, sample in enumerate(group, starts[-1]):
            key = sample.point.key
            samples.add(sample.labels, key)
            numbers.setdefault(key, number)
            given |= {number} if sample.given else set()
            added |= {number} if sample.added else set()
    with nullcontext() if file is None else Store(Path(file), model_version()) as store:
        rows = samples.rows = PackedRows() if store is None else store.rows
        missing = {number for key, number in numbers.items() if key not in rows}
        total, stored = len(numbers), len(numbers) - len(missing)
        done = stored

        def take(new: list[Row]) -> None:
            nonlocal done
            lost = [row for row in new if row.verdict is Verdict.LOST]
            if store is not None:
                store.append(row for row in new if row not in lost)  # a lost one is tried again
            rows.add(new if store is None else lost)
            done += len(new)
            if watch is not None:
                watch(Progress(total=total, done=done, found=stored))

        take([])
        if missing:
            quick = len(missing) if values == "off" and not space.tuned else None
            with workers(processes=processes, scheduler=scheduler, quick=quick) as team:
                groups = (
                    (sample.point for number, sample in enumerate(group, start) if number in missing)
                    for group, start in zip(space.groups(), starts, strict=True)
                )
                Run(groups, len(missing), team, take).go()
    return SweepResult(
        axes=tuple(axis.name for axis in space.axes),
        samples=samples,
        note="" if store is None else store.note,
        given=frozenset(given),
        added=frozenset(added),
    )


def _several(what: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str | Path | Layer | DeviceSpec | Mapping):
        return [value]
    if not isinstance(value, Iterable):
        raise ArgumentTypeError(f"sweep: {what} must be one of the documented kinds or a list, not {shown(value)}")
    return list(value)


def _layers(layers: Layers) -> tuple[Layer, ...]:
    if layers is None or isinstance(layers, str | Path):
        return read_layers(DEFAULT_LAYERS if layers is None else Path(layers))
    return tuple(
        layer if isinstance(layer, Layer) else layer_of(layer, where="sweep") for layer in _several("layers", layers)
    )


HEADINGS: Final = (
    "layer", "device", "fit", "cycles", "+-", "time", "as given", "slowest", "L1 peak B", "headroom B", "fastest"
)  # fmt: skip
WORDS: Final = ("layer", "device", "fastest")
# On a narrow terminal
LEAST_NEEDED: Final = ("headroom B", "L1 peak B", "slowest", "+-", "fit", "time", "as given", "device")
SHOWN_MISTAKES: Final = 3
LONGEST_REASON: Final = 100  # characters of an error in a line
OF_DEVICE: Final = "device."


def best_table(result: SweepResult, width: int | None = None, top: int = 1) -> str:
    """A line for each layer on each device: the settings and the time of its fastest point, and the number that run.

    `width` is the length of a line, None keeps all columns; `top` is the number of lines for each layer and device.
    """
    lines = fitted([HEADINGS, *map(_cells, result.best(top))], width, words=WORDS, least_needed=LEAST_NEEDED)
    # The first internal errors, each once
    errors = dict.fromkeys(row.error for _, row in result.samples if row.verdict in (Verdict.FAILED, Verdict.LOST))
    mistakes = [f"{Verdict.FAILED}: {printable(error)}" for error in [*errors][:SHOWN_MISTAKES]]
    return "\n".join([*lines, result.headline, *mistakes, ""])


GIVEN: Final = "as given"  # names the layer's own config


def words_of(labels: Mapping[str, Any], *, given: bool = False) -> str:
    """The axis values as users write them, without values of device fields, which are part of device names.

    The values of the layer's own config are "as given".
    """
    settings = [
        f"{name.split('.', 1)[-1]}={word_of(value)}"
        for name, value in labels.items()
        if not (name.startswith(OF_DEVICE) or (given and of_config(name)))
    ]
    return ", ".join([GIVEN] * given + settings) or GIVEN


def word_of(value: Any) -> str:
    """A value of an axis as users write it."""
    if isinstance(value, tuple | list):
        return "x".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _cells(best: Best) -> tuple[str, ...]:
    fitting = f"{best.fitting} of {best.points}"
    row, named = best.row, (short_name(best.layer), printable(best.device), fitting)
    if row is None or row.cycles is None or best.labels is None:
        return (*named, *[""] * 7, f"nothing runs: {short_name(best.reason, LONGEST_REASON)}")
    return (
        *named,
        cycles(row.cycles),
        "?" if row.cycles_error_share is None else percent(row.cycles_error_share),
        time(best.nanoseconds or 0),
        _given(best.given),
        cycles(best.slowest_cycles or 0),
        cycles(row.l1_peak_bytes or 0),
        cycles(row.l1_headroom_bytes or 0),
        printable(row.arguments or words_of(best.labels, given=best.is_given)),
    )


def _given(row: Row | None) -> str:
    """The cycles of the layer's own config, or why it does not run; empty if the row is unknown."""
    if row is None:
        return ""
    if row.own_cycles is not None:
        return cycles(row.own_cycles)
    return Verdict.DOES_NOT_FIT.value if row.verdict is Verdict.FITS else row.verdict.value
