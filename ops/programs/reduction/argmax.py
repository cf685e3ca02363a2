"""Programs that find the index of the largest element along an axis (tt-metal 0.81.1, argmax)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import UINT32, Array, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    scratchpad,
    tile_buffer,
)
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, streamed, tile_sides

ROW_ALIGNMENT: Final = 32  # bytes of rows and of results that cores exchange
COMPARED_BYTES: Final = 8  # of a row, which take as long as the results of one core more


class ArgMaxProgram(Enum):
    """The program that finds the indices."""

    ROWS = "cores share each row, and the first one compares their results"
    TILES = "one core looks through tiles"
    IMAGES = "cores compare the images that lie one behind the other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgMax(DataMovement):
    """The index of the largest element, the first of equal elements; the axis keeps length 1."""

    program: ArgMaxProgram
    axis: int | None  # From the first; None for the place among all elements
    cores: CoreRangeSet

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Places as uint32, in the shape of the tensor with the axis, or all axes, of length 1."""
        source = given(inputs[0])
        if self.axis is None:
            places = np.argmax(source.reshape(-1)).reshape((1,) * source.ndim)
        else:
            places = np.expand_dims(np.argmax(source, axis=self.axis), self.axis)
        return np.asarray(places).astype(UINT32.storage)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """A processor compares element by element, each in the time of a repeated transfer, whose loop is as short.

        The vector unit compares tiles of images.
        """
        tiles = div_up(prod(tile_sides(ends.read)), self.cores.num_cores())
        by_vector = self.program is ArgMaxProgram.IMAGES
        vector = 2 * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles
        element = spec.costs_of(kernel_costs.TransferCosts).stateful_issue_cycles
        return streamed(
            ends,
            spec,
            cores=self.cores,
            tiles=(tiles, 1),
            math_cycles=vector if by_vector else element * TILE * TILE,
            steps="reading and comparing of elements",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A search, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def row_shares(
    source: TensorSpec, spec: DeviceSpec, *, both: bool, within: CoreRangeSet | None = None
) -> tuple[tuple[CoreRangeSet, int], ...]:
    """Groups of cores that share a row, with the elements per core; cores with one more unit come first.

    If both data movement processors of a core read rows, the number of cores doubles as long as a row has more than
    `COMPARED_BYTES` for each pair of cores. All cores of ``within`` have the same number of elements.
    """
    unit = page_alignment_bytes(source.memory_config, spec) // 2
    columns, grid = source.shape[-1], spec.grid
    units = div_up(columns, unit)
    if within is not None:
        return tuple((CoreRangeSet([part]), div_up(units, within.num_cores()) * unit) for part in within.ranges)
    cores, wanted = min(units, grid.cores), 1
    while columns * (source.data_format.element_bytes or 0) > COMPARED_BYTES * wanted**2:
        wanted *= 2
    if both and wanted < cores:
        alike = first_cores(wanted, grid.cols, grid.rows).merged()
        return tuple((CoreRangeSet([part]), round_up(div_up(columns, wanted), unit)) for part in alike.ranges)
    least, larger = divmod(units, cores)
    every = first_cores(cores, grid.cols, grid.rows, row_wise=False)
    if not larger:
        return ((every.merged(), least * unit),)
    first = first_cores(larger, grid.cols, grid.rows, row_wise=False)
    rest = every.without(first)
    return (first.merged(), (least + 1) * unit), (rest.merged(), least * unit)


def sharing_cores(shares: tuple[tuple[CoreRangeSet, int], ...]) -> CoreRangeSet:
    """All cores that share a row."""
    return CoreRangeSet([part for cores, _ in shares for part in cores.ranges]).merged()


def row_buffers(
    source: TensorSpec, outputs: int, shares: tuple[tuple[CoreRangeSet, int], ...], *, both: bool
) -> tuple[CircularBuffer, ...]:
    """Parts of a row (or of two rows, for both processors), a page of the result, and indices and values of all cores.

    The cores that share a page of ``outputs`` results exchange all results at once.
    """
    cores = sharing_cores(shares)
    element, rows = source.data_format.element_bytes or 0, BUFFERING if both else 1
    page, numbers = (round_up(outputs * size, ROW_ALIGNMENT) for size in (UINT32.element_bytes or 0, element))
    sizes = [(part, rows * round_up(count * element, ROW_ALIGNMENT)) for part, count in shares]
    return (
        *(buffer("row", size, source.data_format, part) for part, size in sizes),
        buffer("page", page, UINT32, cores),
        buffer("places", cores.num_cores() * page, UINT32, cores),
        buffer("numbers", cores.num_cores() * numbers, source.data_format, cores),
    )


def tile_buffers(source: TensorSpec, target: TensorSpec, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    """A tile, and a row of the result."""
    return (
        tile_buffer("tile", 1, source.data_format, cores),
        scratchpad("places", row_bytes(target), UINT32, cores),
    )


def image_buffers(source: TensorSpec, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    """Two tiles of images, and two tiles of indices."""
    return (
        tile_buffer("tiles", BUFFERING, source.data_format, cores),
        tile_buffer("places", BUFFERING, UINT32, cores),
    )


def image_cores(source: TensorSpec, axis: int, spec: DeviceSpec, within: CoreRangeSet | None = None) -> CoreRangeSet:
    """The cores, among ``within``, that share the tiles of the result, row by row."""
    return page_cores(prod(tile_sides(source)) // source.shape[axis], spec.grid, row_wise=True, within=within)
