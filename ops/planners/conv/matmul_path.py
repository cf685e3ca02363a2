"""The path of 1x1 convolutions, which run as a matmul (docs/reference/planning.md, Matmul path).

The input becomes tiles, sharded unless the library chose the layout, and is multiplied by the weights. Rules: tt-metal
0.81.1 on a device without kernels, and the recorded runs of 1x1 kernels.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from device.cores import CoreCoord, core_rectangle, first_cores
from device.errors import ArgumentError, DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
    no_bank,
)
from device.numbers.formats import div_up, round_up
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.spec.releases import release_of
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.conv.arguments import ConvCall
from ops.planners.conv.operands import PartitionedConv, operands, redistributed, rows_of_weights, upload_weights
from ops.planners.grid_rules import conv_rules, matmul_rules, name_rules
from ops.planners.matmul.arguments import MatmulArguments
from ops.planners.matmul.plan import require_blocks, require_output, run_matmul
from ops.planners.matmul.validation import validate
from ops.programs.conv2d.block_costs import useful_flops
from ops.programs.conv2d.op import choose_scheme
from ops.programs.conv2d.partition import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvPartition,
    choose_cores,
    partition_conv,
    sharded_input,
)
from ops.programs.data_movement import placement
from ops.programs.data_movement.reshape import reshaped
from ops.programs.eltwise.op import activated, with_row
from ops.programs.eltwise.refusals import fused_by_matmul_refusal
from ops.programs.matmul.choice import interleaved_config
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram


def matmul_refusals(
    partitioned: PartitionedConv, op: MatmulOp, weights: TensorSpec, memory: MemoryConfig, device_grid: GridSpec
) -> Iterator[str]:
    """Why no matmul program of a 1x1 convolution can be built, with the real library's text and ours."""
    problem = op.problem
    if (text := rows_of_weights(partitioned.call)) is not None:
        yield text
    for name, letter, data_format in (
        ("input_tensor", "A", problem.in_format),
        ("weight_tensor", "B", weights.data_format),
    ):
        if not data_format.is_float:
            yield (
                f"Unsupported data format for input {letter}: DataType::{data_format.name.upper()}\n"
                f"{name}: a kernel of 1x1 runs as a matmul, which multiplies floats; typecast it"
            )
    yield from _place_refusals(partitioned, problem, memory, device_grid)
    yield from _weights_refusals(partitioned, problem, weights)
    yield from _shards_refusals(partitioned, problem, memory)
    if memory.memory_layout is WIDTH:
        cores, box = partitioned.layout.config.channel_cores, partitioned.layout.config.cores.bounding_box()
        first = (
            f"Num output blocks along x ({cores}) must be smaller than or equal to the number of columns in compute "
            f"grid ({box.cols})!"
            if cores > box.cols
            else f"Unsupported memory layout TensorMemoryLayout::{WIDTH.name}."
        )
        yield (
            f"MatmulMultiCoreReuseMultiCastProgramConfig: {first}\nA 1x1 convolution takes HEIGHT_SHARDED and "
            "BLOCK_SHARDED inputs: set shard_layout and reshard_if_not_optimal"
        )
    if op.activation is not None and (text := fused_by_matmul_refusal(op.activation)) is not None:
        yield text


def _place_refusals(
    partitioned: PartitionedConv, problem: MatmulProblem, memory: MemoryConfig, device_grid: GridSpec
) -> Iterator[str]:
    """Why the cores of the input do not suit any program."""
    cores = partitioned.layout.config.channel_cores
    if memory.memory_layout is WIDTH and cores > device_grid.cols:  # its output goes to one row of cores
        outside = no_bank(CoreCoord(device_grid.cols, 0), device_grid.cores, "L1")
        yield f"{outside}{device_grid.cols}x{device_grid.rows}"
    if memory.memory_layout in (HEIGHT, BLOCK) and memory.buffer_type is not BufferType.L1:
        program = MatmulProgram.MCAST_IN1 if memory.memory_layout is HEIGHT else MatmulProgram.MCAST_2D
        yield (
            f"{program.config_name}: input A and output buffer types must match, got input: "
            f"BufferType::{memory.buffer_type.name} vs output: BufferType::L1\n"
            "input_tensor: its shards in DRAM lie as the convolution wants them, and are not moved; put the input in L1"
        )
    channel_tiles = div_up(partitioned.problem.in_channels, TILE)
    if partitioned.layout.scheme is HEIGHT and memory.memory_layout is WIDTH and channel_tiles == problem.k_tiles:
        yield (
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: input A must be HEIGHT_SHARDED, got: "
            f"TensorMemoryLayout::{memory.memory_layout.name}\n"
            "input_tensor: flattened, all its rows lie in one shard; give it as [1, 1, N*H*W, C], or on one core"
        )


def _weights_refusals(partitioned: PartitionedConv, problem: MatmulProblem, weights: TensorSpec) -> Iterator[str]:
    """Why the weights, prepared by this call or ahead of it, do not suit the input."""
    call, channels = partitioned.call, placement.flattened(partitioned.call.input.spec.shape)[-1]
    k_tiles, weight_tiles, columns = div_up(channels, TILE), weights.padded_shape[-2] // TILE, weights.padded_shape[-1]
    prepared = not call.weight.on_host
    if (prepared or call.folding is None or call.repeats_weights) and channels != weights.shape[-2]:
        if channels != call.in_channels:
            way_out = f"input_tensor: its channels are not the {call.in_channels} of the call; give it those"
        elif prepared:
            way_out = "weight_tensor: it was prepared for other channels; pass it on the host"
        elif call.repeats_weights:
            way_out = "groups: each channel of a row by itself is not prepared for a matmul; give a bias of zeros"
        else:
            way_out = (
                f"weight_tensor: with its padding it has the shape {list(call.weight.spec.padded_shape)}, which is no "
                f"1x1 kernel for {channels} channels; give it in ROW_MAJOR_LAYOUT, and for this call"
            )
        yield (
            "The width of the first tensor must be equal to the height of the second tensor. "
            f"Mismatch: width={channels} height={weights.shape[-2]}\n{way_out}"
        )
    tiles = "K dimension in tiles must match between input A ({}) and input B ({})\n"
    if k_tiles != weight_tiles and call.folding is not None and not call.folding.weights:
        yield (
            f"{tiles.format(k_tiles, weight_tiles)}conv_config.enable_kernel_stride_folding: the image in DRAM was "
            "folded, but not the weights; set it to False, leave shard_layout out, or put the input in L1"
        )
    if k_tiles != weight_tiles and prepared:
        yield (
            f"{tiles.format(k_tiles, weight_tiles)}weight_tensor: it was prepared for {weight_tiles} tiles of "
            "channels, which fill other cores; pass it on the host"
        )
    if columns < problem.n_tiles * TILE:
        yield (
            f"Shard width {problem.n_tiles * TILE} must match physical width {columns} for height sharded\n"
            "weight_tensor: it was prepared for other channels; pass it on the host"
        )
    if k_tiles != problem.k_tiles and not prepared:
        yield (
            f"{tiles.format(k_tiles, problem.k_tiles)}core_grid: {partitioned.layout.config.channel_cores} cores do "
            f"not divide the {k_tiles} channel tiles; give a grid that does"
        )


def _shards_refusals(partitioned: PartitionedConv, problem: MatmulProblem, memory: MemoryConfig) -> Iterator[str]:
    """Why the shards of the input do not suit the blocks of the program."""
    shards, per_core = memory.shard_spec, partitioned.layout.shards.out_row_tiles
    if shards is None or memory.memory_layout is WIDTH:
        return
    grid = partitioned.layout.out_config.cores
    blocks, box = div_up(problem.m_tiles, per_core), grid.bounding_box()
    kind = "MatmulMultiCoreReuseMultiCast" + ("1DProgramConfig" if memory.memory_layout is HEIGHT else "ProgramConfig")
    if box.start != CoreCoord(0, 0):
        yield (
            f"{kind}: output shard grid {grid} must lie within extent {box.cols}-{box.rows}\n"
            "core_grid, or the grid of the input's shards: give cores that begin at (0, 0)"
        )
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    cores = shards.num_cores() if memory.memory_layout is HEIGHT else box.rows if by_rows else box.cols
    if blocks > cores:
        first = (
            f"number of M blocks ceil(M/per_core_M)={blocks} must not exceed input A shard grid cores ({cores})"
            if memory.memory_layout is HEIGHT
            else f"Num output blocks along {'y' if by_rows else 'x'} ({blocks}) must be smaller than or "
            f"equal to the number of {'rows' if by_rows else 'columns'} in compute grid ({cores})!"
        )
        yield (
            f"{kind}: {first}\ninput_tensor: it has {problem.m_tiles} tiles of rows, and a core computes {per_core} of "
            "those that the call says; give as many as those"
        )
    rows = shards.shape[0]
    if rows != per_core * TILE:
        rows_text = {
            HEIGHT: f"shard_shape[0] ({rows}) / in0_tile height ({TILE})",
            BLOCK: f"shard_shape[0] / in0_tile.get_height() ({rows // TILE})",
        }[memory.memory_layout]
        yield (
            f"{kind}: per_core_M ({per_core}) must equal {rows_text}\ninput_tensor: its rows fill {per_core} tiles on "
            f"each of its cores; give it shards of {per_core * TILE} rows, or set reshard_if_not_optimal"
        )


AS_MATMUL: Final = Decision(
    name="path",
    value="matmul",
    text="a kernel of 1x1 without stride, padding and dilation runs as a matmul of pixels and channels, not as a "
    "convolution over a frame",
)


def matmul_path(
    builder: PlanBuilder, call: ConvCall, source: PlanTensor, *, from_dram: bool, free_l1_bytes: int
) -> PlanTensor:
    """Steps from the caller's input to the output of a 1x1 convolution, in the call's memory config if that is given.

    The DRAM path (``from_dram``) uploads a host input before anything else.
    """
    builder.decide(AS_MATMUL)
    partitioned, shard = partition_matmul(call, builder.device_spec)
    if shard and partitioned.reshards:
        name_rules(builder, conv_rules(partitioned.layout, builder.device_spec.grid, matmul=True))
    place, name, deallocate = partitioned.input_memory, "input.sharded", call.conv_config.deallocate_activation
    on_host, start = call.input.on_host, source
    if on_host and from_dram:
        uploaded = placement.uploaded_image(builder, source)
        builder.adopt(uploaded)
        if call.rules.shards_uploaded_image:
            on_host, start = False, uploaded
    if on_host:
        ready = placement.uploaded_rows(builder, start, place, place if shard else DRAM_MEMORY_CONFIG, name)
    else:
        new = place if partitioned.reshards else None
        ready = matmul_input(builder, start, new, name, deallocate=deallocate, shard=shard)
    consumed = ready.name != start.name or (deallocate and ready.in_l1)
    upload_weights(builder, partitioned)
    if builder.refused:
        return ready
    tiles = ready
    if ready.spec.layout is not Layout.TILE:
        tiles = placement.tilized(builder, ready, "input.tiled")
        if consumed:
            builder.free(ready)
    output = _multiplied(builder, partitioned, tiles, free_l1_bytes=free_l1_bytes - builder.own_l1_bytes)
    spent = [tiles] if consumed or tiles.name != ready.name else []
    if deallocate and not call.input.on_host and source.in_l1:
        builder.free(*spent)
        spent = []
    if call.memory_config is not None:
        output = placement.to_config(builder, output, call.memory_config, "output.placed")
        if builder.refused:
            return output
    builder.free(*spent)
    return output


def partition_matmul(call: ConvCall, device_spec: DeviceSpec) -> tuple[PartitionedConv, bool]:
    """How a 1x1 convolution is partitioned, and whether its input is sharded.

    If the library chose the scheme, the input is not sharded, and the partition says only how the weights are prepared.
    """
    problem, options = call.lower()
    memory = DRAM_MEMORY_CONFIG if call.input.on_host else call.input.spec.memory_config
    scheme = call.conv_config.shard_layout
    if memory.is_sharded():
        if not must_reshard(call, memory):
            layout = partition_conv(problem, options, device_spec, sharded_input(memory), alignment=TILE, matmul=True)
            input_memory = call.flattened_memory
            return PartitionedConv(call=call, layout=layout, input_memory=input_memory, reshards=False), True
        if _parts_channels(call, memory):
            scheme = BLOCK
        if scheme is None:
            raise DeviceError(
                "Conv2d supports Height, Block or Width Sharded Layouts but got TensorMemoryLayout::INTERLEAVED\n"
                "The shards of the input do not suit a 1x1 convolution: set shard_layout to choose others"
            )
    chosen = scheme or choose_scheme(problem, options, device_spec, matmul=True).scheme
    config = choose_cores(problem, options, device_spec, chosen, alignment=TILE, matmul=True)
    layout = partition_conv(problem, options, device_spec, config, alignment=TILE, matmul=True)
    place = redistributed(call, problem, config, matmul=True)
    elsewhere = replace(place, buffer_type=memory.buffer_type) != memory  # only the shards differ
    reshards = scheme is None or elsewhere or _parts_channels(call, memory)
    partitioned = PartitionedConv(
        call=call,
        layout=layout,
        input_memory=place if reshards else call.flattened_memory,
        sharded=scheme is not None,
        reshards=reshards,
    )
    return partitioned, scheme is not None


def must_reshard(call: ConvCall, memory: MemoryConfig) -> bool:
    """Whether a sharded input must be resharded: a matmul needs whole tiles, and in BLOCK shards just the channels."""
    shards, config = memory.shard_spec, call.conv_config
    if shards is None or config.reshard_if_not_optimal or config.override_sharding_config:
        return True
    turned = memory.memory_layout is not BLOCK and shards.orientation is not ShardOrientation.ROW_MAJOR
    return turned or any(side % TILE for side in shards.shape) or _parts_channels(call, memory)


def _parts_channels(call: ConvCall, memory: MemoryConfig) -> bool:
    """Whether BLOCK shards hold more or less than the channels."""
    if memory.memory_layout is not BLOCK or memory.shard_spec is None:
        return False
    return call.in_channels != sharded_input(memory).channel_cores * memory.shard_spec.shape[1]


def _multiplied(
    builder: PlanBuilder, partitioned: PartitionedConv, tiles: PlanTensor, *, free_l1_bytes: int
) -> PlanTensor:
    """The product of tiles and weights: sharded with the blocks of the convolution, or interleaved in DRAM.

    Operations of their own activate an interleaved product and, if the tiles are in L1, add the bias.
    """
    call, layout, sizes = partitioned.call, partitioned.layout, partitioned.problem
    sharded, activation = tiles.spec.memory_config.is_sharded(), call.conv_config.activation
    weight, *bias = operands(builder, call)
    problem = MatmulProblem(
        m_tiles=round_up(tiles.spec.padded_shape[-2], TILE) // TILE,
        k_tiles=round_up(sizes.in_channels, layout.config.channel_cores * TILE) // TILE,
        n_tiles=layout.shards.out_channels // TILE,
        in_format=tiles.spec.data_format,
        weight_format=weight.spec.data_format,  # programs ask the tensor, not the config
        out_format=sizes.out_format,
        bias=sizes.bias and (sharded or (not tiles.in_l1 and _is_fused(bias[0].spec, sizes.out_channels))),
        fp32_dest=call.compute.fp32_dest,
        packer_l1_acc=call.compute.packer_l1_acc,
        useful=useful_flops(sizes) // 2,
    )
    # The real library counts the rows that PadDeviceOperation adds as rows of the tensor, and of the output.
    rows, columns = tiles.spec.shape[-2], sizes.out_channels
    if sharded:
        padded, place = (1, 1, round_up(rows, TILE), round_up(columns, TILE)), _cores_with_blocks(layout, problem)
        result = TensorSpec((1, 1, rows, columns), problem.out_format, Layout.TILE, place, padded)
        config = _sharded_config(layout)
    else:
        result = TensorSpec((1, 1, rows, columns), problem.out_format, Layout.TILE, DRAM_MEMORY_CONFIG)
        spec, in_dram = builder.device_spec, not tiles.in_l1
        release = release_of(spec.release)
        config = interleaved_config(problem, spec.grid, in_dram=in_dram, l1_bytes=free_l1_bytes, release=release)
    op = MatmulOp(
        problem=problem,
        config=config,
        fidelity_phases=call.compute.fidelity_phases,
        out_channels=columns,
        activation=activation if sharded else None,
        out_rows=rows,
    )
    spec = builder.device_spec
    refused = _raw_refusal(call, op, tiles.spec, weight.spec, spec, sharded=sharded, free_l1_bytes=free_l1_bytes)
    if refused is None and bias and not sharded:
        refused = _bias_refusal(bias[0].spec, result, weight.spec.padded_shape[-1], fused=problem.bias)
    refused = refused or next(matmul_refusals(partitioned, op, weight.spec, tiles.spec.memory_config, spec.grid), None)
    inputs = [tiles, weight, *(bias if problem.bias else ())]
    output = run_matmul(builder, op, inputs, result, key=(tiles.spec, weight.spec), refused=refused)
    if sharded:
        return output
    name_rules(builder, matmul_rules(op, free_l1_bytes))
    if bias and not problem.bias:
        output = with_row(builder, output, bias[0], bias[0].spec.data_format, "output.biased")
    return output if activation is None else activated(builder, output, activation, "output.activated")


def _raw_refusal(
    call: ConvCall,
    op: MatmulOp,
    tiles: TensorSpec,
    weights: TensorSpec,
    spec: DeviceSpec,
    *,
    sharded: bool,
    free_l1_bytes: int,
) -> str | None:
    """Why no matmul takes weights on the device that are not prepared: as matrices of their last two axes.

    None for other weights, and for a call of conv2d, which prepares them.
    """
    prepared = weights.shape[:2] == (1, 1) and weights.layout is Layout.TILE
    if call.weight.on_host or not call.rules.transposed or prepared:
        return None
    if len(weights.shape) < 2:
        raise NotSimulatedError("weight_tensor: weights of one axis on the device are not simulated; prepare them")
    arguments = MatmulArguments(
        first=tiles,
        second=weights,
        bias=None,
        out_format=op.problem.out_format,
        memory_config=replace(tiles.memory_config, shard_spec=None) if sharded else DRAM_MEMORY_CONFIG,
        fidelity_phases=op.fidelity_phases,
        program=replace(op.config, fuse_batch=True) if sharded else None,
        batched=False,
    )
    try:
        checks = (require_output, require_blocks)
        validate(arguments, *(partial(check, arguments, spec, free_l1_bytes=free_l1_bytes) for check in checks))
    except NotSimulatedError:
        raise
    except (ArgumentError, DeviceError) as error:
        first = str(error).splitlines()[0]
        return f"{first}\nweight_tensor: weights on the device must be prepared; pass them on the host"
    return None


def _is_fused(bias: TensorSpec, columns: int) -> bool:
    """Whether the program of interleaved operands in DRAM adds a bias: one row of tiles, as wide as the output."""
    return bias.matrix[0] == TILE and (1, *bias.shape)[-1] >= columns


def _bias_refusal(bias: TensorSpec, output: TensorSpec, weight_columns: int, *, fused: bool) -> str | None:
    """Why no program adds a bias, which may be a caller's tensor on the device, to an interleaved product."""
    *_, high, wide = (1, 1, *bias.shape)
    rows, columns = output.shape[-2:]
    first = None
    if fused and bias.padded_shape[-1] != weight_columns:
        first = (
            f"Unsupported bias shape: padded last dimension of bias, {bias.padded_shape[-1]}, not equal to second "
            f"input's padded last dimension, {weight_columns}."
        )
    elif fused and high not in (1, rows):
        first = "Broadcast error: Invalid dimension"
    elif not fused and wide not in (1, columns):
        first = f"Broadcasting rule violation at dimension index -1 (output rank 4), dim a: {columns}, dim b: {wide}"
    elif not fused and high not in (1, rows):
        first = "Invalid subtile broadcast type"
    elif high != 1:
        raise NotSimulatedError(
            f"a bias of {list(bias.shape)} for {columns} output channels is not simulated; give [1, 1, 1, {columns}]"
        )
    return None if first is None else f"{first}\nbias_tensor: give [1, 1, 1, {columns}], or pass it on the host"


def _cores_with_blocks(layout: ConvPartition, problem: MatmulProblem) -> MemoryConfig:
    """The cores of the output: one core per output block, starting with the input's first core."""
    place, box = layout.output_memory, layout.out_config.cores.bounding_box()
    shards = place.shard_spec
    if shards is None or layout.scheme is WIDTH:
        return place
    high = div_up(problem.m_tiles, layout.shards.out_row_tiles)
    wide = div_up(problem.n_tiles, layout.shards.out_col_tiles)
    if layout.scheme is HEIGHT:
        if high > box.num_cores():
            raise DeviceError(
                f"Target number of cores {high} is greater than total number of available cores {box.num_cores()}\n"
                f"input_tensor: its rows are {high} blocks of the {shards.shape[0]} that the call's outputs have on a "
                "core; give the rows that the call says"
            )
        grid = first_cores(high, box.cols, box.rows)
    else:
        by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
        grid = core_rectangle(min(wide, box.cols), high) if by_rows else core_rectangle(high, min(wide, box.rows))
    if grid.num_cores() == shards.num_cores():
        return place
    return replace(place, shard_spec=ShardSpec(grid, shards.shape, shards.orientation))


def _sharded_config(layout: ConvPartition) -> MatmulConfig:
    """The program config for an input and an output that are sharded like those of a convolution.

    HEIGHT shards multiply by all weights, which are multicast; other shards multicast their channels as well, so that
    there is one K block for each core of a row.
    """
    blocks, shards, config = layout.blocks, layout.shards, layout.out_config
    box = config.cores.bounding_box()
    return MatmulConfig(
        program=MatmulProgram.MCAST_IN1 if layout.scheme is HEIGHT else MatmulProgram.MCAST_2D,
        grid=GridSpec(cols=box.cols, rows=box.rows),
        in0_block_w=blocks.act_w_tiles,
        out_block_h=shards.out_row_tiles,
        out_block_w=shards.out_col_tiles,
        out_subblock_h=blocks.subblock_h_tiles,
        out_subblock_w=blocks.subblock_w_tiles,
        per_core_m=shards.out_row_tiles,
        per_core_n=shards.out_col_tiles,
        transpose_mcast=config.orientation is ShardOrientation.COL_MAJOR,
    )


def matmul_input(
    builder: PlanBuilder, source: PlanTensor, config: MemoryConfig | None, name: str, *, deallocate: bool, shard: bool
) -> PlanTensor:
    """An input on the device before weights are uploaded: the source, or a copy that the plan owns.

    Rows that are not height sharded become tiles first; height sharded rows only after the weights.
    The scheme of ``config`` matters even if ``shard`` is false, because the library chose the shard layout; None leaves
    the input as it is.
    """
    current = reshaped(builder, source, placement.flattened(source.spec.shape), f"{name}.rows")
    if config is None:
        return current
    if current.spec.layout is Layout.ROW_MAJOR and config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        shards = current.spec.memory_config.shard_spec
        high = current.spec.memory_config.memory_layout is HEIGHT
        if shards is not None and high and any(side % TILE for side in shards.shape):
            raise DeviceError(
                f"Physical shard shape ({shards.shape[0]}, {shards.shape[1]}) must be tile {{{TILE}, {TILE}}} sized!\n"
                "input_tensor: before its rows are dealt to other shards they become tiles; use HEIGHT_SHARDED, or put "
                "the input in interleaved memory"
            )
        tiles = placement.tilized(builder, current, f"{name}.tiles")
        placement.replace_input(builder, source, current, tiles, deallocate=deallocate)
        current = tiles
    if shard:
        copy = placement.to_shards(builder, current, config, name)
        placement.replace_input(builder, source, current, copy, deallocate=deallocate)
        current = copy
    return current
