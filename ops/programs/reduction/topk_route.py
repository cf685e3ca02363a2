"""The three programs by which some devices select many elements of bfloat16 rows: rows, indices, elements by index.

Their memory is compared with the plans of tt-metal 0.81.1. Their kernels are not public, so their time and their choice
among equal elements are unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT16, UINT32, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer, DeviceOp
from device.spec.device_spec import DeviceSpec
from ops.op_model import OpModel, ValuesContext
from ops.programs.buffer_shapes import BUFFERING, buffer, paged_buffer, spread_evenly

MOST_PICKED = 2048  # elements of a row
STEP_TILES = 8  # of a row that a core makes rows of at a time
PLACES = 16  # that rows of places are rounded up to
LEAST_SORTED = 512  # elements that are sorted together
SORTED_BYTES = (4, 8)  # of the two buffers, for each of them
LEAST_BYTES = 4096
HALF_ROWS = 2  # parts of a tile of results, of which each is one core's work
LIST_BYTES = 1024


class Part(Enum):
    """The programs, in order; values are their names."""

    ROWS = "TopkRoutePrep"
    PLACES = "TopkLargeIndices"
    RESULTS = "TopkRouteFinish"


@dataclass(frozen=True, slots=True, kw_only=True)
class PickMany(DeviceOp):
    """One of the programs."""

    part: Part
    count: int  # Elements of each row

    @property
    def name(self) -> str:
        """The device operation."""
        return f"{self.part.value}DeviceOperation"


def _values(op: PickMany, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """Never called: a plan with this operation leaves its values out."""
    raise NotImplementedError


OP_MODELS: Final = (
    OpModel(op=PickMany, values=_values, no_model="its kernels are not public, and it was never measured"),
)


def rows_between(source: TensorSpec, count: int) -> tuple[TensorSpec, TensorSpec]:
    """The rows of a tensor of four axes, and the selected indices of each row; in its memory."""
    place, sides = source.memory_config, source.shape[:-1]
    rows = TensorSpec(source.shape, BFLOAT16, Layout.ROW_MAJOR, place)
    return rows, TensorSpec((*sides, round_up(count, PLACES)), UINT32, Layout.ROW_MAJOR, place)


def part_buffers(
    op: PickMany, source: TensorSpec, index_format: DataFormat, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """The circular buffers of a program; ``source`` is the tensor of the call, with four axes."""
    high, wide = source.padded_shape[-2] // TILE, source.padded_shape[-1] // TILE
    tile_rows = source.padded_shape[0] * source.padded_shape[1] * high
    if op.part is Part.ROWS:
        cores = _cores(tile_rows * div_up(wide, STEP_TILES), spec)
        tiles = BUFFERING * min(STEP_TILES, wide)
        return tuple(paged_buffer(name, tiles, BFLOAT16.tile_bytes, BFLOAT16, cores) for name in ("tiles", "rows"))
    if op.part is Part.PLACES:
        cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
        most = max(LEAST_SORTED, 1 << (op.count - 1).bit_length())
        sizes = [max(LEAST_BYTES, size * most) for size in SORTED_BYTES]
        if most > LEAST_SORTED:
            sizes.append(4 * round_up(op.count, PLACES))
        return tuple(buffer(f"sorted_{number}", size, UINT32, cores) for number, size in enumerate(sizes))
    cores = _cores(HALF_ROWS * tile_rows * div_up(op.count, TILE), spec)
    results = (BFLOAT16.tile_bytes, index_format.tile_bytes)
    sizes = [LIST_BYTES, LIST_BYTES, LEAST_BYTES, LEAST_BYTES, *results]
    return tuple(buffer(f"results_{number}", size, BFLOAT16, cores) for number, size in enumerate(sizes))


def _cores(items: int, spec: DeviceSpec) -> CoreRangeSet:
    """The largest number of cores that share the items evenly, row by row."""
    return first_cores(spread_evenly(items, spec.grid.cores)[0], spec.grid.cols, spec.grid.rows).merged()
