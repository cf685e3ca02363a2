"""What each step of the conv2d program takes on one core, in cycles: the steps that `cycles` puts in order.

The constants are `ConvCosts` of the device; how they were fitted, `tools.calibrate` shows.
"""

from dataclasses import dataclass

from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT16
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import Task, task_of
from device.time.stages import Stage
from ops.programs.conv2d.costs import ConvCosts
from ops.programs.conv2d.partition import WIDTH
from ops.programs.conv2d.work import ConvWork

NARROW_TILES = 8  # rows of up to so many tiles are untilized by the packer (tt-metal, conv2d program)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvSteps:
    """The steps of one core; None for a step that the program does not have.

    Attributes:
        start: From the start of the program until a processor begins.
        config: A reader fetches its indices from DRAM.
        read: The first reader gathers its part of an activation block; for WIDTH a tile row of it.
        second_read: The second reader gathers the rest.
        tilize: What the first reader gathered is tilized.
        second_tilize: What the second reader gathered is tilized.
        weights: One K block of weights is read and sent to all cores that need it.
        activations: One tilized block is sent to the cores of a row.
        matmul: A K block is multiplied and packed.
        matmul_reload: The same, after partial sums were fetched back.
        bias: The bias is read and sent.
        finish: Bias and untilizing of a finished block.
    """

    start: Task
    config: Task | None
    read: Task
    second_read: Task | None
    tilize: Task
    second_tilize: Task | None
    weights: Task
    activations: Task
    matmul: Task
    matmul_reload: Task
    bias: Task | None
    finish: Task | None


def conv_steps(work: ConvWork, spec: DeviceSpec, *, contention: bool = True) -> ConvSteps:
    """The steps of a convolution on a device; without contention each reader has all of DRAM's bandwidth."""
    height = 1 if work.layout.scheme is WIDTH else work.layout.blocks.act_h_tiles
    second = height // 2 if work.layout.split_reader else 0
    costs, options, width = spec.costs_of(ConvCosts), work.options, work.layout.shards.out_col_tiles
    return ConvSteps(
        start=task_of({Stage.START: costs.start_cycles}),
        config=task_of({Stage.READER: spec.dram.read_latency_cycles}) if options.config_tensors_in_dram else None,
        read=task_of({Stage.READER: _read_cycles(work, spec, height - second)}),
        second_read=task_of({Stage.SECOND_READER: _read_cycles(work, spec, second)}) if second else None,
        tilize=task_of({Stage.TILIZE: costs.tilize_call_cycles + _tilize_cycles(work, spec, height - second)}),
        second_tilize=task_of({Stage.TILIZE: _tilize_cycles(work, spec, second)}) if second else None,
        weights=_weights(work, spec, width * work.layout.blocks.act_w_tiles, contention=contention),
        activations=_activations(work, spec),
        matmul=_matmul(work, spec, reload=False),
        matmul_reload=_matmul(work, spec, reload=True),
        bias=_weights(work, spec, width, contention=contention) if work.problem.bias else None,
        finish=_finish(work, spec),
    )


def _read_cycles(work: ConvWork, spec: DeviceSpec, tile_rows: int) -> float:
    """Gather some tile rows of an activation block from the core's own L1.

    A burst is a kernel row of a window, or a single tap where taps are not neighbors (dilation) or belong to a channel
    shard of which each core takes all taps (WIDTH).
    """
    problem, layout, costs = work.problem, work.layout, spec.costs_of(ConvCosts)
    kernel_rows, kernel_columns = problem.kernel
    stick_bytes = layout.shards.in_width * (problem.act_format.element_bytes or 0)
    bursts, burst_bytes = 1, stick_bytes * kernel_columns
    if layout.scheme is WIDTH:
        bursts, burst_bytes = kernel_rows * kernel_columns, stick_bytes // work.options.act_block_w_div
    elif problem.frame.columns.spacing > 1:
        bursts, burst_bytes = kernel_columns, stick_bytes
    if work.options.joins_kernel_rows(layout.scheme):
        bursts *= kernel_rows
    per_burst = max(costs.read_issue_cycles, burst_bytes / spec.noc.link_bytes_per_cycle)
    return costs.read_latency_cycles + tile_rows * TILE * bursts * per_burst


def _tilize_cycles(work: ConvWork, spec: DeviceSpec, tile_rows: int) -> float:
    problem, costs = work.problem, spec.costs_of(ConvCosts)
    tile = costs.tilize_factor * spec.reader.tilize_cycles(
        problem.act_format.name, problem.out_format.name, fp32_dest=work.options.fp32_dest
    )
    return tile_rows * (costs.tilize_row_cycles + work.layout.blocks.act_w_tiles * tile)


def _weights(work: ConvWork, spec: DeviceSpec, tiles: int, *, contention: bool) -> Task:
    """Some tiles of weights come from DRAM, one by one, and go to all cores that multiply with them.

    HEIGHT has one reader for all cores, BLOCK one for each column of cores, WIDTH one on every core.
    """
    layout, costs = work.layout, spec.costs_of(ConvCosts)
    tile_bytes = work.problem.weight_format.tile_bytes
    readers = work.weight_readers
    receivers = 1 if layout.scheme is WIDTH else layout.out_config.nhw_cores
    own = tiles * max(costs.weight_issue_cycles, tile_bytes / spec.noc.link_bytes_per_cycle)
    shared = readers * tiles * tile_bytes / costs.dram_bytes_per_cycle if contention else 0.0
    path = {
        Stage.WEIGHT_READER: spec.dram.read_latency_cycles + own,
        Stage.DRAM: max(0.0, shared - own),
    }
    if receivers > 1:
        path[Stage.WEIGHT_MULTICAST] = (
            costs.weight_multicast_cycles
            + costs.weight_receiver_cycles * receivers
            + tiles * tile_bytes / spec.noc.link_bytes_per_cycle
        )
    return task_of(path)


def _activations(work: ConvWork, spec: DeviceSpec) -> Task:
    blocks, costs = work.layout.blocks, spec.costs_of(ConvCosts)
    sent_bytes = blocks.act_h_tiles * blocks.act_w_tiles * work.problem.out_format.tile_bytes
    return task_of({Stage.ACT_MULTICAST: costs.act_multicast_cycles + sent_bytes / costs.act_multicast_bytes_per_cycle})


def _matmul(work: ConvWork, spec: DeviceSpec, *, reload: bool) -> Task:
    """One K block: sub-block after sub-block, unpackers and matrix unit together, the packer one sub-block behind."""
    layout, costs = work.layout, spec.costs_of(ConvCosts)
    blocks = layout.blocks
    tiles = blocks.subblock_h_tiles * blocks.subblock_w_tiles
    subblocks = (blocks.act_h_tiles // blocks.subblock_h_tiles) * div_up(
        layout.shards.out_col_tiles, blocks.subblock_w_tiles
    )
    multiply = blocks.act_w_tiles * tiles * spec.compute.phase_cycles * work.fidelity_phases
    streamed, waited = _unpack_cycles(work, spec)
    streamed, waited = blocks.act_w_tiles * streamed, blocks.act_w_tiles * waited
    behind = max(0.0, streamed - multiply) + waited
    fetched = costs.reload_cycles + tiles * costs.reload_tile_cycles if reload else 0.0
    pack, ahead = tiles * costs.pack_tile_cycles, multiply + behind
    path = {
        Stage.MATH: subblocks * multiply,
        Stage.UNPACK: costs.block_cycles + subblocks * (behind + fetched),
        Stage.PACK: subblocks * (costs.subblock_cycles + max(0.0, pack - ahead - fetched)) + min(pack, ahead),
    }
    busy = {
        Stage.MATH: subblocks * multiply,
        Stage.UNPACK: subblocks * (streamed + waited + fetched),
        Stage.PACK: subblocks * pack,
    }
    return task_of(path, busy)


def _unpack_cycles(work: ConvWork, spec: DeviceSpec) -> tuple[float, float]:
    """Cycles to feed the products of one K tile of a sub-block: overlapped with the products, and not overlapped.

    The operand of the shorter side of the sub-block stays in the matrix unit, some tiles at a time
    (`ComputeSpec.stationary_tiles`), while all tiles of the other operand stream past. With several tiles at a time
    both register banks are taken, so that the next ones cannot be fetched ahead.
    """
    blocks, costs, together = work.layout.blocks, spec.costs_of(ConvCosts), spec.compute.stationary_tiles
    height, width = blocks.subblock_h_tiles, blocks.subblock_w_tiles
    streaming = work.problem.weight_format if width >= height else work.problem.out_format
    tile = costs.unpack_block_float_cycles
    if not streaming.is_block:
        tile = costs.unpack_16bit_cycles * streaming.tile_bytes / BFLOAT16.tile_bytes
    staying = min(height, width)
    grouped = staying - staying % together if together > 1 else 0
    streamed = div_up(staying, together) * max(height, width) * tile
    return streamed, grouped * costs.stationary_tile_cycles + costs.matmul_call_cycles


def _finish(work: ConvWork, spec: DeviceSpec) -> Task | None:
    costs, width = spec.costs_of(ConvCosts), work.layout.shards.out_col_tiles
    tiles = work.layout.blocks.act_h_tiles * width
    path: dict[Stage, float] = {}
    if work.problem.bias:
        path[Stage.BIAS] = costs.block_cycles + tiles * costs.bias_tile_cycles
    if work.options.untilize_out:
        tile = costs.untilize_narrow_tile_cycles if width <= NARROW_TILES else costs.untilize_wide_tile_cycles
        path[Stage.UNTILIZE] = costs.block_cycles + tiles * tile
    return task_of(path) if path else None
