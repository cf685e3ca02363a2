"""The library's choice of a matmul program for a first operand that is interleaved, and of its blocks."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Final

from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, div_up
from device.spec.parts import GridSpec
from device.spec.releases import DEFAULT_RELEASE, Release, release_of
from ops.programs.matmul.buffers import BUFFERING
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

# Sub-blocks (height, width) in the order in which they are tried.
SUBBLOCKS: Final = (
    (4, 2), (2, 4), (8, 1), (1, 8), (7, 1), (1, 7), (3, 2), (2, 3), (6, 1), (1, 6),
    (5, 1), (1, 5), (2, 2), (4, 1), (1, 4), (3, 1), (1, 3), (2, 1), (1, 2), (1, 1),
)  # fmt: skip
WIDE_DST_TILES: Final = 4  # a sub-block in a 32-bit Dst
NARROW_DST_TILES: Final = 8  # a sub-block in a 16-bit Dst
NARROW_RATIO: Final = 8  # beyond this ratio of the sides an output is split along one axis only
SQUARE_BLOCKS: Final = (16, 8, 4, 2)  # output blocks that are tried when an operand is in L1
OF_LAYOUT: Final = {  # programs that write shards of a layout
    TensorMemoryLayout.WIDTH_SHARDED: MatmulProgram.MCAST_IN0,
    TensorMemoryLayout.HEIGHT_SHARDED: MatmulProgram.MCAST_IN1,
    TensorMemoryLayout.BLOCK_SHARDED: MatmulProgram.MCAST_2D,
}


def interleaved_config(
    problem: MatmulProblem,
    grid: GridSpec,
    *,
    in_dram: bool,
    l1_bytes: int,
    out_layout: TensorMemoryLayout = TensorMemoryLayout.INTERLEAVED,
    in1_sharded: bool = False,
    release: Release | None = None,
) -> MatmulConfig:
    """The program config of a first operand that is interleaved, all tensors in DRAM if `in_dram`.

    The rules are those of a release; None for the default release.
    """
    rules = release_of(DEFAULT_RELEASE) if release is None else release
    out_sharded = out_layout is not TensorMemoryLayout.INTERLEAVED
    in_dram = in_dram and not out_sharded and not in1_sharded
    factor = square_blocks(problem, l1_bytes)
    down, across = div_up(problem.m_tiles, factor), div_up(problem.n_tiles, factor)
    several = down > 1 or across > 1
    depth = 1 if (several or out_sharded) and problem.k_tiles % 2 else 2
    single_tiles = MatmulConfig(program=MatmulProgram.SINGLE_TILES, grid=grid, in0_block_w=problem.k_tiles)
    if not in_dram and (down * across > grid.cores or problem.k_tiles % depth):
        return single_tiles
    fits = several and down <= grid.rows and across <= grid.cols
    short, long = sorted((problem.m_tiles, problem.n_tiles))
    narrow = long // short > NARROW_RATIO or (in_dram and short == 1)
    narrow = narrow and not out_sharded and not in1_sharded
    high, wide = min(factor, problem.m_tiles), min(factor, problem.n_tiles)
    square = MatmulConfig(
        program=MatmulProgram.MCAST_2D, grid=grid, in0_block_w=depth, out_block_h=high, out_block_w=wide,
        out_subblock_h=1, out_subblock_w=1 if wide % 2 else 2, per_core_m=high,
        per_core_n=wide,
    )  # fmt: skip
    if out_sharded and not fits:
        program = OF_LAYOUT[out_layout]
        return square if program is MatmulProgram.MCAST_2D else _multicast(problem, grid, program, l1_bytes, rules)
    if not problem.keeps_first:
        if (narrow and problem.n_tiles > problem.m_tiles) or (fits and down == 1 and (rules.one_axis or not in_dram)):
            return _multicast(problem, grid, MatmulProgram.MCAST_IN0, l1_bytes, rules)
        if in_dram and not narrow and not (rules.one_axis and fits and across == 1):
            return _multicast(problem, grid, MatmulProgram.MCAST_2D, l1_bytes, rules)
        if not narrow and not fits:
            return single_tiles
        if not narrow and across > 1:
            return square
    return _multicast(problem, grid, MatmulProgram.MCAST_IN1, l1_bytes, rules)


def square_blocks(problem: MatmulProblem, l1_bytes: int) -> int:
    """The side, in tiles, of the square output blocks that the library tries when an operand is in L1."""
    return next((side for side in SQUARE_BLOCKS if buffers_bytes(problem, side, side, BUFFERING) < l1_bytes), 1)


def buffers_bytes(problem: MatmulProblem, rows: int, cols: int, depth: int, *, shard_width: int = 0) -> int:
    """Estimate of the circular buffers for output blocks of rows x cols tiles and K blocks of depth tiles, in bytes.

    A first operand in shards, `shard_width` tiles wide, counts once more; a transposed one has one more buffer.
    """
    in0, in1 = problem.in_format.tile_bytes, problem.weight_format.tile_bytes
    partials = FLOAT32.tile_bytes if problem.fp32_dest else max(BFLOAT16.tile_bytes, problem.out_format.tile_bytes)
    first, second, resident = BUFFERING * depth * rows * in0, BUFFERING * depth * cols * in1, rows * shard_width * in0
    turned = (resident or first) if problem.transpose_first else 0
    bias = cols * problem.added_format.tile_bytes if problem.bias else 0
    return first + second + resident + turned + rows * cols * (in0 + partials) + bias


def _multicast(
    problem: MatmulProblem, grid: GridSpec, program: MatmulProgram, l1_bytes: int, rules: Release
) -> MatmulConfig:
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
    block = output_block(problem, *per_core, depths, l1_bytes, deepest=rules.deepest_blocks)
    return blocked_config(problem, grid, program, block, per_core)


def blocked_config(
    problem: MatmulProblem,
    grid: GridSpec,
    program: MatmulProgram,
    block: tuple[int, int, int],
    per_core: tuple[int, int],
) -> MatmulConfig:
    """The program config of blocks of a height, a width and a depth: with the first sub-block that divides a block."""
    height, width, depth = block
    subblock_h, subblock_w = subblock_of(height, width, wide=problem.fp32_dest)
    return MatmulConfig(
        program=program, grid=grid, in0_block_w=depth, out_block_h=height, out_block_w=width,
        out_subblock_h=subblock_h, out_subblock_w=subblock_w, per_core_m=per_core[0], per_core_n=per_core[1],
    )  # fmt: skip


def output_block(
    problem: MatmulProblem,
    per_core_m: int,
    per_core_n: int,
    depths: Sequence[int],
    l1_bytes: int,
    *,
    shard_width: int = 0,
    deepest: bool = False,
) -> tuple[int, int, int]:
    """Height, width and depth of the blocks: a core's whole share, or the largest, squarest part of it that fits.

    With `deepest` that fits with the first of the depths with which any part does.
    """
    estimate = partial(buffers_bytes, problem, shard_width=shard_width)
    if estimate(per_core_m, per_core_n, depths[0]) < l1_bytes:
        return per_core_m, per_core_n, depths[0]
    sides = product(_parts(per_core_m), _parts(per_core_n))
    # Of blocks of one area the squarest, and of those that are as square the last.
    by_area = {
        height * width: (height, width)
        for height, width in sorted(sides, key=lambda side: max(side) / min(side), reverse=True)
    }
    blocks = [by_area[area] for area in sorted(by_area, reverse=True)]
    if deepest:
        tried = [(*block, depth) for depth in depths for block in blocks]
    else:
        tried = [(*block, depth) for block in blocks for depth in depths]
    return next((block for block in tried if estimate(*block) < l1_bytes), (1, 1, 1))


def subblock_of(height: int, width: int, *, wide: bool, whole_rows: bool = False) -> tuple[int, int]:
    """Height and width of the first sub-block that divides a block; `whole_rows` allows only a full row."""
    return next(
        (
            (h, w)
            for h, w in SUBBLOCKS
            if height % h == 0
            and width % w == 0
            and (h * w <= WIDE_DST_TILES or not wide)
            and (not whole_rows or (h, w) == (1, width))
        ),
        (1, 1),
    )


def _parts(side: int) -> list[int]:
    """Divisors in the order in which the real library tries them."""
    return [side, 1, *(part for part in range(side // 2, 1, -1) if side % part == 0)]
