"""The figures of a page, as frozen values: those of the reports it shows, and where they stand in its pictures.

Shares lie between 0 and 1.
"""

from dataclasses import dataclass

from ttsim.report.cycles.advice import Advice
from ttsim.report.cycles.figures import CallTime, CoreTime, OperationTime, Totals
from ttsim.report.memory.accuracy import Accuracy
from ttsim.report.memory.figures import OperationUse, Partition
from ttsim.report.memory.l1_map import L1Map
from ttsim.report.network.figures import Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOpRow:
    """A device operation, as every section tells of it."""

    number: int  # Counted from 0
    name: str  # As a graph capture shows it
    place: str  # The function that ran it and the lines of the script; empty for one call
    start_nanoseconds: float  # Kernel time of all operations before it
    left_share: float  # The same, of all kernel time
    width_share: float  # Its kernel time, likewise
    cycles: int | None  # What it takes; None where no model knows it
    nanoseconds: float  # The same in time; 0 likewise
    bound_by: str  # The stage that binds it; empty likewise
    core_count: int  # Cores that take part; 0 likewise
    time: OperationTime | None  # The same in detail; None where no model knows it, or only its sum is known
    untimed: str  # Why; empty if one does
    circular_bytes: int  # Circular buffers, on the core that has most
    buffer_bytes: int  # Buffers on a core
    l1_bytes: int  # Both together
    l1_share: float  # The same, of what a program can use


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """How near an operation comes to what the machine could do at best."""

    deed: DeviceOpRow
    math_share: float  # Least cycles of the matrix units, of its cycles
    dram_share: float
    network_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How far an operation is above the least that the machine needs for it: where there is most to gain."""

    deed: DeviceOpRow
    cycles: int  # Above its roof
    share: float  # The same, of all cycles
    stages: tuple[str, ...]  # What binds it, and what does so just as well
    does: str  # What the stage that binds it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis."""

    text: str  # What it says
    share: float  # Where it stands


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofPoint:
    """An operation in the chart."""

    deed: DeviceOpRow
    flops_per_byte: float  # Issued, of each byte from or to DRAM
    flops_per_second: float
    left_share: float  # Where it stands
    top_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLine:
    """A roof in the chart."""

    name: str  # What it is, with its figure
    start: tuple[float, float]  # Share from the left and from the top
    end: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofChart:
    """The chart."""

    points: tuple[RoofPoint, ...]  # Operations that multiply, and move bytes from or to DRAM
    lines: tuple[RoofLine, ...]  # Roofs, that of DRAM first
    across: tuple[Tick, ...]  # Issued FLOP of each byte
    upward: tuple[Tick, ...]  # Issued FLOP of each second; shares are from the bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A call as Python."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A core in a picture of the grid."""

    core: CoreTime  # Where it is and what it does; figures of 0 where it does nothing
    circular_bytes: int  # Circular buffers of the operation that has most of them there
    circular_share: float  # The same, of what a program can use


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMap:
    """A figure of every core, as a picture shows it."""

    name: str
    unit: str  # Its unit: "cycles" or "B"
    whole: str  # What shares are of
    figures: tuple[int, ...]  # Row by row, as the cells of the grid
    shares: tuple[float, ...]  # How strong the color is, likewise
    least: int  # The smallest figure
    most: int  # The largest one


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The worker cores."""

    columns: int  # How many
    rows: int  # How many
    cells: tuple[Cell, ...]  # Row by row, those that do nothing among them
    maps: tuple[CoreMap, ...] = ()  # Their figures; those that no core has are left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A call, or a network."""

    name: str  # What the page calls it
    asked: tuple[tuple[str, str], ...]  # What was to run, in lines of name and text
    verdict: tuple[str, ...]  # Lines that say what came out
    error: str | None  # Why it failed; None if it did not
    deeds: tuple[DeviceOpRow, ...]  # Device operations in order
    total: Totals | None  # Of all that are timed; None if nothing is
    calls: tuple[CallTime, ...]  # The calls in the report on cycles, for what is said in words
    memory: tuple[OperationUse, ...]  # The device operations with their buffers and headroom; none for a network
    l1: L1Map  # L1 of a core over the operations
    grid: Grid  # The worker cores
    stages: tuple[str, ...]  # Names of the stages in which any operation spends time, in the order of the pipeline
    roofs: tuple[Roof, ...]  # The longest operations, the longest first
    excesses: tuple[Excess, ...] = ()  # The operations that are farthest above their roofs, the farthest first
    chart: RoofChart | None = None  # The roofline chart; None if no operation has a place in it
    steps: tuple[Tick, ...] = ()  # The axis of operations
    times: tuple[Tick, ...] = ()
    kinds: tuple[Sum, ...] = ()  # Sums over operations of one name; none for one call
    layers: tuple[Sum, ...] = ()  # Sums over lines of the script, likewise
    partitions: tuple[Partition, ...] = ()  # How convolutions were cut up
    accuracy: Accuracy | None = None  # Against float64; None where it is not known
    unknown_accuracy: str = ""  # Why it is not; empty if it is, or nothing came out
    advice: Advice | None = None  # What to change; None where nobody asked
    between: tuple[str, ...] = ()  # What passes between operations
    sources: tuple[Source, ...] = ()  # Calls as Python, where they are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    title: str
    device: str
    clock_hz: int
    parts: tuple[Part, ...]  # What ran, each with all its sections
    counted: str  # What the cycles count, and what not
