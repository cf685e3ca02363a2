"""The partition of the output phases of a convolution as one program: blocks, K blocks, buffers, reader lists.

Cores and shards are those of the convolution over the frame with inserted zeros, so the output has the same memory. A
core computes the outputs of its own shard phase by phase; all cores process the same number of blocks, which the core
with most windows of a phase determines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Final, TypeAlias

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, Integers, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import tile_buffer
from ops.programs.conv2d.op import Conv2dOp, ConvBuffers, ConvOp, KBlock, buffer_requests, k_block_order
from ops.programs.conv2d.partition import ConvOptions, ConvPartition, ConvProblem, k_block_tiles, plan_blocks
from ops.programs.conv2d.weights import WeightsLayout
from ops.window import OutputPhase, PaddedInput, output_phases, phase_outputs, tap_classes

Taps: TypeAlias = tuple[range, range]  # down and across, of those of the frame

HEADER_WORDS: Final = 2  # of a block: how many segments follow
SEGMENT_WORDS: Final = 3  # first stick, last stick, row of the output shard that belongs to the first


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePart:
    """Output phases that meet the same inputs, computed together."""

    # The micro-op over their windows, as many as the core with most of them has, in whole tiles. A core's output is as
    # wide as all its phases together, one beside the other. Without taps it has no K blocks, and gives the bias or
    # zeros.
    conv: Conv2dOp
    frames: tuple[PaddedInput, ...]  # The windows of each phase and the places of its outputs; phases row by row
    weights: tuple[range, ...]  # Rows of the prepared weights that are the matrix of each phase
    beside: int  # Phases of a row; their sticks of one window are adjacent in the output


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseConv2dOp(ConvOp):
    """One program of output phases, of a call laid out as a convolution over the frame with inserted zeros."""

    parts: tuple[PhasePart, ...]  # All output phases, in the order in which they are computed


def sticks_format(problem: ConvProblem) -> DataFormat:
    """Format of finished sticks until they are copied to the output: float32 if the output is, otherwise bfloat16."""
    return FLOAT32 if problem.out_format == FLOAT32 else BFLOAT16


def phase_buffer_requests(phases: Sequence[ConvBuffers], layout: ConvPartition) -> list[CircularBuffer]:
    """The circular buffers of a program of output phases."""
    sticks, tiles = sticks_format(layout.problem), layout.shards.out_row_tiles * layout.shards.out_col_tiles
    largest: dict[str, CircularBuffer] = {}
    for conv in phases:
        for request in buffer_requests(conv):
            known = largest.get(request.name, request)
            largest[request.name] = max(known, request, key=lambda buffer: buffer.size_bytes)
    out = largest["out"]
    largest["out"] = out._replace(size_bytes=tiles * out.page_bytes)
    if bias := largest.get("bias"):  # every phase of a group adds the same
        largest["bias"] = bias._replace(size_bytes=layout.shards.out_col_tiles * bias.page_bytes)
    block = max(conv.layout.blocks.act_h_tiles * conv.layout.shards.out_col_tiles for conv in phases)
    own = [tile_buffer("out_sticks", block, sticks, out.cores)]
    if not layout.options.untilize_out:
        own.append(tile_buffer("out_rows", tiles, sticks, out.cores))
    place = list(largest).index("out")
    requests = list(largest.values())
    return [*requests[:place], *own, *requests[place:]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseGroup:
    """Output phases that meet the same inputs, computed together."""

    taps: tuple[Taps, ...]  # Taps of each phase; phases row by row
    frames: tuple[PaddedInput, ...]  # Windows of each phase, and the positions of its outputs
    beside: int  # Phases of a row
    # The dense convolution, with the windows of the phase that has most; cores and shards are the call's, but that an
    # output shard has other rows, and is as wide as all phases together
    layout: ConvPartition

    @property
    def has_taps(self) -> bool:
        """Whether the group meets inputs: a kernel smaller than the stride leaves outputs without inputs."""
        return all(self.layout.problem.kernel)

    @property
    def kernel(self) -> tuple[int, int]:
        """(kh, kw) that blocks are cut for."""
        return _blocks_kernel(self.layout.problem)

    @property
    def k_blocks(self) -> tuple[KBlock, ...]:
        """The K blocks; none without taps."""
        return k_block_order(self.layout, self.kernel) if self.has_taps else ()


def _blocks_kernel(problem: ConvProblem) -> tuple[int, int]:
    return problem.kernel if all(problem.kernel) else (1, 1)


def phase_options(options: ConvOptions, frame: PaddedInput, kernel: tuple[int, int]) -> ConvOptions:
    """The caller's choices for the convolution of a phase.

    The convolution writes row-major sticks; one processor reads activations, and the other reads weights. A whole
    window is one K block if it is no longer than a kernel row of the frame, so weights have no more blocks than there.
    """
    whole = kernel[0] * kernel[1] <= frame.columns.kernel
    return replace(options, untilize_out=True, activation_reuse=False, force_split_reader=False, whole_windows=whole)


def partition_phases(layout: ConvPartition, spec: DeviceSpec, *, joins_rows: bool) -> tuple[PhaseGroup, ...]:
    """The output phases of a convolution that is partitioned over its frame with inserted zeros.

    Phases with the same inputs are one group: inputs are gathered, tilized and sent once for the whole group, and
    finished sticks of adjacent phases are also adjacent in the output. Raises DeviceError if no valid blocks exist.
    """
    frame = layout.problem.frame
    down, across = (output_phases(axis, whole=True) for axis in (frame.rows, frame.columns))
    rows = [list(same) for _, same in groupby(down, _windows)] if joins_rows else [[phase] for phase in down]
    columns = [list(same) for _, same in groupby(across, _windows)]
    return tuple(_group(layout, spec, above, beside) for above, beside in product(rows, columns))


def _windows(phase: OutputPhase) -> tuple[int, int, int]:
    """The values that decide which inputs an output of a phase meets."""
    return phase.axis.start, phase.axis.dilation, phase.axis.kernel


def _group(layout: ConvPartition, spec: DeviceSpec, above: list[OutputPhase], beside: list[OutputPhase]) -> PhaseGroup:
    """A group of the products of phases down and across, with rows and blocks of its own."""
    phases, problem = list(product(above, beside)), layout.problem
    frames = tuple(replace(problem.frame, rows=down.axis, columns=across.axis) for down, across in phases)
    dense = replace(problem, frame=frames[0])
    options = phase_options(layout.options, problem.frame, dense.kernel)
    begins, ends = group_windows(frames, layout)
    shards = replace(
        layout.shards,
        out_rows=round_up(int((ends - begins).max()), TILE),
        out_channels=layout.shards.out_channels * len(phases),
        out_width=layout.shards.out_width * len(phases),
    )
    blocks = plan_blocks(layout.config, shards, _blocks_kernel(dense), options, spec)
    own = replace(layout, problem=dense, options=options, shards=shards, blocks=blocks, split_reader=False)
    taps = tuple((down.taps, across.taps) for down, across in phases)
    return PhaseGroup(taps=taps, frames=frames, beside=len(beside), layout=own)


def group_windows(frames: Sequence[PaddedInput], layout: ConvPartition) -> tuple[Integers, Integers]:
    """First and last + 1 window of a group of phases on each core: all windows that any phase needs.

    `layout` is the partition of the call. Windows are numbered as in the first phase, which has most rows and columns.
    """
    frame, cores, most = layout.problem.frame, layout.config.nhw_cores, frames[0]
    begins, ends = np.full(cores, frame.outputs), np.zeros(cores, np.int64)
    for phase in frames:
        first, stop = phase_outputs(frame, phase, output_rows=layout.shards.out_rows, cores=cores)
        line, column = np.divmod(np.array([first, stop - 1]), phase.columns.outputs)
        image, row = np.divmod(line, phase.rows.outputs)
        low, high = (image * most.rows.outputs + row) * most.columns.outputs + column
        begins = np.where(stop > first, np.minimum(begins, low), begins)
        ends = np.where(stop > first, np.maximum(ends, high + 1), ends)
    return np.minimum(begins, ends), ends


def weights_of_phases(layout: ConvPartition, whole: WeightsLayout) -> tuple[tuple[Taps, WeightsLayout], ...]:
    """Taps and matrix of every part of the prepared weights, in order.

    The parts are those of all phases that a call can have, so that every slice of an image reads the same weights.
    """
    result, problem = [], layout.problem
    for taps in product(tap_classes(problem.frame.rows), tap_classes(problem.frame.columns)):
        kernel = (len(taps[0]), len(taps[1]))
        own = phase_options(layout.options, problem.frame, kernel)
        tiles, joins = k_block_tiles(layout.config, layout.shards, kernel, own), own.joins_kernel_rows(layout.scheme)
        part = replace(whole, kernel=kernel, mirror=False, full_inner_dim=joins, k_block_rows=tiles * TILE)
        result.append((taps, part))
    return tuple(result)


def phase_index_words(groups: tuple[PhaseGroup, ...], layout: ConvPartition) -> int:
    """Words of the index list of the core with the longest list.

    Every block of every group has its number of segments, then the segments, each within a line of the image. The list
    says both where windows begin and where their sticks belong.
    """
    words = np.zeros(layout.config.nhw_cores, np.int64)
    for group in groups:
        columns, height = group.frames[0].columns.outputs, group.layout.blocks.act_h_tiles * TILE
        begins, ends = group_windows(group.frames, layout)
        first = begins[:, None] + np.arange(0, group.layout.shards.out_rows, height)
        last: Integers = np.minimum(first + height, ends[:, None]) - 1
        segments = np.where(last >= first, last // columns - first // columns + 1, 0)
        words += (HEADER_WORDS + SEGMENT_WORDS * segments).sum(axis=1)
    return int(words.max())
