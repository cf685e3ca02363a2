"""The program that swaps the halves of rows and negates the new first half, on one core.

Source: tt-metal (experimental/transformer/rotate_half), compared with plans of ttnn 0.81.1. Values were never compared
with the kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from device.cores import CoreRangeSet, core_rectangle
from device.memory.layouts import TensorSpec
from device.numbers.formats import BFLOAT16, Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, tile_buffer
from ops.programs.data_movement.movement import Access, DataMovement, Movement, pages_of
from ops.programs.normalization.tile_math import TileMath

FIDELITY_PHASES = 4
ONE_CORE: CoreRangeSet = core_rectangle(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateHalf(DataMovement):
    """Columns [first half, second half] become [-second half, first half]; a product with -1 passes 16 bits of Dst."""

    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The exchanged halves, in storage of the format."""
        math = TileMath.of(context, fidelity_phases=FIDELITY_PHASES, fp32_dest=False)
        first, second = np.split(given(inputs[0]), 2, axis=-1)
        product = math.multiplied(math.read(second, self.data_format), np.full(1, -1, np.float32))
        return np.concatenate([math.packed(product, self.data_format), first], axis=-1)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every tile is read and written alone, and half of the tiles are multiplied."""
        pages, results = (replace(pages_of(tensor, 1), access=Access.WAIT) for tensor in (read, written))
        formats = (self.data_format, self.data_format)
        return Movement(
            cores=ONE_CORE, reads=pages, writes=results, blocks=pages.core_pages, cast_tiles=pages.core_pages // 2,
            formats=formats,
        )  # fmt: skip


def rotate_half_buffers(data_format: DataFormat) -> tuple[CircularBuffer, ...]:
    """Two tiles of each half and of the product, and -1."""
    return (
        tile_buffer("second_half", BUFFERING, data_format, ONE_CORE),
        tile_buffer("minus_one", 1, BFLOAT16, ONE_CORE),
        tile_buffer("first_half", BUFFERING, data_format, ONE_CORE),
        tile_buffer("product", BUFFERING, data_format, ONE_CORE),
    )
