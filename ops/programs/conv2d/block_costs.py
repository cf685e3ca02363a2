"""A core of the conv2d program and the cycles of each step on it; `cycles` puts the steps in order.

The constants are `ConvCosts` and those of `ops.programs.kernel_costs`; `tools.calibrate` fits them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from device.memory.memory_config import TILE, ShardOrientation
from device.numbers.formats import div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import Moment, Processor, Slots, Task, task_of
from device.time.network import read_latency_cycles, shared_cycles, torus_of
from device.time.stages import Stage
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, WIDTH
from ops.programs.kernel_costs import (
    ComputeCosts,
    ProductBlock,
    TransferCosts,
    add_row_cycles,
    multicast_cycles,
    multiply_task,
    read_page_cycles,
    tilize_tile_cycles,
    untilize_row_cycles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts(Costs):
    """Constants of the convolution program alone, in cycles.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        multicast_cycles: Of a multicast, of weights or activations: what the sender spends on semaphores and commands,
            and what passes until receivers see that the block is there, besides hops and bytes.
    """

    TABLE: ClassVar[str] = "conv_costs"

    start_cycles: float
    multicast_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """A block that one core sends to others."""

    notice: Task  # Until the sender knows that all receivers have room
    send: Task  # What the sender spends on it
    arrive: Task  # Until the receivers know that it is there


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvSteps:
    """The steps of one core; None for a step that the program does not have."""

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


def conv_steps(op: Conv2dOp, spec: DeviceSpec, *, contention: bool = True) -> ConvSteps:
    """The steps of a convolution on a device; without contention each reader has all of DRAM's bandwidth."""
    height = 1 if op.layout.scheme is WIDTH else op.layout.blocks.act_h_tiles
    second = height // 2 if op.layout.split_reader else 0
    first = height - second
    reuses = op.options.reuses_activations(op.layout.scheme)
    if reuses:
        first, second = 1, min(1, second)
    costs, compute = spec.costs_of(ConvCosts), spec.costs_of(ComputeCosts)
    options, width, product = op.options, op.layout.shards.out_col_tiles, _product_block(op)
    return ConvSteps(
        start=task_of({Stage.START: costs.start_cycles}),
        config=task_of({Stage.READER: read_latency_cycles(spec)}) if options.config_tensors_in_dram else None,
        read=task_of({Stage.READER: _read_cycles(op, spec, first)}),
        second_read=task_of({Stage.SECOND_READER: _read_cycles(op, spec, second)}) if second else None,
        reused_reads=_reused_reads(op, spec) if reuses else None,
        tilize=task_of({Stage.TILIZE: (0 if reuses else compute.tilize_call_cycles) + _tilize_cycles(op, spec, first)}),
        second_tilize=task_of({Stage.TILIZE: _tilize_cycles(op, spec, second)}) if second else None,
        weights=_weights(op, spec, width * op.layout.blocks.act_w_tiles, contention=contention),
        activations=_activations(op, spec),
        matmul=multiply_task(spec, product, reload=False),
        matmul_reload=multiply_task(spec, product, reload=True),
        bias=_weights(op, spec, width, contention=contention) if op.problem.bias else None,
        finish=_finish(op, spec),
    )


def _read_cycles(op: Conv2dOp, spec: DeviceSpec, tile_rows: int, *, kernel_rows: int | None = None) -> float:
    """Gather some tile rows of an activation block from the core's own L1.

    A burst is a kernel row of a window, or a single tap where taps are not neighbors (dilation) or belong to a channel
    shard of which each core takes all taps (WIDTH). Where kernel rows are joined, `kernel_rows` of a window are read;
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
    per_burst = max(spec.costs_of(TransferCosts).stateful_issue_cycles, burst_bytes / spec.noc.link_bytes_per_cycle)
    return spec.noc.interface_cycles + tile_rows * TILE * bursts * per_burst


def _reused_reads(op: Conv2dOp, spec: DeviceSpec) -> tuple[Task, Task]:
    cycles = _read_cycles(op, spec, 1, kernel_rows=1)
    return task_of({Stage.READER: cycles}), task_of({Stage.SECOND_READER: cycles})


def _tilize_cycles(op: Conv2dOp, spec: DeviceSpec, tile_rows: int) -> float:
    tile = tilize_tile_cycles(spec, op.problem.act_format, op.problem.out_format)
    return tile_rows * (spec.costs_of(ComputeCosts).tilize_row_cycles + op.layout.blocks.act_w_tiles * tile)


def _weights(op: Conv2dOp, spec: DeviceSpec, tiles: int, *, contention: bool) -> tuple[Task, Shipment]:
    """Read some tiles of weights from DRAM, one by one, and send them to all cores that multiply with them.

    HEIGHT has one reader for all cores, BLOCK one for each column of cores, WIDTH one on every core.
    """
    layout = op.layout
    tile_bytes = op.problem.weight_format.tile_bytes
    readers = op.weight_readers
    receivers = 1 if layout.scheme is WIDTH else layout.out_config.nhw_cores
    own = tiles * read_page_cycles(spec, tile_bytes)
    shared = shared_cycles(spec, readers * tiles * tile_bytes) if contention else 0.0
    read = task_of({Stage.WEIGHT_READER: read_latency_cycles(spec) + own, Stage.DRAM: max(0.0, shared - own)})
    return read, _shipment(spec, Stage.WEIGHT_MULTICAST, tiles * tile_bytes, receivers, _hops(op, spec, across=False))


def _activations(op: Conv2dOp, spec: DeviceSpec) -> Shipment:
    """A tilized block goes to all cores of its row; of a WIDTH program, to all cores."""
    blocks = op.layout.blocks
    sent_bytes = blocks.act_h_tiles * blocks.act_w_tiles * op.problem.out_format.tile_bytes
    receivers, hops = op.layout.out_config.channel_cores, _hops(op, spec, across=True)
    return _shipment(spec, Stage.ACT_MULTICAST, sent_bytes, receivers, hops)


def _hops(op: Conv2dOp, spec: DeviceSpec, *, across: bool) -> float:
    """Links to a core that gets a block, in the mean half a ring: along one axis in BLOCK programs, else along both."""
    torus, layout = torus_of(spec), op.layout
    if layout.scheme is not BLOCK:
        return (torus.cols + torus.rows) / 2
    along_row = across is (layout.config.orientation is not ShardOrientation.COL_MAJOR)
    return (torus.cols if along_row else torus.rows) / 2


def _shipment(spec: DeviceSpec, stage: Stage, sent_bytes: float, receivers: int, hops: float) -> Shipment:
    """A multicast: the sender spends half of the handshake, the other half passes until receivers see its flag."""
    way, half = hops * spec.noc.hop_cycles, spec.costs_of(ConvCosts).multicast_cycles / 2
    return Shipment(
        notice=task_of({stage: way}),
        send=task_of({stage: half + multicast_cycles(spec, sent_bytes, receivers)}),
        arrive=task_of({stage: way + half}),
    )


def _product_block(op: Conv2dOp) -> ProductBlock:
    blocks = op.layout.blocks
    across = div_up(op.layout.shards.out_col_tiles, blocks.subblock_w_tiles)
    return ProductBlock(
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
        path[Stage.BIAS] = add_row_cycles(spec, tiles)
    if op.options.untilize_out:
        path[Stage.UNTILIZE] = op.layout.blocks.act_h_tiles * untilize_row_cycles(spec, width)
    return task_of(path) if path else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Processors and circular buffers of one core."""

    reader: Processor  # Reads and multicasts activations
    second: Processor  # Reads or receives weights
    splitter: Processor  # Reads activations if the reader is split: the second processor, unless there is a third
    compute: Processor = field(default_factory=Processor)
    # Activation blocks as they are multiplied (BLOCK, WIDTH) or gathered (HEIGHT; with activation reuse the tile rows
    # of a row of the image)
    act: Slots
    second_act: Slots  # What the second reader gathered of them (HEIGHT)
    row_major: Slots  # Gathered activations that are to be tilized for others (BLOCK, WIDTH)
    tilized: Slots  # Such a block, tilized
    weights: Slots  # K blocks of weights

    @property
    def processors(self) -> tuple[Processor, ...]:
        """Each once."""
        return tuple(dict.fromkeys((self.reader, self.second, self.splitter, self.compute)))

    @property
    def buffers(self) -> tuple[Slots, ...]:
        """All circular buffers."""
        return self.act, self.second_act, self.row_major, self.tilized, self.weights


OnCores: TypeAlias = Callable[[Sequence[Core]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The steps of an output block after its products."""

    begun: OnCores  # The first weights have arrived
    finish: OnCores  # Its products are
    buffers: Sequence[Slots] = ()  # Circular buffers that they use beyond those of the cores


@dataclass(frozen=True, slots=True)
class ConvTiming:
    """The cores of a program after its end."""

    sender: Core  # One that reads weights from DRAM
    receivers: tuple[Core, ...]  # One that gets them by multicast, if there are such

    @property
    def cores(self) -> tuple[Core, ...]:
        """The sender first."""
        return self.sender, *self.receivers

    @property
    def end(self) -> Moment:
        """The end of the program: what is left of the other processors is done before the compute threads."""
        return max((core.compute.now for core in self.cores), key=lambda moment: moment.cycles)


def processors_of(cores: Sequence[Core]) -> list[Processor]:
    """The processors of all cores."""
    return [processor for core in cores for processor in core.processors]


def buffers_of(cores: Sequence[Core]) -> list[Slots]:
    """The circular buffers of all cores."""
    return [buffer for core in cores for buffer in core.buffers]
