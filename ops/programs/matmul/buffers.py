"""The circular buffers of a matmul program, in order of allocation.

The real library makes them as *dataflow buffers*: they take L1 from the bottom as circular buffers do, but a capture
shows them only when nothing is dispatched. Sizes and cores: 0.81.1 on a device without kernels.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

from device.cores import CoreRangeSet, first_cores
from device.memory.memory_config import TILE, MemoryConfig
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.parts import GridSpec
from ops.programs.buffer_shapes import page_cores, tile_buffer
from ops.programs.matmul.op import MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram

BUFFERING: Final = 2  # blocks or tiles of an operand in its circular buffer


def program_cores(op: MatmulOp, in_memory: MemoryConfig) -> CoreRangeSet:
    """The cores of a matmul: those with output, and those that only send their part of the first operand."""
    problem, config, grid = op.problem, op.config, op.config.grid
    if op.single_tiles:
        return page_cores(problem.batches * problem.m_tiles * problem.n_tiles, grid)
    across, down = op.sharers
    if config.program is not MatmulProgram.MCAST_2D:
        return first_cores(down * across, grid.cols, grid.rows)
    rows, cols = (across, down) if config.transpose_mcast else (down, across)
    if in_memory.shard_spec is not None:
        box = in_memory.shard_spec.grid.bounding_box()
        rows, cols = (max(rows, box.rows), cols) if config.transpose_mcast else (rows, max(cols, box.cols))
    return first_cores(rows * cols, cols, rows)


def matmul_circular_buffers(
    op: MatmulOp, *, source: str, in_memory: MemoryConfig, output: str, out_sharded: bool
) -> tuple[CircularBuffer, ...]:
    """All circular buffers of one matmul program, in order of allocation."""
    problem, config, cores, shards = op.problem, op.config, program_cores(op, in_memory), in_memory.shard_spec
    if op.single_tiles:
        formats = {"in0": problem.in_format, "in1": problem.weight_format, "out": problem.out_format}
        return tuple(tile_buffer(name, BUFFERING, data_format, cores) for name, data_format in formats.items())
    shard_tiles = 0 if shards is None else config.per_core_m * (shards.shape[1] // TILE)
    in_place = shards is not None and config.program is MatmulProgram.MCAST_IN1
    first_depth, second_depth = _depths(op)
    own_tiles = 0 if in_place else first_depth * (config.per_core_m if problem.keeps_first else config.out_block_h)
    first = (shard_tiles, problem.in_format, source) if in_place else (own_tiles, problem.in_format, None)
    block = config.out_block_h * config.out_block_w
    out_tiles = config.per_core_m * config.per_core_n if out_sharded else block
    on_shards, partials = shards is not None and config.program is MatmulProgram.MCAST_2D, op.partials_format
    buffers: tuple[tuple[str, bool, tuple[int, DataFormat, str | None]], ...] = (  # name, whether there is one, what
        ("in0", True, first),
        ("in1", True, (config.out_block_w * second_depth, problem.weight_format, None)),
        ("in0_shard", on_shards, (shard_tiles, problem.in_format, source)),
        ("out", True, (out_tiles, problem.out_format, output if out_sharded else None)),
        ("partials", partials != problem.out_format, (block, partials, None)),
        ("bias", problem.bias, (config.out_block_w, problem.added_format, None)),
        ("in0_transposed", problem.transpose_first, (own_tiles, problem.in_format, None)),
    )
    return tuple(
        tile_buffer(name, tiles, data_format, cores, view_of)
        for name, wanted, (tiles, data_format, view_of) in buffers
        if wanted
    )


def _depths(op: MatmulOp) -> tuple[int, int]:
    """K tiles of each operand that the buffers hold: two blocks where one follows another, of whatever batch.

    A first operand that all batches share is held whole. Where cores split one axis only, a second operand of one
    block is not brought again for the next batch.
    """
    problem, single = op.problem, op.config.in0_block_w
    brought = problem.batches if problem.second_batched or op.config.program is MatmulProgram.MCAST_2D else 1
    first, second = (single * (BUFFERING if op.k_blocks * batches > 1 else 1) for batches in (problem.batches, brought))
    return (op.k_blocks * single if problem.keeps_first else first), second


# Sub-blocks (height, width) in the order in which they are tried.
SUBBLOCKS: Final = (
    (4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6),
    (5, 1), (1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1),
)  # fmt: skip
WIDE_DST_TILES: Final = 4  # a sub-block in a 32-bit Dst
NARROW_RATIO: Final = 8  # beyond this ratio of the sides an output is split along one axis only
SQUARE_BLOCKS: Final = (16, 8, 4, 2)  # output blocks that are tried when an operand is in L1


def interleaved_config(problem: MatmulProblem, grid: GridSpec, *, in_dram: bool, l1_bytes: int) -> MatmulConfig:
    """The program config of a matmul of interleaved tensors in DRAM; the first operand is in L1 unless `in_dram`."""
    factor = next((n for n in SQUARE_BLOCKS if buffers_bytes(problem, n, n, BUFFERING) < l1_bytes), 1)
    down, across = div_up(problem.m_tiles, factor), div_up(problem.n_tiles, factor)
    several = down > 1 or across > 1
    depth = 1 if several and problem.k_tiles % 2 else 2
    single_tiles = MatmulConfig(program=MatmulProgram.SINGLE_TILES, grid=grid, in0_block_w=problem.k_tiles)
    if not in_dram and (down * across > grid.cores or problem.k_tiles % depth):
        return single_tiles
    fits = several and down <= grid.rows and across <= grid.cols
    short, long = sorted((problem.m_tiles, problem.n_tiles))
    narrow = long // short > NARROW_RATIO or (in_dram and short == 1)
    if not problem.keeps_first:
        if (narrow and problem.n_tiles > problem.m_tiles) or (fits and down == 1 and not in_dram):
            return _multicast(problem, grid, MatmulProgram.MCAST_IN0, l1_bytes)
        if in_dram and not narrow:
            return _multicast(problem, grid, MatmulProgram.MCAST_2D, l1_bytes)
        if not narrow and not fits:
            return single_tiles
        if not narrow and across > 1:
            return MatmulConfig(
                program=MatmulProgram.MCAST_2D, grid=grid, in0_block_w=depth, out_block_h=factor, out_block_w=factor,
                out_subblock_h=4 if factor == 2 else 1, out_subblock_w=2, per_core_m=factor, per_core_n=factor,
            )  # fmt: skip
    return _multicast(problem, grid, MatmulProgram.MCAST_IN1, l1_bytes)


def buffers_bytes(problem: MatmulProblem, rows: int, cols: int, depth: int) -> int:
    """Estimate of the circular buffers for output blocks of rows x cols tiles and K blocks of depth tiles, in bytes."""
    in0, in1 = problem.in_format.tile_bytes, problem.weight_format.tile_bytes
    partials = FLOAT32.tile_bytes if problem.fp32_dest else max(BFLOAT16.tile_bytes, problem.out_format.tile_bytes)
    operands = BUFFERING * depth * (rows * in0 + cols * in1)
    bias = cols * problem.added_format.tile_bytes if problem.bias else 0
    return operands + rows * cols * (in0 + partials) + bias


def _multicast(problem: MatmulProblem, grid: GridSpec, program: MatmulProgram, l1_bytes: int) -> MatmulConfig:
    """The program config of cores that split N, M, or both (MCAST_2D), with the largest blocks that fit."""
    splits = {
        MatmulProgram.MCAST_IN0: (1, grid.cores),
        MatmulProgram.MCAST_IN1: (grid.cores, 1),
        MatmulProgram.MCAST_2D: (grid.rows, grid.cols),
    }
    down, across = splits[program]
    deepest = 1 if problem.k_tiles % 2 else 2
    depths = [deepest]
    if program is MatmulProgram.MCAST_2D:
        deepest = 1 if problem.k_tiles % grid.cols else problem.k_tiles // grid.cols
        depths = [depth for depth in range(deepest, 0, -1) if deepest % depth == 0]
    per_core = div_up(problem.m_tiles, down), div_up(problem.n_tiles, across)
    return blocked_config(problem, grid, program, _output_block(problem, *per_core, depths, l1_bytes), per_core)


def blocked_config(
    problem: MatmulProblem,
    grid: GridSpec,
    program: MatmulProgram,
    block: tuple[int, int, int],
    per_core: tuple[int, int],
) -> MatmulConfig:
    """The program config of blocks of a height, a width and a depth: with the first sub-block that divides a block."""
    height, width, depth = block
    subblock_h, subblock_w = next(
        (h, w)
        for h, w in SUBBLOCKS
        if height % h == 0 and width % w == 0 and (h * w <= WIDE_DST_TILES or not problem.fp32_dest)
    )
    return MatmulConfig(
        program=program, grid=grid, in0_block_w=depth, out_block_h=height, out_block_w=width,
        out_subblock_h=subblock_h, out_subblock_w=subblock_w, per_core_m=per_core[0], per_core_n=per_core[1],
    )  # fmt: skip


def _output_block(
    problem: MatmulProblem, per_core_m: int, per_core_n: int, depths: Sequence[int], l1_bytes: int
) -> tuple[int, int, int]:
    """Height, width and depth of the blocks: a core's whole share, or the largest, squarest part of it that fits."""
    if buffers_bytes(problem, per_core_m, per_core_n, depths[0]) < l1_bytes:
        return per_core_m, per_core_n, depths[0]
    sides = product(_parts(per_core_m), _parts(per_core_n))
    # Of blocks of one area the squarest, and of those that are as square the last.
    by_area = {
        height * width: (height, width)
        for height, width in sorted(sides, key=lambda side: max(side) / min(side), reverse=True)
    }
    blocks = [by_area[area] for area in sorted(by_area, reverse=True)]
    fitting = (
        (*block, depth) for depth in depths for block in blocks if buffers_bytes(problem, *block, depth) < l1_bytes
    )
    return next(fitting, (1, 1, 1))


def _parts(side: int) -> list[int]:
    """Divisors in the order in which the real library tries them."""
    return [side, 1, *(part for part in range(side // 2, 1, -1) if side % part == 0)]
