"""The program that combines a tensor with a broadcast row, column or number (tt-metal 0.81.1, bcast)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Detail, ValuesContext, given, uncompared_fact
from ops.programs.buffer_shapes import BUFFERING, shard_view, tile_buffer
from ops.programs.eltwise.cycles import Compute
from ops.programs.eltwise.op import Binary, computed
from ops.programs.eltwise.shards import tiles_of

LONGEST_BLOCK = 8  # tiles of a row that a core keeps at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Bcast(Binary):
    """A tensor, and the first row, column or number of each matrix of another, by the matrix unit in a 16-bit Dst."""

    axes: str  # "H", "W" or "HW": along which the second tensor is repeated

    by_vector_unit: ClassVar[bool] = False  # for all formats
    fp32_dest: ClassVar[bool] = False

    def in_place(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> bool:
        """Whether shards are processed in place."""
        return operands[0].memory_config.is_sharded()

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """The unpacker repeats the broadcast operand."""
        return computed(operands, result, spec, self._matrix_unit_cycles(spec))

    def details(self) -> tuple[Detail, ...]:
        """Never compared with recordings."""
        return (uncompared_fact("numbers of bcast never compared with the real kernel's"),)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The combined values, in the shape of the first operand."""
        left, right = given(inputs[0]), np.atleast_2d(given(inputs[1]))
        rows, columns = (slice(1 if axis in self.axes else None) for axis in "HW")
        return Binary.values(self, (left, right[..., rows, columns]), context)


def bcast_buffers(
    axes: str, left: PlanTensor, right: PlanTensor, result: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two tiles each on all cores; or the shards, and between them as much of a row as a core keeps."""
    if left.spec.memory_config.shard_spec is None:
        return tuple(tiles_of(one.name, BUFFERING, one.spec.data_format, spec) for one in (left, right, result))
    shards = left.spec.shards
    kept = min(shards.shape[1] // TILE, LONGEST_BLOCK) if axes == "H" else BUFFERING
    row = tile_buffer(right.name, kept, right.spec.data_format, shards.grid)
    return shard_view(left.name, left, spec), row, shard_view(result.name, result, spec)
