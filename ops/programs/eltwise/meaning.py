"""What the works of the element-wise operations mean. Nobody has modeled their cycles."""

from collections.abc import Sequence
from typing import Final

from device.numbers.formats import Array
from ops.meaning import Meaning, ValuesReading, given, row
from ops.programs.eltwise.operations import Activate, AddRow, activated, added_row


def _sum(work: AddRow, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    matrix, bias = map(given, inputs)
    return added_row(work, matrix, row(bias), reading.arithmetic)


def _activated(work: Activate, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    return activated(work, given(inputs[0]), reading.arithmetic, reciprocal_table=reading.spec.compute.reciprocal_table)


MEANINGS: Final = (
    Meaning(
        work=AddRow,
        values=_sum,
        no_model="there is no model of BinaryNg; known are conversions, moves, slices and reshapes",
    ),
    Meaning(
        work=Activate,
        values=_activated,
        no_model="there is no model of Unary; known are conversions, moves, slices and reshapes",
    ),
)
