"""The L1 path: shard, prepare weights, halo, move, conv2d: reference, section 2.2.

Also what one slice of the DRAM path runs, with the arguments of `lowering.as_slice`.
"""

from dataclasses import dataclass, replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.integers import round_up
from device.plan import Allocate, Free, Operation, Relocate
from device.spec.device_spec import DeviceSpec
from ops.calls.convolution import convolution_input
from ops.calls.convolution.arguments import Conv2dArguments, ConvArguments, ConvTranspose2dArguments
from ops.calls.convolution.problem import compute_config, lower
from ops.programs.conv2d.auto_shard import choose_scheme
from ops.programs.conv2d.blocks import width_refusal
from ops.programs.conv2d.circular_buffers import (
    ConvBuffersArguments,
    conv_circular_buffers,
    l1_accumulation,
    partials_format,
)
from ops.programs.conv2d.host_work import PrepareBias, PrepareWeights
from ops.programs.conv2d.k_blocks import k_block_order
from ops.programs.conv2d.layout import (
    ConvLayout,
    ConvOptions,
    ConvProblem,
    buffers_arguments,
    choose_cores,
    lay_out,
    scheme_alignment,
    sharded_input,
)
from ops.programs.conv2d.partition import HEIGHT, WIDTH, channel_alignment
from ops.programs.conv2d.reader_indices import WORD_BYTES, check_reader_indices, reader_index_words
from ops.programs.conv2d.weights import WeightsLayout
from ops.programs.conv2d.work import ConvWork
from ops.programs.halo.plan import HaloArguments, config_tensor_spec, plan_halo
from ops.programs.halo.work import HaloWork
from ops.programs.movement import placement
from ops.programs.movement.staged import UPLOADED, Staged
from ops.programs.movement.work import Relayout


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """A call and how it lies on the device.

    Attributes:
        arguments: The call.
        problem: Its convolution.
        options: The caller's choices.
        layout: Partition, shards and blocks.
        input_memory: Where the halo finds its input.
        prefix: What the names of its tensors begin with: empty, or the slice it is.
    """

    arguments: ConvArguments
    problem: ConvProblem
    options: ConvOptions
    layout: ConvLayout
    input_memory: MemoryConfig
    prefix: str = ""


def lay_out_call(a: ConvArguments, spec: DeviceSpec, *, prefix: str = "") -> LaidOut:
    """Choose shard scheme and cores for a call, and lay its convolution out.

    Raises:
        DeviceError: The blocks do not fit the shares of the cores.
    """
    problem, options = lower(a)
    memory = DRAM_MEMORY_CONFIG if a.input.on_host else a.input.spec.memory_config
    shards, row_major = memory.shard_spec, problem.row_major
    before = channel_alignment(
        memory.memory_layout,
        row_major=row_major,
        sliced=False,
        matmul=False,
        shard_width=None if shards is None else shards.shape[1],
    )
    if shards is not None and not _must_reshard(a, shards.shape[1] % before != 0):
        layout = lay_out(problem, options, spec, sharded_input(memory), alignment=before)
        return LaidOut(arguments=a, problem=problem, options=options, layout=layout, input_memory=memory, prefix=prefix)
    scheme = a.conv_config.shard_layout or choose_scheme(problem, options, spec, matmul=False)
    config = choose_cores(problem, options, spec, scheme, alignment=before)
    layout = lay_out(problem, options, spec, config, alignment=scheme_alignment(problem, scheme))
    return LaidOut(
        arguments=a, problem=problem, options=options, layout=layout, input_memory=layout.input_memory, prefix=prefix
    )


def _must_reshard(a: ConvArguments, misaligned: bool) -> bool:
    return misaligned or a.conv_config.reshard_if_not_optimal or a.conv_config.override_sharding_config


def l1_path(a: ConvArguments, source: Staged, spec: DeviceSpec, *, prefix: str = "") -> Staged:
    """Steps from an input on the host or on the device to the sharded output.

    Args:
        a: The call; its input is `source`.
        source: The input; its own steps are not repeated.
        spec: The device.
        prefix: What the names of its tensors begin with.

    Returns:
        Steps that end in the output, in `a.memory_config` if that is given; prepared weights and bias, where the call
        uploads them, are the tensors "weight.prepared" and "bias.prepared".
    """
    call = lay_out_call(a, spec, prefix=prefix)
    deallocate = a.conv_config.deallocate_activation
    place, name = call.input_memory, f"{prefix}input.sharded"
    if a.input.on_host:
        sharded = convolution_input.sharded_host_input(source.name, source.spec, place, spec, name)
    else:
        sharded = convolution_input.sharded_input(source, place, spec, name, deallocate=deallocate)
    result = sharded.followed_by(upload_weights(call, spec))
    early: tuple[str, ...] = ()
    activations, late = replace(sharded, steps=(), owned=()), sharded.owned
    if not _reads_input(call):
        activations = _halo(call, sharded, spec)
        if deallocate:
            early, late = (sharded.name,), ()
        elif not isinstance(a, ConvTranspose2dArguments):
            early, late = sharded.owned, ()
        result = result.followed_by(activations).then(*(Free(one) for one in early))
        if a.conv_config.reallocate_halo_output:
            result = result.then(Relocate(activations.name, activations.spec.buffer(spec), Relayout()))
    output = _conv(call, activations, spec)
    result = result.followed_by(output)
    if activations.name != sharded.name:
        result = result.then(Free(activations.name))
    if a.memory_config is not None:
        result = result.followed_by(placement.to_config(output, a.memory_config, spec, f"{prefix}output.placed"))
    return replace(result.then(*(Free(one) for one in late)), owned=())


def _reads_input(call: LaidOut) -> bool:
    """Whether the micro-op reads the sharded input itself: all rows of it are on every core, as it wants them."""
    a, whole = call.arguments, call.layout.scheme is WIDTH and call.problem.row_major
    return whole and not any(a.padding) and not isinstance(a, ConvTranspose2dArguments)


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
        made = TensorSpec(
            layout.bias_logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.bias_padded_shape
        )
        steps.append(Allocate("bias.prepared", made.buffer(spec), UPLOADED, "bias", PrepareBias(layout)))
        tensors["bias.prepared"] = made
    return Staged(name="weight.prepared", spec=a.weight.spec, steps=tuple(steps), tensors=tensors)


def weights_layout(call: LaidOut) -> WeightsLayout:
    """How the weights of a call are prepared."""
    a, shards, layout = call.arguments, call.layout.shards, call.layout
    columns, is_conv2d = shards.out_channels, not isinstance(a, ConvTranspose2dArguments)
    if layout.scheme in (HEIGHT, WIDTH):
        columns = round_up(columns, layout.blocks.subblock_w_tiles * TILE)
    return WeightsLayout(
        in_channels=a.in_channels,
        out_channels=a.out_channels,
        kernel=a.kernel_size,
        groups=a.groups,
        out_first=is_conv2d,
        folded=a.folded if isinstance(a, Conv2dArguments) else (1, 1),
        mirror=isinstance(a, ConvTranspose2dArguments) and a.mirror_kernel,
        full_inner_dim=is_conv2d and call.options.full_inner_dim,
        scheme=layout.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=columns,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * TILE,
        data_format=call.problem.weight_format,
    )


def halo_arguments(call: LaidOut) -> HaloArguments:
    """What decides the halo of a call."""
    layout, shards = call.layout, call.input_memory.shard_spec
    if shards is None:
        raise AssertionError("a halo reads shards")
    return HaloArguments(
        frame=call.problem.frame,
        scheme=layout.scheme,
        orientation=layout.config.orientation,
        cores=layout.config.cores,
        nhw_cores=layout.config.nhw_cores,
        channel_cores=layout.config.channel_cores,
        input_rows=shards.shape[0],
        output_rows=layout.shards.out_rows,
        shard_width=shards.shape[1],
        data_format=call.problem.in_format,
        tiled=not call.problem.row_major,
        config_tensors_in_dram=call.options.config_tensors_in_dram,
    )


def _halo(call: LaidOut, sharded: Staged, spec: DeviceSpec) -> Staged:
    name = f"{call.prefix}halo"
    plan = plan_halo(halo_arguments(call), input_tensor=sharded.name, output_tensor=name)
    work = HaloWork(
        frame=call.problem.frame,
        in_format=call.problem.in_format,
        tiled=not call.problem.row_major,
        fp32_dest=call.options.fp32_dest,
    )
    step = Operation(
        name="HaloDeviceOperation",
        inputs=(sharded.name,),
        outputs=(Allocate(name, plan.output.buffer(spec)),),
        resident=tuple(Allocate(one, made.buffer(spec), UPLOADED) for one, made in plan.resident),
        circular_buffers=plan.circular_buffers,
        work=work,
        key=("halo", plan.arguments, work.fp32_dest),
    )
    return Staged(name=name, spec=plan.output, steps=(step,), tensors={name: plan.output, **dict(plan.resident)})


def _reader_index_tensor(call: LaidOut, *, check: bool) -> TensorSpec:
    layout = call.layout
    height = layout.blocks.act_h_tiles
    second = height // 2 if layout.split_reader else 0
    rows = tuple(tiles * TILE for tiles in (height - second, second) if tiles)
    words = reader_index_words(
        call.problem.frame, output_rows=layout.shards.out_rows, cores=layout.config.nhw_cores, block_rows=rows
    )
    if check:
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
            full_inner_dim=options.full_inner_dim,
        ),
        fidelity_phases=compute_config(call.arguments).fidelity_phases,
        partials_format=partials_format(buffers),
        l1_accumulation=l1_accumulation(
            requested=options.packer_l1_acc, bias=call.problem.bias, k_blocks=buffers.accumulation_blocks
        ),
        activation=config.activation,
    )


def _conv(call: LaidOut, halo: Staged, spec: DeviceSpec) -> Staged:
    a, layout = call.arguments, call.layout
    refused = width_refusal(layout.config, layout.shards, layout.blocks, call.problem.kernel)
    indices = _reader_index_tensor(call, check=refused is None)
    name, indices_name = f"{call.prefix}output", f"{call.prefix}reader_indices"
    shard = halo.spec.memory_config.shard_spec
    halo_elements = 0 if shard is None else shard.shape[0] * shard.shape[1]
    buffers = buffers_arguments(
        call.problem,
        call.options,
        layout,
        halo_bytes=halo_elements * (call.problem.act_format.element_bytes or 0),
        reader_indices_bytes=indices.shape[-1] * WORD_BYTES,
    )
    made = output_spec(call)
    work = conv_work(call, buffers)
    step = Operation(
        name="Conv2dDeviceOperation",
        inputs=(halo.name, *operand_names(a)),
        outputs=(Allocate(name, made.buffer(spec)),),
        resident=(Allocate(indices_name, indices.buffer(spec), UPLOADED),),
        circular_buffers=conv_circular_buffers(
            buffers, output=name, halo=halo.name, reader_indices=indices_name, cores=layout.program_cores
        ),
        work=work,
        key=("conv2d", work),
        refused=refused,
    )
    return Staged(name=name, spec=made, steps=(step,), tensors={name: made, indices_name: indices})


def operand_names(a: ConvArguments) -> tuple[str, ...]:
    """Names of the prepared weights and, if there is one, of the prepared bias."""
    weight = "weight.prepared" if a.weight.on_host else a.weight.name or "weight"
    if a.bias is None:
        return (weight,)
    return weight, "bias.prepared" if a.bias.on_host else a.bias.name or "bias"


def output_spec(call: LaidOut) -> TensorSpec:
    """The output on the L1 path: [1, 1, N*OH*OW, O], sharded."""
    problem, shards = call.problem, call.layout.shards
    out_layout = Layout.ROW_MAJOR if call.options.untilize_out else Layout.TILE
    shape = (1, 1, problem.out_rows, problem.out_channels)
    padded = (1, 1, round_up(problem.out_rows, TILE), shards.out_channels)
    return TensorSpec(shape, problem.out_format, out_layout, call.layout.output_memory, padded)
