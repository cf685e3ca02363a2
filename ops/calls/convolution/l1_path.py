"""The L1 path: shard, prepare weights, halo, move, conv2d (docs/planning.md, L1 path).

Also what one slice of the DRAM path runs, with the arguments of `problem.as_slice`.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Final

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.integers import round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.output_checks import TILES_HINT
from ops.calls.convolution.prepared_sizes import size_refusal
from ops.calls.convolution.problem import (
    compute_config,
    flattened_memory,
    input_alignment,
    is_matmul,
    lower,
    needs_new_shards,
    placed_options,
)
from ops.programs.conv2d.activation_reuse import reuse_refusal
from ops.programs.conv2d.auto_shard import choose_scheme
from ops.programs.conv2d.blocks import k_block_order, width_refusal
from ops.programs.conv2d.circular_buffers import (
    ConvBuffersArguments,
    conv_circular_buffers,
    l1_accumulation,
    partials_format,
)
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
from ops.programs.conv2d.reader_indices import WORD_BYTES, reader_index_words, reader_indices_refusal
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout
from ops.programs.conv2d.work import ConvWork
from ops.programs.halo.plan import HaloArguments, HaloWork, config_tensor_spec, plan_halo
from ops.programs.movement import placement
from ops.programs.movement.work import Conversion, Relayout

NO_SHARDS = "input_tensor: flat it has no shards, as its grid is no rectangle; give it as [1, 1, N*H*W, C]"

CONV2D: Final = "Conv2dDeviceOperation"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOut:
    """A call and how it lies on the device.

    Attributes:
        arguments: The call.
        problem: Its convolution.
        options: The caller's choices.
        layout: Partition, shards and blocks.
        input_memory: Where the halo finds its input.
        sharded: The input is sharded; else the layout says only how weights are prepared for a plain matmul.
        reshards: The input on the device is dealt to shards anew.
        prefix: What the names of its tensors begin with: empty, or the slice it is.
    """

    arguments: ConvArguments
    problem: ConvProblem
    options: ConvOptions
    layout: ConvLayout
    input_memory: MemoryConfig
    sharded: bool = True
    reshards: bool = True
    prefix: str = ""


def lay_out_call(call: ConvArguments, device_spec: DeviceSpec, *, prefix: str = "") -> LaidOut:
    """Choose shard scheme and cores for a call, and lay its convolution out.

    Raises:
        DeviceError: The blocks do not fit the shares of the cores.
    """
    problem, estimated = lower(call)
    options = placed_options(call, estimated)
    memory = DRAM_MEMORY_CONFIG if call.input.on_host else call.input.spec.memory_config
    before = input_alignment(call, memory)
    if not needs_new_shards(call, memory):
        layout = lay_out(problem, options, device_spec, sharded_input(memory), alignment=before)
        place = memory
    else:
        scheme = call.conv_config.shard_layout or choose_scheme(problem, estimated, device_spec, matmul=False)
        config = choose_cores(problem, options, device_spec, scheme, alignment=before)
        layout = lay_out(problem, options, device_spec, config, alignment=scheme_alignment(problem, scheme))
        shards = memory.shard_spec
        stays = shards is not None and config == sharded_input(memory) and not shards.shape[1] % before
        place = memory if stays else _whole_height(call, layout.input_memory)
    reshards = place != memory
    if not reshards:  # a reshape may deal them anew, which the convolution is not laid out for
        place = flattened_memory(call)
        if place.shard_spec is not None and place.shard_spec.grid != layout.config.cores:
            layout = replace(layout, config=replace(layout.config, cores=place.shard_spec.grid))
    return LaidOut(
        arguments=call,
        problem=problem,
        options=options,
        layout=layout,
        input_memory=place,
        reshards=reshards,
        prefix=prefix,
    )


def _whole_height(call: ConvArguments, place: MemoryConfig) -> MemoryConfig:
    """Shards as high as their input: a WIDTH window that was tiles keeps the rows that fill its last tiles."""
    shards, given = place.shard_spec, call.input.spec
    if shards is None or call.input.on_host or place.memory_layout is not WIDTH or given.layout is Layout.TILE:
        return place
    rows = max(shards.shape[0], given.matrix[0])
    if rows == shards.shape[0]:
        return place
    return replace(place, shard_spec=replace(shards, shape=(rows, shards.shape[1])))


def l1_path(builder: PlanBuilder, call: ConvArguments, source: PlanTensor, *, prefix: str = "") -> PlanTensor:
    """Steps from an input on the host or on the device to the sharded output.

    Args:
        builder: The plan. Prepared weights and bias, where the call uploads them, become its tensors "weight.prepared"
            and "bias.prepared".
        call: The call.
        source: Its input.
        prefix: What the names of its tensors begin with.

    Returns:
        The output, in the call's memory config if that is given.
    """
    laid_out = lay_out_call(call, builder.device_spec, prefix=prefix)
    deallocate = call.conv_config.deallocate_activation
    place, name = laid_out.input_memory, f"{prefix}input.sharded"
    if call.input.on_host:
        sharded = placement.uploaded_rows(builder, source, place, place, name)
    else:
        new = place if laid_out.reshards else None
        sharded = placement.sharded_input(builder, source, new, name, deallocate=deallocate)
    copied, activations = sharded.name != source.name, sharded
    upload_weights(builder, laid_out)
    if not _reads_input(laid_out):
        activations = _halo(builder, laid_out, sharded)
        if activations.name == sharded.name:  # it is refused, and nothing after it is reached
            return activations
        if deallocate or (copied and call.rules.frees_copy_after_halo):
            builder.free(sharded)
        if call.conv_config.reallocate_halo_output:
            placement.move_up(builder, activations)
    output = _conv(builder, laid_out, activations)
    if output is activations:  # the program was refused
        if copied and activations.name != sharded.name and builder.is_live(sharded):
            builder.free(sharded)
        return output
    framed = activations.name != sharded.name
    if framed and not call.rules.frees_halo_last:
        builder.free(activations)
    if call.memory_config is not None:
        output = placement.to_config(builder, output, call.memory_config, f"{prefix}output.placed")
    if framed and call.rules.frees_halo_last:
        builder.free(activations)
    if copied and builder.is_live(sharded):
        builder.free(sharded)
    return output


def _reads_input(laid_out: LaidOut) -> bool:
    """Whether the micro-op reads the sharded input itself: all rows of it are on every core, as it wants them."""
    whole = laid_out.layout.scheme is WIDTH and laid_out.problem.row_major
    return whole and not any(laid_out.arguments.padding) and laid_out.arguments.rules.skips_halo


def upload_weights(builder: PlanBuilder, laid_out: LaidOut) -> None:
    """Prepare weights and bias on the host and upload them; of those on the device, say what they are taken for."""
    call, layout, taken_for = laid_out.arguments, weights_layout(laid_out), _read_layout(laid_out)
    names = operand_names(call)
    if not call.weight.on_host or layout != taken_for:
        builder.expect(names[0], PrepareWeights(taken_for))
    if call.weight.on_host:
        made = TensorSpec(layout.logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.padded_shape)
        builder.upload("weight.prepared", made, "weight", PrepareWeights(layout))
    if call.bias is not None and not call.bias.on_host:
        builder.expect(names[1], PrepareBias(layout))
    elif call.bias is not None:
        made = TensorSpec(
            layout.bias_logical_shape, layout.data_format, Layout.TILE, padded_shape=layout.bias_padded_shape
        )
        builder.upload("bias.prepared", made, "bias", PrepareBias(layout))


def weights_layout(laid_out: LaidOut) -> WeightsLayout:
    """How the weights of a call are prepared.

    Where the windows of an image in DRAM were folded, the real library lays out the kernel as it was.

    Raises:
        DeviceError: A row of that kernel does not fit a K block of HEIGHT shards.
    """
    read, folding = _read_layout(laid_out), laid_out.arguments.folding
    shards = laid_out.input_memory.shard_spec
    if folding is None or folding.weights or shards is None or not laid_out.sharded:
        return read
    alignment = channel_alignment(
        laid_out.layout.scheme,
        row_major=laid_out.problem.row_major,
        sliced=False,
        matmul=is_matmul(laid_out.arguments),
        shard_width=shards.shape[1],
    )
    channels = read.in_channels // prod(folding.stride)
    made = replace(
        read,
        in_channels=channels,
        kernel=folding.kernel,
        folded=(1, 1),
        raw_kernel=None,
        padded_in_channels=round_up(channels, alignment * read.channel_shards),
        whole_blocks=True,
    )
    inner = made.shard_channels * made.kernel[1] * (made.kernel[0] if made.full_inner_dim else 1)
    if laid_out.layout.scheme is HEIGHT and made.k_block_rows < inner:
        raise DeviceError(
            f"Block height {made.k_block_rows} must be >= inner dimension {inner}\n"
            f"conv_config.enable_kernel_stride_folding: the image in DRAM was folded, but not the weights, whose "
            f"kernel rows of {inner} do not fit the blocks; set it to False, or put the input in L1"
        )
    return made


def _read_layout(laid_out: LaidOut) -> WeightsLayout:
    """What the program of a call takes its weights for."""
    call, layout = laid_out.arguments, laid_out.layout
    shards, rules = layout.shards, call.rules
    columns = shards.out_channels
    if layout.scheme in (HEIGHT, WIDTH):
        columns = round_up(columns, layout.blocks.subblock_w_tiles * TILE)
    return WeightsLayout(
        in_channels=call.in_channels,
        out_channels=call.out_channels,
        kernel=call.kernel_size,
        groups=call.groups,
        out_first=not rules.transposed,
        folded=call.folding.stride if call.folding else (1, 1),
        raw_kernel=call.folding.kernel if call.folding else None,
        mirror=rules.transposed and call.mirror_kernel,
        full_inner_dim=rules.orders_full_inner_dim and laid_out.options.joins_kernel_rows(layout.scheme),
        scheme=layout.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=columns,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * TILE,
        data_format=laid_out.problem.weight_format,
    )


def halo_arguments(laid_out: LaidOut, input_matrix: tuple[int, int] | None = None) -> HaloArguments:
    """What decides the halo of a call, whose padded input has these rows and columns; DeviceError without shards."""
    layout, place, shards = laid_out.layout, laid_out.input_memory, laid_out.input_memory.shard_spec
    if shards is None:
        raise DeviceError(f"bad optional access\n{NO_SHARDS}")
    return HaloArguments(
        frame=laid_out.problem.frame,
        scheme=place.memory_layout,
        orientation=shards.orientation,
        cores=shards.grid,
        nhw_cores=layout.config.nhw_cores,
        channel_cores=sharded_input(place).channel_cores,
        input_rows=shards.shape[0],
        output_rows=layout.shards.out_rows,
        shard_width=shards.shape[1],
        data_format=laid_out.problem.in_format,
        tiled=not laid_out.problem.row_major,
        config_tensors_in_dram=laid_out.options.config_tensors_in_dram,
        input_matrix=input_matrix,
    )


def _halo(builder: PlanBuilder, laid_out: LaidOut, sharded: PlanTensor) -> PlanTensor:
    name = f"{laid_out.prefix}halo"
    try:
        plan = plan_halo(halo_arguments(laid_out, sharded.spec.matrix), input_tensor=sharded.name, output_tensor=name)
    except DeviceError as error:  # a reshape left other shards than the convolution was laid out for
        return builder.run("HaloDeviceOperation", Relayout(Conversion.COPY), [sharded], refused=str(error))
    work = HaloWork(plan=plan, fp32_dest=laid_out.options.fp32_dest)
    return builder.run(
        "HaloDeviceOperation",
        work,
        [sharded],
        output=PlanTensor(name, plan.output),
        resident=[PlanTensor(*one) for one in plan.resident],
        circular_buffers=plan.circular_buffers,
        key=("halo", plan.arguments, work.fp32_dest),
        refused=_grid_refusal(laid_out),
    )


def _grid_refusal(laid_out: LaidOut) -> str | None:
    """Why the halo can not address the cores, in the real library's words and ours; None if it can."""
    first = laid_out.layout.config.cores.bounding_box().start
    if first.x == first.y == 0:
        return None
    return (
        f"Sliding-window shard grid core 0 is {first.x}-{first.y} but the origin-anchored row walk addresses it as "
        "0-0. Only an origin-anchored, row-filled grid is supported; any other grid hangs max_pool2d/avg_pool2d or "
        "silently returns wrong conv2d results (#60513).\n"
        f"conv_config.core_grid: it begins at core ({first.x}, {first.y}); give one that begins at (0, 0)"
    )


def _reader_indices(laid_out: LaidOut) -> PlanTensor:
    """The index tensor of the program's activation readers."""
    layout, height = laid_out.layout, laid_out.layout.blocks.act_h_tiles
    second = height // 2 if layout.split_reader else 0
    rows = tuple(tiles * TILE for tiles in (height - second, second) if tiles)
    words = reader_index_words(
        laid_out.problem.frame, output_rows=layout.shards.out_rows, cores=layout.config.nhw_cores, block_rows=rows
    )
    return PlanTensor(f"{laid_out.prefix}reader_indices", config_tensor_spec(halo_arguments(laid_out), words))


def conv_work(laid_out: LaidOut, buffers: ConvBuffersArguments) -> ConvWork:
    """What the micro-op of a call computes."""
    config, options, layout = laid_out.arguments.conv_config, laid_out.options, laid_out.layout
    return ConvWork(
        problem=laid_out.problem,
        options=options,
        layout=layout,
        k_blocks=k_block_order(
            layout.config,
            layout.shards,
            layout.blocks,
            laid_out.problem.kernel,
            full_inner_dim=options.joins_kernel_rows(layout.scheme),
        ),
        fidelity_phases=compute_config(laid_out.arguments).fidelity_phases,
        partials_format=partials_format(buffers),
        l1_accumulation=l1_accumulation(
            requested=options.packer_l1_acc, bias=laid_out.problem.bias, k_blocks=buffers.accumulation_blocks
        ),
        activation=config.activation,
    )


def _conv(builder: PlanBuilder, laid_out: LaidOut, halo: PlanTensor) -> PlanTensor:
    weights, layout = operands(builder, laid_out.arguments)[0].spec, laid_out.layout
    problem = laid_out.problem
    if problem.weight_format != weights.data_format:  # programs ask the tensor, not the config
        problem = replace(problem, weight_format=weights.data_format)
        laid_out = replace(laid_out, problem=problem)
    refused = width_refusal(
        layout.config, layout.shards, layout.blocks, problem.kernel, prepared_rows=weights.padded_shape[-2]
    )
    if laid_out.options.activation_reuse:
        refused = refused or reuse_refusal(layout.config, problem.frame, split_reader=layout.split_reader)
    prepared = [(1, 1, *one.spec.padded_shape) for one in operands(builder, laid_out.arguments)]
    refused = refused or size_refusal(layout, problem.out_channels, prepared)
    indices = _reader_indices(laid_out)
    words = indices.spec.shape[-1] * WORD_BYTES
    unfinished = reader_indices_refusal(words, output_rows=layout.shards.out_rows)
    if unfinished is None and (core := layout.unplaced_core(builder.device_spec.grid.cols)) is not None:
        unfinished = (
            "Multicast runtime arguments target an unplaced core\n"
            f"conv_config.core_grid: the WIDTH_SHARDED convolution leaves cores without output channels, and counts "
            f"them up to {core}, where it does not run; use one row of cores, whole rows of the device, or as many "
            "cores as there are tiles of output channels"
        )
    shard = halo.spec.memory_config.shard_spec
    halo_elements = 0 if shard is None else shard.shape[0] * shard.shape[1]
    buffers = buffers_arguments(
        problem,
        laid_out.options,
        layout,
        halo_bytes=halo_elements * (problem.act_format.element_bytes or 0),
        reader_indices_bytes=words,
    )
    work, reads = conv_work(laid_out, buffers), [halo, *operands(builder, laid_out.arguments)]
    if laid_out.options.untilize_out and problem.out_format.is_block:
        builder.run(CONV2D, work, reads, refused=f"Only TILE layout is supported for BFLOAT8_B dtype!{TILES_HINT}")
        return halo
    output = PlanTensor(f"{laid_out.prefix}output", output_spec(laid_out))
    made = conv_circular_buffers(
        buffers, output=output.name, halo=halo.name, reader_indices=indices.name, cores=layout.program_cores
    )
    return builder.run(
        CONV2D,
        work,
        reads,
        output=output,
        resident=[indices],
        circular_buffers=() if refused else made,
        key=("conv2d", work, weights.padded_shape),
        refused=refused,
        unfinished=unfinished,
    )


def operand_names(call: ConvArguments) -> tuple[str, ...]:
    """Names of the prepared weights and, if there is one, of the prepared bias."""
    weight = "weight.prepared" if call.weight.on_host else call.weight.name or "weight"
    if call.bias is None:
        return (weight,)
    return weight, "bias.prepared" if call.bias.on_host else call.bias.name or "bias"


def operands(builder: PlanBuilder, call: ConvArguments) -> list[PlanTensor]:
    """The prepared weights and, if there is one, the prepared bias, as the plan has them by then."""
    return [builder.tensor(name) for name in operand_names(call)]


def output_spec(laid_out: LaidOut) -> TensorSpec:
    """The output on the L1 path: [1, 1, N*OH*OW, O], sharded."""
    problem, shards = laid_out.problem, laid_out.layout.shards
    out_layout = Layout.ROW_MAJOR if laid_out.options.untilize_out else Layout.TILE
    shape = (1, 1, problem.out_rows, problem.out_channels)
    tiled = out_layout is Layout.TILE
    columns = round_up(problem.out_channels, TILE) if tiled else round_up(problem.out_channels, shards.out_width)
    padded = (1, 1, round_up(problem.out_rows, TILE), columns)
    return TensorSpec(shape, problem.out_format, out_layout, laid_out.layout.output_memory, padded)
