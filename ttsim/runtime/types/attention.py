"""Program configs of softmax and attention."""

from contextlib import suppress
from math import isnan
from operator import index
from typing import Annotated, Any

import numpy as np

from device.cores import CoreCoord, CoreGrid, CoreRangeSet
from ttsim.runtime.types.call import CheckedRecord, Kind, param
from ttsim.runtime.types.configs import MathFidelity


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("no integer")
    return index(value)


def _grid(value: Any) -> tuple[int, int]:
    if isinstance(value, CoreCoord | CoreGrid):
        return value.x, value.y
    columns, rows = value
    return index(columns), index(rows)


def _single(value: Any) -> float | None:
    if value is not None and not (type(value) is float and (float(np.float32(value)) == value or isnan(value))):
        raise TypeError("not what float32 holds")
    number: float | None = value
    return number


def _rounded(value: object) -> str:
    with suppress(TypeError, ValueError, OverflowError):
        return f"; float32 holds {float(np.float32(value))!r}"  # type: ignore[arg-type]
    return ""


Integer = Annotated[int, Kind("int", _integer)]  # of any sign
# A number that the library's bindings do not convert: Python's own float with a value of single precision
SingleFloat = Annotated[float | None, Kind("float that float32 holds exactly, or None", _single, _rounded)]
GridSize = Annotated[CoreCoord | tuple[int, int], Kind("CoreCoord or two integers", _grid)]  # columns, rows


class SoftmaxDefaultProgramConfig(CheckedRecord):
    """The program config for tensors that are read and written tile by tile.

    Examples:
        >>> x = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.softmax_in_place(x, program_config=ttnn.SoftmaxDefaultProgramConfig()).shape
        Shape([1, 1, 32, 64])
    """


class SoftmaxShardedMultiCoreProgramConfig(CheckedRecord):
    """The program config of a softmax in place on sharded tensors; sizes are in tiles.

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


class SDPAProgramConfig(CheckedRecord):
    """The cores of an attention, and the chunks that a core processes at a time.

    Examples:
        >>> config = ttnn.SDPAProgramConfig(compute_with_storage_grid_size=(8, 8), q_chunk_size=64, k_chunk_size=128)
        >>> config.k_chunk_size
        128
    """

    compute_with_storage_grid_size: GridSize = param("Columns and rows of cores.")
    sub_core_grids: CoreRangeSet | None = param(
        "As many cores as the grid has, which decoding takes instead; None for the grid.", default=None
    )
    q_chunk_size: int = param("Rows of queries that a core takes at a time.")
    k_chunk_size: int = param("Keys that a core takes at a time.")
    exp_approx_mode: bool | None = param("Without effect on what ttsim computes.", default=None)
    max_cores_per_head_batch: int = param("Of decoding alone.", default=16)
    max_k_splits: int = param("Of decoding alone.", default=1)
    matmul_math_fidelity: MathFidelity | None = param("Without effect on what ttsim computes.", default=None)
    segmented_accumulation: bool = param("Not simulated.", default=False)
