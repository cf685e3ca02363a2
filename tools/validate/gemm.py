"""Rows of gemm.csv: matmuls of the real library, by a benchmark, a profiler, or a single core.

A benchmark row's utilization is the ideal cycles of its tile products over the cycles of the cores' matrix units, from
the kernel's start until they are done. A row whose program nobody chose by hand is planned as the real library does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, DataFormat, div_up
from device.spec.device_spec import DeviceSpec, load_spec
from device.spec.parts import GridSpec
from device.time.stages import nanoseconds
from ops.programs.matmul.buffers import SUBBLOCKS, interleaved_config
from ops.programs.matmul.cycles import time_matmul
from ops.programs.matmul.op import IN_DRAM, MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram, Place, Places
from tools.validate.prediction import CARDS, FORMATS, PHASES, NotPredictedError, Prediction, Row, device_spec


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
    """The program of the benchmark for one of its shapes."""
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


UTILIZATION = "device based utilization"
PROFILED = "DEVICE KERNEL DURATION"
SINGLE_CORE = "single-core sharded matmul micro-benchmark"
TUNED = "Manually Tuned"
SINGLE = "single core"
COPIED = "copied"  # in the notes of a baseline that repeats another architecture's
PROGRAMS: Final = {
    "MatmulMultiCoreReuseMultiCastProgramConfig": MatmulProgram.MCAST_2D,
    "MatmulMultiCoreReuseMultiCast1DProgramConfig": MatmulProgram.MCAST_IN1,
}
PLACES: Final = {"DRAM_INTERLEAVED": Place.DRAM, "L1_INTERLEAVED": Place.L1}  # others are sharded


@dataclass(frozen=True, slots=True)
class Gemm:
    """A matmul that a row measured."""

    spec: DeviceSpec  # The device it was measured on
    op: MatmulOp
    places: Places  # Where operands and output lie
    whole: bool = False  # The whole program was measured; otherwise until its matrix units are done

    def cycles_on(self, spec: DeviceSpec) -> tuple[float]:
        """Cycles on a device, as the row counts them."""
        timing = time_matmul(self.op, spec, self.places)
        return (timing.cycles if self.whole else timing.compute.now.cycles,)


def predict_gemm(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row that says what was multiplied, and how."""
    kind = kind_of(row)
    gemm = READERS[kind](row)
    copied = COPIED in row["notes"]
    return Prediction(
        row=row,
        spec=gemm.spec,
        program=gemm,
        measured_ns=nanoseconds(gemm_measured_cycles(row), gemm.spec.clock_hz),
        cycles_on=gemm.cycles_on,
        group=(row["device"], row["grid"] or kind, row["fidelity"]) if kind == TUNED else (row["device"], kind),
        architecture=row["arch"] if kind == TUNED else f"{row['arch']}, {kind}",
        configuration=gemm_configuration(row),
        counted=not copied,
        fitted=not copied and kind in (TUNED, SINGLE),  # which say which program ran
    )


def kind_of(row: Row) -> str:
    """What kind of row it is; raises NotPredictedError if none of those that can be predicted."""
    if row["quantity"] == UTILIZATION:
        return TUNED if TUNED in row["config"] else "out of box"
    if row["quantity"] == PROFILED and row["op"].startswith("Matmul"):
        return "profiled"
    if row["op"] == SINGLE_CORE:
        return SINGLE
    raise NotPredictedError(
        REASONS.get(row["quantity"], f"{row['op']}: no program of ttnn.matmul, or not all is said of it")
    )


REASONS: Final = {
    "host wall time per op (avg)": "host wall time: no kernel time",
    "duration (op runtime training label)": "the row does not say formats and fidelity",
}


def gemm_configuration(row: Row) -> tuple[str, ...]:
    """What tells configurations apart; with and without a trace the device does the same."""
    size = (row["device"], row["grid"], f"{row['M']}x{row['K']}x{row['N']}", row["dtype_in0"], row["fidelity"])
    if kind_of(row) == TUNED:
        return size
    program = re.sub(r";use_trace=\w+", "", row["config"])
    return (*size, row["batch"], row["dtype_in1"], row["dtype_out"], row["packer_l1_acc"], row["memory"], program)


def gemm_measured_cycles(row: Row) -> float:
    """Kernel cycles: from the utilization in percent, from nanoseconds, or as they stand in the row."""
    if row["quantity"] == PROFILED:
        return float(row["value"]) * float(row["clock_mhz"]) / 1000
    if row["quantity"] != UTILIZATION:
        return float(row["value"])
    tiles = (int(row["M"]) // TILE) * (int(row["K"]) // TILE) * (int(row["N"]) // TILE)
    ideal = tiles * 16 * PHASES[row["fidelity"]] / int(row["cores"])
    return ideal / (float(row["value"]) / 100)


def _problem(row: Row) -> MatmulProblem:
    def data_format(column: str) -> DataFormat:
        name = row[column]
        if name not in FORMATS:
            raise NotPredictedError(f"{column} must be one of {', '.join(FORMATS)}, not {name or 'empty'}")
        return FORMATS[name]

    batches = int(row["batch"] or 1)
    return MatmulProblem(
        m_tiles=div_up(int(row["M"]), TILE),
        k_tiles=div_up(int(row["K"]), TILE),
        n_tiles=div_up(int(row["N"]), TILE),
        in_format=data_format("dtype_in0"),
        weight_format=data_format("dtype_in1"),
        out_format=data_format("dtype_out"),
        bias=False,
        fp32_dest=row["fp32_acc"] == "1",
        packer_l1_acc=row["packer_l1_acc"] != "0",
        batches=batches,
        second_batched=batches > 1,
    )


def _work(row: Row, problem: MatmulProblem, config: MatmulConfig) -> MatmulOp:
    if row["fidelity"] not in PHASES:
        raise NotPredictedError(f"fidelity must be one of {', '.join(PHASES)}, not {row['fidelity'] or 'empty'}")
    return MatmulOp(
        problem=problem, config=config, fidelity_phases=PHASES[row["fidelity"]], out_channels=problem.n_tiles * TILE
    )


def _grid(row: Row, spec: DeviceSpec) -> GridSpec:
    """The grid that a row names; the device's if it names none."""
    size = re.fullmatch(r"(\d+)x(\d+)", row["grid"])
    return GridSpec(cols=int(size[1]), rows=int(size[2])) if size else spec.grid


def _read_tuned(row: Row) -> Gemm:
    spec, problem = device_spec(row), _problem(row)
    sharded = "in0_sharded=True" in row["config"]
    config = benchmark_config(problem, _grid(row, spec), sharded=sharded)
    places = Places(first=Place.OWN, output=Place.OWN) if sharded else IN_DRAM
    return Gemm(spec, _work(row, problem, config), places)


def _read_out_of_box(row: Row) -> Gemm:
    spec, problem = device_spec(row), _problem(row)
    config = interleaved_config(problem, _grid(row, spec), in_dram=True, l1_bytes=spec.l1.usable_bytes)
    return Gemm(spec, _work(row, problem, config), IN_DRAM)


def _read_profiled(row: Row) -> Gemm:
    """A program of the profiler's: the config that it names, or the one that the real library chooses."""
    spec, problem = device_spec(row), _problem(row)
    if "64-core" in row["device"] or "64 cores" in row["device"]:
        spec = spec.replace(grid_cols=8, grid_rows=8)
    first, second, output = (PLACES.get(memory, Place.OWN) for memory in row["memory"].replace("->", ",").split(","))
    places = Places(first=first, second=second, output=output)
    name = row["config"].split("(")[0]
    if name in PROGRAMS:
        config = _named_config(row["config"], PROGRAMS[name])
    elif Place.OWN in (first, second, output):
        raise NotPredictedError("the program of a sharded matmul is not said")
    else:
        in_dram = places == IN_DRAM
        config = interleaved_config(problem, spec.grid, in_dram=in_dram, l1_bytes=spec.l1.usable_bytes)
    return Gemm(spec, _work(row, problem, config), places, whole=True)


def _named_config(text: str, program: MatmulProgram) -> MatmulConfig:
    """A program config as the real library prints it."""
    size = re.search(r"grid_size=\(x=(\d+);y=(\d+)\)", text)
    numbers = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", text)}
    if size is None or numbers.get("gather_in0"):
        raise NotPredictedError("the program config has no grid, or gathers its first operand")
    if numbers.get("mcast_in0"):
        program = MatmulProgram.MCAST_IN0
    return MatmulConfig(
        program=program,
        grid=GridSpec(cols=int(size[1]), rows=int(size[2])),
        in0_block_w=numbers["in0_block_w"],
        out_block_h=numbers["out_block_h"],
        out_block_w=numbers["out_block_w"],
        out_subblock_h=numbers["out_subblock_h"],
        out_subblock_w=numbers["out_subblock_w"],
        per_core_m=numbers["per_core_M"],
        per_core_n=numbers["per_core_N"],
    )


def _read_single_core(row: Row) -> Gemm:
    """One core that holds both operands and the output."""
    spec, problem = load_spec(CARDS[row["arch"]]), _problem(row)
    cut = re.search(r"num_blocks=(\d+) of K=(\d+);out subblock (\d+)x(\d+)", row["config"])
    if cut is None:
        raise NotPredictedError("the row does not say blocks and sub-blocks")
    config = MatmulConfig(
        program=MatmulProgram.MCAST_2D,
        grid=GridSpec(cols=1, rows=1),
        in0_block_w=int(cut[2]) // TILE,
        out_block_h=problem.m_tiles,
        out_block_w=problem.n_tiles,
        out_subblock_h=int(cut[3]),
        out_subblock_w=int(cut[4]),
        per_core_m=problem.m_tiles,
        per_core_n=problem.n_tiles,
    )
    places = Places(first=Place.OWN, second=Place.OWN, output=Place.OWN)
    return Gemm(spec, _work(row, problem, config), places, whole=True)


READERS: Final[dict[str, Callable[[Row], Gemm]]] = {
    TUNED: _read_tuned,
    "out of box": _read_out_of_box,
    "profiled": _read_profiled,
    SINGLE: _read_single_core,
}
