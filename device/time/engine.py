"""Timing of processors and circular buffers, block by block.

A program is walked once, in an order in which every block is written before it is read. Each processor has a clock; a
circular buffer records when each of its blocks was filled and emptied. There is no scheduler: a wait is the later of
two times. Every time stores the task that ended then and the task that it waited for, so the critical path of a program
is known without a second run.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isclose
from typing import Final, NamedTuple

from device.errors import DeviceError
from device.time.stages import Stage, StageCycles


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The work of a processor on one block."""

    cycles: float  # How long it takes
    path: Mapping[Stage, float]  # Cycles of that time by stage
    busy: Mapping[Stage, float]  # Cycles in which each stage works: more than in `path` where stages overlap


def task_of(path: Mapping[Stage, float], busy: Mapping[Stage, float] | None = None) -> Task:
    """A task whose stages follow each other, in cycles; `busy` says so where they also overlap."""
    return Task(sum(path.values()), path, path if busy is None else busy)


class Moment(NamedTuple):
    """A point in time, and why it is not earlier."""

    cycles: float  # Since the start of the program
    before: "Moment | None" = None  # The moment at which the task could begin
    task: Task | None = None


BEGIN = Moment(0.0)
_new: Callable[[tuple[float, Moment, Task]], Moment] = partial(tuple.__new__, Moment)  # in half the time of Moment()


def after(moment: Moment, task: Task) -> Moment:
    """A moment after a task that no processor of the walk does: of another core, or of the network."""
    return _new((moment[0] + task.cycles, moment, task))  # its cycles: a number is found faster than a name


def path_to(moment: Moment) -> Iterator[Task]:
    """The tasks of the critical path that leads to a moment, last first."""
    here: Moment | None = moment
    while here is not None:
        if here.task is not None:
            yield here.task
        here = here.before


def critical_cycles(moment: Moment) -> dict[Stage, float]:
    """Cycles of each stage on the critical path to a moment; together they are its cycles."""
    cycles: dict[Stage, float] = {}
    for task, times in Counter(path_to(moment)).items():
        for stage, share in task.path.items():
            cycles[stage] = cycles.get(stage, 0.0) + times * share
    return cycles


class Processor:
    """A data movement processor, or the compute threads of a core together; ``now`` is the end of its last task."""

    def __init__(self, begin: Moment = BEGIN) -> None:
        self.now = begin
        self.waited_cycles = 0.0
        self._done: dict[Task, int] = {}

    def wait(self, moment: Moment) -> None:
        """Do nothing before a moment."""
        waited_cycles = moment[0] - self.now[0]  # a number is found faster than the name "cycles"
        if waited_cycles > 0:
            self.waited_cycles += waited_cycles
            self.now = moment

    def work(self, task: Task) -> Moment:
        """Do a task; the result is when it ends."""
        self._done[task] = self._done.get(task, 0) + 1
        before = self.now
        self.now = now = _new((before[0] + task.cycles, before, task))
        return now

    @property
    def worked(self) -> tuple[float, dict[Task, int]]:
        """Cycles it waited, and how often it did each task."""
        return self.waited_cycles, dict(self._done)

    def again(self, times: int, then: tuple[float, Mapping[Task, int]]) -> None:
        """Counts the work since a moment ``times`` more times; ``then`` is the state from `worked`, `now` stays."""
        waited_cycles, done = then
        self.waited_cycles += times * (self.waited_cycles - waited_cycles)
        for task, count in self._done.items():
            self._done[task] = count + times * (count - done.get(task, 0))

    def busy_cycles(self) -> dict[Stage, float]:
        """Cycles of each stage that worked, in the order in which they first did."""
        busy: dict[Stage, float] = {}
        for task, times in self._done.items():
            for stage, cycles in task.busy.items():
                busy[stage] = busy.get(stage, 0.0) + times * cycles
        return busy


def movers(processors: int, roles: int) -> tuple[Processor, ...]:
    """The processor of each role of a program on a core; roles may share a processor."""
    result = [Processor() for _ in range(min(roles, processors))]
    return tuple(result[min(role, len(result) - 1)] for role in range(roles))


class Server(Processor):
    """A resource that serves requests in turn and never waits, such as the banks of DRAM."""

    def wait(self, moment: Moment) -> None:
        """A server does not wait: `repeat` counts on it."""
        raise AssertionError("a server waits for nobody; let it begin later, or make it a processor")


class Slots:
    """A circular buffer that holds a number of blocks.

    `reserve` and `fill` are the writer's, `front` and `empty` the reader's, each in the order of the blocks.
    """

    def __init__(self, name: str, blocks: int) -> None:
        self.name = name
        self.blocks = blocks
        self._filled: list[Moment] = []
        self._emptied: list[Moment] = []

    def reserve(self) -> Moment:
        """The time when there is room for the next block; raises DeviceError if nothing empties the buffer."""
        needed = len(self._filled) - self.blocks
        if needed < 0:
            return BEGIN
        if needed >= len(self._emptied):
            raise DeviceError(
                f"circular buffer {self.name!r} holds {self.blocks} blocks and nobody empties block {needed}: its "
                "writer waits for ever; give it more blocks or read it earlier"
            )
        return self._emptied[needed]

    def fill(self, moment: Moment) -> None:
        """The next block is complete."""
        self._filled.append(moment)

    def front(self) -> Moment:
        """The time when the next block to read is complete; raises DeviceError if nothing fills the buffer."""
        if len(self._emptied) >= len(self._filled):
            raise DeviceError(
                f"circular buffer {self.name!r} gets {len(self._filled)} blocks and its reader waits for one more; "
                "fill as many blocks as are read"
            )
        return self._filled[len(self._emptied)]

    def empty(self, moment: Moment) -> None:
        """The block in front is done with."""
        self._emptied.append(moment)

    @property
    def last_emptied(self) -> Moment:
        """When the block that was emptied last was; the beginning before the first."""
        return self._emptied[-1] if self._emptied else BEGIN

    @property
    def moments(self) -> list[Moment]:
        """The moments that can still be waited for: when the last blocks were emptied, and the present ones filled."""
        return self._emptied[-self.blocks :] + self._filled[len(self._emptied) :]

    @moments.setter
    def moments(self, moments: list[Moment]) -> None:
        """Other moments in their place, as many."""
        emptied = min(self.blocks, len(self._emptied))
        self._filled[len(self._emptied) :] = moments[emptied:]
        self._emptied[-self.blocks :] = moments[:emptied]

    @property
    def left(self) -> int:
        """Blocks that were filled and not emptied."""
        return len(self._filled) - len(self._emptied)


def check_emptied(step: str, buffers: Iterable[Slots]) -> None:
    """Raises an error if a circular buffer is not empty at the end of a program, which is a defect of its model."""
    for buffer in buffers:
        if buffer.left:
            raise DeviceError(
                f"{step}: circular buffer {buffer.name!r} still holds {buffer.left} blocks at the end of the program; "
                "its model has to empty every block that it fills"
            )


def stage_report(
    processors: Iterable[Processor], end: Moment, *, waits: Mapping[Stage, Processor]
) -> tuple[StageCycles, ...]:
    """Busy, waiting and critical cycles of every stage; ``waits`` maps a stage to the processor whose waiting counts.

    Parallel work of several processors, such as their start, counts once.
    """
    critical = critical_cycles(end)
    busy: dict[Stage, float] = {}
    for processor in processors:
        for stage, cycles in processor.busy_cycles().items():
            busy[stage] = max(busy.get(stage, 0.0), cycles)
    return tuple(
        StageCycles(
            stage,
            busy.get(stage, 0.0),
            waits[stage].waited_cycles if stage in waits else 0.0,
            critical.get(stage, 0.0),
        )
        for stage in Stage
        if stage in busy or stage in critical
    )


SAME: Final = 1e-12  # what rounding makes of equal times
FEWEST: Final = 12  # units of which it pays to find out whether they repeat themselves; results do not depend on it


class _Step(NamedTuple):
    """How a moment at the end of a unit comes about."""

    source: int  # Number of the moment at its beginning that the critical path leads to
    task: Task | None  # All tasks on that path together; None if it is that very moment
    cycles: float  # How much later it is than the moment of its own number


def repeat(times: int, unit: Callable[[], object], processors: Sequence[Processor], buffers: Sequence[Slots]) -> None:
    """Does a unit ``times`` over; ``unit`` walks through the same tasks each time, in the same order.

    ``processors`` and ``buffers`` are all that the unit works with, each once; the first processor is no server.
    """
    if times < FEWEST:
        for _ in range(times):
            unit()
        return
    servers = {number for number, processor in enumerate(processors) if isinstance(processor, Server)}
    seen = [moment.cycles for moment in _moments(processors, buffers)]
    for left in reversed(range(times)):
        unit()
        before, seen = seen, [moment.cycles for moment in _moments(processors, buffers)]
        if left > 1 and _is_later(before, seen, servers):
            _count(left, unit, processors, buffers)
            return


def _moments(processors: Iterable[Processor], buffers: Iterable[Slots]) -> list[Moment]:
    """All moments that a unit may wait for."""
    return [processor.now for processor in processors] + [moment for buffer in buffers for moment in buffer.moments]


def _is_later(before: Sequence[float], after: Sequence[float], servers: Collection[int]) -> bool:
    """Whether all moments are later by the same time, but for rounding; those of servers, by their numbers, or by less.

    Whoever waits for a server that falls behind waits less from unit to unit, and ends when it does without waiting.
    """
    if len(before) != len(after):
        return False
    shift = after[0] - before[0]
    return all(
        isclose(earlier + shift, later, rel_tol=SAME) or (number in servers and later < earlier + shift)
        for number, (earlier, later) in enumerate(zip(before, after, strict=True))
    )


def _count(times: int, unit: Callable[[], object], processors: Sequence[Processor], buffers: Sequence[Slots]) -> None:
    """Walks a steady unit once more, and counts its work for the remaining times."""
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
    """How a moment at the end of a unit follows from the moments at its beginning.

    ``then`` is the moment of the same number at the beginning; ``numbers`` are those of the moments there, by identity.
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
