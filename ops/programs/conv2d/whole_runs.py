"""Runs of outputs computed at once, where the arithmetic does that: what is multiplied, and which trips follow."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from device.matrix_unit.whole_runs import RunOperands, Trips, WholeRun
from device.numbers.formats import Array, DataFormat
from ops.programs.conv2d.gather import Image, MetBlock, Reading, Run, Strip, gather, views

MOST_OF_A_ROW: Final = 1 << 20  # elements of all products of a row of outputs, which are there at once: 4 MiB


def whole_run_of(reading: Reading, made: DataFormat, elements: int) -> WholeRun | None:
    """Who computes runs at once; None if they go step by step.

    That is where a block is one product, of which nothing but bias and packer makes the output.

    Args:
        reading: The convolution.
        made: What a finished block is packed to.
        elements: Elements of the output.
    """
    work = reading.work
    if work.fidelity_phases == 3 or work.activation is not None:
        return None
    trips = Trips(
        fidelity_phases=work.fidelity_phases,
        fp32_dest=work.options.fp32_dest,
        partials=work.partials_format,
        accumulates=work.l1_accumulation,
        untilizes=work.options.untilize_out,
        made=made,
    )
    return reading.arithmetic.whole_runs(trips, len(work.k_blocks) * elements)


def suits_whole_runs(strip: Strip, operand: Array) -> bool:
    """Whether a strip meets inputs, in products that numpy would not take for those of vectors, and not too many."""
    met, columns = sum(1 for block in strip.blocks if block.taps), operand.shape[1]
    return strip.width > 1 and columns > 1 and 0 < met * strip.width * columns <= MOST_OF_A_ROW


def compute_whole(
    whole: WholeRun,
    reading: Reading,
    image: Image,
    run: Run,
    operand: Array,
    bias: Array | None,
    result: Array,
    place: Array,
) -> None:
    """All outputs of a run.

    Args:
        whole: Who computes them.
        reading: The convolution.
        image: The input.
        run: The run; it meets inputs.
        operand: The weights of all K blocks, [depths, columns].
        bias: [columns] or None.
        result: The output buffer.
        place: The outputs in it, [rows, outputs of a row, phases, channels].
    """
    met = [block for block in run.strip.blocks if block.taps]
    operands = RunOperands(
        activations=_gathered(reading, image, run, met),
        weights=operand,
        depths=[len(block.columns) for block in met],
        bias=bias,
        packs_last=bias is not None or not run.strip.blocks[-1].taps,
    )
    whole(operands, result, place)


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
