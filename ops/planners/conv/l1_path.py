"""The L1 path: shard, prepare weights, halo, move, conv2d (docs/reference/planning.md, L1 path); also for slices.

A call by output phases takes the same steps with its own weights and program.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from math import prod
from typing import Final

from device.cores import CoreCoord
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import TILE, ShardOrientation
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.checks import IMAGE_AXES, ROWS_OF_BLOCKS, rows_refusal
from ops.planners.conv.operands import (
    PartitionedConv,
    matrix_refusal,
    micro_op,
    operands,
    output_spec,
    partition_call,
    read_layout,
    rows_of_weights,
    size_refusal,
    sticks_bytes,
    upload_weights,
)
from ops.planners.grid_rules import conv_rules, name_rules
from ops.programs.buffer_shapes import view_refusal
from ops.programs.conv2d import op as conv2d
from ops.programs.conv2d.partition import HEIGHT, WIDTH, ConvPartition
from ops.programs.conv2d.weights import AsWanted
from ops.programs.data_movement import placement
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.reshape import rows_in_shards
from ops.programs.eltwise.refusals import fused_by_conv_refusal
from ops.programs.halo import plan as halo_plan
from ops.programs.halo.transfers import most_sticks
from ops.programs.phase_conv2d.model import PreparePhaseWeights
from ops.programs.phase_conv2d.plan import (
    PhaseConv2dOp,
    PhaseGroup,
    PhasePart,
    partition_phases,
    phase_buffer_requests,
    phase_index_words,
    weights_of_phases,
)
from ops.window import dense_bounds, dense_frame

NO_SHARDS = "input_tensor: flat it has no shards, as its grid is no rectangle; give it as [1, 1, N*H*W, C]"
CONV2D: Final = "Conv2dDeviceOperation"
PHASE_CONV2D: Final = "PhaseConv2dDeviceOperation"
PHASES: Final = 'conv_transpose2d, lowering="phase"'


def l1_path(builder: PlanBuilder, call: ConvCall, source: PlanTensor, *, prefix: str = "") -> PlanTensor:
    """Steps from an input on the host or on the device to the sharded output, in the call's memory config if given.

    Prepared weights and bias that the call uploads become the tensors "weight.prepared" and "bias.prepared".
    """
    partitioned = partition_call(call, builder.device_spec, prefix=prefix)
    if partitioned.choice is not None:
        builder.decide(partitioned.choice.decision)
    if partitioned.reshards and not call.runs_by_phases:
        name_rules(builder, conv_rules(partitioned.layout, builder.device_spec.grid))
    deallocate = call.conv_config.deallocate_activation
    place, name = partitioned.input_memory, f"{prefix}input.sharded"
    if call.input.on_host:
        sharded = placement.uploaded_rows(builder, source, place, place, name)
    else:
        new = place if partitioned.reshards else None
        sharded = rows_in_shards(builder, source, new, name, deallocate=deallocate)
    phases = phases_of(builder, partitioned) if call.runs_by_phases else None
    upload_weights(builder, partitioned, None if phases is None else phase_weights(partitioned))
    if builder.refused:
        return sharded
    copies, halos = [sharded] if sharded.name != source.name else [], list[PlanTensor]()
    activations, dealt = sharded, None
    if not reads_input(partitioned):
        activations, dealt = _halo(builder, partitioned, sharded)
        if dealt is None:  # the halo is refused, and no later step runs
            return activations
        halos = [activations]
        frees = deallocate or (copies and not call.rules.frees_copy_last)
        if frees:
            builder.free(sharded)
        if call.conv_config.reallocate_halo_output:
            placement.move_up(builder, activations, freed=sharded if frees else None)
    dealt = dealt or halo_arguments(partitioned, builder.device_spec)
    if phases is None:
        output = _conv(builder, partitioned, activations, dealt)
    else:
        output = _phase_conv(builder, partitioned, phases, activations, dealt)
    if output is activations:  # the program was refused
        builder.free_own(*copies, keep=[output])
        return output
    if call.rules.frees_copy_last:
        builder.free(*halos)
    if call.memory_config is not None:
        output = placement.to_config(builder, output, call.memory_config, f"{prefix}output.placed")
        if builder.refused:
            return output
    builder.free_own(*halos, *copies)
    return output


def reads_input(partitioned: PartitionedConv) -> bool:
    """Whether the conv2d program reads the sharded input itself: every core has all rows, as the program needs them."""
    whole = partitioned.layout.scheme is WIDTH and partitioned.problem.row_major
    return whole and not any(partitioned.call.padding) and partitioned.call.rules.skips_halo


def halo_arguments(
    partitioned: PartitionedConv, spec: DeviceSpec, input_matrix: tuple[int, int] | None = None
) -> halo_plan.HaloArguments:
    """The arguments of a call's halo, whose padded input has these rows and columns; DeviceError without shards."""
    layout, place, frame = partitioned.layout, partitioned.input_memory, partitioned.problem.frame
    if place.shard_spec is None:
        raise DeviceError(f"bad optional access\n{NO_SHARDS}")
    by_phases = partitioned.call.runs_by_phases
    return halo_plan.HaloArguments.of(
        dense_frame(frame) if by_phases else frame,
        place,
        spec,
        outputs_of=frame if by_phases else None,
        nhw_cores=layout.config.nhw_cores,
        output_rows=layout.shards.out_rows,
        data_format=partitioned.problem.in_format,
        tiled=not partitioned.problem.row_major,
        config_tensors_in_dram=partitioned.options.config_tensors_in_dram,
        input_matrix=input_matrix,
    )


def _walk_refusal(partitioned: PartitionedConv) -> str | None:
    """Why the halo can not address the cores, with the real library's text and ours; None if it can."""
    config = partitioned.layout.config
    box = config.cores.bounding_box()
    if config.cores.num_cores() == box.num_cores() and box.start == CoreCoord(0, 0):
        return None
    walked = halo_plan.walk_refusal(config.cores, row_major=config.orientation is ShardOrientation.ROW_MAJOR)
    advice = "core_grid, or the grid of the input's shards: give cores that begin at (0, 0) and fill row after row"
    return None if walked is None else f"{walked}\n{advice}"


def _require_sticks(partitioned: PartitionedConv, source: TensorSpec) -> None:
    """Refuses shards of fewer cores than the images that the call claims would fill.

    Raises DeviceError if the halo can not address the cores, otherwise NotSimulatedError.
    """
    claimed, shards = prod(partitioned.call.image_shape[:3]), source.memory_config.shard_spec
    cores = partitioned.layout.config.nhw_cores
    if shards is not None and source.matrix[0] < claimed and shards.shape[0] * cores < claimed:
        if (walked := _walk_refusal(partitioned)) is not None:
            raise DeviceError(walked)
        raise NotSimulatedError(
            f"input_tensor: its shards hold {source.matrix[0]} sticks of the {claimed} that batch_size, input_height "
            "and input_width say it has; the real library's process ends there"
        )


def _halo(
    builder: PlanBuilder, partitioned: PartitionedConv, sharded: PlanTensor
) -> tuple[PlanTensor, halo_plan.HaloArguments | None]:
    """The halo and its arguments; the input and None if the halo is refused."""
    name = f"{partitioned.prefix}halo"
    try:
        arguments = halo_arguments(partitioned, builder.device_spec, sharded.spec.matrix)
        _require_sticks(partitioned, sharded.spec)
        plan = halo_plan.plan_halo(arguments, input_tensor=sharded.name, output_tensor=name)
    except DeviceError as error:  # a reshape left other shards than the partition expects
        refused = builder.run("HaloDeviceOperation", CopyTensor(Conversion.COPY), [sharded], refused=str(error))
        return refused, None
    output = plan.output
    if not sharded.in_l1:  # the halo is allocated in the input's memory, and then refused
        place = replace(output.memory_config, buffer_type=sharded.spec.memory_config.buffer_type)
        output = replace(output, memory_config=place)
    halo = builder.run(
        "HaloDeviceOperation",
        halo_plan.HaloOp(plan=plan, fp32_dest=partitioned.options.fp32_dest),
        [sharded],
        PlanTensor(name, output),
        plan.circular_buffers,
        resident=plan.resident,
        key=("halo", *_window(partitioned.call), plan.arguments, sharded.spec),
        refused=next(_halo_refusals(partitioned, sharded, plan, builder.device_spec), None),
    )
    return halo, arguments


def _halo_refusals(
    partitioned: PartitionedConv, sharded: PlanTensor, plan: halo_plan.HaloPlan, spec: DeviceSpec
) -> Iterator[str]:
    """Why the halo can not address the cores or read the shards, with the real library's text and ours."""
    if (walked := _walk_refusal(partitioned)) is not None:
        yield walked
    if not sharded.in_l1:
        yield (
            "Only L1 buffers can have an associated circular buffer!\n"
            "input_tensor: its shards in DRAM lie as the convolution wants them, and are not moved; put the input in L1"
        )
    first = view_refusal(plan.circular_buffers[0].size_bytes, sharded.spec.buffer(spec).bank_bytes)
    if first is not None:
        formats = f"rows of {sharded.spec.data_format} are read as {plan.output.data_format}"
        yield f"{first}\ninput_tensor: {formats}; typecast it"


def _conv_refusals(
    partitioned: PartitionedConv, weight: PlanTensor, bias: list[PlanTensor], *, too_many_indices: bool
) -> Iterator[str | None]:
    """Why the conv2d program does not read its input or its operands, with the real library's text and ours."""
    layout, problem, options = partitioned.layout, partitioned.problem, partitioned.options
    shards, config = partitioned.input_memory.shard_spec, layout.config
    width, rows = None if shards is None else shards.shape[1], weight.spec.padded_shape[-2]
    yield rows_of_weights(partitioned.call)
    if options.untilize_out:
        yield ROWS_OF_BLOCKS if problem.out_format.is_block else rows_refusal(problem.out_format)
    if width is not None and config.scheme is not WIDTH and width * config.channel_cores < problem.in_channels:
        yield (
            f"Incorrect padding of input channels!\ninput_tensor: its shards hold {width} channels on "
            f"{config.channel_cores} cores, and the call has {problem.in_channels}; give as many"
        )
    yield matrix_refusal(problem.out_channels, weight.spec.padded_shape)
    yield conv2d.width_refusal(layout, problem.kernel, given_width=width, prepared_rows=rows)
    if options.activation_reuse:
        yield conv2d.reuse_refusal(config, problem.frame, split_reader=layout.split_reader)
    yield from (_bias_refusal(tensor.spec) for tensor in bias)
    prepared = [weight.spec.padded_shape, *((1, 1, *tensor.spec.padded_shape) for tensor in bias)]
    yield size_refusal(layout, prepared)
    yield partitioned.refused
    activation = partitioned.call.conv_config.activation
    if activation is not None and (layout.scheme is WIDTH or not too_many_indices):  # WIDTH asks for its code first
        yield fused_by_conv_refusal(activation)


def _bias_refusal(spec: TensorSpec) -> str | None:
    """Why the program does not take a bias of this shape, whose last axis is looked at after the first."""
    rank = len(spec.shape)
    ours = f"bias_tensor: give [1, 1, 1, out_channels], not {list(spec.shape)}; or pass it on the host"
    if not rank:  # a number, which is counted in tiles
        return None
    if spec.shape[0] != 1:
        return f"Bias should have batch == 1\n{ours}"
    return None if rank == IMAGE_AXES else f"{no_such_axis(rank, 3)}\n{ours}"


def _conv(
    builder: PlanBuilder, partitioned: PartitionedConv, halo: PlanTensor, dealt: halo_plan.HaloArguments
) -> PlanTensor:
    """The conv2d program on the output of a halo of these arguments, or on the input itself."""
    (weight, *bias), options = operands(builder, partitioned.call), partitioned.options
    if partitioned.problem.depthwise_row:
        builder.leave_out_values(
            f"{partitioned.call.rules.function}: ttsim does not calculate numbers of depthwise convolutions of one row "
            "without a bias, whose windows the real library multiplies element by element; give a bias of zeros"
        )
    layout, problem = partitioned.layout, partitioned.problem
    if problem.weight_format != weight.spec.data_format:  # programs ask the tensor, not the config
        problem = replace(problem, weight_format=weight.spec.data_format)
        layout = replace(layout, problem=problem)
        partitioned = replace(partitioned, layout=layout)
    height = layout.blocks.act_h_tiles
    second = height // 2 if layout.split_reader else 0
    out_rows, block_rows = layout.shards.out_rows, tuple(tiles * TILE for tiles in (height - second, second) if tiles)
    index_words = halo_plan.reader_index_words(
        problem.frame, output_rows=out_rows, cores=layout.config.nhw_cores, block_rows=block_rows
    )
    indices = PlanTensor(f"{partitioned.prefix}reader_indices", halo_plan.config_tensor_spec(dealt, index_words))
    words = indices.spec.shape[-1] * halo_plan.WORD_BYTES
    unfinished = halo_plan.reader_indices_refusal(words, output_rows=out_rows)
    refusals = _conv_refusals(partitioned, weight, bias, too_many_indices=unfinished is not None)
    refused = next(filter(None, refusals), None)
    buffers = conv2d.ConvBuffers.of(layout, halo_bytes=sticks_bytes(halo, problem), reader_indices_bytes=words)
    op, reads = micro_op(partitioned.call, layout, buffers), [halo, weight, *bias]
    if options.untilize_out and problem.out_format.is_block:  # there is no such output
        builder.run(CONV2D, op, reads, refused=refused)
        return halo
    output = PlanTensor(f"{partitioned.prefix}output", output_spec(partitioned))
    requests = conv2d.buffer_requests(buffers)
    circular_buffers = conv2d.placed_buffers(requests, output=output.name, halo=halo.name, reader_indices=indices.name)
    return builder.run(
        CONV2D,
        op,
        reads,
        output,
        () if refused else circular_buffers,
        resident=[indices],
        key=(
            "conv2d",
            *_window(partitioned.call),
            partitioned.call.conv_config.activation,
            (layout.config, layout.out_config, layout.shards, layout.blocks),  # those it runs with, not the requested
            (options.act_double_buffer, options.weights_double_buffer, options.activation_reuse),
            options.config_tensors_in_dram,
            options.force_split_reader,
            *(read.spec for read in reads),
            output.spec,
        ),
        refused=refused,
        unfinished=unfinished or _miscounted(layout, requests) or _unplaced(partitioned, builder.device_spec),
    )


def _miscounted(layout: ConvPartition, buffers: list[CircularBuffer]) -> str | None:
    """Why a WIDTH program of channels by themselves is not finished: buffers of such programs are counted, not made."""
    if layout.scheme is not WIDTH or not layout.problem.depthwise_row:
        return None
    made, by_itself = conv2d.local_bytes(buffers), conv2d.depthwise_weight_tiles(layout)
    tiles = layout.shards.out_col_tiles * (by_itself - layout.blocks.act_w_tiles)
    counted = made + tiles * layout.problem.weight_format.tile_bytes
    if counted == made:
        return None
    return (
        f"Calculated CB size {counted} does not match with the actual CB size {made}\nconv_config.shard_layout: a "
        "depthwise convolution of one row wants HEIGHT_SHARDED, or a bias of zeros"
    )


def _unplaced(partitioned: PartitionedConv, spec: DeviceSpec) -> str | None:
    """Why a WIDTH program is not finished: it counts a core on which it does not run."""
    core = partitioned.layout.unplaced_core(spec.grid.cols)
    if core is None:
        return None
    return (
        "Multicast runtime arguments target an unplaced core\nconv_config.core_grid: the WIDTH_SHARDED convolution "
        f"leaves cores without output channels, and counts them up to {core}, where it does not run; use one row of "
        "cores, whole rows of the device, or as many cores as there are tiles of output channels"
    )


def _window(call: ConvCall) -> tuple[Hashable, ...]:
    """The part of the program key that halo and conv2d share: the image, its windows, the compute config."""
    window = (call.kernel_size, call.stride, call.padding, call.output_padding, call.dilation)
    return call.rules.transposed, call.image_shape, window, call.compute


# Output phases


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
    joined_bytes = stick_bytes * int((stops - starts).max()) + conv2d.local_bytes(_requests(partitioned, joined))
    frame_buffers = conv2d.buffer_requests(conv2d.ConvBuffers.of(layout))
    fits = joined_bytes <= stick_bytes * most_sticks(problem.frame, **shares) + conv2d.local_bytes(frame_buffers)
    return joined if fits else apart


def _products(groups: tuple[PhaseGroup, ...]) -> int:
    """Tile products of a core."""
    sizes = [(group.layout.shards, group.layout.blocks) for group in groups if group.has_taps]
    return sum(out.out_row_tiles * out.out_col_tiles * block.act_w_tiles * block.k_blocks for out, block in sizes)


def phase_weights(partitioned: PartitionedConv) -> PreparePhaseWeights:
    """How the weights of a call are prepared."""
    whole = read_layout(partitioned)
    phases = weights_of_phases(partitioned.layout, whole)
    return PreparePhaseWeights(kernel=whole.kernel, mirror=whole.mirror, parts=phases)


def check_phase_weights(plan: Plan, call: ConvCall) -> None:
    """Raises ArgumentError for weights on the device that were not prepared for this plan of output phases."""
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


def _phase_conv(
    builder: PlanBuilder,
    partitioned: PartitionedConv,
    groups: tuple[PhaseGroup, ...],
    halo: PlanTensor,
    dealt: halo_plan.HaloArguments,
) -> PlanTensor:
    """The output of the program of all output phases; the halo's if the program is refused."""
    reads, layout = [halo, *operands(builder, partitioned.call)], partitioned.layout
    words = phase_index_words(groups, layout)
    indices = PlanTensor(f"{partitioned.prefix}reader_indices", halo_plan.config_tensor_spec(dealt, words))
    matrices = phase_weights(partitioned).rows
    parts = tuple(
        PhasePart(
            conv=micro_op(partitioned.call, group.layout, buffers, group.k_blocks),
            frames=group.frames,
            weights=tuple(matrices.get(taps, range(0)) for taps in group.taps),
            beside=group.beside,
        )
        for group, buffers in zip(groups, _buffers(groups), strict=True)
    )
    op = PhaseConv2dOp(layout=layout, parts=parts)
    refused = next(filter(None, map(_phase_refusal, groups)), None)
    if partitioned.options.untilize_out and partitioned.problem.out_format.is_block:
        refused = ROWS_OF_BLOCKS
    if refused is not None:
        builder.run(PHASE_CONV2D, op, reads, refused=refused)
        return halo
    output = PlanTensor(f"{partitioned.prefix}output", output_spec(partitioned))
    halo_bytes = sticks_bytes(halo, partitioned.problem)
    requests = _requests(partitioned, groups, halo_bytes=halo_bytes, index_bytes=words * halo_plan.WORD_BYTES)
    return builder.run(
        PHASE_CONV2D,
        op,
        reads,
        output,
        conv2d.placed_buffers(requests, output=output.name, halo=halo.name, reader_indices=indices.name),
        resident=[indices],
        key=("phase conv2d", op, reads[1].spec.padded_shape),
    )


def _requests(
    partitioned: PartitionedConv, groups: tuple[PhaseGroup, ...], *, halo_bytes: int = 0, index_bytes: int = 0
) -> list[CircularBuffer]:
    """The circular buffers of the program; its views count nothing where their tensors are not known yet."""
    buffers = [replace(buffer, halo_bytes=halo_bytes, reader_indices_bytes=index_bytes) for buffer in _buffers(groups)]
    return phase_buffer_requests(buffers, partitioned.layout)


def _buffers(groups: tuple[PhaseGroup, ...]) -> list[conv2d.ConvBuffers]:
    """The circular buffer parameters of every group; all groups take the partial sums of the longest group."""
    buffers = []
    for group in groups:
        rows, columns = group.kernel
        kernel = (1, rows * columns) if group.layout.joins_kernel_rows else group.kernel
        buffers.append(replace(conv2d.ConvBuffers.of(group.layout), kernel=kernel))
    longest = max(buffer.accumulation_blocks for buffer in buffers)
    return [replace(buffer, accumulation_blocks=longest) for buffer in buffers]


def _phase_refusal(group: PhaseGroup) -> str | None:
    """Why a group of phases can not be cut into its blocks; None if it can."""
    layout, width = group.layout, group.layout.shards.in_width
    if not group.has_taps:
        return None
    text = conv2d.width_refusal(layout, group.kernel)
    core_blocks = layout.blocks.k_blocks // layout.config.channel_cores
    if text is None and layout.scheme is WIDTH and width % (core_blocks * TILE):
        text = (
            f"conv_config.act_block_w_div cuts the {width} channels of every WIDTH_SHARDED core into "
            f"{core_blocks} parts that are no whole tiles; use a divisor of {width // TILE}, such as 1"
        )
    return text
