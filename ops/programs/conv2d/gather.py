"""The operands of a convolution: activations gathered by tap in the form of the matrix unit, and their weight rows.

Outputs are computed by phase (`ops.window`), so inserted zeros cost nothing, and in runs of rows that fit the cache.
Column phases with the same inputs are computed together, with their weights side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate, groupby, product
from typing import Final, NamedTuple

import numpy as np

from device.host.threads import parts_of
from device.matrix_unit.arithmetic import Arithmetic, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT16, Array, Integers, div_up, to_read, write_exactly
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.op import Conv2dOp, KBlock, weight_rows_of
from ops.window import OutputPhase, PaddedAxis, output_phases, phase_margins

CONVERTED_TOGETHER: Final = 1 << 18  # numbers of an image; with fewer, threads wait for the interpreter
HALF: Final = 16  # columns of one step of the matrix unit, and of one group of a block float
CACHE_SIZE: Final = 64  # convolutions whose strips are cached


@dataclass(frozen=True, slots=True)
class GatheredInput:
    """A convolution, and the conversions of its operands."""

    op: Conv2dOp
    arithmetic: Arithmetic  # Exact or fast
    spec: DeviceSpec  # The device, for the ways in which matrix units differ

    @property
    def mode(self) -> MatrixUnitMode:
        """How the matrix unit is set up."""
        return MatrixUnitMode(
            fidelity_phases=self.op.fidelity_phases,
            fp32_dest=self.op.options.fp32_dest,
            minus_one_quirk=self.spec.compute.minus_one_quirk,
        )

    @property
    def converts_per_pixel(self) -> bool:
        """Whether no shared exponent spans two pixels, so that the input can be converted before it is gathered."""
        problem = self.op.problem
        whole = all(block.channels % HALF == 0 for block in self.op.k_blocks) and problem.in_channels % HALF == 0
        return not problem.out_format.is_block or whole

    @property
    def tilizes(self) -> bool:
        """Whether tilizing may change values, not only their order."""
        problem = self.op.problem
        return not (problem.out_format.is_block and problem.in_format == problem.out_format and self.converts_per_pixel)


@dataclass(frozen=True, slots=True)
class Image:
    """The input as the matrix unit sees it, with a margin of zeros where taps reach outside."""

    pixels: Array  # [N, rows, columns, C_pad], bfloat16 where that holds them exactly, else float32
    top: int  # Rows of the margin above
    left: int  # Columns of the margin at the left
    is_cut: bool = True  # Whether pixels have no bits but those that the fidelity phases multiply


class Tap(NamedTuple):
    """One kernel tap of a K block in one output phase."""

    row: int  # Input row (with the margin) of the output phase's first output
    column: int
    target: int  # First column in the gathered block


class MetBlock(NamedTuple):
    """The part of a K block that an output phase meets."""

    taps: tuple[Tap, ...]  # The taps that the phase meets; none if it does not meet the block
    half_counts: tuple[int, ...]  # Present halves of each K tile
    columns: Integers  # int64 [halves * 16] which columns of the block these are
    channels: slice


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """One row phase with one or more column phases that have the same inputs, and their weights."""

    down: OutputPhase  # The output phase of the rows
    across: tuple[OutputPhase, ...]  # The output phases of the columns, in their order
    blocks: tuple[MetBlock, ...]  # The K blocks as the first output phase of the columns meets them
    # For each of the output phases of the columns, the row of the prepared matrix under each column of the gathered
    # blocks; -1 for none
    rows: tuple[Integers, ...]

    @property
    def width(self) -> int:
        """Outputs of a row, in each of the phases."""
        return self.across[0].axis.outputs

    @property
    def ends(self) -> list[int]:
        """Columns of the gathered blocks up to the end of each; 0 before the first."""
        return list(accumulate((len(block.columns) for block in self.blocks), initial=0))


@dataclass(frozen=True, slots=True)
class Run:
    """Output rows of a strip that are computed together."""

    strip: Strip
    image: int
    first: int  # First row, among the rows of the output phase
    count: int

    @property
    def outputs(self) -> int:
        """Outputs of the run, in each of the phases of its columns."""
        return self.count * self.strip.width

    def place(self, result: Array) -> Array:
        """The run's outputs in [N, OH, OW, O]: a view [count, columns, phases, O]."""
        strip, across = self.strip, self.strip.across
        rows = result[self.image, strip.down.axis.places][self.first : self.first + self.count]
        if len(across) == 1:
            return rows[:, across[0].axis.places, None]
        begin = across[0].axis.output_offset
        part = rows[:, begin : begin + strip.width * len(across)]
        return part.reshape(self.count, strip.width, len(across), result.shape[-1])


def runs(batch: int, strip: Strip, outputs: int) -> Iterator[Run]:
    """Runs of rows of about equal size with a limited number of outputs per column phase, at least one row each."""
    rows = strip.down.axis.outputs
    step = div_up(rows, div_up(rows, max(1, outputs // strip.width)))
    for image, first in product(range(batch), range(0, rows, step)):
        yield Run(strip, image, first, min(step, rows - first))


@lru_cache(CACHE_SIZE)
def strips(
    blocks: tuple[KBlock, ...], rows: PaddedAxis, columns: PaddedAxis, corner: tuple[int, int]
) -> tuple[Strip, ...]:
    """All outputs of a convolution by strip; `corner` is the position of the first input in the image."""
    result: list[Strip] = []
    for down in output_phases(rows):
        met = ((across, _met_blocks(blocks, columns.kernel, down, across, corner)) for across in output_phases(columns))
        for _, same in groupby(met, _met_inputs):
            phases = list(same)
            # Outputs that are not adjacent in the result are a strip for each phase
            firsts = [across.axis.output_offset for across, _ in phases]
            beside = firsts == list(range(firsts[0], firsts[0] + phases[0][0].axis.output_stride))
            for members in [phases] if beside else [[phase] for phase in phases]:
                weights = (
                    weight_rows_of(blocks, [block.columns for block in own], (rows.kernel, columns.kernel))
                    for _, own in members
                )
                across_phases = tuple(across for across, _ in members)
                result.append(Strip(down, across_phases, members[0][1], tuple(map(to_read, weights))))
    return tuple(result)


def _met_inputs(phase: tuple[OutputPhase, tuple[MetBlock, ...]]) -> tuple[object, ...]:
    """The inputs of a column phase, and their positions in the gathered blocks."""
    axis, blocks = phase[0].axis, phase[1]
    return axis.outputs, axis.stride, axis.output_stride, [(block.taps, block.half_counts) for block in blocks]


def _met_blocks(
    blocks: Sequence[KBlock], kernel_columns: int, down: OutputPhase, across: OutputPhase, corner: tuple[int, int]
) -> tuple[MetBlock, ...]:
    """The inputs and K block columns of an output phase, in whole halves of 16 columns."""

    @cache
    def met_of(kernel_rows: range, channels: int) -> tuple[tuple[Tap, ...], tuple[int, ...], Integers]:
        taps = [
            (((i - kernel_rows.start) * kernel_columns + j) * channels, row + corner[0], column + corner[1])
            for i, row in zip(down.taps, down.starts, strict=True)
            if i in kernel_rows
            for j, column in zip(across.taps, across.starts, strict=True)
        ]
        halves = sorted({half for start, *_ in taps for half in range(start // HALF, div_up(start + channels, HALF))})
        target = {half: number * HALF for number, half in enumerate(halves)}
        tiles = [half // 2 for half in halves]
        return (
            tuple(Tap(row, column, target[start // HALF] + start % HALF) for start, row, column in taps),
            tuple(tiles.count(tile) for tile in dict.fromkeys(tiles)),
            (HALF * np.array(halves, np.int64)[:, None] + np.arange(HALF)).ravel(),
        )

    return tuple(
        MetBlock(
            *met_of(block.kernel_rows, block.channels), slice(block.first_channel, block.first_channel + block.channels)
        )
        for block in blocks
    )


@lru_cache(CACHE_SIZE)
def met_pixels(strip: Strip, row: int, pixel: int) -> tuple[Integers, Integers]:
    """Taps and blocks of `MetPixels` in an image with `row` elements in a row and `pixel` elements in a pixel.

    Taps that are neighbors both in the image and in the K block are joined.
    """
    taps, blocks = list[list[int]](), list[tuple[int, ...]]()
    for block in strip.blocks:
        if not block.taps:
            continue
        first, channels = len(taps), block.channels.stop - block.channels.start
        for tap in block.taps:
            source = tap.row * row + tap.column * pixel + block.channels.start
            last = taps[-1] if len(taps) > first else [0, 0, 0]
            if last[2] and (last[0] + last[2], last[1] + last[2]) == (source, tap.target):
                last[2] += channels
            else:
                taps.append([source, tap.target, channels])
        blocks.append((len(block.columns), first, len(taps), channels * len(block.taps) == len(block.columns)))
    return to_read(np.array(taps, np.int64)), to_read(np.array(blocks, np.int64))


def seen(context: GatheredInput, values: Array) -> Array:
    """Activations as the matrix unit sees them: tilized into the output format, then unpacked."""
    op, arithmetic = context.op, context.arithmetic
    problem, fp32_dest = op.problem, op.options.fp32_dest
    if context.tilizes:
        keeps_tf32 = context.spec.compute.tilize_keeps_tf32(op.layout.blocks.act_w_tiles)
        values = arithmetic.tilize(
            values, problem.act_format, problem.out_format, fp32_dest=fp32_dest, keeps_tf32=keeps_tf32
        )
    operand = arithmetic.unpack(values, problem.out_format, fp32_dest=fp32_dest)
    return cut(operand, arithmetic.operand_masks(context.mode)[0])


def prepare_image(context: GatheredInput, sticks: Array, *, cut_later: bool = False) -> Image:
    """The input [N*H*W, C] with a margin of zeros, converted if one conversion works for all taps, in parts of rows.

    With `cut_later` the multiplication truncates the operands. Then the image is the input itself if it needs no other
    conversion and no output has more than one tap, for which it would be truncated repeatedly.
    """
    problem, converts = context.op.problem, context.converts_per_pixel
    rows, columns = problem.frame.rows, problem.frame.columns
    (top, bottom, few_down), (left, right, few_across) = map(phase_margins, (rows, columns))
    channels = context.op.layout.shards.in_channels
    shape = (problem.frame.batch, top + rows.input_length + bottom, left + columns.input_length + right, channels)
    if cut_later and few_down and few_across and sticks.shape == (shape[0] * shape[1] * shape[2], channels):
        stays = problem.out_format == BFLOAT16 or not context.tilizes
        if sticks.dtype == BFLOAT16.storage and stays and sticks.flags.c_contiguous:
            return Image(sticks.reshape(shape), top, left, is_cut=False)
    pixels = np.zeros(shape, problem.out_format.storage if converts else sticks.dtype)
    inside = pixels[:, top : top + rows.input_length, left : left + columns.input_length, : problem.in_channels]
    source = sticks.reshape(inside.shape)
    if not converts:
        inside[...] = source
        return Image(pixels, top, left)

    def convert(piece: tuple[int, slice]) -> None:
        values = source[piece].astype(np.float32, order="C")
        write_exactly(seen(context, values.reshape(-1, problem.in_channels)).reshape(values.shape), inside[piece])

    parts = parts_of(rows.input_length, columns.input_length * problem.in_channels, CONVERTED_TOGETHER)
    context.arithmetic.each(convert, product(range(problem.frame.batch), parts))
    return Image(pixels, top, left)


def gather(context: GatheredInput, image: Image, block: MetBlock, run: Run) -> Array:
    """The activation block [run.outputs, halves * 16] of a run, as the matrix unit sees it."""
    down, across = run.strip.down.axis, run.strip.across[0].axis
    channels, columns = block.channels.stop - block.channels.start, len(block.columns)
    met = []
    for tap in block.taps:
        first = tap.row + run.first * down.stride
        rows = slice(first, first + (run.count - 1) * down.stride + 1, down.stride)
        pixels = slice(tap.column, tap.column + (across.outputs - 1) * across.stride + 1, across.stride)
        met.append(image.pixels[run.image, rows, pixels, block.channels])
    if len(met) == 1 and channels == columns and context.converts_per_pixel:
        flat: Array = met[0].astype(np.float32, copy=False).reshape(run.outputs, -1)
    else:
        filled = channels * len(met) == columns
        gathered = (np.empty if filled else np.zeros)((run.count, across.outputs, columns), np.float32)
        for tap, view in zip(block.taps, met, strict=True):
            gathered[..., tap.target : tap.target + channels] = view
        flat = gathered.reshape(run.outputs, -1)
    if not context.converts_per_pixel:
        return seen(context, flat)
    return flat if image.is_cut else cut(flat, context.arithmetic.operand_masks(context.mode)[0])
