"""The L1 path: shard, prepare weights, halo, move, conv2d: reference, section 2.2.

Also what one slice of the DRAM path runs, with the arguments of `lowering.as_slice`.
"""

from dataclasses import dataclass

from device.layouts import Layout, TensorSpec
from device.plan import Allocate, Free, Operation, Relocate
from device.rounding import round_up
from device.spec import DeviceSpec
from device.tiles import TILE
from ops.conv2d.auto_shard import choose_scheme
from ops.conv2d.blocks import k_block_order
from ops.conv2d.circular_buffers import ConvBuffersArguments, conv_circular_buffers, l1_accumulation, partials_format
from ops.conv2d.layout import ConvLayout, ConvOptions, ConvProblem, buffers_arguments, choose_cores, lay_out, sharded_input
from ops.conv2d.partition import HEIGHT, WIDTH, channel_alignment
from ops.conv2d.reader_indices import WORD_BYTES, check_reader_indices, reader_index_words
from ops.conv2d.work import ConvWork
from ops.conv_transpose2d.arguments import ConvTranspose2dArguments
from ops.conv_transpose2d.lowering import compute_config, lower
from ops.conv_transpose2d.weights import WeightsLayout
from ops.conv_transpose2d.work import PrepareBias, PrepareWeights
from ops.data_movement import convolution_input, placement
from ops.data_movement.staged import UPLOADED, Staged
from ops.data_movement.work import Relayout
from ops.halo.plan import HaloArguments, HaloPlan, config_tensor_spec, plan_halo
from ops.halo.work import HaloWork


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """A call and how it lies on the device."""

    arguments: ConvTranspose2dArguments
    problem: ConvProblem
    options: ConvOptions
    layout: ConvLayout


def lay_out_call(a: ConvTranspose2dArguments, spec: DeviceSpec, source: TensorSpec) -> LaidOut:
    """Choose shard scheme and cores for an input that lies as `source` says, and lay the convolution out.

    Raises:
        DeviceError: The blocks do not fit the shares of the cores.
    """
    problem, options = lower(a)
    memory, row_major = source.memory_config, problem.row_major
    if memory.is_sharded() and not _must_reshard(a, source):
        config = sharded_input(memory)
        shards = memory.shard_spec
        width = None if shards is None else shards.shape[1]
        alignment = channel_alignment(config.scheme, row_major=row_major, sliced=False, matmul=False, shard_width=width)
    else:
        scheme = a.conv_config.shard_layout or choose_scheme(problem, options, spec, matmul=False)
        before = channel_alignment(
            memory.memory_layout, row_major=row_major, sliced=False, matmul=False, shard_width=_shard_width(source)
        )
        config = choose_cores(problem, options, spec, scheme, alignment=before)
        alignment = channel_alignment(scheme, row_major=row_major, sliced=False, matmul=False, shard_width=None)
    return LaidOut(arguments=a, problem=problem, options=options, layout=lay_out(problem, options, spec, config, alignment=alignment))


def _must_reshard(a: ConvTranspose2dArguments, source: TensorSpec) -> bool:
    return a.conv_config.reshard_if_not_optimal or a.conv_config.override_sharding_config


def _shard_width(source: TensorSpec) -> int | None:
    shards = source.memory_config.shard_spec
    return None if shards is None else shards.shape[1]


def l1_path(a: ConvTranspose2dArguments, source: Staged, spec: DeviceSpec) -> Staged:
    """Steps from an input on the device (or on its way) to the sharded output.

    Args:
        a: The call.
        source: The input; its own steps are not repeated.
        spec: The device.

    Returns: Steps that end in the output, in `a.memory_config` if that is given; prepared weights and bias, where the call uploads
        them, are the tensors "weight.prepared" and "bias.prepared".
    """
    call = lay_out_call(a, spec, source.spec)
    sharded = convolution_input.sharded_input(
        source, call.layout.input_memory, spec, "input.sharded", deallocate=a.conv_config.deallocate_activation
    )
    weights = upload_weights(call, spec)
    halo = _halo(call, sharded, spec)
    release = a.conv_config.deallocate_activation and sharded.in_l1
    result = sharded.followed_by(weights).followed_by(halo)
    if release:
        result = result.then(Free(sharded.name))
    if a.conv_config.reallocate_halo_output:
        result = result.then(Relocate(halo.name, halo.spec.buffer(spec), Relayout()))
    output = _conv(call, halo, spec)
    result = result.followed_by(output).then(Free(halo.name))
    if a.memory_config is not None:
        result = result.followed_by(placement.to_config(output, a.memory_config, spec, "output.placed"))
    if sharded.owned and not release:
        result = result.then(*(Free(name) for name in sharded.owned))
    return result


def upload_weights(call: LaidOut, spec: DeviceSpec) -> Staged:
    """Prepare weights and bias on the host and upload them; nothing for those that are on the device."""
    a, layout = call.arguments, weights_layout(call)
    steps: list[Allocate] = []
    tensors: dict[str, TensorSpec] = {}
    if a.weight.on_host:
        made = TensorSpec(layout.logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.padded_shape)
        steps.append(Allocate("weight.prepared", made.buffer(spec), UPLOADED, "weight", PrepareWeights(layout)))
        tensors["weight.prepared"] = made
    if a.bias is not None and a.bias.on_host:
        made = TensorSpec(layout.bias_logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.bias_padded_shape)
        steps.append(Allocate("bias.prepared", made.buffer(spec), UPLOADED, "bias", PrepareBias(layout)))
        tensors["bias.prepared"] = made
    return Staged(name="weight.prepared", spec=a.weight.spec, steps=tuple(steps), tensors=tensors)


def weights_layout(call: LaidOut) -> WeightsLayout:
    """How the weights of a call are prepared."""
    a, shards, layout = call.arguments, call.layout.shards, call.layout
    columns = shards.out_channels
    if layout.scheme in (HEIGHT, WIDTH):
        columns = round_up(columns, layout.blocks.subblock_w_tiles * TILE)
    return WeightsLayout(
        in_channels=a.in_channels,
        out_channels=a.out_channels,
        kernel=a.kernel_size,
        groups=a.groups,
        mirror=a.mirror_kernel,
        scheme=layout.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=columns,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * TILE,
        data_format=call.problem.weight_format,
    )


def halo_arguments(call: LaidOut) -> HaloArguments:
    """What decides the halo of a call."""
    layout = call.layout
    return HaloArguments(
        frame=call.problem.frame,
        scheme=layout.scheme,
        orientation=layout.config.orientation,
        cores=layout.config.cores,
        nhw_cores=layout.config.nhw_cores,
        channel_cores=layout.config.channel_cores,
        input_rows=layout.shards.in_rows,
        output_rows=layout.shards.out_rows,
        shard_width=layout.shards.in_width,
        data_format=call.problem.in_format,
        tiled=not call.problem.row_major,
        config_tensors_in_dram=call.options.config_tensors_in_dram,
    )


def _halo(call: LaidOut, sharded: Staged, spec: DeviceSpec) -> Staged:
    plan: HaloPlan = plan_halo(halo_arguments(call), input_tensor=sharded.name, output_tensor="halo")
    work = HaloWork(
        frame=call.problem.frame,
        in_format=call.problem.in_format,
        tiled=not call.problem.row_major,
        fp32_dest=call.options.fp32_dest,
    )
    step = Operation(
        name="HaloDeviceOperation",
        inputs=(sharded.name,),
        outputs=(Allocate("halo", plan.output.buffer(spec)),),
        resident=tuple(Allocate(name, made.buffer(spec), UPLOADED) for name, made in plan.resident),
        circular_buffers=plan.circular_buffers,
        work=work,
        key=("halo", plan.arguments, work),
    )
    return Staged(name="halo", spec=plan.output, steps=(step,), tensors={"halo": plan.output, **dict(plan.resident)})


def _reader_index_tensor(call: LaidOut) -> TensorSpec:
    layout = call.layout
    height = layout.blocks.act_h_tiles
    second = height // 2 if layout.split_reader else 0
    rows = tuple(tiles * TILE for tiles in (height - second, second) if tiles)
    words = reader_index_words(
        call.problem.frame, output_rows=layout.shards.out_rows, cores=layout.config.nhw_cores, block_rows=rows
    )
    check_reader_indices(words * WORD_BYTES, output_rows=layout.shards.out_rows)
    return config_tensor_spec(halo_arguments(call), words)


def conv_work(call: LaidOut, buffers: ConvBuffersArguments) -> ConvWork:
    """What the micro-op of a call computes."""
    config, options, layout = call.arguments.conv_config, call.options, call.layout
    return ConvWork(
        problem=call.problem,
        options=options,
        layout=layout,
        k_blocks=k_block_order(
            layout.config,
            layout.shards,
            layout.blocks,
            call.problem.kernel,
            act_block_w_div=options.act_block_w_div,
            full_inner_dim=options.full_inner_dim,
        ),
        phases=compute_config(call.arguments).phases,
        partials_format=partials_format(buffers),
        l1_accumulation=l1_accumulation(
            requested=options.packer_l1_acc, bias=call.problem.bias, k_blocks=buffers.accumulation_blocks
        ),
        activation=config.activation,
        replicate_padding=config.replicate_padding,
    )


def _conv(call: LaidOut, halo: Staged, spec: DeviceSpec) -> Staged:
    a, layout, indices = call.arguments, call.layout, _reader_index_tensor(call)
    shard = halo.spec.memory_config.shard_spec
    halo_sticks = 0 if shard is None else shard.shape[0] * shard.shape[1]
    act_bytes = call.problem.act_format.element_bytes or 0
    buffers = buffers_arguments(
        call.problem,
        call.options,
        layout,
        halo_bytes=halo_sticks * act_bytes,
        reader_indices_bytes=indices.shape[-1] * WORD_BYTES,
    )
    made = output_spec(call)
    operands = [halo.name, "weight.prepared" if a.weight.on_host else "weight"]
    if a.bias is not None:
        operands.append("bias.prepared" if a.bias.on_host else "bias")
    work = conv_work(call, buffers)
    step = Operation(
        name="Conv2dDeviceOperation",
        inputs=tuple(operands),
        outputs=(Allocate("output", made.buffer(spec)),),
        resident=(Allocate("reader_indices", indices.buffer(spec), UPLOADED),),
        circular_buffers=conv_circular_buffers(
            buffers, output="output", halo=halo.name, reader_indices="reader_indices", cores=layout.program_cores
        ),
        work=work,
        key=("conv2d", work),
    )
    return Staged(name="output", spec=made, steps=(step,), tensors={"output": made, "reader_indices": indices})


def output_spec(call: LaidOut) -> TensorSpec:
    """The output on the L1 path: [1, 1, N*OH*OW, O], sharded."""
    problem, shards = call.problem, call.layout.shards
    out_layout = Layout.ROW_MAJOR if call.options.untilize_out else Layout.TILE
    shape = (1, 1, problem.out_rows, problem.out_channels)
    padded = (1, 1, round_up(problem.out_rows, TILE), shards.out_channels)
    return TensorSpec(shape, problem.out_format, out_layout, call.layout.output_memory, padded)
