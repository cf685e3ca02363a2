"""Processors and circular buffers in time."""

import pytest
from hypothesis import given, strategies as st

from device.errors import DeviceError
from device.time.engine import (
    BEGIN,
    FEWEST,
    Processor,
    Server,
    Slots,
    after,
    check_emptied,
    critical_cycles,
    movers,
    path_to,
    repeat,
    stage_report,
    task_of,
)
from device.time.stages import Stage

cycles = st.floats(min_value=1, max_value=1000)


def pipeline(read_cycles, compute_cycles, blocks, held):
    """A reader that fills blocks and a processor that computes on them."""
    reader, compute, slots = Processor(), Processor(), Slots("act", held)
    read, multiply = task_of({Stage.READER: read_cycles}), task_of({Stage.MATH: compute_cycles})
    for _ in range(blocks):
        reader.wait(slots.reserve())
        slots.fill(reader.work(read))
        compute.wait(slots.front())
        slots.empty(compute.work(multiply))
    return reader, compute


@pytest.mark.parametrize(
    ("read", "compute", "held", "expected"), [(10, 7, 1, 5 * (10 + 7)), (10, 7, 2, 5 * 10 + 7), (7, 10, 2, 7 + 5 * 10)]
)
def test_one_buffer_makes_the_stages_take_turns_and_two_hide_the_faster(read, compute, held, expected):
    assert pipeline(read, compute, 5, held=held)[1].now.cycles == expected


@given(cycles, cycles, st.integers(1, 12), st.integers(1, 4))
def test_more_buffers_never_slow(read, compute, blocks, held):
    fewer, more = (pipeline(read, compute, blocks, n)[1].now.cycles for n in (held, held + 1))
    assert more <= fewer * (1 + 1e-12)


@given(cycles, cycles, st.integers(1, 12), st.integers(1, 3))
def test_a_processor_works_or_waits_and_the_critical_path_adds_up(read, compute, blocks, held):
    processors = pipeline(read, compute, blocks, held)
    end = processors[1].now
    assert sum(critical_cycles(end).values()) == pytest.approx(end.cycles)
    for processor in processors:
        assert sum(processor.busy_cycles().values()) + processor.waited_cycles == pytest.approx(processor.now.cycles)


def test_path_names_the_tasks_last_first():
    first, second = task_of({Stage.READER: 2.0}), task_of({Stage.MATH: 3.0})
    processor = Processor()
    processor.work(first)
    assert list(path_to(processor.work(second))) == [second, first]


def test_overlapping_stages_are_busy_longer_than_the_task():
    task = task_of({Stage.MATH: 10.0}, {Stage.MATH: 10.0, Stage.PACK: 8.0})
    processor = Processor()
    processor.work(task)
    assert (task.cycles, processor.busy_cycles()) == (10.0, {Stage.MATH: 10.0, Stage.PACK: 8.0})


def test_report_has_every_stage_once_with_what_it_waited():
    reader, compute = pipeline(10, 7, 3, held=1)
    report = stage_report((reader, compute), compute.now, waits={Stage.READER: reader, Stage.MATH: compute})
    assert [(one.stage, one.busy_cycles, one.stall_cycles, one.critical_cycles) for one in report] == [
        (Stage.READER, 30, 14, 30),
        (Stage.MATH, 21, 30, 21),
    ]


def test_who_waits_for_ever_and_what_nobody_empties_is_found():
    slots, act, weights = Slots("act", 1), Slots("act", 2), Slots("weights", 2)
    slots.fill(BEGIN)
    with pytest.raises(DeviceError, match="'act' holds 1 blocks and nobody empties block 0: its writer waits for ever"):
        slots.reserve()
    with pytest.raises(DeviceError, match="'act' gets 0 blocks and its reader waits for one more"):
        act.front()
    for slots in (act, weights):
        slots.fill(BEGIN)
        slots.fill(BEGIN)
        slots.empty(BEGIN)
    act.empty(BEGIN)
    check_emptied("conv2d", (act,))
    with pytest.raises(DeviceError, match="conv2d: circular buffer 'weights' still holds 1 blocks at the end of the"):
        check_emptied("conv2d", (act, weights))


def test_what_others_do_is_on_the_path_and_keeps_no_processor_busy():
    own, other = task_of({Stage.MATH: 5.0}), task_of({Stage.NETWORK: 3.0})
    processor = Processor()
    processor.wait(after(processor.work(own), other))
    assert processor.now.cycles == 8
    assert critical_cycles(processor.now) == {Stage.MATH: 5, Stage.NETWORK: 3}
    assert (processor.busy_cycles(), processor.waited_cycles) == ({Stage.MATH: 5}, 3)


whole_cycles = st.integers(1, 40).map(float)


class Line:
    """A reader, a processor that computes and a writer, with circular buffers between them."""

    def __init__(self, held=(2, 1), taken=(10.0, 7.0, 4.0)):
        self.processors = [Processor(), Processor(), Processor()]
        self.buffers = [Slots("in", held[0]), Slots("out", held[1])]
        stages = (Stage.READER, Stage.MATH, Stage.WRITER)
        self.tasks = [task_of({stage: one}) for stage, one in zip(stages, taken, strict=True)]
        self.walked = 0

    def unit(self):
        (reader, compute, writer), (inside, outside) = self.processors[:3], self.buffers
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


@given(whole_cycles, whole_cycles, whole_cycles, st.integers(1, 3), st.integers(1, 3), st.integers(0, 60))
def test_counting_is_walking(read, multiply, write, inside, outside, times):
    facts = {"held": (inside, outside), "taken": (read, multiply, write)}
    line = Line(**facts)
    repeat(times, line.unit, line.processors, line.buffers)
    assert line.told() == walked(times, Line(**facts))


class Served(Line):
    """A line whose reader gets each block from banks, which work ahead."""

    def __init__(self, delivered, **facts):
        super().__init__(**facts)
        self.processors.append(Server())
        self.deliver = task_of({Stage.DRAM: delivered})

    def unit(self):
        reader, inside = self.processors[0], self.buffers[0]
        reader.wait(inside.reserve())
        reader.wait(self.processors[-1].work(self.deliver))
        super().unit()


@given(whole_cycles, whole_cycles, whole_cycles, whole_cycles, st.integers(1, 3), st.integers(0, 60))
def test_counting_is_walking_with_a_server_that_falls_behind(delivered, read, multiply, write, inside, times):
    facts = {"delivered": delivered, "held": (inside, 1), "taken": (read, multiply, write)}
    line = Served(**facts)
    repeat(times, line.unit, line.processors, line.buffers)
    assert line.told() == walked(times, Served(**facts))


def test_a_server_waits_for_nobody_and_may_fall_behind():
    line = Served(delivered=3.0)
    repeat(10_000, line.unit, line.processors, line.buffers)
    assert line.walked < 10
    with pytest.raises(AssertionError, match="a server waits for nobody"):
        line.processors[-1].wait(BEGIN)


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


@pytest.mark.parametrize(("processors", "shared"), [(1, (0, 0, 0)), (2, (0, 1, 1)), (3, (0, 1, 2)), (4, (0, 1, 2))])
def test_the_last_processor_does_what_is_left(processors, shared):
    result = movers(processors, 3)
    distinct = list(dict.fromkeys(result))
    assert tuple(distinct.index(one) for one in result) == shared
