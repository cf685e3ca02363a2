"""How a patch program is dealt to cores: so that as many as possible gather, each for itself alone.

Gathering and tilizing cost more than the products they feed. Cores therefore split the side that is gathered and get
the whole of the other, by multicast; only where that leaves most of them idle are both sides split, as in any matmul.
"""

from device.numbers.block_floats import div_up
from device.spec.parts import GridSpec
from ops.programs.matmul.buffers import SUBBLOCKS, WIDE_DST_TILES, buffers_bytes, interleaved_config
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

DEPTHS = (4, 2, 1)  # K tiles of a block, as tried: deeper ones need fewer handshakes


def gathering_config(problem: MatmulProblem, grid: GridSpec, *, l1_bytes: int, rows: bool) -> MatmulConfig:
    """The program config of a patch program.

    Args:
        problem: The matmul; its Dst is 32 bits wide.
        grid: Cores it may use.
        l1_bytes: What its circular buffers may take.
        rows: The first operand is gathered; otherwise the second.
    """
    gathered = problem.m_tiles if rows else problem.n_tiles
    if 2 * gathered < grid.cores:
        return interleaved_config(problem, grid, in_dram=True, l1_bytes=l1_bytes)
    share = div_up(gathered, grid.cores)
    per_core_m, per_core_n = (share, problem.n_tiles) if rows else (problem.m_tiles, share)
    height, width, depth = _block(problem, per_core_m, per_core_n, l1_bytes, rows=rows)
    subblock_h, subblock_w = next(
        (h, w) for h, w in SUBBLOCKS if height % h == 0 and width % w == 0 and h * w <= WIDE_DST_TILES
    )
    return MatmulConfig(
        program=MatmulProgram.MCAST_IN1 if rows else MatmulProgram.MCAST_IN0,
        grid=grid,
        in0_block_w=depth,
        out_block_h=height,
        out_block_w=width,
        out_subblock_h=subblock_h,
        out_subblock_w=subblock_w,
        per_core_m=per_core_m,
        per_core_n=per_core_n,
    )


def _block(
    problem: MatmulProblem, per_core_m: int, per_core_n: int, l1_bytes: int, *, rows: bool
) -> tuple[int, int, int]:
    """Height, width and depth of a block: as much as fits of the side that is not gathered, so that once is enough."""
    heights, widths = _divisors(per_core_m), _divisors(per_core_n)
    depths = [depth for depth in DEPTHS if problem.k_tiles % depth == 0]
    sides = [(h, w) for w in widths for h in heights] if rows else [(h, w) for h in heights for w in widths]
    fitting = (
        (height, width, depth)
        for height, width in sides
        for depth in depths
        if buffers_bytes(problem, height, width, depth) < l1_bytes
    )
    return next(fitting, (1, 1, 1))


def _divisors(side: int) -> list[int]:
    """Largest first."""
    return [part for part in range(side, 0, -1) if side % part == 0]
