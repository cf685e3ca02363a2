"""The patch programs' values in float64: not device values, but needed by tests of derivatives.

A second table of models for the same operations: plan, axes and result positions are those of the device; only the
arithmetic differs. Nothing is truncated or rounded, so difference quotients approximate derivatives. Other operations
have no models here.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.numbers.formats import Array
from device.plan import DeviceOp
from ops.op_model import OpModels, ValuesContext, ValuesOf, given
from ops.programs.patch_matmul import model as model
from ops.programs.patch_matmul.fast import inputs_of
from ops.programs.patch_matmul.gather import places
from ops.programs.patch_matmul.op import FillRows, PatchMatmul, PixelMatmul, SumSections
from ops.window import PaddedAxis


def _patch_matmul(op: PatchMatmul, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """Inputs are the image, the weights, the bias if any, and the result that it writes into."""
    *operands, target = inputs
    image, weights, *bias = map(given, operands)
    axes = op.patches.axes
    image = image.reshape(op.patches.batch, *(axis.input_length for axis in axes), op.patches.channels)
    products = _products(_gathered(image, axes), weights)
    return _written(op, len(image), target, products + bias[0] if bias else products)


def _filled_rows(op: FillRows, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """Inputs are the bias, if any, and the result that it writes into."""
    *bias, target = inputs
    return _written(op, op.batch, target, given(bias[0]) if bias else np.zeros(1))


def _written(op: PatchMatmul | FillRows, batch: int, target: Array | None, values: Array) -> Array:
    """The result with values at the positions of an operation."""
    result = np.empty((batch, *op.out_shape, op.out_channels)) if target is None else target
    result[places(op.axes if isinstance(op, FillRows) else op.patches.axes)] = values
    return result


def _gathered(image: Array, axes: Sequence[PaddedAxis]) -> Array:
    """Patches [N, *outputs, *kernel, C] of [N, *spatial, C], where a `PaddedAxis` places the windows; with zeros."""
    grown = np.pad(image, [(0, 0), *((0, 1) for _ in axes), (0, 0)])
    anys: list[Any] = []
    for number, axis in enumerate(axes):
        inputs, shape = inputs_of(axis), [1] * (2 * len(axes))
        shape[number], shape[len(axes) + number] = inputs.shape
        anys.append(np.where(inputs < 0, axis.input_length, inputs).reshape(shape))  # the last position is a zero
    patches: Array = grown[(slice(None), *anys)]
    return patches


def _products(view: Array, weights: Array) -> Array:
    """Patches [N, *outputs, *taps, C] times weights [groups, *taps, C / groups, O / groups]: [N, *outputs, O]."""
    apart = np.split(view, len(weights), axis=-1)
    summed = weights.ndim - 2  # taps and channels
    return np.concatenate([np.tensordot(*pair, summed) for pair in zip(apart, weights, strict=True)], axis=-1)


def _pixel_matmul(op: PixelMatmul, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """Inputs are the image whose channels become rows and the image whose patches become columns; one sum in total."""
    image, other = map(given, inputs)
    patches = op.patches
    view = _gathered(other, patches.axes)
    rows, columns = (np.split(operand, patches.groups, axis=-1) for operand in (image, view))
    both = list(range(image.ndim - 1))  # the axes that are summed over
    sums = [np.tensordot(left, right, (both, both)) for left, right in zip(rows, columns, strict=True)]
    return np.moveaxis(np.stack(sums), 1, -2)[None]


_VALUES: Final[dict[type[DeviceOp], ValuesOf[Any]]] = {
    PatchMatmul: _patch_matmul,
    PixelMatmul: _pixel_matmul,
    FillRows: _filled_rows,
    SumSections: lambda op, inputs, context: given(inputs[0]).sum(axis=0),
}
OP_MODELS: Final[OpModels] = MappingProxyType(
    {op_model.op: replace(op_model, values=_VALUES.get(op_model.op, op_model.values)) for op_model in model.OP_MODELS}
)
