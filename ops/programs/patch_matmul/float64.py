"""The patch programs' values in float64, of float64 arrays: no device gives them, and tests of derivatives need them.

Another table of meanings for the same works: plan, axes and places of results are the device's, and only the arithmetic
is not. Nothing is cut or rounded, so that a quotient of differences is a derivative. The table has these works alone;
a plan that has others cannot be read so.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.numbers.formats import Array
from device.plan import Work
from ops.frame.axis import output_phases
from ops.meaning import Meanings, ValuesOf, ValuesReading, given
from ops.programs.patch_matmul import meaning
from ops.programs.patch_matmul.gather import Margin, places
from ops.programs.patch_matmul.work import FillRows, PatchMatmul, PixelMatmul, SumSections


def _patch_matmul(work: PatchMatmul, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the image, the weights, the bias if there is one, and the result that it writes into."""
    *operands, target = inputs
    image, weights, *bias = map(given, operands)
    axes = work.patches.axes
    image = image.reshape(work.patches.batch, *(axis.input_length for axis in axes), work.patches.channels)
    result = np.empty((len(image), *work.out_shape, work.out_channels)) if target is None else target
    phases = [output_phases(axis) for axis in axes]
    margin = Margin(image, [[phase.axis for phase in several] for several in phases])
    for combination in product(*phases):
        dense = tuple(phase.axis for phase in combination)
        part = result[places(dense)]
        part[...] = bias[0] if bias else 0
        if all(axis.taps for axis in dense):
            met = weights[np.ix_(range(len(weights)), *(phase.taps for phase in combination))]
            part += _products(margin.patches(dense), met)
    return result


def _products(view: Array, weights: Array) -> Array:
    """Patches [N, *outputs, *taps, C] times weights [groups, *taps, C / groups, O / groups]: [N, *outputs, O]."""
    apart = np.split(view, len(weights), axis=-1)
    summed = weights.ndim - 2  # taps and channels
    return np.concatenate([np.tensordot(*pair, summed) for pair in zip(apart, weights, strict=True)], axis=-1)


def _pixel_matmul(work: PixelMatmul, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the image whose channels become rows and the one whose patches become columns; all is one sum."""
    image, other = map(given, inputs)
    patches = work.patches
    view = Margin(other, [[axis] for axis in patches.axes]).patches(patches.axes)
    rows, columns = (np.split(one, patches.groups, axis=-1) for one in (image, view))
    both = list(range(image.ndim - 1))  # the axes that are summed over
    sums = [np.tensordot(left, right, (both, both)) for left, right in zip(rows, columns, strict=True)]
    return np.moveaxis(np.stack(sums), 1, -2)[None]


def _filled_rows(work: FillRows, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """Inputs are the bias, if there is one, and the result that it writes into."""
    *bias, target = inputs
    result = np.empty((work.batch, *work.out_shape, work.out_channels)) if target is None else target
    result[places(work.axes)] = given(bias[0]) if bias else 0
    return result


def _added(work: SumSections, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    total: Array = given(inputs[0]).sum(axis=0)
    return total


_VALUES: Final[dict[type[Work], ValuesOf[Any]]] = {
    PatchMatmul: _patch_matmul,
    PixelMatmul: _pixel_matmul,
    FillRows: _filled_rows,
    SumSections: _added,
}
MEANINGS: Final[Meanings] = MappingProxyType(
    {one.work: replace(one, values=_VALUES.get(one.work, one.values)) for one in meaning.MEANINGS}
)
