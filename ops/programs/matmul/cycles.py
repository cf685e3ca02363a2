"""What a matmul takes: its processors walk through the K blocks and wait for each other at circular buffers.

An operand's tiles are read one by one by the core that sends them on, then multicast; each core multiplies sub-block
after sub-block and writes what is finished. Constants by `tools.calibrate` from the GEMM measurements of tt-metal,
which are of single matrices. Batches follow each other in the same model, and a first operand that the program turns is
unpacked and packed once more: no measurement; composed of steps that have one.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import isclose
from typing import ClassVar

from device.cores import CoreRangeSet, first_cores
from device.numbers.formats import DataFormat
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import Moment, Processor, Slots, Task, check_emptied, stage_report, task_of
from device.time.network import movers, read_latency_cycles, shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.kernel_costs import (
    ComputeCosts,
    ProductBlock,
    add_row_cycles,
    convert_tile_cycles,
    multicast_cycles,
    multiply_task,
    read_page_cycles,
    write_page_cycles,
)
from ops.programs.matmul.buffers import INTERLEAVED_BUFFERING
from ops.programs.matmul.op import (
    IN_DRAM,
    TILE_PRODUCT_FLOPS,
    MatmulOp,
    Operands,
    Place,
    Places,
    block_receivers,
    block_tiles,
    cores_of,
    issued_flops,
    k_blocks,
    operands_of,
    out_blocks,
    partials_format,
    reloads,
)

SAME = 1e-12  # what rounding makes of equal moments


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

    def multiply_of(self, k_block: int) -> Task:
        """How a K block is multiplied, of those of an output block."""
        first, between, last = self.multiply
        return first if k_block == 0 else last if k_block == self.k_blocks - 1 else between


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
    for processor in dict.fromkeys((first, second, writer, compute)):
        processor.work(steps.start)
    dram.wait(compute.now)
    in0, in1, out = Slots("in0", INTERLEAVED_BUFFERING), Slots("in1", INTERLEAVED_BUFFERING), Slots("out", 1)
    pace = _slowest(steps)
    write, write_dram = _part(steps.write, steps.parts), _part(steps.write_dram, steps.parts)
    for _ in range(steps.out_blocks):
        compute.wait(out.reserve())
        ready: list[Moment] = []
        left = steps.k_blocks
        while left:
            before = [processor.now.cycles + pace.cycles for processor in (first, second, compute)]
            first.wait(in0.reserve())
            _move(first, steps.first, dram, steps.first_dram)
            in0.fill(first.now)
            second.wait(in1.reserve())
            _move(second, steps.second, dram, steps.second_dram)
            in1.fill(second.now)
            compute.wait(in0.front())
            compute.wait(in1.front())
            ready = _work(compute, steps.multiply_of(steps.k_blocks - left), steps.parts if left == 1 else 1)
            in0.empty(compute.now)
            in1.empty(compute.now)
            left -= 1
            after = [processor.now.cycles for processor in (first, second, compute)]
            whole_blocks = left - 1  # the last one is done in parts
            steady = first is not second and all(map(partial(isclose, rel_tol=SAME), before, after))
            if whole_blocks > 0 and steps.k_blocks - left > INTERLEAVED_BUFFERING and steady:
                # All wait for the slowest, and will do so block after block.
                for processor, task in ((first, steps.first), (second, steps.second), (compute, steps.multiply_of(1))):
                    processor.go_on(whole_blocks, task, pace)
                for task in (steps.first_dram, steps.second_dram):
                    if task is not None:
                        dram.go_on(whole_blocks, task, task)
                in0.go_on(whole_blocks, pace)
                in1.go_on(whole_blocks, pace)
                left -= whole_blocks
        if steps.finish is not None:
            ready = _work(compute, steps.finish, steps.parts)
        out.fill(compute.now)
        if steps.write is not None:
            for moment in ready:
                writer.wait(moment)
                _move(writer, write, dram, write_dram)
        out.empty(compute.now if steps.write is None else writer.now)
    check_emptied(step, (in0, in1, out))
    return MatmulTiming(first, second, writer, compute, dram)


def _part(task: Task | None, parts: int) -> Task | None:
    if task is None or parts == 1:
        return task
    path = {stage: cycles / parts for stage, cycles in task.path.items()}
    return task_of(path, {stage: cycles / parts for stage, cycles in task.busy.items()})


def _work(processor: Processor, task: Task, parts: int) -> list[Moment]:
    """A processor does a task in parts; the result is the end of each part."""
    part = _part(task, parts)
    return [] if part is None else [processor.work(part) for _ in range(parts)]


def _slowest(steps: MatmulSteps) -> Task:
    """The step that limits how fast K blocks follow each other, once all processors have begun."""
    dram = [task for task in (steps.first_dram, steps.second_dram) if task is not None]
    shared = task_of({Stage.DRAM: sum(task.cycles for task in dram)})
    own = [task for task in (steps.multiply_of(1), steps.second, steps.first) if task is not None]
    return max(*own, shared, key=lambda task: task.cycles)


def _move(processor: Processor, task: Task | None, dram: Processor, share: Task | None) -> None:
    """A processor moves a block, and ends no earlier than the DRAM banks."""
    if task is not None:
        processor.work(task)
    if share is not None:
        processor.wait(dram.work(share))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCosts(Costs):
    """Constants of the model of the matmul program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start, first reads and last writes.
        k_block_cycles: Handshake of sender and receivers for each K block of an operand that is multicast.
        crossed_read_links: Links on which meets what all cores read over the network that is placed for writing.
        crossed_write_links: Links on which meets what all write over the network that is placed for reading.
    """

    TABLE: ClassVar[str] = "matmul_costs"

    start_cycles: float
    k_block_cycles: float
    crossed_read_links: float
    crossed_write_links: float


def matmul_cycles(
    op: MatmulOp,
    spec: DeviceSpec,
    places: Places = IN_DRAM,
    *,
    cores: CoreRangeSet | None = None,
    contention: bool = True,
) -> OperationCycles:
    """Cycles of one matmul program on `cores`: the first of the grid if not given."""
    problem, config, operands = op.problem, op.config, operands_of(op, places)
    free = time_matmul(op, spec, places, contention=False)
    timing = time_matmul(op, spec, places) if contention else free
    used = first_cores(cores_of(op), config.grid.cols, config.grid.rows) if cores is None else cores
    return OperationCycles(
        cycles=timing.cycles,
        groups=(CoreGroupCycles(cores=used, cycles=timing.cycles, stages=timing.stages),),
        bound_by=binding_stage(stage for stage in timing.stages if stage.stage is not Stage.START),
        dram_read_bytes=operands.first_read_bytes + operands.second_read_bytes,
        dram_written_bytes=operands.written_bytes,
        network_bytes=operands.sent_bytes,
        issued_flops=issued_flops(op),
        useful_flops=problem.batches * problem.m_tiles * problem.n_tiles * problem.k_tiles * TILE_PRODUCT_FLOPS,
        contention_cycles=max(0.0, timing.cycles - free.cycles),
    )


def time_matmul(op: MatmulOp, spec: DeviceSpec, places: Places = IN_DRAM, *, contention: bool = True) -> MatmulTiming:
    """The processors, after the program, of a core that is never idle; arguments as of `matmul_cycles`."""
    steps, operands = _steps(op, spec, places), operands_of(op, places)
    if contention:
        steps = _with_crossed_links(steps, spec, operands)
        moved = operands.first_read_bytes, operands.second_read_bytes, operands.written_bytes
        steps = with_shared_dram(steps, spec, *moved)
    return walk_blocks("matmul", steps)


def multiply_tasks(op: MatmulOp, spec: DeviceSpec) -> tuple[Task, Task, Task]:
    """How a core multiplies the first K block of an output block, those between, and the last of several."""
    problem, config = op.problem, op.config
    height, width, depth = block_tiles(op)
    last = k_blocks(problem, config) - 1
    transposing: dict[Stage, float] = {}
    if problem.transpose_first:
        turned = height * depth * convert_tile_cycles(spec, problem.in_format, problem.in_format)
        transposing[Stage.TILIZE] = spec.costs_of(ComputeCosts).block_cycles + turned

    def task(k_block: int) -> Task:
        block = ProductBlock(
            subblock_height=config.out_subblock_h,
            subblock_width=config.out_subblock_w,
            subblocks=height * width / (config.out_subblock_h * config.out_subblock_w),
            depth=depth,
            first_format=problem.in_format,
            second_format=problem.weight_format,
            packed_format=problem.out_format if k_block == last else partials_format(problem, config),
            fidelity_phases=op.fidelity_phases,
        )
        product = multiply_task(spec, block, reload=reloads(problem, config, k_block))
        return task_of({**transposing, **product.path}, {**transposing, **product.busy}) if transposing else product

    return task(0), task(min(1, last)), task(last)


def second_task(op: MatmulOp, spec: DeviceSpec) -> Task:
    """A core brings a K block of the second operand: reads its tiles, and sends them on if others need them."""
    _, width, depth = block_tiles(op)
    context, sending = Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST
    return _bring(spec, width * depth, op.problem.weight_format, block_receivers(op)[1], context, sending)


def _bring(
    spec: DeviceSpec, tiles: float, data_format: DataFormat, receivers: int, context: Stage, sending: Stage
) -> Task:
    """A core reads some tiles and sends them on; a core that keeps them waits only for the last tile's transfer."""
    read = tiles * read_page_cycles(spec, data_format.tile_bytes)
    if receivers == 1:
        return task_of({context: read_latency_cycles(spec) + read})
    return task_of({context: read, sending: send_cycles(spec, tiles * data_format.tile_bytes, receivers)})


def send_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles to agree with the receivers of a K block, and to send it."""
    return spec.costs_of(MatmulCosts).k_block_cycles + multicast_cycles(spec, sent_bytes, receivers)


def _steps(op: MatmulOp, spec: DeviceSpec, places: Places) -> MatmulSteps:
    """The steps of a core that has the links and the bandwidth of DRAM for itself."""
    height, width, _ = block_tiles(op)
    return MatmulSteps(
        out_blocks=out_blocks(op),
        k_blocks=k_blocks(op.problem, op.config),
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=_first_task(op, spec, places.first),
        second=None if places.second is Place.OWN else second_task(op, spec),
        multiply=multiply_tasks(op, spec),
        finish=task_of({Stage.BIAS: add_row_cycles(spec, height * width)}) if op.problem.bias else None,
        write=None if places.output is Place.OWN else _write_task(op, spec),
        parts=_parts(op),
        processors=spec.data_movement.processors,
    )


def _first_task(op: MatmulOp, spec: DeviceSpec, place: Place) -> Task | None:
    """A core brings a K block of the first operand; None if nobody does."""
    height, _, depth = block_tiles(op)
    tiles, data_format, shared = height * depth, op.problem.in_format, block_receivers(op)[0]
    if place is not Place.OWN:
        return _bring(spec, tiles, data_format, shared, Stage.READER, Stage.ACT_MULTICAST)
    if shared == 1:
        return None
    return task_of({Stage.ACT_MULTICAST: send_cycles(spec, tiles * data_format.tile_bytes, shared)})


def _write_task(op: MatmulOp, spec: DeviceSpec) -> Task:
    """A core writes an output block, and waits for the last tile of each part of it."""
    height, width, _ = block_tiles(op)
    tile = write_page_cycles(spec, op.problem.out_format.tile_bytes)
    return task_of({Stage.WRITER: height * width * tile + _parts(op) * read_latency_cycles(spec)})


def _parts(op: MatmulOp) -> int:
    height, width, _ = block_tiles(op)
    return max(1, round(height * width / (op.config.out_subblock_h * op.config.out_subblock_w)))


def _with_crossed_links(steps: MatmulSteps, spec: DeviceSpec, operands: Operands) -> MatmulSteps:
    """The steps of a core that shares with all others the links on which data of both directions meet.

    The first operand is read over the network of the writer, and the output written over the network of the reader.
    """
    first_bytes = operands.first_read_bytes / (steps.out_blocks * steps.k_blocks)
    costs, write_bytes = spec.costs_of(MatmulCosts), operands.written_bytes / steps.out_blocks
    first = _crossed(spec, steps.first, first_bytes, costs.crossed_read_links)
    return replace(steps, first=first, write=_crossed(spec, steps.write, write_bytes, costs.crossed_write_links))


def with_shared_dram(
    steps: MatmulSteps, spec: DeviceSpec, first_bytes: int, second_bytes: int, written_bytes: int, share: float = 1.0
) -> MatmulSteps:
    """The steps of a core that shares the bandwidth of DRAM, or a part of it, with the others: evenly, block by block.

    The bytes are those that all cores read of either operand, and write.
    """

    def task(moved_bytes: float) -> Task | None:
        return task_of({Stage.DRAM: shared_cycles(spec, moved_bytes, share)}) if moved_bytes else None

    blocks = steps.out_blocks * steps.k_blocks
    first, second, write = (
        task(first_bytes / blocks),
        task(second_bytes / blocks),
        task(written_bytes / steps.out_blocks),
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
