"""Plans that make tiles of rows, rows of tiles, or another format of either.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from math import prod

from device.cores import first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import DataFormat
from device.plan import CircularBuffer, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.eltwise.circular_buffers import BUFFERING
from ops.programs.movement.work import Typecast
from ops.programs.tiling.plan import in_other_layout, require_whole_tiles, rows_of, tilized_by, untilized_by


def plan_to_layout(
    source: TensorSpec,
    layout: Layout,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
) -> Plan:
    """Plan the tensor "input" in a layout; the tensor itself, whatever else is asked for, if it has that layout."""
    builder = PlanBuilder(spec, {"input": source})
    given = builder.tensor("input")
    result = in_other_layout(builder, given, layout, "output", place=place, data_format=data_format)
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
    made = TensorSpec(source.shape, data_format or source.data_format, Layout.TILE, where, padded_shape)
    result = tilized_by(builder, builder.tensor("input"), made, "output", whole=not pads, on_one_core=on_one_core)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_untilize(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, on_one_core: bool = False
) -> Plan:
    """Plan the tiles of the tensor "input" as rows, padding included."""
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    made = rows_of(source, source.padded_shape, where)
    result = untilized_by(builder, builder.tensor("input"), made, "output", whole=True, on_one_core=on_one_core)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_untilize_with_unpadding(
    source: TensorSpec, shape: tuple[int, ...], spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the first rows and columns of the tiles of the tensor "input" as rows, in a smaller shape or the same."""
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    made = rows_of(source, shape, where)
    result = untilized_by(builder, builder.tensor("input"), made, "output", whole=False)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def plan_typecast(
    source: TensorSpec, data_format: DataFormat, spec: DeviceSpec, *, place: MemoryConfig | None = None
) -> Plan:
    """Plan the tensor "input" in another format.

    Raises:
        DeviceError: The place is sharded in another way than the tensor, or the format has no rows.
    """
    builder = PlanBuilder(spec, {"input": source})
    result = cast(builder, builder.tensor("input"), data_format, "output", place=place)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def cast(
    builder: PlanBuilder, source: PlanTensor, data_format: DataFormat, name: str, *, place: MemoryConfig | None = None
) -> PlanTensor:
    """A tensor in another format, by a program of its own; raises as `plan_typecast`."""
    given = source.spec
    where = given.memory_config if place is None else place
    if given.memory_config.memory_layout is not where.memory_layout:
        before, after = given.memory_config.memory_layout.name, where.memory_layout.name
        raise DeviceError(
            "Typecast operation requires Input and Output memory layout to match. Input layout: "
            f"TensorMemoryLayout::{before}, Output layout: TensorMemoryLayout::{after}\n"
            "memory_config: leave it out, and move the result afterwards"
        )
    made = PlanTensor(name, TensorSpec(given.shape, data_format, given.layout, where))
    return builder.run(
        "TypecastDeviceOperation",
        Typecast(given.data_format, data_format),
        [source],
        output=made,
        circular_buffers=_typecast_buffers(given, made.spec, builder.device_spec),
        dataflow=True,
    )


def _typecast_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles each on as many cores as there are tiles, column by column, or rows, row by row; or whole shards."""
    shards = source.memory_config.shard_spec
    if shards is not None and source.data_format.tile_bytes == made.data_format.tile_bytes:
        page_bytes = source.data_format.tile_bytes
        return tuple(
            CircularBuffer(
                name=name,
                size_bytes=prod(shards.shape) * page_bytes // TILE**2,
                page_bytes=page_bytes,
                data_format=tensor.data_format,
                cores=shards.grid,
                view_of=name,
            )
            for name, tensor in (("input", source), ("output", made))
        )
    tiled = source.layout is Layout.TILE
    pages = source.matrix[0] * source.matrix[1] // TILE**2 if tiled else prod(source.padded_shape[:-1])
    used = min(pages, spec.grid.cores)
    cores = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=not tiled).merged()
    return tuple(
        CircularBuffer(
            name=name,
            size_bytes=BUFFERING * tensor.data_format.tile_bytes,
            page_bytes=tensor.data_format.tile_bytes,
            data_format=tensor.data_format,
            cores=cores,
        )
        for name, tensor in (("argument", source), ("result", made))
    )
