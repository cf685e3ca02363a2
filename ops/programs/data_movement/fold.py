"""Programs that fold windows of images into channels: the operation, its shards, buffers and pages.

Source: tt-metal 0.81.1 (data_movement/fold), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, Array, DataFormat, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, row_bytes, shard_view, spread_evenly
from ops.programs.data_movement.copy import untilize_pages
from ops.programs.data_movement.movement import Access, DataMovement, Movement, sides_of
from ops.programs.data_movement.pad import around_image


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldWindows(DataMovement):
    """Windows side by side in a tensor [N, H, W, C] become channels [N, H / rows, W / columns, rows * columns * C]."""

    window: tuple[int, int]  # Rows and columns of a window
    image: tuple[int, int, int, int]  # [N, H, W, C]
    data_format: DataFormat  # Format of the result: block floats become bfloat16
    # Zeros above, below, at the left and at the right that the image counts and its array lacks, since a halo leaves
    # them to whoever reads its sticks
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def moved(self, values: Array) -> Array:
        """Windows as channels; their rows are slowest."""
        (rows, columns), (batch, height, width, channels) = self.window, self.image
        if any(self.padding):
            top, bottom, left, right = self.padding
            inner = (batch, height - top - bottom, width - left - right, channels)
            values = np.pad(values.reshape(inner), around_image(self.padding))
        split = values.reshape(batch, height // rows, rows, width // columns, columns, channels)
        folded = split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // rows, width // columns, -1)
        return folded.astype(self.data_format.storage, copy=False)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Sticks of a window are joined; processors of a core copy sticks of shards in place.

        Tiles are untilized, and sticks of rows are awaited per window.
        """
        sides = sides_of(read, written, spec)
        pages, writes = sides.read, replace(sides.written, access=Access.WAIT)
        if pages.tiles:
            return replace(untilize_pages(sides, Access.WAIT), writes=writes)
        if sides.from_shards and sides.to_shards:
            sticks = div_up(pages.core_pages, hands(spec, FOLD_KERNELS))
            return Movement(cores=sides.cores, writes=replace(pages, access=Access.LOCAL_STICKS, core_pages=sticks))
        reads = replace(pages, access=Access.WAIT, in_flight=prod(self.window))
        return Movement(cores=sides.cores, reads=reads, writes=writes, blocks=writes.core_pages)


FOLD_KERNELS = 2  # that share the sticks of a shard
STICK_BYTES = 16  # channels of tiles that are folded fill whole multiples of this
CODE_BYTES = 160 * 1024  # of L1 that are kept free where tiles are folded


def in_high_shards(tensor: TensorSpec) -> bool:
    """Whether a tensor is in HEIGHT shards in L1."""
    place = tensor.memory_config
    by_height = place.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED and place.shard_spec is not None
    return by_height and place.buffer_type is BufferType.L1


FOLDED = (BFLOAT16, FLOAT32, UINT16)  # formats that stay


def folded_format(tensor: TensorSpec) -> DataFormat:
    """The format of a folded tensor, which is ROW_MAJOR: bfloat16 except for the formats of `FOLDED`."""
    return tensor.data_format if tensor.data_format in FOLDED else BFLOAT16


def folds_tiles(image: TensorSpec, window: tuple[int, int], spec: DeviceSpec) -> bool:
    """Whether the program reads tiles: interleaved tiles with word-aligned channels, of which a row fits L1."""
    if image.layout is not Layout.TILE or image.memory_config.is_sharded():
        return False
    row = image.shape[-1] * (folded_format(image).element_bytes or 0)
    buffers = sum(buffer.size_bytes for buffer in _tile_buffers(image, window, spec))
    return row % STICK_BYTES == 0 and buffers + CODE_BYTES < spec.l1.usable_bytes


def whole_windows(image: TensorSpec, window: tuple[int, int], spec: DeviceSpec) -> MemoryConfig:
    """HEIGHT shards of whole rows of windows: the image's shards, or a number that divides its rows evenly."""
    place, (batch, height, width, _) = image.memory_config, image.shape
    shards, pixels = place.shard_spec, window[0] * width
    if shards is None or shards.shape[0] % pixels == 0:
        return place
    total = batch * height * width
    cores = next(count for count in range(spec.grid.cores, 0, -1) if total // pixels % count == 0)
    grid = first_cores(cores, spec.grid.cols, spec.grid.rows)
    dealt = ShardSpec(grid, (round_up(total // cores, pixels), shards.shape[1]), shards.orientation)
    return replace(place, shard_spec=dealt)


def fold_buffers(
    source: PlanTensor, target: PlanTensor, window: tuple[int, int], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: both shards; or tiles, their rows and a row of windows; or sticks of windows."""
    image = source.spec
    if image.layout is Layout.TILE:
        return _tile_buffers(image, window, spec)
    if in_high_shards(image):
        return shard_view("image", source, spec), shard_view("folded", target, spec)
    data_format, positions = image.data_format, prod(window)
    stick = row_bytes(image)
    aligned = round_up(stick, spec.dram.alignment_bytes)
    cores = _sharing(prod(image.shape[:-1]) // positions, spec)
    sticks = buffer("sticks", BUFFERING * aligned * positions, data_format, cores)
    return (sticks,) if stick == aligned else (sticks, buffer("joined", stick * positions, data_format, cores))


def _tile_buffers(image: TensorSpec, window: tuple[int, int], spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles across the channels, twice, the rows that they become, and the sticks of a row of windows."""
    (batch, height, width, channels), data_format = image.shape, folded_format(image)
    across, cores = div_up(image.padded_shape[-1], TILE), _sharing(batch * (height // window[0]), spec)
    row = width // window[1] * prod(window) * channels * (data_format.element_bytes or 0)
    return (
        buffer("tiles", BUFFERING * across * image.data_format.tile_bytes, image.data_format, cores),
        buffer("rows", BUFFERING * across * data_format.tile_bytes, data_format, cores),
        buffer("windows", row, data_format, cores),
    )


def _sharing(parts: int, spec: DeviceSpec) -> CoreRangeSet:
    """As many cores, row by row, as share the items evenly except for the last core."""
    return first_cores(spread_evenly(parts, spec.grid.cores)[0], spec.grid.cols, spec.grid.rows)
