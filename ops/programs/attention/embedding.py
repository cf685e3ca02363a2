"""The embedding program: rows of a table, picked by indices.

Source: tt-metal 0.81.1 (embedding), compared with recorded plans.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import Array
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.data_movement.movement import Access, DataMovement, Movement, pages_of, sides_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed(DataMovement):
    """Row i of the second input for each index i of the first."""

    shape: tuple[int, ...]  # Of the result
    rows: int  # Of the table

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The selected rows; raises DeviceError for an index beyond the table, where the device reads other memory."""
        indices, table = given(inputs[0]).astype(np.int64).reshape(-1), given(inputs[1])
        indices = indices[: prod(self.shape[:-1])]
        table = table.reshape(-1, table.shape[-1])[: self.rows, : self.shape[-1]]  # without the padding of tiles
        wrong = indices[(indices < 0) | (indices >= self.rows)]
        if len(wrong):
            raise DeviceError(f"embedding: index {wrong[0]} is behind the {self.rows} rows of the table")
        picked: Array = table[indices]
        return picked.reshape(self.shape)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every row is waited for, and written while the next arrives."""
        sides = sides_of(written, written, spec)
        rows = TensorSpec((1, 1, *written.matrix), written.data_format, Layout.ROW_MAJOR)
        reads = replace(pages_of(rows, sides.cores.num_cores()), access=Access.WAIT, in_dram=True)
        return Movement(cores=sides.cores, reads=reads, writes=replace(sides.written, access=Access.WAIT))
