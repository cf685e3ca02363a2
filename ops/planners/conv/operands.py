"""The operands of a convolution: its partition, raw or prepared weights and bias, and why these are refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec, no_such_axis
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig, ShardOrientation
from device.numbers.formats import BFLOAT16, FLOAT32, UINT32, round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall, Operand
from ops.programs.conv2d import partition
from ops.programs.conv2d.op import Conv2dOp, ConvBuffers, KBlock, SchemeChoice, choose_scheme
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout
from ops.programs.data_movement.placement import flattened
from ops.programs.phase_conv2d.model import PreparePhaseWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedConv:
    """A call and its partition on the device."""

    call: ConvCall
    layout: partition.ConvPartition  # Sizes, options, partition, shards and blocks
    input_memory: MemoryConfig  # Where the halo finds its input
    sharded: bool = True  # The input is sharded; else the layout says only how weights are prepared for a plain matmul
    reshards: bool = True  # The input on the device is resharded
    prefix: str = ""  # Prefix of the names of its tensors: empty, or the slice
    choice: SchemeChoice | None = None  # Of its scheme, where the library made it
    refused: str | None = None  # Why no program can be built of the layout, if none can

    @property
    def problem(self) -> partition.ConvProblem:
        """Sizes and formats."""
        return self.layout.problem

    @property
    def options(self) -> partition.ConvOptions:
        """The caller's choices."""
        return self.layout.options


def partition_call(call: ConvCall, device_spec: DeviceSpec, *, prefix: str = "") -> PartitionedConv:
    """Chooses shard scheme and cores of a call and partitions it; raises DeviceError if the blocks do not fit."""
    problem, estimated = call.lower()
    options = estimated
    if estimated.activation_reuse and call.rules.reuses_activations:
        options = replace(estimated, act_double_buffer=False, weights_double_buffer=False)
    elif estimated.activation_reuse:
        options = replace(estimated, activation_reuse=False)
    memory = DRAM_MEMORY_CONFIG if call.input.on_host else call.input.spec.memory_config
    before = call.input_alignment(memory)
    choice = refused = None
    if not call.needs_new_shards(memory):
        layout, refused = _partitioned(problem, options, device_spec, partition.sharded_input(memory), before)
        place = memory
    else:
        scheme = call.conv_config.shard_layout
        if scheme is None:
            choice = choose_scheme(problem, estimated, device_spec, matmul=False)
            scheme = choice.scheme
        config = partition.choose_cores(problem, options, device_spec, scheme, alignment=before)
        if choice is not None and options == estimated and config == choice.layout.config:
            layout = choice.layout
        else:
            aligned = partition.scheme_alignment(problem, scheme)
            layout, refused = _partitioned(problem, options, device_spec, config, aligned)
        shards = memory.shard_spec
        stays = shards is not None and config == partition.sharded_input(memory) and not shards.shape[1] % before
        place = memory if stays else redistributed(call, problem, config)
        alignment = call.input_alignment(place)
        if layout.shards.in_channels != round_up(problem.in_channels, config.channel_cores * alignment):
            layout, refused = _partitioned(problem, options, device_spec, config, alignment)
    reshards = place != memory
    if not reshards:  # a reshape may redistribute them, which the partition does not expect
        place = call.flattened_memory
        if place.shard_spec is not None and place.shard_spec.grid != layout.config.cores:
            layout = replace(layout, config=layout.config._replace(cores=place.shard_spec.grid))
    return PartitionedConv(
        call=call, layout=layout, input_memory=place, reshards=reshards, prefix=prefix, choice=choice, refused=refused
    )


def _partitioned(
    problem: partition.ConvProblem,
    options: partition.ConvOptions,
    spec: DeviceSpec,
    config: partition.ParallelConfig,
    alignment: int,
) -> tuple[partition.ConvPartition, str | None]:
    """The layout on some cores, and why its program is refused: where no rates tell whether a second reader pays."""
    try:
        return partition.partition_conv(problem, options, spec, config, alignment=alignment), None
    except partition.UnknownRatesError as error:
        known = replace(problem, out_format=problem.act_format)
        layout = partition.partition_conv(known, options, spec, config, alignment=alignment)
        return replace(layout, problem=problem), str(error)


def redistributed(
    call: ConvCall, problem: partition.ConvProblem, config: partition.ParallelConfig, *, matmul: bool = False
) -> MemoryConfig:
    """Shards of all rows and channels of the input tensor, which may differ from the call's sizes.

    WIDTH shards of rows keep the rows that fill the last tiles of a window that was cut out of tiles.
    """
    spec = call.input.spec
    rows, channels = flattened(spec.shape)[-2:]
    if config.scheme is partition.WIDTH and spec.layout is Layout.ROW_MAJOR and not call.input.on_host:
        rows = spec.matrix[0]
    height, width = partition.input_shard(
        config,
        rows=rows,
        channels=channels,
        alignment=partition.scheme_alignment(problem, config.scheme, matmul=matmul),
        row_major=problem.row_major,
    )
    return partition.sharded_memory(config, height, width)


def output_spec(partitioned: PartitionedConv) -> TensorSpec:
    """The output on the L1 path: [1, 1, N*OH*OW, O], sharded."""
    problem, place = partitioned.problem, partitioned.layout.output_memory
    out_layout = Layout.ROW_MAJOR if partitioned.options.untilize_out else Layout.TILE
    shape = (1, 1, problem.out_rows, problem.out_channels)
    return TensorSpec(shape, problem.out_format, out_layout, place, alignment=(TILE, TILE))


def upload_weights(
    builder: PlanBuilder, partitioned: PartitionedConv, by_phases: PreparePhaseWeights | None = None
) -> None:
    """Prepares weights and bias on the host and uploads them, or ends the plan in a refusal.

    For weights and bias on the device, the plan records the preparation that the call expects. ``by_phases`` splits the
    weights by output phase.
    """
    call = partitioned.call
    # Weights that an earlier slice of the plan prepared have a name, and are not checked again
    if not call.weight.name and (text := next(operand_refusals(call), None)) is not None:
        builder.refuse(ArgumentError(text))
        return
    taken_for, (name, *bias_name) = read_layout(partitioned), operand_names(call)
    layout = taken_for if by_phases else weights_layout(partitioned, taken_for)
    if not call.weight.on_host or layout != taken_for:
        builder.expect(name, by_phases or PrepareWeights(taken_for))
    if call.weight.on_host and by_phases:
        builder.upload(name, by_phases.spec, "weight", by_phases)
    elif call.weight.on_host:
        upload_prepared(builder, name, "weight", layout)
    if call.bias is None:
        return
    if not call.bias.on_host:
        builder.expect(bias_name[0], PrepareBias(layout))
        return
    if call.out_channels <= layout.padded_out_channels:  # raw weights may have others
        layout = replace(layout, out_channels=call.out_channels)
    upload_prepared(builder, bias_name[0], "bias", layout)


def upload_prepared(builder: PlanBuilder, name: str, role: str, layout: WeightsLayout) -> None:
    """Upload the "weight" or the "bias", prepared in a layout of weights."""
    op: PrepareWeights | PrepareBias = PrepareWeights(layout)
    shape, padded = layout.logical_shape, layout.padded_shape
    if role == "bias":
        op, shape, padded = PrepareBias(layout), layout.bias_logical_shape, layout.bias_padded_shape
    builder.upload(name, TensorSpec(shape, layout.data_format, Layout.TILE, padded_shape=padded), role, op)


def weights_layout(partitioned: PartitionedConv, read: WeightsLayout) -> WeightsLayout:
    """The layout that weights are prepared in, of a call whose program reads them as ``read``.

    The real library takes the sizes from a weight on the host and not from the call, padding included unless groups
    are spelled out; an image in DRAM whose windows were folded keeps the original kernel. Raises DeviceError if a row
    of that kernel does not fit a K block of HEIGHT shards.
    """
    call = partitioned.call
    spec = call.weight.spec
    if read.repeated:
        return read
    folding, raw = call.folding, (spec.padded_shape if call.groups == 1 else spec.shape)[:4]
    if folding is not None:
        if folding.weights or not partitioned.input_memory.is_sharded() or not partitioned.sharded:
            return read
        channels = read.in_channels // prod(folding.stride)
        return _made_of(partitioned, read, channels, read.out_channels, folding.kernel)
    if not call.weight.on_host:
        return read
    first, second, rows, columns = raw[0], raw[1] * call.groups, *raw[2:]
    ins, outs = (first, second) if call.rules.transposed else (second, first)
    if (ins, outs, rows, columns) == (read.in_channels, read.out_channels, *read.kernel):
        return read
    return _made_of(partitioned, read, ins, outs, (rows, columns))


def _made_of(
    partitioned: PartitionedConv, read: WeightsLayout, in_channels: int, out_channels: int, kernel: tuple[int, int]
) -> WeightsLayout:
    """The layout of weights of other sizes than the call's, made for the cores and blocks of the call."""
    shards = partitioned.input_memory.shard_spec
    alignment = partition.channel_alignment(
        partitioned.layout.scheme,
        row_major=partitioned.problem.row_major,
        sliced=False,
        matmul=partitioned.call.is_matmul,
        shard_width=None if shards is None else shards.shape[1],
    )
    out_cores = partitioned.layout.out_config.channel_cores if partitioned.sharded else 1
    layout = replace(
        read,
        in_channels=in_channels,
        out_channels=out_channels,
        kernel=kernel,
        folded=(1, 1),
        raw_kernel=None,
        padded_in_channels=round_up(in_channels, alignment * read.channel_shards),
        padded_out_channels=round_up(out_channels, out_cores * TILE),
        whole_blocks=True,
    )
    inner = layout.shard_channels * layout.kernel[1] * (layout.kernel[0] if layout.full_inner_dim else 1)
    if partitioned.sharded and partitioned.layout.scheme is partition.HEIGHT and layout.k_block_rows < inner:
        shape = partitioned.call.weight.spec.padded_shape
        why = (
            f"weight_tensor: the kernel rows of its shape {list(shape)}, padding included, do not fit the blocks of "
            "the call; give the weights of the call, in ROW_MAJOR_LAYOUT"
        )
        if partitioned.call.folding is not None:
            why = (
                "conv_config.enable_kernel_stride_folding: the image in DRAM was folded, but not the weights, whose "
                "kernel rows do not fit the blocks; set it to False, or put the input in L1"
            )
        raise DeviceError(f"Block height {layout.k_block_rows} must be >= inner dimension {inner}\n{why}")
    return layout


def read_layout(partitioned: PartitionedConv) -> WeightsLayout:
    """The layout that the program of a call expects of its weights."""
    call, layout = partitioned.call, partitioned.layout
    shards, rules = layout.shards, call.rules
    columns = shards.out_channels
    if layout.scheme in (partition.HEIGHT, partition.WIDTH):
        columns = round_up(columns, layout.blocks.subblock_w_tiles * TILE)
    read = WeightsLayout(
        in_channels=call.in_channels,
        out_channels=call.out_channels,
        kernel=call.kernel_size,
        groups=call.groups,
        out_first=not rules.transposed,
        folded=call.folding.stride if call.folding else (1, 1),
        raw_kernel=call.folding.kernel if call.folding else None,
        mirror=rules.transposed and call.mirror_kernel,
        full_inner_dim=rules.orders_full_inner_dim and layout.joins_kernel_rows,
        scheme=layout.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=columns,
        channel_shards=layout.config.channel_cores,
        k_block_rows=layout.blocks.act_w_tiles * TILE,
        data_format=partitioned.problem.weight_format,
    )
    return _repeated(partitioned, read) if call.repeats_weights else read


def _repeated(partitioned: PartitionedConv, read: WeightsLayout) -> WeightsLayout:
    """The layout of weights of channels by themselves, which are repeated for all rows of a block of activations.

    They are parted among the cores of BLOCK channels without padding, and without the rows that are left over.
    """
    layout = partitioned.layout
    rows, cores = layout.blocks.act_h_tiles * TILE * prod(read.folded), layout.config.channel_cores
    return replace(
        read,
        in_channels=rows,
        groups=1,
        repeated=True,
        padded_in_channels=rows // cores * cores if layout.scheme is partition.BLOCK else rows,
        k_block_rows=cores * TILE,
    )


def operand_names(call: ConvCall) -> tuple[str, ...]:
    """Names of the prepared weights and of the prepared bias, if the call has one."""
    weight = "weight.prepared" if call.weight.on_host else call.weight.name or "weight"
    if call.bias is None:
        return (weight,)
    return weight, "bias.prepared" if call.bias.on_host else call.bias.name or "bias"


def operands(builder: PlanBuilder, call: ConvCall) -> list[PlanTensor]:
    """The prepared weights, and the prepared bias if the call has one, at this point of the plan."""
    return [builder.tensor(name) for name in operand_names(call)]


# Refusals of raw and of prepared operands

HOST_WEIGHT_FORMATS = (BFLOAT16, FLOAT32, UINT32)


def operand_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights and bias of a call are refused, in the order the real library looks."""
    yield from weight_refusals(call)
    yield from bias_refusals(call)


def weight_refusals(call: ConvCall) -> Iterator[str]:
    """Why weights are refused."""
    spec, wanted, transposed = call.weight.spec, call.conv_config.weights_format, call.rules.transposed
    if not call.weight.on_host:
        if not transposed and wanted not in (None, spec.data_format):
            yield (
                "Host conv weights layout should be in row_major layout\n"
                f"weight_tensor: it was prepared in {spec.data_format}, so that the real library prepares it anew for "
                f"conv_config.weights_dtype {wanted}; leave that out, or pass the weights on the host"
            )
        return
    if transposed:
        yield from weight_rank(call)
    elif len(spec.shape) != 4:
        yield (
            "Host conv weights should be 4D tensor\nweight_tensor: it must have the four axes [out_channels, "
            f"in_channels / groups, kernel height, kernel width], not the shape {list(spec.shape)}"
        )
    if not transposed and spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv weights layout should be in row_major layout\n"
            "weight_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.data_format.is_block and transposed and call.groups > 1:  # filled with zeros in rows first
        yield (
            "Only TILE layout is supported for BFLOAT8_B dtype!\n"
            "weight_tensor: weights of groups must be bfloat16 or float32; conv_config.weights_dtype converts them"
        )
    if spec.data_format not in HOST_WEIGHT_FORMATS:
        yield (
            f"Unsupported data type{' for transform_weights_for_conv_transpose2d' if transposed else ''}\n"
            f"weight_tensor: weights on the host must be bfloat16 or float32, not {spec.data_format}; set "
            "conv_config.weights_dtype to have them converted"
        )


def bias_refusals(call: ConvCall) -> Iterator[str]:
    """Why the bias is refused."""
    if call.bias is None:
        return
    data_format, wanted = call.bias.spec.data_format, call.conv_config.weights_format
    if call.rules.transposed and call.bias.on_host and not call.weight.on_host:
        raw = call.is_matmul and call.weight.spec.shape[:2] != (1, 1)
        if not raw and rows_of_weights(call) is None:  # else the program looks at the weights first
            yield (
                "Device Operations expect device tensors as inputs\nbias_tensor: with weights that are prepared, the "
                "bias must be too; use prepare_conv_transpose2d_bias"
            )
        return
    if not call.rules.transposed and not call.bias.on_host and wanted not in (None, data_format):
        yield (
            "Host conv bias layout should be in row_major layout\n"
            f"bias_tensor: it is on the device in {data_format}, so that the real library prepares it anew for "
            f"conv_config.weights_dtype {wanted}; leave that out, or pass the bias on the host"
        )
    yield from bias_shape(call)


def bias_shape(call: ConvCall) -> Iterator[str]:
    """The refusal of a bias on the host that is not one row of the output channels."""
    if call.bias is None or not call.bias.on_host:
        return
    spec, wanted = call.bias.spec, [1, 1, 1, call.out_channels]
    ours = f"bias_tensor: its shape must be {wanted}, not {list(spec.shape)}"
    yield from _rank("bias_tensor", "[1, 1, 1, out_channels]", call.bias)
    if spec.shape[3] != call.out_channels:
        yield f"Bias must have the same length as output channels\n{ours}"
    if len(spec.shape) != 4:
        yield f"Host conv bias should be 4D tensor\n{ours}"
    if spec.layout is not Layout.ROW_MAJOR:
        yield (
            "Host conv bias layout should be in row_major layout\n"
            "bias_tensor: make it with layout=ROW_MAJOR_LAYOUT; block floats come from conv_config.weights_dtype"
        )
    if spec.shape[:3] != (1, 1, 1):
        yield f"Host conv bias shape is not correct\n{ours}"


def _rank(name: str, wanted: str, operand: Operand) -> Iterator[str]:
    """An operand with fewer than four axes."""
    shape = operand.spec.shape
    if len(shape) < 4:
        yield (
            f"{no_such_axis(len(shape), 3)}\n{name}: it must have the four axes {wanted}, not the shape {list(shape)}"
        )


def weight_rank(call: ConvCall) -> Iterator[str]:
    """The refusal of weights with fewer than four axes if their kernel is needed; on the device to choose cores."""
    sharded = call.input.spec.memory_config.is_sharded() and not call.input.on_host
    chosen = not call.in_one_piece or (call.conv_config.shard_layout is None and not sharded)
    read = chosen and call.rules.transposed and call.weight.spec.shape
    if not call.weight.on_host and not read:
        return
    first, second = ("in", "out") if call.rules.transposed else ("out", "in")
    wanted = f"[{first}_channels, {second}_channels / groups, kernel height, kernel width]"
    yield from _rank("weight_tensor", wanted, call.weight)


def sliced_weight_rank(call: ConvCall) -> Iterator[str]:
    """The refusal of conv2d weights whose kernel is needed first, to plan slices and to choose their scheme."""
    if call.conv_config.shard_layout is None and not call.in_one_piece:
        yield from weight_rank(call)


WAY_OUT = "prepare the weights for this call, or pass them on the host"


def rows_of_weights(call: ConvCall) -> str | None:
    """Why no program of a transposed convolution can read unprepared weights on the device."""
    weight = call.weight
    if weight.on_host or weight.name or not call.rules.transposed or weight.spec.layout is Layout.TILE:
        return None
    return (
        "Weights should be in TILE layout.\nweight_tensor: weights on the device must be prepared; use "
        "prepare_conv_transpose2d_weights, or pass them on the host"
    )


def matrix_refusal(out_channels: int, prepared: Sequence[int]) -> str | None:
    """Why weights of this padded shape are no matrix for the output channels; None if they are one."""
    if 0 < len(prepared) < 4:
        return (
            f"{no_such_axis(len(prepared), 3)}\nweight_tensor: on the device it has to be prepared, not of "
            f"{len(prepared)} axes; {WAY_OUT}"
        )
    if out_channels > prepared[-1]:
        return (
            "Invalid weight shape. Incorrect weight tensor.\n"
            f"weight_tensor: it has {prepared[-1]} columns for {out_channels} output channels; {WAY_OUT}"
        )
    if tuple(prepared[:2]) != (1, 1):
        return (
            "Conv weight matrix shape is invalid\n"
            f"weight_tensor: on the device it has to be prepared, not of the shape {list(prepared)}; {WAY_OUT}"
        )
    return None


def size_refusal(layout: partition.ConvPartition, prepared: Sequence[tuple[int, ...]]) -> str | None:
    """Why the program does not take a matrix of weights, and bias, of these padded shapes.

    None if it does, rightly or not.
    """
    columns = prepared[0][-1] // TILE
    block, cores = layout.shards.out_col_tiles, layout.out_config.channel_cores
    if columns % block:
        name = "weight_+matrix" if layout.scheme is partition.WIDTH else "weight_matrix"
        return (
            f"{name}_width_ntiles {columns} should be divisible by weight_block_w_ntiles {block}\n"
            f"weight_tensor: the call computes {block} tiles of output channels on a core; {WAY_OUT}"
        )
    if layout.scheme is partition.WIDTH:
        if columns // block == cores:
            return None
        return (
            f"num_blocks_output_w {cores} should be equal to num_blocks_weight_w {columns // block}\n"
            f"weight_tensor: it was prepared for other cores; {WAY_OUT}"
        )
    slices, box, bias_columns = columns // block, layout.out_config.cores.bounding_box(), prepared[-1][-1] // TILE
    turned = layout.out_config.orientation is ShardOrientation.COL_MAJOR
    axis, across = ("y", box.rows) if turned else ("x", box.cols)
    if layout.scheme is partition.BLOCK and across % slices:
        return (
            f"num_cores_{axis} {across} should be divisible by num_weight_slices_width {slices}\n"
            f"weight_tensor: it was prepared for {slices} cores of output channels; {WAY_OUT}"
        )
    if layout.scheme is not partition.BLOCK and slices != 1:
        return (
            f"num_blocks_weight_w_per_core 1 should be equal to num_blocks_weight_w {slices}\n"
            f"weight_tensor: it was prepared for {slices} cores of output channels; {WAY_OUT}"
        )
    if bias_columns != columns:
        return (
            f"Bias tiles ({bias_columns}) must equal weight matrix width in tiles ({columns})\n"
            f"weight_tensor, bias_tensor: they were prepared for other cores; {WAY_OUT}"
        )
    return None


def micro_op(
    call: ConvCall,
    layout: partition.ConvPartition,
    buffers: ConvBuffers | None = None,
    k_blocks: tuple[KBlock, ...] | None = None,
) -> Conv2dOp:
    """The program of a call, or of some phases of it; arguments as in `Conv2dOp.of`."""
    phases, activation = call.compute.fidelity_phases, call.conv_config.activation
    return Conv2dOp.of(layout, fidelity_phases=phases, activation=activation, buffers=buffers, k_blocks=k_blocks)


def sticks_bytes(halo: PlanTensor, problem: partition.ConvProblem) -> int:
    """Bytes of a core's sticks; 0 if the tensor is not sharded."""
    shards = halo.spec.memory_config.shard_spec
    return 0 if shards is None else shards.shape[0] * shards.shape[1] * (problem.act_format.element_bytes or 0)
