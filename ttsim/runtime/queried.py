"""The answers of queries about a call: memory, time, and states of memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from device.cores import PlainEnum
from device.errors import (
    ArgumentTypeError,
    CircularBufferError,
    NotSimulatedError,
    OutOfMemoryError,
    SpecError,
    TTSimError,
    shown,
)
from device.memory.memory_config import BufferType
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.tensor_spec import TensorSpec


class ExecutionStatus(PlainEnum):
    """Whether a call would run.

    Examples:
        >>> ttnn.graph.ExecutionStatus.Success.value
        0
    """

    Success = 0
    Error = 1


class ResourceUsage(NamedTuple):
    """The memory that a call takes on a core, in bytes.

    Attributes:
        cb_peak_size_per_core: Peak of circular buffers.
        l1_buffers_peak_per_core: Peak of L1 buffers.
        peak_memory_usage_per_core: Peak of the sum of both.
        l1_output_buffer_per_core: Results in L1.

    Examples:
        >>> ttnn.graph.ResourceUsage().peak_memory_usage_per_core
        0
    """

    cb_peak_size_per_core: int = 0
    l1_buffers_peak_per_core: int = 0
    peak_memory_usage_per_core: int = 0
    l1_output_buffer_per_core: int = 0


NOTHING: Final = ResourceUsage()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintQueryResponse:
    """The answer to a query of memory.

    Attributes:
        status: Success or Error.
        resource_usage: Bytes per core; all 0 after an error.
        output_tensor_specs: The specs of the results; None after an error.
        error_message: The text of the error, with the real library's first line; None without an error.
        refusal: The class of the error: "argument", "legality", "memory" or "not simulated"; None without an error.

    Examples:
        >>> ttnn.graph.query_op_constraints(ttnn.relu, device, 1.5).refusal
        'argument'
    """

    status: ExecutionStatus
    resource_usage: ResourceUsage = NOTHING
    output_tensor_specs: tuple[TensorSpec, ...] | None = None
    error_message: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeQueryResponse:
    """The answer to a query of time.

    Attributes:
        status: Success or Error.
        runtime: Nanoseconds of the kernels of all device operations, as `estimate_cycles` reports them; 0 after an
            error.
        trace_replay: Nanoseconds of a trace replay, kernels and dispatch; the real query measures replays.
        error_share: Expected error of ``runtime`` for measured kinds of operations; None if none was measured.
        unmeasured_share: Share of ``runtime`` in operations that were never measured on this architecture.
        untimed: Device operations without a model of time, which ``runtime`` excludes.
        error_message: As in `ConstraintQueryResponse`.
        refusal: As in `ConstraintQueryResponse`.

    Examples:
        >>> spec = ttnn.TensorSpec((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT)
        >>> response = ttnn.graph.query_op_runtime(ttnn.relu, device, spec)
        >>> response.runtime < response.trace_replay, response.untimed
        (True, ())
    """

    status: ExecutionStatus
    runtime: int = 0
    trace_replay: int = 0
    error_share: float | None = None
    unmeasured_share: float = 0.0
    untimed: tuple[str, ...] = ()
    error_message: str | None = None
    refusal: str | None = None


class AllocationRecord(NamedTuple):
    """A buffer in a state of memory.

    Attributes:
        buffer_type: The memory.
        address: First byte, the same in every bank.
        size_per_bank: Bytes of every bank.

    Examples:
        >>> ttnn.graph.AllocationRecord(ttnn.BufferType.L1, 1_000_000, 2048).size_per_bank
        2048
    """

    buffer_type: BufferType
    address: int
    size_per_bank: int


EXAMPLE: Final = "AllocationRecord(ttnn.BufferType.L1, address=1000000, size_per_bank=2048)"
Regions = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MockAllocatorState:
    """The occupied regions of a device's memories, as sorted pairs (start, end); adjacent regions are merged.

    Attributes:
        regions: Regions by memory; a memory without an entry is empty.

    Examples:
        >>> record = ttnn.graph.AllocationRecord(ttnn.BufferType.L1, 1_000_000, 2048)
        >>> state = ttnn.graph.MockAllocatorState().with_allocations([record])
        >>> state.total_allocated_size(), state.lowest_occupied(ttnn.BufferType.L1)
        (2048, 1000000)
    """

    regions: Mapping[BufferType, Regions] = field(default_factory=dict)

    def total_allocated_size(self, buffer_type: BufferType | None = None) -> int:
        """Bytes of a bank in use, in one memory or in all."""
        wanted = self.regions if buffer_type is None else [buffer_type]
        return sum(end - start for kind in wanted for start, end in self.regions.get(kind, ()))

    def is_empty(self, buffer_type: BufferType) -> bool:
        """Whether a memory is empty."""
        return not self.regions.get(buffer_type)

    def lowest_occupied(self, buffer_type: BufferType) -> int | None:
        """The lowest address in use; None in an empty memory."""
        return min((start for start, _ in self.regions.get(buffer_type, ())), default=None)

    def with_allocations(self, live: Iterable[AllocationRecord]) -> "MockAllocatorState":
        """The state with exactly these buffers; to evict a buffer, leave its record out.

        Raises:
            ArgumentTypeError: A record is no AllocationRecord, or has a wrong memory, address or size.
        """
        spans: dict[BufferType, list[tuple[int, int]]] = {}
        for record in live:
            _require_record(record)
            if record.size_per_bank:  # a tensor without elements takes none
                spans.setdefault(record.buffer_type, []).append((record.address, record.address + record.size_per_bank))
        return MockAllocatorState({kind: _joined(regions) for kind, regions in spans.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutput:
    """The answer to a query on a given state of memory.

    Attributes:
        response: The answer of `query_op_constraints`.
        new_state: The state of memory after the call.
        output_allocations: The buffers of the results in ``new_state``, in order.

    Examples:
        >>> empty = ttnn.graph.extract_mock_allocator_state(device)
        >>> spec = ttnn.TensorSpec((1, 1, 64, 128), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1)
        >>> output = ttnn.graph.query_op_constraints_with_initial_state(ttnn.relu, device, empty, spec)
        >>> [record.size_per_bank for record in output.output_allocations]
        [2048]
    """

    response: ConstraintQueryResponse
    new_state: MockAllocatorState
    output_allocations: tuple[AllocationRecord, ...] = ()


REFUSALS: Final = (
    (NotSimulatedError, "not simulated"),
    (OutOfMemoryError, "memory"),
    (CircularBufferError, "memory"),
    (ArgumentTypeError, "argument"),
    (SpecError, "argument"),
    (TTSimError, "legality"),
)


def refusal_of(error: TTSimError) -> str:
    """The class of an error, for callers that decide what to try next."""
    return next(name for kind, name in REFUSALS if isinstance(error, kind))


def tensors_of(returned: Any) -> list[Tensor]:
    """The device tensors among the return values of a call."""
    if isinstance(returned, list | tuple):
        return [tensor for value in returned for tensor in tensors_of(value)]
    return [returned] if isinstance(returned, Tensor) and returned.device() is not None else []


def l1_bytes_of(results: Iterable[Tensor]) -> int:
    """Bytes per core of results in L1; a view counts the pages of its own shape."""
    buffers = [result.spec.buffer(device.spec) for result in results if (device := result.device()) is not None]
    return sum(buffer.bank_bytes for buffer in buffers if buffer.buffer_type is not BufferType.DRAM)


def _require_record(record: object) -> None:
    """Raises ArgumentTypeError for what is no record, or for a field of one that is wrong."""
    if not isinstance(record, AllocationRecord):
        raise ArgumentTypeError(f"a state has records such as {EXAMPLE}, not {shown(record)}")
    if not isinstance(record.buffer_type, BufferType):
        raise ArgumentTypeError(
            f"buffer_type of a record must be a memory such as ttnn.BufferType.L1, not {shown(record.buffer_type)}"
        )
    for name in ("address", "size_per_bank"):
        value = getattr(record, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ArgumentTypeError(f"{name} of a record must be an integer from 0 on, in bytes, not {shown(value)}")


def _joined(regions: Iterable[tuple[int, int]]) -> Regions:
    """Regions sorted by address; regions that touch or overlap are merged."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(regions):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)
