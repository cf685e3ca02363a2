"""What each matmul program wants of its operands and of its output: the real library's text, and what it is about."""

from collections.abc import Callable, Iterator
from typing import Final

from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import div_up
from ops.planners.matmul.arguments import MatmulArguments
from ops.programs.buffer_shapes import not_in_l1
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

HEIGHT, BLOCK = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.BLOCK_SHARDED
WIDTH, INTERLEAVED = TensorMemoryLayout.WIDTH_SHARDED, TensorMemoryLayout.INTERLEAVED
Complaints = Iterator[tuple[str, str]]  # The text of an error, and the tensor or field that it is about


def _alike(first: MemoryConfig, output: MemoryConfig) -> Complaints:
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


def _whole_rows(config: MatmulConfig) -> Complaints:
    """Blocks that do not write whole rows of a sharded output."""
    for part in ("subblock", "block"):
        height, width = getattr(config, f"out_{part}_h"), getattr(config, f"out_{part}_w")
        if width != config.per_core_n and height != 1:
            yield (
                f"out_{part}_w ({width}) must equal per_core_N ({config.per_core_n}) or out_{part}_h ({height}) must "
                "be 1",
                "blocks",
            )


def _row_major(place: MemoryConfig) -> Complaints:
    if place.shard_spec is not None and place.shard_spec.orientation is not ShardOrientation.ROW_MAJOR:
        yield "input A shard orientation must be ROW_MAJOR, got: ShardOrientation::COL_MAJOR", "input_tensor_a"


def _shard_tiles(place: MemoryConfig) -> tuple[int, int]:
    high, wide = (0, 0) if place.shard_spec is None else place.shard_spec.shape
    return high // TILE, wide // TILE


def split_columns(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Cores that split N."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, (high, wide) = config.rows_of(problem), _shard_tiles(first)
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
    elif second.is_sharded():
        yield from _second_of_columns(call, problem, config)


def _second_of_columns(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Shards of the second operand in L1, which each core has for its columns, and the bias beside them."""
    second = call.second.memory_config
    if second.memory_layout is not WIDTH:
        yield (
            f"input B in L1 must be WIDTH_SHARDED, got: TensorMemoryLayout::{second.memory_layout.name}",
            "input_tensor_b",
        )
    if _shard_tiles(second)[1] != config.per_core_n:
        yield (
            f"input B shard width in tiles ({_shard_tiles(second)[1]}) must equal per_core_N ({config.per_core_n})",
            "input_tensor_b",
        )
    if call.bias is not None and problem.bias:
        yield from _bias_beside(second, call.bias.memory_config)


def _bias_beside(second: MemoryConfig, bias: MemoryConfig) -> Complaints:
    """A bias whose shard width differs from that of the second operand in L1."""
    if bias.shard_spec is None or second.shard_spec is None:
        yield "bad optional access", "bias"
    elif bias.shard_spec.shape[1] != second.shard_spec.shape[1]:
        yield (
            f"bias shard width ({bias.shard_spec.shape[1]}) must match input B shard width "
            f"({second.shard_spec.shape[1]})",
            "bias",
        )


def split_rows(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Cores that split M."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, (high, wide) = config.rows_of(problem), _shard_tiles(first)
    if first.shard_spec is not None:
        if not config.fuse_batch:
            yield "fuse_batch must be enabled when input A is sharded", "fuse_batch"
        if first.memory_layout is not HEIGHT:
            yield (
                f"input A must be HEIGHT_SHARDED, got: TensorMemoryLayout::{first.memory_layout.name}",
                "input_tensor_a",
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


def split_both(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Cores that split M and N."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    if first.shard_spec is not None:
        yield from _split_both_of_shards(call, problem, config)
    if second.shard_spec is not None:
        yield from _second_of_both(call, problem, config)
    if output.is_sharded():
        if output.memory_layout is not BLOCK:
            yield (
                f"Output memory layout must be BLOCK_SHARDED, got: TensorMemoryLayout::{output.memory_layout.name}",
                ("memory_config"),
            )
        yield from _whole_rows(config)


def _split_both_of_shards(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
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


def _second_of_both(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
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
    if second.memory_layout is HEIGHT:
        yield from _batches_in_dram(_shard_tiles(second), problem, config)
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


def _batches_in_dram(shard: tuple[int, int], problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """HEIGHT shards of the second operand, which hold whole batches; `shard` is in tiles."""
    high, wide = shard
    if config.fuse_batch:
        yield "HEIGHT_SHARDED input B requires fuse_batch=false for batched matmul", "fuse_batch"
    if wide != problem.n_tiles:
        yield (
            f"HEIGHT_SHARDED input B shard width ({wide} tiles) must equal N ({problem.n_tiles} tiles)",
            "input_tensor_b",
        )
    if high < problem.k_tiles:
        yield (
            f"HEIGHT_SHARDED input B shard height ({high} tiles) must be >= K ({problem.k_tiles} tiles)",
            "input_tensor_b",
        )


def reuse(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Cores that split the rows of all batches."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    rows, own, total = problem.m_tiles, config.per_core_m, config.rows_of(problem)
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
    if blocks < asked and call.l1_shards is None:
        yield (
            f"num_output_blocks_total ({blocks}) must be >= num_cores ({asked}); some cores would have no work",
            "memory_config",
        )


def _reuse_of_shards(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    first, (rows, wide) = call.first.memory_config, call.first.shards.shape
    if first.memory_layout is WIDTH:
        yield (
            "input A memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED",
            "input_tensor_a",
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


def _reuse_of_second(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    second, (rows, wide) = call.second.memory_config, call.second.shards.shape
    if config.per_core_m % problem.m_tiles:
        yield (
            f"per_core_M ({config.per_core_m}) must be a multiple of M ({problem.m_tiles}) when input B is sharded",
            "input_tensor_b",
        )
    if second.memory_layout is WIDTH:
        yield (
            "Input B memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED",
            "input_tensor_b",
        )
    if wide != problem.n_tiles * TILE:
        yield (
            f"Input B shard shape[1] ({wide}) must equal padded shape[-1] ({problem.n_tiles * TILE})",
            "input_tensor_b",
        )
    if rows % (problem.k_tiles * TILE):
        yield f"Input B shard shape[0] ({rows}) must be divisible by K ({problem.k_tiles * TILE})", "input_tensor_b"


def dram_sharded(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """A core for each bank of DRAM."""
    first, second, output = call.first.memory_config, call.second.memory_config, call.memory_config
    (high, wide), rows = _shard_tiles(first), config.rows_of(problem)
    if not first.is_sharded():
        yield "Input tensor A must be sharded for DRAM sharded program config", "input_tensor_a"
    if not output.is_sharded():
        yield "Output memory config must be sharded for DRAM sharded program config", "memory_config"
    if first.memory_layout is not WIDTH:
        yield (
            f"Input A memory layout must be WIDTH_SHARDED, got: TensorMemoryLayout::{first.memory_layout.name}",
            "input_tensor_a",
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
            "input_tensor_b",
        )
    blocks, in_block = problem.k_tiles // config.in0_block_w, config.in0_block_w // wide
    cores = call.first.shards.num_cores()
    if in_block > 1 and blocks * in_block < cores:
        yield (
            f"in0 block count {blocks} x shards per block {in_block} must cover the {cores} storage cores",
            "input_tensor_a",
        )


def single_tiles(call: MatmulArguments, _problem: MatmulProblem, _config: MatmulConfig) -> Complaints:
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


def in_dram(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig) -> Complaints:
    """Shards in DRAM, which no circular buffer borrows; `split_columns` looks at those of the second operand itself."""
    first, bias = call.first.memory_config, call.bias
    borrowed = [("in0" if first.memory_layout is HEIGHT else "in0_sharded", "in0", first, "input_tensor_a")]
    if config.program is MatmulProgram.REUSE:
        borrowed.append(("in1", "in1", call.second.memory_config, "input_tensor_b"))
    borrowed.append(("out", "output", call.memory_config, "memory_config"))
    if bias is not None and problem.bias and config.program is MatmulProgram.MCAST_IN0:
        borrowed.append(("bias", "bias", bias.memory_config, "bias"))
    for buffer, tensor, place, about in borrowed:
        if place.is_sharded() and place.buffer_type is BufferType.DRAM:
            yield not_in_l1(buffer, tensor), about


OF_PROGRAM: Final[dict[MatmulProgram, Callable[[MatmulArguments, MatmulProblem, MatmulConfig], Complaints]]] = {
    MatmulProgram.MCAST_IN0: split_columns,
    MatmulProgram.MCAST_IN1: split_rows,
    MatmulProgram.MCAST_2D: split_both,
    MatmulProgram.REUSE: reuse,
    MatmulProgram.DRAM_SHARDED: dram_sharded,
    MatmulProgram.SINGLE_TILES: single_tiles,
}
