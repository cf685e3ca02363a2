"""Simulated suggestions that make calls faster, and their text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ops.passes.sensitivity import Sensitivity
from ttsim.report.formatting import TableColumn, count_of, cycles, percent, table_lines, wrapped


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a call's arguments, simulated."""

    kind: str  # The changed field
    text: str  # The change in short: "shard_layout=HEIGHT_SHARDED"
    arguments: str  # The changed arguments of the call, to paste into a script that says ``import ttsim as ttnn``
    cycles: int  # Cycles of the changed call
    saved_share: float  # Share of the original cycles
    price: str = ""  # The loss, such as precision; empty if there is none


@dataclass(frozen=True, slots=True)
class MachineChange:
    """A change of a device's figure, with the same plan."""

    figure: str  # The changed figure, as part.field
    factor: float  # 2 or 0.5
    value: float  # The figure before
    saved_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All suggestions for a call."""

    cycles: int
    changes: tuple[Change, ...] = ()  # The best change of the configs of each kind, the best first
    # The best combination of changes; None if no combination is better than one change
    together: Change | None = None
    at_a_price: tuple[Change, ...] = ()  # Single changes with a loss
    machine: tuple[MachineChange, ...] = ()  # Changes of the machine, the best first
    sensitivity: tuple[Sensitivity, ...] = ()  # Sensitivity to each figure of the machine, the strongest first
    tried: int = 0  # Calls that were planned and timed


def machine_changes(
    sensitivities: tuple[Sensitivity, ...], *, least_share: float, most: int
) -> tuple[MachineChange, ...]:
    """The best `most` doublings or halvings of a figure that save at least `least_share` of the time."""
    changes = []
    for sensitivity in sensitivities:
        times = [
            (time, factor) for factor, time in ((2.0, sensitivity.doubled_time), (0.5, sensitivity.halved_time)) if time
        ]
        time, factor = min(times, default=(1.0, 1.0))
        if 1 - time >= least_share:
            changes.append(MachineChange(sensitivity.figure, factor, sensitivity.value, 1 - time))
    return tuple(sorted(changes, key=lambda change: (-change.saved_share, change.figure))[:most])


SHOWN_CHANGES = 4
LARGE = 1e6
SHOWN_FIGURES = 8


def advice_lines(advice: Advice) -> list[str]:
    """A line for each change of the call and of the machine."""
    return [*help_lines(advice), *(f"  on another machine, {_machine(change)}" for change in advice.machine)]


def help_lines(advice: Advice) -> list[str]:
    """A line for each change of the call."""
    tried = f"{advice.tried} calls tried on the model" if advice.tried else "tried on the model, with the plan held"
    text = [*advice.changes[:SHOWN_CHANGES], *([advice.together] if advice.together else [])]
    lines = [f"What would help ({tried}; errors of the model are larger than small gains):"]
    lines += [f"  {_change(change, advice)}" for change in text]
    if advice.tried and not text:
        lines.append("  no other config that was tried is faster")
    return lines + [f"  at a price, {change.price}: {_change(change, advice)}" for change in advice.at_a_price]


def paste_lines(advice: Advice) -> list[str]:
    """The best arguments as source to paste into a script."""
    best = best_change(advice)
    return [f"  {best.arguments}"] if best else []


def best_change(advice: Advice) -> Change | None:
    """The change that saves most time without a loss of precision; None if no change saves time."""
    return advice.together or (advice.changes[0] if advice.changes else None)


BOTTLENECK: Final = "Hardware bottleneck"
SENSITIVITY_TITLE: Final = f"{BOTTLENECK} (d log of cycles and time / d log of a figure)"
INDENT = 2


def _times(time: float | None) -> str:
    return "" if time is None else f"x{time:.3f}"


def figure_value(value: float) -> str:
    """A figure of a machine as text; large numbers get a decimal prefix."""
    return count_of(value).strip() if value >= LARGE else f"{value:g}"


SENSITIVITY_TABLE: Final[Sequence[TableColumn[Sensitivity]]] = (
    TableColumn("figure", lambda row: row.figure, words=True),
    TableColumn("value", lambda row: figure_value(row.value), goes=4),
    TableColumn("dlog cycles", lambda row: f"{row.cycles_elasticity:+.3f}", goes=1),
    TableColumn("dlog time", lambda row: f"{row.time_elasticity:+.3f}"),
    TableColumn("twice", lambda row: _times(row.doubled_time), goes=3),
    TableColumn("half", lambda row: _times(row.halved_time), goes=2),
)


def explain_advice(advice: Advice) -> str:
    """The advice as plain text."""
    return "\n".join([*advice_lines(advice), *paste_lines(advice), *sensitivity_lines(advice)])


def sensitivity_lines(advice: Advice, width: int | None = None) -> list[str]:
    """The table of the figures that the time depends on, `width` characters wide; empty without sensitivities."""
    if not advice.sensitivity:
        return []
    room = None if width is None else width - INDENT
    table = table_lines(SENSITIVITY_TABLE, advice.sensitivity[:SHOWN_FIGURES], room)
    return [*wrapped(f"{SENSITIVITY_TITLE}:", width, indent=INDENT), *(" " * INDENT + line for line in table)]


def _change(change: Change, advice: Advice) -> str:
    return f"{change.text}: {cycles(advice.cycles)} -> {cycles(change.cycles)} cycles (-{percent(change.saved_share)})"


def _machine(change: MachineChange) -> str:
    what = "twice" if change.factor > 1 else "half of"
    return f"{what} {change.figure} ({figure_value(change.value)}): -{percent(change.saved_share)} of the time"
