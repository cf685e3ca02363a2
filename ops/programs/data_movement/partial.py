"""One of several equal slices of a tensor's rows of tiles: copied into shards, or from shards into the tensor.

Source: tt-metal 0.81.1 (data_movement/sharded_partial), compared with plans of the real library.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from device.cores import CoreRange, CoreRangeSet
from device.matrix_unit.packer import typecast
from device.memory.layouts import TensorSpec
from device.memory.memory_config import ShardOrientation, TensorMemoryLayout
from device.numbers.formats import Array, DataFormat, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import STICKS, paged_buffer
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.copy_buffers import buffers_of_copy
from ops.programs.data_movement.movement import DataMovement, Movement

MOST_ALIGNMENT_BYTES = 32  # of DRAM whose tiles, all of whole multiples of it, are read straight into shards


@dataclass(frozen=True, slots=True)
class OfSlice(DataMovement):
    """A program between a slice in shards and the tensor that it is a slice of, whose rows count with their padding."""

    begin: int  # First row of the slice
    padded_shape: tuple[int, ...]  # Of the whole tensor
    formats: tuple[DataFormat, DataFormat]  # Before and after

    @property
    def casts(self) -> bool:
        """Whether the format changes on the way."""
        return self.formats[0] != self.formats[1]

    def cast(self, values: Array) -> Array:
        """The values in the format after."""
        return typecast(values, *self.formats) if self.casts else values


@dataclass(frozen=True, slots=True)
class SliceToShards(OfSlice):
    """A slice of the input becomes a tensor in shards."""

    shape: tuple[int, ...]  # Of the slice

    def moved(self, values: Array) -> Array:
        """The rows of the slice; padding has become rows and columns."""
        rows = _matrix(values, self.padded_shape)[self.begin : self.begin + self.shape[-2]]
        return self.cast(rows.reshape(self.shape))

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """As of a whole tensor of the size of the slice."""
        return CopyTensor(Conversion.INTERLEAVED_TO_SHARDED).movement(read, written, spec)


@dataclass(frozen=True, slots=True)
class SliceFromShards(OfSlice):
    """Copies the first input into a slice of the last input."""

    source_shape: tuple[int, ...]  # Of the first input, with padding

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The last input with the first input as one of its slices."""
        source, target = (given(values) for values in inputs)
        rows = _matrix(self.cast(source), self.source_shape)
        whole = _matrix(target, self.padded_shape).copy()
        whole[self.begin : self.begin + len(rows)] = rows
        return whole.reshape(self.padded_shape)[tuple(map(slice, target.shape))]

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """As of a whole tensor of the size of the slice."""
        return CopyTensor(Conversion.SHARDED_TO_INTERLEAVED).movement(read, written, spec)


def _matrix(values: Array, padded_shape: tuple[int, ...]) -> Array:
    """Values as one matrix of rows, with zeros as padding."""
    behind = [(0, whole - side) for side, whole in zip(values.shape, padded_shape, strict=True)]
    return np.pad(values, behind).reshape(-1, padded_shape[-1])


def slice_buffers(
    conversion: Conversion, source: PlanTensor, result: PlanTensor, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """The buffers of a whole tensor; and room for tiles that a core can not read straight from DRAM into shards.

    A program with nothing but the view of the shards allocates nothing, and a capture shows nothing.
    """
    view, *converted = buffers_of_copy(conversion, source, result, spec)
    if conversion is Conversion.SHARDED_TO_INTERLEAVED:
        cores = _listed_cores(source.spec)
        buffers = [part._replace(cores=cores) for part in (view, *converted)]
        return tuple(buffers) if converted else ()
    cores, data_format, alignment = result.spec.shards.grid, source.spec.data_format, spec.dram.alignment_bytes
    buffers = [part._replace(cores=cores) for part in (*converted, view)]
    if alignment > MOST_ALIGNMENT_BYTES:
        tile_bytes = round_up(data_format.tile_bytes + alignment, alignment)
        buffers.append(paged_buffer("tiles", STICKS, tile_bytes, data_format, cores))
    return tuple(buffers) if len(buffers) > 1 else ()


def _listed_cores(tensor: TensorSpec) -> CoreRangeSet:
    """The cores with a shard; if the grid has more cores, single cores unless they form a block."""
    cores, shards = tensor.data_cores, tensor.shards
    is_block = tensor.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    if is_block or cores.num_cores() == shards.num_cores():
        return cores
    dealt = shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)
    return CoreRangeSet([CoreRange(core, core) for core in dealt[: cores.num_cores()]])
