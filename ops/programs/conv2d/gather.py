"""What a convolution multiplies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, product
from typing import Final, TypeAlias

import numpy as np

from device.host.pieces import parts_of
from device.host.threads import Shared
from device.matrix_unit.arithmetic import Arithmetic, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT16, Array, Integers, div_up, to_read, write_exactly
from device.numbers.vector_unit import VectorUnitMode
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.op import Conv2dOp, KBlock, weight_rows_of
from ops.window import OutputPhase, PaddedAxis, output_phases, phase_margins

CONVERTED_TOGETHER = 1 << 18  # numbers of an image; with fewer, threads wait for the interpreter
HALF = 16  # columns of one step of the matrix unit, and of one group of a block float


@dataclass(frozen=True, slots=True)
class GatheredInput:
    """A convolution and how its numbers are read."""

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
    def vector_unit(self) -> VectorUnitMode:
        """How the vector unit is set up."""
        return VectorUnitMode(fp32_dest=self.op.options.fp32_dest, reciprocal_table=self.spec.compute.reciprocal_table)

    @property
    def converts_per_pixel(self) -> bool:
        """Whether no shared exponent spans two pixels, so that the input can be converted before it is gathered."""
        problem = self.op.problem
        whole = all(block.channels % HALF == 0 for block in self.op.k_blocks) and problem.in_channels % HALF == 0
        return not problem.out_format.is_block or whole

    @property
    def tilizes(self) -> bool:
        """Whether tilizing is more than another order: the numbers may change."""
        problem = self.op.problem
        return not (problem.out_format.is_block and problem.in_format == problem.out_format and self.converts_per_pixel)


@dataclass(frozen=True, slots=True)
class Image:
    """The input as the matrix unit sees it, with a margin of zeros where taps reach outside."""

    pixels: Array  # [N, rows, columns, C_pad], bfloat16 where that holds them exactly, else float32
    top: int  # Rows of the margin above
    left: int  # Columns of the margin at the left
    is_cut: bool = True  # Whether pixels have no bits but those that the fidelity phases multiply

    @property
    def corner(self) -> tuple[int, int]:
        """Row and column of the first input."""
        return self.top, self.left


@dataclass(frozen=True, slots=True)
class Tap:
    """One kernel tap of a K block in one output phase."""

    row: int  # Input row (with the margin) of the output phase's first output
    column: int
    target: int  # First column in the gathered block


@dataclass(frozen=True, slots=True)
class MetBlock:
    """The part of a K block that an output phase meets."""

    taps: tuple[Tap, ...]  # The taps that the phase meets; none if it does not meet the block
    channels: slice
    half_counts: tuple[int, ...]  # Present halves of each K tile
    columns: Integers  # int64 [halves * 16] which columns of the block these are

    @property
    def is_one_tap(self) -> bool:
        """Whether the channels of one tap fill the block, so that nothing has to be gathered."""
        return len(self.taps) == 1 and (self.channels.stop - self.channels.start) == len(self.columns)


@dataclass(frozen=True, slots=True)
class Strip:
    """One output phase of the rows, with one of the columns or more that meet the same inputs."""

    down: OutputPhase  # The output phase of the rows
    across: tuple[OutputPhase, ...]  # The output phases of the columns, in their order
    # The K blocks as each of the phases meets them; they differ only in their columns
    met: tuple[tuple[MetBlock, ...], ...]

    @property
    def blocks(self) -> tuple[MetBlock, ...]:
        """The K blocks as the first output phase of the columns meets them."""
        return self.met[0]

    @property
    def width(self) -> int:
        """Outputs of a row, in each of the phases."""
        return self.across[0].axis.outputs

    def by_block(self, operand: Array) -> list[Array]:
        """The weights of all K blocks [columns of the blocks, columns], block by block."""
        ends = list(accumulate((len(block.columns) for block in self.blocks), initial=0))
        return [operand[end - len(block.columns) : end] for end, block in zip(ends[1:], self.blocks, strict=True)]

    def place(self, result: Array, image: int, first: int, count: int) -> Array:
        """Where outputs of some rows belong in [N, OH, OW, O]: a view [count, columns, phases, O]."""
        rows = result[image, self.down.axis.places][first : first + count]
        if len(self.across) == 1:
            return rows[:, self.across[0].axis.places, None]
        begin = self.across[0].axis.output_offset
        part = rows[:, begin : begin + self.width * len(self.across)]
        return part.reshape(count, self.width, len(self.across), result.shape[-1])


@dataclass(frozen=True, slots=True)
class Run:
    """Output rows of a strip that are computed together."""

    strip: Strip
    image: int
    first: int  # First row, among the rows of the output phase
    count: int  # How many rows

    @property
    def outputs(self) -> int:
        """Outputs of the run, in each of the phases of its columns."""
        return self.count * self.strip.width

    def place(self, result: Array) -> Array:
        """Where the run's outputs belong in [N, OH, OW, O]: a view [count, columns, phases, O]."""
        return self.strip.place(result, self.image, self.first, self.count)


def runs(batch: int, strip: Strip, outputs: int) -> Iterator[Run]:
    """Runs of about equal size, at most so many outputs in each phase of the columns, at least a row, of all images."""
    rows = strip.down.axis.outputs
    step = div_up(rows, div_up(rows, max(1, outputs // strip.width)))
    for image in range(batch):
        for first in range(0, rows, step):
            yield Run(strip, image, first, min(step, rows - first))


def strips(blocks: Sequence[KBlock], down: OutputPhase, columns: PaddedAxis, corner: tuple[int, int]) -> list[Strip]:
    """All outputs of an output phase of the rows; ``corner`` is the place of the first input in the image."""
    merged: list[Strip] = []
    for across in output_phases(columns):
        met = met_blocks(blocks, columns.kernel, down, across, corner)
        if merged and _together(merged[-1], across, met):
            last = merged.pop()
            merged.append(Strip(down, (*last.across, across), (*last.met, met)))
        else:
            merged.append(Strip(down, (across,), (met,)))
    return [part for strip in merged for part in _with_a_view(strip)]


def _together(strip: Strip, across: OutputPhase, met: Sequence[MetBlock]) -> bool:
    """Whether another phase of the columns meets the same inputs, at the same places of the gathered blocks."""
    last, new = strip.across[-1].axis, across.axis
    return (last.outputs, last.stride, last.output_stride) == (new.outputs, new.stride, new.output_stride) and all(
        (mine.taps, mine.half_counts) == (theirs.taps, theirs.half_counts)
        for mine, theirs in zip(strip.blocks, met, strict=True)
    )


def _with_a_view(strip: Strip) -> list[Strip]:
    """A strip whose outputs lie side by side in the result; otherwise a strip for each of its phases."""
    firsts = [across.axis.output_offset for across in strip.across]
    if len(firsts) == 1 or firsts == list(range(firsts[0], firsts[0] + strip.across[0].axis.output_stride)):
        return [strip]
    return [Strip(strip.down, (across,), (met,)) for across, met in zip(strip.across, strip.met, strict=True)]


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
    """The input [N*H*W, C] with a margin of zeros, converted if one conversion serves all taps, some rows at a time.

    With `cut_later` the multiplication cuts the operands. The image is then the input itself if nothing else happens to
    it and no output meets more than one tap, for which it would be cut again.
    """
    problem, converts = context.op.problem, context.converts_per_pixel
    rows, columns = problem.frame.rows, problem.frame.columns
    (top, bottom, few_down), (left, right, few_across) = map(phase_margins, (rows, columns))
    channels = context.op.layout.shards.in_channels
    height, width = top + rows.input_length + bottom, left + columns.input_length + right
    if cut_later and few_down and few_across and sticks.size == problem.frame.batch * height * width * channels:
        stays = problem.out_format == BFLOAT16 or not context.tilizes
        if sticks.dtype == BFLOAT16.storage and stays and sticks.flags.c_contiguous:
            return Image(sticks.reshape(-1, height, width, channels), top, left, is_cut=False)
    dtype = problem.out_format.storage if converts else sticks.dtype
    pixels = np.zeros((problem.frame.batch, height, width, channels), dtype)
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


def met_blocks(
    blocks: Sequence[KBlock], kernel_columns: int, down: OutputPhase, across: OutputPhase, corner: tuple[int, int]
) -> tuple[MetBlock, ...]:
    """Which inputs and weights of K blocks one output phase meets."""
    known: dict[tuple[range, int], MetBlock] = {}  # blocks that differ in their first channel alone
    met = []
    for block in blocks:
        key = block.kernel_rows, block.channels
        if key not in known:
            known[key] = _met_block(block, kernel_columns, down, across, corner)
        met_block, channels = known[key], slice(block.first_channel, block.first_channel + block.channels)
        met.append(MetBlock(met_block.taps, channels, met_block.half_counts, met_block.columns))
    return tuple(met)


def _met_block(
    block: KBlock, kernel_columns: int, down: OutputPhase, across: OutputPhase, corner: tuple[int, int]
) -> MetBlock:
    """Which inputs and columns of a K block one output phase meets, in whole 16-column halves."""
    met = [
        ((i - block.kernel_rows.start) * kernel_columns + j, row + corner[0], column + corner[1])
        for i, row in zip(down.taps, down.starts, strict=True)
        if i in block.kernel_rows
        for j, column in zip(across.taps, across.starts, strict=True)
    ]
    starts = [tap * block.channels for tap, _, _ in met]
    halves = sorted({h for s in starts for h in range(s // HALF, div_up(s + block.channels, HALF))})
    target = {h: n * HALF for n, h in enumerate(halves)}
    taps = tuple(
        Tap(row, column, target[s // HALF] + s % HALF) for s, (_, row, column) in zip(starts, met, strict=True)
    )
    tiles = [h // 2 for h in halves]
    counts = tuple(tiles.count(t) for t in sorted(set(tiles)))
    columns = (HALF * np.array(halves, np.int64)[:, None] + np.arange(HALF)).ravel()
    channels = slice(block.first_channel, block.first_channel + block.channels)
    return MetBlock(taps, channels, counts, columns)


def views(image: Image, block: MetBlock, run: Run) -> list[Array]:
    """The inputs in the image that each tap of a block meets, [run.count, outputs of a row, channels of the block]."""
    pixels, down, across = image.pixels[run.image], run.strip.down.axis, run.strip.across[0].axis
    arrays = []
    for tap in block.taps:
        row = tap.row + run.first * down.stride
        rows = slice(row, row + (run.count - 1) * down.stride + 1, down.stride)
        columns = slice(tap.column, tap.column + (across.outputs - 1) * across.stride + 1, across.stride)
        arrays.append(pixels[rows, columns, block.channels])
    return arrays


def gather(context: GatheredInput, image: Image, block: MetBlock, run: Run) -> Array:
    """The activation block [run.outputs, halves * 16] of a run, as the matrix unit sees it."""
    across, met = run.strip.across[0].axis, views(image, block, run)
    if block.is_one_tap and context.converts_per_pixel:
        flat: Array = met[0].astype(np.float32, copy=False).reshape(run.outputs, -1)
    else:
        filled = sum(view.shape[-1] for view in met) == len(block.columns)
        gathered = (np.empty if filled else np.zeros)((run.count, across.outputs, len(block.columns)), np.float32)
        for tap, view in zip(block.taps, met, strict=True):
            gathered[..., tap.target : tap.target + view.shape[-1]] = view
        flat = gathered.reshape(run.outputs, -1)
    if not context.converts_per_pixel:
        return seen(context, flat)
    return flat if image.is_cut else cut(flat, context.arithmetic.operand_masks(context.mode)[0])


MOST_KEPT: Final = 64  # convolutions whose strips are kept

WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStrip:
    """A strip and the weights it is multiplied by."""

    strip: Strip
    # For each of its output phases of the columns, the row of the prepared matrix under each column of the gathered
    # blocks (`rows_in_place`)
    rows: tuple[WeightRows, ...]
    depth: int  # Columns of all blocks together
    met: tuple[MetBlock, ...]  # Those of its K blocks that meet inputs


@lru_cache(MOST_KEPT)
def met_pixels(strip: WeightedStrip, row: int, pixel: int) -> tuple[Integers, Integers]:
    """Taps and blocks of `MetPixels` in an image with `row` elements in a row and `pixel` elements in a pixel.

    Taps that are neighbors both in the image and in the K block are joined.
    """
    taps, blocks = list[list[int]](), list[tuple[int, ...]]()
    for block in strip.met:
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


@lru_cache(MOST_KEPT)
def weighted_strips(
    blocks: tuple[KBlock, ...], rows: PaddedAxis, columns: PaddedAxis, corner: tuple[int, int], matrix_rows: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they depend on its geometry alone and are cached.

    `corner` is the place of the first input in the image, `matrix_rows` the rows of the prepared weights.
    """
    kernel = rows.kernel, columns.kernel
    return tuple(
        _weighted(blocks, strip, kernel, matrix_rows)
        for down in output_phases(rows)
        for strip in strips(blocks, down, columns, corner)
    )


def _weighted(blocks: Sequence[KBlock], strip: Strip, kernel: tuple[int, int], matrix_rows: int) -> WeightedStrip:
    """A strip with the weight rows under the columns of all blocks, as each of its output phases meets them."""
    phase_rows = [weight_rows_of(blocks, [met_block.columns for met_block in met], kernel) for met in strip.met]
    for rows in phase_rows:
        rows.flags.writeable = False
    return WeightedStrip(
        strip,
        tuple(rows_in_place(rows, matrix_rows) for rows in phase_rows),
        sum(len(block.columns) for block in strip.blocks),
        tuple(block for block in strip.blocks if block.taps),
    )


def rows_in_place(rows: Integers, end: int) -> WeightRows:
    """A slice if the rows follow each other in a matrix of ``end`` rows, else the rows as they are."""
    follow = len(rows) > 0 and rows[0] >= 0 and rows[-1] < end and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


@dataclass(frozen=True, slots=True)
class Piece:
    """Outputs that are computed together."""

    run: Run  # Rows of a strip
    strip: WeightedStrip  # The strip, with what it is multiplied by
    channels: slice
    operands: Shared[list[Array]]  # The weights of all K blocks for these channels and for others
    part: int  # Which of the operands is for these channels
