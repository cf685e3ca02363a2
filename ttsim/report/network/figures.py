"""The figures of a report on a network, as frozen values; `figures_of` computes them, `report` lays them out.

Shares lie between 0 and 1. Cycles are whole ones of the device's clock, as in a report on cycles.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingBuffer:
    """A buffer in L1 at some moment.

    Attributes:
        name: What it is, in the call that made it.
        memory: "L1" or "L1_SMALL".
        bank_bytes: On the core that has most of it.
        address: On every core that has it.
        function: The function of the library that made it; empty if it was there before the first call.
        where: The lines of the script that made it; empty likewise.
    """

    name: str
    memory: str
    bank_bytes: int
    address: int
    function: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingCircularBuffer:
    """A circular buffer of a program that runs, if it has L1 of its own.

    Attributes:
        name: Its role.
        size_bytes: On each of its cores.
        cores: Where, as ttnn prints it.
    """

    name: str
    size_bytes: int
    cores: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOperation:
    """A device operation of a pass through a network.

    Attributes:
        number: Counted from 0.
        name: As a graph capture shows it.
        call: Number of the call that ran it, counted from 0.
        function: The function of that call.
        where: The lines of the script that made the call, outermost first.
        start_nanoseconds: Kernel time of all operations before it.
        cycles: What it takes; 0 where no model knows it.
        nanoseconds: The same in time.
        share: Of all cycles.
        bound_by: The stage that binds it; empty where no model knows it.
        core_count: Cores that take part; 0 likewise.
        circular_bytes: Its circular buffers that are no views, on the core that has most.
        buffer_bytes: L1 and L1_SMALL buffers on a core, at the fullest moment while it runs.
        untimed: Why no model knows it; empty if one does.
    """

    number: int
    name: str
    call: int
    function: str
    where: str
    start_nanoseconds: float
    cycles: int
    nanoseconds: float
    share: float
    bound_by: str
    core_count: int
    circular_bytes: int
    buffer_bytes: int
    untimed: str = ""

    @property
    def l1_bytes(self) -> int:
        """Circular buffers and buffers together, on a core."""
        return self.circular_bytes + self.buffer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Operations that have something in common, together.

    Attributes:
        name: The kind of operation, or the lines of the script.
        functions: The functions that ran them, each once, in order.
        calls: How many calls ran them.
        count: How many operations.
        untimed: How many of them no model knows.
        cycles: Of all others.
        nanoseconds: The same in time.
        share: Of all cycles.
        l1_bytes: The most that one of them finds and takes of a core's L1.
    """

    name: str
    functions: tuple[str, ...]
    calls: int
    count: int
    untimed: int
    cycles: int
    nanoseconds: float
    share: float
    l1_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWater:
    """L1 of a core at the fullest moment of a pass, and what lives there.

    Counted as ttnn's extract_resource_usage_per_core counts, with three differences: a program found in the program
    cache has its circular buffers, too; those of the fullest core count; and so does what lay there before.

    Attributes:
        operation: Number of the device operation that runs; None if no operation ran.
        nanoseconds: Kernel time until that operation begins.
        usable_bytes: What a program can use of L1, L1_SMALL included.
        total_bytes: Circular buffers and buffers.
        share: Of the usable bytes.
        circular_buffers: In order of allocation.
        buffers: Oldest first.
    """

    operation: int | None
    nanoseconds: float
    usable_bytes: int
    total_bytes: int
    share: float
    circular_buffers: tuple[LivingCircularBuffer, ...] = ()
    buffers: tuple[LivingBuffer, ...] = ()
