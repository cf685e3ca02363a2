"""Units that are done again and again come out as if each was walked through."""

import pytest
from hypothesis import given, strategies as st

from device.time.engine import FEWEST, Processor, Slots, critical_cycles, repeat, task_of
from device.time.stages import Stage

cycles = st.integers(1, 40).map(float)


class Line:
    """A reader, a processor that computes and a writer, with circular buffers between them."""

    def __init__(self, held=(2, 1), taken=(10.0, 7.0, 4.0)):
        self.processors = [Processor(), Processor(), Processor()]
        self.buffers = [Slots("in", held[0]), Slots("out", held[1])]
        stages = (Stage.READER, Stage.MATH, Stage.WRITER)
        self.tasks = [task_of({stage: one}) for stage, one in zip(stages, taken, strict=True)]
        self.walked = 0

    def unit(self):
        (reader, compute, writer), (inside, outside) = self.processors, self.buffers
        read, multiply, write = self.tasks
        self.walked += 1
        reader.wait(inside.reserve())
        inside.fill(reader.work(read))
        compute.wait(inside.front())
        compute.wait(outside.reserve())
        compute.work(multiply)
        inside.empty(compute.now)
        outside.fill(compute.now)
        writer.wait(outside.front())
        outside.empty(writer.work(write))

    def told(self):
        return [
            (processor.now.cycles, processor.waited_cycles, processor.busy_cycles(), critical_cycles(processor.now))
            for processor in self.processors
        ] + [(buffer.left, [moment.cycles for moment in buffer.moments]) for buffer in self.buffers]


def walked(times, line):
    for _ in range(times):
        line.unit()
    return line.told()


@given(cycles, cycles, cycles, st.integers(1, 3), st.integers(1, 3), st.integers(0, 60))
def test_counting_is_walking(read, multiply, write, inside, outside, times):
    facts = {"held": (inside, outside), "taken": (read, multiply, write)}
    line = Line(**facts)
    repeat(times, line.unit, line.processors, line.buffers)
    assert line.told() == walked(times, Line(**facts))


def test_equal_units_are_walked_a_few_times():
    line = Line()
    repeat(10_000, line.unit, line.processors, line.buffers)
    assert line.walked < 10
    assert line.processors[-1].now.cycles == 10 + 10_000 * (7 + 4)  # a result is written before the next is begun
    few = Line()
    repeat(FEWEST - 1, few.unit, few.processors, few.buffers)
    assert few.walked == FEWEST - 1


def test_what_follows_goes_on_from_there():
    counted, plain = Line(), Line()
    repeat(100, counted.unit, counted.processors, counted.buffers)
    for line in (counted, plain):
        line.tasks[0] = task_of({Stage.READER: 1.0})
    assert walked(50, counted) != walked(50, plain)
    plain = Line()
    walked(100, plain)
    plain.tasks[0] = counted.tasks[0]
    assert walked(50, plain) == counted.told()


def test_units_that_never_settle_are_all_walked():
    line = Line(held=(50, 1), taken=(3.0, 7.0, 4.0))  # the reader gets ahead until its buffer is full
    repeat(40, line.unit, line.processors, line.buffers)
    assert line.walked == 40
    assert line.told() == walked(40, Line(held=(50, 1), taken=(3.0, 7.0, 4.0)))


def test_a_processor_that_is_not_named_is_a_mistake():
    line, other, slow = Line(), Processor(), task_of({Stage.DRAM: 20.0})

    def unit():
        line.processors[0].wait(other.work(slow))
        line.unit()

    with pytest.raises(AssertionError, match="that it does not name"):
        repeat(FEWEST, unit, line.processors, line.buffers)
