"""Minimum cycles of a device operation, limited by its matrix units, the DRAM banks, and the busiest link.

Models of programs count the steps of kernels. If cores share a resource that such a model ignores, the operation takes
at least the time of the resource.
"""

from dataclasses import replace
from functools import partial, reduce
from math import prod
from typing import Any

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, TensorMemoryLayout
from device.spec.device_spec import DeviceSpec
from device.time.links import spread_link_bytes
from device.time.network import shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import PRODUCT_FLOPS, Ends


def floored(timed: OperationCycles, ends: Ends, phases: int, spec: DeviceSpec) -> OperationCycles:
    """An operation that takes at least the time of its resources; the slowest resource is busy until the end."""
    least = least_cycles(timed, ends, phases, spec)
    stage = max(least, key=least.__getitem__)
    if timed.cycles >= least[stage]:
        return timed
    groups = tuple(_stretched(group, stage, least[stage]) for group in timed.groups)
    kept: dict[str, Any] = {
        name: partial(getattr, timed, name) for name in ("contention_cycles", "network_bytes", "transfers", "tile_work")
    }  # counted when they are read
    return replace(timed, cycles=least[stage], bound_by=stage, groups=groups, **kept)


def least_cycles(timed: OperationCycles, ends: Ends, phases: int, spec: DeviceSpec) -> dict[Stage, float]:
    """The least cycles of an operation, by the stage that needs them."""
    return {
        Stage.MATH: product_cycles(timed, phases, spec) / spec.grid.cores,
        Stage.DRAM: shared_cycles(spec, timed.dram_read_bytes + timed.dram_written_bytes),
        Stage.NETWORK: _written_cycles(timed, ends.written, spec) if ends.whole else 0.0,
    }


def product_cycles(timed: OperationCycles, phases: int, spec: DeviceSpec) -> float:
    """Cycles of all tile products, each of `phase_cycles` for every fidelity phase."""
    return timed.issued_flops / PRODUCT_FLOPS * spec.compute.phase_cycles * max(phases, 1)


def _written_cycles(timed: OperationCycles, tensor: TensorSpec, spec: DeviceSpec) -> float:
    """Cycles of the busiest link for writing an interleaved tensor, over the better network."""
    memory = tensor.memory_config
    if memory.memory_layout is not TensorMemoryLayout.INTERLEAVED:
        return 0.0
    cores = reduce(CoreRangeSet.merge, (group.cores for group in timed.groups))
    in_dram, size = memory.buffer_type is BufferType.DRAM, prod(tensor.shape) * tensor.data_format.tile_bytes / TILE**2
    loads = (
        spread_link_bytes(spec, cores, size, in_dram=in_dram, writes=True, crossed=crossed) for crossed in (False, True)
    )
    return min(loads) / spec.noc.link_bytes_per_cycle


def _stretched(group: CoreGroupCycles, stage: Stage, cycles: float) -> CoreGroupCycles:
    """A group of cores whose shared stage is at work, and waited for, until the end."""
    others = [own for own in group.stages if own.stage is not stage]
    critical = max(0.0, cycles - sum(own.critical_cycles for own in others))
    return CoreGroupCycles(
        cores=group.cores, cycles=cycles, stages=(*others, StageCycles(stage, cycles, 0.0, critical))
    )
