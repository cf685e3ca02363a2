"""Whether weights and bias that were prepared for one use serve another (docs/planning.md, Weights).

No case is told from another by name: the matrix that a use reads must be the matrix that it would have prepared itself,
row by row, as far as it reads.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import Integers
from device.plan import Work
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout


@dataclass(frozen=True, slots=True)
class AsWanted(Work):
    """Prepared as whoever reads it wants it: the record of a tensor that was only described."""


def misfit(made: Work | None, spec: TensorSpec, wanted: PrepareWeights | PrepareBias) -> str | None:
    """Why a tensor on the device is not what its reader takes it for, with both sides; None if it is.

    Args:
        made: What prepared it, as it remembers; None for a tensor that nothing prepared.
        wanted: What would have prepared it for its reader.
    """
    if isinstance(made, AsWanted):
        return None
    layout = wanted.layout
    if isinstance(wanted, PrepareBias):
        if made is None:
            return None if spec.shape == layout.bias_logical_shape else f"it was not prepared, {_shape(spec)}"
        if isinstance(made, PrepareBias) and made.layout.out_channels == layout.out_channels:
            return None  # columns behind them are nobody's
        return f"prepared {_bias(made)}, used {_bias(wanted)}"
    if made is None:
        plain = spec.shape == layout.logical_shape and _is_plain(row_order(layout))
        return None if plain else f"it was not prepared, {_shape(spec)}, used for {described(layout)}"
    if not isinstance(made, PrepareWeights):
        return f"prepared {_bias(made)}, used as weights for {described(layout)}"
    if _same_kernel(made.layout, layout) and _same_rows(made.layout, layout):
        return None
    return f"prepared for {described(made.layout)}, used for {described(layout)}"


def described(layout: WeightsLayout) -> str:
    """What of a layout decides whether weights fit, as text."""
    function = "conv2d" if layout.out_first else "conv_transpose2d"
    kernel = layout.raw_kernel or layout.kernel
    groups = "" if layout.groups == 1 else f" in {layout.groups} groups"
    scheme = "a plain matmul" if layout.scheme is TensorMemoryLayout.INTERLEAVED else layout.scheme.name
    parts = "" if layout.shards == 1 else f" on {layout.shards} cores of {layout.shard_channels} channels"
    channels = layout.raw_shape[1 if layout.out_first else 0] * (layout.groups if layout.out_first else 1)
    order = " with full_inner_dim" if layout.full_inner_dim else ""
    return (
        f"{function} {channels} -> {layout.out_channels} channels{groups}, kernel {kernel}, {scheme}{parts}{order} "
        f"[{layout.rows} x {layout.padded_out_channels}]"
    )


def row_order(layout: WeightsLayout) -> Integers:
    """The kernel tap and input channel, tap * channels + channel, of each row of the matrix; -1 for a row of zeros.

    Taps that were folded into channels count as the taps of the raw kernel that they are.
    """
    order = np.full(layout.rows, -1, np.int64)
    rows, columns = layout.kernel
    channels = np.arange(layout.shard_channels)
    for shard in range(layout.shards):
        real = shard * layout.shard_channels + channels
        for tap in range(rows * columns):
            start = shard * layout.shard_rows + tap // columns * layout.kernel_row_rows
            start += tap % columns * layout.shard_channels
            order[start : start + layout.shard_channels] = _raw_rows(layout, divmod(tap, columns), real)
    return order


def _raw_rows(layout: WeightsLayout, tap: tuple[int, int], held: Integers) -> Integers:
    """What some input channels of a tap are in the raw weight; -1 for none."""
    channels = layout.in_channels // prod(layout.folded)
    position, channel = np.divmod(held, channels)
    row = tap[0] * layout.folded[0] + position // layout.folded[1]
    column = tap[1] * layout.folded[1] + position % layout.folded[1]
    height, width = layout.raw_kernel or layout.kernel
    there = (held < layout.in_channels) & (row < height) & (column < width)
    return np.where(there, (row * width + column) * channels + channel, -1)


def _same_kernel(made: WeightsLayout, wanted: WeightsLayout) -> bool:
    """Whether both lay out raw weights of the same meaning; mirroring was settled when they were prepared."""
    return (made.raw_shape, made.groups, made.out_first) == (wanted.raw_shape, wanted.groups, wanted.out_first)


def _same_rows(made: WeightsLayout, wanted: WeightsLayout) -> bool:
    held, read = row_order(made), row_order(wanted)
    return (
        made.padded_out_channels == wanted.padded_out_channels
        and len(held) >= len(read)
        and np.array_equal(held[: len(read)], read)
    )


def _is_plain(order: Integers) -> bool:
    """Whether the rows are taps and channels in order, and then zeros that fill the last tile."""
    held = int((order >= 0).sum())
    return len(order) - held < TILE and np.array_equal(order[:held], np.arange(held))


def _bias(work: Work) -> str:
    if not isinstance(work, PrepareBias):
        return "as weights" if isinstance(work, PrepareWeights) else "for another program"
    return f"as a bias of {work.layout.out_channels} channels in {work.layout.padded_out_channels} columns"


def _shape(spec: TensorSpec) -> str:
    return f"its shape is {list(spec.shape)}"
