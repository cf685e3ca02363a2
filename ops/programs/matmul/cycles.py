"""What a matmul takes: its processors walk through the K blocks and wait for each other at circular buffers.

An operand's tiles are read one by one by the core that sends them on, then multicast; each core multiplies sub-block
after sub-block and writes what is finished. Constants by `tools.calibrate` from the GEMM measurements of tt-metal,
which are of single matrices. Batches follow each other in the same model, and a first operand that the program turns is
unpacked and packed once more: no measurement; composed of steps that have one.
"""

from dataclasses import replace

from device.cores import CoreRangeSet, first_cores
from device.numbers.formats import DataFormat
from device.spec.device_spec import DeviceSpec
from device.time.dram import read_latency_cycles, shared_cycles
from device.time.engine import Task, task_of
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, binding_stage
from ops.programs.actions.compute import add_row_cycles, turn_tile_cycles
from ops.programs.actions.costs import ComputeCosts
from ops.programs.actions.multiply import ProductBlock, multiply_task
from ops.programs.actions.transfers import multicast_cycles, read_page_cycles, write_page_cycles
from ops.programs.matmul.block_walk import MatmulSteps, MatmulTiming, walk_blocks
from ops.programs.matmul.config import MatmulWork, k_blocks, partials_format, reloads
from ops.programs.matmul.costs import MatmulCosts
from ops.programs.matmul.dealing import (
    IN_DRAM,
    TILE_PRODUCT_FLOPS,
    Operands,
    Place,
    Places,
    block_tiles,
    cores_of,
    first_receivers,
    issued_flops,
    operands_of,
    out_blocks,
    second_receivers,
)


def matmul_cycles(
    work: MatmulWork,
    spec: DeviceSpec,
    places: Places = IN_DRAM,
    *,
    cores: CoreRangeSet | None = None,
    contention: bool = True,
) -> OperationCycles:
    """Cycles of one matmul program.

    Args:
        places: Where operands and output lie.
        cores: Cores that compute; the first of the grid if not given.
        contention: Whether the cores share the links and the bandwidth of DRAM.
    """
    problem, config, operands = work.problem, work.config, operands_of(work, places)
    free = time_matmul(work, spec, places, contention=False)
    timing = time_matmul(work, spec, places) if contention else free
    used = first_cores(cores_of(work), config.grid.cols, config.grid.rows) if cores is None else cores
    return OperationCycles(
        cycles=timing.cycles,
        groups=(CoreGroupCycles(cores=used, cycles=timing.cycles, stages=timing.stages),),
        bound_by=binding_stage(stage for stage in timing.stages if stage.stage is not Stage.START),
        dram_read_bytes=operands.first_read_bytes + operands.second_read_bytes,
        dram_written_bytes=operands.written_bytes,
        network_bytes=operands.sent_bytes,
        issued_flops=issued_flops(work),
        useful_flops=problem.batches * problem.m_tiles * problem.n_tiles * problem.k_tiles * TILE_PRODUCT_FLOPS,
        contention_cycles=max(0.0, timing.cycles - free.cycles),
    )


def time_matmul(
    work: MatmulWork, spec: DeviceSpec, places: Places = IN_DRAM, *, contention: bool = True
) -> MatmulTiming:
    """The processors of a core that works all the time, after the program; arguments as of `matmul_cycles`."""
    steps = _steps(work, spec, places)
    return walk_blocks("matmul", _with_shared_dram(steps, spec, operands_of(work, places)) if contention else steps)


def multiply_tasks(work: MatmulWork, spec: DeviceSpec) -> tuple[Task, Task, Task]:
    """How a core multiplies the first K block of an output block, those between, and the last of several."""
    problem, config = work.problem, work.config
    height, width, depth = block_tiles(work)
    last = k_blocks(problem, config) - 1
    turning: dict[Stage, float] = {}
    if problem.transpose_first:
        turned = height * depth * turn_tile_cycles(spec, problem.in_format)
        turning[Stage.TILIZE] = spec.costs_of(ComputeCosts).block_cycles + turned

    def task(k_block: int) -> Task:
        block = ProductBlock(
            subblock_height=config.out_subblock_h,
            subblock_width=config.out_subblock_w,
            subblocks=height * width / (config.out_subblock_h * config.out_subblock_w),
            depth=depth,
            first_format=problem.in_format,
            second_format=problem.weight_format,
            packed_format=problem.out_format if k_block == last else partials_format(problem, config),
            fidelity_phases=work.fidelity_phases,
        )
        product = multiply_task(spec, block, reload=reloads(problem, config, k_block))
        return task_of({**turning, **product.path}, {**turning, **product.busy}) if turning else product

    return task(0), task(min(1, last)), task(last)


def second_task(work: MatmulWork, spec: DeviceSpec) -> Task:
    """A core brings a K block of the second operand: reads its tiles, and sends them on if others need them."""
    _, width, depth = block_tiles(work)
    reading, sending = Stage.WEIGHT_READER, Stage.WEIGHT_MULTICAST
    return _bring(spec, width * depth, work.problem.weight_format, second_receivers(work), reading, sending)


def _bring(
    spec: DeviceSpec, tiles: float, data_format: DataFormat, receivers: int, reading: Stage, sending: Stage
) -> Task:
    """A core reads some tiles and sends them on; one that keeps them waits for the last one's way alone."""
    read = tiles * read_page_cycles(spec, data_format.tile_bytes)
    if receivers == 1:
        return task_of({reading: read_latency_cycles(spec) + read})
    return task_of({reading: read, sending: send_cycles(spec, tiles * data_format.tile_bytes, receivers)})


def send_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles to agree with the receivers of a K block, and to send it."""
    return spec.costs_of(MatmulCosts).k_block_cycles + multicast_cycles(spec, sent_bytes, receivers)


def _steps(work: MatmulWork, spec: DeviceSpec, places: Places) -> MatmulSteps:
    """The steps of a core that has the links and the bandwidth of DRAM for itself."""
    multiply, multiply_next, multiply_last = multiply_tasks(work, spec)
    height, width, _ = block_tiles(work)
    return MatmulSteps(
        out_blocks=out_blocks(work),
        k_blocks=k_blocks(work.problem, work.config),
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=_first_task(work, spec, places.first),
        second=None if places.second is Place.OWN else second_task(work, spec),
        multiply=multiply,
        multiply_next=multiply_next,
        multiply_last=multiply_last,
        finish=task_of({Stage.BIAS: add_row_cycles(spec, height * width)}) if work.problem.bias else None,
        write=None if places.output is Place.OWN else _write_task(work, spec),
        parts=_parts(work),
        processors=spec.data_movement.processors,
    )


def _first_task(work: MatmulWork, spec: DeviceSpec, place: Place) -> Task | None:
    """A core brings a K block of the first operand; None if nobody does."""
    height, _, depth = block_tiles(work)
    tiles, data_format, receivers = height * depth, work.problem.in_format, first_receivers(work)
    if place is not Place.OWN:
        return _bring(spec, tiles, data_format, receivers, Stage.READER, Stage.ACT_MULTICAST)
    if receivers == 1:
        return None
    return task_of({Stage.ACT_MULTICAST: send_cycles(spec, tiles * data_format.tile_bytes, receivers)})


def _write_task(work: MatmulWork, spec: DeviceSpec) -> Task:
    """A core writes an output block, and waits for the last tile of each part of it."""
    height, width, _ = block_tiles(work)
    tile = write_page_cycles(spec, work.problem.out_format.tile_bytes)
    return task_of({Stage.WRITER: height * width * tile + _parts(work) * read_latency_cycles(spec)})


def _parts(work: MatmulWork) -> int:
    """Sub-blocks of an output block."""
    height, width, _ = block_tiles(work)
    return max(1, round(height * width / (work.config.out_subblock_h * work.config.out_subblock_w)))


def _with_shared_dram(steps: MatmulSteps, spec: DeviceSpec, operands: Operands) -> MatmulSteps:
    """The steps of a core that shares the bandwidth of DRAM with the others: evenly, block by block.

    The first operand is read over the network that is placed for writing, and the output written over that for reading.
    """
    blocks, costs = steps.out_blocks * steps.k_blocks, spec.costs_of(MatmulCosts)
    return replace(
        steps,
        first=_crossed(spec, steps.first, operands.first_read_bytes / blocks, costs.crossed_read_links),
        write=_crossed(spec, steps.write, operands.written_bytes / steps.out_blocks, costs.crossed_write_links),
        first_dram=dram_task(spec, operands.first_read_bytes / blocks),
        second_dram=dram_task(spec, operands.second_read_bytes / blocks),
        write_dram=dram_task(spec, operands.written_bytes / steps.out_blocks),
    )


def _crossed(spec: DeviceSpec, task: Task | None, moved_bytes: float, links: float) -> Task | None:
    """A task whose bytes, with those of all cores, meet on a few links."""
    if task is None or not moved_bytes:
        return task
    least = moved_bytes / (links * spec.noc.link_bytes_per_cycle)
    own = task.path.get(Stage.READER, 0.0) + task.path.get(Stage.WRITER, 0.0)
    waiting = {Stage.NETWORK: max(0.0, least - own)}
    return task_of({**task.path, **waiting}, {**task.busy, **waiting})


def dram_task(spec: DeviceSpec, moved_bytes: float, efficiency: float = 1.0) -> Task | None:
    """The banks move the bytes of a block of all cores; arguments as of `shared_cycles`. None if there are none."""
    return task_of({Stage.DRAM: shared_cycles(spec, moved_bytes, efficiency)}) if moved_bytes else None
