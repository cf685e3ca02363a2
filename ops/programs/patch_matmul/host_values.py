"""What every work of oneDNN's plans does to numbers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from device.numbers.formats import Array
from ops.programs.patch_matmul import values as programs
from ops.programs.patch_matmul.axis import index_of
from ops.programs.patch_matmul.host_work import PrepareBias, PrepareSticks, PrepareTaps
from ops.programs.patch_matmul.values import Exact
from ops.programs.patch_matmul.weight_formats import from_canonical, to_canonical
from ops.programs.patch_matmul.work import FillRows, PatchMatmul, PixelMatmul, SumSections


def evaluator(exact: Exact | None) -> Callable[[object, Sequence[Array | None]], Array]:
    """A function from a work and the arrays of its inputs to the array it makes (see `ops.readings.memory.run_values`).

    Args:
        exact: How the matrix unit multiplies; None for BLAS.
    """
    return partial(_evaluate, exact)


def _evaluate(exact: Exact | None, work: object, inputs: Sequence[Array | None]) -> Array:
    match work, inputs:
        case PrepareSticks(channels_last=last), [array] if array is not None:
            return array if last else np.moveaxis(array, 1, -1)
        case PrepareTaps(), [array] if array is not None:
            return prepare_taps(work, array)
        case PrepareBias(), [array] if array is not None:
            return array.astype(np.float32)
        case PatchMatmul(bias=False), [image, weights, target] if image is not None and weights is not None:
            return programs.patch_matmul(work, image, weights, None, target, exact)
        case PatchMatmul(bias=True), [image, weights, bias, target] if image is not None and weights is not None:
            return programs.patch_matmul(work, image, weights, bias, target, exact)
        case FillRows(), [*bias, target]:
            return programs.fill_rows(work, bias[0] if bias else None, target)
        case PixelMatmul(), [image, other] if image is not None and other is not None:
            return programs.pixel_matmul(work, image, other, exact)
        case SumSections(), [sums] if sums is not None:
            return programs.sum_sections(work, sums)
    raise AssertionError(f"nothing is known of {work} with inputs {[one is not None for one in inputs]}")


def prepare_taps(work: PrepareTaps, weights: Array) -> Array:
    """float32 [groups, *taps, in, out] of stored weights: a view where that is possible."""
    canonical = to_canonical(weights.astype(np.float32, copy=False), work.weights_format)
    ins, outs, *kernel = canonical.shape
    grouped = canonical.reshape(work.groups, ins // work.groups, outs, *kernel)
    index: list[Any] = [index_of(taps) for taps in work.taps]
    picked = grouped[(..., *index)]
    channels = (2, 1) if work.towards_source else (1, 2)
    return picked.transpose(0, *range(3, picked.ndim), *channels)


def weights_of(sums: Array, weights_format: str) -> Array:
    """Stored weights of matrices [groups, *taps, in, out], contiguous."""
    groups, ins, outs = sums.shape[0], sums.shape[-2], sums.shape[-1]
    kernel = sums.shape[1:-2]
    canonical = sums.transpose(0, sums.ndim - 2, sums.ndim - 1, *range(1, sums.ndim - 2))
    return np.ascontiguousarray(from_canonical(canonical.reshape(groups * ins, outs, *kernel), weights_format))


def image_of(sticks: Array, *, channels_last: bool) -> Array:
    """[N, *spatial, C] in the caller's order, contiguous."""
    return sticks if channels_last else np.ascontiguousarray(np.moveaxis(sticks, -1, 1))
