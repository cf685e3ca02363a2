"""What the programs compute that repeat pixels.

Source: tt-metal 0.81.1 (pool/upsample), compared with recorded values.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.matrix_unit.packer import unpack
from device.matrix_unit.typecast import typecast
from device.numbers.formats import FLOAT32, Array, DataFormat
from device.plan import Work

Indices: TypeAlias = NDArray[np.int64]

FIXED_ONE: Final = 1 << 16  # of the numbers that a reader finds its pixel with


class UpsampleProgram(Enum):
    """How pixels get to their places."""

    STICKS = "sticks"  # Every stick is read once and written to all its places
    TILES = "tiles"  # The same, behind an untilize
    SHARDS = "shards"  # Every core gathers the sticks of its shard from the shards of others
    PAGES = "pages"  # Every page of the result is read where it comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsample(Work):
    """Every pixel of [N, H, W, C] several times, down and across."""

    program: UpsampleProgram
    shape: tuple[int, ...]
    scale: tuple[float, float]  # How often, down and across
    source_format: DataFormat
    data_format: DataFormat

    @property
    def made_shape(self) -> tuple[int, int, int, int]:
        """Shape of the result."""
        return upsampled_shape(self.shape, self.scale)


def upsampled_shape(shape: tuple[int, ...], scale: tuple[float, float]) -> tuple[int, int, int, int]:
    """[N, H, W, C] with more rows and columns, rounded down, as products of float32."""
    batch, height, width, channels = shape
    high, wide = (
        int(np.float32(side) * np.float32(factor)) for side, factor in zip((height, width), scale, strict=True)
    )
    return batch, high, wide, channels


def upsampled(work: Upsample, values: Array) -> Array:
    """The result in storage of its format.

    Tiles pass a 16-bit Dst on their way to sticks, which cuts a float32.
    """
    images = values.reshape(work.shape)
    if work.program is UpsampleProgram.TILES and work.source_format == FLOAT32:
        images = unpack(np.ascontiguousarray(images), FLOAT32, fp32_dest=False)
    if work.source_format != work.data_format:
        images = typecast(images, work.source_format, work.data_format)
    _, high, wide, _ = work.made_shape
    rows, columns = (
        _taken(made, side, factor) for made, side, factor in zip((high, wide), work.shape[1:3], work.scale, strict=True)
    )
    return np.ascontiguousarray(images[:, rows][:, :, columns])


def _taken(made: int, side: int, factor: float) -> Indices:
    """[made] which pixel of ``side`` each pixel of the result is; by a reciprocal rounded up to 16 bits."""
    reciprocal = int(np.ceil(np.float32(1) / np.float32(factor) * np.float32(FIXED_ONE)))
    places = np.arange(made, dtype=np.int64)
    taken = places // int(factor) if float(factor).is_integer() else places * reciprocal // FIXED_ONE
    return np.minimum(taken, side - 1)
