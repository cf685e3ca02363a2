"""The steps of the L1 path that output phases take in the place of the conv2d micro-op: weights, and the program."""

from dataclasses import replace
from typing import Final

from device.errors import ArgumentError
from device.memory.memory_config import TILE
from device.plan import CircularBuffer, Plan
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.checks import ROWS_OF_BLOCKS
from ops.planners.conv.operands import (
    PartitionedConv,
    micro_op,
    operands,
    output_spec,
    read_layout,
    sticks_bytes,
)
from ops.programs.conv2d.op import ConvBuffers, buffer_requests, local_bytes, placed_buffers, width_refusal
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.conv2d.weights import AsWanted
from ops.programs.halo.plan import WORD_BYTES, HaloArguments, config_tensor_spec
from ops.programs.halo.transfers import most_sticks
from ops.programs.phase_conv2d.plan import (
    PhaseConv2dOp,
    PhaseGroup,
    PhasePart,
    partition_phases,
    phase_buffer_requests,
    phase_index_words,
    weights_of_phases,
)
from ops.programs.phase_conv2d.values import PreparePhaseWeights
from ops.window import dense_bounds

PHASE_CONV2D: Final = "PhaseConv2dDeviceOperation"
PHASES: Final = 'conv_transpose2d, lowering="phase"'


def phases_of(builder: PlanBuilder, partitioned: PartitionedConv) -> tuple[PhaseGroup, ...]:
    """The output phases of a call; raises DeviceError if blocks cannot be cut.

    Phases of different rows are joined where cores exchange activations, so that they are sent once, if the joined
    program takes no more tile products, and no more L1 than the micro-op over the frame with inserted zeros and its
    halo. HEIGHT keeps phases apart: its weights come in few blocks, and the weights of one row are read while those of
    another are multiplied.
    """
    layout, problem = partitioned.layout, partitioned.problem
    apart, joined = (partition_phases(layout, builder.device_spec, joins_rows=joins) for joins in (False, True))
    if layout.scheme is HEIGHT or _products(joined) > _products(apart):
        return apart
    shares = {"output_rows": layout.shards.out_rows, "cores": layout.config.nhw_cores}
    stick_bytes = layout.shards.in_width * (problem.act_format.element_bytes or 0)
    starts, stops = dense_bounds(problem.frame, **shares)
    joined_bytes = stick_bytes * int((stops - starts).max()) + local_bytes(_requests(partitioned, joined))
    frame_buffers = buffer_requests(ConvBuffers.of(layout))
    fits = joined_bytes <= stick_bytes * most_sticks(problem.frame, **shares) + local_bytes(frame_buffers)
    return joined if fits else apart


def _products(groups: tuple[PhaseGroup, ...]) -> int:
    """Tile products of a core."""
    return sum(
        group.layout.shards.out_row_tiles * group.layout.shards.out_col_tiles * group.layout.blocks.act_w_tiles
        * group.layout.blocks.k_blocks
        for group in groups if group.has_taps
    )  # fmt: skip


def phase_weights(partitioned: PartitionedConv) -> PreparePhaseWeights:
    """How the weights of a call are prepared."""
    whole = read_layout(partitioned)
    phases = weights_of_phases(partitioned.layout, whole)
    return PreparePhaseWeights(kernel=whole.kernel, mirror=whole.mirror, parts=phases)


def check_phase_weights(plan: Plan, call: ConvCall) -> None:
    """Refuses weights on the device that were prepared for anything else than this plan of output phases."""
    if call.weight.on_host:
        return
    prepared = call.weight.created_by
    for expected in plan.expected:
        ours = isinstance(expected.op, PreparePhaseWeights) and expected.tensor == (call.weight.name or "weight")
        if ours and prepared != expected.op and not isinstance(prepared, AsWanted):
            raise ArgumentError(
                f"{PHASES}: weight_tensor is on the device and was not prepared for this call and lowering; pass it "
                "as it was made, on the host, or as an earlier call of the same arguments returned it"
            )


def phase_conv(
    builder: PlanBuilder,
    partitioned: PartitionedConv,
    groups: tuple[PhaseGroup, ...],
    halo: PlanTensor,
    halo_arguments: HaloArguments,
) -> PlanTensor:
    """The output of the program of all output phases; the halo's if the program is refused."""
    read = operands(builder, partitioned.call)
    problem, layout = partitioned.problem, partitioned.layout
    words = phase_index_words(groups, layout)
    indices = PlanTensor(f"{partitioned.prefix}reader_indices", config_tensor_spec(halo_arguments, words))
    buffers = _buffers(groups)
    matrices = phase_weights(partitioned).rows
    op = PhaseConv2dOp(
        layout=layout,
        parts=tuple(
            PhasePart(
                conv=micro_op(partitioned.call, group.layout, conv, group.k_blocks),
                frames=group.frames,
                weights=tuple(matrices.get(taps, range(0)) for taps in group.taps),
                beside=group.beside,
            )
            for group, conv in zip(groups, buffers, strict=True)
        ),
    )
    refused = next((text for group in groups if (text := _refusal(group)) is not None), None)
    if partitioned.options.untilize_out and problem.out_format.is_block:
        refused = ROWS_OF_BLOCKS
    if refused is not None:
        builder.run(PHASE_CONV2D, op, [halo, *read], refused=refused)
        return halo
    output = PlanTensor(f"{partitioned.prefix}output", output_spec(partitioned))
    requests = _requests(partitioned, groups, halo_bytes=sticks_bytes(halo, problem), index_bytes=words * WORD_BYTES)
    circular_buffers = placed_buffers(requests, output=output.name, halo=halo.name, reader_indices=indices.name)
    return builder.run(
        PHASE_CONV2D,
        op,
        [halo, *read],
        output=output,
        resident=[indices],
        circular_buffers=circular_buffers,
        key=("phase conv2d", op, read[0].spec.padded_shape),
    )


def _requests(
    partitioned: PartitionedConv, groups: tuple[PhaseGroup, ...], *, halo_bytes: int = 0, index_bytes: int = 0
) -> list[CircularBuffer]:
    """The circular buffers of the program; its views count nothing where their tensors are not known yet."""
    buffers = [replace(buffer, halo_bytes=halo_bytes, reader_indices_bytes=index_bytes) for buffer in _buffers(groups)]
    return phase_buffer_requests(buffers, partitioned.layout)


def _buffers(groups: tuple[PhaseGroup, ...]) -> list[ConvBuffers]:
    """The circular buffer parameters of every group; all groups take the partial sums of the longest group."""
    buffers = []
    for group in groups:
        rows, columns = group.kernel
        kernel = (1, rows * columns) if group.layout.joins_kernel_rows else group.kernel
        buffers.append(replace(ConvBuffers.of(group.layout), kernel=kernel))
    longest = max(buffer.accumulation_blocks for buffer in buffers)
    return [replace(buffer, accumulation_blocks=longest) for buffer in buffers]


def _refusal(group: PhaseGroup) -> str | None:
    """Why a group of phases can not be cut into its blocks; None if it can."""
    layout = group.layout
    if not group.has_taps:
        return None
    text = width_refusal(layout, group.kernel)
    core_blocks = layout.blocks.k_blocks // layout.config.channel_cores
    if text is None and layout.scheme is WIDTH and layout.shards.in_width % (core_blocks * TILE):
        text = (
            f"conv_config.act_block_w_div cuts the {layout.shards.in_width} channels of every WIDTH_SHARDED core into "
            f"{core_blocks} parts that are no whole tiles; use a divisor of {layout.shards.in_width // TILE}, such as 1"
        )
    return text
