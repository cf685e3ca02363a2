"""The program that increments integers in place (tt-metal 0.81.1, experimental/plusone)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import aligned_page, paged_buffer, row_bytes
from ops.programs.data_movement.movement import Access, DataMovement, Movement, pages_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PlusOne(DataMovement):
    """Every integer plus one, wrapping around at 32 bits."""

    cores: CoreRangeSet  # That count
    keeps_negative: bool  # Whether numbers stay whose sign bit is set, or would be

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The integers, counted up."""
        numbers = given(inputs[0])
        bits = numbers.view(np.int32)
        counted = bits + np.int32(1)
        if self.keeps_negative:
            counted = np.where((bits < 0) | (counted < 0), bits, counted)
        return counted.view(numbers.dtype)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every page is read, changed element by element, and written back before the next."""
        pages = replace(pages_of(read, 1), access=Access.WAIT)
        return Movement(cores=self.cores, reads=pages, writes=pages, stores=read.volume)


def plus_one_buffers(source: TensorSpec, op: PlusOne, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """One row: a page of its own, or the first of a shard."""
    if source.memory_config.is_sharded():
        row = round_up(row_bytes(source), spec.l1.alignment_bytes)
        return (paged_buffer("page", 1, row, source.data_format, op.cores, "input"),)
    return (paged_buffer("page", 1, aligned_page(source, spec), source.data_format, op.cores),)
