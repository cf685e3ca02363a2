"""Runs of outputs in one compiled loop, from products to what is packed: how fast values are computed where that pays.

The loops give the bits that `ops.programs.conv2d.values` computes step by step; the arithmetic says whether it has any.
"""

from typing import Final

import numpy as np

from device.matrix_unit.fast import (
    ALIKE_COLUMNS,
    FusedRuns,
    RunOperands,
    Trips,
    WindowOperands,
    WindowWeights,
    in_pairs,
)
from device.numbers.formats import Array, DataFormat
from ops.programs.conv2d.gather import GatheredInput, Image, Run, gather, views
from ops.programs.conv2d.operands import Piece, WeightedStrip, Windows

MOST_OF_A_ROW: Final = 1 << 20  # elements of all products of a row of outputs, which exist at the same time: 4 MiB


def fused_runs(context: GatheredInput, made: DataFormat, elements: int) -> FusedRuns | None:
    """The arithmetic's loops for a convolution of so many outputs; None if runs go step by step.

    A loop makes one product of a block, and nothing but bias and packer (which has a ReLU) makes an output of the sums.

    Args:
        made: What a finished block is packed to.
    """
    op = context.op
    relu = op.activation is not None and op.activation[0] == "relu"
    if op.fidelity_phases == 3 or (op.activation is not None and not relu):
        return None
    trips = Trips(
        fidelity_phases=op.fidelity_phases,
        fp32_dest=op.options.fp32_dest,
        partials=op.partials_format,
        accumulates=op.l1_accumulation,
        untilizes=op.options.untilize_out,
        relu=relu,
        made=made,
    )
    return context.arithmetic.fused_runs(trips, len(op.k_blocks) * elements)


def windows_for(
    fused: FusedRuns | None, context: GatheredInput, strip: WeightedStrip, image: Image, weights: Array
) -> Windows | None:
    """The windows over the image that a strip is computed from; None if its activations are gathered."""
    has_loop = fused is not None and fused.windows is not None and context.converts_per_pixel
    return strip.windows if has_loop and strip.windows and suits(strip.windows, image, weights) else None


def suits(windows: Windows, image: Image, weights: Array) -> bool:
    """Whether an image is multiplied where its pixels lie; those of one tap are gathered anyway, unless as pairs."""
    return windows.taps > 1 or in_pairs(image.pixels, weights, windows.blocks)


def computes(
    fused: FusedRuns,
    context: GatheredInput,
    image: Image,
    piece: Piece,
    weights: Array,
    operand: Array | None,
    bias: Array | None,
    result: Array,
) -> bool:
    """Whether a loop can compute a piece, which it then has done.

    Gathered products have to be such that BLAS gives numpy the same bits, which multiplies more rows at once; and not
    too many.

    Args:
        weights: The prepared weight matrix.
        operand: The weights of all K blocks, [depths, columns]; None of windows.
        bias: [columns] or None.
        result: The output buffer.
    """
    run, strip = piece.run, piece.strip
    place = run.place(result[..., piece.channels])
    if operand is None:
        assert piece.windows is not None
        assert fused.windows is not None
        stride = run.strip.down.axis.stride
        windows = WindowOperands(
            pixels=image.pixels[run.image],
            first=run.first * stride,
            is_cut=image.is_cut,
            blocks=piece.windows.blocks,
            taps=piece.windows.taps,
            down=stride,
            weights=WindowWeights(matrix=weights, rows=piece.windows.rows, columns=piece.channels),
            bias=bias,
            packs_last=_packs_last(run, bias),
        )
        fused.windows(windows, result, place)
        return True
    columns, width = operand.shape[1], run.strip.width
    alike = width > 1 and columns % ALIKE_COLUMNS == 0
    if fused.gathered is None or not alike or not 0 < len(strip.met) * width * columns <= MOST_OF_A_ROW:
        return False
    operands = RunOperands(
        activations=_gathered(context, image, run, strip),
        weights=operand,
        depths=[len(block.columns) for block in strip.met],
        bias=bias,
        packs_last=_packs_last(run, bias),
    )
    fused.gathered(operands, result, place)
    return True


def _packs_last(run: Run, bias: Array | None) -> bool:
    """Whether the last K block is packed before the end: there is a bias to add, or the block meets no input."""
    return bias is not None or not run.strip.blocks[-1].taps


def _gathered(context: GatheredInput, image: Image, run: Run, strip: WeightedStrip) -> Array:
    """The activations [run.outputs, depths] of K blocks side by side: a view where they are channels of one tap.

    They are in float32, or as the image holds them.
    """
    if strip.as_one is None or not context.converts_per_pixel:
        return np.concatenate([gather(context, image, block, run) for block in strip.met], axis=1)
    (seen,) = views(image, strip.as_one, run)
    return seen.reshape(run.outputs, -1)
