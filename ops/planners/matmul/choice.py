"""The library's choice of a program for sharded operands, for a core grid, and for all others.

Rules: ttnn 0.81.1, compared with its output shards and dataflow buffers on a device without kernels.
"""

from dataclasses import replace
from math import gcd, prod

from device.cores import CoreCoord
from device.errors import ArgumentError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.spec.releases import Release
from ops.planners.matmul.arguments import MatmulArguments
from ops.programs.matmul.choice import (
    NARROW_DST_TILES,
    NARROW_RATIO,
    SQUARE_BLOCKS,
    WIDE_DST_TILES,
    blocked_config,
    interleaved_config,
    output_block,
    subblock_of,
)
from ops.programs.matmul.op import MatmulConfig, MatmulProblem, MatmulProgram

INTERLEAVED, HEIGHT = TensorMemoryLayout.INTERLEAVED, TensorMemoryLayout.HEIGHT_SHARDED
BLOCK, WIDTH = TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
READER_COLS = 8  # columns of the cores that each read one bank of DRAM, on both architectures
FIRST_BANKS = 4  # whose readers are in fewer columns, by the banks of the device
FIRST_READER_COLS = {12: 4, 8: 2}
DEEPEST_BLOCK = 4  # K tiles of a block, at most, that cores of a given grid are sent


def of_banks(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, spec: DeviceSpec) -> MatmulConfig:
    """The caller's config of one core per bank, with the blocks of these cores; `grid` has their positions.

    The last banks may have only padding. Narrow sub-blocks are widened, and so is the block.
    """
    wide, banks = call.second.shards.shape[1] // TILE, spec.dram.banks
    banks -= max(0, wide * banks - problem.n_tiles) // wide
    reader_cols = READER_COLS
    if banks <= FIRST_BANKS:
        reader_cols = FIRST_READER_COLS.get(spec.dram.banks, READER_COLS)
    elif 2 * banks < spec.dram.banks:
        raise NotSimulatedError(
            f"matmul: ttsim does not simulate columns in {banks} of {spec.dram.banks} banks of DRAM, whose readers lie "
            "elsewhere; use narrower shards, or another program config"
        )
    columns = div_up(problem.n_tiles, banks)
    height, width = subblock_of(config.per_core_m, columns, wide=problem.fp32_dest)
    if height == 1:
        most = WIDE_DST_TILES if problem.fp32_dest else NARROW_DST_TILES
        width = min(range(width, most + 1), key=lambda side: (div_up(columns, side), side))
        columns = div_up(columns, width) * width
    grid = GridSpec(cols=min(reader_cols, spec.grid.cols), rows=spec.grid.rows)
    return replace(
        config, grid=grid, banks=banks, per_core_n=columns,
        out_block_h=config.per_core_m, out_block_w=columns, out_subblock_h=height, out_subblock_w=width,
    )  # fmt: skip


def choose_config(
    call: MatmulArguments, problem: MatmulProblem, grid: GridSpec, l1_bytes: int, release: Release
) -> MatmulConfig:
    """The caller's program config, or the one that a release chooses; raises ArgumentError if it finds none."""
    if call.program is not None:
        return call.program
    shards = call.first.memory_config.shard_spec
    if shards is not None:
        return _of_shards(call, problem, shards, grid, l1_bytes, release)
    if call.core_grid is not None:
        return _of_grid(call, problem, grid, l1_bytes, release)
    config = _interleaved(call, problem, grid, l1_bytes, release)
    return config if call.line is None else _of_line(call, problem, config, call.line)


def laid_out(call: MatmulArguments, *, by_rows: bool) -> MatmulArguments:
    """The call with HEIGHT or WIDTH shards on the same cores."""
    layout = TensorMemoryLayout.HEIGHT_SHARDED if by_rows else TensorMemoryLayout.WIDTH_SHARDED
    return replace(call, memory_config=replace(call.memory_config, memory_layout=layout))


def _of_line(call: MatmulArguments, problem: MatmulProblem, config: MatmulConfig, line: GridSpec) -> MatmulConfig:
    """The program of cores in one row or column; each core has one BLOCK shard of the output.

    If the blocks of `config` form several rows and columns with a core each, `config` is used instead.
    """
    down, across = div_up(problem.m_tiles, config.per_core_m), div_up(problem.n_tiles, config.per_core_n)
    fits = 1 < down <= config.grid.rows and 1 < across <= config.grid.cols
    if config.program is MatmulProgram.MCAST_2D and fits:
        return config
    if problem.second_batched:
        raise ArgumentError(
            "BLOCK_SHARDED output on a 1D grid (single row or column of cores) is not supported when both input "
            "tensors are batched. Either use HEIGHT_SHARDED/WIDTH_SHARDED explicitly, use a 2D core grid for "
            "BLOCK_SHARDED, or ensure the second input tensor (B) has batch size 1. See GitHub issue #32306 for "
            "details.\nmemory_config: batches want interleaved memory"
        )
    shards, is_row = call.memory_config.shard_spec, line.rows == 1
    assert shards is not None
    place = laid_out(call, by_rows=not is_row).memory_config
    TensorSpec(call.output_shape, call.output_format, Layout.TILE, place)  # which raises for shards that do not fit
    program = MatmulProgram.MCAST_IN0 if is_row else MatmulProgram.MCAST_IN1
    if config.program not in (program, MatmulProgram.MCAST_2D):
        wanted, kind = ("HEIGHT", "column") if is_row else ("WIDTH", "row")
        raise ArgumentError(
            f"{program.config_name}: output memory layout must be {wanted}_SHARDED or BLOCK_SHARDED on a 1-{kind} "
            f"grid, got: TensorMemoryLayout::BLOCK_SHARDED\nmemory_config: give a {kind} of cores"
        )
    if shards.grid.bounding_box().start != CoreCoord(0, 0):
        raise ArgumentError(
            f"{program.config_name}: output shard grid {shards.grid} must lie within extent {line.cols}-{line.rows}\n"
            "memory_config: begin the cores at (0, 0)"
        )
    high, wide = (side // TILE for side in shards.shape)
    per_core = (_fused_rows(problem), wide) if is_row else (high, problem.n_tiles)
    depth = 1 if problem.k_tiles % 2 else 2
    return replace(blocked_config(problem, line, program, (*per_core, depth), per_core), fuse_batch=True)


def _usable(core_grid: GridSpec, grid: GridSpec) -> GridSpec:
    """The caller's cores if the device has them, else all of the device."""
    return core_grid if core_grid.cols <= grid.cols and core_grid.rows <= grid.rows else grid


def _interleaved(
    call: MatmulArguments, problem: MatmulProblem, grid: GridSpec, l1_bytes: int, release: Release
) -> MatmulConfig:
    places = (call.first.memory_config, call.second.memory_config, call.memory_config)
    config = interleaved_config(
        problem,
        grid,
        in_dram=all(place.buffer_type is BufferType.DRAM for place in places),
        l1_bytes=l1_bytes,
        out_layout=call.memory_config.memory_layout,
        in1_sharded=call.second.memory_config.is_sharded(),
        release=release,
    )
    if (
        config.program is MatmulProgram.MCAST_2D
        and call.memory_config.is_sharded()
        and not problem.second_batched
        and problem.batches > 1
    ):
        return replace(config, fuse_batch=True)  # shards hold the rows of all batches
    return config


def _fused_rows(problem: MatmulProblem) -> int:
    """Tile rows of all batches of the first operand."""
    return problem.m_tiles * (problem.batches if problem.first_batched else 1)


def _of_grid(
    call: MatmulArguments, problem: MatmulProblem, grid: GridSpec, l1_bytes: int, release: Release
) -> MatmulConfig:
    """The program for all cores of a grid that the caller gives, or of the device."""
    cores = grid if call.core_grid is None else _usable(call.core_grid, grid)
    if problem.second_batched:
        return _batched_of_grid(call, problem, cores, grid, l1_bytes, release)
    place = call.first.memory_config
    rows, columns = _fused_rows(problem), problem.n_tiles
    short, long = sorted((rows, columns))
    narrow = long // short > NARROW_RATIO or 1 in (problem.m_tiles, problem.k_tiles, columns)
    if place.memory_layout in (HEIGHT, WIDTH) or (narrow and place.memory_layout is INTERLEAVED):
        return _one_axis(call, problem, cores, l1_bytes)
    if place.shard_spec is None:
        per_core = div_up(rows, cores.rows), div_up(columns, cores.cols)
        depth = next(depth for depth in range(DEEPEST_BLOCK, 0, -1) if problem.k_tiles % depth == 0)
    else:
        high, wide = (side // TILE for side in place.shard_spec.shape)
        per_core = high, max(1, columns * place.shard_spec.shape[1] // (problem.k_tiles * TILE))
        depth = gcd(wide, problem.k_tiles)
    height, width, _ = output_block(problem, *per_core, [depth], l1_bytes, shard_width=_shard_width(call))
    subblock_w, subblock_h = subblock_of(width, height, wide=problem.fp32_dest)
    return MatmulConfig(
        program=MatmulProgram.MCAST_2D, grid=cores, in0_block_w=depth, out_block_h=height, out_block_w=width,
        out_subblock_h=subblock_h if subblock_w == per_core[1] else 1, out_subblock_w=subblock_w,
        per_core_m=per_core[0], per_core_n=per_core[1],
        transpose_mcast=place.memory_layout is BLOCK and _turned(place.shard_spec), fuse_batch=True,
        activation=call.activation,
    )  # fmt: skip


def _shard_width(call: MatmulArguments) -> int:
    """Width in tiles of the first operand's shards; 0 if it is interleaved."""
    shards = call.first.memory_config.shard_spec
    return 0 if shards is None else shards.shape[1] // TILE


def _turned(shards: ShardSpec | None) -> bool:
    return shards is not None and shards.orientation is ShardOrientation.COL_MAJOR


def _one_axis(call: MatmulArguments, problem: MatmulProblem, cores: GridSpec, l1_bytes: int) -> MatmulConfig:
    """The program of cores that split the longer side of the output, or the side that the shards split."""
    rows, columns, layout = _fused_rows(problem), problem.n_tiles, call.first.memory_config.memory_layout
    tall = layout is HEIGHT or (layout is not WIDTH and rows > columns)
    depth = div_up(problem.k_tiles, cores.cores)
    while problem.k_tiles % depth:
        depth -= 1
    high = div_up(rows, cores.cores) if layout is not HEIGHT else call.first.shards.shape[0] // TILE
    per_core = (high, columns) if tall else (rows, div_up(columns, cores.cores))
    height, width, _ = output_block(problem, *per_core, [depth], l1_bytes, shard_width=_shard_width(call))
    subblock_w, subblock_h = subblock_of(width, height, wide=problem.fp32_dest)
    return MatmulConfig(
        program=MatmulProgram.MCAST_IN1 if tall else MatmulProgram.MCAST_IN0, grid=cores, in0_block_w=depth,
        out_block_h=height, out_block_w=width, out_subblock_h=subblock_h, out_subblock_w=subblock_w,
        per_core_m=per_core[0], per_core_n=per_core[1], fuse_batch=True, activation=call.activation,
    )  # fmt: skip


def _batched_of_grid(
    call: MatmulArguments, problem: MatmulProblem, cores: GridSpec, grid: GridSpec, l1_bytes: int, release: Release
) -> MatmulConfig:
    """The program of pairs of matrices for the cores of a grid."""
    if call.activation is not None:
        raise ArgumentError(
            "Cannot use activation with batched input b\nactivation: call it on the product, or leave out core_grid"
        )
    first, second = call.first.memory_config, call.second.memory_config
    per_core, depth = (problem.m_tiles, problem.n_tiles), 1
    if first.shard_spec is not None:
        if first.memory_layout is WIDTH:
            raise ArgumentError(
                "MatmulMultiCoreReuseProgramConfig: Input A cannot be width sharded, got layout: "
                "TensorMemoryLayout::WIDTH_SHARDED\ninput_tensor_a: use HEIGHT_SHARDED or interleaved memory"
            )
        high, depth = (side // TILE for side in first.shard_spec.shape)
        per_core = high, call.second_sides[1] // TILE
    elif second.shard_spec is not None:
        if second.memory_layout is WIDTH:
            raise ArgumentError(
                "MatmulMultiCoreReuseProgramConfig: Input B cannot be width sharded, got layout: "
                "TensorMemoryLayout::WIDTH_SHARDED\ninput_tensor_b: use HEIGHT_SHARDED or interleaved memory"
            )
        per_core = problem.m_tiles, second.shard_spec.shape[1] // TILE
    elif output_block(problem, *per_core, [1], l1_bytes)[:2] != per_core:
        config = _interleaved(call, problem, cores, l1_bytes, release)
        return replace(config, grid=grid) if config.program is MatmulProgram.SINGLE_TILES else config
    subblock_w, subblock_h = subblock_of(per_core[1], per_core[0], wide=problem.fp32_dest)
    return _reuse(cores, problem, depth, per_core, (subblock_h, subblock_w))


def _reuse(
    cores: GridSpec, problem: MatmulProblem, depth: int, per_core: tuple[int, int], subblock: tuple[int, int]
) -> MatmulConfig:
    return MatmulConfig(
        program=MatmulProgram.REUSE, grid=cores, in0_block_w=depth, out_block_h=min(per_core[0], problem.m_tiles),
        out_block_w=per_core[1], out_subblock_h=subblock[0], out_subblock_w=subblock[1], per_core_m=per_core[0],
        per_core_n=per_core[1],
    )  # fmt: skip


def _of_shards(
    call: MatmulArguments, problem: MatmulProblem, shards: ShardSpec, grid: GridSpec, l1_bytes: int, release: Release
) -> MatmulConfig:
    """The program for the cores of a sharded first operand."""
    layout, box = call.first.memory_config.memory_layout, shards.grid.bounding_box()
    cores = GridSpec(cols=box.cols, rows=box.rows)
    if call.batched and problem.second_batched:
        return _batched_of_shards(call, problem, shards, cores)
    require_shards(call, shards, _fused_rows(problem), problem.k_tiles)
    if layout is BLOCK and cores.cols > 1 and cores.rows > 1:
        per_core, depth = _blocks_of_shards(problem, shards, cores)
        program = MatmulProgram.MCAST_2D
    elif layout is not BLOCK and cores.cores > 1:
        high, wide = (side // TILE for side in shards.shape)
        program = MatmulProgram.MCAST_IN0 if layout is WIDTH else MatmulProgram.MCAST_IN1
        per_core, depth = (high, problem.n_tiles), problem.k_tiles
        if layout is WIDTH:
            per_core = _fused_rows(problem), div_up(problem.n_tiles, shards.num_cores())
            depth = gcd(wide, problem.k_tiles)
    else:
        usable = grid if layout is BLOCK else cores
        return _of_grid(replace(call, activation=None), problem, usable, l1_bytes, release)
    height, width, _ = output_block(problem, *per_core, [depth], l1_bytes, shard_width=_shard_width(call))
    whole_rows = call.memory_config.is_sharded()
    if whole_rows and width != per_core[1]:
        height = 1
    subblock_h, subblock_w = subblock_of(height, width, wide=problem.fp32_dest, whole_rows=whole_rows)
    return MatmulConfig(
        program=program, grid=cores, in0_block_w=depth, out_block_h=height, out_block_w=width,
        out_subblock_h=subblock_h, out_subblock_w=subblock_w, per_core_m=per_core[0], per_core_n=per_core[1],
        transpose_mcast=layout is BLOCK and _turned(shards), fuse_batch=True,
    )  # fmt: skip


def require_program(call: MatmulArguments) -> None:
    """Raises for operands without a program; the library chooses the program before it checks their layout."""
    shards, place = call.first.memory_config.shard_spec, call.first.memory_config
    if call.program is not None or len(call.first.shape) < 2:
        return
    pairs = call.batched and call.batches[1] > 1
    if pairs and (shards is not None or call.core_grid is None):  # whose blocks are not looked at
        return
    box = None if shards is None else shards.grid.bounding_box()
    by_grid = call.core_grid is not None if box is None else place.memory_layout is BLOCK and 1 in (box.cols, box.rows)
    if by_grid and call.first_sides[1] != call.second_sides[0]:
        raise ArgumentError(
            "The k dimension does not match between tensors\ninput_tensor_b: "
            f"{list(call.second.shape)} can not follow {list(call.first.shape)}"
        )
    (rows, depth), columns = (
        whole_tiles(call.first, call.transpose_a),
        whole_tiles(call.second, call.transpose_b)[1],
    )
    places = (place, call.second.memory_config, call.memory_config)
    in_dram = all(place.buffer_type is BufferType.DRAM and not place.is_sharded() for place in places)
    if shards is not None:
        high, wide = (side // TILE for side in call.first_sides)
        require_shards(call, shards, prod(call.first.shape[:-2]) * high, wide)
        rows = shards.shape[0] // TILE
    if Layout.ROW_MAJOR not in (call.first.layout, call.second.layout):
        return
    if by_grid:
        if _ragged(call):
            raise ArgumentError(
                "The last two dimensions of the first tensor and the last dimension of the second tensor must be a "
                "multiple of tile size\ninput_tensor_a, input_tensor_b: use to_layout(TILE_LAYOUT)"
            )
        return
    short, long = sorted(
        spec.padded_shape[-2 if down else -1]
        for spec, down in ((call.first, not call.transpose_a), (call.second, call.transpose_b))
    )
    narrow = long > NARROW_RATIO * short
    blocks = (rows or columns) and (depth % 2 == 0 or max(rows, columns) > SQUARE_BLOCKS[0])
    sides = {"per_core_N": columns, "per_core_M": rows}
    if shards is not None:
        sides = {"in0_block_w": depth} | sides
    elif not in_dram:
        sides = sides if narrow and blocks else {}  # else a program of single tiles, or of square blocks
    elif not narrow and 1 not in (rows, columns):
        sides |= {"in0_block_w": depth}
    for name, side in sides.items():
        if not side:
            raise ArgumentError(f"{name} must be greater than 0!\ninput_tensor_a: use to_layout(TILE_LAYOUT)")


def whole_tiles(spec: TensorSpec, turned: bool) -> tuple[int, int]:
    """Whole tiles down and across an operand, with its padding."""
    down, across = (side // TILE for side in spec.padded_shape[-2:])
    return (across, down) if turned else (down, across)


def _ragged(call: MatmulArguments) -> bool:
    """Whether rows leave parts of tiles, of M, K or N."""
    columns = call.second.padded_shape[-2 if call.transpose_b else -1]
    return any(side % TILE for side in (*call.first.padded_shape[-2:], columns))


def require_shards(call: MatmulArguments, shards: ShardSpec, rows: int, depth: int) -> None:
    """Raises for shards of the first operand, of this height and width in tiles, for which no program exists."""
    layout, box = call.first.memory_config.memory_layout, shards.grid.bounding_box()
    if call.second.memory_config.memory_layout is not INTERLEAVED:
        raise ArgumentError(
            "Input tensor B must have INTERLEAVED memory layout, got: "
            f"TensorMemoryLayout::{call.second.memory_config.memory_layout.name}\ninput_tensor_b: without a "
            "program_config a sharded input_tensor_a multiplies an interleaved one"
        )
    if layout is BLOCK and 1 in (box.cols, box.rows):
        return
    if layout is not BLOCK and _turned(shards):
        raise ArgumentError(
            "Input tensor A must have ROW_MAJOR shard orientation, got: ShardOrientation::COL_MAJOR\n"
            "input_tensor_a: shard it along rows of cores"
        )
    _require_output_like_first(call)
    if layout is not BLOCK or min(shards.shape) < TILE:
        return
    across, down = _cores_along(shards, GridSpec(cols=box.cols, rows=box.rows))
    high, wide = (side // TILE for side in shards.shape)
    for axis, cores_along, tiles, part in (("y", down, rows, high), ("x", across, depth, wide)):
        if cores_along not in (tiles // part, div_up(tiles, part)):
            raise ArgumentError(
                f"Num cores along {axis} ({cores_along}) must match provided grid size ({tiles // part}) or divided up "
                f"size ({div_up(tiles, part)})\ninput_tensor_a: its shards must fill their cores"
            )


def _cores_along(shards: ShardSpec, cores: GridSpec) -> tuple[int, int]:
    """Cores across and down a matrix in BLOCK shards."""
    return (cores.rows, cores.cols) if _turned(shards) else (cores.cols, cores.rows)


def _blocks_of_shards(problem: MatmulProblem, shards: ShardSpec, cores: GridSpec) -> tuple[tuple[int, int], int]:
    """Tiles of a core of BLOCK shards, down and across, and the K tiles of a block."""
    (across, down), rows, depth = _cores_along(shards, cores), _fused_rows(problem), problem.k_tiles
    wide = shards.shape[1] // TILE
    block = gcd(wide, depth) if across == depth // wide else 1
    return (div_up(rows, down), div_up(problem.n_tiles, across)), block


def _require_output_like_first(call: MatmulArguments) -> None:
    """Raises for a sharded output whose memory differs from that of the first operand."""
    first, output = call.first.memory_config, call.memory_config
    if not output.is_sharded():
        return
    for what, kind in (("buffer types", "buffer_type"), ("memory layouts", "memory_layout")):
        given, asked = getattr(first, kind), getattr(output, kind)
        if given is not asked:
            name = type(given).__name__
            raise ArgumentError(
                f"Input A and output {what} must match, got input: {name}::{given.name} vs output: {name}::"
                f"{asked.name}\nmemory_config: give that of input_tensor_a, or interleaved memory"
            )


def _batched_of_shards(
    call: MatmulArguments, problem: MatmulProblem, shards: ShardSpec, cores: GridSpec
) -> MatmulConfig:
    """The program of a batch of matrix pairs with a sharded first operand."""
    first, second = call.first.memory_config, call.second.memory_config
    if first.memory_layout is WIDTH:
        raise ArgumentError(
            "Input A memory layout must not be WIDTH_SHARDED, got: TensorMemoryLayout::WIDTH_SHARDED\n"
            "input_tensor_a: batches want HEIGHT_SHARDED or interleaved memory"
        )
    _require_output_like_first(call)
    high, depth = (side // TILE for side in shards.shape)
    per_core = high, problem.n_tiles
    whole_rows = call.memory_config.is_sharded()
    subblock = subblock_of(*per_core, wide=problem.fp32_dest, whole_rows=whole_rows)
    if second.shard_spec is not None:
        for what, kind in (("buffer types", "buffer_type"), ("memory layouts", "memory_layout")):
            one, other = getattr(first, kind), getattr(second, kind)
            if one is not other:
                name = type(one).__name__
                raise ArgumentError(
                    f"Input A and B {what} must match, got A: {name}::{one.name} vs B: {name}::{other.name}\n"
                    "input_tensor_b: put it where input_tensor_a is, or into interleaved memory"
                )
        if shards.grid != second.shard_spec.grid:
            raise ArgumentError("Input A and B shard grids must match\ninput_tensor_b: use those of input_tensor_a")
    return _reuse(cores, problem, depth, per_core, subblock)
