"""The circular buffers of the conv2d program, and the L1 that the real library estimates by them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, DataFormat, div_up, round_up
from device.plan import CircularBuffer, Decision
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.partition import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvOptions,
    ConvPartition,
    ConvProblem,
    ParallelConfig,
    choose_cores,
    partition_conv,
    scheme_alignment,
    weight_rows,
)
from ops.programs.halo.transfers import most_sticks
from ops.window import PaddedInput


def reuse_tiles(
    data_format: DataFormat, *, act_h_tiles: int, act_w_tiles: int, columns: int, channels: int, kernel: tuple[int, int]
) -> int:
    """Tiles of a reader's buffer."""
    row_tiles = div_up(columns, TILE)
    element_bytes = data_format.element_bytes or 0
    added = channels * kernel[1] * (1 + -columns % TILE * kernel[0]) * element_bytes
    return row_tiles * act_w_tiles + div_up(div_up(act_h_tiles, row_tiles) * added, data_format.tile_bytes)


def reuse_refusal(config: ParallelConfig, frame: PaddedInput, *, split_reader: bool) -> str | None:
    """Why the program can not reuse activations, in the real library's words and ours; None if it can, or is WIDTH."""
    if config.scheme not in (HEIGHT, BLOCK):
        return None
    axes, way_out = (frame.rows, frame.columns), "conv_config.enable_activation_reuse: leave it out"
    if config.scheme is BLOCK:
        return f"Activation data reuse is not supported for block sharded\n{way_out}, or use HEIGHT_SHARDED"
    if any(axis.dilation != 1 for axis in axes):
        return f"Activation data reuse is not supported for dilation > 1\n{way_out}"
    if any(axis.stride != 1 for axis in axes):
        return f"Activation data reuse is not supported for stride > 1\n{way_out}"
    if not split_reader:
        return f"Activation data reuse requires split reader to be on\n{way_out}, or leave force_split_reader out"
    return None


Viewed: TypeAlias = Literal["output", "halo", "reader_indices"]

L1_ARRAY_BYTES = 64  # scratch for semaphores and addresses; same in every recorded run


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvBuffers:
    """What decides the circular buffers of a conv2d program; `of` fills in what estimates count in another way."""

    layout: ConvPartition
    kernel: tuple[int, int]  # (kh, kw)
    multicast: bool  # Activations are sent between the cores of a row
    accumulation_blocks: int  # K blocks as the real library counts them to decide on L1 accumulation
    tap_channels: int  # Rows of weights of a tap; read where activations are reused
    reader_indices_bytes: int = 0  # Bytes of the reader indices of one core
    halo_bytes: int = 0  # Bytes of the halo output on one core

    @classmethod
    def of(cls, layout: ConvPartition, *, reader_indices_bytes: int = 0, halo_bytes: int = 0) -> "ConvBuffers":
        """The buffers' sizes for the program of a convolution."""
        blocks, kernel = layout.blocks, layout.problem.kernel
        reuses = layout.options.activation_reuse
        return cls(
            layout=layout,
            kernel=kernel,
            multicast=layout.multicasts_activations,
            accumulation_blocks=blocks.k_blocks * (layout.out_config.channel_cores if layout.scheme is BLOCK else 1),
            tap_channels=weight_rows(layout, kernel) // prod(kernel) if reuses else 0,
            reader_indices_bytes=reader_indices_bytes,
            halo_bytes=halo_bytes,
        )

    @property
    def l1_accumulation(self) -> bool:
        """Whether packer_l1_acc has an effect: there must be something to accumulate that is not reloaded anyway."""
        blocks, layout = self.accumulation_blocks, self.layout
        return layout.options.packer_l1_acc and ((layout.problem.bias and blocks > 1) or blocks > 2)

    @property
    def partials_format(self) -> DataFormat:
        """Format of the partial sums between K blocks."""
        if self.l1_accumulation:
            return FLOAT32 if self.layout.options.fp32_dest else BFLOAT16
        return self.layout.problem.out_format


class BufferRequest(NamedTuple):
    """A circular buffer that has a role but no place yet."""

    name: str  # The role it has in the micro-op
    size_bytes: int  # Bytes on each core
    page_bytes: int
    data_format: DataFormat  # Element format of a page
    view_of: Viewed | None = None  # The tensor on whose shard it is placed; None if it takes L1 of its own
    offset_bytes: int = 0  # Distance from the start of that shard


def placed_buffers(
    requests: Iterable[BufferRequest], *, output: str, halo: str, reader_indices: str, cores: CoreRangeSet
) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program, placed on the tensors that they are views of; ``cores`` run it."""
    tensors = {"output": output, "halo": halo, "reader_indices": reader_indices}
    return tuple(
        [
            CircularBuffer(name, size, page, data_format, cores, None if viewed is None else tensors[viewed], offset)
            for name, size, page, data_format, viewed, offset in requests
        ]
    )


def buffer_requests(conv: ConvBuffers) -> list[BufferRequest]:
    """The circular buffers of a conv2d program, in order of allocation."""
    layout, problem, options = conv.layout, conv.layout.problem, conv.layout.options
    scheme, blocks, shards = layout.scheme, layout.blocks, layout.shards
    act_h, act_w, out_w = blocks.act_h_tiles, blocks.act_w_tiles, shards.out_col_tiles
    h_blocks = shards.out_row_tiles // act_h
    buffered = 2 if options.weights_double_buffer else 1
    weight_blocks = conv.kernel[0] if scheme is HEIGHT and h_blocks > 1 else buffered
    if options.reuses_activations(scheme):
        weight_blocks = 1

    first_tiles, second_tiles = _gathered(conv)
    # A BLOCK core whose activations need no conversion gathers them in the buffer they are multicast through.
    gathers_in_act = scheme is BLOCK and problem.act_format == problem.out_format and conv.multicast
    if scheme is HEIGHT:
        act, gathered_tiles = _tiles("act", first_tiles, problem.act_format), 0
    else:
        act = _tiles("act", first_tiles + second_tiles if conv.multicast else 0, problem.out_format)
        gathered_tiles = 2 * act_w if scheme is WIDTH else 0 if gathers_in_act else first_tiles

    result = (
        _tiles("weights", out_w * act_w * weight_blocks, problem.weight_format),
        _partials(conv),
        act,
        _tiles("act_second_reader", 0 if gathers_in_act else second_tiles, problem.act_format),
        _tiles("act_tilized", act_h * act_w, problem.out_format),
        _tiles("bias", out_w if problem.bias else 0, problem.weight_format),
        _tiles("act_row_major", gathered_tiles, problem.act_format),
        _tiles("out", shards.out_row_tiles * out_w, problem.out_format, "output"),
        _page(
            "reader_indices",
            conv.reader_indices_bytes,
            UINT16,
            None if options.config_tensors_in_dram else "reader_indices",
        ),
        _page("l1_array", L1_ARRAY_BYTES, UINT16),
        _page("act_sharded", conv.halo_bytes, problem.act_format, "halo"),
    )
    return [request for request in result if request.size_bytes]


def _gathered(conv: ConvBuffers) -> tuple[int, int]:
    """Tiles that the first reader gathers, and tiles that the second reader gathers."""
    layout, problem, options = conv.layout, conv.layout.problem, conv.layout.options
    blocks, double = layout.blocks, 2 if options.act_double_buffer else 1
    second = blocks.act_h_tiles // 2 if layout.split_reader else 0
    heights = (blocks.act_h_tiles - second, second)
    if not (options.activation_reuse and layout.split_reader):
        return heights[0] * blocks.act_w_tiles * double, heights[1] * blocks.act_w_tiles * double
    first_tiles, second_tiles = (
        reuse_tiles(
            problem.act_format,
            act_h_tiles=height,
            act_w_tiles=blocks.act_w_tiles,
            columns=problem.frame.columns.outputs,
            channels=conv.tap_channels,
            kernel=conv.kernel,
        )
        for height in heights
    )
    return first_tiles * double, second_tiles * double


def _partials(conv: ConvBuffers) -> BufferRequest:
    """Partial sums of one block; they share the last output block if they have the output's format."""
    layout, partials, out_w = conv.layout, conv.partials_format, conv.layout.shards.out_col_tiles
    request = _tiles("partials", layout.blocks.act_h_tiles * out_w, partials)
    if layout.options.untilize_out or partials != layout.problem.out_format:
        return request
    output_bytes = layout.shards.out_row_tiles * out_w * partials.tile_bytes
    return request._replace(view_of="output", offset_bytes=output_bytes - request.size_bytes)


def _tiles(name: str, tiles: int, data_format: DataFormat, view_of: Viewed | None = None) -> BufferRequest:
    tile_bytes = data_format.tile_bytes
    return BufferRequest(name, tiles * tile_bytes, tile_bytes, data_format, view_of)


def _page(name: str, page_bytes: int, data_format: DataFormat, view_of: Viewed | None = None) -> BufferRequest:
    return BufferRequest(name, page_bytes, page_bytes, data_format, view_of)


def local_bytes(buffers: Iterable[BufferRequest | CircularBuffer]) -> int:
    """Bytes of the buffers that take L1 of their own."""
    return sum([b.size_bytes for b in buffers if b.view_of is None])


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
    """Estimate one scheme, with the library's choice of cores; `partition_conv` may refuse the blocks."""
    alignment = scheme_alignment(problem, scheme, matmul=matmul)
    free = options if options.core_grid is None else replace(options, core_grid=None)
    config = choose_cores(problem, free, spec, scheme, alignment=alignment, matmul=matmul)
    layout = partition_conv(problem, options, spec, config, alignment=alignment, matmul=matmul)
    buffers = estimated_buffers(
        layout,
        accumulation_blocks=estimated_blocks(layout, alignment),
        tap_channels=round_up(problem.in_channels, alignment),
    )
    halo_bytes = estimated_halo_bytes(problem, layout.config.nhw_cores, layout.shards.in_width)
    return L1Estimate(
        layout=layout,
        halo_bytes=halo_bytes,
        output_bytes=next(b.size_bytes for b in buffers if b.name == "out"),
        buffers_bytes=local_bytes(buffers),
    )


def check_estimated_format(data_format: DataFormat) -> None:
    """Refuse a block float where L1 is estimated for two readers that reuse activations."""
    if data_format.is_block:
        raise DeviceError(
            "datum for bfp2, bfp4, bfp8 is invalid\n"
            f"conv_config.enable_activation_reuse: the buffers of an input in {data_format} can not be estimated with "
            "it; leave it out, or use bfloat16"
        )


def estimated_buffers(layout: ConvPartition, *, accumulation_blocks: int, tap_channels: int) -> list[BufferRequest]:
    """Circular buffers as the estimates count them: all but HEIGHT multicast, every output row has a reader index.

    Raises:
        DeviceError: An activation block is higher than a core's share of the output, or the readers of a block float
            would reuse activations.
    """
    shards, options, height = layout.shards, layout.options, layout.blocks.act_h_tiles
    if height > shards.out_row_tiles:
        raise DeviceError(
            f"Conv2d output block size {height * shards.out_col_tiles} exceeds the per-core output size "
            f"{shards.out_row_tiles * shards.out_col_tiles}\n"
            f"act_block_h_override={options.act_block_h_override} is more than a core's {shards.out_rows} output rows: "
            "leave it 0 or set shard_layout to a scheme with more rows for each core"
        )
    if options.activation_reuse and layout.split_reader:
        check_estimated_format(layout.problem.in_format)
    indices = layout.shards.out_row_tiles * TILE * BYTES_PER_INDEX
    counted = ConvBuffers(
        layout=layout,
        kernel=layout.problem.kernel,
        multicast=layout.scheme is not HEIGHT,
        accumulation_blocks=accumulation_blocks,
        tap_channels=tap_channels,
        reader_indices_bytes=indices,
    )
    return buffer_requests(counted)


def estimated_blocks(layout: ConvPartition, alignment: int) -> int:
    """K blocks as the real library counts them in L1 estimates, before the weights are prepared."""
    problem, (kh, kw) = layout.problem, layout.problem.kernel
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
    """The shard scheme the real library picks by default: least L1, if BLOCK has a grid row and WIDTH is no matmul."""
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
    """Why a scheme is taken: of the schemes that can run, it is estimated to take the least L1."""
    name = best.layout.scheme.name
    text = ", ".join(
        f"{estimate.layout.scheme.name} {estimate.total_bytes:,} B on "
        f"{'one core' if estimate.cores == 1 else f'each of {estimate.cores}'}"
        for estimate in all_three
    )
    return Decision(
        name=SCHEME_DECISION,
        value=name,
        text=f"shard_layout is the library's choice, {name}: of the schemes that may run it has the least L1 by the "
        f"library's estimate ({text}), whatever it takes in time",
        limits=tuple((f"{estimate.layout.scheme.name}_bytes", estimate.total_bytes) for estimate in all_three),
    )
