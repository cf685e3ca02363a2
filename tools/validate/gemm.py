"""Rows of gemm.csv that give a device utilization: large matmuls of tt-metal's GEMM benchmark.

A row's utilization is the ideal cycles of its tile products over the cycles of the kernel. The benchmark's tuned rows
say which grid and whether the operands are sharded; the depth of a K block and the cutting of large outputs into blocks
follow from what fits L1, as the benchmark's author chose them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.stages import nanoseconds
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, MatmulWork
from ops.programs.matmul.cycles import time_matmul
from ops.programs.matmul.interleaved import SUBBLOCKS
from tools.validate.devices import device_spec
from tools.validate.prediction import NotPredictedError, Prediction, Row

FORMATS = {"bf16": BFLOAT16, "bfp8_b": BFLOAT8_B, "bfp4_b": BFLOAT4_B}
PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
UTILIZATION = "device based utilization"
TUNED = "Manually Tuned"


@dataclass(frozen=True, slots=True)
class Cut:
    """How the benchmark cuts a shape.

    Attributes:
        k_parts: K blocks of what a core holds of the first operand.
        out_blocks: Output blocks down, and across.
    """

    k_parts: int
    out_blocks: int


def _cuts(*, whole: str, halves: str, quarters: str, larger: Mapping[str, Cut]) -> dict[tuple[int, ...], Cut]:
    """Cuts by tiles of a core down, of K, and across: the shapes in one output block, and the others."""
    named = {shape: Cut(1, 1) for shape in SMALL.split() + whole.split()}
    named |= {shape: Cut(2, 1) for shape in halves.split()} | {shape: Cut(4, 1) for shape in quarters.split()}
    return {tuple(int(side) for side in shape.split("x")): cut for shape, cut in (named | dict(larger)).items()}


# Shapes and cuts of tt-metal's tests/ttnn/unit_tests/benchmarks/test_benchmark.py.
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


@dataclass(frozen=True, slots=True)
class GemmRow:
    """A row, understood.

    Attributes:
        spec: The device it was measured on.
        work: The program.
        sharded: First operand and output are sharded.
    """

    spec: DeviceSpec
    work: MatmulWork
    sharded: bool


def predict_gemm(row: Row) -> Prediction:
    """Predict the kernel cycles of one row, whose error is that of its utilization.

    Raises:
        NotPredictedError: The row is no device utilization, or not of a known program.
    """
    gemm = read_gemm_row(row)
    clock = gemm.spec.clock_hz
    return Prediction(
        row=row,
        measured_ns=nanoseconds(gemm_measured_cycles(row), clock),
        predicted_ns=nanoseconds(gemm_cycles_of(gemm, gemm.spec), clock),
        group=(row["device"], row["grid"], row["fidelity"]),
        architecture=row["arch"],
        configuration=gemm_configuration(row),
    )


def is_tuned_utilization(row: Row) -> bool:
    """Whether a row gives a device utilization of a program that the benchmark chose."""
    return row["quantity"] == UTILIZATION and TUNED in row["config"]


def gemm_cycles_of(gemm: GemmRow, spec: DeviceSpec) -> float:
    """Cycles of a row's matmul on a device: until its matrix units are done, as the benchmark counts them."""
    timing = time_matmul(gemm.work, spec, in_sharded=gemm.sharded, out_sharded=gemm.sharded)
    return timing.compute.now.cycles


def gemm_configuration(row: Row) -> tuple[str, ...]:
    """What tells configurations apart; with and without a trace the device does the same."""
    return (row["device"], row["grid"], f"{row['M']}x{row['K']}x{row['N']}", row["dtype_in0"], row["fidelity"])


def gemm_measured_cycles(row: Row) -> float:
    """Kernel cycles, from the utilization in percent."""
    tiles = (int(row["M"]) // TILE) * (int(row["K"]) // TILE) * (int(row["N"]) // TILE)
    ideal = tiles * 16 * PHASES[row["fidelity"]] / int(row["cores"])
    return ideal / (float(row["value"]) / 100)


def read_gemm_row(row: Row) -> GemmRow:
    """The device and the program of a row.

    Raises:
        NotPredictedError: As of `predict_gemm`.
    """
    if row["quantity"] != UTILIZATION:
        raise NotPredictedError(f"{row['quantity']}: no device utilization of the GEMM benchmark")
    if not is_tuned_utilization(row):
        raise NotPredictedError("out-of-box program: the row does not say which one the library chose")
    spec = device_spec(row)
    size = re.fullmatch(r"(\d+)x(\d+)", row["grid"])
    if size is None:
        raise NotPredictedError("the row gives no grid")
    grid = GridSpec(cols=int(size[1]), rows=int(size[2]))
    data_format, sharded = FORMATS[row["dtype_in0"]], "in0_sharded=True" in row["config"]
    problem = MatmulProblem(
        m_tiles=int(row["M"]) // TILE,
        k_tiles=int(row["K"]) // TILE,
        n_tiles=int(row["N"]) // TILE,
        in_format=data_format,
        weight_format=data_format,
        out_format=data_format,
        bias=False,
        fp32_dest=False,
        packer_l1_acc=True,
    )
    config = benchmark_config(problem, grid, sharded=sharded)
    work = MatmulWork(
        problem=problem, config=config, fidelity_phases=PHASES[row["fidelity"]], out_channels=problem.n_tiles * TILE
    )
    return GemmRow(spec, work, sharded)


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
