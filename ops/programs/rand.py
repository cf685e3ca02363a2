"""A program of uniformly distributed random numbers: values, buffer and cycles.

Cycles are composed: pages are written as in measured movements. The numbers differ from those of a device, whose
generators start in an unknown state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, quantize
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.data_movement.movement import Access, DataMovement, Movement, pages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenlyDistributed(DataMovement):
    """Uniformly distributed numbers from ``low`` to ``high``, exclusive."""

    shape: tuple[int, ...]
    low: float
    high: float
    seed: int  # Equal seeds give equal numbers
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The result in storage of its format."""
        return quantize(np.random.default_rng(self.seed).uniform(self.low, self.high, self.shape), self.data_format)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Each tile is written once the tile before it has arrived."""
        (tiles,) = rand_buffers(written, spec)
        pages = pages_of(written, tiles.cores.num_cores())
        return Movement(cores=tiles.cores, writes=replace(pages, access=Access.WAIT), blocks=pages.core_pages)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """The description of a movement, except for the parts that its cycles are composed of."""
        text = DataMovement.describe(self, ends, spec)
        return replace(text, composed_of="pages that are written as in other movements; making the numbers is left out")


def rand_buffers(target: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on all cores that have tiles, column by column; source: tt-metal 0.81.1 (rand)."""
    used = min(pages_of(target, 1).all_pages, spec.grid.cores)
    cores = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    return (tile_buffer("tiles", BUFFERING, target.data_format, cores),)
