"""The program that repeats sides of 1 within and across tiles (tt-metal 0.81.1, experimental/bcast_to)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Access, DataMovement, Movement, pages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast(DataMovement):
    """A tensor whose sides of 1 are repeated."""

    shape: tuple[int, ...]  # Of the result
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The repeated elements; 16-bit elements pass Dst unchanged."""
        source = given(inputs[0])
        return np.ascontiguousarray(np.broadcast_to(source, self.shape))

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A tile is read for each tile of the result, and both are waited for."""
        cores = page_cores(pages_of(written, 1).all_pages, spec.grid, row_wise=True)
        writes = replace(pages_of(written, cores.num_cores()), access=Access.WAIT)
        reads = replace(writes, in_dram=pages_of(read, 1).in_dram)
        return Movement(cores=cores, reads=reads, writes=writes, blocks=writes.core_pages)


def broadcast_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on each side, on all cores."""
    cores = whole_grid(spec)
    return tuple(tile_buffer(name, BUFFERING, source.data_format, cores) for name in ("tiles", "results"))


def whole_grid(spec: DeviceSpec) -> CoreRangeSet:
    """All cores of a device."""
    return page_cores(spec.grid.cores, spec.grid)
