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
class Deed:
    """A device operation, as every section tells of it.

    Attributes:
        number: Counted from 0.
        name: As a graph capture shows it.
        place: The function that ran it and the lines of the script; empty for one call.
        start_nanoseconds: Kernel time of all operations before it.
        left_share: The same, of all kernel time.
        width_share: Its kernel time, likewise.
        cycles: What it takes; None where no model knows it.
        nanoseconds: The same in time; 0 likewise.
        bound_by: The stage that binds it; empty likewise.
        core_count: Cores that take part; 0 likewise.
        time: The same in detail; None where no model knows it, or only its sum is known.
        untimed: Why; empty if one does.
        circular_bytes: Circular buffers, on the core that has most.
        buffer_bytes: Buffers on a core.
        l1_bytes: Both together.
        l1_share: The same, of what a program can use.
    """

    number: int
    name: str
    place: str
    start_nanoseconds: float
    left_share: float
    width_share: float
    cycles: int | None
    nanoseconds: float
    bound_by: str
    core_count: int
    time: OperationTime | None
    untimed: str
    circular_bytes: int
    buffer_bytes: int
    l1_bytes: int
    l1_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """How near an operation comes to what the machine could do at best.

    Attributes:
        deed: Which.
        math_share: Least cycles of the matrix units, of its cycles.
        dram_share: Of DRAM, likewise.
        network_share: Of the networks, likewise.
    """

    deed: Deed
    math_share: float
    dram_share: float
    network_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How far an operation is above the least that the machine needs for it: where there is most to gain.

    Attributes:
        deed: Which.
        cycles: Above its roof.
        share: The same, of all cycles.
        stages: What binds it, and what does so just as well.
        does: What the stage that binds it does.
    """

    deed: Deed
    cycles: int
    share: float
    stages: tuple[str, ...]
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis.

    Attributes:
        text: What it says.
        share: Where it stands.
    """

    text: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofPoint:
    """An operation in the chart.

    Attributes:
        deed: Which.
        flops_per_byte: Issued, of each byte from or to DRAM.
        flops_per_second: Issued.
        left_share: Where it stands.
        top_share: Likewise.
    """

    deed: Deed
    flops_per_byte: float
    flops_per_second: float
    left_share: float
    top_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLine:
    """A roof in the chart.

    Attributes:
        name: What it is, with its figure.
        start: Share from the left and from the top.
        end: Likewise.
    """

    name: str
    start: tuple[float, float]
    end: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofChart:
    """The chart.

    Attributes:
        points: Operations that multiply, and move bytes from or to DRAM.
        lines: Roofs, that of DRAM first.
        across: Issued FLOP of each byte.
        upward: Issued FLOP of each second; shares are from the bottom.
    """

    points: tuple[RoofPoint, ...]
    lines: tuple[RoofLine, ...]
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A call as Python.

    Attributes:
        name: Which.
        text: To paste.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A core in a picture of the grid.

    Attributes:
        core: Where it is and what it does; figures of 0 where it does nothing.
        circular_bytes: Circular buffers of the operation that has most of them there.
        circular_share: The same, of what a program can use.
    """

    core: CoreTime
    circular_bytes: int
    circular_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMap:
    """A figure of every core, as a picture shows it.

    Attributes:
        name: Which.
        unit: Its unit: "cycles" or "B".
        whole: What shares are of.
        figures: Row by row, as the cells of the grid.
        shares: How strong the color is, likewise.
        least: The smallest figure.
        most: The largest one.
    """

    name: str
    unit: str
    whole: str
    figures: tuple[int, ...]
    shares: tuple[float, ...]
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The worker cores.

    Attributes:
        columns: How many.
        rows: How many.
        cells: Row by row, those that do nothing among them.
        maps: Their figures; those that no core has are left out.
    """

    columns: int
    rows: int
    cells: tuple[Cell, ...]
    maps: tuple[CoreMap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A call, or a network.

    Attributes:
        name: What the page calls it.
        asked: What was to run, in lines of name and text.
        verdict: Lines that say what came out.
        error: Why it failed; None if it did not.
        deeds: Device operations in order.
        total: Of all that are timed; None if nothing is.
        calls: The calls in the report on cycles, for what is said in words.
        memory: The device operations with their buffers and headroom; none for a network.
        l1: L1 of a core over the operations.
        grid: The worker cores.
        stages: Names of the stages in which any operation spends time, in the order of the pipeline.
        roofs: The longest operations, the longest first.
        excesses: The operations that are farthest above their roofs, the farthest first.
        chart: The roofline chart; None if no operation has a place in it.
        steps: The axis of operations.
        times: The axis of time.
        kinds: Sums over operations of one name; none for one call.
        layers: Sums over lines of the script, likewise.
        partitions: How convolutions were cut up.
        accuracy: Against float64; None where it is not known.
        unknown_accuracy: Why it is not; empty if it is, or nothing came out.
        advice: What to change; None where nobody asked.
        between: What passes between operations.
        sources: Calls as Python, where they are known.
    """

    name: str
    asked: tuple[tuple[str, str], ...]
    verdict: tuple[str, ...]
    error: str | None
    deeds: tuple[Deed, ...]
    total: Totals | None
    calls: tuple[CallTime, ...]
    memory: tuple[OperationUse, ...]
    l1: L1Map
    grid: Grid
    stages: tuple[str, ...]
    roofs: tuple[Roof, ...]
    excesses: tuple[Excess, ...] = ()
    chart: RoofChart | None = None
    steps: tuple[Tick, ...] = ()
    times: tuple[Tick, ...] = ()
    kinds: tuple[Sum, ...] = ()
    layers: tuple[Sum, ...] = ()
    partitions: tuple[Partition, ...] = ()
    accuracy: Accuracy | None = None
    unknown_accuracy: str = ""
    advice: Advice | None = None
    between: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page.

    Attributes:
        title: Of the page.
        device: Name of the device.
        clock_hz: Its clock.
        parts: What ran, each with all its sections.
        counted: What the cycles count, and what not.
    """

    title: str
    device: str
    clock_hz: int
    parts: tuple[Part, ...]
    counted: str
