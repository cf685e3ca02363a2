"""The circular buffers of a matmul program, in order of allocation.

The real library makes them as *dataflow buffers*: they take L1 from the bottom as circular buffers do, but a capture
shows them only when nothing is dispatched. Sizes and cores: 0.81.1 on a device without kernels.
"""

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.memory_config import MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.numbers.integers import div_up
from device.plan import CircularBuffer
from device.spec.parts import GridSpec
from ops.programs.matmul.config import MatmulConfig, MatmulProblem, MatmulProgram, k_blocks, partials_format

BUFFERING = 2  # blocks or tiles of an operand


def program_cores(problem: MatmulProblem, config: MatmulConfig, in_memory: MemoryConfig) -> CoreRangeSet:
    """The cores of a matmul: those with output, and those that only send their part of the first operand."""
    grid = config.grid
    if config.program is MatmulProgram.SINGLE_TILES:
        count = min(problem.m_tiles * problem.n_tiles, grid.rows * grid.cols)
        return _column_wise(count, grid)
    down, across = div_up(problem.m_tiles, config.per_core_m), div_up(problem.n_tiles, config.per_core_n)
    if config.program is not MatmulProgram.MCAST_2D:
        return first_cores(down * across, grid.cols, grid.rows)
    rows, cols = (across, down) if config.transpose_mcast else (down, across)
    if in_memory.shard_spec is not None:
        box = in_memory.shard_spec.grid.bounding_box()
        rows, cols = (max(rows, box.rows), cols) if config.transpose_mcast else (rows, max(cols, box.cols))
    return first_cores(rows * cols, cols, rows)


def _column_wise(count: int, grid: GridSpec) -> CoreRangeSet:
    """The first cores, column by column, as ranges of whole rows: those that reach into the last column come first."""
    columns, rest = divmod(count, grid.rows)
    bands = [(0, rest, columns + 1), (rest, grid.rows, columns)] if rest else [(0, grid.rows, columns)]
    return CoreRangeSet(
        CoreRange(CoreCoord(0, first), CoreCoord(width - 1, end - 1)) for first, end, width in bands if width
    )


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
        problem: The matmul.
        config: Its program.
        source: Name of the first operand.
        in_memory: Where that lies.
        output: Name of the output.
        out_sharded: The output is sharded: its buffer is a view of it.
    """
    cores = program_cores(problem, config, in_memory)
    made: list[CircularBuffer] = []

    def add(name: str, tiles: int, data_format: DataFormat, view_of: str | None = None) -> None:
        page = data_format.tile_bytes
        one = CircularBuffer(
            name=name,
            size_bytes=tiles * page,
            page_bytes=page,
            data_format=data_format,
            cores=cores,
            view_of=view_of,
        )
        made.append(one)

    if config.program is MatmulProgram.SINGLE_TILES:
        add("in0", BUFFERING, problem.in_format)
        add("in1", BUFFERING, problem.weight_format)
        add("out", BUFFERING, problem.out_format)
        return tuple(made)
    shards = in_memory.shard_spec
    shard_tiles = 0 if shards is None else config.per_core_m * (shards.shape[1] // TILE)
    depth = config.in0_block_w * (BUFFERING if k_blocks(problem, config) > 1 else 1)
    if shards is not None and config.program is MatmulProgram.MCAST_IN1:
        add("in0", shard_tiles, problem.in_format, view_of=source)
    else:
        add("in0", config.out_block_h * depth, problem.in_format)
    add("in1", config.out_block_w * depth, problem.weight_format)
    if shards is not None and config.program is MatmulProgram.MCAST_2D:
        add("in0_shard", shard_tiles, problem.in_format, view_of=source)
    block = config.out_block_h * config.out_block_w
    held = config.per_core_m * config.per_core_n if out_sharded else block
    add("out", held, problem.out_format, view_of=output if out_sharded else None)
    partials = partials_format(problem, config)
    if partials != problem.out_format:
        add("partials", block, partials)
    if problem.bias:
        add("bias", config.out_block_w, problem.weight_format)
    return tuple(made)
