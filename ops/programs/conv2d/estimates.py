"""What a convolution takes of L1 as the real library estimates it, and the shard scheme that it chooses by that."""

from dataclasses import dataclass, replace
from typing import Final

from device.errors import DeviceError
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up, round_up
from device.plan import Decision
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.buffers import BufferRequest, ConvBuffers, buffer_requests, local_bytes
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ConvOptions, ConvProblem
from ops.programs.conv2d.partition import ConvPartition, choose_cores, partition_conv, scheme_alignment
from ops.programs.halo.transfers import most_sticks

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
