"""Programs that pad a tensor or fill the padding of its tiles: operations, buffers, pages and values.

Source: tt-metal 0.81.1 (data_movement/pad, fill_pad), compared with recorded plans. Cycles are composed: pages of the
source are waited for and pages of the result written, as in measured copies.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, Array, div_up, quantize, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    in_dram,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    scratchpad,
    shard_view,
    volume_tiles,
)
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement


@dataclass(frozen=True, slots=True)
class FillPad(DataMovement):
    """Padding elements of the last input become zero; its logical elements stay.

    A block float shares exponents between logical and padding elements, so padding must be harmless before a
    conversion.
    """

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A copy of the tiles that hold padding, in place."""
        return _filling(read, written, read.shape, spec)


BARRIER_BYTES = 2048  # of rows that are waited for together, at least
BLOCK_BYTES = 32  # a multiple of them is a row on its way through the one core that pads all
BARRIERS = 16  # on their way through a core, if they fit half of its L1
HALF_BITS = 16

Around = tuple[tuple[int, int], ...]  # before and after, for each axis


@dataclass(frozen=True, slots=True, kw_only=True)
class PadWith(DataMovement):
    """A number around a tensor."""

    LOCATES = True

    shape: tuple[int, ...]
    padding: Around
    value: float = 0.0
    in_halves: bool = False  # A 32-bit number is written as the number in bfloat16, twice
    by_one_core: bool = False
    cores: CoreRangeSet | None = None  # That may be used; None for all

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A copy, possibly on one core; every core fills a tile with the number first."""
        copied = copy_movement(read, written, spec, within=self.cores)
        if written.layout is Layout.TILE:
            copied = replace(copied, filled_bytes=written.data_format.tile_bytes)
        if not self.by_one_core:
            return copied
        reads, writes = (replace(side, core_pages=side.all_pages) for side in copied.sides)
        return replace(copied, cores=page_cores(1, spec.grid), reads=reads, writes=writes, blocks=reads.core_pages)

    def moved(self, values: Array) -> Array:
        """The number around the tensor, as its format holds it."""
        number = np.asarray(self.value, values.dtype)
        if self.in_halves:
            bits = quantize(np.asarray([self.value], np.float32), BFLOAT16).astype(np.float32).view(np.uint32)
            number = (bits | bits >> HALF_BITS).view(np.float32)[0]
        return np.pad(values.reshape(self.shape), self.padding, constant_values=number)


def around_image(padding: tuple[int, int, int, int]) -> Around:
    """The padding of images [N, H, W, C] with rows above and below, and columns at the left and at the right."""
    return (0, 0), padding[:2], padding[2:], (0, 0)


def pads_shards(source: TensorSpec, target: TensorSpec) -> bool:
    """Whether rows are padded from HEIGHT shards into HEIGHT shards that are as wide as the result, and as high."""
    before, after = source.memory_config, target.memory_config
    if before.shard_spec is None or after.shard_spec is None or before.buffer_type is not BufferType.L1:
        return False
    by_height = {before.memory_layout, after.memory_layout} == {TensorMemoryLayout.HEIGHT_SHARDED}
    high = after.shard_spec.shape[0] >= before.shard_spec.shape[0]
    return by_height and high and source.layout is Layout.ROW_MAJOR and target.shape[-1] == after.shard_spec.shape[1]


def writes_halves(source: TensorSpec, target: TensorSpec) -> bool:
    """Whether the program writes a 32-bit number as two bfloat16 numbers: all programs of rows but the widening one."""
    widens = pads_shards(source, target) and source.shape[-1] != target.shape[-1]
    return source.layout is Layout.ROW_MAJOR and source.data_format == FLOAT32 and not widens


def pad_buffers(
    source: PlanTensor,
    target: PlanTensor,
    front: int,
    spec: DeviceSpec,
    *,
    by_one_core: bool = False,
    within: CoreRangeSet | None = None,
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: tiles, shards, or rows in transit, and room for the padding value.

    `front` is the number of columns before the first column of the source. One core may pad everything; the cores
    ``within`` pad interleaved tensors.
    """
    read, result, data_format = source.spec, target.spec, target.spec.data_format
    row = row_bytes(result, result.shape[-1])
    if result.layout is Layout.TILE:
        cores = page_cores(1 if by_one_core else volume_tiles(result), spec.grid, within=within)
        page = data_format.tile_bytes
        return buffer("tiles", BUFFERING * page, data_format, cores), scratchpad("number", page, data_format, cores)
    if pads_shards(read, result):
        # Both shards, of no more rows than there are, and a row of the number. The program that widens rows runs on the
        # cores that hold rows, the program that adds rows on the whole grid.
        widens = read.shape[-1] != result.shape[-1]
        view = shard_view("padded", target, spec, result.data_cores if widens else None)
        size = min(read.shards.shape[0], read.matrix[0]) * row_bytes(read, read.shape[-1])
        number = (scratchpad if widens else buffer)("number", row_bytes(result), data_format, view.cores)
        return buffer("shards", size, data_format, view.cores, source.name), view, number
    if by_one_core:
        width = round_up(row, max(page_alignment_bytes(read.memory_config, spec), BLOCK_BYTES))
        return (buffer("rows", BARRIERS * width, data_format, page_cores(1, spec.grid)),)
    # Groups of rows that are waited for together, a row of the number, and a row for alignment
    cores = page_cores(result.matrix[0], spec.grid, within=within)
    apart, in_dram = round_up(row, spec.l1.alignment_bytes), round_up(row, spec.dram.alignment_bytes)
    group = div_up(BARRIER_BYTES, apart) * apart
    depth = max(1, min(BARRIERS, row_room_bytes(spec) // group))
    names = ("number", "aligned") if front or apart % spec.dram.alignment_bytes else ("number",)
    return (
        buffer("rows", depth * group, data_format, cores),
        *(scratchpad(name, in_dram, data_format, cores) for name in names),
    )


def row_room_bytes(spec: DeviceSpec) -> int:
    """Bytes that rows in transit through a core may take: half of the L1 above the base of all programs."""
    return spec.l1.bytes // 2 - spec.l1.base_bytes


def ragged_tiles(shape: tuple[int, ...]) -> int:
    """Tiles that hold padding."""
    *images, rows, columns = (1, 1, *shape)  # a vector is one row, and so is a number
    return prod(images) * (div_up(rows, TILE) * div_up(columns, TILE) - (rows // TILE) * (columns // TILE))


def fill_buffers(tensor: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: tiles on both sides, and a mask for each side on which there is padding."""
    data_format, spread = tensor.data_format, tensor.memory_config.interleaved or in_dram(tensor)
    cores = page_cores(ragged_tiles(tensor.shape), spec.grid) if spread else tensor.data_cores
    masks = [name for name, side in (("right", -1), ("bottom", -2)) if (1, 1, *tensor.shape)[side] % TILE]
    sizes = {"read": BUFFERING, **dict.fromkeys(masks, 1), "written": BUFFERING}
    return tuple(buffer(name, tiles * data_format.tile_bytes, data_format, cores) for name, tiles in sizes.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class FillTiles(DataMovement):
    """Fills the padding of tiles with a number; the result has the padded shape."""

    shape: tuple[int, ...]
    padded_shape: tuple[int, ...]  # The same in whole tiles
    value: float

    def moved(self, values: Array) -> Array:
        """The values with the number after the last row and column of every image, in the format's precision."""
        if values.size == prod(self.padded_shape) != prod(self.shape):
            values = values.reshape(self.padded_shape)[tuple(map(slice, self.shape))]
        behind = [(0, whole - side) for side, whole in zip(self.shape, self.padded_shape, strict=True)]
        return np.pad(values.reshape(self.shape), behind, constant_values=np.asarray(self.value, values.dtype))

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A copy of the tiles that hold padding, in place."""
        return _filling(read, written, self.shape, spec)


def _filling(read: TensorSpec, written: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec) -> Movement:
    """A copy, in place, of the tiles with padding of a tensor with a logical shape."""
    copied, tiles = copy_movement(read, written, spec), ragged_tiles(shape)
    if not tiles:
        return replace(copied, reads=None, writes=None)
    core_tiles = div_up(tiles, copied.cores.num_cores())
    reads, writes = (replace(side, core_pages=core_tiles, all_pages=tiles) for side in copied.sides)
    return replace(copied, reads=reads, writes=writes, blocks=core_tiles)
