"""Which cores hold the input of a pool, and what they hold.

Unlike a convolution, a pool deals rows one by one unless its output is in tiles, and channels by half tiles unless
input or output is. Rules: tt-metal 0.81.1 (pool_utils, generic_pools), compared with recorded plans.
"""

from dataclasses import dataclass
from math import prod

from device.cores import first_cores
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardOrientation, ShardSpec
from device.memory.memory_config import TensorMemoryLayout as Scheme
from device.memory.tiles import FACE, TILE
from device.numbers.integers import div_up, round_up
from device.spec.parts import GridSpec
from ops.calls.pooling.arguments import PoolArguments
from ops.programs.conv2d.partition import ParallelConfig, block_range, largest_divisor, most_cores
from ops.programs.pool2d.circular_buffers import PoolSizes

STICK_ALIGNMENT = 8  # channels of 16 bytes
SCHEMES = (Scheme.HEIGHT_SHARDED, Scheme.WIDTH_SHARDED, Scheme.BLOCK_SHARDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolShards:
    """Where a pool runs."""

    config: ParallelConfig
    rows: int  # Rows of a shard of the result
    columns: int

    @property
    def memory(self) -> MemoryConfig:
        """Where the result lies."""
        shards = ShardSpec(self.config.cores, (self.rows, self.columns), ShardOrientation.ROW_MAJOR)
        return MemoryConfig(self.config.scheme, BufferType.L1, shards)


def pool_shards(call: PoolArguments, config: ParallelConfig) -> PoolShards:
    """The shards of the result on the cores of the input: half tiles of channels, if these are whole half tiles."""
    rows = round_up(call.frame.outputs, config.nhw_cores * (TILE if call.tiled else 1)) // config.nhw_cores
    channels = div_up(call.channels, config.channel_cores)
    halves = channels <= FACE or channels % FACE == 0
    unit = FACE if halves and not call.tiled else TILE
    return PoolShards(config=config, rows=rows, columns=round_up(channels, unit))


def pool_cores(call: PoolArguments, scheme: Scheme, grid: GridSpec, *, alignment: int) -> ParallelConfig:
    """The cores of a scheme; ``alignment`` is what channels of BLOCK shards are a multiple of."""
    in_tiles = call.tiled or call.source.layout is Layout.TILE
    rows = div_up(call.frame.outputs, TILE if call.tiled else 1)
    channel_parts = div_up(call.channels, TILE if in_tiles else TILE // 2)
    nhw, channels = 1, 1
    match scheme:
        case Scheme.HEIGHT_SHARDED:
            nhw = most_cores(rows, grid.cores)
            cores = first_cores(nhw, grid.cols, grid.rows)
        case Scheme.WIDTH_SHARDED:
            channels = largest_divisor(grid.cores, channel_parts)
            cores = first_cores(channels, grid.cols, grid.rows)
        case _:
            nhw = most_cores(rows, grid.rows)
            channels = largest_divisor(grid.cols, channel_parts, div_up(call.channels, alignment))
            cores = block_range(nhw, channels, ShardOrientation.ROW_MAJOR)
    return ParallelConfig(
        scheme=scheme, nhw_cores=nhw, channel_cores=channels, cores=cores, orientation=ShardOrientation.ROW_MAJOR
    )


def chosen_cores(call: PoolArguments, grid: GridSpec) -> ParallelConfig:
    """The cores of the caller's scheme, or of the one whose program takes least L1: HEIGHT if equal, then WIDTH."""
    if call.scheme is not None:
        return pool_cores(call, call.scheme, grid, alignment=_alignment(call))
    configs = [pool_cores(call, scheme, grid, alignment=TILE) for scheme in SCHEMES]
    height, width, block = (_l1_bytes(call, config) for config in configs)
    if height > width:
        return configs[2 if width > block else 1]
    return configs[2 if height > block else 0]


def input_memory(call: PoolArguments, config: ParallelConfig) -> MemoryConfig:
    """Where the input goes; its rows are counted with the padding of every image, though that is cut off before."""
    rows = prod(call.source.padded_shape[:-1])
    if config.scheme is not Scheme.WIDTH_SHARDED:
        unit = TILE if call.source.layout is Layout.TILE else 1
        rows = round_up(rows, config.nhw_cores * unit) // config.nhw_cores
    elif call.source.layout is Layout.TILE:
        rows = round_up(rows, TILE)
    columns = round_up(call.channels, config.channel_cores * _alignment(call)) // config.channel_cores
    shards = ShardSpec(config.cores, (rows, columns), ShardOrientation.ROW_MAJOR)
    return MemoryConfig(config.scheme, BufferType.L1, shards)


def _alignment(call: PoolArguments) -> int:
    return TILE if call.source.layout is Layout.TILE else STICK_ALIGNMENT


def _l1_bytes(call: PoolArguments, config: ParallelConfig) -> int:
    """L1 that the program would take, by the library's estimate: rows are whole tiles, columns half tiles at least."""
    rows = call.frame.outputs
    if config.scheme is not Scheme.WIDTH_SHARDED:
        rows = round_up(rows, config.nhw_cores * TILE) // config.nhw_cores
    channels = div_up(call.channels, config.channel_cores)
    return PoolSizes(
        taps=call.kernel[0] * call.kernel[1],
        channels=channels,
        out_shard=(rows, round_up(channels, TILE if call.tiled else FACE)),
        data_format=call.data_format,
        tiled=call.tiled,
        config_tensor_in_dram=call.config_tensor_in_dram,
    ).l1_bytes
