"""Cycles for a terminal, drawn with rich. Every figure is taken from the report as it is."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ttsim.report.cycle_figures import CallTime
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycle_rows import HEADINGS, rows
from ttsim.report.explain import cycles, explain_inclusion, percent, time, untimed_lines

TOLD_SHARE = 0.005  # stages below this share are left out
WORDS = ("operation", "bound by")


def print_cycles(console: Console, report: CycleReport) -> None:
    """Every call in a line and two tables, and what the figures count."""
    for call in report.calls:
        console.print(f"[bold]{escape(call.name)}[/] {escape(cycles_line(report, call))}", highlight=False)
        console.print(cycles_table(call))
        console.print(stages_table(call))
        for line in untimed_lines(call):
            console.print(escape(line), highlight=False, soft_wrap=True)
    console.print(explain_inclusion(report.includes, report.leaves_out), highlight=False, soft_wrap=True)


def cycles_line(report: CycleReport, call: CallTime) -> str:
    """A call in one line."""
    total = call.total
    if not call.operations:
        return "no operation that takes cycles"
    longest = max(call.operations, key=lambda one: one.cycles)
    return (
        f"{cycles(total.cycles)} in {time(total.nanoseconds)} at {report.clock_hz / 1e9:g} GHz, "
        f"{percent(longest.share)} of it {longest.name}, bound by {longest.bound_by}; matrix units of the device "
        f"{percent(total.math.device_utilisation)} busy"
    )


def cycles_table(call: CallTime) -> Table:
    """A row for each operation, and one for all."""
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in WORDS else "right", no_wrap=True)
    for row in rows(call):
        table.add_row(*(escape(cell) for cell in row))
    return table


def stages_table(call: CallTime) -> Table:
    """What the stages of each operation's slowest cores do, as shares of the operation's cycles."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("operation")
    table.add_column("stage")
    for heading in ("busy cycles", "busy", "waiting", "critical"):
        table.add_column(heading, justify="right")
    for operation in call.operations:
        table.add_section()
        name = operation.name
        for stage in operation.stages:
            if max(stage.busy_share, stage.stall_share, stage.critical_share) >= TOLD_SHARE:
                busy, waiting, critical = stage.busy_share, stage.stall_share, stage.critical_share
                table.add_row(
                    escape(name), stage.stage, cycles(stage.busy_cycles), percent(busy), percent(waiting),
                    percent(critical),
                )  # fmt: skip
                name = ""
    return table
