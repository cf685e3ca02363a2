"""The figures of a report on a network, as frozen values; `figures_of` computes them, `report` lays them out.

Shares lie between 0 and 1. Cycles are whole ones of the device's clock, as in a report on cycles.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingBuffer:
    """A buffer in L1 at some moment."""

    name: str  # What it is, in the call that made it
    memory: str  # "L1" or "L1_SMALL"
    bank_bytes: int  # On the core that has most of it
    address: int  # On every core that has it
    function: str = ""  # The function of the library that made it; empty if it was there before the first call
    where: str = ""  # The lines of the script that made it; empty likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingCircularBuffer:
    """A circular buffer of a program that runs, if it has L1 of its own."""

    name: str
    size_bytes: int  # On each of its cores
    cores: str  # Where, as ttnn prints it


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOperation:
    """A device operation of a pass through a network."""

    number: int  # Counted from 0
    name: str  # As a graph capture shows it
    call: int  # Number of the call that ran it, counted from 0
    function: str
    where: str  # The lines of the script that made the call, outermost first
    start_nanoseconds: float  # Kernel time of all operations before it
    cycles: int  # What it takes; 0 where no model knows it
    nanoseconds: float  # The same in time
    share: float  # Of all cycles
    bound_by: str  # The stage that binds it; empty where no model knows it
    core_count: int  # Cores that take part; 0 likewise
    circular_bytes: int  # Its circular buffers that are no views, on the core that has most
    buffer_bytes: int  # L1 and L1_SMALL buffers on a core, at the fullest moment while it runs
    untimed: str = ""  # Why no model knows it; empty if one does

    @property
    def l1_bytes(self) -> int:
        """Circular buffers and buffers together, on a core."""
        return self.circular_bytes + self.buffer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Operations that have something in common, together."""

    name: str  # The kind of operation, or the lines of the script
    functions: tuple[str, ...]  # The functions that ran them, each once, in order
    calls: int  # How many calls ran them
    count: int  # How many operations
    untimed: int  # How many of them no model knows
    cycles: int  # Of all others
    nanoseconds: float  # The same in time
    share: float  # Of all cycles
    l1_bytes: int  # The most that one of them finds and takes of a core's L1


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWater:
    """L1 of a core at the fullest moment of a pass, and what lives there.

    Counted as ttnn's extract_resource_usage_per_core counts, with three differences: a program found in the program
    cache has its circular buffers, too; those of the fullest core count; and so does what lay there before.
    """

    operation: int | None  # Number of the device operation that runs; None if no operation ran
    nanoseconds: float  # Kernel time until that operation begins
    usable_bytes: int  # What a program can use of L1, L1_SMALL included
    total_bytes: int  # Circular buffers and buffers
    share: float  # Of the usable bytes
    circular_buffers: tuple[LivingCircularBuffer, ...] = ()  # In order of allocation
    buffers: tuple[LivingBuffer, ...] = ()  # Oldest first
