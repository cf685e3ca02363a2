"""What the queries of a call's memory and time share."""

from collections.abc import Iterable
from typing import Any

from device.cores import PlainEnum
from device.memory.memory_config import BufferType
from ttsim.runtime.tensor import Tensor


class ExecutionStatus(PlainEnum):
    """Whether a call would run.

    Examples:
        >>> ttnn.graph.ExecutionStatus.Success.value
        0
    """

    Success = 0
    Error = 1


def tensors_of(returned: Any) -> list[Tensor]:
    """The device tensors among what a call returned."""
    if isinstance(returned, list | tuple):
        return [tensor for value in returned for tensor in tensors_of(value)]
    return [returned] if isinstance(returned, Tensor) and returned.device() is not None else []


def l1_bytes_of(results: Iterable[Tensor]) -> int:
    """Bytes of a core that results take which stay in L1."""
    buffers = [result.buffer.spec for result in results]
    return sum(buffer.bank_bytes for buffer in buffers if buffer.buffer_type is not BufferType.DRAM)
