"""One point of a study: a layer on a device with its settings; `evaluate` plans, times and measures it."""

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Set
from contextvars import Context
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache, lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, Final

import numpy as np

from device.errors import CircularBufferError, OutOfMemoryError, TTSimError
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.parallel_config import ConvOptions
from ttsim.recording.runs import timed_call
from ttsim.report.cycles import totals
from ttsim.report.formatting import plain
from ttsim.report.memory import l1_use, operation_uses
from ttsim.runtime.settings import USUAL_L1_SMALL_SIZE, Values
from ttsim.runtime.types.layer import FIELDS, SETTINGS, Layer, Setting
from ttsim.study.layers.run import (
    Called,
    Doubles,
    Inputs,
    Placed,
    Settings,
    accuracy_of,
    call,
    exact_output,
    layouts_of,
    make_inputs,
    place,
    split,
)
from ttsim.study.store import Row, Verdict, model_version

DIGITS: Final = 16
ASKED: Final[Mapping[type, frozenset[str]]] = {  # fields that a layout stands beside, which says what came of them
    ConvOptions: frozenset(
        {"act_block_h_override", "core_grid", "force_split_reader", "output_grid", "transpose_shards"}
    ),
}
PLAIN: Final = frozenset({int, bool, str, float, type(None), range})


def plan_key(plan: Plan) -> str:
    """The first digits of a SHA-256 over what a plan does.

    What was asked for and chosen, and why, does not count (`Plan.decisions`, `ASKED`), only what came of it: a config
    that says what the planner would choose has the same plan.
    """
    return sha256(canonical(replace(plan, decisions=())).encode()).hexdigest()[:DIGITS]


def canonical(value: object) -> str:
    """A value of a plan as text, equal for equal values: fields that do not compare are left out."""
    return _Text().of(value)


@cache
def _compared(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the fields of a dataclass that two values are compared by, without those that only ask."""
    names = [one.name for one in fields(kind) if one.compare and one.name not in ASKED.get(kind, ())]
    if not names:
        return lambda value: ()
    if len(names) == 1:
        return lambda value: (getattr(value, names[0]),)
    return attrgetter(*names)


class _Text:
    """The text of a value; an object that occurs often in it is written out once.

    Attributes:
        known: Texts of objects by their identity, each with the object, so that it lives as long.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[object, str]] = {}

    def of(self, value: object) -> str:
        """The text of a value."""
        if type(value) in PLAIN:
            return repr(value)
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = (value, self._written(value))
        return found[1]

    def _written(self, value: object) -> str:
        if isinstance(value, Enum):
            return f"{type(value).__qualname__}.{value.name}"
        kind: type = type(value)
        if isinstance(value, tuple | list):
            name = "" if kind in (tuple, list) else kind.__qualname__
            return f"{name}[{','.join(map(self.of, value))}]"
        if is_dataclass(kind):
            return f"{kind.__module__}.{kind.__qualname__}({','.join(map(self.of, _compared(kind)(value)))})"
        if isinstance(value, Mapping):
            items = sorted(f"{self.of(key)}:{self.of(item)}" for key, item in value.items())
            return f"{{{','.join(items)}}}"
        if isinstance(value, Set):
            return f"{{{','.join(sorted(map(self.of, value)))}}}"
        if isinstance(value, np.ndarray):
            return f"{value.dtype.str}{value.shape}{sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, np.dtype | np.generic | type):
            return repr(value)
        raise AssertionError(f"a plan holds a {type(value).__name__}, which has no text; give it one in plan_key.py")


PLANS_KEPT: Final = 4096  # whose cycles a process remembers: some hundred bytes each
LAYER_INPUTS: Final = tuple(name for name in FIELDS if name not in ("name", "source", *SETTINGS))
OTHERS: Final = ("lowering", "values", "l1_small_size", "strict")  # fields of a point beside layer and device
DEFINITION: Final = ("activation", "padding_mode")  # settings of a config that the exact output hangs on


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A layer with its configs on a device; equal points have equal texts."""

    layer: Layer  # Sizes, data types, Conv2dConfig, slices, compute config
    spec: DeviceSpec
    lowering: str = "frame"  # "frame", or "phase"
    values: Values = "off"  # "off" for plan, memory and cycles; "exact" or "fast" for the accuracy, too
    l1_small_size: int = USUAL_L1_SMALL_SIZE  # Bytes of L1 kept for index tables
    strict: bool = True  # Refuse what the real library accepts and gets wrong

    @property
    def text(self) -> str:
        """All that the row hangs on, as JSON with sorted keys: the layer without its source, and the whole device."""
        layer = {name: getattr(self.layer, name) for name in ("name", *LAYER_INPUTS)}
        layer |= {name: dict(getattr(self.layer, name)) for name in SETTINGS}
        others = {name: getattr(self, name) for name in OTHERS}
        return f'{{"device": {_spec_text(self.spec)}, "point": {_json(others | {"layer": layer})}}}'

    @property
    def inputs(self) -> dict[str, Setting | None]:
        """Everything but names and the device, flat; sizes of several axes as "2x2"."""
        layer = {name: getattr(self.layer, name) for name in LAYER_INPUTS}
        flat = {name: "x".join(map(str, one)) if isinstance(one, tuple | list) else one for name, one in layer.items()}
        for name in SETTINGS:
            flat |= {f"{name}.{key}": value for key, value in sorted(getattr(self.layer, name).items())}
        return flat | {name: getattr(self, name) for name in OTHERS}

    @property
    def key(self) -> str:
        """SHA-256 of the text and of the model's version, in hexadecimal."""
        return sha256(f"{model_version()}\n{self.text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What a plan takes on a device; the names are those of `Row`."""

    cycles: int
    cycles_error_share: float | None
    cycles_unmeasured_share: float
    untimed_operations: int
    dram_read_bytes: int
    dram_written_bytes: int
    noc_bytes: int


class Evaluator:
    """Looks into points, and remembers what they share: the cycles of plans, and the exact output of a layer.

    Attributes:
        timed: How often cycles were worked out.
    """

    def __init__(self) -> None:
        self.timed = 0
        self._timings: OrderedDict[tuple[str, tuple[int, ...], DeviceSpec], Timing] = OrderedDict()
        self._exact: tuple[Layer, Inputs, Doubles | None] | None = None

    def row(self, point: Point) -> Row:
        """What becomes of a point; one that does not run is a row with its error, and so is a mistake of ours."""
        try:
            return Context().run(self._row, point)  # in a context of its own, captures do not see the device
        except (OutOfMemoryError, CircularBufferError) as error:
            return refusal(point, Verdict.DOES_NOT_FIT, str(error))
        except TTSimError as error:
            return refusal(point, Verdict.REFUSED, str(error))
        except Exception as error:  # one bad point never stops the others
            return refusal(point, Verdict.FAILED, f"{type(error).__name__}: {error}")

    def _row(self, point: Point) -> Row:
        """The row of a call that runs.

        Raises:
            TTSimError: It does not.
        """
        settings = Settings(
            spec=point.spec,
            values=point.values,
            l1_small_size=point.l1_small_size,
            strict=point.strict,
            suggestions=False,
        )
        inputs, exact = self._inputs(point)
        placed = place(point.layer, inputs, settings)
        placed.arguments["lowering"] = point.lowering
        with placed.device:
            called = call(placed)
            accuracy = None if point.values == "off" else accuracy_of(called.output, exact)
        measured: dict[str, Any] = plain(asdict(accuracy)) if accuracy is not None else {}
        measured.pop("exact_std", None)
        return Row(
            key=point.key,
            layer=point.layer.name,
            device=point.spec.name,
            inputs=point.inputs,
            verdict=Verdict.FITS,
            clock_hz=point.spec.clock_hz,
            **_memory(placed),
            **self._timing(called, point.spec),
            **measured,
        )

    def _timing(self, called: Called, spec: DeviceSpec) -> dict[str, Any]:
        """Key and cycles of what ran; a plan that ran alike before on this device is not timed again."""
        (ran,) = called.profile.calls
        key = plan_key(ran.plan)
        same = (key, ran.ran, spec)
        if same not in self._timings:
            self.timed += 1
            timed = timed_call(ran, spec)
            total = totals([timed], spec)
            self._timings[same] = Timing(
                cycles=total.cycles,
                cycles_error_share=total.error.share,
                cycles_unmeasured_share=total.error.unmeasured_share,
                untimed_operations=len(timed.untimed),
                dram_read_bytes=total.traffic.dram_read_bytes,
                dram_written_bytes=total.traffic.dram_written_bytes,
                noc_bytes=total.traffic.network_bytes,
            )
        self._timings.move_to_end(same)
        while len(self._timings) > PLANS_KEPT:
            self._timings.popitem(last=False)
        return {"plan_key": key, **asdict(self._timings[same])}

    def _inputs(self, point: Point) -> tuple[Inputs, Doubles | None]:
        """The numbers of a layer, and what it gives exactly; those of the last one are kept."""
        if point.values == "off":
            return make_inputs(point.layer, values=False), None
        config = {name: value for name, value in point.layer.config.items() if name in DEFINITION}
        same = replace(point.layer, name="", source="", slice=None, config=config, compute={})
        if self._exact is None or self._exact[0] != same:
            inputs = make_inputs(same)
            self._exact = (same, inputs, exact_output(same, inputs))
        return self._exact[1:]


def evaluate(point: Point) -> Row:
    """What becomes of a point; equal plans are timed once in a process."""
    return evaluator().row(point)


@cache
def evaluator() -> Evaluator:
    """That of this process."""
    return Evaluator()


def refusal(point: Point, verdict: Verdict, error: str) -> Row:
    """The row of a point that does not run."""
    layer, device = point.layer.name, point.spec.name
    return Row(key=point.key, layer=layer, device=device, inputs=point.inputs, verdict=verdict, error=error)


def _memory(placed: Placed) -> dict[str, Any]:
    """L1 and shards of a call that ran; the names are those of `Row`."""
    before, events = split(placed)
    spec = placed.device.spec
    l1 = l1_use(spec, placed.events, operation_uses(spec, before, events))
    schemes = dict.fromkeys(layout.scheme.name for layout in layouts_of(events))
    return {
        "shard_layout": ", ".join(schemes),
        "l1_peak_bytes": l1.peak_total_bytes,
        "l1_headroom_bytes": l1.headroom_bytes,
    }


@lru_cache(maxsize=64)
def _spec_text(spec: DeviceSpec) -> str:
    """All figures of a device."""
    return _json(spec.to_dict())


def _json(values: Any) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), default=list)
