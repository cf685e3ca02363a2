"""What every kind of work does to numbers: the one place where meaning is attached to the works of a plan."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.packer import unpack
from device.numbers.formats import FLOAT32, Array
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.host_work import PrepareBias, PrepareWeights
from ops.programs.conv2d.values import conv_values
from ops.programs.conv2d.weights import prepare_bias, prepare_weights
from ops.programs.conv2d.work import ConvWork
from ops.programs.eltwise.values import activated, added_row
from ops.programs.eltwise.work import Activate, AddRow
from ops.programs.halo.work import HaloWork
from ops.programs.matmul.values import matmul_values
from ops.programs.matmul.work import MatmulWork
from ops.programs.movement import values as data_movement
from ops.programs.movement.work import (
    FillPad,
    FoldWindows,
    PaddedSlice,
    PadImage,
    Relayout,
    Reshape,
    SliceWrite,
    Typecast,
)


def evaluator(spec: DeviceSpec, arithmetic: Arithmetic) -> Callable[[object, Sequence[Array | None]], Array]:
    """A function from a work and the arrays of its inputs to the array it makes.

    Args:
        spec: The device.
        arithmetic: Exact or fast.
    """
    return partial(_evaluate, spec, arithmetic)


def _evaluate(spec: DeviceSpec, arithmetic: Arithmetic, work: object, inputs: Sequence[Array | None]) -> Array:
    first = inputs[0]
    match work:
        case ConvWork() if first is not None:
            return _convolve(work, [one for one in inputs if one is not None], spec, arithmetic)
        case MatmulWork() if first is not None:
            return _multiply(work, [one for one in inputs if one is not None], spec, arithmetic)
        case AddRow() if first is not None and inputs[1] is not None:
            return added_row(work, first, _row(inputs[1]), arithmetic)
        case Activate() if first is not None:
            return activated(work, first, arithmetic)
        case HaloWork() if first is not None:
            return halo_values(work, first)
        case PrepareWeights(layout=layout) if first is not None:
            return prepare_weights(first, layout).reshape(layout.padded_shape)
        case PrepareBias(layout=layout) if first is not None:
            return prepare_bias(first, layout).reshape(layout.bias_padded_shape)
        case (
            Relayout() | Reshape() | Typecast() | FillPad() | PadImage() | FoldWindows() | PaddedSlice() | SliceWrite()
        ):
            return data_movement.result(work, inputs)
    raise AssertionError(f"nothing is known of {work} with inputs {[one is not None for one in inputs]}")


def _convolve(work: ConvWork, inputs: list[Array], spec: DeviceSpec, arithmetic: Arithmetic) -> Array:
    sticks, weights = inputs[0], inputs[1]
    bias = _row(inputs[2]) if len(inputs) > 2 else None
    out = conv_values(
        work, sticks.reshape(-1, sticks.shape[-1]), weights.reshape(-1, weights.shape[-1]), bias, spec, arithmetic
    )
    return out.reshape(1, 1, *out.shape)


def _multiply(work: MatmulWork, inputs: list[Array], spec: DeviceSpec, arithmetic: Arithmetic) -> Array:
    rows, weights = inputs[0], inputs[1]
    bias = _row(inputs[2]) if len(inputs) > 2 else None
    out = matmul_values(
        work, rows.reshape(-1, rows.shape[-1]), weights.reshape(-1, weights.shape[-1]), bias, spec, arithmetic
    )
    return out.reshape(1, 1, *out.shape)


def _row(bias: Array) -> Array:
    """The one row of a prepared bias that is no padding."""
    first: Array = bias.reshape(-1, bias.shape[-1])[0]
    return first


def halo_values(work: HaloWork, sticks: Array) -> Array:
    """The input as the convolution reads it; the frame around it is left to the convolution, which knows the zeros.

    Untilizing passes a float32 through the matrix unit's registers, which cuts it (docs/values.md, Untilizing).
    """
    if work.tiled and work.in_format == FLOAT32:
        return unpack(np.ascontiguousarray(sticks), FLOAT32, fp32_dest=work.fp32_dest)
    return sticks
