"""Programs that repeat pixels: the operation, its buffers, its pages and its values.

Source: tt-metal 0.81.1 (pool/upsample), compared with recorded plans and values.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.errors import ArgumentError
from device.matrix_unit.packer import typecast, unpack
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import FLOAT32, UINT16, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores, paged_buffer, row_bytes
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.movement import Access, DataMovement, Movement, copy_movement, pages_of

Indices: TypeAlias = NDArray[np.int64]

FIXED_ONE: Final = 1 << 16  # of the numbers that a reader finds its pixel with


class UpsampleProgram(Enum):
    """The program that copies or interpolates pixels."""

    STICKS = "sticks"  # Every stick is read once and written to all its places
    TILES = "tiles"  # The same, after an untilize
    SHARDS = "shards"  # Every core gathers the sticks of its shard from the shards of others
    PAGES = "pages"  # Every page of the result is read where it comes from


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsample(DataMovement):
    """Every pixel of [N, H, W, C] several times, down and across."""

    program: UpsampleProgram
    shape: tuple[int, ...]
    scale: tuple[float, float]  # How often, down and across
    source_format: DataFormat
    data_format: DataFormat

    def moved(self, values: Array) -> Array:
        """The result in storage of its format.

        Tiles pass a 16-bit Dst on their way to sticks, which cuts a float32.
        """
        images = values.reshape(self.shape)
        if self.program is UpsampleProgram.TILES and self.source_format == FLOAT32:
            images = unpack(np.ascontiguousarray(images), FLOAT32, fp32_dest=False)
        if self.source_format != self.data_format:
            images = typecast(images, self.source_format, self.data_format)
        _, high, wide, _ = upsampled_shape(self.shape, self.scale)
        rows, columns = (
            _taken(result, side, factor)
            for result, side, factor in zip((high, wide), self.shape[1:3], self.scale, strict=True)
        )
        return np.ascontiguousarray(images[:, rows][:, :, columns])

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program."""
        match self.program:
            case UpsampleProgram.STICKS:  # a stick is written to all its places before the writer waits
                copied, places = copy_movement(read, written, spec), int(self.scale[0] * self.scale[1])
                pages = pages_of(written, copied.cores.num_cores())
                return replace(copied, writes=replace(pages, access=Access.WAIT, in_flight=places))
            case UpsampleProgram.TILES:
                untilized = CopyTensor(Conversion.UNTILIZE).movement(read, written, spec)
                spread = replace(pages_of(written, untilized.cores.num_cores()), access=Access.ROWS)
                return replace(untilized, writes=spread)
            case UpsampleProgram.SHARDS:
                shards = written.shards
                gathered = pages_of(written, shards.num_cores())
                core_pages = div_up(gathered.core_pages, PROCESSORS)
                copied_pages = replace(gathered, access=Access.LOCAL_STICKS, core_pages=core_pages)
                return Movement(cores=shards.grid, writes=copied_pages)
            case UpsampleProgram.PAGES:
                pages = replace(pages_of(written, 1), access=Access.WAIT)
                cores = page_cores(pages.all_pages, spec.grid)
                pages = replace(pages, core_pages=div_up(pages.all_pages, cores.num_cores()))
                reads = replace(pages, in_dram=pages_of(read, 1).in_dram)
                return Movement(cores=cores, reads=reads, writes=pages, blocks=pages.core_pages)


def upsampled_shape(shape: tuple[int, ...], scale: tuple[float, float]) -> tuple[int, int, int, int]:
    """[N, H, W, C] with more rows and columns, rounded down, as products of float32.

    Raises ArgumentError for 2^32 or more of them.
    """
    batch, *sides, channels = shape
    if not all(side * factor < 1 << 32 for side, factor in zip(sides, scale, strict=True)):
        raise ArgumentError(
            f"upsample: scale_factor {scale[0]:g} by {scale[1]:g} makes sides of 2^32 or more, which the real library "
            "takes for 0; give smaller factors"
        )
    high, wide = (int(np.float32(side) * np.float32(factor)) for side, factor in zip(sides, scale, strict=True))
    return batch, high, wide, channels


def _taken(length: int, side: int, factor: float) -> Indices:
    """[length] pixel of ``side`` that each pixel of the result takes; by a reciprocal rounded up to 16 bits."""
    reciprocal = int(np.ceil(np.float32(1) / np.float32(factor) * np.float32(FIXED_ONE)))
    places = np.arange(length, dtype=np.int64)
    taken = places // int(factor) if float(factor).is_integer() else places * reciprocal // FIXED_ONE
    return np.minimum(taken, side - 1)


PAGES_IN_FLIGHT = 4  # pages of the result on their way through a core


def interleaved_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers for an interleaved source: two sticks or rows of tiles, or one if no core has more."""
    rows, columns = source.matrix
    if source.layout is Layout.TILE:
        units, pages = rows // TILE, columns // TILE
        sizes = {"tiles": (source.data_format, source.data_format.tile_bytes)}
        sizes["sticks"] = target.data_format, target.data_format.tile_bytes
    else:
        units, pages = rows, 1
        sizes = {"sticks": (target.data_format, round_up(row_bytes(source), spec.dram.alignment_bytes))}
    if units > spec.grid.cores:
        pages *= BUFFERING
    cores = page_cores(units, spec.grid)
    return tuple(paged_buffer(name, pages, size, data_format, cores) for name, (data_format, size) in sizes.items())


def page_buffers(target: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers of a program that reads every page of the result at its origin."""
    pages = target.buffer(spec)
    page_bytes = aligned_page_bytes(pages.page_bytes, pages.buffer_type, spec)
    cores = page_cores(pages.size_bytes // pages.page_bytes, spec.grid)
    return (paged_buffer("pages", PAGES_IN_FLIGHT, page_bytes, target.data_format, cores),)


def shard_buffers(
    source: PlanTensor, target: PlanTensor, lists: PlanTensor, stick_bytes: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Views of the shards of both tensors and of the lists of sticks, on the cores that have lists.

    A stick is a core's part of a pixel; a list is a row of words.
    """
    page_bytes, cores = round_up(stick_bytes, spec.l1.alignment_bytes), lists.spec.shards.grid
    views = [
        paged_buffer(name, tensor.spec.shards.shape[0], page_bytes, tensor.spec.data_format, cores, tensor.name)
        for name, tensor in (("source", source), ("result", target))
    ]
    return (*views, buffer("lists", row_bytes(lists.spec), UINT16, cores, lists.name))


PROCESSORS = 2  # that gather the sticks of a core
INTERVAL_WORDS = 4  # uint16: the column and the row of a core, its first stick and its last


def interval_words(rows: int, width: int, repeats: int, shard_rows: int) -> int:
    """uint16 words of a core's lists for `rows` of `width` pixels, repeated, from shards of `shard_rows` pixels."""
    row, column = np.divmod(np.arange(rows * repeats * width, dtype=np.int64), width)
    row, again = np.divmod(row, repeats)
    begins = (row * width + column) % shard_rows == 0
    begins |= (column == 0) & (again > 0)
    core_rows = shard_rows * repeats
    core, stick = np.divmod(np.arange(len(begins), dtype=np.int64), core_rows)
    first_half = (core_rows + 1) // PROCESSORS
    begins |= (stick == 0) | (stick == first_half)
    processor = PROCESSORS * core + (stick >= first_half)
    longest = int(np.bincount(processor[begins]).max())
    return PROCESSORS * INTERVAL_WORDS * longest
