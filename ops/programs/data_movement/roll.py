"""The program that rolls a tensor in its shards: the operation, its circular buffers and values.

Source: recorded plans of ttnn 0.81.1.
"""

from dataclasses import dataclass

import numpy as np

from device.memory.memory_config import TILE, Layout
from device.numbers.formats import Array, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, in_dram, row_bytes, shard_view
from ops.programs.data_movement.movement import DataMovement

ALIGNMENT_ROOM_BYTES = 64  # in which the program aligns what it reads


@dataclass(frozen=True, slots=True, kw_only=True)
class RollShards(DataMovement):
    """A tensor shifted cyclically along an axis."""

    shape: tuple[int, ...]
    shift: int
    axis: int

    def moved(self, values: Array) -> Array:
        """The shifted tensor."""
        return np.roll(values.reshape(self.shape), self.shift, self.axis)


def roll_buffers(source: PlanTensor, result: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Both shards, and room for two rows of a shard, of elements or of tiles.

    Shards in DRAM pass through a buffer of their size; shards of rows need two more buffers.
    """
    shards, data_format = source.spec.shards, source.spec.data_format
    tiled = source.spec.layout is Layout.TILE
    if in_dram(source.spec):
        whole = shard_view("shards", source, spec)._replace(view_of=None)
        return (whole,) if tiled else (whole, whole._replace(name="rolled"), whole._replace(name="rows"))
    width = shards.shape[1]
    size = width // TILE * data_format.tile_bytes if tiled else row_bytes(source.spec, width)
    size = round_up(size, spec.l1.alignment_bytes)
    return (
        shard_view("shards", source, spec),
        shard_view("rolled", result, spec),
        buffer("rows", BUFFERING * size + ALIGNMENT_ROOM_BYTES, data_format, shards.grid),
    )
