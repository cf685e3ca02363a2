"""How a matmul program is dealt to its cores: who computes what, what they move, and from where."""

from dataclasses import dataclass
from enum import Enum

from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up
from ops.programs.matmul.config import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram, k_blocks

TILE_PRODUCT_FLOPS = 2 * TILE**3


class Place(Enum):
    """Where an operand or the output of a matmul lies."""

    DRAM = "dram"
    L1 = "l1"  # In the banks of all cores' L1
    OWN = "own"  # In the L1 of the core that needs it, or of the one that sends it on


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the operands and the output lie."""

    first: Place = Place.DRAM
    second: Place = Place.DRAM
    output: Place = Place.DRAM


IN_DRAM = Places()


@dataclass(frozen=True, slots=True)
class Operands:
    """What all cores of a program move."""

    first_read_bytes: int  # Of the first operand, read from DRAM
    second_read_bytes: int
    written_bytes: int
    sent_bytes: int  # Bytes that leave a core over a network


def issued_flops(work: MatmulOp) -> int:
    """Multiplications and additions of all cores."""
    config = work.config
    products = _rounds(work) * _passed_batches(work) * config.per_core_m * config.per_core_n * work.problem.k_tiles
    return cores_of(work) * products * TILE_PRODUCT_FLOPS


def out_blocks(work: MatmulOp) -> int:
    """Output blocks that a core computes, one after the other."""
    config = work.config
    across = div_up(config.per_core_n, config.out_block_w)
    return _rounds(work) * _passed_batches(work) * div_up(config.per_core_m, config.out_block_h) * across


def block_tiles(work: MatmulOp) -> tuple[float, float, float]:
    """Height, width and depth of a block: even shares of a core's part, so that all blocks together are that part."""
    problem, config = work.problem, work.config
    return (
        config.per_core_m / div_up(config.per_core_m, config.out_block_h),
        config.per_core_n / div_up(config.per_core_n, config.out_block_w),
        problem.k_tiles / k_blocks(problem, config),
    )


def operands_of(work: MatmulOp, places: Places = IN_DRAM) -> Operands:
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
        first_read_bytes=all_first * first_tile if places.first is Place.DRAM else 0,
        second_read_bytes=all_second * second_tile if places.second is Place.DRAM else 0,
        written_bytes=written * problem.out_format.tile_bytes if places.output is Place.DRAM else 0,
        sent_bytes=(all_first * first_tile if first_sent else 0) + (all_second * second_tile if second_sent else 0),
    )


def sends_first(config: MatmulConfig) -> bool:
    """Whether blocks of the first operand are multicast."""
    return config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN0)


def sends_second(config: MatmulConfig) -> bool:
    """Whether blocks of the second operand are multicast."""
    return config.program in (MatmulProgram.MCAST_2D, MatmulProgram.MCAST_IN1)


def first_receivers(work: MatmulOp) -> int:
    """Cores that get a block of the first operand from the one that sends it, that one among them."""
    if not sends_first(work.config):
        return 1
    return min(cores_of(work), _readers_of_first(work))


def second_receivers(work: MatmulOp) -> int:
    """Cores that get a block of the second operand likewise."""
    if not sends_second(work.config):
        return 1
    return min(cores_of(work), _readers_of_second(work))


def _shares(work: MatmulOp) -> int:
    """Parts of the output, of one core each."""
    problem, config = work.problem, work.config
    dealt = problem.batches // _passed_batches(work)
    return dealt * div_up(problem.m_tiles, config.per_core_m) * div_up(problem.n_tiles, config.per_core_n)


def _passed_batches(work: MatmulOp) -> int:
    """Batches through which every core goes: all of them, unless their tiles are dealt to the cores as if one."""
    return 1 if work.config.program is MatmulProgram.SINGLE_TILES else work.problem.batches


def cores_of(work: MatmulOp) -> int:
    """Cores that compute."""
    return min(_shares(work), work.config.grid.cores)


def _rounds(work: MatmulOp) -> int:
    """Parts of the output that a core computes, one after the other."""
    return div_up(_shares(work), cores_of(work))


def _passes(problem: MatmulProblem, config: MatmulConfig) -> tuple[int, int]:
    """How often a core's part of each operand is needed: for every column, and every row, of its output blocks."""
    if config.program is MatmulProgram.SINGLE_TILES:
        tiles = div_up(problem.m_tiles * problem.n_tiles, config.grid.cores)
        return tiles, tiles
    return div_up(config.per_core_n, config.out_block_w), div_up(config.per_core_m, config.out_block_h)


def _readers_of_first(work: MatmulOp) -> int:
    """Cores that need the same rows of the first operand."""
    return div_up(work.problem.n_tiles, work.config.per_core_n)


def _readers_of_second(work: MatmulOp) -> int:
    """Cores that need the same columns of the second operand."""
    return div_up(work.problem.m_tiles, work.config.per_core_m)
