"""The blocks of a conv2d program in the order in which its cores gather, send and multiply them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from device.memory.memory_config import TILE
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.engine import BEGIN, Moment, Processor, Slots, Task, after, check_emptied, movers, repeat
from ops.programs.conv2d.block_costs import ConvSteps, Shipment, conv_steps
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import HEIGHT, WIDTH


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

    def readers(self, steps: ConvSteps) -> Iterator[tuple[Processor, Slots, Task, Task]]:
        """The readers of activations: processor, buffer, and how a part of a block is gathered and tilized."""
        yield self.reader, self.act, steps.read, steps.tilize
        if steps.second_read is not None and steps.second_tilize is not None:
            yield self.splitter, self.second_act, steps.second_read, steps.second_tilize

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


class ConvTiming(NamedTuple):
    """The final state of a core that reads weights from DRAM, and of a core that receives them by multicast."""

    cores: tuple[Core, ...]  # The sender first; it is alone where no core gets weights by multicast

    @property
    def end(self) -> Moment:
        """The end of the program; the other processors end before the compute threads."""
        return max((core.compute.now for core in self.cores), key=lambda moment: moment.cycles)


def time_conv(op: Conv2dOp, spec: DeviceSpec, steps: ConvSteps | None = None) -> ConvTiming:
    """The cores of a program after its end; `steps` are the steps of the program if already known."""
    steps = steps or conv_steps(op, spec)
    timing = begin([op], steps, spec)
    biases = iter([steps.bias])  # read after the first block's weights

    def finish(cores: Sequence[Core]) -> None:
        bring_bias(next(biases, None), cores)
        if steps.finish is not None:
            for core in cores:
                core.compute.work(steps.finish)

    walk_blocks(op, steps, timing.cores, Ending(begun=lambda cores: None, finish=finish))
    check_emptied("conv2d", [buffer for core in timing.cores for buffer in core.buffers])
    return timing


def begin(ops: Sequence[Conv2dOp], steps: ConvSteps, spec: DeviceSpec) -> ConvTiming:
    """Cores at the beginning of a program that runs some convolutions in sequence on the same cores."""
    layout = ops[0].layout
    shared = layout.scheme is not WIDTH and layout.out_config.nhw_cores > 1
    timing = ConvTiming(tuple(_core(ops, spec) for _ in range(2 if shared else 1)))
    for core in timing.cores:
        for processor in core.processors:
            processor.work(steps.start)
        if steps.config is not None:
            core.reader.work(steps.config)
            core.splitter.wait(core.reader.now if steps.second_read is not None else BEGIN)
    return timing


def _core(ops: Sequence[Conv2dOp], spec: DeviceSpec) -> Core:
    """A core whose buffers serve several convolutions; HEIGHT with several output blocks keeps all weights of each."""
    reader, second, splitter = movers(spec.data_movement.processors, 3)
    options, scheme = ops[0].options, ops[0].layout.scheme
    act_blocks = 2 if options.act_double_buffer else 1
    resident = [op.layout.blocks.k_blocks for op in ops if scheme is HEIGHT and op.out_blocks > 1]
    weights = max(resident, default=2 if options.weights_double_buffer else 1)
    if options.reuses_activations(scheme):
        act_blocks = div_up(ops[0].problem.frame.columns.outputs, TILE)
    return Core(
        reader=reader,
        second=second,
        splitter=splitter,
        act=Slots("act", act_blocks),
        second_act=Slots("act_second_reader", act_blocks),
        row_major=Slots("act_row_major", 2 if scheme is WIDTH else 1),
        tilized=Slots("act_tilized", 1),
        weights=Slots("weights", weights),
    )


def walk_blocks(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """All output blocks of a convolution; only the weights of the first block, and the end of a block, may differ."""
    if op.layout.scheme is HEIGHT:
        _height_block(op, steps, cores, ending, first=True)
        again = partial(_height_block, op, steps, cores, ending, first=False)
    else:
        again = partial(_multicast_block, op, steps, cores, ending)
        again()
    processors = [processor for core in cores for processor in core.processors]
    repeat(op.out_blocks - 1, again, processors, [*(slot for core in cores for slot in core.buffers), *ending.buffers])


def _height_block(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending, *, first: bool) -> None:
    """A HEIGHT block: every core gathers its rows; one core reads all cores' weights, once for several blocks."""
    for k_block in range(op.layout.blocks.k_blocks):
        for core in cores:
            if steps.reused_reads is not None:
                _gather_reusing(op, steps, steps.reused_reads, core)
                continue
            for reader, buffer, read, _ in core.readers(steps):
                reader.wait(buffer.reserve())
                buffer.fill(reader.work(read))
        if first:
            _ship_weights(steps.weights, cores)
        else:
            for core in cores:
                core.second.wait(core.weights.reserve())
                core.weights.fill(core.second.now)
        if k_block == 0:
            ending.begun(cores)
        matmul = _matmul(op, steps, k_block)
        for core in cores:
            for _, buffer, _, tilize in core.readers(steps) if steps.reused_reads is None else ():
                core.compute.wait(buffer.front())
                buffer.empty(core.compute.work(tilize))
            core.compute.wait(core.weights.front())
            core.weights.empty(core.compute.work(matmul))
    ending.finish(cores)


def _gather_reusing(op: Conv2dOp, steps: ConvSteps, again: tuple[Task, Task], core: Core) -> None:
    """A block whose readers reuse the data of the image row above, and keep one such row.

    Each reader begins with whole windows; for every further image row it reads only the last kernel row, as soon as all
    of the previous row is tilized. Tile rows of the two readers are tilized alternately.
    """
    heights, row_tiles = op.layout.reader_tile_rows, div_up(op.problem.frame.columns.outputs, TILE)
    for row in range(heights[0]):
        parts = zip(core.readers(steps), heights, again, strict=False)
        for (reader, buffer, read, tilize), rows, reused_read in parts:
            if row >= rows:
                continue
            reader.wait(buffer.reserve())
            if row % row_tiles == 0:
                reader.wait(buffer.last_emptied)
            buffer.fill(reader.work(read if row < row_tiles else reused_read))
            core.compute.wait(buffer.front())
            buffer.empty(core.compute.work(tilize))


def _multicast_block(op: Conv2dOp, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """BLOCK and WIDTH: every core tilizes its own channels, then the cores of a row send their blocks in turn."""
    layout = op.layout
    senders = layout.config.channel_cores
    sends = layout.multicasts_activations
    for first_k_block in range(0, layout.blocks.k_blocks, senders):
        for core in cores:
            _gather(steps, core, layout.blocks.act_h_tiles if layout.scheme is WIDTH else 1)
        for sender in range(senders):
            matmul = _matmul(op, steps, first_k_block + sender)
            _ship_weights(steps.weights, cores)
            if first_k_block == sender == 0:
                ending.begun(cores)
            for core in cores:
                core.reader.wait(core.act.reserve())
                if sends:
                    _pass_on(steps.activations, core, own=sender == 0)
                else:
                    core.reader.wait(core.tilized.front())
                core.act.fill(core.reader.now)
                core.compute.wait(core.act.front())
                core.compute.wait(core.weights.front())
                core.act.empty(core.compute.work(matmul))
                core.weights.empty(core.compute.now)
        for core in cores:
            core.tilized.empty(core.reader.now)
    ending.finish(cores)


def _gather(steps: ConvSteps, core: Core, tile_rows: int) -> None:
    """Gather and tilize a block of a core's own channels."""
    reader, splitter, compute = core.reader, core.splitter, core.compute
    splitter.wait(core.row_major.reserve())
    begun = reader.now
    for _ in range(tile_rows):
        reader.wait(core.row_major.reserve())
        reader.work(steps.read)
        if steps.second_read is not None:
            splitter.wait(begun)
            reader.wait(splitter.work(steps.second_read))
        core.row_major.fill(reader.now)
        compute.wait(core.row_major.front())
        compute.work(steps.tilize)
        if steps.second_tilize is not None:
            compute.work(steps.second_tilize)
        core.row_major.empty(compute.now)
    core.tilized.fill(compute.now)


def _pass_on(shipment: Shipment, core: Core, *, own: bool) -> None:
    """A core sends its tilized block to its whole row: this core, or the core at the same position."""
    reader = core.reader
    ready = after(reader.now, shipment.notice)
    front = core.tilized.front()
    begin = front if front.cycles > ready.cycles else ready
    if own:
        reader.wait(begin)
        sent = reader.work(shipment.send)
    else:
        sent = after(begin, shipment.send)
    reader.wait(after(sent, shipment.arrive))


def _ship_weights(steps: tuple[Task, Shipment], cores: Sequence[Core]) -> None:
    """Reads a K block of weights from DRAM and sends it to the cores that have signaled room."""
    read, shipment = steps
    sender, *receivers = cores
    sender.second.wait(sender.weights.reserve())
    sender.second.work(read)
    for core in receivers:
        core.second.wait(core.weights.reserve())
    _send(shipment, sender, receivers)
    for core in cores:
        core.weights.fill(core.second.now)


def _send(shipment: Shipment, sender: Core, receivers: Sequence[Core]) -> None:
    """The second processor sends a block to all receivers, which have room for it."""
    for core in receivers:
        sender.second.wait(after(core.second.now, shipment.notice))
    if receivers:
        sent = sender.second.work(shipment.send)
        for core in receivers:
            core.second.wait(after(sent, shipment.arrive))


def _matmul(op: Conv2dOp, steps: ConvSteps, k_block: int) -> Task:
    return steps.matmul_reload if fetches_partials(op, k_block) else steps.matmul


def fetches_partials(op: Conv2dOp, k_block: int) -> bool:
    """Whether a K block fetches partial sums back; if the packer adds them in L1, only the last K block does."""
    last = k_block == op.layout.blocks.k_blocks - 1
    return k_block > 0 and (not op.l1_accumulation or (last and not op.problem.bias))


def bring_bias(bias: tuple[Task, Shipment] | None, cores: Sequence[Core]) -> None:
    """Read and send the bias, unless there is none or it has been sent already."""
    if bias is None:
        return
    read, shipment = bias
    cores[0].second.work(read)
    _send(shipment, cores[0], cores[1:])
    for core in cores:
        core.compute.wait(core.second.now)
