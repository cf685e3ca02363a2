"""What the parts of a page have in common: operations along the time, cores of the grid, distances to the roof."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ttsim.report.cycles.figures import CallTime, CoreTime, OperationTime, UntimedOperation
from ttsim.report.memory.l1_map import CIRCULAR, L1Map
from ttsim.report.network.figures import PassOperation
from ttsim.report.page.figures import Cell, CoreMap, DeviceOpRow, Excess, Grid, Roof, Tick

SHOWN_ROOFS: Final = 16  # operations
SHOWN_EXCESSES: Final = 8
MOST_STEPS: Final = 12  # marks on an axis
MOST_TIMES: Final = 6
UNITS: Final = ((1e6, "ms"), (1e3, "us"), (1.0, "ns"))  # nanoseconds of each


def deeds(
    ran: Sequence[tuple[str, int, int]], calls: Sequence[CallTime] | None, usable_bytes: int
) -> tuple[DeviceOpRow, ...]:
    """Device operations one after the other, each with what it takes.

    Args:
        ran: Name, bytes of circular buffers and bytes of buffers of each that ran, in order.
        calls: The cycles of the calls that ran all of them, in order; None where no cycles are known.
        usable_bytes: L1 that a program can use.
    """
    each = [None] * len(ran) if calls is None else [one for call in calls for one in call.in_order]
    whole = sum(one.nanoseconds for one in each if isinstance(one, OperationTime))
    found: list[DeviceOpRow] = []
    before = 0.0
    for (name, circular_bytes, buffer_bytes), taken in zip(ran, each, strict=True):
        time = taken if isinstance(taken, OperationTime) else None
        here = 0.0 if time is None else time.nanoseconds
        found.append(
            DeviceOpRow(
                number=len(found),
                name=name,
                place="",
                start_nanoseconds=before,
                left_share=before / whole if whole else 0.0,
                width_share=here / whole if whole else 0.0,
                cycles=None if time is None else time.cycles,
                nanoseconds=here,
                bound_by="" if time is None else time.bound_by,
                core_count=0 if time is None else time.core_count,
                time=time,
                untimed=taken.reason if isinstance(taken, UntimedOperation) else "no cycles" if taken is None else "",
                circular_bytes=circular_bytes,
                buffer_bytes=buffer_bytes,
                l1_bytes=circular_bytes + buffer_bytes,
                l1_share=(circular_bytes + buffer_bytes) / usable_bytes if usable_bytes else 0.0,
            )
        )
        before += here
    return tuple(found)


def deeds_of_pass(
    operations: Sequence[PassOperation], usable_bytes: int, calls: Sequence[CallTime] | None = None
) -> tuple[DeviceOpRow, ...]:
    """The device operations of a network, each with what it takes; the pass itself says which have a model.

    Args:
        usable_bytes: L1 that a program can use.
        calls: The cycles of the calls that ran all of them, in order; None where only their sums are known.
    """
    each = [None] * len(operations) if calls is None else [one for call in calls for one in call.in_order]
    whole = sum(one.nanoseconds for one in operations)
    return tuple(
        DeviceOpRow(
            number=one.number,
            name=one.name,
            place=f"{one.function}, {one.where}" if one.where else one.function,
            start_nanoseconds=one.start_nanoseconds,
            left_share=one.start_nanoseconds / whole if whole else 0.0,
            width_share=one.nanoseconds / whole if whole else 0.0,
            cycles=None if one.untimed else one.cycles,
            nanoseconds=one.nanoseconds,
            bound_by=one.bound_by,
            core_count=one.core_count,
            time=time if isinstance(time, OperationTime) else None,
            untimed=one.untimed,
            circular_bytes=one.circular_bytes,
            buffer_bytes=one.buffer_bytes,
            l1_bytes=one.l1_bytes,
            l1_share=one.l1_bytes / usable_bytes,
        )
        for one, time in zip(operations, each, strict=True)
    )


def stages_of(found: Sequence[DeviceOpRow]) -> tuple[str, ...]:
    """Stages in which any operation spends time."""
    spent = (stage for one in found if one.time for stage in one.time.stages)
    used = {stage.stage for stage in spent if stage.busy_cycles or stage.critical_cycles}
    return tuple(one.value for one in Stage if one.value in used)


def roofs(found: Sequence[DeviceOpRow]) -> tuple[Roof, ...]:
    """The longest operations beside what resources need for them at least."""
    timed = [(one, one.time) for one in found if one.time is not None and one.time.cycles]
    longest = sorted(timed, key=lambda one: -one[1].cycles)[:SHOWN_ROOFS]
    return tuple(
        Roof(
            deed=one,
            math_share=time.roofline.math_cycles / time.cycles,
            dram_share=time.roofline.dram_cycles / time.cycles,
            network_share=time.roofline.network_cycles / time.cycles,
        )
        for one, time in longest
    )


def excesses(found: Sequence[DeviceOpRow]) -> tuple[Excess, ...]:
    """The operations that are farthest above the least that the machine needs for them."""
    timed = [(one, one.time) for one in found if one.time is not None]
    whole = sum(time.cycles for _, time in timed)
    above = [(time.cycles - time.roofline.cycles, one, time) for one, time in timed]
    farthest = sorted((one for one in above if one[0] > 0), key=lambda one: -one[0])[:SHOWN_EXCESSES]
    return tuple(
        Excess(
            deed=one,
            cycles=cycles,
            share=cycles / whole,
            stages=(time.bound_by, *time.tied_with),
            does=next((stage.does for stage in time.stages if stage.stage == time.bound_by), ""),
        )
        for cycles, one, time in farthest
    )


def steps(operations: int) -> tuple[Tick, ...]:
    """The axis of so many operations, which are as wide as each other: numbers in steps of 1, 2 or 5, tens ..."""
    step = _step(operations / MOST_STEPS)
    return tuple(Tick(text=f"#{at}", share=at / operations) for at in range(0, operations, step))


def times(nanoseconds: float) -> tuple[Tick, ...]:
    """The axis of so much time: microseconds in steps likewise."""
    if nanoseconds <= 0:
        return ()
    unit, name = next((one for one in UNITS if nanoseconds >= 2 * one[0]), UNITS[-1])
    step = _step(nanoseconds / unit / MOST_TIMES)
    marks = range(0, int(nanoseconds / unit) + 1, step)
    return tuple(Tick(text=f"{at} {name}", share=at * unit / nanoseconds) for at in marks)


def _step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50 ... that is not smaller."""
    ten = 1
    while 5 * ten < least:
        ten *= 10
    return next(factor * ten for factor in (1, 2, 5) if factor * ten >= least)


def grid_of(spec: DeviceSpec, cores: Iterable[CoreTime], l1: L1Map) -> Grid:
    """Every worker core: its time, and the circular buffers that it holds.

    Args:
        cores: Those that did something.
        l1: Where circular buffers were.
    """
    return _grid(spec.grid.cols, spec.grid.rows, cores, _circular_bytes(l1), spec.l1.usable_bytes)


def grid_of_cores(cores: Sequence[CoreTime]) -> Grid:
    """The cores that did something, and those between them and the first one."""
    columns = max((one.column for one in cores), default=-1) + 1
    return _grid(columns, max((one.row for one in cores), default=-1) + 1, cores, {}, 0)


def _grid(
    columns: int, rows: int, cores: Iterable[CoreTime], held: Mapping[tuple[int, int], int], usable_bytes: int
) -> Grid:
    known = {(one.column, one.row): one for one in cores}
    places = [(column, row) for row in range(rows) for column in range(columns)]
    cells = tuple(
        Cell(
            core=known.get(place) or _idle(*place),
            circular_bytes=held.get(place, 0),
            circular_share=held.get(place, 0) / usable_bytes if usable_bytes else 0.0,
        )
        for place in places
    )
    return Grid(columns=columns, rows=rows, cells=cells, maps=tuple(_maps(cells)))


def _maps(cells: Sequence[Cell]) -> Iterator[CoreMap]:
    """Their pictures; bytes that are moved have no whole but the core that moves most of them."""
    cores = [one.core for one in cells]
    measured: tuple[tuple[str, str, str, list[int], list[float]], ...] = (
        ("at work", "cycles", "of all cycles", [one.cycles for one in cores], [one.share for one in cores]),
        (
            "busiest stage", "cycles", "of all cycles",
            [one.busy_cycles for one in cores], [one.busy_share for one in cores]),
        ("waiting", "cycles", "of all cycles", [one.stall_cycles for one in cores], [one.stall_share for one in cores]),
        (
            "circular buffers", "B", "of L1",
            [one.circular_bytes for one in cells], [one.circular_share for one in cells]),
        ("from and to DRAM", "B", "of the most", *_of_the_most([one.dram_bytes for one in cores])),
        ("over the networks", "B", "of the most", *_of_the_most([one.network_bytes for one in cores])),
    )  # fmt: skip
    for name, unit, whole, figures, shares in measured:
        if any(figures):
            yield CoreMap(
                name=name,
                unit=unit,
                whole=whole,
                figures=tuple(figures),
                shares=tuple(shares),
                least=min(figures),
                most=max(figures),
            )


def _of_the_most(figures: list[int]) -> tuple[list[int], list[float]]:
    most = max(figures, default=0)
    return figures, [one / most if most else 0.0 for one in figures]


def _idle(column: int, row: int) -> CoreTime:
    """A core that does nothing."""
    return CoreTime(
        column=column, row=row, cycles=0, share=0.0, busy_cycles=0, busy_share=0.0, stall_cycles=0, stall_share=0.0
    )


def _circular_bytes(l1: L1Map) -> dict[tuple[int, int], int]:
    """Of each core, circular buffers of the operation that has most of them there."""
    most: dict[tuple[int, int], int] = {}
    in_operation: dict[int, dict[tuple[int, int], int]] = {}
    for block in l1.blocks:
        if block.held.kind != CIRCULAR:
            continue
        there = in_operation.setdefault(block.first, {})
        for left, top, right, bottom in block.held.ranges:
            for row in range(top, bottom + 1):
                for column in range(left, right + 1):
                    at = (column, row)
                    there[at] = there.get(at, 0) + block.held.size_bytes
    for cores in in_operation.values():
        for at, held in cores.items():
            most[at] = max(most.get(at, 0), held)
    return most
