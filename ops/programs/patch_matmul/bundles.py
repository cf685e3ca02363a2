"""Groups of few channels, multiplied several at a time as one dense matrix: on the device, and with BLAS."""

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Array

BUNDLE = 32  # channels from which it is


def bundle_count(groups: int, *channels: int) -> int:
    """Bundles of groups: as many as leave each at least a tile wide on every side.

    Args:
        channels: Channels of each side, all groups together.
    """
    for size in range(1, groups + 1):
        if groups % size == 0 and all(side // groups * size >= TILE for side in channels):
            return groups // size
    return 1


def bundle_size(groups: int, ins: int, outs: int, *, least: int = BUNDLE) -> int:
    """How many groups BLAS multiplies as one dense matrix, to have so many channels of each side if it can."""
    sizes = (size for size in range(1, groups + 1) if groups % size == 0)
    return next((size for size in sizes if size * min(ins, outs) >= least), groups)


def dense_bundles(weights: Array, size: int) -> Array:
    """[groups, taps, in, out] as [bundles, taps, size * in, size * out], zero where groups do not meet themselves."""
    if size == 1:
        return weights
    groups, taps, ins, outs = weights.shape
    dense = np.zeros((groups // size, taps, size, ins, size, outs), np.float32)
    for group in range(size):
        dense[:, :, group, :, group] = weights[group::size]
    return dense.reshape(groups // size, taps, size * ins, size * outs)
