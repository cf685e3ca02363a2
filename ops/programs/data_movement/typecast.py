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
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Movement, copy_movement
from ops.programs.data_movement.movement_cycles import DataMovement


@dataclass(frozen=True, slots=True)
class Typecast(DataMovement):
    """The same tensor in another format."""

    MEASURED = True

    source_format: DataFormat
    data_format: DataFormat

    def moved(self, values: Array) -> Array:
        """The other format; block floats pass through bfloat16 and back, where neighbors may differ."""
        return typecast(values, self.source_format, self.data_format)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Tiles are read, and each is written in the other format."""
        copied = copy_movement(read, written, spec)
        _, writes = copied.sides
        return replace(copied, cast_tiles=writes.core_pages, formats=(read.data_format, written.data_format))


def typecast_by(
    builder: PlanBuilder, read: PlanTensor, data_format: DataFormat, name: str, *, place: MemoryConfig | None = None
) -> PlanTensor:
    """A tensor in another format, by default in its place; raises DeviceError if the place has another sharding."""
    source, spec = read.spec, builder.device_spec
    where = source.memory_config if place is None else place
    result = PlanTensor(name, TensorSpec(source.shape, data_format, source.layout, where))
    if source.memory_config.memory_layout is not where.memory_layout:
        before, after = source.memory_config.memory_layout.name, where.memory_layout.name
        raise DeviceError(
            "Typecast operation requires Input and Output memory layout to match. Input layout: "
            f"TensorMemoryLayout::{before}, Output layout: TensorMemoryLayout::{after}\n"
            "memory_config: leave it out, and move the result afterwards"
        )
    page_bytes, refused = source.buffer(spec).page_bytes, None
    shards, as_large = source.memory_config.shard_spec, source.data_format.tile_bytes == data_format.tile_bytes
    whole_tiles = shards is not None and (source.layout is Layout.TILE or prod(shards.shape) % TILE**2 == 0)
    in_place = shards is not None and as_large and whole_tiles  # whole shards are converted where they lie
    if shards is not None and page_bytes % spec.l1.alignment_bytes:
        refused = (
            f"Typecast operation requires sharded input tensor page size ({page_bytes} bytes) to be aligned to L1 "
            f"({spec.l1.alignment_bytes} bytes)\ninput_tensor: give tiles, or wider shards"
        )
    elif shards is not None and in_place and shards.num_cores() != result.spec.shards.num_cores():
        refused = (
            f"Output tensor should have same number of cores {result.spec.shards.num_cores()} as input tensor "
            f"{shards.num_cores()}\nmemory_config: leave it out, and move the result afterwards"
        )
    if shards is not None and in_place:
        tiles, cores = prod(shards.shape) // TILE**2, shards.grid
    else:  # on as many cores as there are tiles, column by column, or rows, row by row
        pages, by_rows = source.buffer(spec).size_bytes // page_bytes, source.layout is Layout.ROW_MAJOR
        tiles, cores = BUFFERING, page_cores(pages, spec.grid, row_wise=by_rows)
    buffers = tuple(
        tile_buffer(name, tiles, tensor.spec.data_format, cores, tensor.name if in_place else None)
        for name, tensor in (("argument", read), ("result", result))
    )
    op = Typecast(source.data_format, data_format)
    return builder.run(
        "TypecastDeviceOperation", op, [read], output=result, circular_buffers=buffers, dataflow=True, refused=refused
    )
