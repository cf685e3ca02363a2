"""Cycles for a terminal, drawn with rich. Every figure is taken from the report as it is."""

from rich.console import Console

from ttsim.report.columns import fitted, wrapped
from ttsim.report.cycles.advice import Advice
from ttsim.report.cycles.advise import advice_lines, help_lines, paste_lines, sensitivity_lines
from ttsim.report.cycles.explain import cycles, not_counting, operation_lines, percent, time, untimed_lines
from ttsim.report.cycles.figures import CallTime, OperationTime
from ttsim.report.cycles.report import CycleReport
from ttsim.report.cycles.rows import table_lines
from ttsim.report.printable import short_name
from ttsim.report.writers.terminal import say, show

SHOWN_SHARE = 0.005  # stages below this share are left out: a table has room for what a text would not tell
STAGE_HEADINGS = ("stage", "busy cycles", "busy", "waiting", "critical")


def print_call(console: Console, call: CallTime, *, details: bool) -> None:
    """The operations of a call and which are missing; what their stages do, and both in words, if asked for."""
    show(console, table_lines([call], console.width))
    if details:
        for operation in call.operations:
            show(console, ["", short_name(operation.name)], style="bold")
            show(console, stage_lines(operation, console.width))
        console.print()
        for line in operation_lines(call):
            say(console, line, indent=2)
    for line in untimed_lines(call):
        say(console, line, indent=2, style="red")


def print_advice(console: Console, advice: Advice, *, details: bool) -> None:
    """What would make the calls faster; and, if asked for, which part of the machine they hang on."""
    console.print()
    for line in advice_lines(advice) if details else help_lines(advice):
        say(console, line, indent=4)
    for line in paste_lines(advice):
        show(console, code_lines(line, console.width))
    if details:
        show(console, sensitivity_lines(advice, console.width))


def code_lines(code: str, width: int) -> list[str]:
    """Arguments of a call over as many lines as they need; they break between arguments, or behind a bracket."""
    spaced = wrapped(code.replace("(", "( "), width, indent=4)
    return [line.replace("( ", "(") for line in spaced]


def cycles_line(report: CycleReport, call: CallTime) -> str:
    """A call in one line."""
    total, missing = call.total, not_counting(call.untimed)
    if not call.operations:
        return f"no operation that takes cycles{missing}"
    longest = max(call.operations, key=lambda one: one.cycles)
    return (
        f"{cycles(total.cycles)} in {time(total.nanoseconds)} at {report.clock_hz / 1e9:g} GHz{missing}, "
        f"{percent(longest.share)} of it {longest.name}, bound by {longest.bound_by}; matrix units of the device "
        f"{percent(total.math.device_utilization)} busy"
    )


def stage_lines(operation: OperationTime, width: int) -> list[str]:
    """What the stages of an operation's slowest cores do, as shares of its cycles.

    Who waits, and the critical path, are known of programs that were walked block by block.
    """
    rows = [STAGE_HEADINGS]
    walked = any(stage.critical_share for stage in operation.stages)  # otherwise it is the slowest of its stages
    for stage in operation.stages:
        busy, waiting, critical = stage.busy_share, stage.stall_share, stage.critical_share
        if max(busy, waiting, critical) >= SHOWN_SHARE:
            shares = (percent(waiting), percent(critical)) if walked else ("", "")
            rows.append((stage.stage, cycles(stage.busy_cycles), percent(busy), *shares))
    return fitted(rows, width, words=("stage",))
