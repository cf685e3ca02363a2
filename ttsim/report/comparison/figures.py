"""What is compared: device operations as a report, or the rows of a card's profiler, tell of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTensor:
    """A tensor that an operation reads or makes, in words; what is not told is empty.

    Attributes:
        name: INPUT_0, OUTPUT_0 ...
        shape: Its logical one, as 1x1x64x32.
        dtype: BFLOAT16 ...
        layout: TILE or ROW_MAJOR.
        memory: L1_HEIGHT_SHARDED ...
    """

    name: str
    shape: str = ""
    dtype: str = ""
    layout: str = ""
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOperation:
    """A device operation, as a report tells of it.

    Attributes:
        name: As a graph capture shows it.
        cycles: What it takes; None where no model knows it, and in the rows of a profiler, which have times alone.
        nanoseconds: The same in time; None where nobody knows.
        bound_by: The stage that binds it; empty where nobody says.
        core_count: Cores that take part; 0 likewise.
        fidelity: LoFi to HiFi4; empty where nothing is multiplied, or nobody says.
        tensors: What it reads and makes; none in a report in JSON.
        stages: Cycles of the critical path, or busy ones where no path is known, by stage; none in a network's report.
    """

    name: str
    cycles: int | None
    nanoseconds: float | None
    bound_by: str
    core_count: int
    fidelity: str = ""
    tensors: tuple[ReportedTensor, ...] = ()
    stages: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report tells.

    Attributes:
        device: Name of the device, or its architecture; empty if nobody says.
        arch: Its architecture; likewise.
        clock_hz: Its clock; 0 where times are told and no cycles.
        operations: In order.
        left_out: Rows that are no operations of the device, in words.
    """

    device: str
    clock_hz: int
    operations: tuple[ReportedOperation, ...]
    arch: str = ""
    left_out: tuple[str, ...] = ()
