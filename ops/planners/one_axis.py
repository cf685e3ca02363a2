"""Calls along one axis of a tensor, or over all its elements. Rules: ttnn 0.81.1."""

from abc import abstractmethod
from dataclasses import dataclass

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class OneAxisArguments:
    """A call."""

    dim: int | None  # As the caller counts it; None for all elements
    keeps: bool = False  # Reduced axes stay with length 1
    place: MemoryConfig | None = None

    @abstractmethod
    def beyond(self, rank: int) -> str:
        """The error of an axis that a tensor of this rank does not have."""

    def axes(self, source: TensorSpec) -> tuple[int, ...]:
        """The axes of a tensor that go away, from the first; raises DeviceError for an axis that the tensor lacks.

        The axis of a tensor without axes, 0 or -1, is none.
        """
        rank = len(source.shape)
        if self.dim is None:
            return tuple(range(rank))
        most = rank or 1
        if not -most <= self.dim < most:
            raise DeviceError(self.beyond(rank))
        return (self.dim % rank,) if rank else ()
