"""What a matmul takes: tile products on one side, operands on their way to the cores on the other.

Both run side by side, block by block, so the larger of the two decides, and the other is hidden as far as the blocks
are even: (compute^p + operands^p)^(1/p). Every tile product unpacks one tile that is not there yet, which takes longer
than the product itself where tiles are large and phases are few. An operand's tiles are read one by one by the core
that sends them on, then multicast. Constants by `tools.calibrate` from the GEMM measurements of tt-metal.
"""

from dataclasses import dataclass

from device.cores import CoreRangeSet, first_cores
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.dram import shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork, k_blocks
from ops.programs.matmul.costs import MatmulCosts

TILE_PRODUCT_FLOPS = 2 * TILE**3


@dataclass(frozen=True, slots=True)
class _Operands:
    """How the operands of one core come.

    Attributes:
        first_cycles: Cycles of a core that reads and sends the first operand.
        second_cycles: The same for the second.
        read_bytes: Read from DRAM, by all cores.
        written_bytes: Written to it.
        sent_bytes: Bytes that leave a core over a network, by all cores.
    """

    first_cycles: float
    second_cycles: float
    read_bytes: int
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
    problem, config, costs = work.problem, work.config, spec.costs_of(MatmulCosts)
    shares = div_up(problem.m_tiles, config.per_core_m) * div_up(problem.n_tiles, config.per_core_n)
    count = min(shares, config.grid.cores)
    rounds = div_up(shares, count)
    products = rounds * config.per_core_m * config.per_core_n * problem.k_tiles
    passes = rounds * div_up(config.per_core_m, config.out_block_h) * div_up(config.per_core_n, config.out_block_w)
    operands = _operands(work, spec, in_sharded=in_sharded, out_sharded=out_sharded, in_dram=in_dram)
    unpack = max(problem.in_format.tile_bytes, problem.weight_format.tile_bytes) / costs.unpack_bytes_per_cycle
    product = spec.compute.phase_cycles * work.fidelity_phases + costs.product_cycles
    compute = products * max(product, unpack)
    handshakes = passes * k_blocks(problem, config) * costs.k_block_cycles
    readers = max(operands.first_cycles, operands.second_cycles) + handshakes
    dram = shared_cycles(spec.dram, operands.read_bytes + operands.written_bytes) if contention else 0.0
    body = _overlapped(compute, max(readers, dram), costs.overlap_power)
    cycles = costs.start_cycles + body
    stages = (
        StageCycles(Stage.START, costs.start_cycles),
        StageCycles(Stage.READER, operands.first_cycles),
        StageCycles(Stage.WEIGHT_READER, operands.second_cycles),
        StageCycles(Stage.NETWORK, handshakes),
        StageCycles(Stage.UNPACK, products * unpack),
        StageCycles(Stage.MATH, products * product),
        StageCycles(Stage.DRAM, dram),
    )
    grid = config.grid
    used = first_cores(count, grid.cols, grid.rows) if cores is None else cores
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=used, cycles=cycles, stages=tuple(one for one in stages if one.busy_cycles)),),
        bound_by=binding_stage(stages[1:]),
        dram_read_bytes=operands.read_bytes,
        dram_written_bytes=operands.written_bytes,
        network_bytes=operands.sent_bytes,
        issued_flops=count * products * TILE_PRODUCT_FLOPS,
        useful_flops=problem.m_tiles * problem.n_tiles * problem.k_tiles * TILE_PRODUCT_FLOPS,
        contention_cycles=body - _overlapped(compute, readers, costs.overlap_power),
    )


def _overlapped(compute: float, moving: float, power: float) -> float:
    """Cycles of two things that overlap; scaled by the larger one, since powers of cycles overflow."""
    larger = max(compute, moving)
    body: float = larger * ((compute / larger) ** power + (moving / larger) ** power) ** (1 / power)
    return body


def _operands(work: MatmulWork, spec: DeviceSpec, *, in_sharded: bool, out_sharded: bool, in_dram: bool) -> _Operands:
    """Operands and output of a program."""
    problem, config, costs = work.problem, work.config, spec.costs_of(MatmulCosts)
    first_tile, second_tile = problem.in_format.tile_bytes, problem.weight_format.tile_bytes
    first_passes, second_passes = _passes(problem, config)
    first = first_passes * config.per_core_m * problem.k_tiles
    second = second_passes * config.per_core_n * problem.k_tiles
    multicast = 1 / costs.multicast_bytes_per_cycle
    first_sent = config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0)
    second_sent = config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN1)
    first_read = 0.0 if in_sharded else _read_tile_cycles(spec, first_tile)
    all_first = problem.m_tiles * problem.k_tiles * first_passes * (1 if first_sent else _readers_of_first(work))
    all_second = problem.k_tiles * problem.n_tiles * second_passes * (1 if second_sent else _readers_of_second(work))
    if config.program is MatmulProgram.SINGLE_TILES:
        all_first = all_second = problem.m_tiles * problem.n_tiles * problem.k_tiles
    read = all_second * second_tile + (all_first * first_tile if in_dram and not in_sharded else 0)
    written = 0 if out_sharded else problem.m_tiles * problem.n_tiles * problem.out_format.tile_bytes
    return _Operands(
        first_cycles=first * (first_read + (first_tile * multicast if first_sent else 0.0)),
        second_cycles=second
        * (_read_tile_cycles(spec, second_tile) + (second_tile * multicast if second_sent else 0.0)),
        read_bytes=read,
        written_bytes=written,
        sent_bytes=(all_first * first_tile if first_sent else 0) + (all_second * second_tile if second_sent else 0),
    )


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


def _read_tile_cycles(spec: DeviceSpec, tile_bytes: int) -> float:
    """Cycles between two tiles that one core reads."""
    return max(spec.costs_of(MatmulCosts).read_issue_cycles, tile_bytes / spec.noc.link_bytes_per_cycle)
