"""How the output phases of a convolution lie on its cores: blocks, K blocks, and the lists that their readers follow.

Cores and shards are those of the convolution over the frame with inserted zeros, so that the output lies where that
puts it. A core computes the outputs of its own shard, phase after phase; all cores run through the same blocks, those
of the core that has most outputs of a phase.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from device.memory.tiles import TILE
from device.numbers.integers import Integers, round_up
from device.spec.device_spec import DeviceSpec
from ops.frame.axis import output_phases, tap_classes
from ops.frame.frame import Frame
from ops.frame.phases import phase_outputs
from ops.programs.conv2d.blocks import KBlock, k_block_order, k_block_tiles, plan_blocks
from ops.programs.conv2d.layout import ConvLayout
from ops.programs.conv2d.problem import ConvOptions, ConvProblem
from ops.programs.conv2d.weights import WeightsLayout

HEADER_WORDS = 2  # of a block: how many segments follow
SEGMENT_WORDS = 3  # first stick, last stick, row of the output shard that belongs to the first


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLayout:
    """One output phase on the device.

    Attributes:
        taps: Its taps down and across, of those of the frame.
        problem: The dense convolution.
        layout: Its blocks; cores and shards of the call, but for the rows of an output shard.
    """

    taps: tuple[range, range]
    problem: ConvProblem
    layout: ConvLayout

    @property
    def has_taps(self) -> bool:
        """Whether it meets inputs at all: a kernel smaller than the stride leaves outputs that do not."""
        return all(self.problem.kernel)

    @property
    def kernel(self) -> tuple[int, int]:
        """(kh, kw) that blocks are cut for."""
        return self.problem.kernel if self.has_taps else (1, 1)


def phase_options(options: ConvOptions) -> ConvOptions:
    """The caller's choices as the convolution of a phase has them.

    It leaves sticks, in rows; one processor reads activations, and writes the finished sticks.
    """
    return replace(options, untilize_out=True, activation_reuse=False, force_split_reader=False)


def lay_out_phases(
    problem: ConvProblem, options: ConvOptions, layout: ConvLayout, spec: DeviceSpec
) -> tuple[PhaseLayout, ...]:
    """The output phases of a convolution that is laid out over its frame with inserted zeros.

    Raises:
        DeviceError: The blocks can not be cut so.
    """
    return tuple(_lay_out(problem, options, layout, spec, *phase) for phase in _phases(problem.frame))


def _phases(frame: Frame) -> Iterator[tuple[tuple[range, range], Frame]]:
    """Taps and axes of every output phase."""
    for down, across in product(*(output_phases(axis, whole=True) for axis in (frame.rows, frame.columns))):
        yield (down.taps, across.taps), replace(frame, rows=down.axis, columns=across.axis)


def _lay_out(
    problem: ConvProblem,
    options: ConvOptions,
    layout: ConvLayout,
    spec: DeviceSpec,
    taps: tuple[range, range],
    frame: Frame,
) -> PhaseLayout:
    begins, ends = phase_outputs(
        problem.frame, frame, output_rows=layout.shards.out_rows, cores=layout.config.nhw_cores
    )
    shards = replace(layout.shards, out_rows=round_up(int((ends - begins).max()), TILE))
    made = PhaseLayout(taps=taps, problem=replace(problem, frame=frame), layout=layout)
    blocks = plan_blocks(
        layout.config,
        shards,
        kernel=made.kernel,
        act_block_h_override=options.act_block_h_override,
        act_block_w_div=options.act_block_w_div,
        full_inner_dim=options.joins_kernel_rows(layout.scheme),
        dst_tiles=spec.compute.dst_half_tiles(fp32_dest=options.fp32_dest),
    )
    return replace(made, layout=replace(layout, shards=shards, blocks=blocks, split_reader=False))


def phase_k_blocks(phase: PhaseLayout, options: ConvOptions) -> tuple[KBlock, ...]:
    """The K blocks of a phase; none without taps."""
    layout = phase.layout
    if not phase.has_taps:
        return ()
    return k_block_order(
        layout.config,
        layout.shards,
        layout.blocks,
        phase.kernel,
        full_inner_dim=options.joins_kernel_rows(layout.scheme),
    )


def weights_of_phases(
    problem: ConvProblem, options: ConvOptions, layout: ConvLayout, whole: WeightsLayout
) -> tuple[tuple[tuple[range, range], WeightsLayout], ...]:
    """Taps and matrix of every part of the prepared weights, in their order.

    They are those of all phases that there can be, so that every slice of an image reads the same weights.

    Args:
        problem: The convolution over the frame with inserted zeros.
        options: The caller's choices.
        layout: How it is laid out.
        whole: What its own weights would be.
    """
    made = []
    for taps in product(tap_classes(problem.frame.rows), tap_classes(problem.frame.columns)):
        kernel = (len(taps[0]), len(taps[1]))
        tiles = k_block_tiles(
            layout.scheme,
            layout.shards,
            kernel,
            act_block_w_div=options.act_block_w_div,
            channel_cores=layout.config.channel_cores,
            full_inner_dim=options.joins_kernel_rows(layout.scheme),
        )
        made.append((taps, replace(whole, kernel=kernel, mirror=False, k_block_rows=tiles * TILE)))
    return tuple(made)


def phase_index_words(frame: Frame, phases: tuple[PhaseLayout, ...], layout: ConvLayout) -> int:
    """Words of the list of one core: of the core with most of them.

    For every block of every phase: how many segments follow, then each of them, a line of the image at most. The list
    tells both where windows begin and where their sticks belong, `TILE` or more of them to a block.

    Args:
        frame: The frame with inserted zeros.
        phases: All its phases.
        layout: How the convolution over it is laid out.
    """
    words = np.zeros(layout.config.nhw_cores, np.int64)
    for phase in phases:
        columns, height = phase.problem.frame.columns.outputs, phase.layout.blocks.act_h_tiles * TILE
        begins, ends = phase_outputs(
            frame, phase.problem.frame, output_rows=layout.shards.out_rows, cores=layout.config.nhw_cores
        )
        first = begins[:, None] + np.arange(0, phase.layout.shards.out_rows, height)
        last: Integers = np.minimum(first + height, ends[:, None]) - 1
        segments = np.where(last >= first, last // columns - first // columns + 1, 0)
        words += (HEADER_WORDS + SEGMENT_WORDS * segments).sum(axis=1)
    return int(words.max())
