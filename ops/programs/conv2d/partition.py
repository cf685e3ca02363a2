"""How a convolution lies on a device: its sizes and options, cores, shards and blocks in one value.

The circular buffers, the choice of a shard scheme, the estimates of L1, the plan, values and cycles all read a
`ConvPartition`.
"""

from dataclasses import dataclass

from device.cores import CoreCoord, CoreRangeSet, core_rectangle
from device.errors import DeviceError
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.blocks import Blocks, Shards, plan_blocks, plan_shards
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPartition:
    """A convolution on a device."""

    problem: ConvProblem  # Sizes and formats
    options: ConvOptions  # The caller's choices
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
    def joins_kernel_rows(self) -> bool:
        """Whether all kernel rows of a shard are one K block."""
        return self.options.joins_kernel_rows(self.scheme)

    @property
    def multicasts_activations(self) -> bool:
        """Whether activations travel between cores: BLOCK and WIDTH with several channel cores on either side."""
        return self.scheme is not HEIGHT and (self.config.channel_cores > 1 or self.out_config.channel_cores > 1)

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


def check_reuse(config: ParallelConfig, *, act_h_tiles: int, columns: int) -> None:
    """Refuses blocks in which no second row of the image begins, for HEIGHT.

    Raises:
        DeviceError: The block is not higher than a row of the image.
    """
    row_tiles = div_up(columns, TILE)
    if config.scheme is HEIGHT and act_h_tiles <= row_tiles:
        raise DeviceError(
            f"Activation reuse needs act block h ({act_h_tiles}) to be bigger than output image width in tiles "
            f"({row_tiles}) for the optimization to give boost\n"
            "conv_config.enable_activation_reuse: leave it out, or give every core more rows of the output"
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
    return ConvPartition(
        problem=problem,
        options=options,
        config=config,
        out_config=out_config,
        shards=shards,
        blocks=blocks,
        split_reader=split,
    )


def scheme_alignment(problem: ConvProblem, scheme: TensorMemoryLayout, *, matmul: bool = False) -> int:
    """Channel alignment of an input that is yet to be sharded by `scheme`."""
    return channel_alignment(
        scheme, row_major=problem.row_major, sliced=problem.sliced, matmul=matmul, shard_width=None
    )
