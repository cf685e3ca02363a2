"""The cycles of a matmul: its processors process K blocks and wait for each other at circular buffers.

The sending core reads an operand's tiles one by one and multicasts them; each core multiplies sub-blocks in sequence
and writes finished outputs. Constants by `tools.calibrate` from the GEMM measurements of tt-metal, which are of single
matrices. Batches run in sequence in the same model, and a first operand that the program transposes is unpacked and
packed once more; both are composed of measured steps, but not measured themselves.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

from device.cores import CoreRangeSet, first_cores
from device.numbers.formats import DataFormat
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import (
    Moment,
    Processor,
    Server,
    Slots,
    Task,
    check_emptied,
    movers,
    repeat,
    stage_report,
    task_of,
)
from device.time.links import crossing_cycles
from device.time.network import read_latency_cycles, shared_cycles, shared_read_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs import kernel_costs
from ops.programs.data_movement.movement import MovementCosts
from ops.programs.matmul.buffers import BUFFERING
from ops.programs.matmul.op import (
    IN_DRAM,
    MatmulOp,
    Place,
    Places,
    operands_of,
    reader_cores,
)
from ops.programs.matmul.work import CROSSED, MULTICAST_CROSSED, matmul_transfers, matmul_work, product_block

# Of either operand: reading and sending.
STAGES: Final = ((Stage.READER, Stage.ACT_MULTICAST), (Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST))


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulSteps:
    """The steps of a core; None for steps that the program does not have."""

    out_blocks: int  # Output blocks of the core
    k_blocks: int
    start: Task  # From the start of the program until a processor begins
    first: Task | None  # A block of the first operand is brought, and sent to all cores that need it
    second: Task | None  # A block of the second operand is
    first_agreed: Task | None = (
        None  # All receivers of the next block of the first operand have said that they are ready
    )
    second_agreed: Task | None = None
    multiply: tuple[Task, Task, Task]  # The first K block is multiplied, one between, the last of several
    added: Task | None = None  # The row that is added to an output block is brought
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
        """The cycles of every stage."""
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
    compute = Processor()
    processors = list(dict.fromkeys((first, second, writer, compute)))
    for processor in processors:
        processor.work(steps.start)
    dram = Server(compute.now)
    in0, in1, out = Slots("in0", BUFFERING), Slots("in1", BUFFERING), Slots("out", 1)
    write, write_dram = _part(steps.write, steps.parts), _part(steps.write_dram, steps.parts)

    def multiply(task: Task, parts: int = 1) -> list[Moment]:
        """A K block is brought and multiplied in parts; the result is the end of each part."""
        moved = (
            (first, in0, steps.first, steps.first_dram, steps.first_agreed),
            (second, in1, steps.second, steps.second_dram, steps.second_agreed),
        )
        for mover, buffer, bring, share, agreed in moved:
            mover.wait(buffer.reserve())
            _move(mover, bring, dram, share)
            buffer.fill(mover.now)
            if agreed is not None:
                mover.work(agreed)
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
        if steps.added is not None:
            compute.wait(second.work(steps.added))
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


def matmul_cycles(
    op: MatmulOp,
    spec: DeviceSpec,
    places: Places = IN_DRAM,
    *,
    cores: CoreRangeSet | None = None,
) -> OperationCycles:
    """Cycles of one matmul program on `cores`: the first of the grid if not given."""
    problem, grid, operands = op.problem, op.config.grid, operands_of(op, places)
    timing = time_matmul(op, spec, places)
    stages = timing.stages
    used = first_cores(op.cores, grid.cols, grid.rows) if cores is None else cores
    return OperationCycles(
        cycles=timing.cycles,
        groups=(CoreGroupCycles(cores=used, cycles=timing.cycles, stages=stages),),
        bound_by=binding_stage(stage for stage in stages if stage.stage is not Stage.START),
        dram_read_bytes=operands.read_bytes,
        dram_written_bytes=operands.written_bytes,
        issued_flops=op.issued_flops,
        useful_flops=2 * problem.multiply_adds,
        contention_cycles=lambda: max(0.0, timing.cycles - time_matmul(op, spec, places, contention=False).cycles),
        transfers=partial(matmul_transfers, op, spec, places),
        tile_work=partial(matmul_work, op, spec),
    )


def time_matmul(op: MatmulOp, spec: DeviceSpec, places: Places = IN_DRAM, *, contention: bool = True) -> MatmulTiming:
    """The processors, after the program, of a core that is never idle; arguments as in `matmul_cycles`.

    With contention a core shares with all others the bandwidth of DRAM, and the links on which their pages meet.
    """
    steps, operands = _steps(op, spec, places), operands_of(op, places)
    if contention:
        moved = operands.first_read_bytes, operands.second_read_bytes, operands.written_bytes
        second_page = spec.noc.packet_bytes if op.config.banks else op.problem.weight_format.tile_bytes
        pages = op.problem.in_format.tile_bytes, second_page
        steps = _with_shared_links(with_shared_dram(steps, spec, moved, pages), op, spec, places)
    return walk_blocks("matmul", steps)


def multiply_tasks(op: MatmulOp, spec: DeviceSpec) -> tuple[Task, Task, Task]:
    """The tasks of the first K block of an output block, of the middle blocks, and of the last block."""
    problem, (height, _, depth), last = op.problem, op.block_tiles, op.k_blocks - 1
    transposing: dict[Stage, float] = {}
    if problem.transpose_first:
        turned = height * depth * kernel_costs.convert_tile_cycles(spec, problem.in_format, problem.in_format)
        transposing[Stage.TILIZE] = spec.costs_of(kernel_costs.ComputeCosts).block_cycles + turned

    def task(k_block: int) -> Task:
        (product,) = kernel_costs.multiply_tasks(spec, product_block(op, k_block), op.reloads(k_block))
        return task_of({**transposing, **product.path}, {**transposing, **product.busy}) if transposing else product

    return task(0), task(min(1, last)), task(last)


def second_task(op: MatmulOp, spec: DeviceSpec, place: Place = Place.DRAM) -> Task:
    """A core brings a K block of the second operand: reads its tiles, and sends them on if others need them."""
    _, width, depth = op.block_tiles
    tile_bytes, context = op.problem.weight_format.tile_bytes, Stage.WEIGHT_READER
    if op.config.banks:  # large pages of its own bank, requested a block ahead
        pages = math.ceil(width * depth * tile_bytes / spec.noc.packet_bytes)
        issue = spec.costs_of(kernel_costs.TransferCosts).stateful_issue_cycles
        return task_of({context: max(pages * issue, width * depth * tile_bytes / spec.noc.link_bytes_per_cycle)})
    return _bring(spec, width * depth, op.problem.weight_format, op.receivers[1], STAGES[1], place)


def _bring(
    spec: DeviceSpec, tiles: float, data_format: DataFormat, receivers: int, stages: tuple[Stage, Stage], place: Place
) -> Task:
    """A core reads some tiles, waits until they are there, and sends them on if others need them."""
    reading, sending = stages
    path = {reading: _latency_cycles(spec, place) + tiles * kernel_costs.read_page_cycles(spec, data_format.tile_bytes)}
    if receivers > 1:
        path[sending] = _sent_cycles(spec, tiles * data_format.tile_bytes, receivers)
    return task_of(path)


def _latency_cycles(spec: DeviceSpec, place: Place) -> float:
    """Round trip to a memory that is spread over banks."""
    return kernel_costs.core_round_trip_cycles(spec) if place is Place.L1 else read_latency_cycles(spec)


def send_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles to send a K block, and until its receivers have said that they are ready for the next."""
    return agree_cycles(spec, receivers) + _sent_cycles(spec, sent_bytes, receivers)


def _sent_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """A block is multicast; where kernels flush it, they wait until it has left the core before they send its flag."""
    flush = spec.costs_of(MovementCosts).flush_cycles if spec.noc.flushes_multicasts else 0.0
    return flush + kernel_costs.multicast_cycles(spec, sent_bytes, receivers)


def agree_cycles(spec: DeviceSpec, receivers: int) -> float:
    """Cycles in which all receivers of a K block increment the semaphore of its sender, in sequence."""
    return receivers * spec.costs_of(kernel_costs.TransferCosts).increment_cycles


def _steps(op: MatmulOp, spec: DeviceSpec, places: Places) -> MatmulSteps:
    """The steps of a core that has the links and the bandwidth of DRAM for itself."""
    problem, (height, width, _) = op.problem, op.block_tiles
    parts = max(1, round(height * width / (op.config.out_subblock_h * op.config.out_subblock_w)))
    several = op.out_blocks * op.k_blocks > 1  # all receivers are ready for the first block of a program
    # A core waits for the last tile of each part of an output block that it writes
    written = height * width * kernel_costs.write_page_cycles(
        spec, problem.out_format.tile_bytes
    ) + parts * _latency_cycles(spec, places.output)
    first, second = _alternating(op, spec, places) if op.single_tiles else _operand_tasks(op, spec, places)
    agreed = [
        task_of({stage: agree_cycles(spec, receivers)}) if task is not None and receivers > 1 and several else None
        for task, receivers, (_, stage) in zip((first, second), op.receivers, STAGES, strict=True)
    ]
    return MatmulSteps(
        out_blocks=op.out_blocks,
        k_blocks=op.k_blocks,
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=first,
        second=second,
        first_agreed=agreed[0],
        second_agreed=agreed[1],
        multiply=multiply_tasks(op, spec),
        added=_row_task(op, spec, places.second) if problem.bias else None,
        finish=task_of({Stage.BIAS: kernel_costs.add_row_cycles(spec, height * width)}) if problem.bias else None,
        write=None if places.output is Place.OWN else task_of({Stage.WRITER: written}),
        parts=parts,
        processors=spec.data_movement.processors,
    )


def _operand_tasks(op: MatmulOp, spec: DeviceSpec, places: Places) -> tuple[Task | None, Task | None]:
    """The tasks that fetch a K block of either operand; None if a block is already in place."""
    (height, _, depth), in_format, receivers = op.block_tiles, op.problem.in_format, op.receivers[0]
    first = None
    if places.first is not Place.OWN:
        first = _bring(spec, height * depth, in_format, receivers, STAGES[0], places.first)
    elif receivers > 1:
        sent_bytes = height * depth * in_format.tile_bytes
        first = task_of({Stage.ACT_MULTICAST: _sent_cycles(spec, sent_bytes, receivers)})
    return first, None if places.second is Place.OWN else second_task(op, spec, places.second)


def _row_task(op: MatmulOp, spec: DeviceSpec, place: Place) -> Task:
    """The task that fetches the added row of an output block, like the second operand, from the same memory."""
    width, receivers = op.block_tiles[1], op.receivers[1]
    row = _bring(spec, width, op.problem.added_format, receivers, STAGES[1], place)
    agreed = agree_cycles(spec, receivers) if receivers > 1 else 0.0
    return task_of({**row.path, Stage.WEIGHT_MULTICAST: row.path.get(Stage.WEIGHT_MULTICAST, 0.0) + agreed})


def _alternating(op: MatmulOp, spec: DeviceSpec, places: Places) -> tuple[Task, None]:
    """A processor that reads tiles of both operands in turn, and waits for each."""
    path = {
        stage: op.problem.k_tiles
        * kernel_costs.waited_read_cycles(spec, data_format.tile_bytes, in_dram=place is not Place.L1)
        for stage, place, data_format in (
            (Stage.READER, places.first, op.problem.in_format),
            (Stage.WEIGHT_READER, places.second, op.problem.weight_format),
        )
    }
    return task_of(path), None


def with_shared_dram(
    steps: MatmulSteps,
    spec: DeviceSpec,
    moved_bytes: tuple[float, float, float],
    page_bytes: tuple[float, float],
    share: float = 1.0,
) -> MatmulSteps:
    """The steps of a core that shares the bandwidth of DRAM, or a part of it, with the others: evenly, block by block.

    `moved_bytes` are the bytes that all cores read of either operand, and write; `page_bytes` the bytes of a read.
    """
    blocks = steps.out_blocks * steps.k_blocks
    first, second = (
        task_of({Stage.DRAM: shared_read_cycles(spec, moved / blocks, page, share)}) if moved else None
        for moved, page in zip(moved_bytes[:2], page_bytes, strict=True)
    )
    written = shared_cycles(spec, moved_bytes[2] / steps.out_blocks, share)
    write = task_of({Stage.DRAM: written}) if written else None
    return replace(steps, first_dram=first, second_dram=second, write_dram=write)


def _with_shared_links(steps: MatmulSteps, op: MatmulOp, spec: DeviceSpec, places: Places) -> MatmulSteps:
    """The steps of a core whose pages share links with the pages of all cores.

    Cores wait for these links while they read or write. Senders of the first operand begin to read together, when their
    receivers are ready; some senders of the second operand read while others send, so links deliver as banks do.
    """
    problem, moved, grid = op.problem, operands_of(op), spec.grid
    blocks, crossed = steps.out_blocks * steps.k_blocks, CROSSED.get(op.config.program, MULTICAST_CROSSED)
    moving = (*map(partial(reader_cores, op, grid), (0, 1)), first_cores(op.cores, grid.cols, grid.rows))

    def passed(number: int, place: Place, moved_bytes: float, data_format: DataFormat) -> float:
        if place is Place.OWN:
            return 0.0
        in_dram, page_bytes, writes = place is Place.DRAM, data_format.tile_bytes, number == 2
        pages = moved_bytes / page_bytes
        return crossing_cycles(
            spec, moving[number], pages, page_bytes, in_dram=in_dram, writes=writes, crossed=crossed[number]
        )

    least = passed(0, places.first, moved.first_read_bytes / blocks, problem.in_format)
    first = _crossed(steps.first, least + (_latency_cycles(spec, places.first) if op.sends[0] and least else 0.0))
    least = passed(1, places.second, moved.second_read_bytes / blocks, problem.weight_format)
    second, delivered = steps.second, steps.second_dram
    if op.sends[1]:
        delivered = max(task_of({Stage.NETWORK: least}), delivered or task_of({}), key=lambda task: task.cycles)
    elif not op.config.banks:  # cores next to their banks meet nobody
        second = _crossed(second, least)
    least = passed(2, places.output, moved.written_bytes / steps.out_blocks, problem.out_format)
    return replace(steps, first=first, second=second, write=_crossed(steps.write, least), second_dram=delivered)


def _crossed(task: Task | None, least: float) -> Task | None:
    """A task that reads or writes for some time at least."""
    if task is None:
        return None
    own = sum(task.path.get(stage, 0.0) for stage in (Stage.READER, Stage.WEIGHT_READER, Stage.WRITER))
    waiting = {Stage.NETWORK: max(0.0, least - own)}
    return task_of({**task.path, **waiting}, {**task.busy, **waiting})
