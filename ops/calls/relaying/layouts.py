"""Plans that make tiles of rows, rows of tiles, or another format of either.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16, DataFormat
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.meanings import MEANINGS
from ops.programs.actions.pieces import row_bytes
from ops.programs.movement.typecasting import typecast_by
from ops.programs.rearrange.views import seen_anew
from ops.programs.tiling.plan import (
    in_other_layout,
    rows_of,
    tilized_by,
    unpadded_by,
    untilized_by,
)

RANK = 4  # axes that the programs of the library take at most


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
        ArgumentError: The library would take padding of shards for rows.
        DeviceError: Rows in another format than the tiles are asked for, shards do not hold whole tiles, or the library
            can not see rows of more than four axes in four.
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
    if layout is Layout.TILE and source.layout is Layout.ROW_MAJOR:
        TensorSpec(source.padded_shape, given, Layout.TILE, source.memory_config)  # refuses ragged shards
        _check_rows(source, spec)
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
        padded_shape: Shape with padding; None for the least.
        pads: Rows may end within tiles.
        place: Where the tiles go; None for where the rows are.
        data_format: Of the tiles; None for that of the rows.
        on_one_core: One core does all.

    Raises:
        ArgumentError: The library would take padding of shards for rows.
        DeviceError: Rows or shards are no whole tiles, or the library can not see rows of more than four axes in four.
    """
    if source.layout is not Layout.ROW_MAJOR:
        raise DeviceError("Can only tilize row major data\ninput_tensor: it has tiles already")
    if padded_shape is not None:
        _check_padded_shape(source.shape, padded_shape)
    _check_rows(source, spec)
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    if pads and padded_shape is None and not where.is_sharded():  # what shards pad stays, and is rounded up
        padded_shape = TensorSpec(source.padded_shape, source.data_format, Layout.TILE).padded_shape
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


def _check_rows(source: TensorSpec, spec: DeviceSpec) -> None:
    """Raises for rows of more than four axes in shards: the library sees all axes before the last three as one.

    Raises:
        ArgumentError: It would take the padding of the shards for numbers, which is not simulated.
        DeviceError: It can not see the rows so.
    """
    if len(source.shape) <= RANK:
        return
    seen = seen_anew(source, (prod(source.shape[: 1 - RANK]), *source.shape[1 - RANK :]), spec)
    if seen.padded_shape[-1] != source.padded_shape[-1]:
        raise ArgumentError(
            f"tilize: rows of {source.shape[-1]} that shards pad to {source.padded_shape[-1]}, in {len(source.shape)} "
            "axes, are not simulated; reshape the tensor to four axes"
        )


def _check_padded_shape(shape: tuple[int, ...], padded: tuple[int, ...]) -> None:
    """Raises DeviceError if a shape in tiles does not hold another; ArgumentError if it has more axes."""
    rank, way_out = len(shape), "output_tensor_shape: round the last two sides up to whole tiles"
    if len(padded) < rank:
        raise DeviceError(f"ShapeBase[] index out of range. {len(padded)} not in [-4, {len(padded)})\n{way_out}")
    sides = (1, *shape) if rank == 1 < len(padded) else shape
    if len(padded) > len(sides) and rank not in (2, 3):
        raise ArgumentError(f"output_tensor_shape: {len(padded)} axes of a tensor of {rank} are not simulated")
    for axis, (side, whole) in enumerate(zip(sides, padded, strict=False)):
        if side > whole:
            raise DeviceError(
                f"Output tensor shape Shape({list(padded)}) must be greater than or equal to input shape "
                f"Shape({list(shape)}) in each dimension, but is smaller in dimension {axis}\n{way_out}"
            )
    if padded[-1] % TILE or prod(padded[:-1]) % TILE:
        raise DeviceError(
            f"To be tilizable output tensor shape Shape({list(padded)}) must be divisible by tile size ({TILE}, "
            f"{TILE})\n{way_out}"
        )


def plan_untilize(
    source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None, on_one_core: bool = False
) -> Plan:
    """Plan the tiles of the tensor "input" as rows of the same shape.

    Interleaved tiles lose their padding. Tiles in shards keep it: as padding of interleaved rows, and between the
    images of rows in shards.

    Raises:
        DeviceError: The rows do not fit their shards, or the library can not give them more than four axes back.
    """
    _require_tiles(source)
    builder = PlanBuilder(spec, {"input": source})
    read, where = builder.tensor("input"), source.memory_config if place is None else place
    cut = source.shape != source.padded_shape and not source.memory_config.is_sharded()
    if cut and (source.data_format != BFLOAT16 or on_one_core or where.is_sharded()):
        result = unpadded_by(builder, read, source.shape, where, "output", on_one_core=on_one_core)
    else:
        padded = source.padded_shape if source.memory_config.is_sharded() and not where.is_sharded() else None
        made = rows_of(source, source.shape, where, padded)
        result = untilized_by(builder, read, made, "output", on_one_core=on_one_core)
    return _viewed(builder, result, source.padded_shape)


def _require_tiles(source: TensorSpec) -> None:
    if source.layout is not Layout.TILE:
        raise DeviceError("Can only untilize tile major data\ninput_tensor: it has rows already")


def _viewed(builder: PlanBuilder, rows: PlanTensor, padded: tuple[int, ...]) -> Plan:
    """The finished plan of rows, which the library views in a padded shape if their program is built."""
    plan = builder.finish({"output": rows.name}, known_works=MEANINGS)
    if not any(isinstance(step, Operation) and step.refused for step in plan.steps):
        _check_axes(rows.spec, padded, builder.device_spec)
    return plan


def _check_axes(rows: TensorSpec, padded: tuple[int, ...], spec: DeviceSpec) -> None:
    """Raises DeviceError if the library, which untilizes four axes, can not view the rows in more axes.

    Args:
        padded: The shape, with padding, that the library views them in.
    """
    width, way_out = rows.padded_shape[-1], "input_tensor: reshape it to four axes first"
    if len(padded) <= RANK or padded == rows.padded_shape:
        return
    if rows.memory_config.is_sharded():
        if padded[-1] == width:
            return
        if rows.shards.shape[1] != width:
            squeezed = [prod(padded[: 1 - RANK]), *rows.padded_shape[1 - RANK :]]
            raise DeviceError(
                "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the "
                f"input last dimension. Input shape: Shape({squeezed}), New shape: Shape({list(padded)}), Shard width: "
                f"{rows.shards.shape[1]}\n{way_out}"
            )
    page_bytes, size = row_bytes(rows, padded[-1]), rows.buffer(spec).size_bytes
    if size % page_bytes:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page_bytes} must equal buffer size {size}. For "
            f"interleaved-buffers, buffer size should be divisible by the page size\n{way_out}"
        )
    if not rows.memory_config.is_sharded():
        raise DeviceError(f"MeshBuffer must be large enough to hold the tensor.\n{way_out}")
    raise ArgumentError(f"untilize: shards wider than their columns, in {len(padded)} axes, are not simulated; reshape")


def plan_untilize_with_unpadding(
    source: TensorSpec,
    shape: tuple[int, ...],
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    on_one_core: bool = False,
) -> Plan:
    """Plan the first rows and columns of the tiles of the tensor "input" as rows, in a smaller shape or the same."""
    _require_tiles(source)
    builder = PlanBuilder(spec, {"input": source})
    where = source.memory_config if place is None else place
    result = unpadded_by(builder, builder.tensor("input"), shape, where, "output", on_one_core=on_one_core)
    return _viewed(builder, result, shape)


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
