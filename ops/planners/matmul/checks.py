"""Why a matmul program cannot run with a program config, with the real library's text and ours; ttnn 0.81.1."""

from collections.abc import Iterator

from device.errors import ArgumentError
from device.memory.memory_config import (
    TILE,
    BufferType,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import div_up
from device.spec.parts import GridSpec
from ops.planners.matmul.arguments import MatmulArguments
from ops.programs.buffer_shapes import not_in_l1
from ops.programs.matmul.choice import NARROW_DST_TILES, WIDE_DST_TILES
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

HEIGHT, BLOCK = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED
WIDTH, INTERLEAVED = TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.INTERLEAVED
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
    name = config.program.config_name
    for complaint, about in _complaints(call, problem, config, grid):
        said = complaint if complaint.startswith(NAMELESS) else f"{name}: {complaint}"
        yield f"{said}\n{ADVICE[about]}"


def _complaints(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, grid: GridSpec
) -> Iterator[tuple[str, str]]:
    if config.program is MatmulProgram.SINGLE_TILES:
        yield from _single_tiles(call)
        return
    if config.program is MatmulProgram.DRAM_SHARDED:
        yield from _dram_sharded(call, problem, config)
        return
    if config.fuse_batch and problem.transpose_first and call.batches[0] > 1 and problem.m_tiles > 1:
        *most, depth, rows = call.first.padded_shape
        yield (
            "transpose_a with fuse_batch is not supported when batch dimensions exist and M_per_batch > 1 (batch_size="
            f"{call.batches[0]}, M_per_batch={problem.m_tiles}, a_shape_padded=Shape({[*most, rows, depth]}))",
            "fuse_batch",
        )
    yield from _blocks(problem, config)
    yield from _grid(call, problem, config, grid)
    if config.fuse_batch and problem.second_batched:
        yield (
            "Matmul with fused batch requires input tensors of shapes BCMK*11KN=BCMN or equivalent. Please change the "
            "second input tensor or adjust the program config.",
            "fuse_batch",
        )
    if config.program is not MatmulProgram.REUSE:
        yield from _within_grid(call, config)
    of_program = {
        MatmulProgram.MCAST_IN0: _split_columns,
        MatmulProgram.MCAST_IN1: _split_rows,
        MatmulProgram.MCAST_2D: _split_both,
        MatmulProgram.REUSE: _reuse,
    }
    yield from of_program[config.program](call, problem, config)
    first = call.first.memory_config
    if first.is_sharded() and first.buffer_type is BufferType.DRAM:
        yield not_in_l1("in0" if first.memory_layout is HEIGHT else "in0_sharded", "in0"), "input_tensor_a"
    second = call.second.memory_config
    if config.program is MatmulProgram.REUSE and second.is_sharded() and second.buffer_type is BufferType.DRAM:
        yield not_in_l1("in1", "in1"), "input_tensor_b"
    if call.memory_config.is_sharded() and call.memory_config.buffer_type is BufferType.DRAM:
        yield not_in_l1("out", "output"), "memory_config"
    if call.bias is not None and problem.bias and config.program is MatmulProgram.MCAST_IN0:
        bias = call.bias.memory_config
        if bias.is_sharded() and bias.buffer_type is BufferType.DRAM:
            yield not_in_l1("bias", "bias"), "bias"


def rows_of(problem: MatmulProblem, config: MatmulConfig) -> int:
    """Tile rows of the output that cores share."""
    fused = config.fuse_batch and problem.first_batched
    return problem.m_tiles * (problem.batches if fused or config.program is MatmulProgram.REUSE else 1)


def _blocks(problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
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


def _grid(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, grid: GridSpec
) -> Iterator[tuple[str, str]]:
    """Grids that are too small, or larger than the device."""
    cores = config.grid
    if cores.cols > grid.cols or cores.rows > grid.rows:
        yield (
            f"compute_with_storage_grid_size ({cores.cols}, {cores.rows}) must fit within device grid ({grid.cols}, "
            f"{grid.rows})",
            "grid",
        )
    down = div_up(rows_of(problem, config), config.per_core_m)
    across = div_up(problem.n_tiles, config.per_core_n)
    too_high = config.per_core_m > rows_of(problem, config)
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
        shards = _l1_shards(call)
        blocks = rows_of(problem, config) // config.per_core_m * (problem.n_tiles // config.per_core_n)
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
            f"mcast_in0 requires M ({rows_of(problem, config)}) to fit within a single per_core_M block "
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


def _l1_shards(call: MatmulArguments) -> ShardSpec | None:
    """The L1 shards whose cores a REUSE program uses: of the first operand, or else of the second."""
    places = (call.first.memory_config, call.second.memory_config)
    return next((place.shard_spec for place in places if place.buffer_type is BufferType.L1 and place.shard_spec), None)


def _within_grid(call: MatmulArguments, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Shards of the output on cores that the program does not have."""
    shards, cores = call.memory_config.shard_spec, config.grid
    if shards is not None:
        box = shards.grid.bounding_box()
        if box.end.x >= cores.cols or box.end.y >= cores.rows:
            yield f"output shard grid {shards.grid} must lie within extent {cores.cols}-{cores.rows}", "memory_config"


def _too_high(problem: MatmulProblem, config: MatmulConfig) -> tuple[str, str]:
    """The error of per_core_M above the rows of the output."""
    return (
        f"per_core_M ({config.per_core_m}) exceeds Mt ({rows_of(problem, config)}). Each core would compute more "
        "output row tiles than the tensor has. Reduce per_core_M to at most Mt.",
        "blocks",
    )


def _alike(first: MemoryConfig, output: MemoryConfig) -> Iterator[tuple[str, str]]:
    """A sharded output whose memory differs from that of a sharded first operand."""
    if not output.is_sharded():
        return
    for what, one, other in (
        ("buffer types", first.buffer_type, output.buffer_type),
        ("memory layouts", first.memory_layout, output.memory_layout),
    ):
        if one is not other:
            kind = type(one).__name__
            yield (
                f"input A and output {what} must match, got input: {kind}::{one.name} vs output: {kind}::{other.name}",
                "memory_config",
            )


def _whole_rows(config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Blocks that do not write whole rows of a sharded output."""
    for part in ("subblock", "block"):
        height, width = getattr(config, f"out_{part}_h"), getattr(config, f"out_{part}_w")
        if width != config.per_core_n and height != 1:
            yield (
                f"out_{part}_w ({width}) must equal per_core_N ({config.per_core_n}) or out_{part}_h ({height}) must "
                "be 1",
                "blocks",
            )


def _row_major(place: MemoryConfig) -> Iterator[tuple[str, str]]:
    if place.shard_spec is not None and place.shard_spec.orientation is not ShardOrientation.ROW_MAJOR:
        yield "input A shard orientation must be ROW_MAJOR, got: ShardOrientation::COL_MAJOR", "input_tensor_a"


def _shard_tiles(place: MemoryConfig) -> tuple[int, int]:
    high, wide = (0, 0) if place.shard_spec is None else place.shard_spec.shape
    return high // TILE, wide // TILE


def _split_columns(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Cores that split N."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, (high, wide) = rows_of(problem, config), _shard_tiles(first)
    if first.is_sharded():
        if not config.fuse_batch:
            yield "fuse_batch must be enabled when input A is sharded", "fuse_batch"
        if first.memory_layout is not WIDTH:
            yield (
                "input A must be WIDTH_SHARDED when mcast_in0 or gather_in0 is set, got: "
                f"TensorMemoryLayout::{first.memory_layout.name}",
                "input_tensor_a",
            )
        yield from _alike(first, output)
        yield from _row_major(first)
        if rows != config.per_core_m:
            yield f"M ({rows}) must equal per_core_M ({config.per_core_m})", "blocks"
        if config.per_core_m != high:
            yield (
                f"per_core_M ({config.per_core_m}) must equal shard_shape[0] ({high * TILE}) / in0_tile height "
                f"({TILE})",
                "input_tensor_a",
            )
        if wide % config.in0_block_w:
            yield (
                f"shard_shape[1] ({wide * TILE}) / in0_tile width ({TILE}) must be divisible by in0_block_w "
                f"({config.in0_block_w})",
                "input_tensor_a",
            )
    if output.is_sharded():
        if output.memory_layout is not WIDTH:
            yield (
                f"output memory layout must be WIDTH_SHARDED or BLOCK_SHARDED on a 1-row grid, got: "
                f"TensorMemoryLayout::{output.memory_layout.name}",
                "memory_config",
            )
        if rows != config.per_core_m:
            yield f"M ({rows}) must equal per_core_M ({config.per_core_m})", "blocks"
        yield from _whole_rows(config)
    if second.is_sharded() and second.buffer_type is BufferType.DRAM:
        yield not_in_l1("in1", "in1"), "input_tensor_b"
    if second.is_sharded() and second.buffer_type is BufferType.L1:
        if second.memory_layout is not WIDTH:
            yield (
                f"input B in L1 must be WIDTH_SHARDED, got: TensorMemoryLayout::{second.memory_layout.name}",
                ("input_tensor_b"),
            )
        if _shard_tiles(second)[1] != config.per_core_n:
            yield (
                f"input B shard width in tiles ({_shard_tiles(second)[1]}) must equal per_core_N ({config.per_core_n})",
                "input_tensor_b",
            )
        if call.bias is not None and problem.bias:
            yield from _bias_beside(second, call.bias.memory_config)


def _bias_beside(second: MemoryConfig, bias: MemoryConfig) -> Iterator[tuple[str, str]]:
    """A bias whose shard width differs from that of the second operand in L1."""
    if bias.shard_spec is None or second.shard_spec is None:
        yield "bad optional access", "bias"
    elif bias.shard_spec.shape[1] != second.shard_spec.shape[1]:
        yield (
            f"bias shard width ({bias.shard_spec.shape[1]}) must match input B shard width "
            f"({second.shard_spec.shape[1]})",
            "bias",
        )


def _split_rows(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Cores that split M."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, (high, wide) = rows_of(problem, config), _shard_tiles(first)
    if first.shard_spec is not None:
        if not config.fuse_batch:
            yield "fuse_batch must be enabled when input A is sharded", "fuse_batch"
        if first.memory_layout is not HEIGHT:
            yield (
                f"input A must be HEIGHT_SHARDED, got: TensorMemoryLayout::{first.memory_layout.name}",
                ("input_tensor_a"),
            )
        yield from _alike(first, output)
        yield from _row_major(first)
        blocks, cores = div_up(rows, config.per_core_m), first.shard_spec.num_cores()
        if blocks > cores:
            yield (
                f"number of M blocks ceil(M/per_core_M)={blocks} must not exceed input A shard grid cores ({cores})",
                "input_tensor_a",
            )
        if config.per_core_m != high:
            yield (
                f"per_core_M ({config.per_core_m}) must equal shard_shape[0] / in0_tile.get_height() ({high})",
                "input_tensor_a",
            )
        if problem.k_tiles != wide:
            yield (
                f"K ({problem.k_tiles}) must equal shard_shape[1] ({wide * TILE}) / in0_tile width ({TILE})",
                "input_tensor_a",
            )
    if output.is_sharded():
        if output.memory_layout is not HEIGHT:
            yield (
                f"output memory layout must be HEIGHT_SHARDED or BLOCK_SHARDED on a 1-column grid, got: "
                f"TensorMemoryLayout::{output.memory_layout.name}",
                "memory_config",
            )
        if problem.n_tiles != config.per_core_n:
            yield f"N ({problem.n_tiles}) must equal per_core_N ({config.per_core_n})", "blocks"
        yield from _whole_rows(config)
    if second.memory_layout is not INTERLEAVED:
        yield f"input B must be INTERLEAVED, got: TensorMemoryLayout::{second.memory_layout.name}", "input_tensor_b"


def _split_both(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Cores that split M and N."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    if first.shard_spec is not None:
        yield from _split_both_of_shards(call, problem, config)
    if second.shard_spec is not None:
        yield from _second_of_both(call, config)
    if output.is_sharded():
        if output.memory_layout is not BLOCK:
            yield (
                f"Output memory layout must be BLOCK_SHARDED, got: TensorMemoryLayout::{output.memory_layout.name}",
                ("memory_config"),
            )
        yield from _whole_rows(config)


def _split_both_of_shards(
    call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig
) -> Iterator[tuple[str, str]]:
    first, shards = call.first.memory_config, call.first.shards
    high, wide = _shard_tiles(first)
    if not config.fuse_batch:
        yield "Batch fusion is required when input A is sharded", "fuse_batch"
    if first.memory_layout is WIDTH:
        yield "Unsupported memory layout TensorMemoryLayout::WIDTH_SHARDED.", "input_tensor_a"
    if first.memory_layout is BLOCK:
        wanted = ShardOrientation.COL_MAJOR if config.transpose_mcast else ShardOrientation.ROW_MAJOR
        if shards.orientation is not wanted:
            yield (
                f"Input tensor A must have {wanted.name} shard orientation for "
                f"{'' if config.transpose_mcast else 'non-'}transpose MCAST, got: "
                f"ShardOrientation::{shards.orientation.name}",
                "input_tensor_a",
            )
        yield from _alike(first, call.memory_config)
    else:
        if config.transpose_mcast:
            yield "Transpose MCAST not supported with HEIGHT_SHARDED layout", "input_tensor_a"
        if problem.k_tiles != config.in0_block_w:
            yield f"K ({problem.k_tiles}) must equal in0_block_w ({config.in0_block_w})", "blocks"
        if config.in0_block_w != wide:
            yield (
                f"in0_block_w ({config.in0_block_w}) must equal shard_shape[1] / in0_tile.get_width() ({wide})",
                "input_tensor_a",
            )
        start, cols = shards.grid.bounding_box().start.x, shards.grid.bounding_box().cols
        if cols > 1:
            yield (
                f"Grid bounding box x coordinates must match, got start: {start} vs end: {start + cols - 1}",
                "input_tensor_a",
            )
    if config.per_core_m != high:
        yield (
            f"per_core_M ({config.per_core_m}) must equal shard_shape[0] / in0_tile.get_height() ({high})",
            "input_tensor_a",
        )
    if wide % config.in0_block_w:
        yield (
            f"shard_shape[1] / in0_tile.get_width() ({wide}) must be divisible by in0_block_w ({config.in0_block_w})",
            "input_tensor_a",
        )


def _second_of_both(call: MatmulArguments, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    first, second = call.first.memory_config, call.second.memory_config
    if config.transpose_mcast:
        yield "Transpose MCAST not supported when input B is sharded", "input_tensor_b"
    if second.memory_layout not in (WIDTH, HEIGHT):
        yield (
            "Input B memory layout must be WIDTH_SHARDED, HEIGHT_SHARDED, or DRAM ND_SHARDED, got: "
            f"TensorMemoryLayout::{second.memory_layout.name}",
            "input_tensor_b",
        )
    if second.memory_layout is HEIGHT and second.buffer_type is not BufferType.DRAM:
        yield (
            f"HEIGHT_SHARDED input B is only supported in DRAM, got: BufferType::{second.buffer_type.name}",
            "input_tensor_b",
        )
    if second.buffer_type is not BufferType.DRAM:
        if first.memory_layout not in (HEIGHT, INTERLEAVED):
            yield (
                "Error - non-DRAM width sharded input B requires input A to be interleaved or height sharded, rather "
                f"than TensorMemoryLayout::{first.memory_layout.name}",
                "input_tensor_a",
            )
        if _shard_tiles(second)[1] != config.per_core_n:
            yield (
                f"per_core_N ({config.per_core_n}) must equal input tensor B shard shape[1] / in1_tile.get_width() "
                f"({_shard_tiles(second)[1]})",
                "input_tensor_b",
            )
    box = call.second.shards.grid.bounding_box()
    if second.memory_layout is WIDTH and box.rows > 1:
        yield (
            "Width-sharded input tensor B grid bounding box must have equal start and end y coordinates, got start: "
            f"{box.start.y} vs end: {box.end.y}",
            "input_tensor_b",
        )


def _reuse(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """Cores that split the rows of all batches."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, own, total = problem.m_tiles, config.per_core_m, rows_of(problem, config)
    if own > rows:
        if own % rows:
            yield f"per_core_M, {own}, must be a multiple of M, {rows} if per_core_M > M!", "blocks"
        if total % own:
            yield f"input a total height, {total}, must be divisible by per_core_M, {own}!", "blocks"
    elif rows % own:
        yield f"per_core_M, {own}, must divide M, {rows}, if per_core_M < M!", "blocks"
    if problem.n_tiles != config.per_core_n:
        yield f"N ({problem.n_tiles}) must equal per_core_N ({config.per_core_n})", "blocks"
    if first.shard_spec is not None:
        yield from _reuse_of_shards(call, problem, config)
    if problem.first_batched and problem.batches > 1 and not problem.second_batched:
        yield "Batch broadcasting is not supported for the chosen program config", "blocks"
    if problem.batches > 1 and rows % config.out_subblock_h:
        yield (
            f"out_subblock_h ({config.out_subblock_h}) needs to divide M ({rows}) evenly and does not. Please update "
            "your program config.",
            "blocks",
        )
    if second.shard_spec is not None:
        yield from _reuse_of_second(call, problem, config)
    if output.is_sharded():
        if output.memory_layout is WIDTH:
            yield (
                "Output memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED",
                ("memory_config"),
            )
        if config.out_subblock_w != config.per_core_n and config.out_subblock_h != 1:
            yield (
                f"Either out_subblock_w ({config.out_subblock_w}) must equal per_core_N ({config.per_core_n}) or "
                f"out_subblock_h ({config.out_subblock_h}) must be 1",
                "blocks",
            )
    dealt = output.shard_spec or first.shard_spec or second.shard_spec if output.is_sharded() else None
    blocks, asked = total // own, 0 if dealt is None else dealt.num_cores()
    if blocks < asked and _l1_shards(call) is None:
        yield (
            f"num_output_blocks_total ({blocks}) must be >= num_cores ({asked}); some cores would have no work",
            "memory_config",
        )


def _reuse_of_shards(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    first, (rows, wide) = call.first.memory_config, call.first.shards.shape
    if first.memory_layout is WIDTH:
        yield (
            "input A memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED",
            ("input_tensor_a"),
        )
    if problem.k_tiles * TILE != wide:
        yield f"K ({problem.k_tiles * TILE}) must equal in0 shard_shape[1] ({wide})", "input_tensor_a"
    if wide != config.in0_block_w * TILE:
        yield (
            f"in0 shard_shape[1] ({wide}) must equal in0_block_w ({config.in0_block_w}) * in0_tile width ({TILE})",
            "input_tensor_a",
        )
    if config.per_core_m * TILE != rows:
        yield (
            f"per_core_M ({config.per_core_m}) * in0_tile height ({TILE}) must equal in0 shard_shape[0] ({rows})",
            "input_tensor_a",
        )
    if call.second.memory_config.shard_spec is not None:
        second = call.second.memory_config
        for what, one, other in (
            ("buffer types", first.buffer_type, second.buffer_type),
            ("memory layouts", first.memory_layout, second.memory_layout),
        ):
            if one is not other:
                kind = type(one).__name__
                yield (
                    f"Input tensors A and B must have matching {what}, got A: {kind}::{one.name} vs B: "
                    f"{kind}::{other.name}",
                    "input_tensor_b",
                )
        if call.first.shards.grid != call.second.shards.grid:
            yield "Input tensors A and B must have matching shard spec grids", "input_tensor_b"
    yield from _alike(first, call.memory_config)


def _reuse_of_second(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    second, (rows, wide) = call.second.memory_config, call.second.shards.shape
    if config.per_core_m % problem.m_tiles:
        yield (
            f"per_core_M ({config.per_core_m}) must be a multiple of M ({problem.m_tiles}) when input B is sharded",
            "input_tensor_b",
        )
    if second.memory_layout is WIDTH:
        yield (
            "Input B memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED",
            ("input_tensor_b"),
        )
    if wide != problem.n_tiles * TILE:
        yield (
            f"Input B shard shape[1] ({wide}) must equal padded shape[-1] ({problem.n_tiles * TILE})",
            ("input_tensor_b"),
        )
    if rows % (problem.k_tiles * TILE):
        yield f"Input B shard shape[0] ({rows}) must be divisible by K ({problem.k_tiles * TILE})", "input_tensor_b"


def _dram_sharded(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Iterator[tuple[str, str]]:
    """A core for each bank of DRAM."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    (high, wide), rows = _shard_tiles(first), rows_of(problem, config)
    if not first.is_sharded():
        yield "Input tensor A must be sharded for DRAM sharded program config", "input_tensor_a"
    if not output.is_sharded():
        yield "Output memory config must be sharded for DRAM sharded program config", "memory_config"
    if first.memory_layout is not WIDTH:
        yield (
            f"Input A memory layout must be WIDTH_SHARDED, got: TensorMemoryLayout::{first.memory_layout.name}",
            ("input_tensor_a"),
        )
    yield from _alike(first, output)
    if call.first.shards.orientation is not ShardOrientation.ROW_MAJOR:
        yield "Input A shard orientation must be ROW_MAJOR, got: ShardOrientation::COL_MAJOR", "input_tensor_a"
    if rows != config.per_core_m:
        yield f"M ({rows}) must equal per_core_M ({config.per_core_m})", "blocks"
    if rows != 1:
        yield "currently only support in0 tensor height of tile height", "input_tensor_a"
    if config.per_core_m != high:
        yield (
            f"per_core_M ({config.per_core_m}) must equal shard_shape[0] / in0_tile.get_height() ({high})",
            "input_tensor_a",
        )
    if problem.k_tiles % config.in0_block_w:
        yield f"K ({problem.k_tiles}) must be divisible by in0_block_w ({config.in0_block_w})", "blocks"
    if wide % config.in0_block_w and config.in0_block_w % wide:
        yield (
            f"shard_shape[1] / in0_tile.get_width() ({wide}) and in0_block_w ({config.in0_block_w}) must divide one "
            "another",
            "input_tensor_a",
        )
    if second.memory_layout is not WIDTH:
        yield (
            f"Input B memory layout must be WIDTH_SHARDED, got: TensorMemoryLayout::{second.memory_layout.name}",
            ("input_tensor_b"),
        )
    blocks, in_block = problem.k_tiles // config.in0_block_w, config.in0_block_w // wide
    cores = call.first.shards.num_cores()
    if in_block > 1 and blocks * in_block < cores:
        yield (
            f"in0 block count {blocks} x shards per block {in_block} must cover the {cores} storage cores",
            "input_tensor_a",
        )


def _single_tiles(call: MatmulArguments) -> Iterator[tuple[str, str]]:
    """The errors of a program that multiplies tile by tile, for which tensors must be interleaved."""
    for what, place, about in (
        ("Input A", call.first.memory_config, "input_tensor_a"),
        ("Input B", call.second.memory_config, "input_tensor_b"),
        ("Output", call.memory_config, "memory_config"),
    ):
        if place.is_sharded():
            yield (
                f"{what} memory layout must be INTERLEAVED, got: TensorMemoryLayout::{place.memory_layout.name}",
                about,
            )
