"""Which cores take part in a convolution (docs/planning.md, Partition).

All functions are pure; `tiles` counts are tiles of 32 rows or 32 channels.
"""

from typing import NamedTuple

from device.cores import CoreRangeSet, core_rectangle, first_cores
from device.errors import DeviceError
from device.memory.memory_config import ShardOrientation, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import div_up, round_up
from device.spec.parts import GridSpec

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED


class ParallelConfig(NamedTuple):
    """Cores of one side (input or output) of a convolution."""

    scheme: TensorMemoryLayout  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    nhw_cores: int  # Cores that split the flattened rows
    channel_cores: int
    cores: CoreRangeSet  # All of them
    orientation: ShardOrientation  # ROW_MAJOR: a BLOCK grid has channels along x; COL_MAJOR: along y


def most_cores(tiles: int, limit: int, multiple: int = 1) -> int:
    """The most cores, at most `limit`, among which `tiles` can be dealt with no core left with padding only.

    Each core gets the same number of tiles, rounded up to `multiple` tiles. Shares only grow when cores are left out,
    so the cores that the smallest share needs are the most there can be.
    """
    smallest_share = round_up(tiles, limit * multiple) // limit
    return max(1, div_up(tiles, max(1, smallest_share)))


def largest_divisor(limit: int, *counts: int) -> int:
    """The largest number, at most `limit`, that divides every one of `counts`."""
    return next(d for d in range(limit, 0, -1) if all(count % d == 0 for count in counts))


def channel_alignment(
    scheme: TensorMemoryLayout, *, row_major: bool, sliced: bool, matmul: bool, shard_width: int | None
) -> int:
    """Channels per core are a multiple of this (docs/planning.md, Alignment).

    Args:
        scheme: Memory layout of the tensor the rule is asked for (INTERLEAVED if it is not sharded).
        sliced: It is a window of a tensor in DRAM.
        matmul: The convolution runs as a matmul.
        shard_width: Width of its shard; None if it is not sharded.
    """
    if matmul or scheme is WIDTH or not (row_major or sliced):
        return TILE
    if shard_width is None:
        return 8
    return next((channels for channels in (32, 16, 8) if shard_width % channels == 0), TILE)


def block_range(nhw_cores: int, channel_cores: int, orientation: ShardOrientation) -> CoreRangeSet:
    """The rectangle of a BLOCK_SHARDED tensor, anchored at (0, 0)."""
    cols, rows = channel_cores, nhw_cores
    if orientation is ShardOrientation.COL_MAJOR:
        cols, rows = rows, cols
    return core_rectangle(cols, rows)


def input_parallel_config(
    scheme: TensorMemoryLayout,
    grid: GridSpec,
    *,
    rows: int,
    in_channels: int,
    out_channels: int,
    alignment: int,
    act_block_h_tiles: int,
    orientation: ShardOrientation,
    matmul: bool,
) -> ParallelConfig:
    """Cores that hold the input of a convolution with `rows` output rows (N*OH*OW).

    Args:
        rows: Output rows; the input is dealt to as many cores as the output.
        out_channels: Output channels (they matter to a matmul only).
        alignment: Channels a BLOCK shard is a multiple of (`channel_alignment` of the tensor as it came).
        act_block_h_tiles: Height of an activation block in tiles, 1 if not overridden.
        orientation: Of a BLOCK grid.
        matmul: The convolution runs as a matmul.
    """
    row_tiles, out_tiles = div_up(rows, TILE), div_up(out_channels, TILE)
    cores = grid.cols * grid.rows
    if scheme is HEIGHT:
        nhw = most_cores(row_tiles, cores, act_block_h_tiles)
        used = first_cores(nhw, grid.cols, grid.rows, row_wise=True)
        return ParallelConfig(
            scheme=scheme, nhw_cores=nhw, channel_cores=1, cores=used, orientation=ShardOrientation.ROW_MAJOR
        )
    if scheme is BLOCK:
        nhw_limit, channel_limit = grid.rows, grid.cols
        if orientation is ShardOrientation.COL_MAJOR:
            nhw_limit, channel_limit = channel_limit, nhw_limit
        nhw = most_cores(row_tiles, nhw_limit, act_block_h_tiles)
        channel_blocks = div_up(in_channels, alignment)
        channels = (
            largest_divisor(channel_limit, out_tiles, channel_blocks)
            if matmul
            else most_cores(channel_blocks, channel_limit)
        )
        used = block_range(nhw, channels, orientation)
        return ParallelConfig(scheme=scheme, nhw_cores=nhw, channel_cores=channels, cores=used, orientation=orientation)
    in_tiles = div_up(in_channels, TILE)
    channels = largest_divisor(cores, in_tiles) if matmul else most_cores(in_tiles, cores)
    used = first_cores(channels, grid.cols, grid.rows, row_wise=True)
    return ParallelConfig(
        scheme=WIDTH, nhw_cores=1, channel_cores=channels, cores=used, orientation=ShardOrientation.ROW_MAJOR
    )


def output_parallel_config(
    config: ParallelConfig, grid: GridSpec, *, out_channels: int, matmul: bool, given: GridSpec | None = None
) -> ParallelConfig:
    """Cores that hold the output, given those of the input.

    Args:
        config: Cores of the input.
        grid: All cores.
        matmul: It runs as a matmul.
        given: The caller's grid for the output, BLOCK only; none takes all cores.

    Raises:
        DeviceError: The given grid does not fit the scheme, or the cores of the rows.
    """
    if given is not None:
        _check_given(config, given)
        grid = given
    out_tiles = div_up(out_channels, TILE)
    if matmul or config.scheme is HEIGHT:
        return config
    if config.scheme is WIDTH:
        channels = most_cores(out_tiles, grid.cols * grid.rows)
        used = first_cores(channels, grid.cols, grid.rows, row_wise=True)
    else:
        limit = grid.rows if config.orientation is ShardOrientation.COL_MAJOR else grid.cols
        channels = most_cores(out_tiles, limit)
        used = block_range(config.nhw_cores, channels, config.orientation)
    return ParallelConfig(
        scheme=config.scheme,
        nhw_cores=config.nhw_cores,
        channel_cores=channels,
        cores=used,
        orientation=config.orientation,
    )


def _check_given(config: ParallelConfig, given: GridSpec) -> None:
    if config.scheme is not BLOCK:
        raise DeviceError(
            "Output sharding config override is only supported for BLOCK_SHARDED layout.\n"
            f"conv_config.override_output_sharding_config: the call is, or is tried as, {config.scheme.name}; "
            "set shard_layout=BLOCK_SHARDED, or leave the override out"
        )
    across = given.cols if config.orientation is ShardOrientation.COL_MAJOR else given.rows
    if across != config.nhw_cores:
        raise DeviceError(
            "NHW cores must match for input and output when overriding the grid size.\n"
            f"conv_config.core_grid: it has {across} cores for the rows of the output, and the input lies on "
            f"{config.nhw_cores}; give as many, or set override_sharding_config too"
        )
