"""What a conv2d program computes: the numbers of its output, K block by K block in the plan's order.

How a block is multiplied and what is rounded where is the arithmetic's choice (`arithmetic`): exactly as the
device does, or fast in floats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise, zip_longest
from typing import Final, TypeAlias

import numpy as np

from device.host.pieces import DEPTH
from device.host.threads import Shared, free_threads
from device.matrix_unit.arithmetic import Arithmetic, arithmetic_of
from device.matrix_unit.fast import (
    ALIKE_COLUMNS,
    RunOperands,
    Trips,
    WholeRun,
    WindowBlock,
    WindowOperands,
    WindowRun,
    WindowWeights,
    in_pairs,
)
from device.numbers.block_floats import Integers, div_up, round_up
from device.numbers.formats import Array, DataFormat, write_exactly
from device.numbers.rounding import widen_rows
from device.numbers.vector_unit import apply_activation
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given, matrix, row
from ops.programs.conv2d.blocks import KBlock, weight_rows_of
from ops.programs.conv2d.gather import (
    HALF,
    GatheredInput,
    Image,
    MetBlock,
    Run,
    Strip,
    Tap,
    gather,
    prepare_image,
    runs,
    strips,
    views,
)
from ops.programs.conv2d.op import Conv2dOp
from ops.window import PaddedAxis, PaddedInput, frame_sources, output_phases


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
    if not taps or strip.across[0].axis.stride != 1 or not all(_is_window(block, taps) for block in met):
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
        first=run.first * run.strip.down.axis.stride,
        is_cut=image.is_cut,
        blocks=windows.blocks,
        taps=windows.taps,
        down=run.strip.down.axis.stride,
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


MOST_KEPT: Final = 64  # convolutions whose strips are kept
WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStrip:
    """A strip and what it is multiplied by."""

    strip: Strip
    # For each of its output phases of the columns, the row of the prepared matrix under each column of the gathered
    # blocks (`rows_in_place`)
    rows: tuple[WeightRows, ...]
    depth: int  # Columns of all blocks together
    met: tuple[MetBlock, ...]  # Those of its K blocks that meet inputs
    as_one: MetBlock | None  # The same as one block, where they are channels of one tap, one after the other; else None
    windows: Windows | None  # The same as windows over the image, if it is that


@lru_cache(MOST_KEPT)
def weighted_strips(
    blocks: tuple[KBlock, ...], channels: int, rows: PaddedAxis, columns: PaddedAxis, corner: tuple[int, int], held: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they hang on its geometry alone and are kept.

    Args:
        corner: Where the first input lies in the image.
        held: Rows of the prepared matrix.
    """
    kernel = rows.kernel, columns.kernel
    return tuple(
        _weighted(blocks, channels, strip, kernel, held)
        for down in output_phases(rows)
        for strip in strips(blocks, down, columns, corner)
    )


def _weighted(
    blocks: Sequence[KBlock], channels: int, strip: Strip, kernel: tuple[int, int], held: int
) -> WeightedStrip:
    """A strip with the rows under the columns of all blocks as each of its output phases meets them."""
    found = [weight_rows_of(blocks, [one.columns for one in met], kernel) for met in strip.met]
    for rows in found:
        rows.flags.writeable = False
    with_taps = tuple(block for block in strip.blocks if block.taps)
    return WeightedStrip(
        strip,
        tuple(rows_in_place(rows, held) for rows in found),
        sum(len(block.columns) for block in strip.blocks),
        with_taps,
        _as_one(with_taps),
        windows_of(strip, found, channels),
    )


def _as_one(blocks: Sequence[MetBlock]) -> MetBlock | None:
    """The block of all their channels, where blocks are channels of the same tap, one after the other."""
    follow = all(
        one.taps == other.taps and one.channels.stop == other.channels.start for one, other in pairwise(blocks)
    )
    if not blocks or not follow or not all(block.is_one_tap for block in blocks):
        return None
    return replace(blocks[0], channels=slice(blocks[0].channels.start, blocks[-1].channels.stop), half_counts=())


def rows_in_place(rows: Integers, end: int) -> WeightRows:
    """Rows as a slice where they follow each other in a matrix of ``end`` rows, else as they are."""
    follow = len(rows) > 0 and rows[0] >= 0 and rows[-1] < end and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


MOST_OF_A_ROW: Final = 1 << 20  # elements of all products of a row of outputs, which are there at once: 4 MiB


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Who computes runs at once."""

    whole: WholeRun | None  # From gathered activations; None if that is not worth it
    windows: WindowRun | None  # From the image; None likewise


def at_once(reading: GatheredInput, made: DataFormat, elements: int) -> AtOnce | None:
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
    reading: GatheredInput,
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


def _gathered(reading: GatheredInput, image: Image, run: Run, one: WeightedStrip) -> Array:
    """The activations [run.outputs, depths] of K blocks side by side: a view where they are channels of one tap.

    They are in float32, or as the image holds them.
    """
    if one.as_one is None or not reading.converts_per_pixel:
        return np.concatenate([gather(reading, image, block, run) for block in one.met], axis=1)
    (seen,) = views(image, one.as_one, run)
    return seen.reshape(run.outputs, -1)


LEAST_COLUMNS: Final = 192  # of an operand, since its activations are gathered for each again
IN_TURN: Final = 2  # strips whose pieces are computed in turn, so that threads do not wait for each other's operands
PART_COLUMNS: Final = 256  # of a product, so that its weights stay in the cache of a core


@dataclass(frozen=True, slots=True)
class _Piece:
    """Outputs that are computed together."""

    run: Run  # Rows of a strip
    one: WeightedStrip  # The strip, with what it is multiplied by
    channels: slice
    operands: Shared[list[Array]]  # The weights of all K blocks for these and for others
    part: int  # Which of them is for these
    windows: Windows | None  # The run as windows over the image, where that is how it is computed

    @property
    def shape(self) -> tuple[int, int]:
        """Of its products: the channels of all phases are side by side."""
        return self.run.outputs, len(range(self.channels.stop)[self.channels]) * len(self.run.strip.across)


def convolved(work: Conv2dOp, inputs: Sequence[Array | None], reading: ValuesContext) -> Array:
    """The output [1, 1, N*OH*OW, O] of one conv2d program of sticks, weights and, if there is one, a bias."""
    sticks, weights, *bias = map(given, inputs)
    added = row(bias[0]) if bias else None
    out = conv_values(work, matrix(sticks), matrix(weights), added, reading.spec, reading.arithmetic)
    return out.reshape(1, 1, *out.shape)


def conv_values(
    work: Conv2dOp, sticks: Array, weights: Array, bias: Array | None, spec: DeviceSpec, arithmetic: Arithmetic
) -> Array:
    """The output of one conv2d program.

    Args:
        sticks: [N*H*W, C] the input, in storage of the halo's format or of the input's.
        weights: [rows, O_pad] the prepared weight matrix.
        bias: [O_pad] or None.
        spec: The device, for the ways in which matrix units differ.
        arithmetic: Exact or fast.

    Returns:
        [N*OH*OW, O] in storage of the output format.
    """
    if work.problem.frame.replicate or work.problem.frame.cuts_inputs:
        work, sticks = _written_out(work, sticks)
    frame, out = work.problem.frame, work.problem.out_format
    shape = (frame.batch, frame.rows.outputs, frame.columns.outputs, work.problem.out_channels)
    result = np.empty(shape, out.storage)
    reading = GatheredInput(work, arithmetic_of(arithmetic, sticks, weights, bias), spec)
    how = at_once(reading, out, result.size)
    image = prepare_image(reading, sticks, cut_later=how is not None and how.whole is not None)
    convolve_into(result, reading, image, weights, bias, out, how)
    return result.reshape(-1, work.problem.out_channels)


def convolve_into(
    result: Array,
    reading: GatheredInput,
    image: Image,
    weights: Array,
    bias: Array | None,
    made: DataFormat,
    how: AtOnce | None,
) -> None:
    """Compute all outputs of a frame that is its image with zeros around it and between, each in its place.

    Args:
        result: [N, rows, columns, channels] in storage of ``made``, O channels or those that fill the last group of a
            block float; the axes of the frame say which of it are its outputs.
        image: The input, with zeros as far as any window reaches.
        weights: The prepared weight matrix.
        bias: [O_pad] or None.
        made: What a finished block is packed to.
        how: Who computes runs at once, if anybody does.
    """
    problem, out = reading.work.problem, reading.work.problem.out_format
    width = round_up(problem.out_channels, HALF if out.is_block else 1)
    row = None if bias is None else _unpacked(reading, _filled(bias[:width].astype(np.float32), width))
    frame, blocks = problem.frame, reading.work.k_blocks
    found = weighted_strips(blocks, problem.in_channels, frame.rows, frame.columns, image.corner, len(weights))

    def several(one: WeightedStrip) -> Iterator[_Piece]:
        seen_at_once = how is not None and how.windows is not None and reading.converts_per_pixel
        fit = seen_at_once and one.windows is not None and suits(one.windows, image, weights)
        return _pieces(reading, one, weights, width, one.windows if fit else None, len(found))

    def compute(piece: _Piece) -> None:
        run, part = piece.run, piece.channels
        added = None if row is None else np.concatenate([row[part]] * len(run.strip.across))
        if piece.windows is not None and how is not None and how.windows is not None:
            operands = WindowWeights(matrix=weights, rows=piece.windows.rows, columns=part)
            compute_windows(how.windows, image, run, piece.windows, operands, added, result)
            return
        place, operand = run.place(result[..., part]), piece.operands.taken()[piece.part]
        if how is not None and computed_whole(how, reading, image, run, piece.one, operand, added, result, place):
            return
        dst = _multiply(reading, image, run, operand, has_bias=row is not None)
        if dst is None:
            dst = np.zeros(piece.shape, np.float32)
        values = _finish(reading, dst, added, made).reshape(*place.shape[:-1], -1)
        write_exactly(values[..., : place.shape[-1]], place)

    by_strip = [several(one) for one in found]
    locked = [zip_longest(*by_strip[n : n + IN_TURN]) for n in range(0, len(by_strip), IN_TURN)]
    pieces = [piece for turns in locked for turn in turns for piece in turn if piece is not None]
    reading.arithmetic.each(compute, pieces)


def _pieces(
    reading: GatheredInput, one: WeightedStrip, weights: Array, end: int, windows: Windows | None, strips: int
) -> Iterator[_Piece]:
    """The outputs of one of some strips in runs of rows and parts of the channels; some share their weights."""
    strip, arithmetic, phases = one.strip, reading.arithmetic, len(one.strip.across)
    columns = max(LEAST_COLUMNS, arithmetic.operand_elements // max(1, one.depth))
    if windows:
        columns = _columns_of_windows(reading, one, phases * end, strips)
    step, width = (
        round_up(div_up(some, phases), HALF) for some in (columns, columns if windows else min(columns, PART_COLUMNS))
    )
    for first in range(0, end, step):
        together = slice(first, min(first + step, end))
        parts = [slice(n, min(n + width, together.stop)) for n in range(first, together.stop, width)]
        outputs = arithmetic.run_elements // (phases * min(width, together.stop - first))
        several = list(runs(reading.work.problem.frame.batch, strip, outputs))
        operands = Shared(
            partial(_operands, reading, weights, together, width, one.rows), uses=len(several) * len(parts)
        )
        for part, channels in enumerate(parts):
            alike = (channels.stop - channels.start) % ALIKE_COLUMNS == 0
            for run in several:
                yield _Piece(run, one, channels, operands, part, windows if alike else None)


def _columns_of_windows(reading: GatheredInput, one: WeightedStrip, columns: int, strips: int) -> int:
    """Columns of a piece, whose weights are read a few columns at a time: twice as many where outputs are few.

    A piece is begun by Python, which takes as long as a tenth of a short one; but each thread should have two.
    """
    outputs = one.strip.down.axis.outputs * one.strip.width
    fits = outputs * 2 * PART_COLUMNS <= reading.arithmetic.run_elements
    pieces = strips * reading.work.problem.frame.batch * div_up(columns, 2 * PART_COLUMNS)
    return 2 * PART_COLUMNS if fits and pieces >= 2 * free_threads() else PART_COLUMNS


def _operands(
    reading: GatheredInput, weights: Array, channels: slice, width: int, rows: Sequence[WeightRows]
) -> list[Array]:
    """The weights of all K blocks as they are multiplied, in parts of so many channels.

    Each is float32 [columns of the blocks, phases * channels], zero where there is no row: none is meant, or they were
    prepared for another use and end before it.
    """
    parts = widen_rows(weights, channels, width, rows, reading.arithmetic.weight_mask(reading.mode))
    return [_unpacked(reading, part) for part in parts]


def _unpacked(reading: GatheredInput, values: Array) -> Array:
    """Weights or bias, float32, as the matrix unit reads them."""
    work = reading.work
    return reading.arithmetic.unpack(values, work.problem.weight_format, fp32_dest=work.options.fp32_dest)


def _filled(bias: Array, width: int) -> Array:
    """A bias with zeros behind it, where it was prepared for fewer columns."""
    return np.pad(bias, (0, width - len(bias))) if len(bias) < width else bias


def _written_out(work: Conv2dOp, sticks: Array) -> tuple[Conv2dOp, Array]:
    """The same convolution over its frame written out in full, where it is more than the image and zeros around it."""
    frame = work.problem.frame
    sources = frame_sources(frame, 0, frame.sticks)
    filled = np.where((sources >= 0)[:, None], sticks[np.maximum(sources, 0)], sticks.dtype.type(0))
    rows, columns = (
        PaddedAxis(
            input_length=axis.length, before=0, after=0, kernel=axis.kernel, dilation=axis.dilation, stride=axis.stride
        )
        for axis in (frame.rows, frame.columns)
    )
    dense = PaddedInput(batch=frame.batch, rows=rows, columns=columns)
    return work.with_problem(frame=dense), filled


def _multiply(reading: GatheredInput, image: Image, run: Run, operand: Array, *, has_bias: bool) -> Array | None:
    """All K blocks of a run, with the trips through the packer between them (docs/values.md, Partial sums).

    A block that the run does not meet leaves partial sums as they are: a trip through the packer changes nothing the
    second time.

    Args:
        operand: The weights of all K blocks.
        has_bias: Whether a bias is added, so that the last block makes the trip, too.

    Returns:
        float32 [run.outputs, columns], Dst before bias, activation and final pack; None if it is zero.
    """
    arithmetic, mode = reading.arithmetic, reading.mode
    partials, accumulates = reading.work.partials_format, reading.work.l1_accumulation
    packed: Array | None = None
    dst: Array | None = None
    for block, weights in zip(run.strip.blocks, run.strip.by_block(operand), strict=True):
        final = block is run.strip.blocks[-1] and not has_bias
        dst = None
        if packed is not None and (final or not accumulates):
            dst = arithmetic.unpack(packed, partials, fp32_dest=mode.fp32_dest)
        if block.taps:
            activations = gather(reading, image, block, run)
            dst = arithmetic.product(activations, weights, dst, mode=mode, half_counts=block.half_counts)
        if block.taps and dst is not None and not final:
            repacked = arithmetic.pack(dst, partials, fp32_dest=mode.fp32_dest)
            adds = packed is not None and accumulates
            packed = arithmetic.accumulate_l1(packed, repacked, partials) if packed is not None and adds else repacked
    if has_bias and packed is not None:
        dst = arithmetic.unpack(packed, partials, fp32_dest=mode.fp32_dest)
    return dst


def _finish(reading: GatheredInput, dst: Array, bias: Array | None, made: DataFormat) -> Array:
    """Bias, activation and final pack; a ROW_MAJOR output makes one more trip through partials and Dst."""
    work, arithmetic, fp32_dest = reading.work, reading.arithmetic, reading.mode.fp32_dest
    if bias is not None:
        dst = arithmetic.add_bias(dst, bias, fp32_dest=fp32_dest)
    relu = work.activation is not None and work.activation[0] == "relu"
    if work.activation is not None and not relu:
        dst = apply_activation(dst, *work.activation, mode=reading.vector_unit)
    if work.options.untilize_out:
        packed = arithmetic.pack(dst, work.partials_format, fp32_dest=fp32_dest)
        dst = arithmetic.unpack(packed, work.partials_format, fp32_dest=fp32_dest)
    return arithmetic.pack(dst, made, fp32_dest=fp32_dest, relu=relu)
