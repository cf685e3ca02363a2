"""The effect on any grid of the library's rules for real cards: idle cores, and blocks that are too small.

A rule that costs nothing on 8x8 cores may leave most of another grid idle. Reports name such a rule as a decision of
the planner. Rules that the caller overrides (`core_grid`, a program config, shards) are not named.
"""

from collections.abc import Iterator
from typing import Final

from device.memory.memory_config import TILE, ShardOrientation
from device.numbers.formats import div_up
from device.plan import Decision
from device.spec.parts import GridSpec
from ops.builder import PlanBuilder
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ConvPartition, ParallelConfig, most_cores, scheme_alignment
from ops.programs.matmul.choice import square_blocks
from ops.programs.matmul.op import MatmulOp, MatmulProgram

GRID_RULE: Final = "grid_rule"
MOST_BUSY: Final = 0.75  # of cores, columns or rows; more are not worth a sentence

SEVERAL_BLOCKS: Final = 8  # of K; what fewer cost is little


def name_rules(builder: PlanBuilder, rules: Iterator[str]) -> None:
    """Records the effects of rules as decisions of the plan."""
    for number, text in enumerate(rules):
        builder.decide(Decision(name=GRID_RULE, value=number, text=f"the planner's rule {text}"))


def conv_rules(layout: ConvPartition, grid: GridSpec, *, matmul: bool = False) -> Iterator[str]:
    """The effects of the choice of cores on a convolution, or on the matmul of a 1x1 convolution."""
    problem, config, shards, options = layout.problem, layout.config, layout.shards, layout.options
    if options.core_grid is not None:
        return
    limit = grid.rows if config.orientation is ShardOrientation.COL_MAJOR else grid.cols
    alignment = TILE if matmul else scheme_alignment(problem, config.scheme)
    if most_cores(div_up(problem.in_channels, alignment), limit) != config.channel_cores:
        alignment = TILE  # as the input lay before, in tiles
    parts, out_tiles = div_up(problem.in_channels, alignment), div_up(problem.out_channels, TILE)
    side = "rows" if config.orientation is ShardOrientation.COL_MAJOR else "columns"
    if config.scheme is BLOCK and shards.in_width < min(TILE, problem.in_channels):
        whole = layout.blocks.k_blocks // config.channel_cores * div_up(problem.in_channels, TILE)
        yield (
            f"spreads {problem.in_channels} channels over {config.channel_cores} {side} of cores, {shards.in_width} on "
            f"each: {layout.blocks.k_blocks} K blocks are multicast, where shards of a whole tile would make {whole}"
        )
    channel_cores = max(config.channel_cores, layout.out_config.channel_cores)
    tiles = f"{parts} tiles" if parts == out_tiles else f"{parts} and {out_tiles} tiles"
    divide = f"no larger number of them divides {tiles} of channels"
    even = f"{parts} parts of {alignment} channels are dealt evenly, {div_up(parts, config.channel_cores)} to each"
    dealt = max(parts, out_tiles), divide if matmul else even
    rows = div_up(problem.out_rows, TILE), _even_rows(div_up(problem.out_rows, TILE), config)
    yield from _idle(config, channel_cores, grid, rows=rows, channels=dealt)


def pool_rules(config: ParallelConfig, grid: GridSpec, *, rows: int, unit: str, channel_parts: int) -> Iterator[str]:
    """The effects of the choice of cores on a pool, which splits rows (in units such as tiles) and channels."""
    even = f"{rows} {unit} of outputs are dealt evenly, {div_up(rows, config.nhw_cores)} to each"
    divide = f"no larger number of them divides the parts of channels, {channel_parts}"
    yield from _idle(config, config.channel_cores, grid, rows=(rows, even), channels=(channel_parts, divide))


def matmul_rules(op: MatmulOp, l1_bytes: int) -> Iterator[str]:
    """The effects of the choice of a program on a product of interleaved operands."""
    problem, config = op.problem, op.config
    grid = config.grid
    side = square_blocks(problem, l1_bytes)
    down, across = div_up(problem.m_tiles, side), div_up(problem.n_tiles, side)
    if config.program is MatmulProgram.SINGLE_TILES and (down > grid.rows or across > grid.cols):
        yield (
            f"multiplies tile by tile, each core by itself: in L1 the {down}x{across} blocks of {side}x{side} tiles do "
            f"not fit {grid.rows} rows and {grid.cols} columns of cores"
        )
    outputs = problem.m_tiles * problem.n_tiles
    if outputs > op.cores <= MOST_BUSY * grid.cores:
        size = f"blocks of {config.per_core_m}x{config.per_core_n} tiles"
        yield f"leaves {grid.cores - op.cores} of {grid.cores} cores idle: it cuts the output into {size}"
    shallow = config.program is MatmulProgram.MCAST_2D and config.in0_block_w == 1
    if shallow and problem.k_tiles % 2 == 0 and problem.k_tiles >= SEVERAL_BLOCKS:
        yield (
            f"cuts K into {problem.k_tiles} blocks of one tile, each multicast: deeper blocks need a number of columns "
            f"of cores that divides the {problem.k_tiles} tiles of K, and the grid has {grid.cols}"
        )


def _even_rows(tiles: int, config: ParallelConfig) -> str:
    return f"{tiles} tiles of rows are dealt evenly, {div_up(tiles, config.nhw_cores)} to each"


def _idle(
    config: ParallelConfig, channel_cores: int, grid: GridSpec, *, rows: tuple[int, str], channels: tuple[int, str]
) -> Iterator[str]:
    """Sides of a grid with idle cores despite enough work: the work of each side, and why it is not split further."""
    down = config.orientation is ShardOrientation.COL_MAJOR
    if config.scheme is HEIGHT:
        sides = [(config.nhw_cores, grid.cores, "cores", rows)]
    elif config.scheme is BLOCK:
        across = (config.nhw_cores, channel_cores) if down else (channel_cores, config.nhw_cores)
        work = (rows, channels) if down else (channels, rows)
        sides = [(across[0], grid.cols, "columns", work[0]), (across[1], grid.rows, "rows", work[1])]
    else:
        sides = [(channel_cores, grid.cores, "cores", channels)]
    for used, limit, what, (dealt, why) in sides:
        if dealt > used <= MOST_BUSY * limit:
            yield f"leaves {limit - used} of {limit} {what} idle: {why}"
