"""What a conv2d program computes: the numbers of its output, K block by K block in the plan's order.

How a block is multiplied and what is rounded where is the arithmetic's choice (`arithmetic`): exactly as the
device does, or fast in floats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.whole_runs import WholeRun, column_parts
from device.numbers.activations import apply_activation
from device.numbers.formats import BFLOAT16, Array, DataFormat
from device.numbers.integers import round_up
from device.spec.device_spec import DeviceSpec
from ops.frame.axis import FrameAxis, output_phases
from ops.frame.frame import Frame, frame_sources
from ops.meaning import ValuesReading, given, matrix, row
from ops.programs.conv2d.blocks import weight_rows_of
from ops.programs.conv2d.gather import (
    HALF,
    Image,
    Reading,
    Run,
    Strip,
    gather,
    gathered_weights,
    prepare_image,
    runs,
    strips,
)
from ops.programs.conv2d.whole_runs import compute_whole, is_matrix_product, whole_run_of
from ops.programs.conv2d.work import ConvWork


def convolved(work: ConvWork, inputs: Sequence[Array | None], reading: ValuesReading) -> Array:
    """The output [1, 1, N*OH*OW, O] of one conv2d program of sticks, weights and, if there is one, a bias."""
    sticks, weights, *bias = map(given, inputs)
    added = row(bias[0]) if bias else None
    out = conv_values(work, matrix(sticks), matrix(weights), added, reading.spec, reading.arithmetic)
    return out.reshape(1, 1, *out.shape)


def conv_values(
    work: ConvWork, sticks: Array, weights: Array, bias: Array | None, spec: DeviceSpec, arithmetic: Arithmetic
) -> Array:
    """The output of one conv2d program.

    Args:
        work: The program.
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
    reading = Reading(work, arithmetic, spec)
    convolve_into(result, reading, prepare_image(reading, sticks), weights, bias, out)
    return result.reshape(-1, work.problem.out_channels)


def convolve_into(
    result: Array, reading: Reading, image: Image, weights: Array, bias: Array | None, made: DataFormat
) -> None:
    """Compute all outputs of a frame that is its image with zeros around it and between, each in its place.

    Args:
        result: [N, rows, columns, channels] in storage of ``made``, O channels or those that fill the last group of a
            block float; the axes of the frame say which of it are its outputs.
        reading: The convolution.
        image: The input, with zeros as far as any window reaches.
        weights: The prepared weight matrix.
        bias: [O_pad] or None.
        made: What a finished block is packed to.
    """
    arithmetic, problem, out = reading.arithmetic, reading.work.problem, reading.work.problem.out_format
    width = round_up(problem.out_channels, HALF if out.is_block else 1)
    row = None if bias is None else _unpacked(reading, _filled(bias[:width].astype(np.float32), width))
    every = [strip for down in output_phases(problem.frame.rows) for strip in strips(reading, down, image)]
    whole = whole_run_of(reading, made, result.size)
    shares = [share for strip in every for share in _shares(reading, strip, width, whole)]
    operands = list[Array | None]([None]) * len(shares)

    def prepare(number: int) -> None:
        operands[number] = _operand(reading, weights, shares[number])

    def compute(piece: tuple[int, Run]) -> None:
        number, run = piece
        share, operand = shares[number], operands[number]
        if operand is None:  # nobody else needs it
            operand = _operand(reading, weights, share)
        added = None if row is None else np.tile(row[share.channels], len(share.strip.across[share.phases]))
        place = run.place(result)[:, :, share.phases, share.channels]
        if share.whole is not None:
            compute_whole(share.whole, reading, image, run, operand, added, result, place)
        else:
            _compute_stepwise(reading, image, run, operand, added, place, made)

    dealt = [list(runs(problem.frame.batch, one.strip, arithmetic.run_elements // one.columns)) for one in shares]
    arithmetic.each(prepare, [number for number, several in enumerate(dealt) if len(several) > 1])
    arithmetic.each(compute, [(number, run) for number, several in enumerate(dealt) for run in several])


@dataclass(frozen=True, slots=True)
class _Share:
    """Outputs of a strip that are computed with the same weights.

    Attributes:
        strip: The strip.
        rows: For each of its phases the row of the weight matrix under each column of the gathered blocks.
        phases: Which of the phases.
        channels: Which channels of theirs.
        whole: Who computes runs of them at once; None if they go step by step.
    """

    strip: Strip
    rows: tuple[Array, ...]
    phases: slice
    channels: slice
    whole: WholeRun | None

    @property
    def columns(self) -> int:
        """Columns of the weights."""
        return len(self.strip.across[self.phases]) * int(self.channels.stop - self.channels.start)


def _shares(reading: Reading, strip: Strip, width: int, whole: WholeRun | None) -> Iterator[_Share]:
    """A strip of so many channels, cut where its products at once would not stay in the cache."""
    work, phases = reading.work, len(strip.across)
    rows = tuple(weight_rows_of(work.k_blocks, [one.columns for one in met], work.problem.kernel) for met in strip.met)
    if whole is None or not is_matrix_product(strip, phases * width):
        yield _Share(strip, rows, slice(0, phases), slice(0, width), None)
        return
    for some, channels in column_parts(phases, width, sum(1 for block in strip.blocks if block.taps)):
        yield _Share(strip, rows, some, channels, whole)


def _operand(reading: Reading, weights: Array, share: _Share) -> Array:
    """The weights of all K blocks as a share multiplies with them: float32 [columns of the blocks, columns]."""
    seen = _unpacked(reading, gathered_weights(weights, share.channels, share.rows[share.phases]))
    return reading.arithmetic.weight_operand(seen, reading.mode)


def _compute_stepwise(
    reading: Reading, image: Image, run: Run, operand: Array, bias: Array | None, place: Array, made: DataFormat
) -> None:
    """All outputs of a run, one step of all of them after the other; arguments as of `compute_whole`."""
    dst = _multiply(reading, image, run, operand, has_bias=bias is not None)
    if dst is None:
        dst = np.zeros((run.outputs, operand.shape[1]), np.float32)
    values = _finish(reading, dst, bias, made).reshape(*place.shape[:-1], -1)
    _store(values[..., : place.shape[-1]], made, place)


def _unpacked(reading: Reading, values: Array) -> Array:
    """Weights or bias, float32, as the matrix unit reads them."""
    work = reading.work
    return reading.arithmetic.unpack(values, work.problem.weight_format, fp32_dest=work.options.fp32_dest)


def _filled(bias: Array, width: int) -> Array:
    """A bias with zeros behind it, where it was prepared for fewer columns."""
    return np.pad(bias, (0, width - len(bias))) if len(bias) < width else bias


def _written_out(work: ConvWork, sticks: Array) -> tuple[ConvWork, Array]:
    """The same convolution over its frame written out in full, where it is more than the image and zeros around it."""
    frame = work.problem.frame
    sources = frame_sources(frame, 0, frame.sticks)
    filled = np.where((sources >= 0)[:, None], sticks[np.maximum(sources, 0)], sticks.dtype.type(0))
    rows, columns = (
        FrameAxis(input_length=axis.length, before=0, after=0, taps=axis.taps, spacing=axis.spacing, step=axis.step)
        for axis in (frame.rows, frame.columns)
    )
    dense = Frame(batch=frame.batch, rows=rows, columns=columns)
    return replace(work, problem=replace(work.problem, frame=dense)), filled


def _multiply(reading: Reading, image: Image, run: Run, operand: Array, *, has_bias: bool) -> Array | None:
    """All K blocks of a run, with the trips through the packer between them (docs/values.md, Partial sums).

    A block that the run does not meet leaves partial sums as they are: a trip through the packer changes nothing the
    second time.

    Args:
        reading: The convolution.
        image: The input.
        run: The outputs.
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


def _finish(reading: Reading, dst: Array, bias: Array | None, made: DataFormat) -> Array:
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


def packed(values: Array, out: DataFormat) -> Array:
    """float32 values, already rounded to the format, in its storage."""
    made = np.empty(values.shape, out.storage)
    _store(np.ascontiguousarray(values), out, made)
    return made


def _store(values: Array, out: DataFormat, place: Array) -> None:
    """Write float32 values, already rounded to the format, into a strided part of the output."""
    if out.storage == BFLOAT16.storage:
        place.view(np.uint16)[...] = values.view(np.uint16)[..., 1::2]
    else:
        place[...] = values
