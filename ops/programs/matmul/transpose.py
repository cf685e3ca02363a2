"""The program that transposes the tiles of a tensor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import Array, DataFormat, whole_groups
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from device.time.stages import OperationCycles, Stage
from ops.op_model import Description, Ends, ModeledOp, ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import copy_movement, movement_cycles
from ops.programs.matmul.op import place_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose(ModeledOp):
    """The transpose of the last two axes."""

    data_format: DataFormat  # Of the tensor, before and after

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """[..., columns, rows] of [..., rows, columns]."""
        return transposed(self.data_format, given(inputs[0]), context.arithmetic)

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """A copy tile by tile that transposes each tile."""
        copied = copy_movement(ends.read, ends.written, spec)
        formats = self.data_format, self.data_format
        return movement_cycles(replace(copied, cast_tiles=copied.blocks, formats=formats), spec)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A program that turns tiles."""
        return Description(
            stages={
                Stage.READER: f"tiles are read from {place_text(ends.read)}",
                Stage.WRITER: f"tiles are written to {place_text(ends.written)}",
                Stage.MATH: "tiles are brought to the registers, turned, and packed",
                Stage.DRAM: "DRAM delivers or takes the pages of all cores",
            },
            composed_of="reading, unpacking, packing and writing of tiles as in other programs",
        )


def transposed(data_format: DataFormat, values: Array, arithmetic: Arithmetic) -> Array:
    """[..., rows, columns] with both axes swapped, on the way through Dst: block floats share other exponents then."""
    turned = np.swapaxes(values, -1, -2)
    if not data_format.is_block:
        return turned
    columns = turned.shape[-1]
    packed = arithmetic.pack(whole_groups(turned), data_format, fp32_dest=False)
    return packed[..., :columns].astype(data_format.storage)


def transposed_spec(spec: TensorSpec) -> TensorSpec:
    """The spec of the transpose of an interleaved tensor, in the same kind of memory."""
    *batches, rows, columns = spec.shape
    return spec.changed(shape=(*batches, columns, rows))


def transpose_buffers(spec: TensorSpec, grid: GridSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles in and two tiles out, on as many cores as there are tiles, column by column."""
    cores = page_cores(prod(spec.padded_shape) // TILE**2, grid)
    return tuple(tile_buffer(name, BUFFERING, spec.data_format, cores) for name in ("in", "out"))
