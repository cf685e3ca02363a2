"""The L1 path: shard, prepare weights, halo, move, conv2d (docs/planning.md, L1 path); DRAM slices run it as well."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Final

from device.cores import CoreCoord
from device.errors import DeviceError
from device.memory.memory_config import TILE, ShardOrientation
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall, Freed
from ops.planners.conv.checks import ROWS_OF_BLOCKS, rows_refusal
from ops.planners.conv.operands import (
    PartitionedConv,
    micro_op,
    operands,
    output_spec,
    partition_call,
    size_refusal,
    sticks_bytes,
    upload_weights,
)
from ops.planners.conv.phase_program import phase_conv, phase_weights, phases_of
from ops.programs.buffer_shapes import view_refusal
from ops.programs.conv2d.op import ConvBuffers, buffer_requests, placed_buffers, reuse_refusal, width_refusal
from ops.programs.conv2d.partition import WIDTH, sharded_input
from ops.programs.data_movement import placement
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.reshape import rows_in_shards
from ops.programs.eltwise.refusals import fused_by_conv_refusal
from ops.programs.halo.plan import (
    WORD_BYTES,
    HaloArguments,
    HaloOp,
    HaloPlan,
    config_tensor_spec,
    plan_halo,
    reader_index_words,
    reader_indices_refusal,
    walk_refusal,
)
from ops.window import dense_frame

NO_SHARDS = "input_tensor: flat it has no shards, as its grid is no rectangle; give it as [1, 1, N*H*W, C]"

CONV2D: Final = "Conv2dDeviceOperation"


def l1_path(builder: PlanBuilder, call: ConvCall, source: PlanTensor, *, prefix: str = "") -> PlanTensor:
    """Steps from an input on the host or on the device to the sharded output, in the call's memory config if given.

    Prepared weights and bias that the call uploads become the tensors "weight.prepared" and "bias.prepared".
    """
    partitioned = partition_call(call, builder.device_spec, prefix=prefix)
    if partitioned.choice is not None:
        builder.decide(partitioned.choice.decision)
    deallocate = call.conv_config.deallocate_activation
    place, name = partitioned.input_memory, f"{prefix}input.sharded"
    if call.input.on_host:
        sharded = placement.uploaded_rows(builder, source, place, place, name)
    else:
        new = place if partitioned.reshards else None
        sharded = rows_in_shards(builder, source, new, name, deallocate=deallocate)
    phases = phases_of(builder, partitioned) if call.runs_by_phases else None
    upload_weights(builder, partitioned, phase_weights(partitioned) if call.runs_by_phases else None)
    if builder.refused:
        return sharded
    owned: dict[Freed, list[PlanTensor]] = {freed: [] for freed in Freed}  # the tensors that the path releases, by step
    if sharded.name != source.name:
        owned[call.rules.copy_freed].append(sharded)
        owned[Freed.AFTER_MOVE].append(sharded)  # where there is no halo
    if deallocate:
        owned[Freed.AFTER_HALO].append(sharded)

    def release(freed: Freed, *, survivor: PlanTensor | None = None) -> None:
        for tensor in owned[freed]:
            if tensor is not survivor and builder.is_live(tensor):
                builder.free(tensor)

    activations, dealt = sharded, None
    if not reads_input(partitioned):
        activations, dealt = _halo(builder, partitioned, sharded)
        if activations.name == sharded.name:  # the halo is refused, and no later step runs
            return activations
        release(Freed.AFTER_HALO)
        owned[call.rules.halo_freed].insert(0, activations)
        if call.conv_config.reallocate_halo_output:
            placement.move_up(builder, activations)
    if phases is None:
        output = _conv(builder, partitioned, activations, dealt)
    else:
        output = phase_conv(builder, partitioned, phases, activations, halo_arguments(partitioned, builder.device_spec))
    if output is activations:  # the program was refused
        release(Freed.AFTER_MOVE, survivor=output)
        return output
    release(Freed.AFTER_PROGRAM)
    if call.memory_config is not None:
        output = placement.to_config(builder, output, call.memory_config, f"{prefix}output.placed")
        if builder.refused:
            return output
    release(Freed.AFTER_MOVE)
    return output


def reads_input(partitioned: PartitionedConv) -> bool:
    """Whether the conv2d program reads the sharded input itself: every core has all rows, as the program needs them."""
    whole = partitioned.layout.scheme is WIDTH and partitioned.problem.row_major
    return whole and not any(partitioned.call.padding) and partitioned.call.rules.skips_halo


def halo_arguments(
    partitioned: PartitionedConv, spec: DeviceSpec, input_matrix: tuple[int, int] | None = None
) -> HaloArguments:
    """The arguments of a call's halo, whose padded input has these rows and columns; DeviceError without shards."""
    layout, place, shards = partitioned.layout, partitioned.input_memory, partitioned.input_memory.shard_spec
    if shards is None:
        raise DeviceError(f"bad optional access\n{NO_SHARDS}")
    frame, by_phases = partitioned.problem.frame, partitioned.call.runs_by_phases
    return HaloArguments(
        frame=dense_frame(frame) if by_phases else frame,
        outputs_of=frame if by_phases else None,
        scheme=place.memory_layout,
        orientation=shards.orientation,
        cores=shards.grid,
        nhw_cores=layout.config.nhw_cores,
        channel_cores=sharded_input(place).channel_cores,
        input_rows=shards.shape[0],
        output_rows=layout.shards.out_rows,
        shard_width=shards.shape[1],
        data_format=partitioned.problem.in_format,
        stick_alignment_bytes=spec.l1.alignment_bytes,
        tiled=not partitioned.problem.row_major,
        config_tensors_in_dram=partitioned.options.config_tensors_in_dram,
        input_matrix=input_matrix,
    )


def _halo(
    builder: PlanBuilder, partitioned: PartitionedConv, sharded: PlanTensor
) -> tuple[PlanTensor, HaloArguments | None]:
    """The halo and its arguments; the input and None if the halo is refused."""
    name = f"{partitioned.prefix}halo"
    try:
        arguments = halo_arguments(partitioned, builder.device_spec, sharded.spec.matrix)
        plan = plan_halo(arguments, input_tensor=sharded.name, output_tensor=name)
    except DeviceError as error:  # a reshape left other shards than the partition expects
        refused = builder.run("HaloDeviceOperation", CopyTensor(Conversion.COPY), [sharded], refused=str(error))
        return refused, None
    op = HaloOp(plan=plan, fp32_dest=partitioned.options.fp32_dest)
    output = plan.output
    if not sharded.in_l1:  # the halo is allocated in the input's memory, and then refused
        place = replace(output.memory_config, buffer_type=sharded.spec.memory_config.buffer_type)
        output = replace(output, memory_config=place)
    halo = builder.run(
        "HaloDeviceOperation",
        op,
        [sharded],
        output=PlanTensor(name, output),
        resident=plan.resident,
        circular_buffers=plan.circular_buffers,
        key=("halo", *_window(partitioned.call), plan.arguments, sharded.spec),
        refused=next(_halo_refusals(partitioned, sharded, plan, builder.device_spec), None),
    )
    return halo, arguments


def _halo_refusals(
    partitioned: PartitionedConv, sharded: PlanTensor, plan: HaloPlan, spec: DeviceSpec
) -> Iterator[str]:
    """Why the halo can not address the cores or read the shards, in the real library's words and ours."""
    config = partitioned.layout.config
    box = config.cores.bounding_box()
    if config.cores.num_cores() != box.num_cores() or box.start != CoreCoord(0, 0):
        walked = walk_refusal(config.cores, row_major=config.orientation is ShardOrientation.ROW_MAJOR)
        if walked is not None:
            yield (
                f"{walked}\ncore_grid, or the grid of the input's shards: give cores that begin at (0, 0) and fill row "
                "after row"
            )
    if not sharded.in_l1:
        yield (
            "Only L1 buffers can have an associated circular buffer!\n"
            "input_tensor: its shards in DRAM lie as the convolution wants them, and are not moved; put the input in L1"
        )
    first = view_refusal(plan.circular_buffers[0].size_bytes, sharded.spec.buffer(spec).bank_bytes)
    if first is not None:
        formats = f"rows of {sharded.spec.data_format} are read as {plan.output.data_format}"
        yield f"{first}\ninput_tensor: {formats}; typecast it"


def _conv_refusals(partitioned: PartitionedConv, weight: PlanTensor, bias: list[PlanTensor]) -> Iterator[str]:
    """Why the conv2d program does not read its input or its operands, in the real library's words and ours."""
    layout, problem, options = partitioned.layout, partitioned.problem, partitioned.options
    shards, config = partitioned.input_memory.shard_spec, layout.config
    width, rows = None if shards is None else shards.shape[1], weight.spec.padded_shape[-2]
    texts = [rows_refusal(problem.out_format) if options.untilize_out else None]
    if width is not None and config.scheme is not WIDTH and width * config.channel_cores < problem.in_channels:
        texts.append(
            f"Incorrect padding of input channels!\ninput_tensor: its shards hold {width} channels on "
            f"{config.channel_cores} cores, and the call has {problem.in_channels}; give as many"
        )
    texts.append(width_refusal(layout, problem.kernel, given_width=width, prepared_rows=rows))
    if options.activation_reuse:
        texts.append(reuse_refusal(config, problem.frame, split_reader=layout.split_reader))
    prepared = [weight.spec.padded_shape, *((1, 1, *tensor.spec.padded_shape) for tensor in bias)]
    texts += [size_refusal(layout, problem.out_channels, prepared), partitioned.refused]
    yield from filter(None, texts)


def _conv(
    builder: PlanBuilder, partitioned: PartitionedConv, halo: PlanTensor, dealt: HaloArguments | None
) -> PlanTensor:
    """The conv2d program on a halo's output, planned with these arguments, or on the input itself."""
    weight, *bias = operands(builder, partitioned.call)
    layout, problem = partitioned.layout, partitioned.problem
    if problem.weight_format != weight.spec.data_format:  # programs ask the tensor, not the config
        problem = replace(problem, weight_format=weight.spec.data_format)
        layout = replace(layout, problem=problem)
        partitioned = replace(partitioned, layout=layout)
    refused = next(_conv_refusals(partitioned, weight, bias), None)
    height, halo_of = layout.blocks.act_h_tiles, dealt or halo_arguments(partitioned, builder.device_spec)
    second = height // 2 if layout.split_reader else 0
    index_words = reader_index_words(  # of the activation readers
        problem.frame,
        output_rows=layout.shards.out_rows,
        cores=layout.config.nhw_cores,
        block_rows=tuple(tiles * TILE for tiles in (height - second, second) if tiles),
    )
    indices = PlanTensor(f"{partitioned.prefix}reader_indices", config_tensor_spec(halo_of, index_words))
    words = indices.spec.shape[-1] * WORD_BYTES
    unfinished = reader_indices_refusal(words, output_rows=layout.shards.out_rows)
    activation = partitioned.call.conv_config.activation
    if activation is not None and (unfinished is None or layout.scheme is WIDTH):  # WIDTH asks for its code first
        refused = refused or fused_by_conv_refusal(activation)
    if unfinished is None and (core := layout.unplaced_core(builder.device_spec.grid.cols)) is not None:
        unfinished = (
            "Multicast runtime arguments target an unplaced core\n"
            f"conv_config.core_grid: the WIDTH_SHARDED convolution leaves cores without output channels, and counts "
            f"them up to {core}, where it does not run; use one row of cores, whole rows of the device, or as many "
            "cores as there are tiles of output channels"
        )
    buffers = ConvBuffers.of(layout, halo_bytes=sticks_bytes(halo, problem), reader_indices_bytes=words)
    op, reads = micro_op(partitioned.call, layout, buffers), [halo, weight, *bias]
    options = partitioned.options
    if options.untilize_out and problem.out_format.is_block:
        builder.run(CONV2D, op, reads, refused=ROWS_OF_BLOCKS)
        return halo
    output = PlanTensor(f"{partitioned.prefix}output", output_spec(partitioned))
    requests = buffer_requests(buffers)
    circular_buffers = placed_buffers(requests, output=output.name, halo=halo.name, reader_indices=indices.name)
    return builder.run(
        CONV2D,
        op,
        reads,
        output=output,
        resident=[indices],
        circular_buffers=() if refused else circular_buffers,
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
        unfinished=unfinished,
    )


def _window(call: ConvCall) -> tuple[Hashable, ...]:
    """The part of the program key that halo and conv2d share: the image, its windows, the compute config."""
    window = (call.kernel_size, call.stride, call.padding, call.output_padding, call.dilation)
    return call.rules.transposed, call.image_shape, window, call.compute
