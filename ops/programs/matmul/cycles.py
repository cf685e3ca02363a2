"""What a matmul takes: its processors walk through the K blocks and wait for each other at circular buffers.

An operand's tiles are read one by one by the core that sends them on, then multicast; each core multiplies sub-block
after sub-block and writes what is finished. Constants by `tools.calibrate` from the GEMM measurements of tt-metal,
which are of single matrices. Batches follow each other in the same model, and a first operand that the program turns is
unpacked and packed once more: no measurement; composed of steps that have one.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from device.cores import CoreRangeSet, first_cores
from device.numbers.formats import DataFormat
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import Moment, Processor, Slots, Task, check_emptied, repeat, stage_report, task_of
from device.time.network import movers, read_latency_cycles, shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs import kernel_costs
from ops.programs.matmul.buffers import BUFFERING
from ops.programs.matmul.op import IN_DRAM, TILE_PRODUCT_FLOPS, MatmulOp, Place, Places, operands_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulSteps:
    """The steps of one core; None for steps that the program does not have."""

    out_blocks: int  # Output blocks of the core
    k_blocks: int
    start: Task  # From the start of the program until a processor begins
    first: Task | None  # A block of the first operand is brought, and sent to all cores that need it
    second: Task | None  # A block of the second operand is
    multiply: tuple[Task, Task, Task]  # The first K block is multiplied, one between, the last of several
    finish: Task | None = None  # A finished output block is made ready to be written
    write: Task | None = None
    first_dram: Task | None = None  # The banks deliver what all cores need of the first operand for a K block
    second_dram: Task | None = None  # They deliver the second operand
    write_dram: Task | None = None  # They take an output block of every core
    parts: int = 1  # Parts in which an output block is finished, each written while the next is on its way
    processors: int = 2  # Data movement processors of a core


@dataclass(frozen=True, slots=True)
class MatmulTiming:
    """The processors of a core, after the program."""

    first: Processor  # Brings the first operand
    second: Processor  # Brings the second operand
    writer: Processor  # Writes the output: the second processor, unless there is a third
    compute: Processor
    dram: Processor  # The banks of all cores

    @property
    def cycles(self) -> float:
        """Cycles of the program."""
        return self._last.now.cycles

    @property
    def stages(self) -> tuple[StageCycles, ...]:
        """What every stage did."""
        return stage_report(
            (self.first, self.second, self.writer, self.compute, self.dram),
            self._last.now,
            waits={Stage.READER: self.first, Stage.WEIGHT_READER: self.second, Stage.MATH: self.compute},
        )

    @property
    def _last(self) -> Processor:
        return max(self.compute, self.writer, self.second, key=lambda processor: processor.now.cycles)


def walk_blocks(step: str, steps: MatmulSteps) -> MatmulTiming:
    """Run the processors of one core through the program."""
    first, second, writer = movers(steps.processors, 3)
    compute, dram = Processor(), Processor()
    processors = list(dict.fromkeys((first, second, writer, compute)))
    for processor in processors:
        processor.work(steps.start)
    dram.wait(compute.now)
    in0, in1, out = Slots("in0", BUFFERING), Slots("in1", BUFFERING), Slots("out", 1)
    write, write_dram = _part(steps.write, steps.parts), _part(steps.write_dram, steps.parts)

    def multiply(task: Task, parts: int = 1) -> list[Moment]:
        """A K block is brought and multiplied in parts; the result is the end of each part."""
        moved = (first, in0, steps.first, steps.first_dram), (second, in1, steps.second, steps.second_dram)
        for mover, buffer, bring, share in moved:
            mover.wait(buffer.reserve())
            _move(mover, bring, dram, share)
            buffer.fill(mover.now)
        compute.wait(in0.front())
        compute.wait(in1.front())
        ready = _work(compute, task, parts)
        in0.empty(compute.now)
        in1.empty(compute.now)
        return ready

    def out_block() -> None:
        compute.wait(out.reserve())
        begin, between, last = steps.multiply
        if steps.k_blocks > 1:
            multiply(begin)
            repeat(steps.k_blocks - 2, partial(multiply, between), [*processors, dram], (in0, in1))
        ready = multiply(last if steps.k_blocks > 1 else begin, steps.parts)
        if steps.finish is not None:
            ready = _work(compute, steps.finish, steps.parts)
        out.fill(compute.now)
        for moment in ready if write is not None else ():
            writer.wait(moment)
            _move(writer, write, dram, write_dram)
        out.empty(compute.now if write is None else writer.now)

    repeat(steps.out_blocks, out_block, [*processors, dram], (in0, in1, out))
    check_emptied(step, (in0, in1, out))
    return MatmulTiming(first, second, writer, compute, dram)


def _part(task: Task | None, parts: int) -> Task | None:
    """One of equal parts of a task."""
    if task is None or parts == 1:
        return task
    path, busy = ({stage: cycles / parts for stage, cycles in each.items()} for each in (task.path, task.busy))
    return task_of(path, busy)


def _work(processor: Processor, task: Task, parts: int) -> list[Moment]:
    """A processor does a task in parts; the result is the end of each part."""
    part = _part(task, parts) or task
    return [processor.work(part) for _ in range(parts)]


def _move(processor: Processor, task: Task | None, dram: Processor, share: Task | None) -> None:
    """A processor moves a block, and ends no earlier than the DRAM banks."""
    if task is not None:
        processor.work(task)
    if share is not None:
        processor.wait(dram.work(share))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCosts(Costs):
    """Constants of the model of the matmul program, in cycles unless named otherwise."""

    TABLE: ClassVar[str] = "matmul_costs"

    start_cycles: float  # Kernel start, first reads and last writes
    k_block_cycles: float  # Handshake of sender and receivers for each K block of an operand that is multicast
    crossed_read_links: float  # Links on which meets what all cores read over the network that is placed for writing
    crossed_write_links: float  # Links on which meets what all write over the network that is placed for reading


def matmul_cycles(
    op: MatmulOp,
    spec: DeviceSpec,
    places: Places = IN_DRAM,
    *,
    cores: CoreRangeSet | None = None,
) -> OperationCycles:
    """Cycles of one matmul program on `cores`: the first of the grid if not given."""
    problem, grid, operands = op.problem, op.config.grid, operands_of(op, places)
    free, timing = (time_matmul(op, spec, places, contention=shared) for shared in (False, True))
    used = first_cores(op.cores, grid.cols, grid.rows) if cores is None else cores
    return OperationCycles(
        cycles=timing.cycles,
        groups=(CoreGroupCycles(cores=used, cycles=timing.cycles, stages=timing.stages),),
        bound_by=binding_stage(stage for stage in timing.stages if stage.stage is not Stage.START),
        dram_read_bytes=operands.first_read_bytes + operands.second_read_bytes,
        dram_written_bytes=operands.written_bytes,
        network_bytes=operands.sent_bytes,
        issued_flops=op.issued_flops,
        useful_flops=problem.batches * problem.m_tiles * problem.n_tiles * problem.k_tiles * TILE_PRODUCT_FLOPS,
        contention_cycles=max(0.0, timing.cycles - free.cycles),
    )


def time_matmul(op: MatmulOp, spec: DeviceSpec, places: Places = IN_DRAM, *, contention: bool = True) -> MatmulTiming:
    """The processors, after the program, of a core that is never idle; arguments as of `matmul_cycles`.

    With contention a core shares with all others the bandwidth of DRAM, and the links on which data of both directions
    meet: the first operand is read over the network of the writer, and the output written over that of the reader.
    """
    steps, operands, costs = _steps(op, spec, places), operands_of(op, places), spec.costs_of(MatmulCosts)
    if contention:
        read, written = operands.first_read_bytes, operands.written_bytes
        first = _crossed(spec, steps.first, read / (steps.out_blocks * steps.k_blocks), costs.crossed_read_links)
        write = _crossed(spec, steps.write, written / steps.out_blocks, costs.crossed_write_links)
        steps = replace(steps, first=first, write=write)
        steps = with_shared_dram(steps, spec, read, operands.second_read_bytes, written)
    return walk_blocks("matmul", steps)


def multiply_tasks(op: MatmulOp, spec: DeviceSpec) -> tuple[Task, Task, Task]:
    """How a core multiplies the first K block of an output block, those between, and the last of several."""
    problem, subblock = op.problem, (op.config.out_subblock_h, op.config.out_subblock_w)
    height, width, depth = op.block_tiles
    last = op.k_blocks - 1
    transposing: dict[Stage, float] = {}
    if problem.transpose_first:
        turned = height * depth * kernel_costs.convert_tile_cycles(spec, problem.in_format, problem.in_format)
        transposing[Stage.TILIZE] = spec.costs_of(kernel_costs.ComputeCosts).block_cycles + turned

    def task(k_block: int) -> Task:
        block = kernel_costs.ProductBlock(
            subblock_height=subblock[0],
            subblock_width=subblock[1],
            subblocks=height * width / (subblock[0] * subblock[1]),
            depth=depth,
            first_format=problem.in_format,
            second_format=problem.weight_format,
            packed_format=problem.out_format if k_block == last else op.partials_format,
            fidelity_phases=op.fidelity_phases,
        )
        product = kernel_costs.multiply_task(spec, block, reload=op.reloads(k_block))
        return task_of({**transposing, **product.path}, {**transposing, **product.busy}) if transposing else product

    return task(0), task(min(1, last)), task(last)


def second_task(op: MatmulOp, spec: DeviceSpec) -> Task:
    """A core brings a K block of the second operand: reads its tiles, and sends them on if others need them."""
    _, width, depth = op.block_tiles
    context, sending = Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST
    return _bring(spec, width * depth, op.problem.weight_format, op.receivers[1], context, sending)


def _bring(
    spec: DeviceSpec, tiles: float, data_format: DataFormat, receivers: int, context: Stage, sending: Stage
) -> Task:
    """A core reads some tiles and sends them on; a core that keeps them waits only for the last tile's transfer."""
    read = tiles * kernel_costs.read_page_cycles(spec, data_format.tile_bytes)
    if receivers == 1:
        return task_of({context: read_latency_cycles(spec) + read})
    return task_of({context: read, sending: send_cycles(spec, tiles * data_format.tile_bytes, receivers)})


def send_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles to agree with the receivers of a K block, and to send it."""
    return spec.costs_of(MatmulCosts).k_block_cycles + kernel_costs.multicast_cycles(spec, sent_bytes, receivers)


def _steps(op: MatmulOp, spec: DeviceSpec, places: Places) -> MatmulSteps:
    """The steps of a core that has the links and the bandwidth of DRAM for itself."""
    problem, (height, width, depth) = op.problem, op.block_tiles
    parts = max(1, round(height * width / (op.config.out_subblock_h * op.config.out_subblock_w)))
    first, in_format, receivers = None, problem.in_format, op.receivers[0]
    if places.first is not Place.OWN:
        first = _bring(spec, height * depth, in_format, receivers, Stage.READER, Stage.ACT_MULTICAST)
    elif receivers > 1:
        sent_bytes = height * depth * in_format.tile_bytes
        first = task_of({Stage.ACT_MULTICAST: send_cycles(spec, sent_bytes, receivers)})
    # A core waits for the last tile of each part of an output block that it writes
    written = height * width * kernel_costs.write_page_cycles(
        spec, problem.out_format.tile_bytes
    ) + parts * read_latency_cycles(spec)
    return MatmulSteps(
        out_blocks=op.out_blocks,
        k_blocks=op.k_blocks,
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=first,
        second=None if places.second is Place.OWN else second_task(op, spec),
        multiply=multiply_tasks(op, spec),
        finish=task_of({Stage.BIAS: kernel_costs.add_row_cycles(spec, height * width)}) if problem.bias else None,
        write=None if places.output is Place.OWN else task_of({Stage.WRITER: written}),
        parts=parts,
        processors=spec.data_movement.processors,
    )


def with_shared_dram(
    steps: MatmulSteps, spec: DeviceSpec, first_bytes: int, second_bytes: int, written_bytes: int, share: float = 1.0
) -> MatmulSteps:
    """The steps of a core that shares the bandwidth of DRAM, or a part of it, with the others: evenly, block by block.

    The bytes are those that all cores read of either operand, and write.
    """
    blocks = steps.out_blocks * steps.k_blocks
    first, second, write = (
        task_of({Stage.DRAM: shared_cycles(spec, moved / count, share)}) if moved else None
        for moved, count in ((first_bytes, blocks), (second_bytes, blocks), (written_bytes, steps.out_blocks))
    )
    return replace(steps, first_dram=first, second_dram=second, write_dram=write)


def _crossed(spec: DeviceSpec, task: Task | None, moved_bytes: float, links: float) -> Task | None:
    """A task whose bytes share a few links with the bytes of all other cores."""
    if task is None or not moved_bytes:
        return task
    least = moved_bytes / (links * spec.noc.link_bytes_per_cycle)
    own = task.path.get(Stage.READER, 0.0) + task.path.get(Stage.WRITER, 0.0)
    waiting = {Stage.NETWORK: max(0.0, least - own)}
    return task_of({**task.path, **waiting}, {**task.busy, **waiting})
