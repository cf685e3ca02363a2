"""Advice in words: what would make a call faster, and which part of the machine it hangs on."""

from ttsim.report.columns import fitted, wrapped
from ttsim.report.cycles.advice import Advice, Change, MachineChange
from ttsim.report.cycles.explain import count_of, cycles, percent

TOLD_CHANGES = 4
LARGE = 1e6
TOLD_FIGURES = 8


def advice_lines(advice: Advice) -> list[str]:
    """What would help, a line for each change, also of the machine."""
    return [*help_lines(advice), *(f"  on another machine, {_machine(one)}" for one in advice.machine)]


def help_lines(advice: Advice) -> list[str]:
    """What would help on the same machine, a line for each change."""
    tried = f"{advice.tried} calls tried on the model" if advice.tried else "tried on the model, with the plan held"
    told = [*advice.changes[:TOLD_CHANGES], *([advice.together] if advice.together else [])]
    lines = [f"What would help ({tried}; errors of the model are larger than small gains):"]
    lines += [f"  {_change(one, advice)}" for one in told]
    if advice.tried and not told:
        lines.append("  no other config that was tried is faster")
    return lines + [f"  at a price, {one.price}: {_change(one, advice)}" for one in advice.at_a_price]


def paste_lines(advice: Advice) -> list[str]:
    """The best way to make the call that was found, to paste."""
    best = advice.together or (advice.changes[0] if advice.changes else None)
    return [f"  {best.arguments}"] if best else []


def sensitivity_rows(advice: Advice) -> list[tuple[str, ...]]:
    """Figure, value, d log(time) / d log(figure), time with twice and half of it; the strongest first."""
    return [
        (
            one.figure,
            figure_value(one.value),
            f"{one.cycles_elasticity:+.3f}",
            f"{one.time_elasticity:+.3f}",
            _times(one.doubled_time),
            _times(one.halved_time),
        )
        for one in advice.sensitivity[:TOLD_FIGURES]
    ]


INDENT = 2
LEAST_NEEDED = ("dlog cycles", "half", "twice", "value")  # of a table of figures
SENSITIVITY_HEADINGS = ("figure", "value", "dlog cycles", "dlog time", "twice", "half")


def explain_advice(advice: Advice) -> str:
    """All of it in plain characters."""
    return "\n".join([*advice_lines(advice), *paste_lines(advice), *sensitivity_lines(advice)])


def sensitivity_lines(advice: Advice, width: int | None = None) -> list[str]:
    """On which figures of the machine the call hangs, as a table; none if nobody asked.

    Args:
        width: Characters of a line; columns that do not fit are left out. None: all are there.
    """
    rows = sensitivity_rows(advice)
    if not rows:
        return []
    room = None if width is None else width - INDENT
    table = fitted([SENSITIVITY_HEADINGS, *rows], room, words=SENSITIVITY_HEADINGS[:1], least_needed=LEAST_NEEDED)
    head = "Which part of the machine it hangs on (d log of cycles and time / d log of a figure):"
    return [*wrapped(head, width, indent=INDENT), *(" " * INDENT + line for line in table)]


def figure_value(value: float) -> str:
    """A figure of a machine: large ones with a prefix."""
    return count_of(value).strip() if value >= LARGE else f"{value:g}"


def _change(one: Change, advice: Advice) -> str:
    return f"{one.text}: {cycles(advice.cycles)} -> {cycles(one.cycles)} cycles (-{percent(one.saved_share)})"


def _machine(one: MachineChange) -> str:
    what = "twice" if one.factor > 1 else "half of"
    return f"{what} {one.figure} ({figure_value(one.value)}): -{percent(one.saved_share)} of the time"


def _times(time: float | None) -> str:
    return "" if time is None else f"x{time:.3f}"
