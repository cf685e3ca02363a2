"""What a program of output phases takes: the steps of the micro-op phase by phase, and the way of its sticks.

Steps and their cycles are those of `ops.programs.conv2d.block_costs`; here is their order, and what is new in it
(docs/phase-lowering.md, Assumptions):

* Phases of a group share what is gathered, tilized and sent; their weights are read together, tile by tile.
* A finished block gets its bias and is untilized phase by phase, into a buffer of its own, which is as wide as all
  phases of the group. The second processor copies its sticks to their rows of the
  output shard, once it has read the first weights of what follows. It copies within its own L1 as the first reader
  gathers, those of one window together: so a copy takes what the reader of a 1x1 kernel takes for sticks as long.
* An output in tiles is tilized from those sticks at the end, at the cost of the micro-op's own tilizing.
"""

from dataclasses import dataclass, replace

from device.spec.device_spec import DeviceSpec
from device.time.engine import Processor, Slots, Task, check_emptied, critical_cycles, stage_report, task_of
from device.time.stages import OperationCycles, Stage, binding_stage
from ops.frame.axis import convolution_axis
from ops.programs.conv2d.block_costs import ConvSteps, conv_steps
from ops.programs.conv2d.circular_buffers import multicasts_activations
from ops.programs.conv2d.cycles import (
    ConvTiming,
    core_groups,
    issued_flops,
    matmul_task,
    network_bytes,
    useful_flops,
    weight_bytes,
)
from ops.programs.conv2d.partition import HEIGHT, WIDTH
from ops.programs.conv2d.work import ConvWork
from ops.programs.phase_conv2d.work import PhaseConvWork, PhasePart


def phase_cycles(work: PhaseConvWork, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """What a program of output phases takes on a device.

    Args:
        work: The program.
        spec: The device.
        contention: Whether the readers of weights share the bandwidth of DRAM.
    """
    timing = time_phases(work, spec, contention=contention)
    stages = stage_report(
        (timing.reader, timing.second, timing.compute),
        timing.end,
        waits={Stage.READER: timing.reader, Stage.WEIGHT_READER: timing.second, Stage.MATH: timing.compute},
    )
    multiplied, bias = _multiplied(work), _narrow(work)
    return OperationCycles(
        cycles=timing.end.cycles,
        groups=core_groups(work.parts[0].conv, timing.end.cycles, stages),
        bound_by=binding_stage(stages),
        dram_read_bytes=sum(map(weight_bytes, multiplied)) + weight_bytes(bias) - weight_bytes(_without_bias(bias)),
        network_bytes=sum(map(network_bytes, multiplied)) + network_bytes(bias) - network_bytes(_without_bias(bias)),
        issued_flops=sum(map(issued_flops, multiplied)),
        useful_flops=useful_flops(work.problem),
        contention_cycles=critical_cycles(timing.end).get(Stage.DRAM, 0.0),
    )


def _multiplied(work: PhaseConvWork) -> list[ConvWork]:
    """The groups that multiply; the bias is read once, for all (`_narrow`)."""
    return [_without_bias(part.conv) for part in work.parts if part.conv.k_blocks]


def _without_bias(conv: ConvWork) -> ConvWork:
    return replace(conv, problem=replace(conv.problem, bias=False))


def _narrow(work: PhaseConvWork) -> ConvWork:
    """A convolution whose output is as wide as one phase, which is what a bias is."""
    conv = work.parts[0].conv
    return replace(conv, layout=replace(conv.layout, shards=work.layout.shards))


def time_phases(work: PhaseConvWork, spec: DeviceSpec, *, contention: bool = True) -> ConvTiming:
    """Run the three processors of one core through the program; arguments as of `phase_cycles`."""
    timing = ConvTiming(Processor(), Processor(), Processor())
    steps = [conv_steps(part.conv, spec, contention=contention) for part in work.parts]
    for processor in (timing.reader, timing.second, timing.compute):
        processor.work(steps[0].start)
    if steps[0].config is not None:
        timing.reader.work(steps[0].config)
    bias = conv_steps(_narrow(work), spec, contention=contention).bias
    walk = _Walk(timing=timing, buffers=_Buffers.of(work), bias=bias)
    program = walk.height_phase if work.layout.scheme is HEIGHT else walk.multicast_phase
    for part, taken in zip(work.parts, steps, strict=True):
        copy = _placing(work, part.beside, part.conv.layout.blocks.act_h_tiles)
        lines = len(part.phases) // part.beside
        placed = task_of({Stage.WRITER: lines * conv_steps(copy, spec).read.cycles})
        program(part.conv, taken, _Ending(finish=_finish(work, part, spec), placed=placed))
    walk.flush()
    timing.compute.wait(timing.second.now)
    if not work.options.untilize_out:
        timing.compute.work(conv_steps(_placing(work, 1, work.layout.shards.out_row_tiles), spec).tilize)
    check_emptied("phase conv2d", walk.buffers.all)
    return timing


def _finish(work: PhaseConvWork, part: PhasePart, spec: DeviceSpec) -> Task | None:
    """Bias and untilizing of a block of all phases of a group, one after the other."""
    shards = replace(part.conv.layout.shards, out_width=work.layout.shards.out_width)
    one = conv_steps(replace(part.conv, layout=replace(part.conv.layout, shards=shards)), spec).finish
    return one and task_of({stage: len(part.phases) * cycles for stage, cycles in one.path.items()})


def _placing(work: PhaseConvWork, beside: int, tile_rows: int) -> ConvWork:
    """A 1x1 convolution whose activations are finished sticks: its reader copies them, and it tilizes them.

    Args:
        work: The program.
        beside: Sticks that lie beside each other.
        tile_rows: Rows of so many tiles.
    """
    conv, shards = work.parts[0].conv, work.layout.shards
    axis = convolution_axis(input_length=1, kernel=1, stride=1, padding=(0, 0), dilation=1)
    frame = replace(conv.problem.frame, rows=axis, columns=axis)
    return replace(
        conv,
        problem=replace(conv.problem, frame=frame, in_format=work.sticks_format, bias=False),
        layout=replace(
            conv.layout,
            config=replace(conv.layout.config, scheme=HEIGHT),
            shards=replace(shards, in_width=shards.out_width * beside),
            blocks=replace(conv.layout.blocks, act_h_tiles=tile_rows, act_w_tiles=shards.out_col_tiles),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Ending:
    """What becomes of a block that was multiplied.

    Attributes:
        finish: Bias and untilizing.
        placed: Its sticks are copied to their places.
    """

    finish: Task | None
    placed: Task


@dataclass(frozen=True, slots=True)
class _Buffers:
    """The circular buffers of a core, in blocks; those of the micro-op are as large as the phase that needs most."""

    act: Slots
    weights: Slots
    row_major: Slots
    tilized: Slots
    sticks: Slots

    @classmethod
    def of(cls, work: PhaseConvWork) -> "_Buffers":
        """All of them, empty."""
        options, height = work.options, work.layout.scheme is HEIGHT
        kept = [one.layout.blocks.k_blocks for one in _multiplied(work) if height and _out_blocks(one) > 1]
        return cls(
            act=Slots("act", 2 if options.act_double_buffer else 1),
            weights=Slots("weights", max(kept, default=2 if options.weights_double_buffer else 1)),
            row_major=Slots("act_row_major", 2 if work.layout.scheme is WIDTH else 1),
            tilized=Slots("act_tilized", 1),
            sticks=Slots("out_sticks", 1),
        )

    @property
    def all(self) -> tuple[Slots, ...]:
        """Every one."""
        return self.act, self.weights, self.row_major, self.tilized, self.sticks


class _Walk:
    """A core on its way through the phases.

    Attributes:
        timing: Its processors.
        buffers: Its circular buffers.
    """

    def __init__(self, *, timing: ConvTiming, buffers: _Buffers, bias: Task | None) -> None:
        """Begins; ``bias`` is how the bias is read, if there is one."""
        self.timing = timing
        self.buffers = buffers
        self._unread_bias = bias
        self._unplaced: Task | None = None  # how a finished block is copied that is still to be

    def height_phase(self, conv: ConvWork, steps: ConvSteps, ending: _Ending) -> None:
        """Every core gathers its rows; one core reads the weights for all."""
        reader, second, compute = self.timing.reader, self.timing.second, self.timing.compute
        act, weights = self.buffers.act, self.buffers.weights
        for out_block in range(_out_blocks(conv)):
            for k_block in range(len(conv.k_blocks)):
                reader.wait(act.reserve())
                act.fill(reader.work(steps.read))
                second.wait(weights.reserve())
                weights.fill(second.work(steps.weights) if out_block == 0 else second.now)
                self.flush()
                compute.wait(act.front())
                act.empty(compute.work(steps.tilize))
                compute.wait(weights.front())
                weights.empty(compute.work(matmul_task(conv, steps, k_block)))
            self._end(ending)

    def multicast_phase(self, conv: ConvWork, steps: ConvSteps, ending: _Ending) -> None:
        """BLOCK and WIDTH: cores tilize their own channels, then one after the other sends its block to its row."""
        reader, second, compute = self.timing.reader, self.timing.second, self.timing.compute
        act, weights, row_major, tilized = (
            self.buffers.act, self.buffers.weights, self.buffers.row_major, self.buffers.tilized,
        )  # fmt: skip
        layout = conv.layout
        senders, sends = layout.config.channel_cores, multicasts_activations(layout.config, layout.out_config)
        tile_rows = layout.blocks.act_h_tiles if layout.scheme is WIDTH else 1
        for _ in range(_out_blocks(conv)):
            for first_k_block in range(0, len(conv.k_blocks), senders):
                for _ in range(tile_rows):
                    reader.wait(row_major.reserve())
                    row_major.fill(reader.work(steps.read))
                    compute.wait(row_major.front())
                    row_major.empty(compute.work(steps.tilize))
                tilized.fill(compute.now)
                for k_block in range(first_k_block, first_k_block + senders):
                    second.wait(weights.reserve())
                    weights.fill(second.work(steps.weights))
                    self.flush()
                    reader.wait(act.reserve())
                    reader.wait(tilized.front())
                    act.fill(reader.work(steps.activations) if sends else reader.now)
                    compute.wait(act.front())
                    compute.wait(weights.front())
                    act.empty(compute.work(matmul_task(conv, steps, k_block)))
                    weights.empty(compute.now)
                tilized.empty(reader.now)
            self._end(ending)

    def flush(self) -> None:
        """The second processor copies the block that was finished last, if it has not done so."""
        if self._unplaced is not None:
            self.timing.second.wait(self.buffers.sticks.front())
            self.buffers.sticks.empty(self.timing.second.work(self._unplaced))
            self._unplaced = None

    def _end(self, ending: _Ending) -> None:
        """Bias and untilizing of a finished block; the bias is read once, behind the first block's weights."""
        self.flush()  # no weights were read since: a phase without taps
        compute = self.timing.compute
        compute.wait(self.buffers.sticks.reserve())
        if self._unread_bias is not None:
            compute.wait(self.timing.second.work(self._unread_bias))
            self._unread_bias = None
        if ending.finish is not None:
            compute.work(ending.finish)
        self.buffers.sticks.fill(compute.now)
        self._unplaced = ending.placed


def _out_blocks(conv: ConvWork) -> int:
    """Output blocks of a phase on one core."""
    return conv.layout.shards.out_row_tiles // conv.layout.blocks.act_h_tiles
