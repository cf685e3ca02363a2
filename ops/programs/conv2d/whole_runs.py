"""Runs of outputs computed at once, where the arithmetic does that: what is multiplied, and which trips follow."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from device.matrix_unit.whole_runs import RunOperands, Trips, WholeRun
from device.matrix_unit.window_runs import ALIKE_COLUMNS, WindowRun
from device.numbers.formats import Array, DataFormat
from ops.programs.conv2d.gather import Image, Reading, Run, gather, views
from ops.programs.conv2d.operands import WeightedStrip

MOST_OF_A_ROW: Final = 1 << 20  # elements of all products of a row of outputs, which are there at once: 4 MiB


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Who computes runs at once."""

    whole: WholeRun | None  # From gathered activations; None if that is not worth it
    windows: WindowRun | None  # From the image; None likewise


def at_once(reading: Reading, made: DataFormat, elements: int) -> AtOnce | None:
    """Who computes runs at once; None if they go step by step.

    That is where a block is one product, of which nothing but bias and packer (which knows ReLU) makes the output.

    Args:
        made: What a finished block is packed to.
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


def computed_whole(
    how: AtOnce,
    reading: Reading,
    image: Image,
    run: Run,
    one: WeightedStrip,
    operand: Array,
    bias: Array | None,
    result: Array,
    place: Array,
) -> bool:
    """All outputs of a run, from gathered activations; whether that could be done.

    Products have to be such that BLAS gives numpy the same bits, which multiplies more rows at once; and not too many.

    Args:
        how: Who computes them.
        operand: The weights of all K blocks, [depths, columns].
        bias: [columns] or None.
        result: The output buffer.
        place: The outputs in it, [rows, outputs of a row, phases, channels].
    """
    columns, width = operand.shape[1], run.strip.width
    alike = width > 1 and columns % ALIKE_COLUMNS == 0
    if how.whole is None or not alike or not 0 < len(one.met) * width * columns <= MOST_OF_A_ROW:
        return False
    operands = RunOperands(
        activations=_gathered(reading, image, run, one),
        weights=operand,
        depths=[len(block.columns) for block in one.met],
        bias=bias,
        packs_last=bias is not None or not run.strip.blocks[-1].taps,
    )
    how.whole(operands, result, place)
    return True


def _gathered(reading: Reading, image: Image, run: Run, one: WeightedStrip) -> Array:
    """The activations [run.outputs, depths] of K blocks side by side: a view where they are channels of one tap.

    They are in float32, or as the image holds them.
    """
    if one.as_one is None or not reading.converts_per_pixel:
        return np.concatenate([gather(reading, image, block, run) for block in one.met], axis=1)
    (seen,) = views(image, one.as_one, run)
    return seen.reshape(run.outputs, -1)
