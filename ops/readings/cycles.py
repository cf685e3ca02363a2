"""The third reading of a plan: what every device operation takes, one after the other.

What is in it: the kernels of every device operation, from the first core's start to the last core's end. What is not:
the preparation of tensors on the host, transfers between host and device, and the dispatch between operations.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from device.events import Event, OperationBegin
from device.plan import MOVE, Operation, Plan, Refuse, Relocate, Work
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.meaning import (
    NOTHING_TOLD,
    Account,
    CyclesReading,
    Ends,
    Meaning,
    Meanings,
    NoModelError,
    meaning_of,
)
from ops.meanings import MEANINGS


@dataclass(frozen=True, slots=True)
class TimedOperation:
    """A device operation of a plan and its cycles."""

    name: str  # As a graph capture shows it
    cycles: OperationCycles | None  # What it takes; None where there is no model of it
    reason: str = ""  # Why there is none; empty if there is
    fidelity_phases: int = 0  # Fidelity phases of its tile products, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    account: Account = NOTHING_TOLD  # What its program tells of it


@dataclass(frozen=True, slots=True)
class PlanCycles:
    """A plan's device operations in time."""

    operations: tuple[TimedOperation, ...]
    clock_hz: int

    @property
    def cycles(self) -> float:
        """All operations that have a model, one after the other."""
        return sum(one.cycles.cycles for one in self.operations if one.cycles is not None)

    @property
    def untimed(self) -> tuple[TimedOperation, ...]:
        """Operations that are missing in `cycles`."""
        return tuple(one for one in self.operations if one.cycles is None)


def run_cycles(
    plan: Plan,
    spec: DeviceSpec,
    *,
    ran: Iterable[int] | None = None,
    contention: bool = True,
    meanings: Meanings = MEANINGS,
) -> PlanCycles:
    """What the device operations of a plan take.

    Equal programs (slices often are) are timed once.

    Args:
        ran: Steps that ran, as of `operations_of`.
        contention: Whether cores wait for each other at links and banks.
        meanings: What the plan's works mean.
    """
    reading = CyclesReading(spec=spec, contention=contention)
    timed: list[TimedOperation] = []
    known: dict[object, TimedOperation] = {}
    steps = list(operations_of(plan, ran))
    times = Counter(step.name for step in steps)
    for step in steps:
        ends = _ends(step, plan)
        if times[step.name] == 1:  # no other can be equal
            timed.append(timed_operation(step.name, step.work, ends, reading, meanings))
            continue
        same = (step.name, step.work, ends)
        if same not in known:
            known[same] = timed_operation(step.name, step.work, ends, reading, meanings)
        timed.append(known[same])
    return PlanCycles(tuple(timed), spec.clock_hz)


def timed_operation(
    name: str, work: Work | None, ends: Ends, reading: CyclesReading, meanings: Meanings = MEANINGS
) -> TimedOperation:
    """One operation: without cycles where there is no model, and only there.

    Args:
        name: As a graph capture shows it.
        work: What it computes.
        ends: The tensors at its ends.
        reading: Which machine, and how it is read.
        meanings: What the work means.
    """
    meaning = meaning_of(work, meanings)
    phases, account = meaning.fidelity_phases(work), meaning.account(work, ends, reading.spec)
    try:
        return TimedOperation(name, _cycles(meaning, work, ends, reading), "", phases, account)
    except NoModelError as error:
        return TimedOperation(name, None, str(error), phases, account)


def operations_of(plan: Plan, ran: Iterable[int] | None = None) -> Iterator[Operation]:
    """The device operations of a plan in order, a tensor that is to be relocated as the move that it may need.

    Args:
        ran: Indices of the steps that ran, in order, as of `steps_that_ran`: a tensor may have stayed where it was, as
            only the memory reading knows. None: it counts as moved.
    """
    steps = plan.steps if ran is None else (plan.steps[index] for index in ran)
    for step in steps:
        if isinstance(step, Operation):
            yield step
        elif isinstance(step, Relocate):
            yield Operation(
                name=MOVE,
                inputs=(step.tensor,),
                circular_buffers=step.circular_buffers,
                work=step.work,
                key=(MOVE, step.buffer),
            )
        elif isinstance(step, Refuse):
            raise step.error(step.text)


def steps_that_ran(events: Iterable[Event]) -> tuple[int, ...]:
    """Indices of a plan's steps whose device operations ran, in order, by the events of its memory reading."""
    begun = (event.step for event in events if isinstance(event, OperationBegin))
    return tuple(step for step in begun if step is not None)


def _ends(step: Operation, plan: Plan) -> Ends:
    """The tensor an operation reads first and the one that it writes, which stands for both if it reads none."""
    written = step.outputs[0].tensor if step.outputs else step.inputs[-1]
    read = step.inputs[0] if step.inputs else written
    return Ends(read=plan.tensors[read], written=plan.tensors[written])


def _cycles(meaning: Meaning[Any], work: Work | None, ends: Ends, reading: CyclesReading) -> OperationCycles:
    """What a work takes.

    Raises:
        NoModelError: There is no model of it.
    """
    if meaning.cycles is None:
        raise NoModelError(meaning.no_model)
    return meaning.cycles(work, ends, reading)
