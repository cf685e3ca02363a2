"""The program that zeroes some elements at random and scales the others (tt-metal 0.81.1, dropout)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, quantize
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement, pages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout(DataMovement):
    """Elements times ``scale``, of which each vanishes with a ``probability``."""

    probability: float
    scale: float
    seed: int
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """All elements, of which none vanishes."""
        return quantize(given(inputs[0]).astype(np.float32) * np.float32(self.scale), self.data_format)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Each tile is read and written."""
        return copy_movement(read, written, spec)


def dropout_buffers(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on their way in, and two on their way out, on all cores that have tiles."""
    cores = page_cores(pages_of(source, 1).all_pages, spec.grid)
    ends = (("argument", source), ("result", result))
    return tuple(tile_buffer(name, BUFFERING, tensor.data_format, cores) for name, tensor in ends)
