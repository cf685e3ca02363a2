"""How tt-metal's GEMM benchmark cuts its matmuls: shapes by tiles of a core, blocks and sub-blocks.

Shapes and cuts are those of tests/ttnn/unit_tests/benchmarks/test_benchmark.py of tt-metal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.parts import GridSpec
from ops.programs.matmul.buffers import SUBBLOCKS
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram
from tools.validate.prediction import NotPredictedError


@dataclass(frozen=True, slots=True)
class Cut:
    """How the benchmark cuts a shape."""

    k_parts: int  # K blocks of what a core holds of the first operand
    out_blocks: int  # Output blocks down, and across


def _cuts(*, whole: str, halves: str, quarters: str, larger: Mapping[str, Cut]) -> dict[tuple[int, ...], Cut]:
    """Cuts by tiles of a core down, of K, and across: the shapes in one output block, and the others."""
    named = {shape: Cut(1, 1) for shape in SMALL.split() + whole.split()}
    named |= {shape: Cut(2, 1) for shape in halves.split()} | {shape: Cut(4, 1) for shape in quarters.split()}
    return {tuple(int(side) for side in shape.split("x")): cut for shape, cut in (named | dict(larger)).items()}


SMALL: Final = "2x2x2 2x4x4 2x4x8 4x4x4 4x4x8 4x8x8 8x8x8 8x8x12 13x10x10"
CUTS: Final = {
    BFLOAT16: _cuts(
        whole="",
        halves="8x12x12 12x12x16 12x16x16",
        quarters="12x12x12",
        larger={"16x16x16": Cut(1, 2), "32x32x32": Cut(2, 4), "64x64x64": Cut(4, 8)},
    ),
    BFLOAT8_B: _cuts(
        whole="8x12x12",
        halves="12x12x12 12x12x16",
        quarters="12x16x16",
        larger={"16x16x16": Cut(1, 2), "32x32x32": Cut(2, 4), "64x64x64": Cut(4, 8)},
    ),
    BFLOAT4_B: _cuts(
        whole="8x12x12 12x12x12 12x12x16",
        halves="12x16x16 16x16x16",
        quarters="",
        larger={"32x32x32": Cut(2, 2), "64x64x64": Cut(4, 4)},
    ),
}


def benchmark_config(problem: MatmulProblem, grid: GridSpec, *, sharded: bool) -> MatmulConfig:
    """The program of the benchmark for one of its shapes.

    Raises:
        NotPredictedError: The benchmark has no such shape.
    """
    down, across, deep = problem.m_tiles // grid.rows, problem.n_tiles // grid.cols, problem.k_tiles // grid.cols
    cut = CUTS[problem.in_format].get((down, deep, across))
    if cut is None:
        raise NotPredictedError(f"the benchmark has no {down} x {deep} x {across} tiles a core in {problem.in_format}")
    height, width = down // cut.out_blocks, across // cut.out_blocks
    subblock_h, subblock_w = next(
        (h, w) for h, w in SUBBLOCKS if height % h == 0 and width % w == 0 and (h == 1 or not sharded)
    )
    return MatmulConfig(
        program=MatmulProgram.MCAST_2D,
        grid=grid,
        in0_block_w=deep // cut.k_parts,
        out_block_h=height,
        out_block_w=width,
        out_subblock_h=subblock_h,
        out_subblock_w=subblock_w,
        per_core_m=down,
        per_core_n=across,
    )
