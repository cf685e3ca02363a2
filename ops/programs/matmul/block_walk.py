"""The walk of a matmul program through its blocks: who reads, multiplies and writes, and who waits for whom.

Two data movement processors and the compute threads work on each core. For every K block the first processor brings a
block of the first operand and the second one a block of the second, each into a circular buffer of two blocks; the
compute threads multiply them. A finished output block is written by the second processor. The readers of different
cores fall out of step, so that the banks of DRAM have something to deliver at any time: they are one more processor
that waits for nobody, and a block is there when the banks have delivered it together with all blocks before it.
"""

from dataclasses import dataclass
from math import isclose

from device.time.data_movement import movers
from device.time.engine import Moment, Processor, Slots, Task, check_emptied, stage_report, task_of
from device.time.stages import Stage, StageCycles
from ops.programs.matmul.interleaved import BUFFERING

SAME = 1e-12  # what rounding makes of equal moments


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulSteps:
    """The steps of one core; None for a step that the program does not have."""

    out_blocks: int  # Output blocks of the core
    k_blocks: int
    start: Task  # From the start of the program until a processor begins
    first: Task | None  # A block of the first operand is brought, and sent to all cores that need it
    second: Task | None  # A block of the second operand is
    multiply: Task  # The first K block is multiplied
    multiply_next: Task | None = None  # Another one is; None for the same
    multiply_last: Task | None = None  # The last of several is; None for the same
    finish: Task | None = None  # A finished output block is made ready to be written
    write: Task | None = None
    first_dram: Task | None = None  # The banks deliver what all cores need of the first operand for a K block
    second_dram: Task | None = None  # They deliver the second operand
    write_dram: Task | None = None  # They take an output block of every core
    parts: int = 1  # Parts in which an output block is finished, each written while the next is on its way
    processors: int = 2  # Data movement processors of a core

    def multiply_of(self, k_block: int) -> Task:
        """How a K block is multiplied, of those of an output block."""
        if k_block == 0:
            return self.multiply
        last = self.multiply_last if k_block == self.k_blocks - 1 else None
        return last or self.multiply_next or self.multiply


@dataclass(frozen=True, slots=True)
class MatmulTiming:
    """The processors of a core, after the program."""

    first: Processor  # Brings the first operand
    second: Processor  # Brings the second operand
    writer: Processor  # Writes the output: the second one, unless there is a third
    compute: Processor
    dram: Processor  # The banks of all cores

    @property
    def cycles(self) -> float:
        """Cycles of the program."""
        return self._last.now.cycles

    @property
    def stages(self) -> tuple[StageCycles, ...]:
        """What every stage did."""
        return stage_report(
            (self.first, self.second, self.writer, self.compute, self.dram),
            self._last.now,
            waits={Stage.READER: self.first, Stage.WEIGHT_READER: self.second, Stage.MATH: self.compute},
        )

    @property
    def _last(self) -> Processor:
        return max(self.compute, self.writer, self.second, key=lambda processor: processor.now.cycles)


def walk_blocks(step: str, steps: MatmulSteps) -> MatmulTiming:
    """Run the processors of one core through the program.

    Args:
        step: The program, for messages.
    """
    first, second, writer = movers(steps.processors, 3)
    compute, dram = Processor(), Processor()
    for processor in dict.fromkeys((first, second, writer, compute)):
        processor.work(steps.start)
    dram.wait(compute.now)
    in0, in1, out = Slots("in0", BUFFERING), Slots("in1", BUFFERING), Slots("out", 1)
    pace = _slowest(steps)
    write, write_dram = _part(steps.write, steps.parts), _part(steps.write_dram, steps.parts)
    for _ in range(steps.out_blocks):
        compute.wait(out.reserve())
        ready: list[Moment] = []
        left = steps.k_blocks
        while left:
            before = [processor.now.cycles + pace.cycles for processor in (first, second, compute)]
            first.wait(in0.reserve())
            _move(first, steps.first, dram, steps.first_dram)
            in0.fill(first.now)
            second.wait(in1.reserve())
            _move(second, steps.second, dram, steps.second_dram)
            in1.fill(second.now)
            compute.wait(in0.front())
            compute.wait(in1.front())
            ready = _work(compute, steps.multiply_of(steps.k_blocks - left), steps.parts if left == 1 else 1)
            in0.empty(compute.now)
            in1.empty(compute.now)
            left -= 1
            after = [processor.now.cycles for processor in (first, second, compute)]
            alike = left - 1  # the last one is done in parts
            steady = first is not second and all(map(_is_same, before, after))
            if alike > 0 and steps.k_blocks - left > BUFFERING and steady:
                # All wait for the slowest, and will do so block after block.
                for processor, task in ((first, steps.first), (second, steps.second), (compute, steps.multiply_of(1))):
                    processor.go_on(alike, task, pace)
                for task in (steps.first_dram, steps.second_dram):
                    if task is not None:
                        dram.go_on(alike, task, task)
                in0.go_on(alike, pace)
                in1.go_on(alike, pace)
                left -= alike
        if steps.finish is not None:
            ready = _work(compute, steps.finish, steps.parts)
        out.fill(compute.now)
        if steps.write is not None:
            for moment in ready:
                writer.wait(moment)
                _move(writer, write, dram, write_dram)
        out.empty(compute.now if steps.write is None else writer.now)
    check_emptied(step, (in0, in1, out))
    return MatmulTiming(first, second, writer, compute, dram)


def _part(task: Task | None, parts: int) -> Task | None:
    """One of the equal parts of a task."""
    if task is None or parts == 1:
        return task
    path = {stage: cycles / parts for stage, cycles in task.path.items()}
    return task_of(path, {stage: cycles / parts for stage, cycles in task.busy.items()})


def _work(processor: Processor, task: Task, parts: int) -> list[Moment]:
    """A processor does a task in parts; the result is when each of them is done."""
    part = _part(task, parts)
    return [] if part is None else [processor.work(part) for _ in range(parts)]


def _slowest(steps: MatmulSteps) -> Task:
    """What decides how fast K blocks follow each other, once all processors have begun."""
    dram = [task for task in (steps.first_dram, steps.second_dram) if task is not None]
    shared = task_of({Stage.DRAM: sum(task.cycles for task in dram)})
    own = [task for task in (steps.multiply_of(1), steps.second, steps.first) if task is not None]
    return max(*own, shared, key=lambda task: task.cycles)


def _is_same(cycles: float, others: float) -> bool:
    """Whether two moments are one, but for rounding."""
    return isclose(cycles, others, rel_tol=SAME)


def _move(processor: Processor, task: Task | None, dram: Processor, share: Task | None) -> None:
    """A processor moves a block, and is not done before the banks are."""
    if task is not None:
        processor.work(task)
    if share is not None:
        processor.wait(dram.work(share))
