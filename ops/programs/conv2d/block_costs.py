"""The cycles of each step of the conv2d program on a core, and its bytes and products; `cycles` orders the steps.

The constants are `ConvCosts` and those of `ops.programs.kernel_costs`; `tools.calibrate` fits them.
"""

import math
from dataclasses import dataclass
from functools import cache, partial, reduce
from typing import ClassVar, Final, NamedTuple, TypeAlias

from device.cores import CoreRange, CoreRangeSet, core_rectangle
from device.memory.memory_config import TILE, ShardOrientation
from device.numbers.formats import div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import Task, task_of
from device.time.links import spread_link_bytes
from device.time.network import read_latency_cycles, shared_read_cycles, torus_of
from device.time.stages import Stage
from ops.op_model import PRODUCT_FLOPS
from ops.programs import kernel_costs
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, ConvProblem
from ops.window import count_met_taps

Share: TypeAlias = tuple[float, float]  # of the tile rows of the first and of the second reader
WHOLE: Final[Share] = (1.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts(Costs):
    """Constants of the convolution program alone, in cycles."""

    TABLE: ClassVar[str] = "conv_costs"

    start_cycles: float  # Kernel start and skew between cores
    # Of a multicast, of weights or activations: what the sender spends on semaphores and commands, and what passes
    # until receivers see that the block is there, besides hops, receivers and bytes
    multicast_cycles: float
    receiver_cycles: float  # Of a multicast, for each receiver: it raises the sender's semaphore, and answers
    # Of a multicast of activations, for each packet: the sender waits for its tiles, and gives all commands again
    packet_cycles: float


class Shipment(NamedTuple):
    """A block that a core sends to other cores."""

    notice: Task  # Until the sender knows that all receivers have room
    send: Task  # What the sender spends on it
    arrive: Task  # Until the receivers know that it is there


class ConvSteps(NamedTuple):
    """The steps of a core; None for a step that the program does not have."""

    start: Task  # From the start of the program until a processor begins
    config: Task | None  # A reader fetches its indices from DRAM
    # The first reader gathers its part of an activation block; for WIDTH, and where a reader keeps what it has of the
    # row above (activation reuse), a tile row of it
    read: Task
    second_read: Task | None  # The second reader gathers the rest
    # Each reader gathers what a tile row adds to the row above; None without activation reuse
    reused_reads: tuple[Task, Task] | None
    tilize: Task  # What the first reader gathered is tilized
    second_tilize: Task | None  # What the second reader gathered is tilized
    weights: tuple[Task, Shipment]  # One K block of weights is read and sent to all cores that need it
    activations: Shipment  # One tilized block is sent to the cores of a row
    matmul: Task  # A K block is multiplied and packed
    matmul_reload: Task  # The same, after partial sums were fetched back
    bias: tuple[Task, Shipment] | None  # The bias is read and sent
    finish: Task | None  # Bias and untilizing of a finished block


def conv_steps(op: Conv2dOp, spec: DeviceSpec) -> ConvSteps:
    """The steps of a convolution on a device."""
    layout, options, width = op.layout, op.options, op.layout.shards.out_col_tiles
    first, second = (1, 0) if layout.scheme is WIDTH else layout.reader_tile_rows
    if reuses := options.reuses_activations(layout.scheme):
        first, second = 1, min(1, second)
    product, again = product_block(op), _read_cycles(op, spec, 1, kernel_rows=1)
    matmul, matmul_reload = kernel_costs.multiply_tasks(spec, product, False, True)
    latency_cycles = read_latency_cycles(spec)
    link_share = spread_link_bytes(spec, weight_reader_cores(op), 1.0, in_dram=True, writes=False)
    weights = partial(_weights, op, spec, latency_cycles, link_share)
    call_cycles = 0 if reuses else spec.costs_of(kernel_costs.ComputeCosts).tilize_call_cycles
    return ConvSteps(
        start=task_of({Stage.START: spec.costs_of(ConvCosts).start_cycles}),
        config=task_of({Stage.READER: latency_cycles}) if options.config_tensors_in_dram else None,
        read=task_of({Stage.READER: _read_cycles(op, spec, first)}),
        second_read=task_of({Stage.SECOND_READER: _read_cycles(op, spec, second)}) if second else None,
        reused_reads=(task_of({Stage.READER: again}), task_of({Stage.SECOND_READER: again})) if reuses else None,
        tilize=task_of({Stage.TILIZE: call_cycles + _tilize_cycles(op, spec, first)}),
        second_tilize=task_of({Stage.TILIZE: _tilize_cycles(op, spec, second)}) if second else None,
        weights=weights(width * layout.blocks.act_w_tiles),
        activations=_activations(op, spec),
        matmul=matmul,
        matmul_reload=matmul_reload,
        bias=weights(width) if op.problem.bias else None,
        finish=_finish(op, spec),
    )


def _read_cycles(op: Conv2dOp, spec: DeviceSpec, tile_rows: int, *, kernel_rows: int | None = None) -> float:
    """Gather some tile rows of an activation block from the core's own L1; arguments as in `window_bursts`."""
    bursts, burst_bytes = window_bursts(op, kernel_rows)
    per_burst = max(
        spec.costs_of(kernel_costs.TransferCosts).stateful_issue_cycles, burst_bytes / spec.noc.link_bytes_per_cycle
    )
    return spec.noc.interface_cycles + tile_rows * TILE * bursts * per_burst


def window_bursts(op: Conv2dOp, kernel_rows: int | None = None) -> tuple[int, int]:
    """The number of bursts in which a window is gathered for a block, and the bytes of each.

    A burst is a kernel row of a window, or a single tap if taps are not contiguous (dilation) or belong to a channel
    shard whose taps each core reads completely (WIDTH). If kernel rows are joined, `kernel_rows` of a window are read;
    by default all.
    """
    problem, layout = op.problem, op.layout
    kernel_rows, kernel_columns = kernel_rows or problem.kernel[0], problem.kernel[1]
    stick_bytes = layout.shards.in_width * (problem.act_format.element_bytes or 0)
    bursts, burst_bytes = 1, stick_bytes * kernel_columns
    if layout.scheme is WIDTH:
        bursts, burst_bytes = kernel_rows * kernel_columns, stick_bytes // op.options.act_block_w_div
    elif problem.frame.columns.dilation > 1:
        bursts, burst_bytes = kernel_columns, stick_bytes
    if layout.joins_kernel_rows:
        bursts *= kernel_rows
    return bursts, burst_bytes


def _tilize_cycles(op: Conv2dOp, spec: DeviceSpec, tile_rows: int) -> float:
    tile = kernel_costs.tilize_tile_cycles(spec, op.problem.act_format, op.problem.out_format)
    return tile_rows * (
        spec.costs_of(kernel_costs.ComputeCosts).tilize_row_cycles + op.layout.blocks.act_w_tiles * tile
    )


def _weights(
    op: Conv2dOp, spec: DeviceSpec, latency_cycles: float, link_share: float, tiles: int
) -> tuple[Task, Shipment]:
    """Reads tiles of weights from DRAM, one by one, and sends them to all cores that use them.

    The busiest link carries ``link_share`` of the bytes of all readers; the first arrive after `latency_cycles`. HEIGHT
    has one reader for all cores, BLOCK one per column of cores, WIDTH one on every core.
    """
    layout, tile_bytes = op.layout, op.problem.weight_format.tile_bytes
    receivers = 1 if layout.scheme is WIDTH else layout.out_config.nhw_cores
    own = tiles * kernel_costs.read_page_cycles(spec, tile_bytes)
    read_bytes = op.weight_readers * tiles * tile_bytes
    link_cycles = read_bytes * link_share / spec.noc.link_bytes_per_cycle
    shared = max(shared_read_cycles(spec, read_bytes, tile_bytes), link_cycles)
    read = task_of({Stage.WEIGHT_READER: latency_cycles + own, Stage.DRAM: max(0.0, shared - own)})
    return read, _shipment(spec, Stage.WEIGHT_MULTICAST, tiles * tile_bytes, receivers, _hops(op, spec, across=False))


def _activations(op: Conv2dOp, spec: DeviceSpec) -> Shipment:
    """Sends a tilized block to all cores of its row, or in a WIDTH program to all cores."""
    blocks, costs = op.layout.blocks, spec.costs_of(ConvCosts)
    sent_bytes = blocks.act_h_tiles * blocks.act_w_tiles * op.problem.out_format.tile_bytes
    receivers, hops = op.layout.out_config.channel_cores, _hops(op, spec, across=True)
    packets = math.ceil(sent_bytes / spec.noc.packet_bytes) * costs.packet_cycles
    return _shipment(spec, Stage.ACT_MULTICAST, sent_bytes, receivers, hops, packets)


def weight_reader_cores(op: Conv2dOp) -> CoreRangeSet:
    """HEIGHT: the first core; BLOCK: the first core of every channel slice; WIDTH: all."""
    out, last = op.layout.out_config, op.layout.out_config.channel_cores - 1
    if out.scheme is WIDTH:
        return out.cores
    if out.scheme is HEIGHT:
        last = 0
    return core_rectangle(*((1, last + 1) if out.orientation is ShardOrientation.COL_MAJOR else (last + 1, 1)))


def _hops(op: Conv2dOp, spec: DeviceSpec, *, across: bool) -> float:
    """Mean number of links to a receiver of a block, half a ring: along one axis in BLOCK programs, else along both."""
    torus, layout = torus_of(spec), op.layout
    if layout.scheme is not BLOCK:
        return (torus.cols + torus.rows) / 2
    along_row = across is (layout.config.orientation is not ShardOrientation.COL_MAJOR)
    return (torus.cols if along_row else torus.rows) / 2


def _shipment(
    spec: DeviceSpec, stage: Stage, sent_bytes: float, receivers: int, hops: float, packets: float = 0.0
) -> Shipment:
    """A multicast: the sender spends half of the handshake, the other half passes until receivers see its flag.

    `packets` are the cycles that the sender spends on its packets beyond their bytes.
    """
    costs = spec.costs_of(ConvCosts)
    way, half = hops * spec.noc.hop_cycles, (costs.multicast_cycles + costs.receiver_cycles * receivers) / 2
    return Shipment(
        notice=task_of({stage: way}),
        send=task_of({stage: half + packets + kernel_costs.multicast_cycles(spec, sent_bytes, receivers)}),
        arrive=task_of({stage: way + half}),
    )


def product_block(op: Conv2dOp) -> kernel_costs.ProductBlock:
    """The tiles that a core multiplies in a K block."""
    blocks = op.layout.blocks
    across = div_up(op.layout.shards.out_col_tiles, blocks.subblock_w_tiles)
    return kernel_costs.ProductBlock(
        subblock_height=blocks.subblock_h_tiles,
        subblock_width=blocks.subblock_w_tiles,
        subblocks=(blocks.act_h_tiles // blocks.subblock_h_tiles) * across,
        depth=blocks.act_w_tiles,
        first_format=op.problem.out_format,
        second_format=op.problem.weight_format,
        packed_format=op.problem.out_format,
        fidelity_phases=op.fidelity_phases,
    )


def _finish(op: Conv2dOp, spec: DeviceSpec) -> Task | None:
    width = op.layout.shards.out_col_tiles
    tiles = op.layout.blocks.act_h_tiles * width
    path: dict[Stage, float] = {}
    if op.problem.bias:
        path[Stage.BIAS] = kernel_costs.add_row_cycles(spec, tiles)
    if op.options.untilize_out:
        path[Stage.UNTILIZE] = op.layout.blocks.act_h_tiles * kernel_costs.untilize_row_cycles(spec, width)
    return task_of(path) if path else None


def gathering_cores(op: Conv2dOp) -> dict[Share, CoreRangeSet]:
    """Cores of the input by the share of their tile rows with outputs; rows after the last output are not read."""
    config, full = op.layout.config, op.problem.out_rows // op.layout.shards.out_rows  # slices before the last rows
    share_of = cache(partial(share_of_slice, op))
    shares = [share_of(number if number >= full else 0) for number in range(config.nhw_cores)]
    ragged: dict[Share, list[CoreRange]] = {}
    corner = config.cores.bounding_box().start
    for place, core in enumerate(config.cores.cores() if set(shares) != {WHOLE} else ()):
        across = core.x - corner.x if config.orientation is ShardOrientation.COL_MAJOR else core.y - corner.y
        share = shares[place if config.scheme is HEIGHT else 0 if config.scheme is WIDTH else across]
        if share != WHOLE:
            ragged.setdefault(share, []).append(CoreRange(core, core))
    groups = {share: CoreRangeSet(own).merged() for share, own in ragged.items()}
    rest = reduce(CoreRangeSet.without, groups.values(), config.cores)
    return ({} if rest.empty() else {WHOLE: rest}) | groups


def share_of_slice(op: Conv2dOp, number: int) -> Share:
    """The parts of a slice of the rows with outputs for each reader; a reader without tile rows has the whole slice."""
    first, second = (tiles * TILE for tiles in op.layout.reader_tile_rows)
    height, out_rows = first + second, op.layout.shards.out_rows
    left = min(max(0, op.problem.out_rows - number * out_rows), out_rows)
    blocks = [min(max(0, left - block * height), height) for block in range(op.out_blocks)]
    rows = sum(min(rows, first) for rows in blocks)
    rest = (sum(blocks) - rows) / (second * len(blocks)) if second else 1.0
    return rows / (first * len(blocks)) if blocks else 1.0, rest


def weight_bytes(op: Conv2dOp) -> int:
    """Bytes of weights and bias read from DRAM: by BLOCK and WIDTH again for every output block."""
    layout, tile_bytes = op.layout, op.problem.weight_format.tile_bytes
    width = layout.shards.out_col_tiles
    bias_tiles = width if op.problem.bias else 0
    tiles = op.weight_passes * layout.blocks.k_blocks * layout.blocks.act_w_tiles * width + bias_tiles
    return op.weight_readers * tiles * tile_bytes


def network_bytes(op: Conv2dOp) -> int:
    """Bytes multicast: weights by their readers, activations by every core that holds some."""
    return sent_weight_bytes(op) + sent_activation_bytes(op)


def sent_weight_bytes(op: Conv2dOp) -> int:
    """Bytes of weights and bias that readers multicast."""
    layout = op.layout
    return 0 if layout.scheme is WIDTH or layout.out_config.nhw_cores == 1 else weight_bytes(op)


def sent_activation_bytes(op: Conv2dOp) -> int:
    """Bytes of activations that the cores that hold them multicast."""
    layout, blocks = op.layout, op.layout.blocks
    if not layout.multicasts_activations:
        return 0
    block_bytes = blocks.act_h_tiles * blocks.act_w_tiles * op.problem.out_format.tile_bytes
    return op.out_blocks * blocks.k_blocks * layout.config.nhw_cores * block_bytes


def issued_flops(op: Conv2dOp) -> int:
    """Multiplications and additions of all tile products."""
    layout = op.layout
    cores = layout.out_config.nhw_cores * layout.out_config.channel_cores
    products = layout.shards.out_row_tiles * layout.shards.out_col_tiles
    k_tiles = layout.blocks.act_w_tiles * layout.blocks.k_blocks
    return PRODUCT_FLOPS * cores * products * k_tiles


def useful_flops(problem: ConvProblem) -> int:
    """FLOPs of all outputs without products with inserted zeros.

    Padding to tiles, weights of other groups, and zeros that complete the kernel of folded windows are excluded too.
    """
    frame = problem.frame
    rows, columns = (count_met_taps(axis) if axis.data else 0 for axis in (frame.rows, frame.columns))
    products = frame.batch * rows * columns * problem.in_channels * problem.out_channels // problem.groups
    if problem.zero_weights:
        weights = math.prod(problem.kernel) * problem.in_channels // problem.groups  # of an output channel
        products = products * (weights - problem.zero_weights) // weights
    return 2 * products


def gathers_of(op: Conv2dOp) -> int:
    """How often a core gathers a part of an output block, as high as its readers' tile rows."""
    blocks, scheme = op.layout.blocks, op.layout.scheme
    if scheme is HEIGHT:
        return blocks.k_blocks
    rounds = div_up(blocks.k_blocks, op.layout.config.channel_cores)
    return rounds * (blocks.act_h_tiles if scheme is WIDTH else 1)
