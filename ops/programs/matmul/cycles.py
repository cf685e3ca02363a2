"""What a matmul takes: its processors walk through the K blocks and wait for each other at circular buffers.

An operand's tiles are read one by one by the core that sends them on, then multicast. Every tile product unpacks one
tile that is not there yet, which takes longer than the product itself where tiles are large and phases are few.
Constants by `tools.calibrate` from the GEMM measurements of tt-metal, which are of single matrices: batches follow each
other in the same model, and no measurement says how well that holds.
"""

from dataclasses import dataclass, replace

from device.cores import CoreRangeSet, first_cores
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.dram import shared_cycles
from device.time.engine import Task, task_of
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, binding_stage
from ops.programs.actions.compute import unpack_tile_cycles
from ops.programs.actions.costs import TransferCosts
from ops.programs.actions.transfers import multicast_cycles, read_page_cycles
from ops.programs.matmul.block_walk import MatmulSteps, walk_blocks
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork, k_blocks
from ops.programs.matmul.costs import MatmulCosts

TILE_PRODUCT_FLOPS = 2 * TILE**3


@dataclass(frozen=True, slots=True)
class Operands:
    """What all cores of a program move.

    Attributes:
        first_read_bytes: Of the first operand, read from DRAM.
        second_read_bytes: Of the second operand.
        written_bytes: Written to DRAM.
        sent_bytes: Bytes that leave a core over a network.
    """

    first_read_bytes: int
    second_read_bytes: int
    written_bytes: int
    sent_bytes: int


def matmul_cycles(
    work: MatmulWork,
    spec: DeviceSpec,
    *,
    in_sharded: bool,
    out_sharded: bool,
    in_dram: bool = True,
    cores: CoreRangeSet | None = None,
    contention: bool = True,
) -> OperationCycles:
    """Cycles of one matmul program.

    Args:
        work: The program.
        spec: The machine.
        in_sharded: The first operand lies in the cores' L1 already.
        out_sharded: The output stays there.
        in_dram: An interleaved first operand is in DRAM; otherwise in L1.
        cores: Cores that compute; the first of the grid if not given.
        contention: Whether the cores share the bandwidth of DRAM.
    """
    problem, config = work.problem, work.config
    operands = operands_of(work, in_sharded=in_sharded, out_sharded=out_sharded, in_dram=in_dram)
    steps = _steps(work, spec, operands, in_sharded=in_sharded, out_sharded=out_sharded)
    free = walk_blocks("matmul", steps)
    timing = walk_blocks("matmul", _with_shared_dram(steps, spec, operands)) if contention else free
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


def issued_flops(work: MatmulWork) -> int:
    """Multiplications and additions of all cores."""
    config = work.config
    products = _rounds(work) * _passed_batches(work) * config.per_core_m * config.per_core_n * work.problem.k_tiles
    return cores_of(work) * products * TILE_PRODUCT_FLOPS


def out_blocks(work: MatmulWork) -> int:
    """Output blocks that a core computes, one after the other."""
    config = work.config
    across = div_up(config.per_core_n, config.out_block_w)
    return _rounds(work) * _passed_batches(work) * div_up(config.per_core_m, config.out_block_h) * across


def _block_tiles(work: MatmulWork) -> tuple[float, float, float]:
    """Height, width and depth of a block: even shares of a core's part, so that all blocks together are that part."""
    problem, config = work.problem, work.config
    return (
        config.per_core_m / div_up(config.per_core_m, config.out_block_h),
        config.per_core_n / div_up(config.per_core_n, config.out_block_w),
        problem.k_tiles / k_blocks(problem, config),
    )


def multiply_task(work: MatmulWork, spec: DeviceSpec) -> Task:
    """A core multiplies one K block: the slower of the matrix unit and of the unpackers decides."""
    problem, costs = work.problem, spec.costs_of(MatmulCosts)
    height, width, depth = _block_tiles(work)
    products = height * width * depth
    math = products * (spec.compute.phase_cycles * work.fidelity_phases + costs.product_cycles)
    tile_bytes = max(problem.in_format.tile_bytes, problem.weight_format.tile_bytes)
    unpack = products * unpack_tile_cycles(spec, tile_bytes)
    path = {Stage.UNPACK: costs.compute_block_cycles + (unpack if unpack > math else 0.0)}
    if unpack <= math:
        path[Stage.MATH] = math
    return task_of(path, {Stage.UNPACK: unpack, Stage.MATH: math})


def second_task(work: MatmulWork, spec: DeviceSpec) -> Task:
    """A core brings a K block of the second operand: reads its tiles, and sends them on if others need them."""
    tile_bytes = work.problem.weight_format.tile_bytes
    _, width, depth = _block_tiles(work)
    tiles = width * depth
    path = {Stage.WEIGHT_READER: tiles * read_page_cycles(spec, tile_bytes)}
    if sends_second(work.config):
        path[Stage.WEIGHT_MULTICAST] = send_cycles(spec, tiles * tile_bytes, work.config.grid.rows)
    return task_of(path)


def send_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles to agree with the receivers of a K block, and to send it."""
    return spec.costs_of(MatmulCosts).k_block_cycles + multicast_cycles(spec, sent_bytes, receivers)


def _steps(
    work: MatmulWork, spec: DeviceSpec, operands: Operands, *, in_sharded: bool, out_sharded: bool
) -> MatmulSteps:
    """The steps of a core that has the bandwidth of DRAM for itself."""
    config, tile_bytes = work.config, work.problem.in_format.tile_bytes
    height, width, depth = _block_tiles(work)
    tiles = height * depth
    first: dict[Stage, float] = {}
    if not in_sharded:
        first[Stage.READER] = tiles * read_page_cycles(spec, tile_bytes)
    if sends_first(config):
        first[Stage.ACT_MULTICAST] = send_cycles(spec, tiles * tile_bytes, config.grid.cols)
    out_bytes = work.problem.out_format.tile_bytes
    write = max(spec.costs_of(TransferCosts).write_issue_cycles, out_bytes / spec.noc.link_bytes_per_cycle)
    written = None if out_sharded else task_of({Stage.WRITER: height * width * write})
    return MatmulSteps(
        out_blocks=out_blocks(work),
        k_blocks=k_blocks(work.problem, config),
        start=task_of({Stage.START: spec.costs_of(MatmulCosts).start_cycles}),
        first=task_of(first) if first else None,
        second=second_task(work, spec),
        multiply=multiply_task(work, spec),
        write=written,
        processors=spec.data_movement.processors,
    )


def _with_shared_dram(steps: MatmulSteps, spec: DeviceSpec, operands: Operands) -> MatmulSteps:
    """The steps of a core that shares the bandwidth of DRAM with the others: evenly, block by block."""
    blocks = steps.out_blocks * steps.k_blocks
    return replace(
        steps,
        first_dram=dram_task(spec, operands.first_read_bytes / blocks),
        second_dram=dram_task(spec, operands.second_read_bytes / blocks),
        write_dram=dram_task(spec, operands.written_bytes / steps.out_blocks),
    )


def dram_task(spec: DeviceSpec, moved_bytes: float, efficiency: float = 1.0) -> Task | None:
    """The banks move the bytes of a block of all cores; arguments as of `shared_cycles`. None if there are none."""
    return task_of({Stage.DRAM: shared_cycles(spec, moved_bytes, efficiency)}) if moved_bytes else None


def operands_of(work: MatmulWork, *, in_sharded: bool, out_sharded: bool, in_dram: bool = True) -> Operands:
    """What a program moves; arguments as of `matmul_cycles`."""
    problem, config = work.problem, work.config
    first_tile, second_tile = problem.in_format.tile_bytes, problem.weight_format.tile_bytes
    first_passes, second_passes = _passes(problem, config)
    first_sent, second_sent = sends_first(config), sends_second(config)
    all_first = problem.m_tiles * problem.k_tiles * first_passes * (1 if first_sent else _readers_of_first(work))
    all_second = problem.k_tiles * problem.n_tiles * second_passes * (1 if second_sent else _readers_of_second(work))
    all_first *= 1 if problem.keeps_first else problem.batches
    all_second *= problem.batches
    written = problem.batches * problem.m_tiles * problem.n_tiles
    if config.program is MatmulProgram.SINGLE_TILES:
        all_first = all_second = written * problem.k_tiles
    return Operands(
        first_read_bytes=all_first * first_tile if in_dram and not in_sharded else 0,
        second_read_bytes=all_second * second_tile,
        written_bytes=0 if out_sharded else written * problem.out_format.tile_bytes,
        sent_bytes=(all_first * first_tile if first_sent else 0) + (all_second * second_tile if second_sent else 0),
    )


def sends_first(config: MatmulConfig) -> bool:
    """Whether blocks of the first operand are multicast."""
    return config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0)


def sends_second(config: MatmulConfig) -> bool:
    """Whether blocks of the second operand are multicast."""
    return config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN1)


def _shares(work: MatmulWork) -> int:
    """Parts of the output, of one core each."""
    problem, config = work.problem, work.config
    dealt = problem.batches // _passed_batches(work)
    return dealt * div_up(problem.m_tiles, config.per_core_m) * div_up(problem.n_tiles, config.per_core_n)


def _passed_batches(work: MatmulWork) -> int:
    """Batches through which every core goes: all of them, unless their tiles are dealt to the cores as if one."""
    return 1 if work.config.program is MatmulProgram.SINGLE_TILES else work.problem.batches


def cores_of(work: MatmulWork) -> int:
    """Cores that compute."""
    return min(_shares(work), work.config.grid.cores)


def _rounds(work: MatmulWork) -> int:
    """Parts of the output that a core computes, one after the other."""
    return div_up(_shares(work), cores_of(work))


def _passes(problem: MatmulProblem, config: MatmulConfig) -> tuple[int, int]:
    """How often a core's part of each operand is needed: for every column, and every row, of its output blocks."""
    if config.program is MatmulProgram.SINGLE_TILES:
        tiles = div_up(problem.m_tiles * problem.n_tiles, config.grid.cores)
        return tiles, tiles
    return div_up(config.per_core_n, config.out_block_w), div_up(config.per_core_m, config.out_block_h)


def _readers_of_first(work: MatmulWork) -> int:
    """Cores that read the same rows of the first operand for themselves."""
    return div_up(work.problem.n_tiles, work.config.per_core_n)


def _readers_of_second(work: MatmulWork) -> int:
    """Cores that read the same columns of the second operand for themselves."""
    return div_up(work.problem.m_tiles, work.config.per_core_m)
