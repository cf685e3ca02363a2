"""The cycles of a program of output phases: the steps of the micro-op by phase, and the copies of its sticks.

Steps and their cycles are those of `ops.programs.conv2d.block_costs`; here are their order and the differences
(docs/explanation/phase-lowering.md, Assumptions):

* Phases of a group share what is gathered, tilized and sent; their weights are read together, tile by tile.
* A finished block gets its bias and is untilized phase by phase, into a separate buffer, which is as wide as all
  phases of the group. The second processor copies its sticks to their rows of the
  output shard, once it has read the first weights of what follows. It copies within its own L1 as the first reader
  gathers, those of one window together: so a copy takes what the reader of a 1x1 kernel takes for sticks as long.
* An output in tiles is tilized from those sticks at the end, at the cost of the micro-op's own tilizing.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from device.spec.device_spec import DeviceSpec
from device.time.engine import Slots, Task, check_emptied, task_of
from device.time.stages import OperationCycles, Stage, TileWork, Transfer, work_together
from ops.programs.conv2d.block_costs import (
    conv_steps,
    issued_flops,
    network_bytes,
    useful_flops,
    weight_bytes,
)
from ops.programs.conv2d.cycles import operation_cycles
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import HEIGHT
from ops.programs.conv2d.walk import ConvTiming, Core, Ending, begin, bring_bias, walk_blocks
from ops.programs.conv2d.work import conv_transfers, conv_work, weight_transfers
from ops.programs.phase_conv2d.plan import PhaseConv2dOp, PhasePart, sticks_format
from ops.window import convolution_axis


def phase_cycles(op: PhaseConv2dOp, spec: DeviceSpec) -> OperationCycles:
    """Cycles of a program of output phases on a device."""
    timing = time_phases(op, spec)
    multiplied, bias = _multiplied(op), _narrow(op)
    return operation_cycles(
        op.parts[0].conv,
        timing,
        dram_read_bytes=sum(map(weight_bytes, multiplied)) + weight_bytes(bias) - weight_bytes(_without_bias(bias)),
        issued_flops=sum(map(issued_flops, multiplied)),
        useful_flops=partial(useful_flops, op.problem),
        transfers=partial(_transfers, op, spec),
        tile_work=partial(_tile_work, op, spec),
    )


def _transfers(op: PhaseConv2dOp, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """Those of all groups, and of the bias."""
    bias = _narrow(op)
    extra = weight_bytes(bias) - weight_bytes(_without_bias(bias))
    sent = network_bytes(bias) - network_bytes(_without_bias(bias))
    parts = [transfer for part in _multiplied(op) for transfer in conv_transfers(part, spec)]
    if extra:
        parts += weight_transfers(bias, spec, extra, sent)
    return tuple(parts)


def _tile_work(op: PhaseConv2dOp, spec: DeviceSpec) -> TileWork:
    """That of all groups; each phase gets its bias, and its sticks are copied to where they belong."""
    return work_together(conv_work(part.conv, spec) for part in op.parts if part.conv.k_blocks)


def _multiplied(op: PhaseConv2dOp) -> list[Conv2dOp]:
    """The groups that have products; the bias is read once, for all of them (`_narrow`)."""
    return [_without_bias(part.conv) for part in op.parts if part.conv.k_blocks]


def _without_bias(conv: Conv2dOp) -> Conv2dOp:
    return conv.with_problem(bias=False)


def _narrow(op: PhaseConv2dOp) -> Conv2dOp:
    """A convolution whose output and bias are as wide as one phase."""
    conv = op.parts[0].conv
    return replace(conv, layout=replace(conv.layout, shards=op.layout.shards))


def time_phases(op: PhaseConv2dOp, spec: DeviceSpec) -> ConvTiming:
    """Walk through a program; arguments as in `phase_cycles`."""
    steps = [conv_steps(part.conv, spec) for part in op.parts]
    timing = begin(_multiplied(op) or [part.conv for part in op.parts], steps[0], spec)
    cores, buffers = timing.cores, [Slots("out_sticks", 1) for _ in timing.cores]
    biases = iter([conv_steps(_narrow(op), spec).bias])  # after the first block's weights
    unplaced: list[Task] = []  # how the block that was finished last is copied, until it is

    def place(cores: Sequence[Core]) -> None:
        """The second processors copy the last finished block, if they have not done so."""
        for copy in unplaced:
            for core, buffer in zip(cores, buffers, strict=True):
                core.second.wait(buffer.front())
                buffer.empty(core.second.work(copy))
        unplaced.clear()

    def finish(cores: Sequence[Core], *, task: Task | None, copy: Task) -> None:
        """Bias and untilizing of a block."""
        place(cores)  # no weights were read since: a phase without taps
        for core, buffer in zip(cores, buffers, strict=True):
            core.compute.wait(buffer.reserve())
        bring_bias(next(biases, None), cores)
        for core, buffer in zip(cores, buffers, strict=True):
            if task is not None:
                core.compute.work(task)
            buffer.fill(core.compute.now)
        unplaced.append(copy)

    for part, taken in zip(op.parts, steps, strict=True):
        read = conv_steps(_placing(op, part.beside, part.conv.layout.blocks.act_h_tiles), spec).read
        copy = task_of({Stage.WRITER: len(part.frames) // part.beside * read.cycles})
        finished = partial(finish, task=_finish(op, part, spec), copy=copy)
        if part.conv.k_blocks:
            walk_blocks(part.conv, taken, cores, Ending(begun=place, finish=finished, buffers=buffers))
        else:
            for _ in range(part.conv.out_blocks):
                finished(cores)
    place(cores)
    for core in cores:
        core.compute.wait(core.second.now)
        if not op.options.untilize_out:
            core.compute.work(conv_steps(_placing(op, 1, op.layout.shards.out_row_tiles), spec).tilize)
    check_emptied("phase conv2d", [*buffers, *(buffer for core in cores for buffer in core.buffers)])
    return timing


def _finish(op: PhaseConv2dOp, part: PhasePart, spec: DeviceSpec) -> Task | None:
    """Bias and untilizing of a block of all phases of a group, in sequence."""
    shards = replace(part.conv.layout.shards, out_width=op.layout.shards.out_width)
    finish = conv_steps(replace(part.conv, layout=replace(part.conv.layout, shards=shards)), spec).finish
    return finish and task_of({stage: len(part.frames) * cycles for stage, cycles in finish.path.items()})


def _placing(op: PhaseConv2dOp, beside: int, tile_rows: int) -> Conv2dOp:
    """A 1x1 convolution whose activations are finished sticks: its reader copies them, and it tilizes them."""
    conv, shards = op.parts[0].conv, op.layout.shards
    axis = convolution_axis(input_length=1, kernel=1, stride=1, padding=(0, 0), dilation=1)
    frame = replace(conv.problem.frame, rows=axis, columns=axis)
    return replace(
        conv,
        layout=replace(
            conv.layout,
            problem=replace(conv.problem, frame=frame, in_format=sticks_format(op.problem), bias=False),
            config=conv.layout.config._replace(scheme=HEIGHT),
            shards=replace(shards, in_width=shards.out_width * beside),
            blocks=replace(conv.layout.blocks, act_h_tiles=tile_rows, act_w_tiles=shards.out_col_tiles),
        ),
    )
