"""Explains cycles as text.

All figures come from the report. This module only selects figures, and sums the shares of operations that it does not
mention individually.
"""

from collections.abc import Sequence

from ops.programs.eltwise.functions import UNCOMPARED_CALLS
from ttsim.report.cycles import (
    NO_MEASUREMENT,
    CallTime,
    OperationTime,
    StageTime,
    TotalError,
    Traffic,
    UntimedOperation,
    spent_cycles,
)
from ttsim.report.formatting import count_of, counted, cycles, joined, percent, time

SHOWN_SHARE = 0.05  # operations and stages below this share of the whole are not listed
SHOWN_STAGES = 4
SENT_ON = {"reader": "activation multicast", "weight reader": "weight multicast"}  # by the same processor
FIDELITIES = {1: "LoFi", 2: "HiFi2", 3: "HiFi3", 4: "HiFi4"}


def explain_call(call: CallTime, device: str) -> str:
    """A call as text: a paragraph for the call, and a line for each operation that matters."""
    if not call.operations:
        first = f"{call.name} takes no cycles on {device}{not_counting(call.untimed)}."
        return "\n".join([first, *untimed_lines(call)])
    lines = [_overview(call, device), *operation_lines(call), *untimed_lines(call)]
    name = call.name.rpartition(".")[2]
    if name in UNCOMPARED_CALLS:
        lines.append(
            f"- Values: outputs of {name} were never compared with the real library's "
            "(docs/reference/values.md, Activation)."
        )
    return "\n".join(lines)


def operation_lines(call: CallTime) -> list[str]:
    """A line for each important operation, the longest first, one line for the rest, and the planner's choices."""
    text = [op for op in call.operations if op.share >= SHOWN_SHARE] or list(call.operations)
    rest = [op for op in call.operations if op.share < SHOWN_SHARE] if len(text) < len(call.operations) else []
    others = f"- The others take {percent(sum(op.share for op in rest))}: {', '.join(op.name for op in rest)}."
    return [
        *(_operation(op) for op in sorted(text, key=lambda op: -op.cycles)),
        *([others] if rest else []),
        *(f"- Chosen for the call: {decision.text}." for decision in call.decisions),
    ]


def untimed_lines(call: CallTime) -> list[str]:
    """Operations that ran without a model."""
    return [f"- Not counted: {op.name}, {op.reason}" for op in call.untimed]


def not_counting(untimed: Sequence[UntimedOperation]) -> str:
    """A suffix of a report's first line if its figures lack operations; else empty."""
    names = list(dict.fromkeys(op.name for op in untimed))
    return f", not counting {' and '.join(names)}" if names else ""


def explain_inclusion(includes: Sequence[str], leaves_out: Sequence[str]) -> str:
    """What the cycles include and exclude."""
    return f"Cycles count {'; '.join(includes)}. They leave out {'; '.join(leaves_out)}."


def _overview(call: CallTime, device: str) -> str:
    total, count, math = call.total, len(call.operations), call.total.math
    longest = max(call.operations, key=lambda op: op.cycles)
    text = (
        f"{call.name} takes {cycles(total.cycles)} cycles ({time(total.nanoseconds)}) on {device}, in "
        f"{counted(count, 'device operation')}{not_counting(call.untimed)}."
    )
    if count > 1:
        text += f" {longest.name} takes {percent(longest.share)} of it."
    if total.error.share is not None:
        text += f" Cycles are to be expected {percent(total.error.share)} off{where_measured(total.error)}."
    if math.issued_flops:
        text += (
            f" Its definition needs {count_of(math.useful_flops)}FLOP, the matrix units do "
            f"{count_of(math.issued_flops)}FLOP ({percent(math.useful_share)} useful; the rest are inserted zeros and "
            f"padding to tiles): {count_of(math.flops_per_second)}FLOP/s of useful work, all matrix units of the "
            f"device {percent(math.device_utilization)} busy."
        )
    return text


def where_measured(error: TotalError) -> str:
    """The text after an expected error: the share of the cycles without a measurement."""
    if not error.unmeasured_share:
        return ""
    return f" where models were measured; for {percent(error.unmeasured_share)} of the cycles there is no measurement"


def _operation(op: OperationTime) -> str:
    math, roof, last = op.math, op.roofline, op.groups[-1]
    text = f"- {op.name}: {cycles(op.cycles)} cycles ({percent(op.share)}) on {counted(op.core_count, 'core')}, "
    text += f"{_bound(op)}{_path(op.stages)}"
    if math.issued_flops:
        fidelity = FIDELITIES.get(op.fidelity_phases, "unknown fidelity")
        text += f" Its matrix units multiply {percent(math.utilization)} of the time ({fidelity}), "
        text += f"{percent(math.useful_share)} of it useful."
    text += _traffic(op.traffic)
    if roof.cycles:
        reached = f"it reaches {percent(roof.share)} of that"
        text += f" At best {roof.bound} would take {cycles(roof.cycles)} cycles: {reached}."
    if op.contention_cycles:
        text += f" Without contention it would take {cycles(op.cycles_without_contention)} cycles."
    if last.idle_share >= SHOWN_SHARE:
        count = len(last.coordinates)
        idle = "One of its cores is" if count == 1 else f"{count} of its cores are"
        text += f" {idle} done {percent(last.idle_share)} earlier than the last."
    if op.facts:
        text += f" Planned: {', '.join(fact.text for fact in op.facts)}."
    if op.error.share is not None:
        text += f" Expected error: {percent(op.error.share)} ({op.error.text})."
    elif op.error.text != NO_MEASUREMENT:
        text += f" Error: {op.error.text}."
    return text


def _bound(op: OperationTime) -> str:
    stages = {stage.stage: stage for stage in op.stages}
    leads = stages.get(op.bound_by)
    if leads is None:
        return f"bound by {op.bound_by}."
    if not op.tied_with:
        return f"bound by {op.bound_by} ({leads.does})."
    text, spent = [], spent_cycles(op.stages)
    for name in (op.bound_by, *op.tied_with):
        sent = SENT_ON.get(name, "")
        then = f", and {cycles(spent[sent])} for its multicast" if spent.get(sent) else ""
        text.append(f"{name} ({stages[name].does}: {cycles(spent[name])} cycles{then})")
    return f"bound by {text[0]}, nearly tied with {joined(text[1:])}."


def _path(stages: Sequence[StageTime]) -> str:
    """The shares of stages on the critical path, or else of busy cores."""
    known = any(stage.critical_cycles for stage in stages)
    shares = {stage.stage: stage.critical_share if known else stage.busy_share for stage in stages}
    ordered = sorted((name for name in shares if shares[name] >= SHOWN_SHARE), key=lambda name: -shares[name])
    if not ordered:
        return ""
    text = ", ".join(f"{name} {percent(shares[name])}" for name in ordered[:SHOWN_STAGES])
    waits = [stage for stage in stages if stage.stall_share >= SHOWN_SHARE]
    waiting = ", ".join(f"{stage.stage} {percent(stage.stall_share)}" for stage in waits)
    place = "On the critical path" if known else "Busy"
    return f" {place}: {text}." + (f" Waiting for others: {waiting}." if waiting else "")


def _traffic(traffic: Traffic) -> str:
    moved = (("reads", traffic.dram_read_bytes, "from"), ("writes", traffic.dram_written_bytes, "to"))
    text = [f"{does} {count_of(size_bytes)}B {way} DRAM" for does, size_bytes, way in moved if size_bytes]
    if text:
        text[-1] += f" (at {count_of(traffic.dram_bytes_per_second)}B/s, {percent(traffic.dram_share)} of its peak)"
    if traffic.network_bytes:
        text.append(f"sends {count_of(traffic.network_bytes)}B between cores")
    return f" It {joined(text)}." if text else ""
