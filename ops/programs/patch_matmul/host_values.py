"""What the host does to arrays before it uploads them, and to what it reads back."""

from typing import Any

import numpy as np

from device.host.threads import side_by_side
from device.numbers.formats import Array
from ops.programs.patch_matmul.gather import copy_in_pieces
from ops.programs.patch_matmul.host_work import PrepareBias, PrepareSticks, PrepareTaps
from ops.programs.patch_matmul.weight_formats import from_canonical, to_canonical
from ops.window import index_of


def prepare_sticks(work: PrepareSticks, image: Array) -> Array:
    """[N, *spatial, C] of an image in the caller's order, as a view."""
    return image if work.channels_last else np.moveaxis(image, 1, -1)


def prepare_bias(work: PrepareBias, bias: Array) -> Array:
    """A row [O], `widened`."""
    return widened(bias).reshape(-1)


def widened(values: Array) -> Array:
    """float32; float64 stays what it is."""
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def prepare_taps(work: PrepareTaps, weights: Array) -> Array:
    """[groups, *taps, in, out] of stored weights, `widened`: a view where that is possible."""
    canonical = to_canonical(widened(weights), work.weights_format)
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
    stored = from_canonical(canonical.reshape(groups * ins, outs, *kernel), weights_format)
    made = np.empty(stored.shape, stored.dtype)
    copy_in_pieces(made, stored, side_by_side)
    return made


def image_of(sticks: Array, *, channels_last: bool) -> Array:
    """[N, *spatial, C] in the caller's order, contiguous."""
    return sticks if channels_last else np.ascontiguousarray(np.moveaxis(sticks, -1, 1))
