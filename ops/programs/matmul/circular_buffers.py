"""The circular buffers of a matmul program, in order of allocation.

The real library makes them as *dataflow buffers*: they take L1 from the bottom as circular buffers do, but a capture
shows them only when nothing is dispatched. Sizes and cores: 0.81.1 on a device without kernels.
"""

from device.cores import CoreRangeSet, first_cores
from device.memory.memory_config import MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.numbers.integers import div_up
from device.plan import CircularBuffer
from ops.programs.actions.pieces import tile_buffer
from ops.programs.actions.work_cores import page_cores
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, k_blocks, partials_format

BUFFERING = 2  # blocks or tiles of an operand


def program_cores(problem: MatmulProblem, config: MatmulConfig, in_memory: MemoryConfig) -> CoreRangeSet:
    """The cores of a matmul: those with output, and those that only send their part of the first operand."""
    grid = config.grid
    if config.program is MatmulProgram.SINGLE_TILES:
        return page_cores(problem.batches * problem.m_tiles * problem.n_tiles, grid)
    down, across = div_up(problem.m_tiles, config.per_core_m), div_up(problem.n_tiles, config.per_core_n)
    if config.program is not MatmulProgram.MCAST_2D:
        return first_cores(down * across, grid.cols, grid.rows)
    rows, cols = (across, down) if config.transpose_mcast else (down, across)
    if in_memory.shard_spec is not None:
        box = in_memory.shard_spec.grid.bounding_box()
        rows, cols = (max(rows, box.rows), cols) if config.transpose_mcast else (rows, max(cols, box.cols))
    return first_cores(rows * cols, cols, rows)


def matmul_circular_buffers(
    problem: MatmulProblem,
    config: MatmulConfig,
    *,
    source: str,
    in_memory: MemoryConfig,
    output: str,
    out_sharded: bool,
) -> tuple[CircularBuffer, ...]:
    """All circular buffers of one matmul program, in order of allocation.

    Args:
        source: Name of the first operand.
        in_memory: Where that lies.
        out_sharded: The output is sharded: its buffer is a view of it.
    """
    cores = program_cores(problem, config, in_memory)
    made: list[CircularBuffer] = []

    def add(name: str, tiles: int, data_format: DataFormat, view_of: str | None = None) -> None:
        made.append(tile_buffer(name, tiles, data_format, cores, view_of))

    if config.program is MatmulProgram.SINGLE_TILES:
        add("in0", BUFFERING, problem.in_format)
        add("in1", BUFFERING, problem.weight_format)
        add("out", BUFFERING, problem.out_format)
        return tuple(made)
    shards = in_memory.shard_spec
    shard_tiles = 0 if shards is None else config.per_core_m * (shards.shape[1] // TILE)
    first_depth, second_depth = _depths(problem, config)
    held_first = 0
    if shards is not None and config.program is MatmulProgram.MCAST_IN1:
        add("in0", shard_tiles, problem.in_format, view_of=source)
    else:
        rows = config.per_core_m if problem.keeps_first else config.out_block_h
        held_first = rows * first_depth
        add("in0", held_first, problem.in_format)
    add("in1", config.out_block_w * second_depth, problem.weight_format)
    if shards is not None and config.program is MatmulProgram.MCAST_2D:
        add("in0_shard", shard_tiles, problem.in_format, view_of=source)
    block = config.out_block_h * config.out_block_w
    held = config.per_core_m * config.per_core_n if out_sharded else block
    add("out", held, problem.out_format, view_of=output if out_sharded else None)
    partials = partials_format(problem, config)
    if partials != problem.out_format:
        add("partials", block, partials)
    if problem.bias:
        add("bias", config.out_block_w, problem.added_format)
    if problem.transpose_first:
        add("in0_transposed", held_first, problem.in_format)
    return tuple(made)


def _depths(problem: MatmulProblem, config: MatmulConfig) -> tuple[int, int]:
    """K tiles of each operand that the buffers hold: two blocks where one follows another, of whatever batch.

    A first operand that all batches share is held whole. Where cores split one axis only, a second operand of one
    block is not brought again for the next batch.
    """
    blocks, one = k_blocks(problem, config), config.in0_block_w
    first = one * (BUFFERING if blocks * problem.batches > 1 else 1)
    brought = problem.batches if problem.second_batched or config.program is MatmulProgram.MCAST_2D else 1
    second = one * (BUFFERING if blocks * brought > 1 else 1)
    return (blocks * one if problem.keeps_first else first), second
