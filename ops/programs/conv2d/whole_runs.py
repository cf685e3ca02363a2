"""Runs of outputs computed at once, where the arithmetic does that: what is multiplied, and which trips follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from device.matrix_unit.whole_runs import RunOperands, Trips, WholeRun
from device.matrix_unit.window_runs import ALIKE_COLUMNS, WindowBlock, WindowOperands, WindowRun
from device.numbers.formats import Array, DataFormat
from ops.programs.conv2d.gather import Image, MetBlock, Reading, Run, Tap, gather, views

MOST_OF_A_ROW: Final = 1 << 20  # elements of all products of a row of outputs, which are there at once: 4 MiB


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Who computes runs at once.

    Attributes:
        whole: From gathered activations; None if that is not worth it.
        windows: From the image; None likewise.
    """

    whole: WholeRun | None
    windows: WindowRun | None


def at_once(reading: Reading, made: DataFormat, elements: int) -> AtOnce | None:
    """Who computes runs at once; None if they go step by step.

    That is where a block is one product, of which nothing but bias and packer (which knows ReLU) makes the output.

    Args:
        reading: The convolution.
        made: What a finished block is packed to.
        elements: Elements of the output.
    """
    work = reading.work
    relu = work.activation is not None and work.activation[0] == "relu"
    if work.fidelity_phases == 3 or (work.activation is not None and not relu):
        return None
    trips = Trips(
        fidelity_phases=work.fidelity_phases,
        fp32_dest=work.options.fp32_dest,
        partials=work.partials_format,
        accumulates=work.l1_accumulation,
        untilizes=work.options.untilize_out,
        relu=relu,
        made=made,
    )
    products = len(work.k_blocks) * elements
    arithmetic = reading.arithmetic
    return AtOnce(arithmetic.whole_runs(trips, products), arithmetic.window_runs(trips, products))


def computed_at_once(
    how: AtOnce,
    reading: Reading,
    image: Image,
    run: Run,
    operand: Array,
    bias: Array | None,
    result: Array,
    place: Array,
) -> bool:
    """All outputs of a run; whether that could be done.

    Products have to be such that numpy would not take them for those of vectors, and not too many.

    Args:
        how: Who computes them.
        reading: The convolution.
        image: The input.
        run: The run.
        operand: The weights of all K blocks, [depths, columns].
        bias: [columns] or None.
        result: The output buffer.
        place: The outputs in it, [rows, outputs of a row, phases, channels].
    """
    met, width = [block for block in run.strip.blocks if block.taps], run.strip.width * operand.shape[1]
    if run.strip.width == 1 or operand.shape[1] == 1 or not met:
        return False
    packs_last = bias is not None or not run.strip.blocks[-1].taps
    suits = reading.converts_per_pixel and operand.shape[1] % ALIKE_COLUMNS == 0
    windows = _windows(run, met) if how.windows is not None and suits else None
    if how.windows is not None and windows is not None:
        seen = WindowOperands(
            pixels=image.pixels[run.image],
            blocks=windows,
            down=run.strip.down.axis.step,
            weights=operand,
            bias=bias,
            packs_last=packs_last,
        )
        how.windows(seen, result, place)
        return True
    if how.whole is None or len(met) * width > MOST_OF_A_ROW:
        return False
    operands = RunOperands(
        activations=_gathered(reading, image, run, met),
        weights=operand,
        depths=[len(block.columns) for block in met],
        bias=bias,
        packs_last=packs_last,
    )
    how.whole(operands, result, place)
    return True


def _windows(run: Run, met: Sequence[MetBlock]) -> list[WindowBlock] | None:
    """Blocks that meet pixels side by side, as they are read; None if some meet others."""
    down, across = run.strip.down.axis, run.strip.across[0].axis
    if across.step != 1 or not all(_is_window(block) for block in met):
        return None
    return [
        WindowBlock(
            block.taps[0].row + run.first * down.step,
            block.taps[0].column,
            block.channels.start,
            block.channels.stop - block.channels.start,
            len(block.taps),
            len(block.columns),
        )
        for block in met
    ]


def _is_window(block: MetBlock) -> bool:
    """Whether the taps of a block meet pixels side by side, from left to right, and are its first columns."""
    first, channels = block.taps[0], block.channels.stop - block.channels.start
    wanted = tuple(Tap(first.row, first.column + n, n * channels) for n in range(len(block.taps)))
    return len(block.taps) > 1 and block.taps == wanted


def _gathered(reading: Reading, image: Image, run: Run, met: Sequence[MetBlock]) -> Array:
    """The activations [run.outputs, depths] of K blocks side by side: a view where they are channels of one tap.

    They are in float32, or as the image holds them.
    """
    if not (reading.converts_per_pixel and _are_one_tap(met)):
        return np.concatenate([gather(reading, image, block, run) for block in met], axis=1)
    channels = slice(met[0].channels.start, met[-1].channels.stop)
    (met_once,) = views(image, MetBlock(met[0].taps, channels, (), met[0].columns), run)
    return met_once.reshape(run.outputs, -1)


def _are_one_tap(met: Sequence[MetBlock]) -> bool:
    """Whether blocks are channels of the same tap, one after the other."""
    return all(block.is_one_tap for block in met) and all(
        one.taps == other.taps and one.channels.stop == other.channels.start for one, other in pairwise(met)
    )
