"""The model of a conv2d program: its values, K block by K block in the plan's order, and its description."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from device.host.threads import Shared
from device.matrix_unit.arithmetic import FAST, RUN_ELEMENTS, arithmetic_of
from device.matrix_unit.fused import EQUAL_SUM_COLUMNS, FusedLoop, KLoop, MetPixels, RunOperands, fused_loop
from device.numbers.formats import Array, DataFormat, div_up, round_up, write_exactly
from device.numbers.rounding import widen_rows
from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.op_model import (
    Description,
    Detail,
    Ends,
    OpModel,
    ValuesContext,
    cycles_of_work,
    either,
    given,
    matrix,
    row,
    tiles,
    uncompared_fact,
    values_of_first,
)
from ops.programs.conv2d.cycles import conv_cycles
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
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ParallelConfig
from ops.programs.conv2d.weights import PrepareBand, PrepareBias, PrepareWeights, prepared
from ops.programs.eltwise.functions import uncompared
from ops.programs.k_blocks import finish, sum_blocks
from ops.window import PaddedAxis, PaddedInput, frame_sources, sliding_window_text

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

    The inputs are sticks [..., C] in storage of the halo's or the input's format, the prepared weights
    [..., rows, O_pad] and optionally the prepared bias [..., O_pad].
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
    """Computes all outputs of a frame, which is the image with zeros around and between its pixels, in place.

    The result is [N, rows, columns, channels] in storage of ``out_format``, to which finished blocks are packed: with O
    channels, rounded up to the group size of a block float. The axes of the frame say which elements are its outputs.
    The image has zeros as far as any window reaches. A shorter bias was prepared for fewer columns, and is extended
    with zeros. Without a compiled loop, runs of outputs are computed step by step.
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

    A loop computes one product per block; the sums become outputs only by the bias and the packer (with its ReLU).
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
    """Computes a run into the result with a compiled loop if possible; returns whether it did.

    BLAS must give the same bits for the products as in numpy, which multiplies more rows at once.
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


STAGES: Final = MappingProxyType(
    {
        Stage.READER: "activations are gathered from the core's own L1",
        Stage.SECOND_READER: "the second processor gathers its half of the activations from the core's own L1",
        Stage.ACT_MULTICAST: "cores send their channels to all others that need them",
        Stage.WEIGHT_READER: "weights are read from DRAM, tile by tile",
        Stage.WEIGHT_MULTICAST: "weights are sent on to the cores that share them",
        Stage.DRAM: "the readers of weights share DRAM's bandwidth",
        Stage.TILIZE: "gathered rows become tiles",
        Stage.UNPACK: "tiles are brought to the matrix unit, partial sums fetched back",
        Stage.PACK: "results are packed into L1",
        Stage.BIAS: "the bias is added",
        Stage.UNTILIZE: "tiles of the result become rows",
    }
)


def describe_conv2d(op: Conv2dOp, ends: Ends, spec: DeviceSpec) -> Description:
    """How a convolution was planned."""
    return Description(
        facts=partial(_facts, op, spec),
        stages=STAGES,
        measured_as=f"Conv2d, {op.layout.scheme.name}",
        attributes=partial(conv_attributes, op),
    )


def _facts(op: Conv2dOp, spec: DeviceSpec) -> tuple[Detail, ...]:
    layout, blocks, options, shards = op.layout, op.layout.blocks, op.options, op.layout.shards
    dst_tiles, readers = spec.compute.dst_half_tiles(fp32_dest=options.fp32_dest), op.weight_readers
    text = uncompared([] if op.activation is None else [op.activation[0]], fp32_dest=options.fp32_dest)
    weights = _buffers("weights", options.weights_double_buffer)
    if layout.scheme is HEIGHT and op.out_blocks > 1:  # another buffer is of no use
        weights = Detail("weights_double_buffer", False, "all weights stay in L1")
    once, again = "each weight once", f"each weight {op.weight_passes} times, once for every output block"
    subblocks = f"sub-blocks of {{}} (Dst holds {dst_tiles} tiles)"
    return (
        Detail("scheme", layout.scheme.name, layout.scheme.name),
        _cores("input", layout.config, spec),
        _cores("output", layout.out_config, spec),
        tiles("core_tiles", shards.out_row_tiles, shards.out_col_tiles, "{} output tiles a core"),
        tiles("act_block_tiles", blocks.act_h_tiles, blocks.act_w_tiles, "activation blocks of {} tiles"),
        _number("out_blocks", op.out_blocks, "output block"),
        tiles("subblock_tiles", blocks.subblock_h_tiles, blocks.subblock_w_tiles, subblocks),
        _number("k_blocks", blocks.k_blocks, "K block"),
        either("split_reader", layout.split_reader, "two activation readers", "one activation reader"),
        _buffers("activations", options.act_double_buffer, "act"),
        weights,
        Detail("weight_readers", readers, f"weights read by {'one core' if readers == 1 else f'{readers} cores'}"),
        Detail("weight_passes", op.weight_passes, once if op.weight_passes == 1 else again),
        either(
            "act_multicast",
            layout.multicasts_activations,
            "activations multicast",
            "no activations sent between cores",
        ),
        either("l1_accumulation", op.l1_accumulation, "partial sums added in L1", "partial sums fetched back"),
        *(() if text is None else (uncompared_fact(text),)),
    )


def _cores(side: str, config: ParallelConfig, spec: DeviceSpec) -> Detail:
    """Cores of one side: those of the rows, and those of the channels if they are split."""
    count, parts = config.cores.num_cores(), f" ({config.nhw_cores} for rows, {config.channel_cores} for channels)"
    shown = parts if config.scheme is BLOCK else ""
    return Detail(f"{side}_cores", count, f"{side} on {count} of {spec.grid.cores} cores{shown}")


def _number(name: str, count: int, what: str) -> Detail:
    return Detail(name, count, f"{count} {what}{'' if count == 1 else 's'}")


def _buffers(what: str, double: bool, name: str = "") -> Detail:
    return either(f"{name or what}_double_buffer", double, f"{what} double-buffered", f"{what} single-buffered")


def conv_attributes(op: Conv2dOp) -> tuple[tuple[str, str], ...]:
    """Blocks, buffers, cores and windows, by the names of the real device operation's attributes."""
    layout, blocks, options = op.layout, op.layout.blocks, op.options
    config, out_config, box = layout.config, layout.out_config, layout.out_config.cores.bounding_box()
    block_config = {
        "act_block_h_ntiles": blocks.act_h_tiles,
        "act_block_w_ntiles": blocks.act_w_tiles,
        "out_subblock_h_ntiles": blocks.subblock_h_tiles,
        "out_subblock_w_ntiles": blocks.subblock_w_tiles,
    }
    parallelization = {
        "grid_size": f"(x={box.cols},y={box.rows})",
        "num_cores_nhw": config.nhw_cores,
        "num_cores_c_in": config.channel_cores,
        "num_cores_c_out": out_config.channel_cores,
        "per_core_out_matrix_height_ntile": layout.shards.out_row_tiles,
        "per_core_out_matrix_width_ntile": layout.shards.out_col_tiles,
    }

    def struct(name: str, fields: Mapping[str, object]) -> str:
        return f"{name}({','.join(f'{key}={value}' for key, value in fields.items())})"

    window = sliding_window_text(
        op.problem.frame, config.cores, nhw_cores=config.nhw_cores, channel_cores=config.channel_cores
    )
    return (
        ("block_config", struct("Conv2dBlockConfig", block_config)),
        ("enable_act_double_buffer", str(options.act_double_buffer).lower()),
        ("enable_split_reader", str(layout.split_reader).lower()),
        ("enable_weights_double_buffer", str(options.weights_double_buffer).lower()),
        ("output_channels", str(op.problem.out_channels)),
        ("parallelization_config", struct("Conv2dParallelizationConfig", parallelization)),
        ("sliding_window_config", window),
    )


OP_MODELS: Final = (
    OpModel(
        op=Conv2dOp,
        values=convolved,
        cycles=cycles_of_work(conv_cycles),
        fidelity_phases=lambda op: op.fidelity_phases,
        describe=describe_conv2d,
    ),
    OpModel(op=PrepareWeights, values=values_of_first(prepared)),
    OpModel(op=PrepareBias, values=values_of_first(prepared)),
    OpModel(op=PrepareBand, values=values_of_first(prepared)),
)
