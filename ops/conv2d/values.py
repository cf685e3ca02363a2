"""What a conv2d program computes: the numbers of its output, K block by K block in the plan's order.

The outputs are taken phase by phase (`ops.conv2d.phases`), so that inserted zeros cost nothing, and in runs of rows
that stay in the cache. How a block is multiplied is the caller's choice: exactly as the matrix unit does, or in
floats (`device.fast_product`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from device.activations import apply_activation
from device.fast_product import BlockProduct
from device.formats import BFLOAT16, Array, DataFormat
from device.matrix_unit import MatrixUnitMode
from device.packer import accumulate_l1, add_bias, pack, tilise, unpack
from device.rounding import div_up, round_up
from device.spec import DeviceSpec
from ops.conv2d.blocks import KBlock
from ops.conv2d.phases import OutputPhase, output_phases
from ops.conv2d.work import ConvWork
from ops.halo.frame import Frame, FrameAxis, frame_sources

HALF = 16  # columns of one step of the matrix unit, and of one group of a block float
RUN_ROWS = 2048  # output rows computed at a time


@dataclass(frozen=True, slots=True)
class Tap:
    """One kernel tap of a K block in one phase.

    Attributes:
        row: Input row of the phase's first output (of the padded image).
        column: Input column of it.
        target: First column in the gathered block.
    """

    row: int
    column: int
    target: int


@dataclass(frozen=True, slots=True)
class PhaseBlock:
    """A K block as far as one phase meets it.

    Attributes:
        taps: The taps with inputs.
        channels: Slice of the image's channels.
        half_counts: 16-column halves present of each K tile.
        weights: [halves * 16, columns] float32, as the matrix unit sees them.
        exact_fit: One tap fills the block: no gathering needed.
    """

    taps: tuple[Tap, ...]
    channels: slice
    half_counts: tuple[int, ...]
    weights: Array
    exact_fit: bool


@dataclass(frozen=True, slots=True)
class Image:
    """The input as the matrix unit sees it, with a margin of zeros.

    Attributes:
        pixels: [N, rows, columns, C_pad] float32.
        top: Rows of the margin above.
        left: Columns of the margin at the left.
    """

    pixels: Array
    top: int
    left: int


def conv_values(
    work: ConvWork, sticks: Array, weights: Array, bias: Array | None, spec: DeviceSpec, product: BlockProduct
) -> Array:
    """The output of one conv2d program.

    Args:
        work: The program.
        sticks: [N*H*W, C] the input, in storage of the halo's format or of the input's.
        weights: [rows, O_pad] the prepared weight matrix.
        bias: [O_pad] or None.
        spec: The device, for the ways in which matrix units differ.
        product: How a block is multiplied.

    Returns:
        [N*OH*OW, O] in storage of the output format.
    """
    if work.problem.frame.replicate:
        work, sticks = _written_out(work, sticks)
    problem, options = work.problem, work.options
    rows, columns = problem.frame.rows, problem.frame.columns
    out = problem.out_format
    width = round_up(problem.out_channels, HALF if out.is_block else 1)
    weight_values = unpack(weights[:, :width].astype(np.float32), problem.weight_format, fp32_dest=options.fp32_dest)
    bias_values = (
        None
        if bias is None
        else unpack(bias[:width].astype(np.float32), problem.weight_format, fp32_dest=options.fp32_dest)
    )
    row_phases, column_phases = output_phases(rows), output_phases(columns)
    image = _image(work, sticks, row_phases, column_phases, spec)
    mode = MatrixUnitMode(phases=work.phases, fp32_dest=options.fp32_dest, minus_one_quirk=spec.compute.minus_one_quirk)
    result = np.empty((problem.frame.batch, rows.outputs, columns.outputs, problem.out_channels), out.storage)
    for down in row_phases:
        for across in column_phases:
            blocks = [_phase_block(work, b, down, across, image, weight_values) for b in work.k_blocks]
            for n, first, count in _runs(problem.frame.batch, down, across):
                gather = partial(
                    _gather, work, image.pixels[n], down=down, across=across, first=first, count=count, spec=spec
                )
                dst = _multiply(work, gather, blocks, bias_values, mode, product)
                if dst is None:
                    dst = np.zeros((count * across.count, width), np.float32)
                values = _finish(work, dst, bias_values, fp32_dest=options.fp32_dest)
                place = result[n, down.first + first * down.distance :: down.distance, across.first :: across.distance]
                _store(values.reshape(count, across.count, width)[..., : problem.out_channels], out, place[:count])
    return result.reshape(-1, problem.out_channels)


def _written_out(work: ConvWork, sticks: Array) -> tuple[ConvWork, Array]:
    """The same convolution over its frame written out in full, where zeros are not all there is around the image."""
    frame = work.problem.frame
    sources = frame_sources(frame, 0, frame.sticks)
    filled = np.where((sources >= 0)[:, None], sticks[np.maximum(sources, 0)], sticks.dtype.type(0))
    rows, columns = (
        FrameAxis(
            input_length=axis.length, before=0, after=0, kernel=axis.kernel, dilation=axis.dilation, step=axis.step
        )
        for axis in (frame.rows, frame.columns)
    )
    dense = Frame(batch=frame.batch, rows=rows, columns=columns)
    return replace(work, problem=replace(work.problem, frame=dense)), filled


def _runs(batch: int, down: OutputPhase, across: OutputPhase) -> Iterator[tuple[int, int, int]]:
    """Image, first phase row and phase rows of every run."""
    step = max(1, RUN_ROWS // max(across.count, 1))
    for n in range(batch):
        for first in range(0, down.count, step):
            yield n, first, min(step, down.count - first)


def _image(
    work: ConvWork, sticks: Array, down: tuple[OutputPhase, ...], across: tuple[OutputPhase, ...], spec: DeviceSpec
) -> Image:
    """Convert the input as tilise and unpack do, and put zeros around it where taps reach outside."""
    problem = work.problem
    height, width = problem.frame.rows.input_length, problem.frame.columns.input_length
    top, bottom = _margins(down, height)
    left, right = _margins(across, width)
    padded = work.layout.shards.in_channels
    values = sticks.astype(np.float32)
    if _converts_per_pixel(work):
        values = _seen(work, values, spec)
    pixels = values.reshape(problem.frame.batch, height, width, problem.in_channels)
    margins = ((0, 0), (top, bottom), (left, right), (0, padded - problem.in_channels))
    if any(before or after for before, after in margins):
        pixels = np.pad(pixels, margins)
    return Image(pixels, top, left)


def _margins(phases: tuple[OutputPhase, ...], length: int) -> tuple[int, int]:
    first = [tap.start for phase in phases for tap in phase.taps]
    last = [tap.start + (phase.count - 1) * phase.stride for phase in phases for tap in phase.taps]
    return max(0, -min(first, default=0)), max(0, max(last, default=0) - (length - 1))


def _converts_per_pixel(work: ConvWork) -> bool:
    """Whether shared exponents never span two pixels, so that the input can be converted once."""
    whole = all(block.channels % HALF == 0 for block in work.k_blocks)
    return not work.problem.out_format.is_block or (whole and work.problem.in_channels % HALF == 0)


def _seen(work: ConvWork, values: Array, spec: DeviceSpec) -> Array:
    """Activations as the matrix unit sees them: tilised into the output format, then unpacked."""
    problem, fp32_dest = work.problem, work.options.fp32_dest
    # A block of one tile column is not worth the fast tilise, whatever it keeps.
    keeps_tf32 = spec.compute.fast_tilise_keeps_tf32 or work.layout.blocks.act_w_tiles == 1
    tilised = tilise(values, problem.act_format, problem.out_format, fp32_dest=fp32_dest, keeps_tf32=keeps_tf32)
    return unpack(tilised, problem.out_format, fp32_dest=fp32_dest)


def _phase_block(
    work: ConvWork, block: KBlock, down: OutputPhase, across: OutputPhase, image: Image, weights: Array
) -> PhaseBlock:
    """Which inputs and weights of a K block one phase meets, in whole 16-column halves."""
    kernel_columns = work.problem.kernel[1]
    met = [
        ((i.tap - block.kernel_rows.start) * kernel_columns + j.tap, i.start + image.top, j.start + image.left)
        for i in down.taps
        if i.tap in block.kernel_rows
        for j in across.taps
    ]
    starts = [tap * block.channels for tap, _, _ in met]
    halves = sorted({h for s in starts for h in range(s // HALF, div_up(s + block.channels, HALF))})
    target = {h: n * HALF for n, h in enumerate(halves)}
    taps = tuple(
        Tap(row, column, target[s // HALF] + s % HALF) for s, (_, row, column) in zip(starts, met, strict=True)
    )
    tiles = [h // 2 for h in halves]
    counts = tuple(tiles.count(t) for t in sorted(set(tiles)))
    if block.channels % HALF:
        rows = [slice(block.weight_row + h * HALF, block.weight_row + (h + 1) * HALF) for h in halves]
    else:
        rows = [
            slice(r, r + block.channels) for r in (block.weight_row + tap * block.weight_stride for tap, _, _ in met)
        ]
    gathered = weights[rows[0]] if len(rows) == 1 else np.concatenate([weights[:0], *(weights[r] for r in rows)])
    channels = slice(block.first_channel, block.first_channel + block.channels)
    return PhaseBlock(taps, channels, counts, gathered, len(taps) == 1 and block.channels % HALF == 0)


def _gather(
    work: ConvWork,
    image: Array,
    block: PhaseBlock,
    *,
    down: OutputPhase,
    across: OutputPhase,
    first: int,
    count: int,
    spec: DeviceSpec,
) -> Array:
    """The activation block [count * across.count, halves * 16] of a run of phase rows, as the matrix unit sees it."""
    views = [
        image[
            tap.row + first * down.stride : tap.row + (first + count - 1) * down.stride + 1 : down.stride,
            tap.column : tap.column + (across.count - 1) * across.stride + 1 : across.stride,
            block.channels,
        ]
        for tap in block.taps
    ]
    rows = count * across.count
    if block.exact_fit:
        return views[0].reshape(rows, -1)
    gathered = np.zeros((count, across.count, HALF * sum(block.half_counts)), np.float32)
    for tap, view in zip(block.taps, views, strict=True):
        gathered[..., tap.target : tap.target + view.shape[-1]] = view
    flat = gathered.reshape(rows, -1)
    return flat if _converts_per_pixel(work) else _seen(work, flat, spec)


def _multiply(
    work: ConvWork,
    gather: Callable[[PhaseBlock], Array],
    blocks: list[PhaseBlock],
    bias: Array | None,
    mode: MatrixUnitMode,
    product: BlockProduct,
) -> Array | None:
    """All K blocks of a run of rows, with the trips through the packer between them (exact values, sections 4 and 5).

    A block that the run does not meet leaves partial sums as they are: a trip through the packer changes nothing the
    second time.

    Returns:
        float32 [rows, columns], Dst before the final pack; None if it is zero.
    """
    partials, fp32_dest = work.partials_format, mode.fp32_dest
    packed: Array | None = None
    for block in blocks:
        final = block is blocks[-1] and bias is None
        reloads = packed is not None and (final or not work.l1_accumulation)
        dst = unpack(packed, partials, fp32_dest=fp32_dest) if packed is not None and reloads else None
        if block.taps:
            dst = product(gather(block), block.weights, dst, half_counts=block.half_counts, mode=mode)
        if final:
            return dst
        if block.taps and dst is not None:
            repacked = pack(dst, partials, fp32_dest=fp32_dest)
            packed = (
                accumulate_l1(packed, repacked, partials) if packed is not None and work.l1_accumulation else repacked
            )
    return None if packed is None else unpack(packed, partials, fp32_dest=fp32_dest)


def _finish(work: ConvWork, dst: Array, bias: Array | None, *, fp32_dest: bool) -> Array:
    """Bias, activation and the final pack; a ROW_MAJOR output makes one more trip through partials and Dst."""
    if bias is not None:
        dst = add_bias(dst, bias, fp32_dest=fp32_dest)
    relu = work.activation is not None and work.activation[0] == "relu"
    if work.activation is not None and not relu:
        dst = apply_activation(dst, *work.activation, fp32_dest=fp32_dest)
    out = work.problem.out_format
    if work.options.untilize_out:
        dst = unpack(pack(dst, work.partials_format, fp32_dest=fp32_dest), work.partials_format, fp32_dest=fp32_dest)
    return pack(dst, out, fp32_dest=fp32_dest, relu=relu)


def _store(values: Array, out: DataFormat, place: Array) -> None:
    """Write float32 values, already rounded to the format, into a strided part of the output."""
    if out.storage == BFLOAT16.storage:
        place.view(np.uint16)[...] = values.view(np.uint16)[..., 1::2]
    else:
        place[...] = values
