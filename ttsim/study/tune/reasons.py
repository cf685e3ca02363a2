"""Why one way to make a call is faster than another, in words, from the reports on both."""

from collections.abc import Iterator
from typing import Final

from device.spec.device_spec import DeviceSpec
from ops.op_models import OP_MODELS
from ttsim.recording.timing import timed_call
from ttsim.report.cycles.explain import cycles
from ttsim.report.cycles.figures import OperationTime
from ttsim.report.cycles.report import CycleReport, cycle_report
from ttsim.runtime.traces import RanCall
from ttsim.study.tune.candidate import Candidate

TOLD_FACTS: Final = 5  # of those that an operation was planned apart in


def report_on(candidate: Candidate, spec: DeviceSpec) -> CycleReport:
    """The report on a call that was tried."""
    ran = RanCall(function=f"ttnn.{candidate.call.rules.function}", plan=candidate.plan, ran=candidate.ran)
    return cycle_report([timed_call(ran, spec, meanings=OP_MODELS)], spec)


def reasons(best: Candidate, before: Candidate, spec: DeviceSpec) -> tuple[str, ...]:
    """What `differences` says of two calls that were tried."""
    return differences(report_on(best, spec), report_on(before, spec))


def differences(after: CycleReport, other: CycleReport) -> tuple[str, ...]:
    """What each kind of operation takes in the one and the other, where they were planned apart, and what is left."""
    names = dict.fromkeys(one.name for report in (after, other) for one in report.operations)
    found = [_operation(name, after, other) for name in names]
    told = [text for gain, text in sorted(found, key=lambda one: -one[0]) if text]
    roof = after.total.roofline
    told.append(f"as it is laid out now, {roof.bound} alone takes {cycles(roof.cycles)} cycles (its roofline)")
    return tuple(told)


def _operation(name: str, after: CycleReport, before: CycleReport) -> tuple[int, str]:
    """What is gained on one kind of operation, and that in words; no words where nothing changes."""
    now, then = _of(name, after), _of(name, before)
    taken, took = sum(one.cycles for one in now), sum(one.cycles for one in then)
    if taken == took:
        return 0, ""
    text = f"{name}: {cycles(took)} -> {cycles(taken)} cycles"
    if len(now) != len(then):
        text += f", run {len(now)} times instead of {len(then)}"
    if now and then:
        text += "".join(f"; {difference}" for difference in _differences(_longest(now), _longest(then)))
    return took - taken, text


def _of(name: str, report: CycleReport) -> list[OperationTime]:
    return [one for one in report.operations if one.name == name]


def _longest(operations: list[OperationTime]) -> OperationTime:
    return max(operations, key=lambda one: one.cycles)


def _differences(now: OperationTime, then: OperationTime) -> Iterator[str]:
    """How the longest of each was planned apart, and what binds it."""
    known = {one.name: one for one in then.facts}
    changed = [
        f"{fact.text} instead of {known[fact.name].text}"
        for fact in now.facts
        if fact.name in known and known[fact.name].value != fact.value
    ]
    yield from changed[:TOLD_FACTS]
    if len(changed) > TOLD_FACTS:
        left = len(changed) - TOLD_FACTS
        yield f"{left} more difference{'s' if left > 1 else ''}"
    bound = f"bound by {now.bound_by}"
    yield bound if now.bound_by == then.bound_by else f"{bound} instead of by {then.bound_by}"
