"""Answers to questions, as JSON objects."""

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, Final

from device.errors import ArgumentError, NotSimulatedError, TTSimError, nearest, shown
from ttsim.recording.queries import (
    query_constraints_and_runtime,
    query_op_constraints,
    query_op_constraints_with_initial_state,
    runtime_and_report,
    runtime_and_report_on_top_of,
)
from ttsim.report.cycle_report import CycleReport
from ttsim.runtime.queried import (
    AllocationRecord,
    ConstraintQueryResponse,
    ExecutionStatus,
    MockAllocatorState,
    ResourceUsage,
    RuntimeQueryResponse,
    refusal_of,
)
from ttsim.study.ask.choice import Candidate, choice, parts_of
from ttsim.study.ask.question import PROTOCOL, Call, call_of, candidate, checked_fields, device_of, state_of
from ttsim.study.ask.values import json_of
from ttsim.study.store import model_version

USUAL: Final = ("constraints", "runtime")
FAILED: Final = "failure"  # the refusal of a question at which ttsim itself failed
ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
Answer = dict[str, Any]


class TooLongError(Exception):
    """Answering a question took longer than the timeout."""


def answer_texts(texts: Iterable[str], seconds: float) -> list[str]:
    """The answers to several questions; see `answer_text`."""
    return [answer_text(text, seconds) for text in texts]


def answer_text(text: str, seconds: float) -> str:
    """The answer to a question's text, as one line of JSON; errors become part of the answer."""
    try:
        with _within(seconds):
            answer = answer_of(json.loads(text))
    except TTSimError as error:
        return refused(str(error), _class_of(error))
    except TooLongError:
        return failed(f"no answer within {seconds:g} s; --timeout allows more")
    except Exception as error:
        return failed(f"ttsim failed at this question: {type(error).__name__}: {error}")
    return _line(answer)


def _line(answer: Answer) -> str:
    return ENCODER.encode(answer)


def refused(message: str, refusal: str = "argument") -> str:
    """The answer to a line that is not a valid question."""
    return _line({"error": message, "refusal": refusal})


def _class_of(error: TTSimError) -> str:
    """The class of an error in a question: an operation that ttsim does not have, or any other mistake."""
    return refusal_of(error) if isinstance(error, NotSimulatedError) else "argument"


def failed(message: str) -> str:
    """The answer to a question for which ttsim failed."""
    return _line({"error": message, "refusal": FAILED})


def is_failure(answer: str) -> bool:
    """Whether an answer comes from `failed`; such answers are not cached."""
    return answer.endswith(f'"refusal":"{FAILED}"}}')


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """A context that raises TooLongError after some seconds, in the main thread of a process."""
    if not seconds or current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def answer_of(read: Mapping[str, Any]) -> Answer:
    """The answer to the fields of a question; raises TTSimError for an invalid question."""
    checked_fields(read)
    asked = read.get("ask", USUAL)
    names = [asked] if isinstance(asked, str) else asked
    if not names:
        raise ArgumentError(f"ask is empty; it is {', '.join(ASKED)}, or several of these")
    for name in names:
        if not isinstance(name, str) or name not in ASKED:
            near = nearest(str(name), list(ASKED))
            raise ArgumentError(f"ask must be {', '.join(ASKED)}, or several of these, not {shown(name)}{near}")
    if "choose" in read:
        return {"choice": _choice(read)}
    subject = Subject(read, together=set(USUAL) <= set(names) and "state" not in read)
    return {name: ASKED[name](subject) for name in names}


class Subject:
    """The call, device and state of a question."""

    def __init__(self, read: Mapping[str, Any], *, together: bool = False) -> None:
        self.read = read  # The fields of the question
        self.together = together  # Whether memory and time are asked for at once, without a state

    @cached_property
    def call(self) -> Call:
        """The call, shared by all answers to the question; raises TTSimError for an invalid question."""
        return call_of(self.read)

    @cached_property
    def responses(self) -> tuple[ConstraintQueryResponse, RuntimeQueryResponse]:
        """Memory and time of the call."""
        op, args, kwargs, device = self.call
        return query_constraints_and_runtime(op, device, args, kwargs)


def _constraints(subject: Subject) -> Answer:
    op, args, kwargs, device = subject.call
    if subject.together:
        return _written(subject.responses[0])
    if "state" not in subject.read:
        return _written(query_op_constraints(op, device, *args, **kwargs))
    state = state_of(subject.read["state"])
    output = query_op_constraints_with_initial_state(op, device, state, *args, **kwargs)
    return {
        **_written(output.response),
        "new_state": [_record(record) for record in records_of(output.new_state)],
        "output_allocations": [_record(record) for record in output.output_allocations],
    }


def records_of(state: MockAllocatorState) -> Iterator[AllocationRecord]:
    """The regions of a state as records."""
    for kind, regions in state.regions.items():
        yield from (AllocationRecord(kind, start, end - start) for start, end in regions)


def _record(record: AllocationRecord) -> Answer:
    return {name: json_of(value) for name, value in record._asdict().items()}


def _runtime(subject: Subject) -> Answer:
    return _written(_response(subject))


def _response(subject: Subject) -> RuntimeQueryResponse:
    """The time of the call of a question."""
    return subject.responses[1] if subject.together else _timed(subject)[0]


def _timed(subject: Subject) -> tuple[RuntimeQueryResponse, CycleReport | None]:
    """The time of the call of a question, on top of the question's state if it has one, and the report of the time."""
    op, args, kwargs, device = subject.call
    if "state" in subject.read:
        return runtime_and_report_on_top_of(op, device, state_of(subject.read["state"]), args, kwargs)
    return runtime_and_report(op, device, args, kwargs)


def _written(response: ConstraintQueryResponse | RuntimeQueryResponse) -> Answer:
    """The fields of a response."""

    def written(value: Any) -> Any:
        if isinstance(value, ExecutionStatus):
            return value.name
        return value._asdict() if isinstance(value, ResourceUsage) else json_of(value)

    return {field.name: written(getattr(response, field.name)) for field in fields(response)}


def _model(subject: Subject) -> int:
    """The time in ns, or 0 if it is unknown, which is the interface of tt-metal's runtime predictors.

    Raises TTSimError for a mistake outside the call, such as an unknown device.
    """
    read = subject.read
    device_of(read)
    state_of(read.get("state", ()))
    if "layer" in read or "op" not in read:
        response = _response(subject)
    else:
        try:
            response = _response(Subject(_as_call(read)))
        except TTSimError:
            return 0
    return 0 if response.untimed else response.runtime


def _as_call(read: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a predictor's question: ``tensor_json`` is the first argument, and shapes may end with zeros."""
    kwargs = dict(read.get("kwargs", {}))
    args = [kwargs.pop("tensor_json")] if "tensor_json" in kwargs else []
    memory = kwargs.pop("output_memory_config", None)
    added = {"memory_config": memory} if memory else {}
    kept = {name: value for name, value in kwargs.items() if value is not None}
    args = [_without_zeros(each) for each in (*args, *read.get("args", [])) if each not in (None, {})]
    return {**read, "args": args, "kwargs": kept | added}


def _without_zeros(written: Any) -> Any:
    spec = written.get("tensor_spec") if isinstance(written, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("logical_shape"), list):
        return written
    shape = spec["logical_shape"]
    while len(shape) > 1 and shape[-1] == 0:
        shape = shape[:-1]
    return {"tensor_spec": {**spec, "logical_shape": shape}}


def _version(subject: Subject) -> Answer:
    return {"protocol": PROTOCOL, "model": model_version()}


def _choice(read: Mapping[str, Any]) -> Answer:
    candidates = []
    for number, changes in enumerate(read["choose"]):
        report = None
        try:
            response, report = _timed(Subject(candidate(read, changes)))
        except TTSimError as error:
            response = RuntimeQueryResponse(
                status=ExecutionStatus.Error, error_message=str(error), refusal=_class_of(error)
            )
        candidates.append(Candidate(number, response, () if report is None else parts_of(report)))
    return choice(candidates)


ASKED: Final[Mapping[str, Callable[[Subject], Any]]] = {
    "constraints": _constraints,
    "runtime": _runtime,
    "model": _model,
    "version": _version,
}
