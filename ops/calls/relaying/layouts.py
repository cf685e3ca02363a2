"""Plans that make tiles of rows, rows of tiles, or another format of either.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16, DataFormat
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.actions.pieces import tile_buffer
from ops.programs.actions.work_cores import page_cores
from ops.programs.eltwise.circular_buffers import BUFFERING
from ops.programs.movement.work import Typecast
from ops.programs.tiling.plan import (
    in_other_layout,
    require_whole_tiles,
    rows_of,
    tilized_by,
    unpadded_by,
    untilized_by,
)


def plan_to_layout(
    source: TensorSpec,
    layout: Layout,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
) -> Plan:
    """Plan the tensor "input" in a layout; the tensor itself, whatever else is asked for, if it has that layout.

    Raises:
        DeviceError: Rows in another format than the tiles are asked for, or shards do not hold whole tiles.
    """
    given, told = source.data_format, data_format or source.data_format
    untilizes = layout is Layout.ROW_MAJOR and source.layout is Layout.TILE
    if untilizes and told != given and (given, told) != (BFLOAT8_B, BFLOAT16):
        raise DeviceError(
            "dtype cannot be different from tensor dtype when converting to ROW_MAJOR_LAYOUT on device (allowed "
            "exception: BFLOAT8_B -> BFLOAT16, which untilize handles natively)!\n"
            f"dtype: leave {told} out, and typecast before"
        )
    builder = PlanBuilder(spec, {"input": source})
    read = builder.tensor("input")
    result = in_other_layout(builder, read, layout, "output", place=place, data_format=data_format)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_tilize(
    source: TensorSpec,
    spec: DeviceSpec,
    *,
    padded_shape: tuple[int, ...] | None = None,
    pads: bool = False,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
    on_one_core: bool = False,
) -> Plan:
    """Plan the rows of the tensor "input" as tiles.

    Args:
        source: The tensor.
        spec: The device.
        padded_shape: Shape with padding; None for the least.
        pads: Rows may end within tiles.
        place: Where the tiles go; None for where the rows are.
        data_format: Of the tiles; None for that of the rows.
        on_one_core: One core does all.

    Raises:
        DeviceError: Rows or shards are no whole tiles.
    """
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    if not pads:
        require_whole_tiles(source)
    result = tilized_by(
        builder,
        builder.tensor("input"),
        "output",
        place=where,
        data_format=data_format,
        padded_shape=padded_shape,
        whole=not pads,
        on_one_core=on_one_core,
    )
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_untilize(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, on_one_core: bool = False
) -> Plan:
    """Plan the tiles of the tensor "input" as rows, padding included."""
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    made = rows_of(source, source.padded_shape, where)
    result = untilized_by(builder, builder.tensor("input"), made, "output", on_one_core=on_one_core)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_untilize_with_unpadding(
    source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the first rows and columns of the tiles of the tensor "input" as rows, in a smaller shape or the same."""
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    result = unpadded_by(builder, builder.tensor("input"), shape, where, "output")
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_typecast(
    source: TensorSpec, data_format: DataFormat, spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input" in another format.

    Raises:
        DeviceError: The place is sharded in another way than the tensor, or the format has no rows.
    """
    builder = PlanBuilder(spec, {"input": source})
    result = typecast_by(builder, builder.tensor("input"), data_format, "output", place=place)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def typecast_by(
    builder: PlanBuilder, read: PlanTensor, data_format: DataFormat, name: str, *, place: MemoryConfig | None = None
) -> PlanTensor:
    """A tensor in another format, in a place or where it is; raises DeviceError as `plan_typecast` says."""
    source, spec = read.spec, builder.device_spec
    where = source.memory_config if place is None else place
    if source.memory_config.memory_layout is not where.memory_layout:
        before, after = source.memory_config.memory_layout.name, where.memory_layout.name
        raise DeviceError(
            "Typecast operation requires Input and Output memory layout to match. Input layout: "
            f"TensorMemoryLayout::{before}, Output layout: TensorMemoryLayout::{after}\n"
            "memory_config: leave it out, and move the result afterwards"
        )
    made = PlanTensor(name, TensorSpec(source.shape, data_format, source.layout, where))
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
            else None
        ),
    )


def _typecast_buffers(read: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles each on as many cores as there are tiles, column by column, or rows, row by row; or whole shards."""
    source, shards = read.spec, read.spec.memory_config.shard_spec
    as_large = source.data_format.tile_bytes == made.spec.data_format.tile_bytes
    if shards is not None and as_large and (source.layout is Layout.TILE or prod(shards.shape) % TILE**2 == 0):
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
