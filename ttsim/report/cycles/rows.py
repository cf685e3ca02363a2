"""Cycles as rows of text: what every table of them shows, and such a table in plain characters."""

from collections.abc import Sequence

from ttsim.report.columns import fitted
from ttsim.report.cycles.explain import count_of, cycles, percent, time
from ttsim.report.cycles.figures import CallTime, OperationTime, Totals
from ttsim.report.printable import short_name

HEADINGS = ("operation", "cycles", "time", "of call", "bound by", "cores", "math", "useful", "DRAM", "network",
            "uncontended", "of roof")  # fmt: skip
WORDS = ("operation", "bound by")
LEAST_NEEDED = ("of roof", "uncontended", "network", "DRAM", "useful", "math", "cores", "time", "of call")


def operation_row(one: OperationTime) -> tuple[str, ...]:
    """One operation."""
    return (
        short_name(one.name),
        cycles(one.cycles),
        time(one.nanoseconds),
        percent(one.share),
        one.bound_by,
        str(one.core_count),
        *_shared_cells(one),
        cycles(one.cycles_without_contention),
        _roof(one),
    )


def total_row(call: CallTime) -> tuple[str, ...]:
    """All of a call."""
    total = call.total
    return (
        short_name(call.name),
        cycles(total.cycles),
        time(total.nanoseconds),
        "",
        "",
        str(len(total.cores)),
        *_shared_cells(total),
        cycles(total.cycles_without_contention),
        _roof(total),
    )


def rows(call: CallTime, *, alone: bool = True) -> list[tuple[str, ...]]:
    """The operations of a call; then all together, if there are several or it is not alone in its table."""
    found = [operation_row(one) for one in call.operations]
    return found if alone and len(found) == 1 else [*found, total_row(call)]


def table_lines(calls: Sequence[CallTime], width: int | None = None) -> list[str]:
    """A table in plain characters, figures to the right. Where there are several calls, a row with its name ends each.

    Args:
        calls: Whose operations it shows.
        width: Characters of a line; columns that do not fit are left out. None: all are there.
    """
    table = [HEADINGS, *(row for call in calls for row in rows(call, alone=len(calls) == 1))]
    return fitted(table, width, words=WORDS, least_needed=LEAST_NEEDED)


def _shared_cells(one: OperationTime | Totals) -> tuple[str, ...]:
    """Math utilization, useful share, and rates of DRAM and network."""
    math, traffic = one.math, one.traffic
    multiplies = math.issued_flops > 0
    return (
        percent(math.utilization) if multiplies else "",
        percent(math.useful_share) if multiplies else "",
        f"{count_of(traffic.dram_bytes_per_second)}B/s" if traffic.dram_bytes_per_second else "",
        f"{count_of(traffic.network_bytes_per_second)}B/s" if traffic.network_bytes_per_second else "",
    )


def _roof(one: OperationTime | Totals) -> str:
    return percent(one.roofline.share) if one.roofline.cycles else ""
