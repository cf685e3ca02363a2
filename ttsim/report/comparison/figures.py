"""What is compared: device operations as a report, or the rows of a card's profiler, tell of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTensor:
    """A tensor that an operation reads or makes, in words; what is not told is empty."""

    name: str  # INPUT_0, OUTPUT_0 ..
    shape: str = ""  # Its logical one, as 1x1x64x32
    dtype: str = ""  # BFLOAT16 ..
    layout: str = ""  # TILE or ROW_MAJOR
    memory: str = ""  # L1_HEIGHT_SHARDED ..


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOperation:
    """A device operation, as a report tells of it."""

    name: str  # As a graph capture shows it
    # What it takes; None where no model knows it, and in the rows of a profiler, which have times alone
    cycles: int | None
    nanoseconds: float | None  # The same in time; None where nobody knows
    bound_by: str  # The stage that binds it; empty where nobody says
    core_count: int  # Cores that take part; 0 likewise
    fidelity: str = ""  # LoFi to HiFi4; empty where nothing is multiplied, or nobody says
    tensors: tuple[ReportedTensor, ...] = ()  # What it reads and makes; none in a report in JSON
    # Cycles of the critical path, or busy ones where no path is known, by stage; none in a network's report
    stages: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report tells."""

    device: str  # Name of the device, or its architecture; empty if nobody says
    clock_hz: int  # Its clock; 0 where times are told and no cycles
    operations: tuple[ReportedOperation, ...]
    arch: str = ""  # Its architecture; likewise
    left_out: tuple[str, ...] = ()  # Rows that are no operations of the device, in words
