"""What the parts of a page have in common: operations along the time, cores of the grid, distances to the roof."""

from collections.abc import Iterable, Sequence
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ttsim.report.cycles.figures import CallTime, CoreTime, OperationTime
from ttsim.report.memory.l1_map import CIRCULAR, L1Map
from ttsim.report.network.figures import PassOperation
from ttsim.report.page.figures import Cell, Deed, Grid, Roof

SHOWN_ROOFS: Final = 16  # operations


def deeds(
    ran: Sequence[tuple[str, int, int]], timed: Iterable[OperationTime], calls: Sequence[CallTime], usable_bytes: int
) -> tuple[Deed, ...]:
    """Device operations one after the other, each with what it takes.

    Args:
        ran: Name, bytes of circular buffers and bytes of buffers of each that ran, in order.
        timed: Those of them that models know, in order.
        calls: What ran them.
        usable_bytes: L1 that a program can use.
    """
    waiting = list(timed)
    reasons = [one for call in calls for one in call.untimed]
    whole = sum(one.nanoseconds for one in waiting)
    found: list[Deed] = []
    before = 0.0
    for number, (name, circular_bytes, buffer_bytes) in enumerate(ran):
        untimed = next((one for one in reasons if one.name == name), None)
        here = waiting[0] if waiting and waiting[0].name == name and untimed is None else None
        if here is not None:
            waiting.pop(0)
        elif untimed is not None:
            reasons.remove(untimed)
        taken = 0.0 if here is None else here.nanoseconds
        found.append(
            Deed(
                number=number,
                name=name,
                place="",
                start_nanoseconds=before,
                left_share=before / whole if whole else 0.0,
                width_share=taken / whole if whole else 0.0,
                time=here,
                untimed="" if here is not None else "no cycles" if untimed is None else untimed.reason,
                circular_bytes=circular_bytes,
                buffer_bytes=buffer_bytes,
                l1_bytes=circular_bytes + buffer_bytes,
                l1_share=(circular_bytes + buffer_bytes) / usable_bytes,
            )
        )
        before += taken
    return tuple(found)


def deeds_of_pass(
    operations: Sequence[PassOperation], timed: Iterable[OperationTime], usable_bytes: int
) -> tuple[Deed, ...]:
    """The device operations of a network, each with what it takes; the pass itself says which have a model."""
    models = iter(timed)
    whole = sum(one.nanoseconds for one in operations)
    return tuple(
        Deed(
            number=one.number,
            name=one.name,
            place=f"{one.function}, {one.where}" if one.where else one.function,
            start_nanoseconds=one.start_nanoseconds,
            left_share=one.start_nanoseconds / whole if whole else 0.0,
            width_share=one.nanoseconds / whole if whole else 0.0,
            time=None if one.untimed else next(models),
            untimed=one.untimed,
            circular_bytes=one.circular_bytes,
            buffer_bytes=one.buffer_bytes,
            l1_bytes=one.l1_bytes,
            l1_share=one.l1_bytes / usable_bytes,
        )
        for one in operations
    )


def stages_of(found: Sequence[Deed]) -> tuple[str, ...]:
    """Stages in which any operation spends time."""
    spent = (stage for one in found if one.time for stage in one.time.stages)
    used = {stage.stage for stage in spent if stage.busy_cycles or stage.critical_cycles}
    return tuple(one.value for one in Stage if one.value in used)


def roofs(found: Sequence[Deed]) -> tuple[Roof, ...]:
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


def grid_of(spec: DeviceSpec, cores: Iterable[CoreTime], l1: L1Map) -> Grid:
    """Every worker core: its time, and the circular buffers that it holds.

    Args:
        spec: The device.
        cores: Those that did something.
        l1: Where circular buffers were.
    """
    known = {(one.column, one.row): one for one in cores}
    held = _circular_bytes(l1)
    return Grid(
        columns=spec.grid.cols,
        rows=spec.grid.rows,
        cells=tuple(
            _cell(column, row, known.get((column, row)), held.get((column, row), 0), spec.l1.usable_bytes)
            for row in range(spec.grid.rows)
            for column in range(spec.grid.cols)
        ),
    )


def _cell(column: int, row: int, time: CoreTime | None, circular_bytes: int, usable_bytes: int) -> Cell:
    if time is None:
        return Cell(column=column, row=row, circular_bytes=circular_bytes, circular_share=circular_bytes / usable_bytes)
    return Cell(
        column=column,
        row=row,
        cycles=time.cycles,
        share=time.share,
        busy_cycles=time.busy_cycles,
        busy_share=time.busy_share,
        stall_cycles=time.stall_cycles,
        stall_share=time.stall_share,
        circular_bytes=circular_bytes,
        circular_share=circular_bytes / usable_bytes,
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
