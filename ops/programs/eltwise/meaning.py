"""What the works of the element-wise operations mean."""

from collections.abc import Sequence
from typing import Final

from device.numbers.formats import Array
from device.time.stages import OperationCycles
from ops.meaning import CyclesReading, Ends, Meaning, ValuesReading, given, row
from ops.programs.eltwise.account import eltwise_account
from ops.programs.eltwise.binary import Binary, combined
from ops.programs.eltwise.cycles import activation_cycles, add_row_cycles, binary_cycles
from ops.programs.eltwise.operations import Activate, AddRow, activated, added_row


def _sum(work: AddRow, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    matrix, bias = map(given, inputs)
    return added_row(work, matrix, row(bias), reading.arithmetic)


def _activated(work: Activate, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    return activated(work, given(inputs[0]), reading.arithmetic, reciprocal_table=reading.spec.compute.reciprocal_table)


def _sum_cycles(work: AddRow, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return add_row_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


def _activation_cycles(work: Activate, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return activation_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


def _combined(work: Binary, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    right = given(inputs[1]) if work.right_format is not None else None
    return combined(work, given(inputs[0]), right, reading.arithmetic, reading.spec.compute)


def _combined_cycles(work: Binary, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return binary_cycles(work, ends.read, ends.written, reading.spec, contention=reading.contention)


MEANINGS: Final = (
    Meaning(work=AddRow, values=_sum, cycles=_sum_cycles, account=eltwise_account),
    Meaning(work=Activate, values=_activated, cycles=_activation_cycles, account=eltwise_account),
    Meaning(work=Binary, values=_combined, cycles=_combined_cycles, account=eltwise_account),
)
