"""Configs of softmax and attention: the blocks of programs, and the plain kinds of their arguments."""

from operator import index
from typing import Annotated, Any

from device.cores import CoreCoord, CoreGrid
from ttsim.runtime.types.call import CheckedRecord, Kind, param


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("no integer")
    return index(value)


def _number(value: Any) -> float:
    if isinstance(value, bool | str):
        raise TypeError("no number")
    return float(value)


def _grid(value: Any) -> tuple[int, int]:
    if isinstance(value, CoreCoord | CoreGrid):
        return value.x, value.y
    columns, rows = value
    return index(columns), index(rows)


Integer = Annotated[int, Kind("int", _integer)]  # of any sign
Number = Annotated[float, Kind("float", _number)]
GridSize = Annotated[CoreCoord | tuple[int, int], Kind("CoreCoord or two integers", _grid)]  # columns, rows


class SoftmaxDefaultProgramConfig(CheckedRecord):
    """The program config of tensors that are read and written tile by tile.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.softmax_in_place(x, program_config=ttnn.SoftmaxDefaultProgramConfig()).shape
        Shape([1, 1, 32, 64])
    """


class SoftmaxShardedMultiCoreProgramConfig(CheckedRecord):
    """The program config of shards that a softmax works on in place, in tiles.

    Examples:
        >>> config = ttnn.SoftmaxShardedMultiCoreProgramConfig(
        ...     compute_with_storage_grid_size=(8, 4), subblock_w=4, block_h=2, block_w=8)
        >>> config.block_w
        8
    """

    compute_with_storage_grid_size: GridSize = param("Columns and rows of cores.")
    subblock_w: int = param("Tiles across that are computed at a time.")
    block_h: int = param("Tiles down a shard.")
    block_w: int = param("Tiles across a shard.")
