"""One point of a study: a layer on a device with its settings; `evaluate` plans, times and measures the point."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from contextvars import Context
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache, lru_cache, partial
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.errors import CircularBufferError, OutOfMemoryError, TTSimError
from device.memory.memory_config import ShardSpec
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from device.time.energy import static_milliwatts
from ops.planners.grid_rules import GRID_RULE
from ops.programs.conv2d.partition import ConvOptions, ConvPartition
from ttsim.api.convolutions import conv_transpose2d
from ttsim.recording.profiling import timed_call
from ttsim.report.cycles import CallRun, Totals, binding, bound_cycles, totals
from ttsim.report.energy import action_femtojoules
from ttsim.report.formatting import by, plain
from ttsim.report.memory import l1_use, operation_uses
from ttsim.runtime.settings import Values
from ttsim.runtime.types.layer import FIELDS, SETTINGS, Layer, Setting
from ttsim.study.layers import run as layers
from ttsim.study.store import Row, Verdict, model_version
from ttsim.study.tune.tune import fastest
from ttsim.study.tune.tuned import Tuned

DIGITS: Final = 16  # of a plan's key
ASKED: Final[Mapping[type, frozenset[str]]] = {  # fields that hold requests, next to a layout with the outcome
    ConvOptions: frozenset(
        {"act_block_h_override", "core_grid", "force_split_reader", "output_grid", "transpose_shards"}
    )
}
PLAIN: Final = frozenset({int, bool, str, float, type(None), range})


def plan_key(plan: Plan) -> str:
    """The first digits of a SHA-256 over the operations of a plan.

    Requests, choices and their reasons are excluded (`Plan.decisions`, `ASKED`), so a config that spells out the
    planner's choice has the same key as the default config.
    """
    return sha256(canonical(replace(plan, decisions=())).encode()).hexdigest()[:DIGITS]


def canonical(value: object) -> str:
    """A value of a plan as text, equal for equal values: fields that comparison ignores are excluded."""
    return _Texts().of(value)


class _Texts:
    """The texts of values by object identity, since many objects occur often in a plan."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}  # the stored object keeps its identity valid

    def of(self, value: object) -> str:
        """The text of a value."""
        if type(value) in PLAIN:
            return repr(value)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = value, self._written(value)
        return known[1]

    def _written(self, value: object) -> str:
        kind: type = type(value)
        if isinstance(value, Enum):
            return f"{kind.__qualname__}.{value.name}"
        if isinstance(value, tuple | list):
            name = "" if kind in (tuple, list) else kind.__qualname__
            return f"{name}[{','.join(map(self.of, value))}]"
        if is_dataclass(kind):
            values = (self.of(getattr(value, name)) for name in _compared(kind))
            return f"{kind.__module__}.{kind.__qualname__}({','.join(values)})"
        if isinstance(value, ShardSpec):
            return f"{kind.__qualname__}{self.of(value.fields)}"
        if isinstance(value, Mapping):
            return f"{{{','.join(sorted(f'{self.of(key)}:{self.of(item)}' for key, item in value.items()))}}}"
        if isinstance(value, Set):
            return f"{{{','.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, np.ndarray):
            return f"{value.dtype.str}{value.shape}{sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, np.dtype | np.generic | type):
            return repr(value)
        raise AssertionError(f"a plan holds a {kind.__name__}, which has no text; give it one in evaluate.py")


@cache
def _compared(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass that comparison uses, without fields that only hold requests."""
    return tuple(field.name for field in fields(kind) if field.compare and field.name not in ASKED.get(kind, ()))


PLANS_KEPT: Final = 4096  # whose cycles a process remembers: some hundred bytes each
LAYER_INPUTS: Final = tuple(name for name in FIELDS if name not in ("name", "source", *SETTINGS))
OTHERS: Final = ("lowering", "tune", "values", "l1_small_size", "strict")  # inputs of a point beside layer and device
NO_OPTIONS: Final[Mapping[str, Any]] = MappingProxyType({})
DEFINITION: Final = ("activation", "padding_mode")  # settings of a config that the exact output depends on


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(layers.Settings):
    """A layer with its configs on a device; equal points have equal keys."""

    layer: Layer  # Sizes, data types, Conv2dConfig, slices, compute config
    values: Values = "off"  # "off" for plan, memory and cycles; "exact" or "fast" for the accuracy, too
    tune: bool = False  # Whether the fastest config is searched, as `ttsim.tune` does
    suggestions: bool = False

    @property
    def inputs(self) -> dict[str, Setting | None]:
        """All settings except names and the device, flat; sizes of several axes as "2x2"."""
        values = ((name, getattr(self.layer, name)) for name in LAYER_INPUTS)
        flat = {name: by(value) if isinstance(value, tuple | list) else value for name, value in values}
        for name in SETTINGS:
            flat |= {f"{name}.{key}": value for key, value in sorted(getattr(self.layer, name).items())}
        return flat | {name: getattr(self, name) for name in OTHERS}

    @property
    def key(self) -> str:
        """SHA-256, in hexadecimal, of all inputs of the row: the layer without its source, and the whole device."""
        text = _json([self.layer.name, self.inputs])
        return sha256(f"{model_version()}\n{_spec_text(self.spec)}\n{text}".encode()).hexdigest()


class Evaluator:
    """Evaluates points, and caches what points share: the cycles of plans, and the exact output of a layer."""

    def __init__(self) -> None:
        self.timed = 0  # How often cycles were worked out
        self._timings: dict[tuple[str, tuple[int, ...], DeviceSpec], dict[str, Any]] = {}
        self._exact: tuple[Layer, layers.Inputs, layers.Doubles | None] | None = None

    def row(self, point: Point, *, keyed: bool = True, options: Mapping[str, Any] = NO_OPTIONS) -> Row:
        """The row of a point; a point that does not run, or an internal error, becomes a row with the error.

        Without `keyed` the key, a hash that includes all figures of the device, is empty; `options` replace arguments
        of the layer. A tuned point has the faster of the layer's own config and the best config found; if none fits,
        the error of the layer's own config.
        """
        if point.tune:
            return self._tuned(point, keyed)
        return row_of(point, keyed=keyed, **figures_or_error(partial(self._figures, point, options)))

    def _tuned(self, point: Point, keyed: bool) -> Row:
        """The row of a point with its fastest config, found by the search of `ttsim.tune` without other arithmetic."""
        plain = replace(point, tune=False)
        row, arguments, given, space = self.row(plain, keyed=False), "", None, "that was tried"
        if row.verdict in (Verdict.FITS, Verdict.DOES_NOT_FIT):
            given, found = row.cycles, _fastest(plain)
            best = None if found is None else found.best
            if found is not None and not found.untried:
                space = "that `ttsim tune` searches, all of which were looked at,"
            if best is not None and (given is None or best.cycles < given):
                row, arguments = self.row(plain, keyed=False, options=best.options()), best.arguments
        key, error = point.key if keyed else "", row.error
        if row.verdict is Verdict.DOES_NOT_FIT:
            first, *rest = error.splitlines()
            error = "\n".join([first, f"no config of {point.layer.name} {space} fits {point.spec.name}", *rest])
        static = static_milliwatts(point.spec) if keyed else None
        row = replace(row, key=key, inputs=point.inputs, error=error, static_milliwatts=static)
        return replace(row, arguments=arguments, given_cycles=given)

    def _figures(self, point: Point, options: Mapping[str, Any]) -> dict[str, Any]:
        """The figures of a call; raises TTSimError if the call does not run."""
        inputs, exact = self._inputs(point)
        placed = layers.place(point.layer, inputs, point)
        placed.arguments.update(options)
        with placed.device:
            called = layers.call(placed)
            accuracy = None if point.values == "off" else layers.accuracy_of(called.output, exact)
        (plan,), layouts = [ran.plan for ran in called.profile.calls], layers.layouts_of(placed.events)
        uses = operation_uses(point.spec, placed.before, placed.events)
        l1 = l1_use(point.spec, [*placed.before, *placed.events], uses)
        measured: dict[str, Any] = {} if accuracy is None else plain(asdict(accuracy))
        measured.pop("exact_std", None)
        return {
            "verdict": Verdict.FITS,
            "clock_hz": point.spec.clock_hz,
            "shard_layout": ", ".join(dict.fromkeys(layout.scheme.name for layout in layouts)),
            "grid_rules": "\n".join(dict.fromkeys(_grid_rules(plan, layouts))),
            "l1_peak_bytes": l1.peak_total_bytes,
            "l1_headroom_bytes": l1.headroom_bytes,
            **self._timing(called, point.spec),
            **measured,
        }

    def _timing(self, called: layers.Called, spec: DeviceSpec) -> dict[str, Any]:
        """Plan key and cycles of a call; equal plans are timed once per device."""
        (ran,) = called.profile.calls
        key = plan_key(ran.plan)
        same = (key, ran.ran, spec)
        if same not in self._timings:
            self.timed += 1
            timed = timed_call(ran, spec)
            total = totals([timed], spec)
            if len(self._timings) >= PLANS_KEPT:
                del self._timings[next(iter(self._timings))]
            self._timings[same] = {"plan_key": key, **figures_of([timed], total, spec)}
        return self._timings[same]

    def _inputs(self, point: Point) -> tuple[layers.Inputs, layers.Doubles | None]:
        """The inputs of a layer, and its exact output; the last layer's are cached."""
        if point.values == "off":
            return layers.make_inputs(point.layer, values=False), None
        config = {name: value for name, value in point.layer.config.items() if name in DEFINITION}
        same = replace(point.layer, name="", source="", slice=None, config=config, compute={})
        if self._exact is None or self._exact[0] != same:
            inputs = layers.make_inputs(same)
            self._exact = (same, inputs, layers.exact_output(same, inputs))
        return self._exact[1:]


def _grid_rules(plan: Plan, layouts: Iterable[ConvPartition]) -> Iterator[str]:
    """The effects of planner rules on the cores of a call; empty if its config names the cores."""
    named = named_rules(plan)
    yield from named
    for layout in layouts if not named else ():
        if layout.options.core_grid is None:
            rows, channels = layout.config.nhw_cores, layout.config.channel_cores
            multicast = ", and multicasts every K block of channels" if layout.multicasts_activations else ""
            yield f"the planner's rule takes {rows} cores for rows and {channels} for channels{multicast}"


def named_rules(plan: Plan) -> list[str]:
    """The effects of planner rules that leave many cores idle, or make blocks small."""
    return [rule.text for rule in plan.decisions if rule.name == GRID_RULE]


def figures_or_error(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The figures that a function returns for a row; an exception becomes the verdict and error of the row."""
    try:
        return Context().run(run)  # captures do not see a device in another context
    except TTSimError as error:
        is_short = isinstance(error, OutOfMemoryError | CircularBufferError)
        text = "\n".join([str(error), *getattr(error, "__notes__", ())])
        return {"verdict": Verdict.DOES_NOT_FIT if is_short else Verdict.REFUSED, "error": text}
    except Exception as error:  # one bad point never stops the others
        return {"verdict": Verdict.FAILED, "error": f"{type(error).__name__}: {error}"}


def figures_of(calls: Sequence[CallRun], total: Totals, spec: DeviceSpec) -> dict[str, Any]:
    """The figures of a row for several calls; `total` has the figures of all calls together."""
    return {
        "cycles": total.cycles,
        "bound_by": binding(bound_cycles(total)),
        "cycles_error_share": total.error.share,
        "cycles_unmeasured_share": total.error.unmeasured_share,
        "untimed_operations": sum(len(call.untimed) for call in calls),
        "dram_read_bytes": total.traffic.dram_read_bytes,
        "dram_written_bytes": total.traffic.dram_written_bytes,
        "noc_bytes": total.traffic.network_bytes,
        "action_femtojoules": sum(action_femtojoules(total.actions, spec).values()),
    }


def _fastest(point: Point) -> Tuned | None:
    """The fastest config; None if the call is refused with every config."""
    with suppress(TTSimError), layers.planned(point.layer, point) as (device, arguments):
        return Context().run(fastest, conv_transpose2d, arguments, device)
    return None


@cache
def evaluator() -> Evaluator:
    """The evaluator of this process."""
    return Evaluator()


def row_of(point: Point, *, keyed: bool = True, **figures: Any) -> Row:
    """The row of a point with these figures."""
    key = point.key if keyed else ""
    # A point without a key is one of a design, which has the power of each machine (`rows_of`)
    figures["static_milliwatts"] = static_milliwatts(point.spec) if keyed else None
    return Row(key=key, layer=point.layer.name, device=point.spec.name, inputs=point.inputs, **figures)


@lru_cache(maxsize=64)
def _spec_text(spec: DeviceSpec) -> str:
    return _json(spec.to_dict())


def _json(values: Any) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"))
