"""The circular buffers of a matmul program, in order of allocation.

The real library makes them as *dataflow buffers*: they take L1 from the bottom as circular buffers do, but a capture
shows them only when nothing is dispatched. Sizes and cores: 0.81.1 on a device without kernels.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle, first_cores
from device.memory.memory_config import TILE, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import DataFormat, div_up
from device.plan import CircularBuffer
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import page_cores, tile_buffer
from ops.programs.matmul.op import SENDS, MatmulOp, MatmulProgram

BUFFERING: Final = 2  # blocks or tiles of an operand in its circular buffer
BANK_BUFFERING: Final = 3  # blocks of a second operand that a core reads from a bank of its own


def program_cores(op: MatmulOp, in_memory: MemoryConfig) -> CoreRangeSet:
    """The cores of a matmul: cores with output, and cores that only send part of the first operand."""
    problem, config, grid = op.problem, op.config, op.config.grid
    if op.single_tiles:
        return page_cores(problem.batches * problem.m_tiles * problem.n_tiles, grid)
    if config.program is MatmulProgram.REUSE:
        return page_cores(op.cores, grid) if in_memory.shard_spec is None else in_memory.shard_spec.grid
    if config.program is MatmulProgram.DRAM_SHARDED and in_memory.shard_spec is not None:
        box = in_memory.shard_spec.grid.bounding_box()
        return core_rectangle(max(grid.cols, box.end.x + 1), max(grid.rows, box.end.y + 1))
    across, down = op.sharers
    if config.program is not MatmulProgram.MCAST_2D:
        start = CoreCoord(0, 0) if in_memory.shard_spec is None else in_memory.shard_spec.grid.bounding_box().start
        return _from(start, first_cores(down * across, grid.cols, grid.rows))
    rows, cols = _output_sides(op)
    if in_memory.shard_spec is not None:
        box = in_memory.shard_spec.grid.bounding_box()
        rows, cols = (max(rows, box.rows), cols) if config.transpose_mcast else (rows, max(cols, box.cols))
    return first_cores(rows * cols, cols, rows)


def _from(start: CoreCoord, cores: CoreRangeSet) -> CoreRangeSet:
    """Cores from (0, 0) on, moved to another first core."""
    if start == CoreCoord(0, 0):
        return cores
    moved = (
        CoreRange(*(CoreCoord(core.x + start.x, core.y + start.y) for core in (box.start, box.end)))
        for box in cores.ranges()
    )
    return CoreRangeSet(tuple(moved))


def _output_sides(op: MatmulOp) -> tuple[int, int]:
    """Rows and columns of cores with output, where cores split both axes."""
    across, down = op.sharers
    return (across, down) if op.config.transpose_mcast else (down, across)


def _output_cores(op: MatmulOp, cores: CoreRangeSet) -> CoreRangeSet:
    """Those of a program's cores that have output."""
    if op.config.program is not MatmulProgram.MCAST_2D:
        return cores
    rows, cols = _output_sides(op)
    return core_rectangle(cols, rows)


class Buffered(NamedTuple):
    """A circular buffer of tiles."""

    name: str
    tiles: int
    data_format: DataFormat
    view_of: str | None = None
    wanted: bool = True
    cores: CoreRangeSet | None = None  # None for those of the program


def matmul_circular_buffers(
    op: MatmulOp, first: PlanTensor, second: PlanTensor, output: PlanTensor, bias: PlanTensor | None = None
) -> tuple[CircularBuffer, ...]:
    """All circular buffers of one matmul program, in order of allocation.

    A bias in L1 shards is read in place if blocks of the first operand are sent to all cores.
    """
    problem, config = op.problem, op.config
    in_memory = first.spec.memory_config
    if config.program is MatmulProgram.REUSE and in_memory.shard_spec is None and _in_l1_shards(second):
        in_memory = second.spec.memory_config
    cores = program_cores(op, in_memory)
    if op.single_tiles:
        formats = {"in0": problem.in_format, "in1": problem.weight_format, "out": problem.out_format}
        return tuple(tile_buffer(name, BUFFERING, data_format, cores) for name, data_format in formats.items())
    out_sharded, partials = output.spec.memory_config.is_sharded(), op.partials_format
    block = config.out_block_h * config.out_block_w
    if config.program is MatmulProgram.REUSE:
        block = config.per_core_m * config.per_core_n
    if config.banks:
        out_sharded = False  # results are sent to their shards, which no buffer borrows
    out_tiles = config.per_core_m * config.per_core_n if out_sharded else block
    as_it_lies = config.program is MatmulProgram.MCAST_IN0 and bias is not None and _in_l1_shards(bias)
    rows = (
        *_first_buffers(op, first, cores),
        _second_buffer(op, second),
        *_shard_views(op, first, cores),
        Buffered("out", out_tiles, problem.out_format, output.name if out_sharded else None),
        Buffered("partials", block, partials, wanted=partials != problem.out_format or block != out_tiles),
        Buffered(
            "bias",
            config.out_block_w,
            problem.added_format,
            bias.name if as_it_lies and bias is not None else None,
            wanted=problem.bias,
        ),
        Buffered("in0_transposed", _own_first_tiles(op), problem.in_format, wanted=problem.transpose_first),
    )
    own = _output_cores(op, cores)
    return tuple(
        tile_buffer(row.name, row.tiles, row.data_format, row.cores or own, row.view_of) for row in rows if row.wanted
    )


def _bank_columns(op: MatmulOp) -> int:
    """Tiles of a row that a core reads from its bank; 0 where cores read from all banks."""
    return div_up(op.problem.n_tiles, op.config.banks) if op.config.banks else 0


def _in_l1_shards(tensor: PlanTensor) -> bool:
    return tensor.in_l1 and tensor.spec.memory_config.is_sharded()


def _own_first_tiles(op: MatmulOp) -> int:
    """Tiles of the first operand that a core brings and holds."""
    config, depth = op.config, _depths(op)[0]
    if config.program is MatmulProgram.REUSE:
        return BUFFERING * min(config.per_core_m, op.problem.m_tiles) * config.in0_block_w
    return depth * (config.per_core_m if op.problem.keeps_first else config.out_block_h)


def _first_buffers(op: MatmulOp, first: PlanTensor, cores: CoreRangeSet) -> Iterator[Buffered]:
    """The first operand's buffers: a view of shards if they have all of K, otherwise received blocks."""
    config, data_format, shards = op.config, op.problem.in_format, first.spec.memory_config.shard_spec
    if shards is None:
        yield Buffered("in0", _own_first_tiles(op), data_format)
        return
    wide = shards.shape[1] // TILE
    shard_tiles = config.per_core_m * wide
    high = first.spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if high and config.program is MatmulProgram.MCAST_2D:
        yield Buffered("in0", config.out_block_h * wide, data_format, first.name)
        return
    # Blocks that are needed again, for other columns, are copied out of the shards
    again = config.out_block_h < config.per_core_m and config.out_block_w < config.per_core_n
    if config.program is MatmulProgram.REUSE or (high and wide == config.in0_block_w and not again):
        yield Buffered("in0", shard_tiles, data_format, first.name)
    elif high:
        yield Buffered("in0", shard_tiles, data_format)
        yield Buffered("in0_shard", config.out_block_h * config.in0_block_w, data_format, first.name)
    else:
        yield Buffered("in0", _own_first_tiles(op), data_format)
        if idle := _without_output(op, shards.grid, cores):
            yield Buffered("in0", _own_first_tiles(op), data_format, cores=idle)


def _without_output(op: MatmulOp, senders: CoreRangeSet, cores: CoreRangeSet) -> CoreRangeSet | None:
    """Cores that only send their shards; None without such cores."""
    if op.config.program is MatmulProgram.MCAST_2D:
        beyond = set(cores.cores()) - set(_output_cores(op, cores).cores())
        return CoreRangeSet([CoreRange(min(beyond), max(beyond))]) if beyond else None
    if op.config.program is not MatmulProgram.MCAST_IN0:
        return None
    idle = sorted(set(senders.cores()) - set(cores.cores()), key=lambda core: (core.y, core.x))
    if not idle:
        return None
    begun, last = cores.ranges[-1].end.y, [core for core in idle if core.y > cores.ranges[-1].end.y]
    parts = last, [core for core in idle if core.y <= begun]  # full rows before the begun one
    ranges = [CoreRangeSet([CoreRange(core, core) for core in part]).merged().ranges for part in parts if part]
    return CoreRangeSet([core_range for part in ranges for core_range in part])


def _shard_views(op: MatmulOp, first: PlanTensor, cores: CoreRangeSet) -> Iterator[Buffered]:
    """The shards of a first operand that cores send to others, and a block that is put together from several shards."""
    shards, depth = first.spec.memory_config.shard_spec, op.config.in0_block_w
    if op.config.banks and shards is not None and shards.shape[1] < depth * TILE:
        yield Buffered("in0_gathered", op.config.per_core_m * depth, op.problem.in_format)
    high = first.spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    sent = SENDS.get(op.config.program, (False, False))[0] and not op.config.banks
    if shards is not None and not high and sent:
        tiles, idle = op.config.per_core_m * (shards.shape[1] // TILE), _without_output(op, shards.grid, cores)
        everywhere = (
            None if idle is None else CoreRangeSet([*_output_cores(op, cores).ranges(), *idle.ranges()]).merged()
        )
        yield Buffered("in0_shard", tiles, op.problem.in_format, first.name, cores=everywhere)


def _second_buffer(op: MatmulOp, second: PlanTensor) -> Buffered:
    """The second operand's buffer: a view of its L1 shards, or blocks."""
    config, data_format = op.config, op.problem.weight_format
    shards = second.spec.memory_config.shard_spec
    if config.banks:
        tiles = _bank_columns(op) * config.in0_block_w * (BANK_BUFFERING if op.k_blocks > 1 else 1)
        return Buffered("in1", tiles, data_format)
    if shards is not None and second.in_l1:
        return Buffered("in1", shards.shape[0] * shards.shape[1] // TILE**2, data_format, second.name)
    return Buffered("in1", config.out_block_w * _depths(op)[1], data_format)


def _depths(op: MatmulOp) -> tuple[int, int]:
    """K tiles of each operand in the buffers: two blocks if a core processes several blocks, of any batch.

    A first operand that all batches share is kept whole. If cores split only one axis, a second operand of one block is
    not read again for the next batch.
    """
    problem, single = op.problem, op.config.in0_block_w
    if op.config.program is MatmulProgram.REUSE:
        return BUFFERING * single, BUFFERING * single
    brought = problem.batches if problem.second_batched or op.config.program is MatmulProgram.MCAST_2D else 1
    first, second = (single * (BUFFERING if op.k_blocks * batches > 1 else 1) for batches in (problem.batches, brought))
    return (op.k_blocks * single if problem.keeps_first else first), second
