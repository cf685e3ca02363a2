"""Plans of to_layout, which other calls run as well. Rules: ttnn 0.81.1, compared with recorded plans."""

from functools import partial

from device.cores import CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    TensorMemoryLayout as Scheme,
    ragged_tiles,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, DataFormat
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.pad import padded_by
from ops.planners.to_config import plan_of_rows, sees_narrower
from ops.programs.data_movement.conversions import rows_of, seen_in_four, tilized_by, unpadded_by, untilized_by
from ops.programs.data_movement.placement import viewed


def plan_to_layout(
    source: TensorSpec,
    layout: Layout,
    spec: DeviceSpec,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
    cores: CoreRangeSet | None = None,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """Plan the tensor "input" in a layout; the tensor itself if it has that layout, whatever the other arguments.

    ``cores`` are the cores that may be used; None for all.
    """
    source_format, target_format = source.data_format, data_format or source.data_format
    untilizes = layout is Layout.ROW_MAJOR and source.layout is Layout.TILE
    if layout is not source.layout:
        _require_tiles(source.memory_config if place is None else place)
    if untilizes and target_format != source_format and (source_format, target_format) != (BFLOAT8_B, BFLOAT16):
        raise DeviceError(
            "dtype cannot be different from tensor dtype when converting to ROW_MAJOR_LAYOUT on device (allowed "
            "exception: BFLOAT8_B -> BFLOAT16, which untilize handles natively)!\n"
            f"dtype: leave {target_format} out, and typecast before"
        )
    if layout is Layout.TILE is not source.layout and len(source.shape) == 1 and source.memory_config.is_sharded():
        raise DeviceError(
            "ttnn::to_layout: Cannot convert a sharded device tensor with rank 1 to TILE_LAYOUT. Tilize requires "
            "shard dimensions divisible by tile size, but rank promotion to 2D produces a shard height of 1. Move "
            "to interleaved first, then tilize.\ntensor: it is a vector in shards"
        )
    write = partial(in_other_layout, layout=layout, name="output", place=place, data_format=data_format, cores=cores)
    if untilizes and source.volume:
        return plan_of_rows(source, spec, write, free_l1)
    return plan_of(source, spec, write, free_l1=free_l1)


def in_other_layout(
    builder: PlanBuilder,
    source: PlanTensor,
    layout: Layout,
    name: str,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """A tensor in another layout; the tensor itself if it has that layout.

    HEIGHT shards of rows that do not fill their tiles are padded by a separate program before they are tilized.
    `place` and `data_format` default to the tensor's own. Raises DeviceError for shards of incomplete tiles.
    """
    spec = source.spec
    if spec.layout is layout:
        return source
    where = spec.memory_config if place is None else place
    _require_tiles(where)
    if not spec.volume:
        return builder.allocate(name, _nothing_in(spec, layout, where, data_format))
    if layout is Layout.ROW_MAJOR:
        if spec.shape != spec.padded_shape:
            return unpadded_by(builder, source, spec.shape, where, name, cores=cores)
        return untilized_by(builder, source, rows_of(spec, spec.shape, where), name, cores=cores)
    _require_tiles(spec.memory_config)
    narrower = sees_narrower(spec, builder.device_spec)
    if narrower and spec.shape[-1] % TILE:
        rows_of_four, current = viewed(spec, seen_in_four(spec.shape), builder.device_spec), spec.memory_config
        if {current.buffer_type, where.buffer_type} == {BufferType.L1} and where.memory_layout is current.memory_layout:
            rows_of_four.changed(layout=Layout.TILE)  # refuses shards of no tiles
        raise DeviceError(
            f"Input tensor width ({spec.shape[-1]}) must be divisible by tile width ({TILE})\n"
            f"input_tensor: shards pad its rows to {spec.padded_shape[-1]}; reshape it to four axes"
        )
    padded = TensorSpec(spec.shape, spec.data_format, Layout.TILE).padded_shape
    whole = padded in (spec.padded_shape, spec.shape)  # the last of WIDTH shards may be ragged
    by_height = spec.memory_config.memory_layout is Scheme.HEIGHT_SHARDED
    if whole or not by_height or len(spec.shape) == 1:
        tiles = tilized_by(builder, source, name, place=where, data_format=data_format, whole=whole, cores=cores)
        if len(spec.shape) == 1:
            viewed(tiles.spec, spec.shape, builder.device_spec)  # refuses padding in shards
        return tiles
    behind = tuple((0, side - own) for side, own in zip(padded, spec.shape, strict=True))
    rows = padded_by(builder, source, behind, 0.0, f"{name}.padded")
    seen = PlanTensor(rows.name, rows.spec.changed(shape=spec.shape, padded_shape=padded))
    tiles = tilized_by(builder, seen, name, place=where, data_format=data_format, whole=True, cores=cores)
    builder.free(rows)
    return tiles


def _require_tiles(place: MemoryConfig) -> None:
    """Raises DeviceError for a memory with shards of incomplete tiles (also for rows), or with unknown shards."""
    require_shard_spec(place, in_rows=False)
    ragged = None if place.shard_spec is None else ragged_tiles(place.shard_spec)
    if ragged is not None:
        raise DeviceError(f"{ragged}\nmemory_config: give shards of whole tiles, and move the result afterwards")


def _nothing_in(spec: TensorSpec, layout: Layout, place: MemoryConfig, data_format: DataFormat | None) -> TensorSpec:
    """An empty tensor in another layout, for which no program runs; tiles count their padding as the library's do."""
    if layout is Layout.ROW_MAJOR:
        return rows_of(spec, spec.shape, place)
    result = TensorSpec(spec.shape, data_format or spec.data_format, layout, place)
    return result.changed(shape=result.padded_shape[-len(spec.shape) :], padded_shape=None)
