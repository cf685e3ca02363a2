"""Rows of gemm.csv: matmuls of the real library, by a benchmark, a profiler, or a single core.

A benchmark row's utilization is the ideal cycles of its tile products over the cycles of the cores' matrix units, from
the kernel's start until they are done. A row whose program nobody chose by hand is planned as the real library does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, DataFormat, div_up
from device.spec.device_spec import DeviceSpec, load_spec
from device.spec.parts import GridSpec
from device.spec.releases import release_of
from device.time.stages import nanoseconds
from ops.programs.matmul.choice import SUBBLOCKS, interleaved_config
from ops.programs.matmul.cycles import time_matmul
from ops.programs.matmul.model import matmul_class
from ops.programs.matmul.op import IN_DRAM, MatmulConfig, MatmulOp, MatmulProblem, MatmulProgram, Place, Places
from tools.validate.prediction import (
    CARDS,
    FORMATS,
    OF_2025,
    PHASES,
    NotPredictedError,
    Prediction,
    Row,
    device_spec,
    numbers,
)

T = TypeVar("T")

# How the benchmark cuts a shape, which is given by a core's tiles down, of K, and across: "K blocks of what a core
# holds of the first operand" x "output blocks down, and across".
SMALL: Final = "2x2x2 2x4x4 2x4x8 4x4x4 4x4x8 4x8x8 8x8x8 8x8x12 13x10x10"
LARGE: Final = {"1x2": "16x16x16", "2x4": "32x32x32", "4x8": "64x64x64"}
WIDE: Final = {"2x1": "12x12x12 12x12x16", "4x1": "12x16x16"}
FOUR_BITS: Final = {"2x1": "12x16x16 16x16x16", "2x2": "32x32x32", "4x4": "64x64x64"}
CUTS: Final[Mapping[DataFormat, Mapping[str, str]]] = {
    BFLOAT16: {"1x1": SMALL, "2x1": "8x12x12 12x12x16 12x16x16", "4x1": "12x12x12", **LARGE},
    BFLOAT8_B: {"1x1": f"{SMALL} 8x12x12", **WIDE, **LARGE},
    BFLOAT4_B: {"1x1": f"{SMALL} 8x12x12 12x12x12 12x12x16", **FOUR_BITS},
}


def benchmark_config(problem: MatmulProblem, grid: GridSpec, *, sharded: bool) -> MatmulConfig:
    """The program of the benchmark for one of its shapes."""
    down, across, deep = problem.m_tiles // grid.rows, problem.n_tiles // grid.cols, problem.k_tiles // grid.cols
    cuts = CUTS[problem.in_format].items()
    cut = next((cut for cut, shapes in cuts if f"{down}x{deep}x{across}" in shapes.split()), None)
    if cut is None:
        raise NotPredictedError(f"the benchmark has no {down} x {deep} x {across} tiles a core in {problem.in_format}")
    k_parts, out_blocks = map(int, cut.split("x"))
    height, width = down // out_blocks, across // out_blocks
    subblock = next((h, w) for h, w in SUBBLOCKS if height % h == 0 and width % w == 0 and (h == 1 or not sharded))
    return _config(MatmulProgram.MCAST_2D, grid, deep // k_parts, (height, width), subblock, (down, across))


def _config(
    program: MatmulProgram,
    grid: GridSpec,
    in0_block_w: int,
    out_block: tuple[int, int],
    subblock: tuple[int, int],
    per_core: tuple[int, int],
) -> MatmulConfig:
    """A program config; the pairs are of heights and widths, in tiles."""
    return MatmulConfig(
        program=program,
        grid=grid,
        in0_block_w=in0_block_w,
        out_block_h=out_block[0],
        out_block_w=out_block[1],
        out_subblock_h=subblock[0],
        out_subblock_w=subblock[1],
        per_core_m=per_core[0],
        per_core_n=per_core[1],
        given=True,
    )


WORDS: Final = {Place.DRAM: "DRAM", Place.L1: "L1", Place.OWN: "shards"}
UTILIZATION = "device based utilization"
PROFILED = "DEVICE KERNEL DURATION"
SINGLE_CORE = "single-core sharded matmul micro-benchmark"
TUNED = "Manually Tuned"
SINGLE = "single core"
OUT_OF_BOX: Final = "out of box"  # benchmark rows of 2025 or before, whose programs the library of then chose
COPIED = "copied"  # in the notes of a baseline that repeats another architecture's
PROGRAMS: Final = {
    "MatmulMultiCoreReuseMultiCastProgramConfig": MatmulProgram.MCAST_2D,
    "MatmulMultiCoreReuseMultiCast1DProgramConfig": MatmulProgram.MCAST_IN1,
}
PLACES: Final = {"DRAM_INTERLEAVED": Place.DRAM, "L1_INTERLEAVED": Place.L1}  # others are sharded
REASONS: Final = {
    "host wall time per op (avg)": "host wall time: no kernel time",
    "duration (op runtime training label)": "the row does not say formats and fidelity",
}


@dataclass(frozen=True, slots=True)
class Gemm:
    """A matmul that a row measured."""

    spec: DeviceSpec  # The device it was measured on
    op: MatmulOp
    places: Places  # Where operands and output lie
    whole: bool = False  # The whole program was measured; otherwise until its matrix units are done

    def cycles_on(self, spec: DeviceSpec) -> tuple[float]:
        """Cycles on a device, as the row counts them."""
        timing, apart = time_matmul(self.op, spec, self.places), APART_NS[spec.arch] * spec.clock_hz / 1e9
        return (timing.cycles if self.whole else timing.compute.now.cycles - apart,)


def predict_gemm(row: Row) -> Prediction:
    """Predicts the kernel cycles of one row that says what was multiplied, and how."""
    kind = kind_of(row)
    gemm = read_gemm(row, kind)
    copied = COPIED in row["notes"]
    size = (row["device"], row["grid"], f"{row['M']}x{row['K']}x{row['N']}", row["dtype_in0"], row["fidelity"])
    program = re.sub(r";use_trace=\w+", "", row["config"])  # with and without a trace the device does the same
    others = (row["batch"], row["dtype_in1"], row["dtype_out"], row["packer_l1_acc"], row["memory"], program)
    return Prediction(
        row=row,
        spec=gemm.spec,
        program=gemm,
        measured_ns=nanoseconds(gemm_measured_cycles(row), gemm.spec.clock_hz),
        cycles_on=gemm.cycles_on,
        group=(row["device"], row["grid"] or kind, row["fidelity"]) if kind == TUNED else (row["device"], kind),
        architecture=row["arch"] if kind == TUNED else f"{row['arch']}, {kind}",
        configuration=size if kind == TUNED else (*size, *others),
        evidence=(matmul_class(gemm.op), _words(gemm.places)),
        counted=not copied,
        fitted=not copied and kind in (TUNED, SINGLE),  # which say which program ran
    )


def _words(places: Places) -> str:
    """The memories of the first operand and of the output, as `ops.passes.cycles.place_of` names them."""
    first, output = WORDS[places.first], WORDS[places.output]
    return first if first == output else f"{first} to {output}"


def kind_of(row: Row) -> str:
    """What kind of row it is; raises NotPredictedError if none of those that can be predicted."""
    if row["quantity"] == UTILIZATION:
        return TUNED if TUNED in row["config"] else OUT_OF_BOX
    if row["quantity"] == PROFILED and row["op"].startswith("Matmul"):
        return "profiled"
    if row["op"] == SINGLE_CORE:
        return SINGLE
    unknown = f"{row['op']}: no program of ttnn.matmul, or not all is said of it"
    raise NotPredictedError(REASONS.get(row["quantity"], unknown))


def gemm_measured_cycles(row: Row) -> float:
    """Kernel cycles: from the utilization in percent, from nanoseconds, or as they stand in the row."""
    value = float(row["value"])
    if row["quantity"] == PROFILED:
        return value * float(row["clock_mhz"]) / 1000
    if row["quantity"] != UTILIZATION:
        return value
    m, k, n, cores = numbers(row, "M K N cores")
    ideal = (m // TILE) * (k // TILE) * (n // TILE) * 16 * PHASES[row["fidelity"]] / cores
    return ideal / (value / 100)


def _problem(row: Row) -> MatmulProblem:
    batches = int(row["batch"] or 1)
    m, k, n = (div_up(size, TILE) for size in numbers(row, "M K N"))
    return MatmulProblem(
        m_tiles=m,
        k_tiles=k,
        n_tiles=n,
        in_format=_known(row, "dtype_in0", FORMATS),
        weight_format=_known(row, "dtype_in1", FORMATS),
        out_format=_known(row, "dtype_out", FORMATS),
        bias=False,
        fp32_dest=row["fp32_acc"] == "1",
        packer_l1_acc=row["packer_l1_acc"] != "0",
        batches=batches,
        second_batched=batches > 1,
    )


def _known(row: Row, column: str, values: Mapping[str, T]) -> T:
    """What a word in a column stands for."""
    if row[column] not in values:
        raise NotPredictedError(f"{column} must be one of {', '.join(values)}, not {row[column] or 'empty'}")
    return values[row[column]]


def _grid(row: Row, spec: DeviceSpec) -> GridSpec:
    """The grid that a row names; the device's if it names none."""
    size = re.fullmatch(r"(\d+)x(\d+)", row["grid"])
    return GridSpec(cols=int(size[1]), rows=int(size[2])) if size else spec.grid


# Of a row: the program, or None where the real library chooses it, and where operands and output lie.
Read = tuple[MatmulConfig | None, Places]


def _read_tuned(row: Row, spec: DeviceSpec, problem: MatmulProblem) -> Read:
    sharded = "in0_sharded=True" in row["config"]
    config = benchmark_config(problem, _grid(row, spec), sharded=sharded)
    return config, Places(first=Place.OWN, output=Place.OWN) if sharded else IN_DRAM


def _read_out_of_box(row: Row, spec: DeviceSpec, problem: MatmulProblem) -> Read:
    return None, IN_DRAM


def _read_profiled(row: Row, spec: DeviceSpec, problem: MatmulProblem) -> Read:
    """A program of the profiler's: the config that it names as the real library prints it, or the chosen one."""
    first, second, output = (PLACES.get(memory, Place.OWN) for memory in row["memory"].replace("->", ",").split(","))
    places, text = Places(first=first, second=second, output=output), row["config"]
    program = PROGRAMS.get(text.split("(")[0])
    if program is None:
        if Place.OWN in (first, second, output):
            raise NotPredictedError("the program of a sharded matmul is not said")
        return None, places
    size = re.search(r"grid_size=\(x=(\d+);y=(\d+)\)", text)
    said = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", text)}
    if size is None or said.get("gather_in0"):
        raise NotPredictedError("the program config has no grid, or gathers its first operand")
    config = _config(
        MatmulProgram.MCAST_IN0 if said.get("mcast_in0") else program,
        GridSpec(cols=int(size[1]), rows=int(size[2])),
        said["in0_block_w"],
        (said["out_block_h"], said["out_block_w"]),
        (said["out_subblock_h"], said["out_subblock_w"]),
        (said["per_core_M"], said["per_core_N"]),
    )
    return config, places


def _read_single_core(row: Row, spec: DeviceSpec, problem: MatmulProblem) -> Read:
    """One core that holds both operands and the output."""
    cut = re.search(r"num_blocks=\d+ of K=(\d+);out subblock (\d+)x(\d+)", row["config"])
    if cut is None:
        raise NotPredictedError("the row does not say blocks and sub-blocks")
    depth, high, wide = map(int, cut.groups())
    whole = (problem.m_tiles, problem.n_tiles)
    config = _config(MatmulProgram.MCAST_2D, GridSpec(cols=1, rows=1), depth // TILE, whole, (high, wide), whole)
    return config, Places(first=Place.OWN, second=Place.OWN, output=Place.OWN)


READERS: Final[dict[str, Callable[[Row, DeviceSpec, MatmulProblem], Read]]] = {
    TUNED: _read_tuned,
    OUT_OF_BOX: _read_out_of_box,
    "profiled": _read_profiled,
    SINGLE: _read_single_core,
}
WHOLE: Final = ("profiled", SINGLE)  # kinds of which the whole program was measured
# What a program lasts longer than its matrix units' threads, which start last and end before the packer: medians of
# profiled matmuls whose outputs stay in shards
APART_NS: Final = {"wormhole_b0": 580, "blackhole": 410}


def read_gemm(row: Row, kind: str) -> Gemm:
    """The matmul that a row of a kind measured."""
    spec = load_spec(CARDS[row["arch"]]) if kind == SINGLE else device_spec(row)
    problem = _problem(row)
    config, places = READERS[kind](row, spec, problem)
    if kind == "profiled" and ("64-core" in row["device"] or "64 cores" in row["device"]):
        spec = spec.replace(grid_cols=8, grid_rows=8)
    if config is None:
        grid = spec.grid if kind in WHOLE else _grid(row, spec)
        release = release_of(OF_2025) if kind == OUT_OF_BOX else None
        in_dram = places == IN_DRAM
        config = interleaved_config(problem, grid, in_dram=in_dram, l1_bytes=spec.l1.usable_bytes, release=release)
    phases, channels = _known(row, "fidelity", PHASES), problem.n_tiles * TILE
    op = MatmulOp(problem=problem, config=config, fidelity_phases=phases, out_channels=channels)
    return Gemm(spec, op, places, whole=kind in WHOLE)
