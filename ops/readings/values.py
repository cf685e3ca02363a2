"""Reading a plan for its values: what the numbers become, step by step, as the table of meanings says."""

from collections.abc import Mapping

import numpy as np

from device.numbers.formats import Array
from device.plan import Allocate, Free, Operation, Plan
from ops.meaning import Meanings, ValuesReading, meaning_of
from ops.meanings import MEANINGS


def run_values(
    plan: Plan, inputs: Mapping[str, Array], reading: ValuesReading, *, meanings: Meanings = MEANINGS
) -> dict[str, Array]:
    """What the numbers become.

    Args:
        plan: The plan.
        inputs: Arrays of the plan's inputs, on the host or on the device, by name.
        reading: The device and the arithmetic.
        meanings: What the plan's works mean.

    Returns:
        The arrays of the plan's results, by name, as the device stores them.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are numbers to the device, which warns of nothing
        return _run(plan, dict(inputs), reading, meanings)


def _run(plan: Plan, arrays: dict[str, Array], reading: ValuesReading, meanings: Meanings) -> dict[str, Array]:
    for step in plan.steps:
        match step:
            case Allocate(source=str(source)):
                raw, work = arrays[source], step.work
                arrays[step.tensor] = raw if work is None else meaning_of(work, meanings).values(work, [raw], reading)
            case Free(tensor=tensor):
                arrays.pop(tensor, None)
            case Operation():
                read = [arrays.get(name) for name in step.inputs]
                made = meaning_of(step.work, meanings).values(step.work, read, reading)
                arrays[step.outputs[0].tensor if step.outputs else step.inputs[-1]] = made
            case _:
                pass
    return {name: arrays[name] for name in plan.results.values()}
