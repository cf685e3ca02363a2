"""The program that converts a tensor to another format: the operation, its buffers and its values.

Rules: ttnn 0.81.1 (copy/typecast), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import prod

from device.errors import DeviceError
from device.matrix_unit.typecast import typecast
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig
from device.numbers.formats import Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Movement, copy_pages, sides_of
from ops.programs.data_movement.movement_cycles import DataMovement


@dataclass(frozen=True, slots=True)
class Typecast(DataMovement):
    """The same shape in another format."""

    source_format: DataFormat
    data_format: DataFormat

    def moved(self, values: Array) -> Array:
        """The other format; block floats pass through bfloat16 and back, where neighbors may differ."""
        return typecast(values, self.source_format, self.data_format)

    @property
    def measured_as(self) -> str:
        """The operation's own name."""
        return "Typecast"

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Tiles are read, and each is written in the other format."""
        return cast_movement(read, written, spec)


def cast_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads tile by tile and writes each in another format."""
    copied = copy_pages(sides_of(source, target, spec))
    tiles = 0 if copied.writes is None else copied.writes.core_pages
    return replace(copied, cast_tiles=tiles, formats=(source.data_format, target.data_format))


def typecast_by(
    builder: PlanBuilder, read: PlanTensor, data_format: DataFormat, name: str, *, place: MemoryConfig | None = None
) -> PlanTensor:
    """A tensor in another format, in a place or where it is; raises DeviceError if that is sharded in another way."""
    source, spec = read.spec, builder.device_spec
    where = source.memory_config if place is None else place
    made = PlanTensor(name, TensorSpec(source.shape, data_format, source.layout, where))
    if source.memory_config.memory_layout is not where.memory_layout:
        before, after = source.memory_config.memory_layout.name, where.memory_layout.name
        raise DeviceError(
            "Typecast operation requires Input and Output memory layout to match. Input layout: "
            f"TensorMemoryLayout::{before}, Output layout: TensorMemoryLayout::{after}\n"
            "memory_config: leave it out, and move the result afterwards"
        )
    page_bytes = source.buffer(spec).page_bytes
    ragged = source.memory_config.is_sharded() and page_bytes % spec.l1.alignment_bytes
    return builder.run(
        "TypecastDeviceOperation",
        Typecast(source.data_format, data_format),
        [read],
        output=made,
        circular_buffers=_typecast_buffers(read, made, spec),
        dataflow=True,
        refused=(
            f"Typecast operation requires sharded input tensor page size ({page_bytes} bytes) to be aligned to L1 "
            f"({spec.l1.alignment_bytes} bytes)\ninput_tensor: give tiles, or wider shards"
            if ragged
            else _core_refusal(source, made.spec)
        ),
    )


def _converts_shards(source: TensorSpec, made: TensorSpec) -> bool:
    """Whether whole shards are converted where they lie."""
    shards = source.memory_config.shard_spec
    as_large = source.data_format.tile_bytes == made.data_format.tile_bytes
    return shards is not None and as_large and (source.layout is Layout.TILE or prod(shards.shape) % TILE**2 == 0)


def _core_refusal(source: TensorSpec, made: TensorSpec) -> str | None:
    """Why the library does not convert shards where they lie, if it does not."""
    if not _converts_shards(source, made) or source.shards.num_cores() == made.shards.num_cores():
        return None
    return (
        f"Output tensor should have same number of cores {made.shards.num_cores()} as input tensor "
        f"{source.shards.num_cores()}\nmemory_config: leave it out, and move the result afterwards"
    )


def _typecast_buffers(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles each on as many cores as there are tiles, column by column, or rows, row by row; or whole shards."""
    source = read.spec
    if _converts_shards(source, made.spec):
        shards = source.shards
        tiles = prod(shards.shape) // TILE**2
        return tuple(
            tile_buffer(name, tiles, tensor.spec.data_format, shards.grid, tensor.name)
            for name, tensor in (("argument", read), ("result", made))
        )
    pages = source.buffer(spec)
    cores = page_cores(pages.size_bytes // pages.page_bytes, spec.grid, row_wise=source.layout is Layout.ROW_MAJOR)
    return tuple(
        tile_buffer(name, BUFFERING, tensor.spec.data_format, cores)
        for name, tensor in (("argument", read), ("result", made))
    )
