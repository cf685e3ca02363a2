"""Weights parted by output phase: the matrices of the micro-op's own order, one below the other."""

from dataclasses import dataclass

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import Array
from device.plan import Work
from ops.frame.axis import index_of
from ops.programs.conv2d.weights import WeightsLayout, prepare_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePhaseWeights(Work):
    """Raw weights become a matrix for every class of taps that meet inputs together."""

    kernel: tuple[int, int]  # (kh, kw) of the raw weight
    mirror: bool  # Whether kh and kw are flipped here
    # Taps down and across of each class, and the layout of its matrix, from the top
    parts: tuple[tuple[tuple[range, range], WeightsLayout], ...]

    @property
    def rows(self) -> dict[tuple[range, range], range]:
        """Rows of each class by its taps."""
        found, first = {}, 0
        for taps, layout in self.parts:
            found[taps] = range(first, first + layout.rows)
            first += layout.rows
        return found

    @property
    def spec(self) -> TensorSpec:
        """The prepared tensor."""
        _, first = self.parts[0]
        rows = sum(layout.rows for _, layout in self.parts)
        shape = (1, 1, first.in_channels * self.kernel[0] * self.kernel[1], first.out_channels)
        padded = (1, 1, rows, first.padded_out_channels)
        return TensorSpec(shape, first.data_format, Layout.TILE, padded_shape=padded)


def prepared_phase_weights(work: PreparePhaseWeights, weights: Array) -> Array:
    """Raw weights [C, O / groups, kh, kw] as the matrix that a device holds."""
    taps = weights[..., ::-1, ::-1] if work.mirror else weights
    made = [
        prepare_weights(taps[:, :, index_of(down)][..., index_of(across)], layout)
        for (down, across), layout in work.parts
    ]
    return np.concatenate(made).reshape(work.spec.padded_shape)
