"""Tensors that nobody has made, for questions about calls."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import Layout, MemoryConfig
from ttsim.types.dtypes import DataType, bfloat16
from ttsim.types.signature import require_type, require_type_or_none, required_integer


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """A tensor that nobody has made.

    Attributes:
        shape: Logical shape.
        dtype: Data type.
        layout: Tiles or rows.
        memory_config: Place on the device; None for a tensor on the host.
    """

    shape: tuple[int, ...]
    dtype: DataType = bfloat16
    layout: Layout = Layout.ROW_MAJOR
    memory_config: MemoryConfig | None = None

    def __post_init__(self) -> None:
        """Refuses what no tensor has; any sequence of integers is a shape."""
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
