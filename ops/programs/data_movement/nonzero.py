"""The program that lists the nonzero elements of a tensor (tt-metal 0.81.1, data_movement/non_zero_indices)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.numbers.formats import UINT32, Array
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import ValuesContext, given
from ops.programs.buffer_shapes import BUFFERING, aligned_page, paged_buffer
from ops.programs.data_movement.movement import Access, DataMovement, Movement, Pages, pages_of

AXES: Final = 4  # whose indices make up a place
COUNT_BYTES: Final = 32  # of the page whose first word counts the places


@dataclass(frozen=True, slots=True, kw_only=True)
class NonZero(DataMovement):
    """The number of nonzero elements, and their indices, four per element, followed by zeros."""

    shape: tuple[int, ...]

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, ...]:
        """The count in a row of eight words, and the indices in a row."""
        places = np.argwhere(given(inputs[0]).reshape(self.shape) != 0)
        count = np.zeros((1, 1, 1, COUNT_BYTES // UINT32.storage.itemsize), UINT32.storage)
        count[..., 0] = len(places)
        listed = np.zeros((1, 1, 1, AXES * prod(self.shape)), UINT32.storage)
        listed[0, 0, 0, : places.size] = places.ravel()
        return count, listed

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every page is awaited; the indices, up to one per element, are written as one page."""
        listed = AXES * prod(self.shape) * UINT32.storage.itemsize
        source = pages_of(read, 1)
        writes = Pages(
            access=Access.WAIT,
            core_pages=1,
            page_bytes=listed,
            all_pages=1,
            tiles=False,
            in_dram=pages_of(written, 1).in_dram,
        )
        reads = replace(source, access=Access.WAIT, core_pages=source.all_pages)
        return Movement(cores=one_core(spec), reads=reads, writes=writes, stores=prod(self.shape))


def one_core(spec: DeviceSpec) -> CoreRangeSet:
    """The first core."""
    return first_cores(1, spec.grid.cols, spec.grid.rows)


def nonzero_buffers(source: TensorSpec, places: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """A page of the tensor, the page of the count twice, and all indices twice."""
    cores = one_core(spec)
    return (
        paged_buffer("page", 1, aligned_page(source, spec), source.data_format, cores),
        paged_buffer("count", BUFFERING, COUNT_BYTES, UINT32, cores),
        paged_buffer("places", BUFFERING, aligned_page(places, spec), UINT32, cores),
    )
