"""Giving a tensor on the device another shape: for free, or by moving every row.

Rules: tt-metal 0.81.1, ttnn.reshape. A tile holds rows of one image row only, so that an image whose width is no
multiple of 32 has padding rows inside; flattening it moves rows between tiles. Block floats are converted to bfloat16
and back around that. A sharded tensor is redistributed: tiles by the same program, rows and block floats by way of an
interleaved tensor.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import NoReturn

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT32, div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import row_bytes, shard_counts
from ops.programs.data_movement.conversions import converted, in_memory, to_interleaved
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.pad import FillPad, fill_buffers
from ops.programs.data_movement.reshape import (
    Reshape,
    map_tiles,
    segments_per_page,
    stick_buffers,
    three_axes,
    tile_buffers,
)
from ops.programs.data_movement.typecast import typecast_by

Shape = tuple[int, ...]

WORD_BYTES = 4  # a row of a HEIGHT or WIDTH shard is whole words
BLOCK_ROW_BYTES = 64  # a row of a BLOCK shard is whole multiples of this
MOVED_FORMATS = (BFLOAT16, FLOAT32, INT32, UINT32)  # of tensors whose rows are moved
SEGMENT_WORDS = 4  # input page, offset in it, offset in the output page, elements


def resharded_place(spec: TensorSpec, before: MemoryConfig) -> MemoryConfig:
    """Where a tensor goes that was sharded in `before` and has got another shape.

    HEIGHT and WIDTH shards stay on their cores and share the rows (the columns) evenly, rounded up. BLOCK shards keep
    as many rows and columns of cores, from the first one, as divide the tensor into equal aligned parts. A grid that is
    no rectangle gives the sharding up. Where one HEIGHT shard holds all rows, the library takes it for a WIDTH shard:
    it looks at the height first.
    """
    shards, scheme = before.shard_spec, before.memory_layout
    apart = MemoryConfig(buffer_type=before.buffer_type)
    if shards is None or shards.grid.bounding_box().num_cores() != shards.num_cores():
        return apart
    (rows, cols), (down, across), grid = spec.matrix, shard_counts(scheme, shards), shards.grid
    by_blocks, row_unit, column_unit = scheme is TensorMemoryLayout.BLOCK_SHARDED, TILE, TILE
    if spec.layout is Layout.ROW_MAJOR:
        unit_bytes = BLOCK_ROW_BYTES if by_blocks else WORD_BYTES
        row_unit, column_unit = 1, div_up(unit_bytes, spec.data_format.element_bytes or 1)
    if by_blocks:
        down, across = _equal_parts(rows, down, row_unit), _equal_parts(cols, across, column_unit)
        if not down or not across:
            return apart
        start, by_rows = grid.bounding_box().start, shards.orientation is ShardOrientation.ROW_MAJOR
        x, y = (across, down) if by_rows else (down, across)
        grid = CoreRangeSet(CoreRange(start, CoreCoord(start.x + x - 1, start.y + y - 1)))
    shape = (round_up(div_up(rows, down), row_unit), round_up(div_up(cols, across), column_unit))
    if scheme is TensorMemoryLayout.HEIGHT_SHARDED and shape[0] == rows:
        scheme = TensorMemoryLayout.WIDTH_SHARDED
    return MemoryConfig(scheme, before.buffer_type, ShardSpec(grid, shape, shards.orientation))


def _equal_parts(length: int, most: int, unit: int) -> int:
    """The largest number of equal parts of whole units; 0 if there are none."""
    return next((parts for parts in range(most, 0, -1) if length % (parts * unit) == 0), 0)


def flattened(shape: Shape) -> tuple[int, int, int, int]:
    """[1, 1, rows, C] of any shape [..., C]."""
    return 1, 1, prod(shape[:-1]), shape[-1]


def is_view(spec: TensorSpec, shape: Shape) -> bool:
    """Whether ``shape`` lies in memory as the tensor already does."""
    before, after = three_axes(spec.shape), three_axes(shape)
    if before[-1] != after[-1]:
        return False
    whole_tiles = before[-2] % TILE == 0 and after[-2] % TILE == 0
    return spec.layout is Layout.ROW_MAJOR or before[-2] == after[-2] or whole_tiles


def without_shards(place: MemoryConfig) -> MemoryConfig:
    """The same memory, interleaved."""
    return MemoryConfig(buffer_type=place.buffer_type)


def memory_after(spec: TensorSpec, shape: Shape) -> MemoryConfig:
    """Where `reshaped` leaves a tensor under another shape of the same volume."""
    place = spec.memory_config
    if is_view(spec, shape) or not place.is_sharded():
        return place
    return resharded_place(TensorSpec(shape, spec.data_format, spec.layout, without_shards(place)), place)


def reshaped(builder: PlanBuilder, source: PlanTensor, shape: Shape, name: str) -> PlanTensor:
    """The tensor of a convolution under another shape of the same volume; the source stays allocated.

    A view keeps the source's name and takes no step; a new buffer is called `name`, and its intermediates start with
    it. An ArgumentError refuses another volume.
    """
    spec = source.spec
    if prod(shape) != spec.volume:
        raise ArgumentError(
            "Attempting to reshape between two shapes with different volumes\n"
            f"input_tensor: shape {list(spec.shape)} has {spec.volume} elements, {list(shape)} has {prod(shape)}; "
            "batch_size, input_height, input_width and in_channels must describe the tensor"
        )
    if is_view(spec, shape):
        same = tuple(shape) == spec.shape
        return PlanTensor(
            source.name, spec if same else TensorSpec(shape, spec.data_format, spec.layout, spec.memory_config)
        )
    return RowMover(builder, source, shape, spec.memory_config, name).moved()


class RowMover:
    """Moves the rows of a tensor to their places under another shape, as a convolution does; the source stays."""

    def __init__(self, builder: PlanBuilder, source: PlanTensor, shape: Shape, where: MemoryConfig, name: str) -> None:
        """Prepares the move of ``source`` to the place ``where``, whose shards follow from the shape."""
        self.builder, self.source, self.shape, self.where, self.name = builder, source, shape, where, name

    @property
    def wide_name(self) -> str:
        """The name of block floats while they are bfloat16."""
        return f"{self.name}.bfloat16"

    @cached_property
    def place(self) -> MemoryConfig:
        """The place of the result; the library computes it when it is needed, and may fail to."""
        if not self.where.is_sharded():
            return self.where
        spec = self.source.spec
        return self.sharded_place(TensorSpec(self.shape, spec.data_format, spec.layout, without_shards(self.where)))

    def sharded_place(self, flat: TensorSpec) -> MemoryConfig:
        """The place of a sharded result that has no shards yet."""
        return resharded_place(flat, self.where)

    def gathered(self) -> PlanTensor:
        """The source without shards."""
        place = without_shards(self.source.spec.memory_config)
        return to_interleaved(self.builder, self.source, place, f"{self.name}.interleaved")

    def dealt(self, tensor: PlanTensor) -> PlanTensor:
        """A tensor copied to the shards of the result."""
        result, name = in_memory(tensor.spec, self.place), self.name
        return converted(self.builder, Conversion.INTERLEAVED_TO_SHARDED, tensor, result, name)

    def filled(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles with zeros in their padding, if they have any, since padding shares exponents with numbers."""
        buffers = fill_buffers(tensor.spec, self.builder.device_spec)
        self.builder.run("FillPadDeviceOperation", FillPad(), [tensor], circular_buffers=buffers, dataflow=True)
        return tensor

    def moved(self) -> PlanTensor:
        """The result in its place; intermediates are released."""
        spec, from_shards = self.source.spec, self.source.spec.memory_config.is_sharded()
        if spec.layout is Layout.ROW_MAJOR:
            read, name = self.gathered() if from_shards else self.source, self._before_dealing("moved")
            result = self._in_place(moved_rows(self.builder, read, self.shape, without_shards(self.where), name))
        elif spec.data_format.is_block:
            read = self.gathered() if self.where.is_sharded() and from_shards else self.source
            return self._block_floats(read)
        else:
            gathers = self.where.is_sharded() and not self.place.is_sharded() and from_shards
            read = self.gathered() if gathers else self.source
            result = self.filled_tiles(moved_tiles(self.builder, read, self.shape, self.place, self.name))
        if read.name != self.source.name:
            self.builder.free(read)
        return result

    def filled_tiles(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles that are not block floats, with the filling of their padding."""
        return tensor

    def _block_floats(self, read: PlanTensor) -> PlanTensor:
        """Block floats move as bfloat16; padding is filled before the way back because it shares exponents."""
        builder = self.builder
        wide = typecast_by(builder, read, BFLOAT16, self.wide_name)
        if read.name != self.source.name:
            builder.free(read)
        moved = moved_tiles(builder, wide, self.shape, without_shards(self.where), f"{self.name}.moved")
        if is_ragged(self.shape):
            self.filled(moved)
        narrow = typecast_by(builder, moved, self.source.spec.data_format, self._before_dealing("narrow"))
        builder.free(moved)
        result = self._in_place(narrow)
        builder.free(wide)
        return result

    def _before_dealing(self, step: str) -> str:
        """Name of the tensor before it is sharded; the result's name if it is not sharded."""
        return f"{self.name}.{step}" if self.place.is_sharded() else self.name

    def _in_place(self, tensor: PlanTensor) -> PlanTensor:
        """An interleaved tensor copied to shards and released; the tensor itself if the result stays interleaved."""
        if not self.place.is_sharded():
            return tensor
        result = self.dealt(tensor)
        self.builder.free(tensor)
        return result


def is_ragged(shape: Shape) -> bool:
    """Whether tiles of a shape have padding."""
    return any(side % TILE for side in (1, *shape)[-2:])


def moved_rows(builder: PlanBuilder, source: PlanTensor, shape: Shape, place: MemoryConfig, name: str) -> PlanTensor:
    """Interleaved rows of another length, by one program; raises DeviceError for elements that it does not move."""
    result = _moved_spec(source.spec, shape, place)
    return builder.run(
        "ReshapeViewDeviceOperation",
        Reshape(shape),
        [source],
        output=PlanTensor(name, result),
        circular_buffers=stick_buffers(source.spec, result, builder.device_spec),
        dataflow=True,
    )


def _moved_spec(spec: TensorSpec, shape: Shape, place: MemoryConfig) -> TensorSpec:
    """Tensor spec of the program's result; raises DeviceError for rows or tiles of elements that it does not move."""
    if spec.data_format not in MOVED_FORMATS:
        raise DeviceError(
            "Can only work with bfloat16/float32 or int32/uint32 tensors\n"
            f"reshape: rows of {spec.data_format} can not be moved; typecast the tensor before"
        )
    return TensorSpec(shape, spec.data_format, spec.layout, place)


def moved_tiles(builder: PlanBuilder, source: PlanTensor, shape: Shape, place: MemoryConfig, name: str) -> PlanTensor:
    """Rows move between tiles, by a map that the program keeps in DRAM, for shapes of three axes.

    A DeviceError refuses formats whose elements the program does not move.
    """
    spec, result = source.spec, _moved_spec(source.spec, shape, place)
    before, after = three_axes(spec.shape), three_axes(shape)
    segments = segments_per_page(before, after)
    rows_map = TensorSpec((map_tiles(after), SEGMENT_WORDS * segments), UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
    return builder.run(
        "ReshapeViewDeviceOperation",
        Reshape(shape),
        [source],
        output=PlanTensor(name, result),
        resident=[PlanTensor(f"{name}.map", rows_map)],
        circular_buffers=tile_buffers(spec, result, segments, builder.device_spec),
        dataflow=True,
        key=("reshape tiles", before, spec.data_format, spec.memory_config, spec.alignment, after, place),
    )


def viewed(source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec) -> TensorSpec:
    """The tensor as a view under another shape; the library does not see the padding of rows in shards as padding.

    A DeviceError refuses rows with their padding, or tiles of a vector with theirs, that several shards share.
    """
    shards, columns, row = source.memory_config.shard_spec, source.padded_shape[-1], (1, *shape)[-1]
    tiled = source.layout is Layout.TILE
    if shards is not None and shards.shape[1] != columns != row and (len(shape) == 1 or not tiled):
        refuse_other_width(source.padded_shape, shape, shards)
    if shards is None or tiled or columns == row:
        return TensorSpec(shape, source.data_format, source.layout, source.memory_config)
    view_shards = replace(shards, shape=(shards.shape[0] * columns // row, row))
    tensor_spec = TensorSpec(
        shape, source.data_format, source.layout, replace(source.memory_config, shard_spec=view_shards)
    )
    size, page = source.buffer(spec).size_bytes, row_bytes(tensor_spec)
    if size % page:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page} must equal buffer size {size}. For "
            "interleaved-buffers, buffer size should be divisible by the page size\n"
            f"input_tensor: rows of {columns} elements with their padding do not become rows of {row}"
        )
    return tensor_spec


def refuse_other_width(padded_shape: Sequence[int], shape: Sequence[int], shards: ShardSpec) -> NoReturn:
    """Raises DeviceError for rows of another length in shards that cut them."""
    raise DeviceError(
        "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
        f"last dimension. Input shape: Shape({list(padded_shape)}), New shape: Shape({list(shape)}), "
        f"Shard width: {shards.shape[1]}\ninput_tensor: give shards of whole rows"
    )
