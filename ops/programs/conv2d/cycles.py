"""What a conv2d program takes: its processors walk through the K blocks and wait for each other at circular buffers.

Three processors work on each core: the first reader (activations, and their multicast), the second one (weights; with
a split reader also half of the activations) and the compute threads, which run as one here but for what
`block_costs` says of their overlap. A third data movement processor takes the second half of the activations; a single
one does all that readers do, in turn. All cores run in step: they do the same work and every multicast binds them.
"""

from dataclasses import dataclass

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import ShardOrientation
from device.memory.tiles import TILE
from device.spec.device_spec import DeviceSpec
from device.time.data_movement import movers
from device.time.engine import BEGIN, Moment, Processor, Slots, Task, check_emptied, critical_cycles, stage_report
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.frame.axis import FrameAxis, output_phases
from ops.programs.conv2d.block_costs import ConvSteps, conv_steps
from ops.programs.conv2d.circular_buffers import multicasts_activations
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.conv2d.work import ConvWork


@dataclass(frozen=True, slots=True)
class ConvTiming:
    """The processors of a core that reads weights, after the program.

    Attributes:
        reader: Reads and multicasts activations.
        second: Reads weights.
        splitter: Reads activations if the reader is split: the second one, unless there is a third.
        compute: The compute threads.
    """

    reader: Processor
    second: Processor
    splitter: Processor
    compute: Processor

    @property
    def processors(self) -> tuple[Processor, ...]:
        """Each once."""
        return tuple(dict.fromkeys((self.reader, self.second, self.splitter, self.compute)))

    @property
    def end(self) -> Moment:
        """The end of the program: what is left of the others is done before."""
        return self.compute.now


def conv_cycles(work: ConvWork, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """What a convolution takes on a device.

    Args:
        work: The program.
        spec: The device.
        contention: Whether the readers of weights share the bandwidth of DRAM.
    """
    timing = time_conv(work, spec, contention=contention)
    stages = stage_report(
        timing.processors,
        timing.end,
        waits={
            Stage.READER: timing.reader,
            Stage.WEIGHT_READER: timing.second,
            Stage.MATH: timing.compute,
        },
    )
    return OperationCycles(
        cycles=timing.end.cycles,
        groups=_groups(work, timing.end.cycles, stages),
        bound_by=binding_stage(stages),
        dram_read_bytes=_weight_bytes(work),
        network_bytes=_network_bytes(work),
        issued_flops=_issued_flops(work),
        useful_flops=_useful_flops(work),
        contention_cycles=critical_cycles(timing.end).get(Stage.DRAM, 0.0),
    )


def time_conv(work: ConvWork, spec: DeviceSpec, *, contention: bool = True) -> ConvTiming:
    """Run the processors of one core through the program; arguments as of `conv_cycles`."""
    reader, second, splitter = movers(spec.data_movement.processors, 3)
    timing = ConvTiming(reader, second, splitter, Processor())
    steps = conv_steps(work, spec, contention=contention)
    for processor in timing.processors:
        processor.work(steps.start)
    if steps.config is not None:
        timing.reader.work(steps.config)
        timing.splitter.wait(timing.reader.now if steps.second_read is not None else BEGIN)
    program = _height_program if work.layout.scheme is HEIGHT else _multicast_program
    check_emptied("conv2d", program(work, steps, timing))
    return timing


def _out_blocks(work: ConvWork) -> int:
    return work.layout.shards.out_row_tiles // work.layout.blocks.act_h_tiles


def _height_program(work: ConvWork, steps: ConvSteps, timing: ConvTiming) -> tuple[Slots, ...]:
    """Every core gathers its rows; one core reads the weights for all, once if there are several output blocks.

    Returns:
        The circular buffers.
    """
    reader, second, compute = timing.reader, timing.second, timing.compute
    k_blocks, out_blocks, options = work.layout.blocks.k_blocks, _out_blocks(work), work.options
    held = 2 if options.act_double_buffer else 1
    act, second_act = Slots("act", held), Slots("act_second_reader", held)
    weights = Slots("weights", k_blocks if out_blocks > 1 else 2 if options.weights_double_buffer else 1)
    for out_block in range(out_blocks):
        for k_block in range(k_blocks):
            reader.wait(act.reserve())
            act.fill(reader.work(steps.read))
            if steps.second_read is not None:
                timing.splitter.wait(second_act.reserve())
                second_act.fill(timing.splitter.work(steps.second_read))
            second.wait(weights.reserve())
            weights.fill(second.work(steps.weights) if out_block == 0 else second.now)
            compute.wait(act.front())
            act.empty(compute.work(steps.tilize))
            if steps.second_tilize is not None:
                compute.wait(second_act.front())
                second_act.empty(compute.work(steps.second_tilize))
            compute.wait(weights.front())
            weights.empty(compute.work(_matmul(work, steps, k_block)))
        _finish(steps, timing, first=out_block == 0)
    return act, second_act, weights


def _multicast_program(work: ConvWork, steps: ConvSteps, timing: ConvTiming) -> tuple[Slots, ...]:
    """BLOCK and WIDTH: cores tilize their own channels, then one after the other sends its block to all of its row.

    Returns:
        The circular buffers.
    """
    reader, second, compute = timing.reader, timing.second, timing.compute
    layout, options = work.layout, work.options
    senders = layout.config.channel_cores
    row_major, tilized = Slots("act_row_major", 2 if layout.scheme is WIDTH else 1), Slots("act_tilized", 1)
    act = Slots("act", 2 if options.act_double_buffer else 1)
    weights = Slots("weights", 2 if options.weights_double_buffer else 1)
    sends = multicasts_activations(layout.config, layout.out_config)
    tile_rows = layout.blocks.act_h_tiles if layout.scheme is WIDTH else 1
    for out_block in range(_out_blocks(work)):
        for first_k_block in range(0, layout.blocks.k_blocks, senders):
            timing.splitter.wait(row_major.reserve())
            begun = reader.now
            for _ in range(tile_rows):
                reader.wait(row_major.reserve())
                reader.work(steps.read)
                if steps.second_read is not None:
                    timing.splitter.wait(begun)
                    reader.wait(timing.splitter.work(steps.second_read))
                row_major.fill(reader.now)
                compute.wait(row_major.front())
                compute.work(steps.tilize)
                if steps.second_tilize is not None:
                    compute.work(steps.second_tilize)
                row_major.empty(compute.now)
            tilized.fill(compute.now)
            for k_block in range(first_k_block, first_k_block + senders):
                second.wait(weights.reserve())
                weights.fill(second.work(steps.weights))
                reader.wait(act.reserve())
                reader.wait(tilized.front())
                act.fill(reader.work(steps.activations) if sends else reader.now)
                compute.wait(act.front())
                compute.wait(weights.front())
                act.empty(compute.work(_matmul(work, steps, k_block)))
                weights.empty(compute.now)
            tilized.empty(reader.now)
        _finish(steps, timing, first=out_block == 0)
    return row_major, tilized, act, weights


def _matmul(work: ConvWork, steps: ConvSteps, k_block: int) -> Task:
    """A K block fetches partial sums back, unless the packer adds them in L1 (which leaves the last one to fetch)."""
    last = k_block == work.layout.blocks.k_blocks - 1
    fetches = k_block > 0 and (not work.l1_accumulation or (last and not work.problem.bias))
    return steps.matmul_reload if fetches else steps.matmul


def _finish(steps: ConvSteps, timing: ConvTiming, *, first: bool) -> None:
    """Bias and untilizing of a finished output block; the bias is read behind the first block's weights."""
    if first and steps.bias is not None:
        timing.compute.wait(timing.second.work(steps.bias))
    if steps.finish is not None:
        timing.compute.work(steps.finish)


def _groups(work: ConvWork, cycles: float, stages: tuple[StageCycles, ...]) -> tuple[CoreGroupCycles, ...]:
    """Cores that read weights from DRAM, and the others, which get them by multicast."""
    layout = work.layout
    sends = _weight_readers(work)
    every = layout.config.cores.union(layout.out_config.cores)
    rest = CoreRangeSet([CoreRange(core, core) for core in every.cores() if not sends.contains(core)])
    groups = [CoreGroupCycles(cores=sends, cycles=cycles, stages=stages)]
    if not rest.empty():
        read = {Stage.WEIGHT_READER, Stage.DRAM}
        waiting = tuple(
            StageCycles(s.stage, 0.0, s.stall_cycles + s.busy_cycles, s.critical_cycles) if s.stage in read else s
            for s in stages
        )
        groups.append(CoreGroupCycles(cores=rest, cycles=cycles, stages=waiting))
    return tuple(groups)


def _weight_readers(work: ConvWork) -> CoreRangeSet:
    """HEIGHT: the first core; BLOCK: the first core of every channel slice; WIDTH: all."""
    out, origin = work.layout.out_config, CoreCoord(0, 0)
    if out.scheme is WIDTH:
        return out.cores
    if out.scheme is HEIGHT:
        return CoreRangeSet(CoreRange(origin, origin))
    last = out.channel_cores - 1
    end = CoreCoord(0, last) if out.orientation is ShardOrientation.COL_MAJOR else CoreCoord(last, 0)
    return CoreRangeSet(CoreRange(origin, end))


def _weight_bytes(work: ConvWork) -> int:
    """Bytes of weights and bias read from DRAM: by BLOCK and WIDTH again for every output block."""
    layout, tile_bytes = work.layout, work.problem.weight_format.tile_bytes
    readers = 1 if layout.scheme is HEIGHT else layout.out_config.channel_cores
    times = 1 if layout.scheme is HEIGHT else _out_blocks(work)
    width = layout.shards.out_col_tiles
    tiles = times * layout.blocks.k_blocks * layout.blocks.act_w_tiles * width + (width if work.problem.bias else 0)
    return readers * tiles * tile_bytes


def _network_bytes(work: ConvWork) -> int:
    """Bytes multicast: weights by their readers, activations by every core that holds some."""
    layout, blocks = work.layout, work.layout.blocks
    sent = 0 if layout.scheme is WIDTH or layout.out_config.nhw_cores == 1 else _weight_bytes(work)
    if multicasts_activations(layout.config, layout.out_config):
        block_bytes = blocks.act_h_tiles * blocks.act_w_tiles * work.problem.out_format.tile_bytes
        sent += _out_blocks(work) * blocks.k_blocks * layout.config.nhw_cores * block_bytes
    return sent


def _issued_flops(work: ConvWork) -> int:
    layout = work.layout
    cores = layout.out_config.nhw_cores * layout.out_config.channel_cores
    products = layout.shards.out_row_tiles * layout.shards.out_col_tiles
    k_tiles = layout.blocks.act_w_tiles * layout.blocks.k_blocks
    return 2 * TILE**3 * cores * products * k_tiles


def _useful_flops(work: ConvWork) -> int:
    """Products of an input and a weight, of all outputs: inserted zeros and padding to tiles left out."""
    frame = work.problem.frame
    taps = frame.batch * _taps(frame.rows) * _taps(frame.columns)
    return 2 * taps * work.problem.in_channels * work.problem.out_channels


def _taps(axis: FrameAxis) -> int:
    """Kernel positions that meet an input or padding around the image, of all outputs along an axis."""
    return sum(phase.axis.outputs * len(phase.taps) for phase in output_phases(axis)) if axis.data else 0
