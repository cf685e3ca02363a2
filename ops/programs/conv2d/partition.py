"""The partition of a convolution: sizes, options, cores of rows and channels, shards and blocks."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from device.cores import CoreCoord, CoreRangeSet, core_rectangle, first_cores
from device.errors import DeviceError, SpecError
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up, round_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec, ReaderRates, TransferRate
from device.spec.releases import release_of
from ops.programs.buffer_shapes import core_counts
from ops.window import PaddedInput

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED


class ParallelConfig(NamedTuple):
    """Cores of one side (input or output) of a convolution."""

    scheme: TensorMemoryLayout  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    nhw_cores: int  # Cores that split the flattened rows
    channel_cores: int
    cores: CoreRangeSet  # All of them
    orientation: ShardOrientation  # ROW_MAJOR: a BLOCK grid has channels along x; COL_MAJOR: along y


def most_cores(tiles: int, limit: int, multiple: int = 1) -> int:
    """The most cores, at most `limit`, that share `tiles` so that every core has more than padding.

    Each core gets the same number of tiles, rounded up to `multiple` tiles. Shares only grow when cores are left out,
    so the cores that the smallest share needs are the most there can be.
    """
    smallest_share = round_up(tiles, limit * multiple) // limit
    return max(1, div_up(tiles, max(1, smallest_share)))


def largest_divisor(limit: int, *counts: int) -> int:
    """The largest number, at most `limit`, that divides every one of `counts`."""
    return next(d for d in range(limit, 0, -1) if all(count % d == 0 for count in counts))


def channel_alignment(
    scheme: TensorMemoryLayout,
    *,
    row_major: bool,
    sliced: bool = False,
    matmul: bool = False,
    shard_width: int | None = None,
) -> int:
    """Channels per core are a multiple of this number (docs/reference/planning.md, Alignment).

    `scheme` is the memory layout of the aligned tensor, `shard_width` the width of its shard, if it is sharded.
    """
    if matmul or scheme is WIDTH or not (row_major or sliced):
        return TILE
    if shard_width is None:
        return 8
    return next((channels for channels in (32, 16, 8) if shard_width % channels == 0), TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvOptions:
    """Fields of a Conv2dConfig and a compute config that decide a layout (docs/reference/planning.md, Arguments)."""

    act_block_h_override: int = 0  # Rows of an activation block; 0 takes the whole share of a core
    act_block_w_div: int = 1  # Parts of a K block (WIDTH only)
    transpose_shards: bool = False  # BLOCK grids are COL_MAJOR
    untilize_out: bool = False  # The output is ROW_MAJOR
    act_double_buffer: bool = False  # Activations are double buffered
    weights_double_buffer: bool = False  # Weights are double buffered
    full_inner_dim: bool = False  # BLOCK: all kernel rows in one K block
    activation_reuse: bool = False  # HEIGHT: the same, and readers keep what neighboring rows of the image share
    force_split_reader: bool | None = None  # None lets the rates decide
    config_tensors_in_dram: bool = False  # Config tensors live in DRAM
    core_grid: CoreRangeSet | None = None  # Cores given by the caller; None for the library's choice
    output_grid: GridSpec | None = None  # Grid of the output given by the caller (BLOCK only); None for all cores
    fp32_dest: bool = False  # Dst accumulates in float32
    packer_l1_acc: bool = False  # Partial sums are to be added in L1
    # HEIGHT and BLOCK: all kernel rows in one K block, which no caller asks for: output phases may
    whole_windows: bool = False

    def reuses_activations(self, scheme: TensorMemoryLayout) -> bool:
        """Whether readers reuse activations of the image row above."""
        return scheme is HEIGHT and self.activation_reuse

    def joins_kernel_rows(self, scheme: TensorMemoryLayout) -> bool:
        """Whether all kernel rows of a shard are one K block."""
        requested = (scheme is HEIGHT and self.activation_reuse) or (scheme is BLOCK and self.full_inner_dim)
        return requested or (self.whole_windows and scheme in (HEIGHT, BLOCK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvProblem:
    """One convolution, in sizes and formats."""

    frame: PaddedInput  # The padded, zero-inserted input; its stride is that of the conv2d program
    in_channels: int
    out_channels: int
    in_format: DataFormat  # Format of the input tensor
    weight_format: DataFormat  # Format of prepared weights and bias
    out_format: DataFormat
    row_major: bool
    sliced: bool = False  # The input is a window cut out of DRAM (it then arrives as row-major sticks)
    bias: bool = False
    groups: int = 1  # The weights between channels of different groups are zeros, which are multiplied like others
    zero_weights: int = 0  # Of an output channel, that fill the kernel of folded windows up to whole strides
    depthwise_row: bool = False  # Each channel of a row is convolved by itself, element by element, without a bias

    @property
    def kernel(self) -> tuple[int, int]:
        """(kh, kw)."""
        return self.frame.rows.kernel, self.frame.columns.kernel

    @property
    def in_rows(self) -> int:
        """N*H*W."""
        return self.frame.batch * self.frame.rows.input_length * self.frame.columns.input_length

    @property
    def out_rows(self) -> int:
        """N*OH*OW."""
        return self.frame.outputs

    @property
    def act_format(self) -> DataFormat:
        """Format of the halo output: block floats become bfloat16 there."""
        return FLOAT32 if self.in_format == FLOAT32 else BFLOAT16


SMALLEST_TRANSFER_BYTES = 16  # the rates of readers grow linearly from here to their peak
# (height, width) of an output sub-block in tiles, in the order in which the real library tries them.
SUBBLOCKS = (
    (2, 4), (4, 2), (1, 8), (8, 1), (1, 7), (7, 1), (2, 3), (3, 2), (1, 6), (6, 1),
    (1, 5), (5, 1), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Shapes of the input and the output on one core, in elements."""

    in_rows: int  # Rows of an input shard, for reports
    in_channels: int  # Padded channels of all input shards together (C_pad)
    in_width: int  # Channels of one input shard
    out_rows: int  # Rows of an output shard
    out_channels: int  # Padded channels of all output shards together (O_pad)
    out_width: int  # Channels of one output shard

    @property
    def out_row_tiles(self) -> int:
        """Height of an output shard in tiles."""
        return div_up(self.out_rows, TILE)

    @property
    def out_col_tiles(self) -> int:
        """Width of an output shard in tiles."""
        return div_up(self.out_width, TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Block sizes in tiles."""

    act_h_tiles: int  # Height of an activation block, which is also the height of an output block
    act_w_tiles: int  # Width of an activation block (one K block)
    subblock_h_tiles: int  # Height of an output sub-block (what Dst holds)
    subblock_w_tiles: int  # Width of an output sub-block
    k_blocks: int  # K blocks of the whole inner dimension, over all channel cores


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvPartition:
    """A convolution on a device."""

    problem: ConvProblem
    options: ConvOptions
    config: ParallelConfig  # Cores of the input
    out_config: ParallelConfig  # Cores of the output
    shards: Shards
    blocks: Blocks
    split_reader: bool  # Both data-movement processors read activations
    whole_partials: bool = False  # Partial sums take as much as a core's output, by the release's rules

    @property
    def scheme(self) -> TensorMemoryLayout:
        """The shard scheme."""
        return self.config.scheme

    @property
    def joins_kernel_rows(self) -> bool:
        """Whether all kernel rows of a shard are one K block."""
        return self.options.joins_kernel_rows(self.scheme)

    @property
    def reader_tile_rows(self) -> tuple[int, int]:
        """Tile rows of an activation block that the first and the second reader gather."""
        second = self.blocks.act_h_tiles // 2 if self.split_reader else 0
        return self.blocks.act_h_tiles - second, second

    @property
    def multicasts_activations(self) -> bool:
        """Whether activations travel between cores: BLOCK and WIDTH with several channel cores on either side."""
        return self.scheme is not HEIGHT and (self.config.channel_cores > 1 or self.out_config.channel_cores > 1)

    @property
    def program_cores(self) -> CoreRangeSet:
        """The rectangle on which the conv2d program runs, around all input and output cores.

        A WIDTH program runs around the larger of both sets only; around the output's if they have equally many cores.
        """
        ends = [self.out_config.cores, self.config.cores]
        if self.scheme is WIDTH:
            ends = [max(ends, key=CoreRangeSet.num_cores)]
        last = [cores.bounding_box().end for cores in ends]
        return core_rectangle(max([core.x for core in last]) + 1, max([core.y for core in last]) + 1)

    def unplaced_core(self, device_cols: int) -> CoreCoord | None:
        """The first core of a WIDTH program that lies outside the cores it runs on, in the real library's numbering.

        The library numbers cores row by row over the whole device, not over the grid in use.
        """
        if self.scheme is not WIDTH:
            return None
        placed, numbers = set(self.program_cores.cores()), range(self.config.cores.num_cores())
        numbered = (CoreCoord(number % device_cols, number // device_cols) for number in numbers)
        return next((core for core in numbered if core not in placed), None)

    @property
    def output_memory(self) -> MemoryConfig:
        """The memory config of the output; WIDTH shards are padded to tiles only here."""
        return sharded_memory(self.out_config, round_up(self.shards.out_rows, TILE), self.shards.out_width)


def weight_rows(layout: ConvPartition, kernel: tuple[int, int]) -> int:
    """Rows of the prepared weight matrix (docs/reference/planning.md, Weights)."""
    block_rows = layout.blocks.act_w_tiles * TILE
    if layout.scheme is WIDTH:
        return round_up(layout.shards.in_channels * kernel[0] * kernel[1], block_rows)
    return block_rows * layout.blocks.k_blocks


def sharded_memory(config: ParallelConfig, rows: int, width: int) -> MemoryConfig:
    """L1 shards of the given rows and columns on the cores of an input or an output."""
    shards = ShardSpec(config.cores, (rows, width), config.orientation).sealed()  # which nobody copies
    return MemoryConfig(config.scheme, BufferType.L1, shards)


def sharded_input(memory: MemoryConfig) -> ParallelConfig:
    """The cores of an input that is already sharded."""
    if memory.shard_spec is None:
        raise AssertionError("an input without shards has no parallel config")
    return _given_cores(memory.memory_layout, memory.shard_spec.grid, memory.shard_spec.orientation)


def _given_cores(scheme: TensorMemoryLayout, cores: CoreRangeSet, orientation: ShardOrientation) -> ParallelConfig:
    """How given cores share rows and channels."""
    return ParallelConfig(scheme, *core_counts(scheme, cores, orientation), cores, orientation)


def choose_cores(
    problem: ConvProblem,
    options: ConvOptions,
    spec: DeviceSpec,
    scheme: TensorMemoryLayout,
    *,
    alignment: int,
    matmul: bool = False,
) -> ParallelConfig:
    """The cores of the input: the caller's grid, or the library's choice; `alignment` divides a BLOCK shard's width."""
    down = options.transpose_shards and scheme is BLOCK
    orientation = ShardOrientation.COL_MAJOR if down else ShardOrientation.ROW_MAJOR
    if options.core_grid is not None:
        return _given_cores(scheme, options.core_grid, orientation)
    grid, nhw, channels = spec.grid, 1, 1
    row_tiles, act_block_h_tiles = div_up(problem.out_rows, TILE), max(1, options.act_block_h_override // TILE)
    if scheme is HEIGHT:
        nhw = most_cores(row_tiles, grid.cores, act_block_h_tiles)
    elif scheme is WIDTH:
        in_tiles = div_up(problem.in_channels, TILE)
        channels = largest_divisor(grid.cores, in_tiles) if matmul else most_cores(in_tiles, grid.cores)
    else:
        nhw_limit, channel_limit = (grid.cols, grid.rows) if down else (grid.rows, grid.cols)
        nhw = most_cores(row_tiles, nhw_limit, act_block_h_tiles)
        parts, out_tiles = div_up(problem.in_channels, alignment), div_up(problem.out_channels, TILE)
        channels = largest_divisor(channel_limit, out_tiles, parts) if matmul else most_cores(parts, channel_limit)
    return parallel_config(scheme, nhw, channels, orientation, grid)


def parallel_config(
    scheme: TensorMemoryLayout, nhw: int, channels: int, orientation: ShardOrientation, grid: GridSpec
) -> ParallelConfig:
    """As many cores as share rows and channels: a rectangle from core (0, 0) on for BLOCK, else the first ones."""
    if scheme is not BLOCK:
        cores = first_cores(nhw * channels, grid.cols, grid.rows)
    else:
        cores = core_rectangle(*((channels, nhw) if orientation is ShardOrientation.ROW_MAJOR else (nhw, channels)))
    return ParallelConfig(scheme, nhw, channels, cores, orientation)


def _output_cores(
    config: ParallelConfig, problem: ConvProblem, options: ConvOptions, grid: GridSpec, *, matmul: bool
) -> ParallelConfig:
    """Cores of the output: the cores of the input's rows, and the nonempty cores of channels.

    Raises DeviceError if the caller's grid does not fit the scheme, or the cores of the rows.
    """
    down = config.orientation is ShardOrientation.COL_MAJOR
    if options.output_grid is not None:
        grid = options.output_grid
        if config.scheme is not BLOCK:
            raise DeviceError(
                "Output sharding config override is only supported for BLOCK_SHARDED layout.\n"
                f"conv_config.override_output_sharding_config: the call is, or is tried as, {config.scheme.name}; "
                "set shard_layout=BLOCK_SHARDED, or leave the override out"
            )
        across = grid.cols if down else grid.rows
        if across != config.nhw_cores:
            raise DeviceError(
                "NHW cores must match for input and output when overriding the grid size.\n"
                f"conv_config.core_grid: it has {across} cores for the rows of the output, and the input lies on "
                f"{config.nhw_cores}; give as many, or set override_sharding_config too"
            )
    if matmul or config.scheme is HEIGHT:
        return config
    limit = grid.cores if config.scheme is WIDTH else grid.rows if down else grid.cols
    channels = most_cores(div_up(problem.out_channels, TILE), limit)
    return parallel_config(config.scheme, config.nhw_cores, channels, config.orientation, grid)


def input_shard(
    config: ParallelConfig, *, rows: int, channels: int, alignment: int, row_major: bool
) -> tuple[int, int]:
    """(rows, channels) of one shard of a matrix on the cores of an input."""
    width = round_up(channels, config.channel_cores * alignment) // config.channel_cores
    if config.scheme is WIDTH:
        return rows if row_major else round_up(rows, TILE), width
    return round_up(rows, config.nhw_cores * TILE) // config.nhw_cores, width


def subblock(block_h_tiles: int, block_w_tiles: int, dst_tiles: int) -> tuple[int, int]:
    """The output sub-block (height, width) in tiles: the first of `SUBBLOCKS` that fits Dst and divides the block."""
    return next(
        (h, w)
        for h, w in SUBBLOCKS
        if h * w <= dst_tiles and block_h_tiles % h == 0 and block_w_tiles % w == 0 and (w == block_w_tiles or h == 1)
    )


def act_block_height(out_rows: int, override_rows: int) -> int:
    """Height of an activation block in tiles: the whole share of a core, or the override lowered to a divisor.

    The real library divides the *full* tiles of the share, which for WIDTH (shares are not padded to tiles) can give
    a block that does not divide the share, or is larger than it; `width_refusal` says so in its words.
    """
    if not override_rows:
        return div_up(out_rows, TILE)
    return next(height for height in range(override_rows // TILE, 0, -1) if out_rows // TILE % height == 0)


def k_block_tiles(config: ParallelConfig, shards: Shards, kernel: tuple[int, int], options: ConvOptions) -> int:
    """Width of one K block in tiles: a kernel row (of one channel shard), or for WIDTH a channel shard's whole window.

    If kernel rows are joined, a HEIGHT or BLOCK core reads all kernel rows of its shard at once. Raises DeviceError for
    parts of a WIDTH shard's window that are narrower than a tile.
    """
    if config.scheme is not WIDTH:
        kernel_rows = kernel[0] if options.joins_kernel_rows(config.scheme) else 1
        return div_up(shards.in_width * kernel[1] * kernel_rows, TILE)
    elements, parts = shards.in_channels * kernel[0] * kernel[1], options.act_block_w_div
    tiles = elements // (config.channel_cores * parts) // TILE
    if not tiles:
        raise DeviceError(
            "The width of tensor a needs to match the height of tensor b\n"
            f"act_block_w_div: {elements} rows of weights on {config.channel_cores} cores can not be cut into "
            f"{parts} parts of at least one tile; use 1"
        )
    return tiles


def plan_blocks(
    config: ParallelConfig, shards: Shards, kernel: tuple[int, int], options: ConvOptions, spec: DeviceSpec
) -> Blocks:
    """Block sizes of the conv2d micro-op; errors as in `k_block_tiles`."""
    act_h = act_block_height(shards.out_rows, options.act_block_h_override)
    act_w = k_block_tiles(config, shards, kernel, options)
    dst_tiles = spec.compute.dst_half_tiles(fp32_dest=options.fp32_dest)
    sub_h, sub_w = subblock(act_h, shards.out_col_tiles, dst_tiles)
    if config.scheme is WIDTH:
        k_blocks = shards.in_channels * kernel[0] * kernel[1] // TILE // act_w
    else:
        k_blocks = (1 if options.joins_kernel_rows(config.scheme) else kernel[0]) * config.channel_cores
    return Blocks(
        act_h_tiles=act_h, act_w_tiles=act_w, subblock_h_tiles=sub_h, subblock_w_tiles=sub_w, k_blocks=k_blocks
    )


def _depthwise_blocks(problem: ConvProblem, blocks: Blocks, in_width: int, packet_bytes: int) -> Blocks:
    """The blocks of a depthwise convolution.

    All taps at once if they are contiguous, whole tiles wide, and fit a packet; otherwise tap by tap.
    """
    taps, tap_bytes = problem.kernel[1], in_width * (problem.act_format.element_bytes or 0)
    neighbors = in_width % TILE == 0 and problem.frame.columns.dilation == 1
    at_once = taps if neighbors and taps * tap_bytes <= packet_bytes else 1
    return replace(blocks, act_w_tiles=div_up(in_width, TILE) * at_once, k_blocks=taps // at_once)


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
    """Shards, blocks and readers of a convolution whose input lies on `config`; `alignment` divides its shards' width.

    In estimates the choice of readers uses another alignment, `reader_alignment`.

    Raises:
        DeviceError: No valid blocks exist, no activation can be reused, or the given output grid does not fit.
    """
    out_config = _output_cores(config, problem, options, spec.grid, matmul=matmul)
    in_rows, in_width = input_shard(
        config,
        rows=problem.in_rows,
        channels=problem.in_channels,
        alignment=alignment,
        row_major=problem.row_major or problem.sliced,
    )
    out_channels, nhw = round_up(problem.out_channels, out_config.channel_cores * TILE), out_config.nhw_cores
    shards = Shards(
        in_rows=in_rows,
        in_channels=in_width * config.channel_cores,
        in_width=in_width,
        out_rows=problem.out_rows if config.scheme is WIDTH else round_up(problem.out_rows, nhw * TILE) // nhw,
        out_channels=out_channels,
        out_width=out_channels // out_config.channel_cores,
    )
    blocks = plan_blocks(config, shards, problem.kernel, options, spec)
    if problem.depthwise_row and config.scheme is HEIGHT:
        blocks = _depthwise_blocks(problem, blocks, in_width, spec.noc.packet_bytes)
    row_tiles = div_up(problem.frame.columns.outputs, TILE)
    if options.reuses_activations(config.scheme) and blocks.act_h_tiles <= row_tiles:
        raise DeviceError(
            f"Activation reuse needs act block h ({blocks.act_h_tiles}) to be bigger than output image width in tiles "
            f"({row_tiles}) for the optimization to give boost\n"
            "conv_config.enable_activation_reuse: leave it out, or give every core more rows of the output"
        )
    channels = round_up(problem.in_channels, config.channel_cores * (reader_alignment or alignment))
    reads = _ReadBlocks(problem, options, config.scheme, blocks, shards.out_col_tiles, channels)
    return ConvPartition(
        problem=problem,
        options=options,
        config=config,
        out_config=out_config,
        shards=shards,
        blocks=blocks,
        split_reader=not (matmul or problem.depthwise_row) and _splits_reader(reads, spec.reader),
        whole_partials=release_of(spec.release).whole_partials,
    )


class UnknownRatesError(DeviceError):
    """No rate of the device tells how long tilizing takes, on which the number of readers depends."""


def transfer_rate(rate: TransferRate, transfer_bytes: int) -> float:
    """Bytes per nanosecond of transfers of one size: linear between the floor at 16 bytes and the peak."""
    size = min(max(transfer_bytes, SMALLEST_TRANSFER_BYTES), rate.peak_at_bytes)
    slope = (rate.peak_bytes_per_ns - rate.floor_bytes_per_ns) / (rate.peak_at_bytes - SMALLEST_TRANSFER_BYTES)
    return rate.floor_bytes_per_ns + slope * (size - SMALLEST_TRANSFER_BYTES)


class _ReadBlocks(NamedTuple):
    """The parameters that determine the number of processors that read activations."""

    problem: ConvProblem
    options: ConvOptions
    scheme: TensorMemoryLayout
    blocks: Blocks
    out_col_tiles: int  # Width of an output shard
    channels: int  # Padded channels of the input


def _splits_reader(reads: _ReadBlocks, rates: ReaderRates) -> bool:
    """Whether both data movement processors read activations; a single tile row cannot be split.

    An UnknownRatesError says that there is no rate for the formats.
    """
    problem, options, scheme, blocks, out_col_tiles, channels = reads
    forced = True if options.activation_reuse and options.force_split_reader is None else options.force_split_reader
    if scheme is WIDTH or blocks.act_h_tiles == 1:
        return False
    if scheme is BLOCK:
        return True if forced is None else forced
    tile_cycles = _tilize_cycles(problem, options, rates)  # asked for even if they do not decide
    if forced is not None:
        return forced
    stick_bytes, tile_bytes = (problem.act_format.element_bytes or 0) * channels, problem.weight_format.tile_bytes
    act_bytes = stick_bytes * blocks.act_h_tiles * TILE * problem.kernel[1]
    burst_bytes = stick_bytes * (problem.kernel[1] if problem.frame.columns.dilation == 1 else 1)
    act_cycles = rates.clock_ghz * act_bytes / transfer_rate(rates.local, burst_bytes)
    weight_bytes = out_col_tiles * blocks.act_w_tiles * tile_bytes
    ns_per_byte = 1 / transfer_rate(rates.dram, tile_bytes) + 1 / transfer_rate(rates.multicast, weight_bytes)
    weight_cycles = rates.clock_ghz * weight_bytes * ns_per_byte
    tilize_cycles = blocks.act_w_tiles * blocks.act_h_tiles * tile_cycles
    return act_cycles / 2 + max(weight_cycles, tilize_cycles) < max(act_cycles + tilize_cycles, weight_cycles)


def _tilize_cycles(problem: ConvProblem, options: ConvOptions, rates: ReaderRates) -> float:
    try:
        return rates.tilize_cycles(problem.act_format.name, problem.out_format.name, fp32_dest=options.fp32_dest)
    except SpecError as error:
        raise UnknownRatesError(str(error)) from error


def require_rates(layout: ConvPartition, rates: ReaderRates) -> None:
    """Raises UnknownRatesError where an estimate of HEIGHT shards, also for a matmul, asks for unknown rates."""
    if layout.scheme is HEIGHT and layout.blocks.act_h_tiles > 1 and not layout.problem.depthwise_row:
        _tilize_cycles(layout.problem, layout.options, rates)


def scheme_alignment(problem: ConvProblem, scheme: TensorMemoryLayout, *, matmul: bool = False) -> int:
    """Channel alignment of an input that is yet to be sharded by `scheme`."""
    return channel_alignment(scheme, row_major=problem.row_major, sliced=problem.sliced, matmul=matmul)
