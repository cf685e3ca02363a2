"""What a pool program takes: two readers gather windows in turn, and the matrix unit reduces each.

Composed of measured actions: a reader's bursts are those of a convolution's readers, a window is tilized as sticks are,
and its tiles pass once through the matrix unit and the packer. The whole is not measured.
"""

from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.data_movement import hands
from device.time.stages import OperationCycles, Stage
from ops.meaning import CyclesReading, Ends
from ops.programs.actions.alike import alike_cycles
from ops.programs.actions.compute import pack_tile_cycles, unpack_tile_cycles
from ops.programs.actions.costs import ComputeCosts, TransferCosts
from ops.programs.pool2d.circular_buffers import WIDEST, PoolSizes
from ops.programs.pool2d.work import MaxPool


def pool_cycles(work: MaxPool, ends: Ends, reading: CyclesReading) -> OperationCycles:
    """Cycles of the core that has most outputs; all have as many, but for the last."""
    spec = reading.spec
    read, reduced, packed = window_cycles(work, spec)
    outputs = work.core_outputs
    readers = hands(spec, 2)
    body = read + reduced + packed + (outputs - 1) * max(read / readers, reduced, packed)
    busy = {
        Stage.READER: div_up(outputs, readers) * read,
        Stage.SECOND_READER: (outputs - div_up(outputs, readers)) * read,
        Stage.MATH: outputs * reduced,
        Stage.PACK: outputs * packed,
    }
    return alike_cycles(ends.written.shards.grid, body, busy, spec)


def window_cycles(work: MaxPool, spec: DeviceSpec) -> tuple[float, float, float]:
    """Cycles of a reader, of the matrix unit and of the packer for one window."""
    channels = div_up(work.channels, work.channel_cores)
    sizes = PoolSizes(
        taps=work.taps, channels=channels, out_shard=(1, channels), data_format=work.data_format, tiled=work.tiled
    )
    stick_bytes = channels * (work.in_format.element_bytes or 0)
    neighbors = work.frame.columns.taps if work.frame.columns.spacing == 1 and sizes.channel_tiles <= WIDEST else 1
    burst_bytes = stick_bytes * neighbors
    bursts = work.taps // neighbors
    issue = spec.costs_of(TransferCosts).stateful_issue_cycles
    read = bursts * max(issue, burst_bytes / spec.noc.link_bytes_per_cycle)
    tile_bytes = work.in_format.tile_bytes
    costs = spec.costs_of(ComputeCosts)
    tile = costs.tilize_tile_cycles + unpack_tile_cycles(spec, tile_bytes) + spec.compute.phase_cycles
    packed = sizes.channel_tiles * pack_tile_cycles(spec, tile_bytes / TILE)  # one row
    if work.tiled:
        packed += sizes.channel_tiles * pack_tile_cycles(spec, work.data_format.tile_bytes) / TILE
    return read, sizes.channel_tiles * tile, packed
