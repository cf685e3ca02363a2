"""Outputs that meet pixels side by side: what the arithmetic multiplies where they lie (`device.matrix_unit`)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.host.depths import DEPTH
from device.matrix_unit.window_runs import WindowBlock, WindowOperands, WindowRun, WindowWeights, in_pairs
from device.numbers.formats import Array
from device.numbers.integers import Integers, round_up
from ops.programs.conv2d.gather import Image, MetBlock, Run, Strip, Tap


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """A strip as windows over the image."""

    blocks: tuple[WindowBlock, ...]  # The K blocks that it meets, of its first row
    taps: int  # How many pixels side by side an output meets
    # int64 [phases of the columns, depth of all blocks], the row of the prepared matrix for each product
    rows: Integers


def windows_of(strip: Strip, rows: Sequence[Integers], channels: int) -> Windows | None:
    """A strip as windows; None if some outputs meet pixels, or neighbors do, that do not lie side by side.

    Channels behind the input's are zeros, which are left out; an even number stays, to be multiplied in pairs.

    Args:
        rows: For each of its output phases of the columns, the row of the prepared matrix under each column of all K
            blocks.
    """
    met = [block for block in strip.blocks if block.taps]
    taps = len(met[0].taps) if met else 0
    if not taps or strip.across[0].axis.step != 1 or not all(_is_window(block, taps) for block in met):
        return None
    blocks, columns, end = [], [], 0
    for block in met:
        held = block.channels.stop - block.channels.start
        deep = len(block.columns) > DEPTH
        some = held if deep else min(held, max(2, round_up(channels - block.channels.start, 2)))
        blocks.append(WindowBlock(block.taps[0].row, block.taps[0].column, block.channels.start, some))
        columns.append(end + (held * np.arange(taps)[:, None] + np.arange(some)).ravel())
        end += len(block.columns)
    found = np.ascontiguousarray(np.array(rows)[:, np.concatenate(columns)])
    found.flags.writeable = False
    return Windows(tuple(blocks), taps, found)


def suits(windows: Windows, image: Image, weights: Array) -> bool:
    """Whether an image is multiplied where its pixels lie; those of one tap are gathered anyway, unless as pairs."""
    return windows.taps > 1 or in_pairs(image.pixels, weights, windows.blocks)


def compute_windows(
    compute: WindowRun,
    image: Image,
    run: Run,
    windows: Windows,
    weights: WindowWeights,
    bias: Array | None,
    result: Array,
) -> None:
    """All outputs of a run, from the image itself.

    Args:
        compute: Who computes them.
        windows: What its strip meets.
        weights: What it is multiplied by.
        bias: [columns] or None.
        result: The output buffer, with the channels of a phase that are not computed, too.
    """
    operands = WindowOperands(
        pixels=image.pixels[run.image],
        first=run.first * run.strip.down.axis.step,
        is_cut=image.is_cut,
        blocks=windows.blocks,
        taps=windows.taps,
        down=run.strip.down.axis.step,
        weights=weights,
        bias=bias,
        packs_last=bias is not None or not run.strip.blocks[-1].taps,
    )
    compute(operands, result, run.place(result[..., weights.columns]))


def _is_window(block: MetBlock, taps: int) -> bool:
    """Whether the taps of a block meet so many pixels from left to right, and are its first columns.

    They are all of them where there are so many that the sum of their products is split.
    """
    first, channels = block.taps[0], block.channels.stop - block.channels.start
    if len(block.columns) > max(DEPTH, taps * channels):
        return False
    return block.taps == tuple(Tap(first.row, first.column + n, n * channels) for n in range(taps))
