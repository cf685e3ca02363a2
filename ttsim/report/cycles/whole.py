"""Cycles as whole numbers: the one place where they are rounded, so that sums are exact and the same everywhere.

Models count in fractions, whose last digits depend on the order of additions, which differs between versions of Python.
What is rounded here is first cut to `DIGITS`, so that such digits decide nothing.
"""

from collections.abc import Iterable
from typing import Final

from device.time.stages import CoreGroupCycles, OperationCycles, StageCycles

DIGITS: Final = 6  # decimals of a cycle that a model is trusted with


def whole(cycles: float) -> int:
    """The nearest whole number of cycles; of two the even one."""
    if isinstance(cycles, int):
        return cycles
    return int(cycles) if cycles.is_integer() else round(round(cycles, DIGITS))


def whole_operation(timed: OperationCycles) -> OperationCycles:
    """An operation in whole cycles: no group of cores ends after it, and critical cycles still add up to its own."""
    cycles = whole(timed.cycles)
    return OperationCycles(
        cycles=cycles,
        groups=lambda: tuple(_whole_group(group, cycles) for group in timed.groups),
        slowest=_whole_group(timed.slowest, cycles),
        cores=lambda: timed.cores,
        working=lambda: timed.working,
        bound_by=timed.bound_by,
        dram_read_bytes=timed.dram_read_bytes,
        dram_written_bytes=timed.dram_written_bytes,
        network_bytes=timed.network_bytes,
        issued_flops=timed.issued_flops,
        useful_flops=timed.useful_flops,
        contention_cycles=min(cycles, whole(timed.contention_cycles)),
        moved=lambda: timed.moved,
    )


def _whole_group(group: CoreGroupCycles, most: int) -> CoreGroupCycles:
    cycles = min(most, whole(group.cycles))
    return CoreGroupCycles(cores=group.cores, cycles=cycles, stages=tuple(_whole_stages(group.stages)))


def _whole_stages(stages: Iterable[StageCycles]) -> Iterable[StageCycles]:
    """Critical cycles are rounded where they end on the path, one stage behind the other."""
    end, whole_end = 0.0, 0
    for one in stages:
        critical = 0
        if one.critical_cycles:
            end += one.critical_cycles
            critical = whole(end) - whole_end
            whole_end += critical
        yield StageCycles(
            one.stage,
            whole(one.busy_cycles),
            whole(one.stall_cycles) if one.stall_cycles else 0,
            critical,
        )
