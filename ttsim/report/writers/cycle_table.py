"""Cycles for a terminal, drawn with rich. Every figure is taken from the report as it is."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ttsim.report.columns import fitting_columns
from ttsim.report.cycles.advice import Advice
from ttsim.report.cycles.advise import explain_advice
from ttsim.report.cycles.explain import cycles, not_counting, operation_lines, percent, time, untimed_lines
from ttsim.report.cycles.figures import CallTime
from ttsim.report.cycles.report import CycleReport
from ttsim.report.cycles.rows import HEADINGS, rows
from ttsim.report.printable import printable_lines

SHOWN_SHARE = 0.005  # stages below this share are left out: a table has room for what a text would not tell
WORDS = ("operation", "bound by")
NEEDED = ("cycles", "bound by")
WIDE = 160
GAP = 2  # spaces between columns


def print_call(console: Console, call: CallTime) -> None:
    """The operations of a call, what their stages do, both in words, and which operations are missing."""
    console.print(cycles_table(call, console.width))
    console.print()
    console.print(stages_table(call))
    for line in operation_lines(call):
        console.print(escaped(line), highlight=False, soft_wrap=True)
    for line in untimed_lines(call):
        console.print(f"[red]{escaped(line)}", highlight=False, soft_wrap=True)


def print_advice(console: Console, advice: Advice) -> None:
    """What would make the calls faster, and which part of the machine they hang on."""
    console.print()
    console.print(escaped(explain_advice(advice)), highlight=False, soft_wrap=True)


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


def cycles_table(call: CallTime, width: int = WIDE) -> Table:
    """A row for each operation, and one for all; columns that do not fit the width are left out, the last first."""
    shown = [HEADINGS, *rows(call)]
    last_first = [at for at in range(len(HEADINGS) - 1, 0, -1) if HEADINGS[at] not in NEEDED]
    kept = fitting_columns(shown, width, gap=GAP, least_needed=last_first)
    table = Table(box=None, pad_edge=False)
    for at in kept:
        table.add_column(HEADINGS[at], justify="left" if HEADINGS[at] in WORDS else "right", no_wrap=True)
    for row in shown[1:]:
        table.add_row(*(escaped(row[at]) for at in kept))
    return table


def stages_table(call: CallTime) -> Table:
    """What the stages of each operation's slowest cores do, as shares of the operation's cycles.

    Who waits, and the critical path, are known of programs that were walked block by block.
    """
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("operation")
    table.add_column("stage")
    for heading in ("busy cycles", "busy", "waiting", "critical"):
        table.add_column(heading, justify="right")
    for operation in call.operations:
        table.add_section()
        name = operation.name
        walked = any(stage.critical_share for stage in operation.stages)  # otherwise it is the slowest of its stages
        for stage in operation.stages:
            busy, waiting, critical = stage.busy_share, stage.stall_share, stage.critical_share
            if max(busy, waiting, critical) >= SHOWN_SHARE:
                shares = (percent(busy), *((percent(waiting), percent(critical)) if walked else ("", "")))
                table.add_row(escaped(name), stage.stage, cycles(stage.busy_cycles), *shares)
                name = ""
    return table


def escaped(text: str) -> str:
    """A text as a table shows it: nothing in it is markup, or steers the terminal."""
    return escape(printable_lines(text))
