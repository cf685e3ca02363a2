"""Makes a sequence that shows a fault as short and as simple as it can be.

Choices are recorded as numbers whose smallest means the simplest, as Hypothesis records them; but by step, because
leaving out whole steps is what shortens a sequence of calls.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from tools.fuzz.sequences.running import Outcome, Record

SECONDS: Final = 60.0

Again = Callable[[Record], Outcome]


def shrunk(first: Outcome, again: Again, *, seconds: float = SECONDS) -> Outcome:
    """The simplest outcome with the same kind of fault that was found in the given time.

    Args:
        first: An outcome with a fault.
        again: Runs a record.
        seconds: When to stop.
    """
    best, end = first, time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for record in _simpler(best):
            if time.monotonic() > end:
                break
            outcome = again(record)
            if same_fault(outcome, first) and _size(outcome.record) < _size(best.record):
                best, progress = outcome, True
                break
    return best


def same_fault(outcome: Outcome, other: Outcome) -> bool:
    """Whether both show the same fault."""
    faults = (outcome.fault, other.fault)
    if faults[0] is None or faults[1] is None:
        return False
    return (faults[0].operation, faults[0].kind) == (faults[1].operation, faults[1].kind)


def _size(record: Record) -> tuple[int, int, tuple[int, ...]]:
    """Smaller is simpler: fewer steps, fewer choices, lower choices."""
    choices = tuple(choice for choices in record.steps.values() for choice in choices)
    return len(record.steps), len(choices) + len(record.opening), (*record.opening, *choices)


def _simpler(outcome: Outcome) -> Iterator[Record]:
    """Simpler records, the boldest first."""
    record = outcome.record
    numbers = list(record.steps)
    if 0 < len(outcome.needed) < len(numbers):
        yield replace(record, steps={number: record.steps[number] for number in numbers if number in outcome.needed})
    count = len(numbers)
    size = count // 2
    while size:
        for start in range(count - size - 1, -1, -size):  # the last step, which shows the fault, stays
            kept = numbers[:start] + numbers[start + size :]
            yield replace(record, steps={number: record.steps[number] for number in kept})
        size //= 2
    for choices in _lower(record.opening):
        yield replace(record, opening=choices)
    for number in reversed(numbers):
        for choices in _lower(record.steps[number]):
            yield replace(record, steps={**record.steps, number: choices})


def _lower(choices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Lower choices, or fewer of them."""
    for length in (4, 2, 1):
        for place in range(len(choices) - length + 1):
            if any(choices[place : place + length]):
                yield (*choices[:place], *(0,) * length, *choices[place + length :])
    for place, choice in enumerate(choices):
        for lower in (choice // 2, choice - 1):
            if 0 < lower < choice:
                yield (*choices[:place], lower, *choices[place + 1 :])
