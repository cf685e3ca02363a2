"""How a convolution is laid out on a device: partition, shards, blocks and circular buffers in one value.

This is the one place where the pieces of `partition`, `blocks`, `reader_indices` and `circular_buffers` are put
together; the choice of a shard scheme, the L1 estimates of slicing and the plan itself all read a `ConvPartition`.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Final

from device.cores import CoreCoord, CoreRangeSet, core_rectangle
from device.errors import DeviceError
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.block_floats import div_up, round_up
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.blocks import Blocks, Shards, plan_blocks, plan_shards, weight_rows
from ops.programs.conv2d.buffers import (
    BufferRequest,
    ConvBuffersArguments,
    buffer_requests,
    check_estimated_format,
    check_reuse,
    local_bytes,
    multicasts_activations,
)
from ops.programs.conv2d.parallel_config import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvOptions,
    ConvProblem,
    ParallelConfig,
    channel_alignment,
    input_parallel_config,
    output_parallel_config,
)
from ops.programs.conv2d.reader_indices import uses_split_reader
from ops.programs.halo.transfers import most_sticks


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPartition:
    """A convolution on a device."""

    config: ParallelConfig  # Cores of the input
    out_config: ParallelConfig  # Cores of the output
    shards: Shards
    blocks: Blocks
    split_reader: bool  # Both data-movement processors read activations

    @property
    def scheme(self) -> TensorMemoryLayout:
        """The shard scheme."""
        return self.config.scheme

    @property
    def program_cores(self) -> CoreRangeSet:
        """The rectangle on which the conv2d program runs, around all input and output cores.

        A WIDTH program runs around the more of the two alone, the output's if they are as many.
        """
        ends = [self.out_config, self.config]
        if self.scheme is WIDTH:
            ends = [max(ends, key=lambda end: end.cores.num_cores())]
        last = [one.cores.bounding_box().end for one in ends]
        return core_rectangle(max([one.x for one in last]) + 1, max([one.y for one in last]) + 1)

    def unplaced_core(self, device_cols: int) -> CoreCoord | None:
        """The first core of a WIDTH program that it does not run on, as the real library numbers them.

        They are numbered row by row over the whole device, not over the grid in use.
        """
        if self.scheme is not WIDTH:
            return None
        placed = set(self.program_cores.cores())
        for number in range(self.config.cores.num_cores()):
            row, col = divmod(number, device_cols)
            core = CoreCoord(col, row)
            if core not in placed:
                return core
        return None

    @property
    def input_memory(self) -> MemoryConfig:
        """Where the sharded input lies."""
        return sharded_memory(self.config, self.shards.in_rows, self.shards.in_width)

    @property
    def output_memory(self) -> MemoryConfig:
        """Where the output lies; WIDTH shards are padded to tiles only here."""
        return sharded_memory(self.out_config, round_up(self.shards.out_rows, TILE), self.shards.out_width)


def sharded_memory(config: ParallelConfig, rows: int, width: int) -> MemoryConfig:
    """L1 shards of so many rows and columns on the cores of an input or an output."""
    return MemoryConfig(config.scheme, BufferType.L1, ShardSpec(config.cores, (rows, width), config.orientation))


def sharded_input(memory: MemoryConfig) -> ParallelConfig:
    """The cores of an input that is already sharded."""
    shards = memory.shard_spec
    if shards is None:
        raise AssertionError("an input without shards has no parallel config")
    box, scheme = shards.grid.bounding_box(), memory.memory_layout
    along, across = (box.cols, box.rows) if shards.orientation is ShardOrientation.ROW_MAJOR else (box.rows, box.cols)
    nhw = {HEIGHT: shards.grid.num_cores(), BLOCK: across, WIDTH: 1}[scheme]
    channels = {HEIGHT: 1, BLOCK: along, WIDTH: shards.grid.num_cores()}[scheme]
    return ParallelConfig(
        scheme=scheme, nhw_cores=nhw, channel_cores=channels, cores=shards.grid, orientation=shards.orientation
    )


def choose_cores(
    problem: ConvProblem,
    options: ConvOptions,
    spec: DeviceSpec,
    scheme: TensorMemoryLayout,
    *,
    alignment: int,
    matmul: bool = False,
) -> ParallelConfig:
    """The cores of the input: the caller's grid, or the library's choice."""
    orientation = (
        ShardOrientation.COL_MAJOR if options.transpose_shards and scheme is BLOCK else ShardOrientation.ROW_MAJOR
    )
    if options.core_grid is not None:
        return sharded_input(
            MemoryConfig(scheme, BufferType.L1, ShardSpec(options.core_grid, (TILE, TILE), orientation))
        )
    return input_parallel_config(
        scheme,
        spec.grid,
        rows=problem.out_rows,
        in_channels=problem.in_channels,
        out_channels=problem.out_channels,
        alignment=alignment,
        act_block_h_tiles=max(1, options.act_block_h_override // TILE),
        orientation=orientation,
        matmul=matmul,
    )


def partition_conv(
    problem: ConvProblem,
    options: ConvOptions,
    spec: DeviceSpec,
    config: ParallelConfig,
    *,
    alignment: int,
    reader_alignment: int | None = None,
    matmul: bool = False,
) -> ConvPartition:
    """Shards, blocks and readers of a convolution whose input lies on `config`.

    Args:
        reader_alignment: The same where it differs for the choice of readers (in estimates).

    Raises:
        DeviceError: The blocks can not be cut so, no activation can be reused, or the given output grid does not fit.
    """
    out_config = output_parallel_config(
        config, spec.grid, out_channels=problem.out_channels, matmul=matmul, given=options.output_grid
    )
    shards = plan_shards(
        config,
        out_config,
        in_rows=problem.in_rows,
        in_channels=problem.in_channels,
        out_rows=problem.out_rows,
        out_channels=problem.out_channels,
        alignment=alignment,
        row_major=problem.row_major or problem.sliced,
    )
    blocks = plan_blocks(
        config,
        shards,
        kernel=problem.kernel,
        act_block_h_override=options.act_block_h_override,
        act_block_w_div=options.act_block_w_div,
        full_inner_dim=options.joins_kernel_rows(config.scheme),
        dst_tiles=spec.compute.dst_half_tiles(fp32_dest=options.fp32_dest),
    )
    if options.activation_reuse:
        check_reuse(config, act_h_tiles=blocks.act_h_tiles, columns=problem.frame.columns.outputs)
    split = not matmul and uses_split_reader(
        config.scheme,
        spec.reader,
        act_h_tiles=blocks.act_h_tiles,
        act_w_tiles=blocks.act_w_tiles,
        out_w_tiles=shards.out_col_tiles,
        padded_channels=round_up(problem.in_channels, config.channel_cores * (reader_alignment or alignment)),
        kernel_w=problem.kernel[1],
        dilation_w=problem.frame.columns.dilation,
        act_format=problem.act_format,
        weight_format=problem.weight_format,
        out_format=problem.out_format,
        fp32_dest=options.fp32_dest,
        forced=True if options.activation_reuse and options.force_split_reader is None else options.force_split_reader,
    )
    return ConvPartition(config=config, out_config=out_config, shards=shards, blocks=blocks, split_reader=split)


def scheme_alignment(problem: ConvProblem, scheme: TensorMemoryLayout, *, matmul: bool = False) -> int:
    """Channel alignment of an input that is yet to be sharded by `scheme`."""
    return channel_alignment(
        scheme, row_major=problem.row_major, sliced=problem.sliced, matmul=matmul, shard_width=None
    )


def buffers_arguments(
    problem: ConvProblem,
    options: ConvOptions,
    layout: ConvPartition,
    *,
    halo_bytes: int,
    reader_indices_bytes: int,
    multicast: bool | None = None,
    accumulation_blocks: int | None = None,
    tap_channels: int | None = None,
) -> ConvBuffersArguments:
    """What decides the circular buffers of the micro-op.

    Args:
        multicast: Whether activations are multicast, where an estimate takes another view of it.
        accumulation_blocks: K blocks that decide on L1 accumulation, where an estimate counts them in another way.
        tap_channels: Rows of weights of a tap, where an estimate counts them in another way.
    """
    blocks = layout.blocks
    if multicast is None:
        multicast = multicasts_activations(layout.config, layout.out_config)
    if accumulation_blocks is None:
        accumulation_blocks = blocks.k_blocks * (layout.out_config.channel_cores if layout.scheme is BLOCK else 1)
    if tap_channels is None:
        tap_channels = weight_rows(layout.scheme, blocks, layout.shards, problem.kernel) // prod(problem.kernel)
    return ConvBuffersArguments(
        config=layout.config,
        multicast=multicast,
        accumulation_blocks=accumulation_blocks,
        reused_columns=problem.frame.columns.outputs if options.activation_reuse else 0,
        tap_channels=tap_channels,
        shards=layout.shards,
        blocks=blocks,
        kernel=problem.kernel,
        act_format=problem.act_format,
        weight_format=problem.weight_format,
        out_format=problem.out_format,
        fp32_dest=options.fp32_dest,
        packer_l1_acc=options.packer_l1_acc,
        bias=problem.bias,
        untilize_out=options.untilize_out,
        act_double_buffer=options.act_double_buffer,
        weights_double_buffer=options.weights_double_buffer,
        split_reader=layout.split_reader,
        config_tensors_in_dram=options.config_tensors_in_dram,
        reader_indices_bytes=reader_indices_bytes,
        halo_bytes=halo_bytes,
    )


SCHEME_DECISION: Final = "shard_layout"  # under this name plans say which scheme was chosen
BYTES_PER_INDEX = 2  # the estimate takes one uint16 for each output row


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Estimate:
    """Bytes on each core that a convolution takes, as the real library estimates them."""

    layout: ConvPartition  # The layout they belong to
    halo_bytes: int
    output_bytes: int
    buffers_bytes: int  # Circular buffers that take L1 of their own

    @property
    def total_bytes(self) -> int:
        """What the choice of a scheme compares."""
        return self.buffers_bytes + self.output_bytes + self.halo_bytes

    @property
    def cores(self) -> int:
        """Cores of the larger side."""
        return max(self.layout.config.cores.num_cores(), self.layout.out_config.cores.num_cores())


def estimate_l1(
    problem: ConvProblem, options: ConvOptions, spec: DeviceSpec, scheme: TensorMemoryLayout, *, matmul: bool
) -> L1Estimate:
    """Estimate one scheme, with the library's choice of cores.

    Raises:
        DeviceError: `partition_conv` refuses the blocks.
    """
    alignment = scheme_alignment(problem, scheme, matmul=matmul)
    free = options if options.core_grid is None else replace(options, core_grid=None)
    config = choose_cores(problem, free, spec, scheme, alignment=alignment, matmul=matmul)
    layout = partition_conv(problem, options, spec, config, alignment=alignment, matmul=matmul)
    buffers = estimated_buffers(
        problem,
        options,
        layout,
        accumulation_blocks=estimated_blocks(problem, layout, alignment),
        tap_channels=round_up(problem.in_channels, alignment),
    )
    halo_bytes = estimated_halo_bytes(problem, layout.config.nhw_cores, layout.shards.in_width)
    return L1Estimate(
        layout=layout,
        halo_bytes=halo_bytes,
        output_bytes=next(b.size_bytes for b in buffers if b.name == "out"),
        buffers_bytes=local_bytes(buffers),
    )


def estimated_buffers(
    problem: ConvProblem, options: ConvOptions, layout: ConvPartition, *, accumulation_blocks: int, tap_channels: int
) -> list[BufferRequest]:
    """Circular buffers as the estimates count them: all but HEIGHT multicast, every output row has a reader index.

    Raises:
        DeviceError: An activation block is higher than a core's share of the output, or the readers of a block float
            would reuse activations.
    """
    shards, height = layout.shards, layout.blocks.act_h_tiles
    if height > shards.out_row_tiles:
        raise DeviceError(
            f"Conv2d output block size {height * shards.out_col_tiles} exceeds the per-core output size "
            f"{shards.out_row_tiles * shards.out_col_tiles}\n"
            f"act_block_h_override={options.act_block_h_override} is more than a core's {shards.out_rows} output rows: "
            "leave it 0 or set shard_layout to a scheme with more rows for each core"
        )
    if options.activation_reuse and layout.split_reader:
        check_estimated_format(problem.in_format)
    indices = layout.shards.out_row_tiles * TILE * BYTES_PER_INDEX
    arguments = buffers_arguments(
        problem,
        options,
        layout,
        halo_bytes=0,
        reader_indices_bytes=indices,
        multicast=layout.scheme is not HEIGHT,
        accumulation_blocks=accumulation_blocks,
        tap_channels=tap_channels,
    )
    return buffer_requests(arguments)


def estimated_blocks(problem: ConvProblem, layout: ConvPartition, alignment: int) -> int:
    """K blocks as the real library counts them in L1 estimates, before the weights are laid out."""
    kh, kw = problem.kernel
    rows = round_up(problem.in_channels, alignment) * kh * kw // TILE
    columns = div_up(problem.out_channels, TILE) // layout.shards.out_col_tiles
    return rows // layout.blocks.act_w_tiles * (columns if layout.scheme is BLOCK else 1)


def estimated_halo_bytes(problem: ConvProblem, nhw_cores: int, shard_width: int) -> int:
    """Bytes of the halo output on one core."""
    frame = problem.frame
    rows = round_up(frame.outputs, nhw_cores * TILE) // nhw_cores
    sticks = most_sticks(frame, output_rows=rows, cores=nhw_cores)
    return sticks * shard_width * (problem.act_format.element_bytes or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeChoice:
    """A shard scheme that the library picked."""

    layout: ConvPartition  # The layout that was estimated
    decision: Decision  # What decided, for whoever asks

    @property
    def scheme(self) -> TensorMemoryLayout:
        """Which."""
        return self.layout.scheme


def choose_scheme(problem: ConvProblem, options: ConvOptions, spec: DeviceSpec, *, matmul: bool) -> SchemeChoice:
    """The shard scheme the real library picks when none is given: least L1, with two conditions.

    BLOCK must reach a grid row of cores, WIDTH cannot run a matmul. Arguments as of `estimate_l1`.
    """
    height, block, width = (
        estimate_l1(problem, options, spec, scheme, matmul=matmul) for scheme in (HEIGHT, BLOCK, WIDTH)
    )
    best = height
    if block.total_bytes < best.total_bytes and block.cores >= spec.grid.cols:
        best = block
    if width.total_bytes < best.total_bytes and not matmul:
        best = width
    return SchemeChoice(layout=best.layout, decision=_decision(best, (height, block, width)))


def _decision(best: L1Estimate, all_three: tuple[L1Estimate, ...]) -> Decision:
    """Why one of the schemes is taken: of those that may be, it is estimated to take least L1."""
    name = best.layout.scheme.name
    told = ", ".join(
        f"{one.layout.scheme.name} {one.total_bytes:,} B on {'one core' if one.cores == 1 else f'each of {one.cores}'}"
        for one in all_three
    )
    return Decision(
        name=SCHEME_DECISION,
        value=name,
        text=f"shard_layout is the library's choice, {name}: of the schemes that may run it has the least L1 by the "
        f"library's estimate ({told}), whatever it takes in time",
        limits=tuple((f"{one.layout.scheme.name}_bytes", one.total_bytes) for one in all_three),
    )
