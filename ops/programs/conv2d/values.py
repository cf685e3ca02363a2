"""The values of a conv2d program: K block by K block in the plan's order.

The arithmetic (`arithmetic`) multiplies and rounds a block: exactly as the device does, or fast in floats. Where that
pays, one compiled loop computes a run of outputs from the image to what is packed, with the same bits.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from typing import Final, NamedTuple

import numpy as np

from device.host.threads import Shared
from device.matrix_unit.arithmetic import FAST, RUN_ELEMENTS, arithmetic_of
from device.matrix_unit.fused import EQUAL_SUM_COLUMNS, FusedLoop, KLoop, MetPixels, RunOperands, fused_loop
from device.numbers.formats import Array, DataFormat, div_up, round_up, write_exactly
from device.numbers.rounding import widen_rows
from ops.op_model import ValuesContext, given, matrix, row
from ops.programs.conv2d.gather import (
    HALF,
    GatheredInput,
    Image,
    Run,
    Strip,
    gather,
    met_pixels,
    prepare_image,
    runs,
    strips,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.k_blocks import finish, sum_blocks
from ops.window import PaddedAxis, PaddedInput, frame_sources

OPERAND_ELEMENTS: Final = 1 << 18  # of weights that are worth making an operand of at a time
LEAST_COLUMNS: Final = 192  # of an operand, since its activations are gathered for each again
IN_TURN: Final = 2  # strips whose pieces are computed in turn, so that threads do not wait for each other's operands
PART_COLUMNS: Final = 256  # of a product, so that its weights stay in the cache of a core


class Piece(NamedTuple):
    """Outputs that are computed together."""

    run: Run  # Rows of a strip
    channels: slice
    operands: Shared[list[Array]]  # The weights of all K blocks for these channels and for others
    part: int  # Which of the operands is for these channels


def convolved(op: Conv2dOp, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The output [1, 1, N*OH*OW, O] of a conv2d program, in storage of the output format.

    The inputs are sticks [..., C] in storage of the halo's format or of the input's, the prepared weights
    [..., rows, O_pad] and, if there is one, the prepared bias [..., O_pad].
    """
    sticks, weights, *biases = map(given, inputs)
    sticks, weights, bias = matrix(sticks), matrix(weights), row(biases[0]) if biases else None
    if op.problem.frame.replicate or op.problem.frame.cuts_inputs:
        op, sticks = _written_out(op, sticks)
    frame, out = op.problem.frame, op.problem.out_format
    result = np.empty((frame.batch, frame.rows.outputs, frame.columns.outputs, op.problem.out_channels), out.storage)
    conv = GatheredInput(op, arithmetic_of(context.arithmetic, sticks, weights, bias), context.spec)
    loop = loop_for(conv, out, result.size)
    convolve_into(result, conv, prepare_image(conv, sticks, cut_later=loop is not None), weights, bias, out, loop)
    return result.reshape(1, 1, -1, op.problem.out_channels)


def _written_out(op: Conv2dOp, sticks: Array) -> tuple[Conv2dOp, Array]:
    """The same convolution over a frame written out in full, if the frame is more than an image amid zeros."""
    frame = op.problem.frame
    sources = frame_sources(frame, 0, frame.sticks)
    filled = np.where((sources >= 0)[:, None], sticks[np.maximum(sources, 0)], sticks.dtype.type(0))
    rows, columns = (
        PaddedAxis(
            input_length=axis.length, before=0, after=0, kernel=axis.kernel, dilation=axis.dilation, stride=axis.stride
        )
        for axis in (frame.rows, frame.columns)
    )
    return op.with_problem(frame=PaddedInput(batch=frame.batch, rows=rows, columns=columns)), filled


def convolve_into(
    result: Array,
    context: GatheredInput,
    image: Image,
    weights: Array,
    bias: Array | None,
    out_format: DataFormat,
    loop: FusedLoop | None,
) -> None:
    """Compute all outputs of a frame that is its image with zeros around it and between, each in its place.

    Args:
        result: [N, rows, columns, channels] in storage of ``out_format``: O channels, or as many as fill the last group
            of a block float. The axes of the frame say which elements of it are its outputs.
        context: The convolution and its arithmetic.
        image: The input, with zeros as far as any window reaches.
        weights: The prepared weight matrix.
        bias: [O_pad] or None; shorter, it was prepared for fewer columns and has zeros behind it.
        out_format: Format that a finished block is packed to.
        loop: The compiled loop that computes runs of outputs; without it runs go step by step.
    """
    op, arithmetic, mode, problem = context.op, context.arithmetic, context.mode, context.op.problem
    width = round_up(problem.out_channels, HALF if problem.out_format.is_block else 1)
    bias_row: Array | None = None
    if bias is not None:
        filled = np.zeros(width, np.float32)
        filled[: len(bias)] = bias[:width]
        bias_row = _unpacked(context, filled)
    all_strips = strips(op.k_blocks, problem.frame.rows, problem.frame.columns, (image.top, image.left))

    def compute(piece: Piece) -> None:
        run, part = piece.run, piece.channels
        added = None if bias_row is None else np.concatenate([bias_row[part]] * len(run.strip.across))
        operand, place = piece.operands.taken()[piece.part], run.place(result[..., part])
        if loop is not None and computes(loop, image, run, operand, added, result, place):
            return
        ends = pairwise(run.strip.ends)
        products = (
            (gather(context, image, block, run), operand[first:end], block.half_counts) if block.taps else None
            for block, (first, end) in zip(run.strip.blocks, ends, strict=True)
        )
        dst = sum_blocks(
            products,
            len(run.strip.blocks),
            arithmetic,
            mode,
            op.partials_format,
            accumulates=op.l1_accumulation,
            has_bias=bias is not None,
        )
        if dst is None:
            dst = np.zeros((run.outputs, operand.shape[1]), np.float32)
        # A ROW_MAJOR output makes one more trip through partials and Dst
        trip = op.partials_format if op.options.untilize_out else None
        values = finish(
            dst, added, op.activation, out_format, arithmetic, context.spec, fp32_dest=mode.fp32_dest, trip=trip
        ).reshape(*place.shape[:-1], -1)
        write_exactly(values[..., : place.shape[-1]], place)

    by_strip = [_pieces(context, strip, weights, width) for strip in all_strips]
    locked = [zip_longest(*by_strip[n : n + IN_TURN]) for n in range(0, len(by_strip), IN_TURN)]
    pieces = [piece for turns in locked for turn in turns for piece in turn if piece is not None]
    arithmetic.each(compute, pieces)


def _pieces(context: GatheredInput, strip: Strip, weights: Array, end: int) -> Iterator[Piece]:
    """The outputs of a strip in runs of rows and parts of the channels; some pieces share their weights."""
    phases, masks = len(strip.across), context.arithmetic.operand_masks(context.mode)[1]
    columns = max(LEAST_COLUMNS, OPERAND_ELEMENTS // max(1, strip.ends[-1]))
    step, width = (round_up(div_up(count, phases), HALF) for count in (columns, min(columns, PART_COLUMNS)))

    def operands(together: slice) -> list[Array]:
        """The weights of all K blocks in parts of `width` channels, [columns of the blocks, phases * channels].

        They are zero where there is no weight row: a column has none, or the weights were prepared for another use.
        """
        return [_unpacked(context, part) for part in widen_rows(weights, together, width, strip.rows, masks)]

    for first in range(0, end, step):
        together = slice(first, min(first + step, end))
        parts = [slice(n, min(n + width, together.stop)) for n in range(first, together.stop, width)]
        outputs = RUN_ELEMENTS // (phases * min(width, together.stop - first))
        several = list(runs(context.op.problem.frame.batch, strip, outputs))
        shared = Shared(partial(operands, together), uses=len(several) * len(parts))
        yield from (Piece(run, channels, shared, part) for part, channels in enumerate(parts) for run in several)


def _unpacked(context: GatheredInput, values: Array) -> Array:
    """Weights or bias, float32, as the matrix unit reads them."""
    op = context.op
    return context.arithmetic.unpack(values, op.problem.weight_format, fp32_dest=op.options.fp32_dest)


def loop_for(context: GatheredInput, out_format: DataFormat, elements: int) -> FusedLoop | None:
    """The compiled loop for a convolution of `elements` outputs, packed to `out_format`; None if runs go step by step.

    A loop makes one product of a block, and only the bias and the packer (with its ReLU) turn the sums into outputs.
    """
    op = context.op
    relu = op.activation is not None and op.activation[0] == "relu"
    one_product = op.fidelity_phases != 3 and (op.activation is None or relu)
    if context.arithmetic is not FAST or not one_product or not context.converts_per_pixel:
        return None
    k_loop = KLoop(
        fidelity_phases=op.fidelity_phases,
        fp32_dest=op.options.fp32_dest,
        partials=op.partials_format,
        accumulates=op.l1_accumulation,
        untilizes=op.options.untilize_out,
        relu=relu,
        out_format=out_format,
    )
    return fused_loop(k_loop, len(op.k_blocks) * elements)


def computes(
    loop: FusedLoop, image: Image, run: Run, weights: Array, bias: Array | None, result: Array, place: Array
) -> bool:
    """Compute a run into its place of the result with a loop if the loop can; whether it did.

    The products must be those for which BLAS gives the same bits as for numpy, which multiplies more rows at once.
    Weights are those of all K blocks, [depths, columns], and the bias is [columns].
    """
    strip, (_, _, columns, channels) = run.strip, image.pixels.shape
    taps, blocks = met_pixels(strip, columns * channels, channels)
    if strip.width == 1 or weights.shape[1] % EQUAL_SUM_COLUMNS or not len(blocks):
        return False
    down, across = columns * channels * strip.down.axis.stride, channels * strip.across[0].axis.stride
    operands = RunOperands(
        image=image.pixels[run.image],
        is_cut=image.is_cut,
        met=MetPixels(first=run.first * down, down=down, across=across, taps=taps, blocks=blocks),
        weights=weights,
        bias=bias,
        packs_last=bias is not None or not strip.blocks[-1].taps,
    )
    loop(operands, result, place)
    return True
