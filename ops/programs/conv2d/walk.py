"""The conv2d program in time: cores whose processors walk through the K blocks and wait for each other.

Three processors work on each core: the first reader (activations, and their multicast), the second one (weights; with
a split reader also half of the activations) and the compute threads, which run as one here but for what
`block_costs` says of their overlap. Two cores stand for all: one that reads weights from DRAM and one that gets them
by multicast, which is behind by what they are under way. Cores of a row that tilize for each other run in step.
"""

from collections.abc import Sequence
from functools import partial

from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.data_movement import movers
from device.time.engine import BEGIN, Slots, Task, after, check_emptied
from device.time.repeat import repeat
from ops.programs.conv2d.block_costs import ConvSteps, Shipment, conv_steps
from ops.programs.conv2d.circular_buffers import multicasts_activations
from ops.programs.conv2d.cores import ConvTiming, Core, Ending, buffers_of, processors_of
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.conv2d.work import ConvWork


def time_conv(work: ConvWork, spec: DeviceSpec, *, contention: bool = True) -> ConvTiming:
    """Walk through a program.

    Args:
        contention: Whether the readers of weights share the bandwidth of DRAM.
    """
    steps = conv_steps(work, spec, contention=contention)
    timing = begin([work], steps, spec)
    walk_blocks(work, steps, timing.cores, Ending(begun=lambda cores: None, finish=_Finishing(steps)))
    check_emptied("conv2d", buffers_of(timing.cores))
    return timing


def begin(works: Sequence[ConvWork], steps: ConvSteps, spec: DeviceSpec) -> ConvTiming:
    """Cores at the beginning of a program of some convolutions on the same cores, one after the other."""
    layout = works[0].layout
    shared = layout.scheme is not WIDTH and layout.out_config.nhw_cores > 1
    timing = ConvTiming(_core(works, spec), (_core(works, spec),) if shared else ())
    for core in timing.cores:
        for processor in core.processors:
            processor.work(steps.start)
        if steps.config is not None:
            core.reader.work(steps.config)
            core.splitter.wait(core.reader.now if steps.second_read is not None else BEGIN)
    return timing


def walk_blocks(work: ConvWork, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """All output blocks of a convolution; only the first one's weights, and what ends it, may differ."""
    if work.layout.scheme is HEIGHT:
        _height_block(work, steps, cores, ending, first=True)
        again = partial(_height_block, work, steps, cores, ending, first=False)
    else:
        again = partial(_multicast_block, work, steps, cores, ending)
        again()
    repeat(work.out_blocks - 1, again, processors_of(cores), [*buffers_of(cores), *ending.buffers])


def _core(works: Sequence[ConvWork], spec: DeviceSpec) -> Core:
    """A core whose buffers serve some convolutions: all weights of one with several output blocks stay, of HEIGHT."""
    reader, second, splitter = movers(spec.data_movement.processors, 3)
    options, scheme = works[0].options, works[0].layout.scheme
    held = 2 if options.act_double_buffer else 1
    resident = [one.layout.blocks.k_blocks for one in works if scheme is HEIGHT and one.out_blocks > 1]
    weights = max(resident, default=2 if options.weights_double_buffer else 1)
    if options.reuses_activations(scheme):
        held = div_up(works[0].problem.frame.columns.outputs, TILE)
    return Core(
        reader=reader,
        second=second,
        splitter=splitter,
        act=Slots("act", held),
        second_act=Slots("act_second_reader", held),
        row_major=Slots("act_row_major", 2 if scheme is WIDTH else 1),
        tilized=Slots("act_tilized", 1),
        weights=Slots("weights", weights),
    )


def _height_block(work: ConvWork, steps: ConvSteps, cores: Sequence[Core], ending: Ending, *, first: bool) -> None:
    """Every core gathers its rows; one core reads the weights for all, once if there are several output blocks."""
    for k_block in range(work.layout.blocks.k_blocks):
        for core in cores:
            if steps.reused_reads is not None:
                _gather_reusing(work, steps, steps.reused_reads, core)
                continue
            core.reader.wait(core.act.reserve())
            core.act.fill(core.reader.work(steps.read))
            if steps.second_read is not None:
                core.splitter.wait(core.second_act.reserve())
                core.second_act.fill(core.splitter.work(steps.second_read))
        if first:
            _ship_weights(steps.weights, cores)
        else:
            for core in cores:
                core.second.wait(core.weights.reserve())
                core.weights.fill(core.second.now)
        if k_block == 0:
            ending.begun(cores)
        for core in cores:
            compute = core.compute
            if steps.reused_reads is None:
                compute.wait(core.act.front())
                core.act.empty(compute.work(steps.tilize))
                if steps.second_tilize is not None:
                    compute.wait(core.second_act.front())
                    core.second_act.empty(compute.work(steps.second_tilize))
            compute.wait(core.weights.front())
            core.weights.empty(compute.work(_matmul(work, steps, k_block)))
    ending.finish(cores)


def _gather_reusing(work: ConvWork, steps: ConvSteps, again: tuple[Task, Task], core: Core) -> None:
    """A block whose readers keep what they have of the row of the image above, and hold one such row.

    Each reader begins its part with whole windows; of every further row of the image it reads the last kernel row, as
    soon as all of the row before is tilized. Tile rows of the two readers are tilized in turn.
    """
    height, row_tiles = work.layout.blocks.act_h_tiles, div_up(work.problem.frame.columns.outputs, TILE)
    second = height // 2 if steps.second_read is not None else 0
    parts = [
        (core.reader, core.act, height - second, steps.read, again[0], steps.tilize),
        (core.splitter, core.second_act, second, steps.second_read, again[1], steps.second_tilize),
    ]
    for row in range(height - second):
        for reader, buffer, rows, read, reused_read, tilize in parts:
            if row >= rows or read is None or tilize is None:
                continue
            reader.wait(buffer.reserve())
            if row % row_tiles == 0:
                reader.wait(buffer.last_emptied)
            buffer.fill(reader.work(read if row < row_tiles else reused_read))
            core.compute.wait(buffer.front())
            buffer.empty(core.compute.work(tilize))


def _multicast_block(work: ConvWork, steps: ConvSteps, cores: Sequence[Core], ending: Ending) -> None:
    """BLOCK and WIDTH: cores tilize their own channels, then one after the other sends its block to all of its row."""
    layout = work.layout
    senders = layout.config.channel_cores
    sends = multicasts_activations(layout.config, layout.out_config)
    for first_k_block in range(0, layout.blocks.k_blocks, senders):
        for core in cores:
            _gather(steps, core, layout.blocks.act_h_tiles if layout.scheme is WIDTH else 1)
        for sender in range(senders):
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
                core.act.empty(core.compute.work(_matmul(work, steps, first_k_block + sender)))
                core.weights.empty(core.compute.now)
        for core in cores:
            core.tilized.empty(core.reader.now)
    ending.finish(cores)


def _gather(steps: ConvSteps, core: Core, tile_rows: int) -> None:
    """A block of a core's own channels is gathered and tilized."""
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
    """A core of a row sends its tilized block to all, itself included: this one, or one that is as far as it."""
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
    """A K block of weights comes from DRAM and goes on to the cores that have said that they have room."""
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
    """A block of the second processor goes to all receivers, which have room for it."""
    for core in receivers:
        sender.second.wait(after(core.second.now, shipment.notice))
    if receivers:
        sent = sender.second.work(shipment.send)
        for core in receivers:
            core.second.wait(after(sent, shipment.arrive))


def _matmul(work: ConvWork, steps: ConvSteps, k_block: int) -> Task:
    return steps.matmul_reload if fetches_partials(work, k_block) else steps.matmul


def fetches_partials(work: ConvWork, k_block: int) -> bool:
    """Whether a K block fetches partial sums back.

    Not if the packer adds them in L1, which leaves the last one to fetch.
    """
    last = k_block == work.layout.blocks.k_blocks - 1
    return k_block > 0 and (not work.l1_accumulation or (last and not work.problem.bias))


class _Finishing:
    """Bias and untilizing of finished output blocks; the bias is read behind the first block's weights."""

    def __init__(self, steps: ConvSteps) -> None:
        """Begins with no block finished."""
        self._steps = steps
        self._bias = steps.bias

    def __call__(self, cores: Sequence[Core]) -> None:
        """The next block."""
        bring_bias(self._bias, cores)
        self._bias = None
        if self._steps.finish is not None:
            for core in cores:
                core.compute.work(self._steps.finish)


def bring_bias(bias: tuple[Task, Shipment] | None, cores: Sequence[Core]) -> None:
    """The bias is read and sent, if there is one that has not been yet."""
    if bias is None:
        return
    read, shipment = bias
    cores[0].second.work(read)
    _send(shipment, cores[0], cores[1:])
    for core in cores:
        core.compute.wait(core.second.now)
