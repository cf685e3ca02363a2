"""The tools of an agent: names, descriptions, JSON schemas and answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, nearest, shown
from device.spec.device_spec import catalog_names
from ops.sensitivity.changes import load_spec
from ttsim.recording.profiling import estimate_cycles
from ttsim.report.comparison import Reported, compare as compared
from ttsim.report.cycle_report import CycleReport
from ttsim.report.reported import LONGEST_PATH, read_report, reported_of
from ttsim.runtime.queried import ExecutionStatus
from ttsim.study.ask.answer import answer_of
from ttsim.study.ask.question import FIELDS, WORDS, Call, call_of, candidate, checked_fields
from ttsim.study.tune.tune import EFFORT, tune as tuned

JSON_TYPES: Final = {int: "integer", str: "string", list: "array", dict: "object", bool: "boolean"}
CALL: Final = ("op", "args", "kwargs", "layer", "device", "release", "l1_small_size", "strict")  # fields of a call
BEFORE_AND_AFTER: Final = 2  # reports of a comparison
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool; its fields are fields of questions and additional fields."""

    about: str  # What the tool answers, with units
    fields: Sequence[str]
    answer: Callable[[Mapping[str, Any]], Answer]
    own: Mapping[str, tuple[tuple[type, ...], str]] | None = None  # Fields of its own, as in `FIELDS`
    required: Sequence[str] = ()

    @property
    def known(self) -> Mapping[str, tuple[tuple[type, ...], str]]:
        """All fields, with their types and texts."""
        return {**{name: FIELDS[name] for name in self.fields}, **(self.own or {})}

    @property
    def schema(self) -> Answer:
        """The JSON schema of the arguments."""
        properties = {
            name: {"type": JSON_TYPES[kinds[0]], "description": text} for name, (kinds, text) in self.known.items()
        }
        return {
            "type": "object", "properties": properties, "required": list(self.required), "additionalProperties": False,
        }  # fmt: skip

    def call(self, arguments: Mapping[str, Any]) -> Answer:
        """The answer; raises TTSimError for invalid arguments."""
        for name in arguments:
            if name not in self.known:
                raise ArgumentError(f"unknown argument {shown(name)}{nearest(name, list(self.known))}")
        for name in self.required:
            if name not in arguments:
                raise ArgumentError(f"argument {name} is missing")
        for name, (kinds, _) in (self.own or {}).items():
            value = arguments.get(name)
            if name in arguments and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
                raise ArgumentError(f"{name} must be {' or '.join(WORDS[kind] for kind in kinds)}, not {shown(value)}")
        checked_fields({name: value for name, value in arguments.items() if name in self.fields})
        return self.answer(arguments)


def _report(call: Call, *, suggestions: bool = False) -> CycleReport:
    options = {name: value for name, value in call.kwargs.items() if name != "device"}
    return estimate_cycles(call.op, *call.args, device=call.device, suggestions=suggestions, **options)


def _estimate(read: Mapping[str, Any]) -> Answer:
    own = _call_fields(read)
    answer: Answer = answer_of({**own, "ask": "runtime"})["runtime"]
    if not read.get("operations", False) or answer["status"] != ExecutionStatus.Success.name:
        return answer
    ops = [op for call in _report(call_of(own)).to_dict()["calls"] for op in call["operations"]]
    return {**answer, "operations": list(map(_operation, ops))}


def _call_fields(read: Mapping[str, Any]) -> Answer:
    return {name: value for name, value in read.items() if name in CALL}


def _operation(op: Mapping[str, Any]) -> Answer:
    """A device operation of a report, with the cycles of its stages.

    Programs that are timed without a schedule of their blocks have no critical path.
    """
    busy, critical = (
        {stage["stage"]: stage[kind] for stage in op["stages"]} for kind in ("busy_cycles", "critical_cycles")
    )
    figures = {name: op[name] for name in ("name", "cycles", "nanoseconds", "bound_by")}
    path = critical if any(critical.values()) else None
    return {**figures, "error_share": op["error"]["share"], "busy_cycles": busy, "critical_cycles": path}


def _constraints(read: Mapping[str, Any]) -> Answer:
    return answer_of({**read, "ask": "constraints"})["constraints"]  # type: ignore[no-any-return]


def _choose(read: Mapping[str, Any]) -> Answer:
    return answer_of(read)["choice"]  # type: ignore[no-any-return]


def _tune(read: Mapping[str, Any]) -> Answer:
    call = call_of(_call_fields(read))
    if call.args:
        raise ArgumentError("tune: give the arguments of a convolution by name, in kwargs")
    options = {name: value for name, value in call.kwargs.items() if name != "device"}
    found = tuned(
        call.op, device=call.device, allow=read.get("allow", ()), keep=read.get("keep", ()),
        effort=read.get("effort", EFFORT), **options,
    )  # fmt: skip
    return found.to_dict()


def _compare(read: Mapping[str, Any]) -> Answer:
    own = _call_fields(read)
    if ("after" in read) == ("reports" in read) or ("reports" in read and own):
        raise ArgumentError("compare: give a call and after, or reports alone")
    if "reports" in read:
        sides = _read_reports(read["reports"])
    else:
        sides = [reported_of(_report(call_of(each))) for each in (own, candidate(own, read["after"]))]
    before, after = (side.whole_nanoseconds for side in sides)
    return {"before_ns": before, "after_ns": after, "text": str(compared(*sides))}


def _read_reports(names: Sequence[Any]) -> list[Reported]:
    """The reports of two files; raises ArgumentError."""
    if len(names) != BEFORE_AND_AFTER or not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"reports must be the paths of two files, not {shown(names)}")
    try:
        return [read_report(Path(name)) for name in names]
    except OSError as error:
        raise ArgumentError(f"compare: {error.strerror}: {shown(str(error.filename), LONGEST_PATH)}") from None


def _explain(read: Mapping[str, Any]) -> Answer:
    report = _report(call_of(_call_fields(read)), suggestions=read.get("advice", False))
    return {"cycles": report.cycles, "nanoseconds": round(report.nanoseconds), "text": report.explain()}


def _devices(read: Mapping[str, Any]) -> Answer:
    names = read.get("names", [])
    if not all(isinstance(name, str) for name in names):
        raise ArgumentError(f"names must be texts, not {shown(names)}")
    return {"devices": [load_spec(name).to_dict() for name in names]} if names else {"names": list(catalog_names())}


AFTER: Final = "what is other in the second call: fields of a question; kwargs and layer are merged by key"
REPORTS: Final = "instead of a call: paths of two reports in JSON, or of CSV files of a profiler, before and after"
# A new tool is one more entry
TOOLS: Final[Mapping[str, Tool]] = {
    "estimate": Tool(
        about="Time of a call on a device: kernels (runtime) and a trace replay with dispatch, in nanoseconds; the "
        "expected error as a share of the time that was ever measured, and the share that never was.",
        fields=CALL,
        own={
            "operations": (
                (bool,),
                "list the device operations as well: cycles, nanoseconds, what binds them, expected error as a share "
                "(null: never measured), the cycles for which each stage is busy, and those on the critical path, "
                "which few programs have; false by default",
            )
        },
        answer=_estimate,
    ),
    "constraints": Tool(
        about="Memory of a call: peaks in bytes of a core, descriptions of the results, or why the call is refused. "
        "With state, the call is placed on top of what lies there, and the new state is part of the answer.",
        fields=(*CALL, "state"),
        answer=_constraints,
    ),
    "choose": Tool(
        about="Ranks candidates of a call by their time in nanoseconds, says which tie with the best within their "
        "error bars, and why others are refused.",
        fields=(*CALL, "choose"),
        answer=_choose,
        required=("choose",),
    ),
    "tune": Tool(
        about="Searches configs of a convolution; the front has the fastest, those that use less L1 and those that are "
        "more exact, in cycles, nanoseconds and bytes of a core, as Python arguments. Takes seconds to a minute.",
        fields=CALL,
        own={
            "effort": ((int,), f"calls to try; {EFFORT} by default"),
            "allow": ((list,), "fields that may change the result: fidelity, dtypes, lowering"),
            "keep": ((list,), "fields of the config that stay as given"),
        },
        answer=_tune,
    ),
    "compare": Tool(
        about="Two calls, one call on two devices, or two reports: both times in nanoseconds, and as text the device "
        "operations that take longer, with what differs.",
        fields=CALL,
        own={"after": ((dict,), AFTER), "reports": ((list,), REPORTS)},
        answer=_compare,
    ),
    "explain": Tool(
        about="Where the time of a call goes, as text: device operations with cycles, stages, what binds them, traffic "
        "and, if wanted, advice.",
        fields=CALL,
        own={"advice": ((bool,), "search for faster configs as well, which takes seconds; false by default")},
        answer=_explain,
    ),
    "devices": Tool(
        about="Names of the devices of the catalog, or all figures of some devices: clocks in Hz, sizes in bytes, "
        "costs in cycles.",
        fields=(),
        own={"names": ((list,), "names, perhaps with changes: n150, dram.banks=16")},
        answer=_devices,
    ),
}
