"""What the works of a convolution mean: its program, and what the host does to weights and bias before."""

from collections.abc import Sequence
from typing import Final

from device.numbers.formats import Array
from ops.meaning import Meaning, ValuesReading, cycles_of_work, given, matrix, row, values_of_first
from ops.programs.conv2d.cycles import conv_cycles
from ops.programs.conv2d.values import conv_values
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, prepare_bias, prepare_weights
from ops.programs.conv2d.work import ConvWork


def _values(work: ConvWork, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the sticks, the prepared weights and, if there is one, the prepared bias."""
    sticks, weights, *bias = map(given, inputs)
    added = row(bias[0]) if bias else None
    out = conv_values(work, matrix(sticks), matrix(weights), added, reading.spec, reading.arithmetic)
    return out.reshape(1, 1, *out.shape)


def _prepared_weights(work: PrepareWeights, weights: Array) -> Array:
    return prepare_weights(weights, work.layout).reshape(work.layout.padded_shape)


def _prepared_bias(work: PrepareBias, bias: Array) -> Array:
    return prepare_bias(bias, work.layout).reshape(work.layout.bias_padded_shape)


MEANINGS: Final = (
    Meaning(
        work=ConvWork,
        values=_values,
        cycles=cycles_of_work(conv_cycles),
        fidelity_phases=lambda work: work.fidelity_phases,
    ),
    Meaning(work=PrepareWeights, values=values_of_first(_prepared_weights)),
    Meaning(work=PrepareBias, values=values_of_first(_prepared_bias)),
)
