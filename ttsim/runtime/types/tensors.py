"""Data types, shapes and tiles of tensors, and descriptions of tensors without values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from typing import SupportsIndex

import numpy as np

from device.cores import PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.numbers.formats import FORMATS, DataFormat
from ttsim.runtime.types.call import require_type, require_type_or_none, required_integer


class DataType(PlainEnum):
    """The type of a tensor's elements; member values are ttnn's.

    Examples:
        >>> ttnn.bfloat8_b, ttnn.bfloat8_b.value
        (DataType.BFLOAT8_B, 3)
    """

    BFLOAT16, FLOAT32, UINT32, BFLOAT8_B, BFLOAT4_B, UINT8, UINT16, INT32 = range(8)
    INT8 = 9

    @property
    def format(self) -> DataFormat:
        """The data format of the machine."""
        return FORMATS[self.name.lower()]

    @classmethod
    def of(cls, data_format: DataFormat) -> "DataType":
        """The data type of a format; raises ArgumentError for a format that ttnn does not have."""
        name = data_format.name.upper()
        if name not in cls.__members__:
            raise ArgumentError(f"ttnn has no data type for {data_format}; it has {', '.join(cls.__members__)}")
        return cls[name]


bfloat16, float32, uint32, bfloat8_b, bfloat4_b, uint8, uint16, int32, int8 = DataType
ROW_MAJOR_LAYOUT = Layout.ROW_MAJOR
TILE_LAYOUT = Layout.TILE
TILE_SIZE = TILE


class Shape(tuple[int, ...]):
    """The shape of a tensor; equal to a list or tuple of the same numbers.

    Examples:
        >>> shape = ttnn.Shape((4, 32))
        >>> shape == [4, 32], shape.rank, shape.to_rank(4)
        (True, 2, Shape([1, 1, 4, 32]))
    """

    __slots__ = ()

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    def to_rank(self, rank: int) -> "Shape":
        """The shape with leading sides of 1 added or removed; raises DeviceError if a larger side would be removed."""
        missing = rank - len(self)
        if missing < 0 and prod(self[:-rank] if rank else self) != 1:
            raise DeviceError(
                f"Can't convert shape rank {len(self)} to {rank}\nto_rank: {self} has no sides of 1 to leave out"
            )
        return Shape((1,) * missing + tuple(self)) if missing >= 0 else Shape(tuple(self)[-missing:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | tuple) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"Shape({list(self)})"


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile shape of a tensor; only tiles of 32 x 32 elements are simulated.

    Examples:
        >>> list(ttnn.Tile((32, 32)).tile_shape)
        [32, 32]
    """

    tile_shape: Sequence[int] = (TILE, TILE)  # Rows and columns; 32 x 32 alone are simulated

    def __post_init__(self) -> None:
        if tuple(self.tile_shape) != (TILE, TILE):
            raise DeviceError(f"Tile: tiles of {shown(self.tile_shape)} are not simulated; {TILE} x {TILE} are")

    def __repr__(self) -> str:
        return f"Tile with shape: {list(self.tile_shape)}"


def resolved_shape(sides: Sequence[SupportsIndex | Sequence[int]], volume: int) -> tuple[int, ...]:
    """The shape of a reshape from integers or one sequence; at most one side may be -1.

    Raises ArgumentTypeError for invalid sides, DeviceError for another volume.
    """
    first = sides[0] if len(sides) == 1 else sides
    try:
        if isinstance(first, str | bytes):
            raise TypeError("text")
        wanted = [index(side) for side in (first if isinstance(first, Sequence | np.ndarray) else [first])]  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"reshape: the shape must be integers, not {shown(first)}") from None
    named = f"({''.join(f'{side},' for side in wanted)})"
    if wanted.count(-1) > 1:
        raise DeviceError(
            f"Shape cannot have more than 1 elements that is set to -1! Shape used: {named}\n"
            "reshape: give all sides but one"
        )
    if -1 in wanted and 0 in wanted:
        raise DeviceError(
            f"cannot reshape tensor of 0 elements into shape {named} because the unspecified dimension size -1 can be "
            "any value and is ambiguous\nreshape: give all sides"
        )
    if -1 in wanted:
        wanted[wanted.index(-1)] = volume // prod(side for side in wanted if side != -1)
    if min(wanted, default=0) < -1 and prod(wanted) == volume:
        raise DeviceError(
            "Attempting to reshape between two shapes with different volumes\n"
            f"reshape: sides are at least 0, or -1, not {shown(wanted)}"
        )
    if any(side < 0 for side in wanted) or prod(wanted) != volume:
        raise DeviceError(
            f"Invalid arguments to reshape\nreshape: a tensor of {volume} elements cannot take the shape "
            f"{shown(wanted)}, which has {prod(wanted)}"
        )
    return tuple(wanted)


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """A tensor without values, for `estimate_cycles`, `tune` and `query_op_constraints`.

    Attributes:
        shape: Logical shape.
        dtype: Data type.
        layout: Layout.
        memory_config: Memory on the device; None for a tensor on the host.

    Examples:
        >>> ttnn.TensorDescription((1, 1, 64, 32), ttnn.bfloat16, memory_config=ttnn.DRAM_MEMORY_CONFIG).shape
        (1, 1, 64, 32)
    """

    shape: tuple[int, ...]
    dtype: DataType = bfloat16
    layout: Layout = Layout.ROW_MAJOR
    memory_config: MemoryConfig | None = None

    def __post_init__(self) -> None:
        require_type("TensorDescription", DataType, dtype=self.dtype)
        require_type("TensorDescription", Layout, layout=self.layout)
        require_type_or_none("TensorDescription", MemoryConfig, memory_config=self.memory_config)
        listed = isinstance(self.shape, np.ndarray) and self.shape.ndim == 1
        if isinstance(self.shape, str | bytes) or not (listed or isinstance(self.shape, Sequence)):
            raise ArgumentTypeError(f"TensorDescription: shape must be integers, not {shown(self.shape)}")
        sides = tuple(required_integer("TensorDescription", "every side of shape", side) for side in self.shape)
        if min(sides, default=0) < 0:
            raise ArgumentError(f"TensorDescription: every side of shape must be at least 0, not {shown(sides)}")
        object.__setattr__(self, "shape", sides)
