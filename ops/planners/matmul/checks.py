"""Why a matmul program cannot run with a program config, with the real library's text and ours; ttnn 0.81.1."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

from device.errors import ArgumentError
from device.numbers.formats import div_up
from device.spec.parts import GridSpec
from ops.planners.matmul.arguments import MatmulArguments
from ops.planners.matmul.program_checks import OF_PROGRAM, Complaints, in_dram
from ops.programs.matmul.choice import NARROW_DST_TILES, WIDE_DST_TILES
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

# What the library says without the config
NAMELESS = "in0 block count", "num_output_blocks_total", "DFB", "bad optional access"
ADVICE = {  # what to do about a refusal, by the tensor or field that it is about
    "blocks": "program_config: choose blocks that divide a core's part of the output",
    "input_tensor_a": "input_tensor_a: shard it as the program config deals it to cores, or use interleaved memory",
    "input_tensor_b": "input_tensor_b: use interleaved memory, or shard it as the program config wants",
    "bias": "bias: use interleaved memory, or beside shards of input_tensor_b in L1 as wide shards in L1",
    "memory_config": "memory_config: let the output lie as the program config deals it to cores, or interleaved",
    "grid": "program_config: give its grid enough cores for all blocks of the output",
    "fuse_batch": "program_config: set fuse_batch as the operands need it",
}


SIDES = ("in0_block_w", "out_subblock_h", "out_subblock_w", "out_block_h", "out_block_w", "per_core_m", "per_core_n")


def require_sides(config: MatmulConfig, *sides: str) -> None:
    """Raises ArgumentError for a side of 0 tiles; of the given fields, or of all."""
    for field in sides or SIDES:
        if getattr(config, field) == 0:
            side = field.replace("_m", "_M").replace("_n", "_N")
            raise ArgumentError(f"{config.program.config_name}: {side} is 0, which is not valid\n{ADVICE['blocks']}")


def refusals(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, grid: GridSpec) -> Iterator[str]:
    """All that speaks against a program, the real library's first complaint first."""
    yield from _said(config, chain(_of_blocks(call, problem, config, grid), _complaints(call, problem, config)))


def block_refusals(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, grid: GridSpec
) -> Iterator[str]:
    """All that speaks against the blocks of a program and its grid."""
    yield from _said(config, _of_blocks(call, problem, config, grid))


def _said(config: MatmulConfig, complaints: Complaints) -> Iterator[str]:
    """Complaints in the real library's words, with advice."""
    for complaint, about in complaints:
        said = complaint if complaint.startswith(NAMELESS) else f"{config.program.config_name}: {complaint}"
        yield f"{said}\n{ADVICE[about]}"


UNBLOCKED: Final = (MatmulProgram.SINGLE_TILES, MatmulProgram.DRAM_SHARDED)  # have checks of their own


def _of_blocks(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, grid: GridSpec) -> Complaints:
    if config.program in UNBLOCKED:
        return
    if config.grid.cols > grid.cols or config.grid.rows > grid.rows:
        yield (
            f"compute_with_storage_grid_size ({config.grid.cols}, {config.grid.rows}) must fit within device grid "
            f"({grid.cols}, {grid.rows})",
            "grid",
        )
    yield from _blocks(problem, config)
    yield from _grid(call, problem, config)


def _complaints(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    if config.program in UNBLOCKED:
        yield from OF_PROGRAM[config.program](call, problem, config)
        return
    if config.fuse_batch and problem.second_batched:
        yield (
            "Matmul with fused batch requires input tensors of shapes BCMK*11KN=BCMN or equivalent. Please change the "
            "second input tensor or adjust the program config.",
            "fuse_batch",
        )
    if config.fuse_batch and problem.transpose_first and call.batches[0] > 1 and problem.m_tiles > 1:
        *most, depth, rows = call.first.padded_shape
        yield (
            "transpose_a with fuse_batch is not supported when batch dimensions exist and M_per_batch > 1 (batch_size="
            f"{call.batches[0]}, M_per_batch={problem.m_tiles}, a_shape_padded=Shape({[*most, rows, depth]}))",
            "fuse_batch",
        )
    if config.program is not MatmulProgram.REUSE:
        yield from _within_grid(call, config)
    yield from OF_PROGRAM[config.program](call, problem, config)
    yield from in_dram(call, problem, config)


def _blocks(problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Blocks whose size does not divide the size of what they split."""
    pairs = [
        ("Kt", problem.k_tiles, "in0_block_w", config.in0_block_w),
        ("out_block_h", config.out_block_h, "out_subblock_h", config.out_subblock_h),
        ("out_block_w", config.out_block_w, "out_subblock_w", config.out_subblock_w),
        ("per_core_M", config.per_core_m, "out_block_h", config.out_block_h),
        ("per_core_N", config.per_core_n, "out_block_w", config.out_block_w),
        ("per_core_M", config.per_core_m, "out_subblock_h", config.out_subblock_h),
        ("per_core_N", config.per_core_n, "out_subblock_w", config.out_subblock_w),
    ]
    if config.program is MatmulProgram.REUSE:
        pairs = [pairs[0], *pairs[5:]]
    for whole_name, whole, part_name, part in pairs:
        if whole % part:
            yield f"{whole_name} ({whole}) must be divisible by {part_name} ({part})", "blocks"
    most = WIDE_DST_TILES if problem.fp32_dest else NARROW_DST_TILES
    if config.out_subblock_h * config.out_subblock_w > most:
        yield (
            f"out_subblock_w {config.out_subblock_w} times out_subblock_h {config.out_subblock_h} needs to be at most "
            f"{most} to fit in hardware",
            "blocks",
        )


def _grid(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Grids that are too small."""
    cores = config.grid
    down = div_up(config.rows_of(problem), config.per_core_m)
    across = div_up(problem.n_tiles, config.per_core_n)
    too_high = config.per_core_m > config.rows_of(problem)
    if config.program is MatmulProgram.MCAST_2D and too_high:
        yield _too_high(problem, config)
    if config.program is MatmulProgram.MCAST_2D:
        wide, high = (down, across) if config.transpose_mcast else (across, down)
        for axis, blocks, lines, have in (("x", wide, "columns", cores.cols), ("y", high, "rows", cores.rows)):
            if blocks > have:
                yield (
                    f"Num output blocks along {axis} ({blocks}) must be smaller than or equal to the number of {lines} "
                    f"in compute grid ({have})!",
                    "grid",
                )
    elif config.program is MatmulProgram.REUSE:
        shards = call.l1_shards
        blocks = config.rows_of(problem) // config.per_core_m * (problem.n_tiles // config.per_core_n)
        if shards is not None and blocks % shards.num_cores():
            yield (
                f"num_output_blocks ({blocks}) must be evenly divisible by the number of cores in the input shard grid "
                f"({shards.num_cores()})",
                "input_tensor_a",
            )
    elif down * across > cores.cores:
        yield f"Number of blocks exceeds number of cores: {down * across} blocks > {cores.cores} cores", "grid"
    elif config.program is MatmulProgram.MCAST_IN0 and down > 1:
        yield (
            f"mcast_in0 requires M ({config.rows_of(problem)}) to fit within a single per_core_M block "
            f"({config.per_core_m}), got num_blocks_y={down}",
            "blocks",
        )
    elif config.program is MatmulProgram.MCAST_IN1 and across > 1:
        yield (
            f"mcast_in1 requires N ({problem.n_tiles}) to fit within a single per_core_N block ({config.per_core_n}), "
            f"got num_blocks_x={across}. A single in1 sender multicasts one per_core_N-wide weight slice to the whole "
            "grid, so multi-column N is not supported here; use MatmulMultiCoreReuseMultiCastProgramConfig (the 2D "
            "factory) for multi-column N.",
            "blocks",
        )
    elif config.program is MatmulProgram.MCAST_IN1 and too_high:
        yield _too_high(problem, config)


def _within_grid(call: MatmulArguments, config: MatmulConfig) -> Complaints:
    """Shards of the output on cores that the program does not have."""
    shards, cores = call.memory_config.shard_spec, config.grid
    if shards is not None:
        box = shards.grid.bounding_box()
        if box.end.x >= cores.cols or box.end.y >= cores.rows:
            yield f"output shard grid {shards.grid} must lie within extent {cores.cols}-{cores.rows}", "memory_config"


def _too_high(problem: MatmulProblem, config: MatmulConfig) -> tuple[str, str]:
    """The error of per_core_M above the rows of the output."""
    return (
        f"per_core_M ({config.per_core_m}) exceeds Mt ({config.rows_of(problem)}). Each core would compute more "
        "output row tiles than the tensor has. Reduce per_core_M to at most Mt.",
        "blocks",
    )
