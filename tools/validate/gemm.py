"""Rows of gemm.csv that give a device utilization: large matmuls of tt-metal's GEMM benchmark.

A row's utilization is the ideal cycles of its tile products over the cycles of the kernel. The benchmark's tuned rows
say which grid and whether the operands are sharded; the depth of a K block and the cutting of large outputs into blocks
follow from what fits L1, as the benchmark's author chose them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.stages import nanoseconds
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram
from ops.programs.matmul.cycles import matmul_cycles
from ops.programs.matmul.interleaved import BUFFERING
from ops.programs.matmul.work import MatmulWork
from tools.validate.devices import device_spec
from tools.validate.prediction import NotPredictedError, Prediction, Row

FORMATS = {"bf16": BFLOAT16, "bfp8_b": BFLOAT8_B, "bfp4_b": BFLOAT4_B}
PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
UTILIZATION = "device based utilization"
TUNED = "Manually Tuned"


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
    """Cycles of a row's matmul on a device."""
    return matmul_cycles(gemm.work, spec, in_sharded=gemm.sharded, out_sharded=gemm.sharded).cycles


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
    config = benchmark_config(problem, grid, spec, sharded=sharded)
    work = MatmulWork(
        problem=problem, config=config, fidelity_phases=PHASES[row["fidelity"]], out_channels=problem.n_tiles * TILE
    )
    return GemmRow(spec, work, sharded)


def benchmark_config(problem: MatmulProblem, grid: GridSpec, spec: DeviceSpec, *, sharded: bool) -> MatmulConfig:
    """The program of the benchmark: K split by the grid's columns, blocks as large as L1 allows.

    A sharded output stays in one block, so that K blocks get shallower; another is cut into halves instead, once a
    quarter of the depth does not help.
    """
    down, across = div_up(problem.m_tiles, grid.rows), div_up(problem.n_tiles, grid.cols)
    deepest = max(1, problem.k_tiles // grid.cols)
    tile_bytes = problem.in_format.tile_bytes

    def fits(height: int, width: int, depth: int) -> bool:
        return (BUFFERING * depth * (height + width) + height * width) * tile_bytes < spec.l1.usable_bytes

    blocks = _blocks(down, across, 1 if sharded else max(down, across))
    height, width, depth = next(
        (
            (height, width, deepest // parts)
            for height, width in blocks
            for parts in range(1, deepest + 1)
            if deepest % parts == 0 and (sharded or parts <= 4) and fits(height, width, deepest // parts)
        ),
        (1, 1, 1),
    )
    return MatmulConfig(
        program=MatmulProgram.MCAST_2D,
        grid=grid,
        in0_block_w=depth,
        out_block_h=height,
        out_block_w=width,
        per_core_m=down,
        per_core_n=across,
    )


def _blocks(height: int, width: int, most_parts: int) -> Iterator[tuple[int, int]]:
    """Output blocks: the whole, then both sides halved again and again."""
    parts = 1
    while parts <= most_parts:
        yield div_up(height, parts), div_up(width, parts)
        parts *= 2
