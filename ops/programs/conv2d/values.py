"""The values of a conv2d program."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

import numpy as np

from device.host.threads import Shared
from device.matrix_unit.arithmetic import FAST, RUN_ELEMENTS, Arithmetic, arithmetic_of
from device.matrix_unit.fused import ALIKE_COLUMNS, FusedLoop, KLoop, MetPixels, RunOperands, fused_loop
from device.numbers.formats import Array, DataFormat, div_up, round_up, write_exactly
from device.numbers.rounding import widen_rows
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given, matrix, row
from ops.programs.conv2d.gather import (
    HALF,
    GatheredInput,
    Image,
    Piece,
    Run,
    WeightedStrip,
    WeightRows,
    gather,
    met_pixels,
    prepare_image,
    runs,
    weighted_strips,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.eltwise.functions import apply_activation
from ops.window import PaddedAxis, PaddedInput, frame_sources


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


def computes(loop: FusedLoop, image: Image, piece: Piece, weights: Array, bias: Array | None, result: Array) -> bool:
    """Compute a piece with a loop if the loop can; whether it did.

    The products must be those for which BLAS gives the same bits as for numpy, which multiplies more rows at once.
    Weights are those of all K blocks, [depths, columns], and the bias is [columns].
    """
    run, strip = piece.run, piece.strip
    if run.strip.width == 1 or weights.shape[1] % ALIKE_COLUMNS or not strip.met:
        return False
    _, _, columns, channels = image.pixels.shape
    down, across = columns * channels * run.strip.down.axis.stride, channels * run.strip.across[0].axis.stride
    taps, blocks = met_pixels(strip, columns * channels, channels)
    operands = RunOperands(
        image=image.pixels[run.image],
        is_cut=image.is_cut,
        met=MetPixels(first=run.first * down, down=down, across=across, taps=taps, blocks=blocks),
        weights=weights,
        bias=bias,
        packs_last=bias is not None or not run.strip.blocks[-1].taps,
    )
    loop(operands, result, run.place(result[..., piece.channels]))
    return True


OPERAND_ELEMENTS: Final = 1 << 18  # of weights that are worth making an operand of at a time

LEAST_COLUMNS: Final = 192  # of an operand, since its activations are gathered for each again

IN_TURN: Final = 2  # strips whose pieces are computed in turn, so that threads do not wait for each other's operands

PART_COLUMNS: Final = 256  # of a product, so that its weights stay in the cache of a core


def convolved(op: Conv2dOp, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The output [1, 1, N*OH*OW, O] of one conv2d program of sticks, weights and, if there is one, a bias."""
    sticks, weights, *bias = map(given, inputs)
    added = row(bias[0]) if bias else None
    out = conv_values(op, matrix(sticks), matrix(weights), added, context.spec, context.arithmetic)
    return out.reshape(1, 1, *out.shape)


def conv_values(
    op: Conv2dOp, sticks: Array, weights: Array, bias: Array | None, spec: DeviceSpec, arithmetic: Arithmetic
) -> Array:
    """The output of one conv2d program: [N*OH*OW, O] in storage of the output format.

    Sticks are [N*H*W, C] in storage of the halo's format or of the input's, weights the prepared matrix [rows, O_pad],
    and the bias is [O_pad]. The device says in which ways its matrix units differ.
    """
    if op.problem.frame.replicate or op.problem.frame.cuts_inputs:
        op, sticks = _written_out(op, sticks)
    frame, out = op.problem.frame, op.problem.out_format
    shape = (frame.batch, frame.rows.outputs, frame.columns.outputs, op.problem.out_channels)
    result = np.empty(shape, out.storage)
    context = GatheredInput(op, arithmetic_of(arithmetic, sticks, weights, bias), spec)
    loop = loop_for(context, out, result.size)
    image = prepare_image(context, sticks, cut_later=loop is not None)
    convolve_into(result, context, image, weights, bias, out, loop)
    return result.reshape(-1, op.problem.out_channels)


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
        image: The input, with zeros as far as any window reaches.
        weights: The prepared weight matrix.
        bias: [O_pad] or None.
        out_format: Format that a finished block is packed to.
        loop: The compiled loop that computes runs of outputs; without it runs go step by step.
    """
    problem, out = context.op.problem, context.op.problem.out_format
    width = round_up(problem.out_channels, HALF if out.is_block else 1)
    bias_row = None if bias is None else _unpacked(context, _filled(bias[:width].astype(np.float32), width))
    frame, blocks = problem.frame, context.op.k_blocks
    weighted = weighted_strips(blocks, frame.rows, frame.columns, image.corner, len(weights))

    def compute(piece: Piece) -> None:
        run, part = piece.run, piece.channels
        added = None if bias_row is None else np.concatenate([bias_row[part]] * len(run.strip.across))
        operand = piece.operands.taken()[piece.part]
        if loop is not None and computes(loop, image, piece, operand, added, result):
            return
        dst = _multiply(context, image, run, operand, has_bias=bias_row is not None)
        if dst is None:
            dst = np.zeros((run.outputs, operand.shape[1]), np.float32)
        place = run.place(result[..., part])
        values = _finish(context, dst, added, out_format).reshape(*place.shape[:-1], -1)
        write_exactly(values[..., : place.shape[-1]], place)

    by_strip = [_pieces(context, strip, weights, width) for strip in weighted]
    locked = [zip_longest(*by_strip[n : n + IN_TURN]) for n in range(0, len(by_strip), IN_TURN)]
    pieces = [piece for turns in locked for turn in turns for piece in turn if piece is not None]
    context.arithmetic.each(compute, pieces)


def _pieces(context: GatheredInput, weighted: WeightedStrip, weights: Array, end: int) -> Iterator[Piece]:
    """The outputs of a strip in runs of rows and parts of the channels; some pieces share their weights."""
    strip, phases = weighted.strip, len(weighted.strip.across)
    columns = max(LEAST_COLUMNS, OPERAND_ELEMENTS // max(1, weighted.depth))
    step, width = (round_up(div_up(count, phases), HALF) for count in (columns, min(columns, PART_COLUMNS)))
    for first in range(0, end, step):
        together = slice(first, min(first + step, end))
        parts = [slice(n, min(n + width, together.stop)) for n in range(first, together.stop, width)]
        outputs = RUN_ELEMENTS // (phases * min(width, together.stop - first))
        several = list(runs(context.op.problem.frame.batch, strip, outputs))
        operands = Shared(
            partial(_operands, context, weights, together, width, weighted.rows), uses=len(several) * len(parts)
        )
        for part, channels in enumerate(parts):
            for run in several:
                yield Piece(run, weighted, channels, operands, part)


def _operands(
    context: GatheredInput, weights: Array, channels: slice, width: int, rows: Sequence[WeightRows]
) -> list[Array]:
    """The weights of all K blocks as they are multiplied, in parts of `width` channels.

    Each part is float32 [columns of the blocks, phases * channels], zero where there is no weight row: a column has
    none, or the weights were prepared for another use and end before it.
    """
    parts = widen_rows(weights, channels, width, rows, context.arithmetic.operand_masks(context.mode)[1])
    return [_unpacked(context, part) for part in parts]


def _unpacked(context: GatheredInput, values: Array) -> Array:
    """Weights or bias, float32, as the matrix unit reads them."""
    op = context.op
    return context.arithmetic.unpack(values, op.problem.weight_format, fp32_dest=op.options.fp32_dest)


def _filled(bias: Array, width: int) -> Array:
    """A bias, with zeros behind it if it was prepared for fewer columns."""
    return np.pad(bias, (0, width - len(bias))) if len(bias) < width else bias


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
    dense = PaddedInput(batch=frame.batch, rows=rows, columns=columns)
    return op.with_problem(frame=dense), filled


def _multiply(context: GatheredInput, image: Image, run: Run, operand: Array, *, has_bias: bool) -> Array | None:
    """All K blocks of a run, with the trips through the packer between them (docs/values.md, Partial sums).

    A block that the run does not meet leaves partial sums as they are: a second trip through the packer changes
    nothing. `operand` holds the weights of all K blocks; with a bias the last block makes the trip, too. The result is
    Dst before bias, activation and final pack, float32 [run.outputs, columns]; None if it is zero.
    """
    arithmetic, mode = context.arithmetic, context.mode
    partials, accumulates = context.op.partials_format, context.op.l1_accumulation
    packed: Array | None = None
    dst: Array | None = None
    for block, weights in zip(run.strip.blocks, run.strip.by_block(operand), strict=True):
        final = block is run.strip.blocks[-1] and not has_bias
        dst = None
        if packed is not None and (final or not accumulates):
            dst = arithmetic.unpack(packed, partials, fp32_dest=mode.fp32_dest)
        if block.taps:
            activations = gather(context, image, block, run)
            dst = arithmetic.product(activations, weights, dst, mode=mode, half_counts=block.half_counts)
        if block.taps and dst is not None and not final:
            repacked = arithmetic.pack(dst, partials, fp32_dest=mode.fp32_dest)
            adds = packed is not None and accumulates
            packed = arithmetic.accumulate_l1(packed, repacked, partials) if packed is not None and adds else repacked
    if has_bias and packed is not None:
        dst = arithmetic.unpack(packed, partials, fp32_dest=mode.fp32_dest)
    return dst


def _finish(context: GatheredInput, dst: Array, bias: Array | None, out_format: DataFormat) -> Array:
    """Bias, activation and final pack; a ROW_MAJOR output makes one more trip through partials and Dst."""
    op, arithmetic, fp32_dest = context.op, context.arithmetic, context.mode.fp32_dest
    if bias is not None:
        dst = arithmetic.add_bias(dst, bias, fp32_dest=fp32_dest)
    relu = op.activation is not None and op.activation[0] == "relu"
    if op.activation is not None and not relu:
        dst = apply_activation(dst, *op.activation, mode=context.vector_unit)
    if op.options.untilize_out:
        packed = arithmetic.pack(dst, op.partials_format, fp32_dest=fp32_dest)
        dst = arithmetic.unpack(packed, op.partials_format, fp32_dest=fp32_dest)
    return arithmetic.pack(dst, out_format, fp32_dest=fp32_dest, relu=relu)
