"""Plans that make tiles of rows, rows of tiles, or another format of either.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import BFLOAT8_B, BFLOAT16, DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder
from ops.meanings import MEANINGS
from ops.programs.movement.typecasting import typecast_by
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
