"""What the work of a matmul means."""

from collections.abc import Sequence
from typing import Final

from device.numbers.formats import Array
from device.time.stages import OperationCycles
from ops.meaning import CyclesReading, Ends, Meaning, ValuesReading, given, matrix, row
from ops.programs.matmul.config import MatmulWork
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.values import matmul_values


def _values(work: MatmulWork, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the rows, the weights and, if there is one, the bias."""
    rows, weights, *bias = map(given, inputs)
    added = row(bias[0]) if bias else None
    out = matmul_values(work, matrix(rows), matrix(weights), added, reading.spec, reading.arithmetic)
    return out.reshape(1, 1, *out.shape)


def _cycles(work: MatmulWork, ends: Ends, reading: CyclesReading) -> OperationCycles:
    return matmul_cycles(
        work,
        reading.spec,
        in_sharded=ends.read.memory_config.is_sharded(),
        out_sharded=ends.written.memory_config.is_sharded(),
        contention=reading.contention,
    )


MEANINGS: Final = (
    Meaning(work=MatmulWork, values=_values, cycles=_cycles, fidelity_phases=lambda work: work.fidelity_phases),
)
