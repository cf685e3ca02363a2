"""Programs whose cores all do the same: the whole of what one of them takes."""

from collections.abc import Mapping, Sequence

from device.cores import CoreRangeSet
from device.spec.device_spec import DeviceSpec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.actions.costs import StickCosts


def pipelined_cycles(parts: Sequence[float], count: int) -> float:
    """Cycles of so many pieces of which each goes through all parts: one alone, and the slowest part of the others."""
    return sum(parts) + (count - 1) * max(parts)


def alike_cycles(
    cores: CoreRangeSet,
    body_cycles: float,
    busy_cycles: Mapping[Stage, float],
    spec: DeviceSpec,
    *,
    dram_read_bytes: int = 0,
    dram_written_bytes: int = 0,
    network_bytes: int = 0,
    contention_cycles: float = 0.0,
) -> OperationCycles:
    """An operation of cores that start, and then all do the same.

    Args:
        body_cycles: What they take once they have started.
        busy_cycles: How long each stage works meanwhile, in the order of the report; stages that do not are left out.
        dram_read_bytes: By all cores.
        dram_written_bytes: By all cores.
        network_bytes: By all cores.
        contention_cycles: Part of the body that is due to cores sharing.
    """
    start_cycles = spec.costs_of(StickCosts).start_cycles
    stages = tuple(StageCycles(stage, cycles) for stage, cycles in busy_cycles.items() if cycles)
    cycles = start_cycles + body_cycles
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=cores, cycles=cycles, stages=(StageCycles(Stage.START, start_cycles), *stages)),),
        bound_by=binding_stage(stages),
        dram_read_bytes=dram_read_bytes,
        dram_written_bytes=dram_written_bytes,
        network_bytes=network_bytes,
        contention_cycles=contention_cycles,
    )
