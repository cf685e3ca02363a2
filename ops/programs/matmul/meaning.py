"""What the works of a matmul mean."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.numbers.formats import Array
from device.time.stages import OperationCycles
from ops.meaning import CyclesReading, Ends, Meaning, ValuesReading, given, matrix, row
from ops.programs.matmul.account import matmul_account, transpose_account
from ops.programs.matmul.config import MatmulWork
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.dealing import Place, Places
from ops.programs.matmul.transpose import Transpose, transpose_cycles, transposed
from ops.programs.matmul.values import matmul_values


def _values(work: MatmulWork, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the rows, the weights and, if there is one, the bias."""
    rows, weights, *bias = map(given, inputs)
    problem = work.problem
    added = row(bias[0]) if bias else None
    if problem.transpose_first:
        rows = transposed(problem.in_format, rows, reading.arithmetic)
    if problem.transpose_second:
        weights = np.swapaxes(weights, -1, -2)

    def product(first: Array, second: Array) -> Array:
        factor = matrix(first)
        if work.out_rows is not None and work.out_rows > len(factor):
            factor = np.pad(factor, ((0, work.out_rows - len(factor)), (0, 0)))
        return matmul_values(work, factor, matrix(second), added, reading.spec, reading.arithmetic)

    if problem.batches == 1 or not problem.second_batched:
        out = product(rows, weights)  # rows do not know of each other
        return out.reshape(1, 1, *out.shape)
    count = problem.batches if problem.first_batched else 1
    firsts = rows.reshape(count, *rows.shape[-2:])
    seconds = weights.reshape(-1, *weights.shape[-2:])
    return np.stack([product(firsts[index % count], second) for index, second in enumerate(seconds)])


def _place(spec: TensorSpec) -> Place:
    if spec.memory_config.is_sharded():
        return Place.OWN
    return Place.DRAM if spec.memory_config.buffer_type is BufferType.DRAM else Place.L1


def _cycles(work: MatmulWork, ends: Ends, reading: CyclesReading) -> OperationCycles:
    places = Places(first=_place(ends.read), output=_place(ends.written))
    return matmul_cycles(work, reading.spec, places, contention=reading.contention)


def _turned(work: Transpose, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    return transposed(work.data_format, given(inputs[0]), reading.arithmetic)


def _turned_cycles(work: Transpose, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return transpose_cycles(ends.read, ends.written, reading.spec, contention=reading.contention)


MEANINGS: Final = (
    Meaning(
        work=MatmulWork,
        values=_values,
        cycles=_cycles,
        fidelity_phases=lambda work: work.fidelity_phases,
        account=matmul_account,
    ),
    Meaning(
        work=Transpose,
        values=_turned,
        cycles=_turned_cycles,
        account=transpose_account,
    ),
)
