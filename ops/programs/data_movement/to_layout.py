"""Which program makes tiles of rows, or rows of tiles, what it makes, and what it refuses.

Rules: ttnn 0.81.1 (to_layout, tilize, untilize, untilize_with_unpadding), compared with recorded plans.
"""

from dataclasses import replace
from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT8, DataFormat, div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import row_bytes
from ops.programs.data_movement.copy import Conversion, clone_buffers, copy_buffers
from ops.programs.data_movement.movement import fits_generated_code
from ops.programs.data_movement.reshard import Uneven, uneven
from ops.programs.data_movement.tilize import (
    TilizeOp,
    images_of_shard,
    resharded_bytes,
    shard_buffers,
    tiling_buffers,
    untilize_codegen_buffers,
)

HEIGHT, WIDTH = TensorMemoryLayout.HEIGHT_SHARDED, TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def unpadded_place(source: TensorSpec, shape: tuple[int, ...], place: MemoryConfig) -> MemoryConfig:
    """The place of rows of a shape: cores share them in whole tiles, so far as their scheme cuts them.

    Shards stay on the cores of the tiles. HEIGHT shards of several whole images keep as many; HEIGHT shards of tiles
    that are in another scheme are as wide as asked for. WIDTH and BLOCK shards of one width go where they were asked
    for.

    Args:
        place: Where they were asked for.

    Raises:
        DeviceError: Rows of a vector would have shards of two axes.
    """
    if place.shard_spec is None:
        return place
    if len(shape) < 2 and place.memory_layout is not TensorMemoryLayout.WIDTH_SHARDED:
        raise DeviceError(
            "Shard shape must be 1D for 1D tensor!\n"
            "input: the rows of a vector in shards of tiles have shards of two axes; reshape the tensor to rank 2"
        )
    held = source.memory_config.shard_spec
    schemes = {source.memory_config.memory_layout, place.memory_layout}
    if held is not None and schemes == {BLOCK, WIDTH} and held.shape[1] == place.shard_spec.shape[1]:
        return place
    shards = held or place.shard_spec
    rows, columns, grid = prod(shape[:-1]), shape[-1], shards.grid
    match place.memory_layout:
        case TensorMemoryLayout.HEIGHT_SHARDED:
            images = images_of_shard(source)
            wide = columns if source.memory_config.memory_layout is HEIGHT else place.shard_spec.shape[1]
            shard = (images * shape[-2] if images else _part(rows, grid.num_cores()), wide)
        case TensorMemoryLayout.WIDTH_SHARDED:
            shard = (rows, _part(columns, grid.num_cores()))
        case _:
            box, by_rows = grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
            high, wide = (box.rows, box.cols) if by_rows else (box.cols, box.rows)
            shard = (_part(rows, high), _part(columns, wide))
    return MemoryConfig(place.memory_layout, place.buffer_type, ShardSpec(grid, shard, shards.orientation))


def _part(length: int, parts: int) -> int:
    return round_up(div_up(length, parts), TILE)


def unpadding_refusal(source: TensorSpec, made: TensorSpec, place: MemoryConfig) -> str | None:
    """Why the library does not cut the padding off, if it does not; said once the rows are allocated.

    Args:
        place: Where they were asked for.
    """
    before, after = source.memory_config.memory_layout, made.memory_config.memory_layout
    batched = prod(source.padded_shape[:-2]) != 1
    match before:
        case TensorMemoryLayout.HEIGHT_SHARDED if made.memory_config.is_sharded() and after is not HEIGHT:
            first = f"Output memory config layout must be HEIGHT_SHARDED when output is sharded but got {_named(after)}"
        case TensorMemoryLayout.BLOCK_SHARDED:
            first = _of_blocks(source, place, after, batched=batched)
        case TensorMemoryLayout.WIDTH_SHARDED:
            first = _of_columns(source, made, place, after, batched=batched)
        case _:
            first = ""
    return f"{first}\nmemory_config: move the tensor to interleaved memory first" if first else None


def _of_blocks(source: TensorSpec, place: MemoryConfig, after: TensorMemoryLayout, *, batched: bool) -> str:
    if after is HEIGHT:
        return (
            f"Output memory config layout ({_named(after)}) must be BLOCK_SHARDED (or WIDTH_SHARDED with a matching "
            "column shard width) when input is BLOCK_SHARDED and output is sharded"
        )
    if after is WIDTH:
        return _mismatch(source, place, batched=batched)
    if batched:
        return "Can only write unbatched output " + (
            "for BLOCK_SHARDED -> BLOCK_SHARDED" if after is BLOCK else "interleaved"
        )
    return ""


def _of_columns(
    source: TensorSpec, made: TensorSpec, place: MemoryConfig, after: TensorMemoryLayout, *, batched: bool
) -> str:
    shards, width = source.shards, source.padded_shape[-1]
    if after is HEIGHT:
        return (
            f"Output memory config layout ({_named(after)}) must match input tensor memory layout ({_named(WIDTH)}) "
            "(or be BLOCK_SHARDED with a matching column shard width)"
        )
    if after is BLOCK:
        return _mismatch(source, place, batched=batched)
    if after is WIDTH:
        kept = made.padded_shape[-1]
        if width != kept and div_up(kept, shards.shape[1]) != shards.num_cores():
            return (
                f"Input tensor width ({width}) must equal output width ({kept}) or output width / shard width must "
                "equal num cores"
            )
        return ""
    if batched:
        return "Can only write unbatched output interleaved"
    cut = width - made.padded_shape[-1]
    if cut >= shards.shape[1]:
        return f"Input tensor width difference ({cut}) must be less than shard width ({shards.shape[1]})"
    return ""


def _mismatch(source: TensorSpec, place: MemoryConfig, *, batched: bool) -> str:
    """Between WIDTH and BLOCK shards."""
    held, wanted = source.memory_config.shard_spec, place.shard_spec
    names = (source.memory_config.memory_layout.name, place.memory_layout.name)
    if held is None or wanted is None or held.shape[1] == wanted.shape[1]:
        if batched:
            return f"Can only write unbatched output for {names[0]} -> {names[1]}"
        return "shards of one width that are dealt in another scheme are not simulated"
    return (
        f"{names[0]} -> {names[1]} requires matching column shard width; "
        f"got input={held.shape[1]} output={wanted.shape[1]}"
    )


def _named(scheme: TensorMemoryLayout) -> str:
    return f"TensorMemoryLayout::{scheme.name}"


GENERATED_FORMATS = (BFLOAT16, BFLOAT8_B)  # of interleaved tiles that a program of their own untilizes


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
        source: The tensor, which stays allocated.
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
        whole = spec.padded_shape == tiles.padded_shape
        return tilized_by(builder, source, name, place=where, data_format=data_format, whole=whole)
    if spec.shape != spec.padded_shape:
        return unpadded_by(builder, source, spec.shape, where, name)
    return untilized_by(builder, source, rows_of(spec, spec.shape, where), name)


def rows_of(
    spec: TensorSpec, shape: tuple[int, ...], place: MemoryConfig, padded: tuple[int, ...] | None = None
) -> TensorSpec:
    """What tiles become as rows: bfloat8_b becomes bfloat16; raises DeviceError for other block floats."""
    data_format = BFLOAT16 if spec.data_format == BFLOAT8_B else spec.data_format
    return TensorSpec(shape, data_format, Layout.ROW_MAJOR, place, padded)


def tilized_by(
    builder: PlanBuilder,
    source: PlanTensor,
    name: str,
    *,
    place: MemoryConfig,
    data_format: DataFormat | None = None,
    padded_shape: tuple[int, ...] | None = None,
    whole: bool,
    on_one_core: bool = False,
) -> PlanTensor:
    """Tiles of rows that are whole tiles, or of rows that are padded on the way.

    Args:
        source: The rows, which stay allocated.
        place: Where they go; whole tiles that stay in their scheme stay in their shards, whatever is asked for.
        data_format: Their format; None for that of the rows.
        padded_shape: Shape with padding, if they are not sharded; None for the least.
        whole: The rows are whole tiles.
        on_one_core: One core does all.
    """
    spec, made_format = source.spec, data_format or source.spec.data_format
    shards = spec.memory_config.shard_spec
    padded = padded_shape or TensorSpec(spec.shape, made_format, Layout.TILE).padded_shape
    stays = spec.memory_config.memory_layout is place.memory_layout
    if not whole:  # rows that are padded leave their shards, but for WIDTH shards of as many columns and axes
        by_width = place.memory_layout is TensorMemoryLayout.WIDTH_SHARDED
        as_many = padded_shape is None or len(padded_shape) == len(spec.shape)
        stays = stays and by_width and as_many and spec.padded_shape[-1] == padded[-1]
    if shards is not None and stays:
        rows = prod(padded[:-1]) if len(spec.shape) > 1 else 1  # those of a vector are not padded
        shape = shards.shape if whole else (rows, shards.shape[1])
        kept = replace(place, shard_spec=ShardSpec(shards.grid, shape, shards.orientation))
        made = TensorSpec(spec.shape, made_format, Layout.TILE, kept)
    else:
        made = TensorSpec(spec.shape, made_format, Layout.TILE, place, None if place.is_sharded() else padded_shape)
    conversion = Conversion.TILIZE if whole else Conversion.TILIZE_WITH_VAL_PADDING
    refused = _tilize_refusal(spec, whole=whole)
    return _converted(builder, conversion, source, made, name, on_one_core=on_one_core, refused=refused)


def unpadded_by(
    builder: PlanBuilder,
    source: PlanTensor,
    shape: tuple[int, ...],
    place: MemoryConfig,
    name: str,
    *,
    on_one_core: bool = False,
) -> PlanTensor:
    """Rows of tiles without the padding, in a shape that is no larger; shards are cut to it.

    One core does all only between interleaved places.
    """
    made = rows_of(source.spec, shape, unpadded_place(source.spec, shape, place))
    refused = unpadding_refusal(source.spec, made, place)
    alone = on_one_core and not source.spec.memory_config.is_sharded() and not place.is_sharded()
    conversion = Conversion.UNTILIZE_WITH_UNPADDING
    return _converted(builder, conversion, source, made, name, on_one_core=alone, refused=refused)


def untilized_by(
    builder: PlanBuilder, source: PlanTensor, made: TensorSpec, name: str, *, on_one_core: bool = False
) -> PlanTensor:
    """Rows of tiles that keep their padding, but for generated code, which cuts it off."""
    places = (source.spec.memory_config, made.memory_config)
    generated = not any(place.is_sharded() for place in places) and source.spec.data_format in GENERATED_FORMATS
    if not generated or on_one_core or not fits_generated_code(source.spec):
        refused = _untilize_refusal(source.spec, made, builder.device_spec, on_one_core=on_one_core)
        return _converted(builder, Conversion.UNTILIZE, source, made, name, on_one_core=on_one_core, refused=refused)
    conversion = Conversion.UNTILIZE_CODEGEN
    return builder.run(
        f"{conversion.value}DeviceOperation",
        _work(conversion, source, made),
        [source],
        output=PlanTensor(name, made),
        circular_buffers=untilize_codegen_buffers(source.spec, made, builder.device_spec),
    )


def _untilize_refusal(source: TensorSpec, made: TensorSpec, spec: DeviceSpec, *, on_one_core: bool) -> str | None:
    """Why the library does not untilize a tensor in shards, or into shards, if it does not."""
    shards, wanted = source.memory_config.shard_spec, made.memory_config.shard_spec
    if on_one_core and shards is not None:
        for side, whole, part in zip(("height", "width"), source.matrix, shards.shape, strict=True):
            if whole % part:
                return (
                    f"Uneven input shard {side} {part} for tensor {side} {whole} not supported for single core "
                    "implementation\nuse_multicore: leave it out"
                )
    if wanted is not None and row_bytes(made, wanted.shape[1]) % spec.l1.alignment_bytes:
        return (
            f"Output shard row size {row_bytes(made, wanted.shape[1])} bytes must be aligned to "
            f"{spec.l1.alignment_bytes} bytes buffer alignment requirement\nmemory_config: give wider shards"
        )
    return None


def _tilize_refusal(source: TensorSpec, *, whole: bool) -> str | None:
    """Why the library does not tilize rows, whole tiles or padded, if it does not; said once tiles are allocated."""
    if not whole:
        return (
            "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors\n"
            f"input_tensor: typecast {source.data_format} first"
            if source.data_format == UINT8
            else None
        )
    height, width = (1, *source.padded_shape)[-2:]
    for name, side in (("width", width), ("height", height)):
        if side % TILE:
            return (
                f"Input tensor {name} ({side}) must be divisible by tile {name} ({TILE})\n"
                "tilize_with_zero_padding takes rows of any number and length"
            )
    return None


def _converted(
    builder: PlanBuilder,
    conversion: Conversion,
    source: PlanTensor,
    made: TensorSpec,
    name: str,
    *,
    on_one_core: bool = False,
    refused: str | None = None,
) -> PlanTensor:
    result = PlanTensor(name, made)
    shards = source.spec.memory_config.shard_spec
    if shards is not None and on_one_core and conversion is Conversion.TILIZE:
        refused = refused or "Multicore must be enabled for sharded input\nuse_multicore: leave it out"
    whole_rows = source.spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if shards is not None and not whole_rows and conversion is Conversion.TILIZE_WITH_VAL_PADDING:
        page_bytes, alignment_bytes = row_bytes(source.spec, shards.shape[1]), builder.device_spec.l1.alignment_bytes
        if page_bytes % alignment_bytes:
            refused = (
                f"Input row-major shard width {shards.shape[1]} gives page size {page_bytes} bytes, which must be "
                f"aligned to {alignment_bytes} bytes L1 SRAM buffer alignment requirement\n"
                "give wider shards, or interleaved rows"
            )
    return builder.run(
        f"{conversion.value}DeviceOperation",
        replace(_work(conversion, source, made), on_one_core=on_one_core),
        [source],
        output=result,
        circular_buffers=(
            () if refused else tiling_buffers(conversion, source, result, builder.device_spec, on_one_core=on_one_core)
        ),
        dataflow=True,
        refused=refused,
    )


def dealt(
    builder: PlanBuilder,
    conversion: Conversion,
    source: PlanTensor,
    made: TensorSpec,
    name: str,
    *,
    refused: str | None = None,
) -> PlanTensor:
    """A program that only deals pages to other places: sharded, interleaved, or in other shards; or a plain copy.

    Args:
        conversion: By which program.
        source: The tensor, which stays allocated.
        refused: Why the library does not build the program, if it does not.
    """
    result, spec = PlanTensor(name, made), builder.device_spec
    copies = conversion is Conversion.COPY
    if copies and source.spec.layout is Layout.ROW_MAJOR and source.spec.data_format != made.data_format:
        refused = (
            "Only tile layout supports dtype conversion\n"
            f"dtype: leave {made.data_format} out, or give tiles; the tensor has rows"
        )
    if conversion is Conversion.RESHARD:
        refused = refused or _reshard_refusal(source.spec, made, spec)
    return builder.run(
        f"{conversion.value}DeviceOperation",
        _work(conversion, source, made),
        [source],
        output=result,
        circular_buffers=(
            copy_buffers(source.spec, made, spec) if copies else shard_buffers(conversion, source, result, spec)
        ),
        dataflow=True,
        refused=refused,
    )


def _reshard_refusal(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the library does not build the program that deals shards anew, if it does not."""
    if made.layout is Layout.TILE:
        return None
    if resharded_bytes(made, row_bytes(made, made.shards.shape[1]), spec) == 0:
        return (
            "DataflowBufferSpec 'shard' has num_entries = 0. num_entries must be set to a non-zero value.\n"
            f"input_tensor: its one row of {row_bytes(made)} bytes is no multiple of {spec.l1.alignment_bytes}; give a "
            "longer one, or go by way of interleaved memory"
        )
    if uneven(source, made) is Uneven.LOST:
        return (
            "unordered_map::at\n"
            f"memory_config: rows of {made.shape[-1]} that do not fill their shards are lost in a grid with more "
            "columns of cores than they take; give one of just these, or go by way of interleaved memory"
        )
    return None


def cloned(builder: PlanBuilder, source: PlanTensor, place: MemoryConfig, name: str) -> PlanTensor:
    """A copy of an interleaved tensor in another interleaved place, page by page."""
    given = source.spec
    made = TensorSpec(given.shape, given.data_format, given.layout, place)
    return builder.run(
        "CloneOperation",
        _work(Conversion.COPY, source, made),
        [source],
        output=PlanTensor(name, made),
        circular_buffers=clone_buffers(given, made, builder.device_spec),
        dataflow=True,
    )


def keeps_padding(source: TensorSpec, place: MemoryConfig) -> bool:
    """Whether Untilize leaves rows of padding between the images of shards, where they become rows of the result."""
    sharded = source.memory_config.is_sharded() and place.is_sharded()
    return sharded and prod(source.padded_shape[:-2]) > 1 and source.shape[-2] != source.padded_shape[-2]


def _work(conversion: Conversion, source: PlanTensor, made: TensorSpec) -> TilizeOp:
    keeps = conversion is Conversion.UNTILIZE and keeps_padding(source.spec, made.memory_config)
    return TilizeOp(
        conversion=conversion,
        source_format=source.spec.data_format,
        data_format=made.data_format,
        kept=None if made.shape == source.spec.shape else made.shape,
        padded=source.spec.padded_shape if keeps else None,
    )
