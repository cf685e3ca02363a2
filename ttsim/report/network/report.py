"""The report on a network that users get: everything that ran between two moments, with nothing left out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.launch import Launch
from ttsim.report.columns import fitted, terminal_width, wrapped
from ttsim.report.cycles.explain import counted, cycles, explain_inclusion, percent, time
from ttsim.report.cycles.launches import LaunchTimes, launch_lines, launch_times
from ttsim.report.cycles.report import INCLUDES, LEAVES_OUT
from ttsim.report.memory.l1_map import L1Map, l1_map
from ttsim.report.network.figures import HighWater, LivingBuffer, PassOperation, Sum
from ttsim.report.network.figures_of import RanOperation, held, high_water, pass_operations, sums
from ttsim.report.plain import text
from ttsim.report.printable import printable, short_name, short_place

FORMAT = 1  # raised when a field changes its meaning or goes
NOWHERE = "(no line of a script)"
SMALL = "L1_SMALL"
OPERATION_HEADINGS = ("#", "operation", "function", "where", "begins", "cycles", "time", "share", "bound by", "cores",
                      "L1 B")  # fmt: skip
KIND_HEADINGS = ("operation", "count", "untimed", "cycles", "time", "share", "L1 B")
LAYER_HEADINGS = ("where", "functions", "calls", *KIND_HEADINGS[1:])
LONGEST_PLACE = 60  # places that a line of a script takes, outside of tables
WORDS = ("operation", "function", "where", "bound by", "functions")
OPERATION_LEAST_NEEDED = ("begins", "function", "cores", "time", "where", "L1 B", "share")
KIND_LEAST_NEEDED = ("time", "L1 B", "untimed", "share")
LAYER_LEAST_NEEDED = ("time", "functions", "L1 B", "untimed", "calls", "count", "share")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkReport:
    """What calls did on a device, one after the other: ``print(report)`` shows tables, ``to_json()`` has all figures.

    Attributes:
        device: Its name.
        clock_hz: Its clock.
        calls: How many calls ran a device operation.
        cycles: Of all operations that a model knows.
        nanoseconds: The same in time.
        operations: The device operations in order, those that no model knows among them.
        kinds: Sums over operations of one name, in order of the first.
        layers: Sums over operations that the same lines of the script ran, likewise.
        high_water: L1 at its fullest moment.
        l1: What lies in L1 of a core over all operations, each at its fullest moment.
        launches: What passes between operations; no other figure has it in.
        includes: What the cycles count.
        leaves_out: What they do not count.
    """

    device: str
    clock_hz: int
    calls: int
    cycles: int
    nanoseconds: float
    operations: tuple[PassOperation, ...]
    kinds: tuple[Sum, ...]
    layers: tuple[Sum, ...]
    high_water: HighWater
    l1: L1Map
    launches: LaunchTimes
    includes: tuple[str, ...] = INCLUDES
    leaves_out: tuple[str, ...] = LEAVES_OUT

    @property
    def untimed(self) -> tuple[PassOperation, ...]:
        """Operations that no model knows."""
        return tuple(one for one in self.operations if one.untimed)

    @property
    def headline(self) -> str:
        """What ran, and how long it took, in a line."""
        missing = f", not counting {len(self.untimed)} of them" if self.untimed else ", all timed"
        return (
            f"{self.device}: {cycles(self.cycles)} cycles, {time(self.nanoseconds)} at {self.clock_hz / 1e9:g} GHz,"
            f" in {counted(len(self.operations), 'device operation')} of {counted(self.calls, 'call')}{missing}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of their fields."""
        return {"format": FORMAT, **asdict(self)}

    def to_json(self) -> str:
        """All figures; the same bytes for the same calls."""
        return text(self.to_dict())

    def table(self, width: int | None = None) -> str:
        """Tables: operations, kinds, layers; then the fullest moment of L1.

        Args:
            width: Characters of a line: what does not fit is left out column by column, and words go on below. None:
                everything, on lines as long as it takes.
        """
        if not self.operations:
            return f"No device operation ran on {self.device}."
        kinds = [KIND_HEADINGS, *((short_name(one.name), *_cells(one)) for one in _longest(self.kinds))]
        operations = [OPERATION_HEADINGS, *map(_operation_row, self.operations)]
        below = [
            *(f"Not counted: #{one.number} {one.name}, {one.untimed}" for one in self.untimed),
            *launch_lines(self.launches),
            explain_inclusion(self.includes, self.leaves_out),
        ]
        return "\n".join(
            [
                *wrapped(self.headline, width, indent=2),
                "",
                *fitted(operations, width, words=WORDS, least_needed=OPERATION_LEAST_NEEDED),
                "\nBy kind",
                *fitted(kinds, width, words=WORDS, least_needed=KIND_LEAST_NEEDED),
                "\nBy line of the script",
                *fitted(
                    [LAYER_HEADINGS, *map(_layer_row, self.layers)], width, words=WORDS, least_needed=LAYER_LEAST_NEEDED
                ),
                "",
                *(line for text in _fullest(self) for line in wrapped(text, width, indent=4)),
                "",
                *(line for text in below for line in wrapped(text, width, indent=2)),
            ]
        )

    def __str__(self) -> str:
        """The tables: as wide as the terminal where one shows them, whole elsewhere."""
        return self.table(terminal_width())


def network_report(ran: Sequence[RanOperation], launches: Sequence[Launch], spec: DeviceSpec) -> NetworkReport:
    """The report on operations that ran one after the other on a device.

    Args:
        launches: Of the same operations.
    """
    operations = pass_operations(ran, spec)
    taken = sum(one.cycles for one in operations)
    in_time = nanoseconds(taken, spec.clock_hz)
    return NetworkReport(
        device=spec.name,
        clock_hz=spec.clock_hz,
        calls=len({one.call for one in operations}),
        cycles=taken,
        nanoseconds=in_time,
        operations=operations,
        kinds=sums(operations, spec, by=lambda one: one.name),
        layers=sums(operations, spec, by=lambda one: one.where),
        high_water=high_water(ran, operations, spec),
        l1=l1_map([held(one, spec) for one in ran], spec),
        launches=launch_times(launches, in_time, spec),
    )


def _longest(found: Sequence[Sum]) -> list[Sum]:
    return sorted(found, key=lambda one: -one.cycles)


def _operation_row(one: PassOperation) -> tuple[str, ...]:
    taken = ("not timed", "", "") if one.untimed else (cycles(one.cycles), time(one.nanoseconds), percent(one.share))
    cores = "" if one.untimed else str(one.core_count)
    where = (short_name(one.name), short_name(one.function), short_place(one.where or NOWHERE))
    return (str(one.number), *where, time(one.start_nanoseconds), *taken, one.bound_by, cores, f"{one.l1_bytes:,}")


def _layer_row(one: Sum) -> tuple[str, ...]:
    return (short_place(one.name or NOWHERE), ", ".join(one.functions), str(one.calls), *_cells(one))


def _cells(one: Sum) -> tuple[str, ...]:
    untimed = str(one.untimed) if one.untimed else ""
    taken = (cycles(one.cycles), time(one.nanoseconds), percent(one.share))
    return (str(one.count), untimed, *taken, f"{one.l1_bytes:,}")


def _fullest(report: NetworkReport) -> Iterator[str]:
    """The fullest moment of L1, and a line for all that lives there."""
    mark = report.high_water
    if mark.operation is None:
        return
    there = report.operations[mark.operation]
    yield (
        f"L1 is fullest in #{there.number} {there.name} of {there.function} ({_line(there.where)}), "
        f"{time(mark.nanoseconds)} after the start: {mark.total_bytes:,} of {mark.usable_bytes:,} B of a core "
        f"({percent(mark.share)}), {there.circular_bytes:,} of them circular buffers"
    )
    for circular in mark.circular_buffers:
        yield f"  {circular.size_bytes:>9,} B  circular buffer {circular.name} on {circular.cores}"
    for buffer in mark.buffers:
        if buffer.memory != SMALL:
            named = f"{printable(buffer.name)}, {_maker(buffer)}"
            yield f"  {buffer.bank_bytes:>9,} B  {buffer.memory} at {buffer.address}: {named}"
    small = [buffer.bank_bytes for buffer in mark.buffers if buffer.memory == SMALL]
    if small:
        yield f"  {sum(small):>9,} B  {SMALL}: {len(small)} config tensors of programs in the cache"


def _line(where: str) -> str:
    return short_place(where or NOWHERE, LONGEST_PLACE)


def _maker(buffer: LivingBuffer) -> str:
    if not buffer.function:
        return "made outside of these calls"
    return f"of {buffer.function} ({_line(buffer.where)})"
