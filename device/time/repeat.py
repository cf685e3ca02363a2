"""A unit of a program that is done again and again: walked until it repeats itself, then counted.

What a unit does depends on the moments that its processors and circular buffers show when it begins, and on nothing
else. So once a unit leaves all of them later by the same time, the next one does the same things that much later, and
each waits for what it waited for before: times, waits and critical paths of all that follow are those of one unit.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isclose
from typing import Final, NamedTuple

from device.time.engine import Moment, Processor, Slots, Task, task_of
from device.time.stages import Stage

SAME: Final = 1e-12  # what rounding makes of equal times
FEWEST: Final = 12  # units of which it pays to find out whether they repeat themselves; results do not depend on it


class _Step(NamedTuple):
    """How a moment at the end of a unit comes about."""

    source: int  # Number of the moment at its beginning that the critical path leads to
    task: Task | None  # All tasks on that path together; None if it is that very moment
    cycles: float  # How much later it is than the moment of its own number


def repeat(times: int, unit: Callable[[], object], processors: Sequence[Processor], buffers: Sequence[Slots]) -> None:
    """Do a unit several times over.

    Args:
        times: How often.
        unit: Walks through it; each time with the same tasks, in the same order.
        processors: All that it works with, each once.
        buffers: All circular buffers that it fills or empties.
    """
    if times < FEWEST:
        for _ in range(times):
            unit()
        return
    seen = [moment.cycles for moment in _moments(processors, buffers)]
    for left in reversed(range(times)):
        unit()
        before, seen = seen, [moment.cycles for moment in _moments(processors, buffers)]
        if left > 1 and _is_later(before, seen):
            _count(left, unit, processors, buffers)
            return


def _moments(processors: Iterable[Processor], buffers: Iterable[Slots]) -> list[Moment]:
    """All that a unit may wait for."""
    return [processor.now for processor in processors] + [moment for one in buffers for moment in one.moments]


def _is_later(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether all moments are later by the same time, but for rounding."""
    if len(before) != len(after):
        return False
    shift = after[0] - before[0]
    return all(isclose(one + shift, other, rel_tol=SAME) for one, other in zip(before, after, strict=True))


def _count(times: int, unit: Callable[[], object], processors: Sequence[Processor], buffers: Sequence[Slots]) -> None:
    """A unit that does each time what it did before: walked once more, and counted for the others."""
    before, worked = _moments(processors, buffers), [processor.worked for processor in processors]
    unit()
    for processor, then in zip(processors, worked, strict=True):
        processor.again(times - 1, then)
    moments = _moments(processors, buffers)
    numbers = {id(moment): number for number, moment in enumerate(before)}
    steps = [_step(moment, then, numbers) for moment, then in zip(moments, before, strict=True)]
    for _ in range(times - 1):
        moments = [
            moments[step.source]
            if step.task is None
            else Moment(moment.cycles + step.cycles, moments[step.source], step.task)
            for moment, step in zip(moments, steps, strict=True)
        ]
    shown = iter(moments)
    for processor in processors:
        processor.now = next(shown)
    for buffer in buffers:
        buffer.moments = [next(shown) for _ in buffer.moments]


def _step(moment: Moment, then: Moment, numbers: Mapping[int, int]) -> _Step:
    """How a moment comes about, which was another when the unit began.

    Args:
        moment: At the end of the unit.
        then: Of the same number, at its beginning.
        numbers: Of the moments at its beginning, by their identity.
    """
    path: dict[Stage, float] = {}
    here: Moment | None = moment
    while here is not None and id(here) not in numbers:
        for stage, cycles in here.task.path.items() if here.task is not None else ():
            path[stage] = path.get(stage, 0.0) + cycles
        here = here.before
    if here is None:
        raise AssertionError("a unit that is repeated waits for a processor or buffer that it does not name")
    return _Step(numbers[id(here)], None if here is moment else task_of(path), moment.cycles - then.cycles)
