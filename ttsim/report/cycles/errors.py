"""Error bars of operations and totals, from what their models missed of measurements.

Operations of one kind are off alike, since one model is: their errors add up. Kinds are measured apart: theirs are
taken for independent, and add up in squares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, hypot
from typing import Final

from ops.op_model import Description
from ops.passes.cycles import expected_error

NO_MEASUREMENT: Final = "no measurement"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBar:
    """How far the cycles of an operation are to be expected off."""

    share: float | None  # Mean absolute error on configurations that the fit had not seen; None without a measurement
    configurations: int  # How many were measured
    text: str  # Where the figure comes from, or why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalError:
    """How far the cycles of several operations are to be expected off."""

    share: float | None  # Of the cycles whose models were measured; None if none was
    unmeasured_share: float  # Of all cycles, those of operations without a measurement


def error_bar(account: Description, architecture: str) -> ErrorBar:
    """What is to be expected of an operation."""
    found = expected_error(account.measured_as, architecture) if account.measured_as else None
    if found is None:
        made = f"; composed of {account.composed_of}" if account.composed_of else ""
        return ErrorBar(share=None, configurations=0, text=f"{NO_MEASUREMENT}{made}")
    text = f"{account.measured_as}: mean of {found.configurations} configurations that the fit had not seen"
    if found.architecture != architecture:
        text += f", all on {found.architecture}: on {architecture} nothing was measured"
    return ErrorBar(share=found.share, configurations=found.configurations, text=text)


def total_error(parts: Sequence[tuple[str, int, ErrorBar]]) -> TotalError:
    """What is to be expected of operations that run one after the other.

    Args:
        parts: What each was measured as, its cycles and its error.
    """
    everything = sum(cycles for _, cycles, _ in parts)
    off: dict[str, list[float]] = {}
    measured = 0
    for kind, cycles, bar in parts:
        if bar.share is not None:
            measured += cycles
            off.setdefault(kind, []).append(bar.share * cycles)
    return TotalError(
        share=hypot(*map(fsum, off.values())) / measured if measured else None,
        unmeasured_share=1 - measured / everything if everything else 0.0,
    )
