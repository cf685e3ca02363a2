"""Runs of outputs in one compiled loop, from the image to what is packed: fast values where that pays.

The loop gives the bits that `ops.programs.conv2d.values` computes step by step.
"""

from device.matrix_unit.arithmetic import FAST
from device.matrix_unit.fused import ALIKE_COLUMNS, FusedLoop, KLoop, MetPixels, RunOperands, fused_loop
from device.numbers.formats import Array, DataFormat
from ops.programs.conv2d.gather import GatheredInput, Image
from ops.programs.conv2d.operands import Piece, met_pixels


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
