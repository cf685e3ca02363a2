"""Cycles of normalizing programs: reads of tiles, passes over them, exchanges between cores."""

from collections.abc import Mapping
from dataclasses import dataclass

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType
from device.numbers.formats import DataFormat
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Description, Ends, uncompared_fact
from ops.programs import kernel_costs
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.normalization.tile_math import UNCOMPARED


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreWork:
    """The work of the core with the most tiles."""

    tiles: int  # Of its part of the tensor
    reads: float  # Tiles that it reads, of interleaved tensors; 0 for shards
    multiplies: float  # Products of a tile with another, for each tile
    sums: float  # Tiles added to others or subtracted, for each tile
    reductions: float  # Tiles of which rows are summed, for each tile
    rows: int  # Rows of tiles, each of which waits for its roots
    partials: int = 0  # Tiles of partial sums that it exchanges with other cores
    partners: int = 1  # Cores that sum up together


class Normalization(DataMovement):
    """The base of normalizing operations."""

    __slots__ = ()

    def core_work(self, ends: Ends) -> CoreWork:
        """The work of the busiest core."""
        raise NotImplementedError

    def placement(self) -> tuple[CoreRangeSet, int, DataFormat]:
        """The cores, the fidelity phases and the format between steps."""
        raise NotImplementedError

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Reading, computing and writing overlap; sums are exchanged before the next pass begins."""
        work, (cores, phases, between) = self.core_work(ends), self.placement()
        costs, vector = spec.costs_of(kernel_costs.ComputeCosts), spec.compute.phase_cycles
        unpack = kernel_costs.unpack_tile_cycles(spec, between.tile_bytes)
        pack = kernel_costs.pack_tile_cycles(spec, between.tile_bytes)
        product = max(2 * unpack, phases * vector) + pack
        total = max(2 * unpack, costs.add_tile_cycles) + pack
        reduced = max(unpack, phases * vector)
        passes = work.multiplies * product + work.sums * total + work.reductions * reduced
        roots = work.rows * (2 * (unpack + pack) + 2 * costs.vector_tile_cycles + costs.block_cycles)
        math = work.tiles * passes + roots
        exchange = self._exchanged(work, between, spec)
        reading = work.reads * kernel_costs.read_page_cycles(spec, ends.read.data_format.tile_bytes)
        sharded = ends.written.memory_config.is_sharded()
        out_bytes = ends.written.data_format.tile_bytes
        writing = 0.0 if sharded else work.tiles * kernel_costs.write_page_cycles(spec, out_bytes)
        moved = [self._dram_bytes(tensor, spec) for tensor in (ends.read, ends.written)]
        shared = shared_cycles(spec, sum(moved))
        return Composed(
            cores=cores,
            body_cycles=max(self._latency(work, ends, spec) + max(reading, math, writing) + exchange, shared),
            stages={
                Stage.READER: (reading + exchange, "tiles are read, and sums exchanged between cores"),
                Stage.MATH: (math, "tiles are reduced, subtracted, squared, scaled and shifted"),
                Stage.WRITER: (writing, "tiles of the result are written"),
                Stage.DRAM: (shared, "DRAM delivers or takes the pages of all cores"),
            },
            steps="reading, reducing, multiplying, adding and packing of tiles",
            dram_read_bytes=moved[0],
            dram_written_bytes=moved[1],
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A normalization, whose numbers were never compared with recordings."""
        text = super().describe(ends, spec)
        stages: Mapping[Stage, str] = text.stages
        return Description(
            facts=(*text.facts, uncompared_fact(UNCOMPARED)), stages=stages, composed_of=text.composed_of
        )

    @staticmethod
    def _exchanged(work: CoreWork, between: DataFormat, spec: DeviceSpec) -> float:
        """Partial sums are gathered by reads of all partners and sent back by a multicast."""
        if work.partners < 2 or not work.partials:
            return 0.0
        gathered = work.partners * kernel_costs.read_page_cycles(spec, between.tile_bytes)
        sent = kernel_costs.multicast_cycles(spec, between.tile_bytes, work.partners)
        return work.partials * (gathered + sent) + 3 * kernel_costs.core_round_trip_cycles(spec)

    @staticmethod
    def _dram_bytes(tensor: TensorSpec, spec: DeviceSpec) -> int:
        in_dram = tensor.memory_config.buffer_type is BufferType.DRAM
        return tensor.buffer(spec).size_bytes if in_dram else 0

    @staticmethod
    def _latency(work: CoreWork, ends: Ends, spec: DeviceSpec) -> float:
        """The first tile that is read and the last that is written."""
        first = last = 0.0
        in_dram = [tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (ends.read, ends.written)]
        if work.reads:
            size = ends.read.data_format.tile_bytes
            first = kernel_costs.waited_read_cycles(spec, size, in_dram=in_dram[0])
        if not ends.written.memory_config.is_sharded():
            size = ends.written.data_format.tile_bytes
            last = kernel_costs.waited_write_cycles(spec, size, in_dram=in_dram[1])
        return first + last
