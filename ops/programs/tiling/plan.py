"""Which program makes tiles of rows, or rows of tiles, and what it makes.

Rules: ttnn 0.81.1 (to_layout, tilize, untilize), compared with recorded plans.
"""

from dataclasses import replace

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, DataFormat
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.movement.circular_buffers import untilize_codegen_buffers
from ops.programs.movement.work import Conversion
from ops.programs.tiling.buffers import shard_buffers, tiling_buffers
from ops.programs.tiling.work import LayOut


def in_other_layout(
    builder: PlanBuilder,
    source: PlanTensor,
    layout: Layout,
    name: str,
    *,
    place: MemoryConfig | None = None,
    data_format: DataFormat | None = None,
) -> PlanTensor:
    """A tensor in another layout by one program; the tensor itself if it has that layout.

    Args:
        builder: The plan.
        source: The tensor, which stays allocated.
        layout: Which layout.
        name: Name of the copy.
        place: Where the copy goes; None for where the tensor is.
        data_format: Format of tiles; None for the tensor's own.

    Raises:
        DeviceError: Shards do not hold whole tiles.
    """
    spec = source.spec
    if spec.layout is layout:
        return source
    where = spec.memory_config if place is None else place
    tiles = TensorSpec(spec.shape, spec.data_format, Layout.TILE, where)
    if layout is Layout.TILE:
        TensorSpec(spec.padded_shape, spec.data_format, Layout.TILE, spec.memory_config)  # refuses ragged shards
        made = TensorSpec(spec.shape, data_format or spec.data_format, Layout.TILE, where)
        return tilized_by(builder, source, made, name, whole=spec.padded_shape == tiles.padded_shape)
    held = where.shard_spec
    if held is not None and where.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        where = replace(where, shard_spec=ShardSpec(held.grid, (held.shape[0], spec.shape[-1]), held.orientation))
    made = rows_of(spec, spec.shape, where)
    return untilized_by(builder, source, made, name, whole=spec.shape == spec.padded_shape)


def rows_of(spec: TensorSpec, shape: tuple[int, ...], place: MemoryConfig) -> TensorSpec:
    """What tiles become as rows: block floats have none, and become bfloat16."""
    return TensorSpec(shape, BFLOAT16 if spec.data_format.is_block else spec.data_format, Layout.ROW_MAJOR, place)


def tilized_by(
    builder: PlanBuilder, source: PlanTensor, made: TensorSpec, name: str, *, whole: bool, on_one_core: bool = False
) -> PlanTensor:
    """Tiles of rows that are whole tiles, or of rows that are padded on the way."""
    conversion = Conversion.TILIZE if whole else Conversion.TILIZE_WITH_VAL_PADDING
    return _converted(builder, conversion, source, made, name, on_one_core=on_one_core)


def untilized_by(
    builder: PlanBuilder, source: PlanTensor, made: TensorSpec, name: str, *, whole: bool, on_one_core: bool = False
) -> PlanTensor:
    """Rows of tiles: all of them, or those that are no padding."""
    if not whole:
        return _converted(builder, Conversion.UNTILIZE_WITH_UNPADDING, source, made, name)
    places = (source.spec.memory_config, made.memory_config)
    generated = not any(place.is_sharded() for place in places) and source.spec.data_format != FLOAT32
    if not generated or on_one_core:
        return _converted(builder, Conversion.UNTILIZE, source, made, name, on_one_core=on_one_core)
    conversion = Conversion.UNTILIZE_CODEGEN
    return builder.run(
        f"{conversion.value}DeviceOperation",
        _work(conversion, source, made),
        [source],
        output=PlanTensor(name, made),
        circular_buffers=untilize_codegen_buffers(source.spec, made, builder.device_spec),
    )


def require_whole_tiles(spec: TensorSpec) -> None:
    """Raises DeviceError if rows do not fill tiles."""
    width, height = spec.padded_shape[-1], spec.matrix[0]
    if width % TILE:
        raise DeviceError(
            f"Input tensor width ({width}) must be divisible by tile width ({TILE})\n"
            "tilize_with_zero_padding takes rows of any length"
        )
    if height % TILE:
        raise DeviceError(
            f"Input tensor height ({height}) must be divisible by tile height ({TILE})\n"
            "tilize_with_zero_padding takes any number of rows"
        )


def _converted(
    builder: PlanBuilder,
    conversion: Conversion,
    source: PlanTensor,
    made: TensorSpec,
    name: str,
    *,
    on_one_core: bool = False,
) -> PlanTensor:
    result = PlanTensor(name, made)
    return builder.run(
        f"{conversion.value}DeviceOperation",
        replace(_work(conversion, source, made), on_one_core=on_one_core),
        [source],
        output=result,
        circular_buffers=tiling_buffers(conversion, source, result, builder.device_spec, on_one_core=on_one_core),
        dataflow=True,
    )


def dealt(builder: PlanBuilder, conversion: Conversion, source: PlanTensor, made: TensorSpec, name: str) -> PlanTensor:
    """A program that only deals pages to other places: sharded, interleaved, or in other shards; or a plain copy."""
    result = PlanTensor(name, made)
    return builder.run(
        f"{conversion.value}DeviceOperation",
        _work(conversion, source, made),
        [source],
        output=result,
        circular_buffers=shard_buffers(conversion, source, result, builder.device_spec),
        dataflow=True,
    )


def _work(conversion: Conversion, source: PlanTensor, made: TensorSpec) -> LayOut:
    return LayOut(
        conversion=conversion,
        source_format=source.spec.data_format,
        data_format=made.data_format,
        kept=None if made.shape == source.spec.shape else made.shape,
    )
