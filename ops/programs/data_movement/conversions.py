"""Plans of single programs that change the layout, memory or format of a tensor, and their refusals.

Rules: ttnn 0.81.1 (to_layout, tilize, untilize, untilize_with_unpadding, to_memory_config, typecast), compared with
recorded plans. All functions leave their source allocated.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from operator import gt
from typing import Any, Final

from device.cores import CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec, require_shard_spec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout as Scheme,
    ragged_tiles,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT8, DataFormat, div_up, round_up
from device.plan import Operation
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import (
    BUFFERING,
    in_dram,
    not_in_l1,
    page_alignment_bytes,
    page_cores,
    require_cores,
    resharded_bytes,
    row_bytes,
    shard_counts,
    tile_buffer,
)
from ops.programs.data_movement.copy import (
    Conversion,
    CopyTensor,
    Uneven,
    beyond_cores,
    fits_generated_code,
    generated_depths,
    uneven,
)
from ops.programs.data_movement.copy_buffers import (
    buffers_of_copy,
    clone_buffers,
    images_of_shard,
    stays,
)
from ops.programs.data_movement.movement import format_of_rows
from ops.programs.data_movement.placement import blocks_in_dram, refuse_other_width, viewed

# What the library calls the work of the cores that have whole rows of tiles, by whether one has all
_UNITS: Final = {
    (Conversion.TILIZE, False): "tilize_full",
    (Conversion.TILIZE, True): "tilize",
    (Conversion.TILIZE_WITH_VAL_PADDING, False): "main",
    (Conversion.TILIZE_WITH_VAL_PADDING, True): "main",
    (Conversion.UNTILIZE, False): "main",
    (Conversion.UNTILIZE_WITH_UNPADDING, False): "full",
    (Conversion.UNTILIZE_WITH_UNPADDING, True): "main",
}
RANK, UNSIGNED = 4, 1 << 32  # axes that the programs take at most; the library counts in 32 bits
GENERATED_FORMATS = (BFLOAT16, BFLOAT8_B)  # of interleaved tiles that a program of their own untilizes


def copied(
    builder: PlanBuilder,
    conversion: Conversion,
    source: PlanTensor,
    target: TensorSpec,
    name: str,
    *,
    on_one_core: bool = False,
    by_tile: bool = False,
    refused: str | None = None,
    into: PlanTensor | None = None,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """One program that copies a tensor to another memory, layout or format, or ``into`` a tensor of that spec.

    ``refused`` is another reason to refuse it; ``cores`` are the cores that may be used, None for all.
    """
    result, spec = into or PlanTensor(name, target), builder.device_spec
    op = _copy_op(conversion, source.spec, target, on_one_core=on_one_core, by_tile=by_tile, cores=cores)
    here = replace(op, free_l1=builder.free_l1)
    if here.cut(source.spec, target, spec) != op.cut(source.spec, target, spec):
        op = here
    refused = refused or next(_refusals(op, source.spec, target, spec), None)
    options: dict[str, Any] = {"on_one_core": op.alone, "by_tile": by_tile, "free_l1": op.free_l1, "within": cores}
    buffers = () if refused else buffers_of_copy(conversion, source, result, spec, **options)
    if buffers:
        unit = "" if op.blocks(source.spec, target, spec) else _UNITS.get((conversion, op.alone), "")
        require_cores(cores, spec, op.name, unit=unit, used=buffers[0].cores)
    plain = conversion is Conversion.COPY and stays(source.spec, target)
    by_dataflow = conversion is not Conversion.UNTILIZE_CODEGEN and not plain
    read, written = ([source], result) if into is None else ([source, into], None)
    return builder.run(op.name, op, read, written, buffers, dataflow=by_dataflow, refused=refused)


def filled(builder: PlanBuilder, source: PlanTensor, target: PlanTensor) -> PlanTensor:
    """A tensor into which Copy writes the values of another tensor of the same shape and layout."""
    op = _copy_op(Conversion.COPY, source.spec, target.spec)
    buffers = buffers_of_copy(Conversion.COPY, source, target, builder.device_spec)
    by_dataflow = not stays(source.spec, target.spec)
    return builder.run(op.name, op, [source, target], None, buffers, dataflow=by_dataflow)


def cloned(
    builder: PlanBuilder, source: PlanTensor, place: MemoryConfig, name: str, data_format: DataFormat | None = None
) -> PlanTensor:
    """A copy of a tensor, page by page, in another memory, with the same shards, or in another format of tiles."""
    current, refused = source.spec.memory_config, ""
    in_rows = source.spec.layout is Layout.ROW_MAJOR
    if data_format is not None and data_format.is_block and in_rows:
        raise DeviceError("Only TILE layout is supported for BFLOAT8_B dtype!\ninput_tensor: use ttnn.to_layout")
    require_shard_spec(place, in_rows=in_rows)
    padded = source.spec.padded_shape  # which the copy keeps, as prepared weights have more than their tiles need
    target = source.spec.changed(memory_config=place, data_format=data_format, padded_shape=padded)  # of fit shards
    output = PlanTensor(name, target)
    target.buffer(builder.device_spec)  # refuses shards on cores that the device lacks
    if data_format not in (None, source.spec.data_format) and in_rows:
        raise DeviceError("Clone: data type conversion is only supported with tile layout\ndtype: leave it out")
    if not source.spec.volume and data_format not in (None, source.spec.data_format):
        raise DeviceError("DFB 'dst' has no producer\ndtype: leave it out, or use ttnn.to_layout")
    if current.is_sharded() is not place.is_sharded():
        refused = (
            "Clone: mixed sharded/interleaved layout not currently supported. Both input and output must have the same "
            "layout."
        )
    elif current.memory_layout is not place.memory_layout:
        refused = "Clone: input and output must have the same memory layout when both are sharded"
    elif current.shard_spec != place.shard_spec:
        refused = "Clone: input and output shard specs must be identical (same grid, shape, and orientation)"
    if refused:
        raise DeviceError(f"{refused}\nmemory_config: use to_memory_config")
    buffers = clone_buffers(source.spec, output.spec, builder.device_spec)
    op = _copy_op(Conversion.COPY, source.spec, output.spec)
    return builder.run("CloneOperation", op, [source], output, buffers, dataflow=True)


def _copy_op(
    conversion: Conversion,
    source: TensorSpec,
    target: TensorSpec,
    *,
    on_one_core: bool = False,
    by_tile: bool = False,
    cores: CoreRangeSet | None = None,
) -> CopyTensor:
    keeps = conversion is Conversion.UNTILIZE and keeps_padding(source, target.memory_config)
    return CopyTensor(
        conversion,
        (source.data_format, target.data_format),
        kept=None if target.shape == source.shape else target.shape,
        padded=source.padded_shape if keeps else None,
        on_one_core=on_one_core,
        by_tile=by_tile,
        cores=cores,
    )


def keeps_padding(source: TensorSpec, place: MemoryConfig) -> bool:
    """Whether Untilize leaves rows of padding between the images of shards, where they become rows of the result."""
    sharded = source.memory_config.is_sharded() and place.is_sharded()
    return sharded and prod(source.padded_shape[:-2]) > 1 and source.shape[-2] != source.padded_shape[-2]


def _refusals(op: CopyTensor, source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Iterator[str]:
    """Why the library does not build a program, in its order; it says so once the result is allocated."""
    shards, wanted = source.memory_config.shard_spec, target.memory_config.shard_spec
    alignment_bytes = spec.l1.alignment_bytes
    match op.conversion:
        case Conversion.TILIZE:
            height, width = (1, *source.padded_shape)[-2:]
            for name, side in (("width", width), ("height", height)):
                if side % TILE:
                    yield (
                        f"Input tensor {name} ({side}) must be divisible by tile {name} ({TILE})\n"
                        "tilize_with_zero_padding takes rows of any number and length"
                    )
            if shards is not None and op.on_one_core:
                yield "Multicore must be enabled for sharded input\nuse_multicore: leave it out"
            page_bytes = 0 if shards is None else row_bytes(source, shards.shape[1])
            if shards is not None and page_bytes % page_alignment_bytes(source.memory_config, spec):
                yield (
                    f"Input row-major shard width {shards.shape[1]} bytes gives page size {page_bytes} bytes, which "
                    f"must be aligned to {alignment_bytes} bytes L1 SRAM buffer alignment requirement\n"
                    "give wider shards, or interleaved rows"
                )
        case Conversion.TILIZE_WITH_VAL_PADDING:
            if source.data_format == UINT8:
                yield (
                    "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors\n"
                    f"input_tensor: typecast {source.data_format} first"
                )
            page_bytes = 0 if shards is None else row_bytes(source, shards.shape[1])
            whole_rows = source.memory_config.memory_layout is Scheme.HEIGHT_SHARDED
            unit = page_alignment_bytes(source.memory_config, spec)
            if shards is not None and not whole_rows and page_bytes % unit:
                yield (
                    f"Input row-major shard width {shards.shape[1]} gives page size {page_bytes} bytes, which must be "
                    f"aligned to {alignment_bytes} bytes L1 SRAM buffer alignment requirement\n"
                    "give wider shards, or interleaved rows"
                )
        case Conversion.UNTILIZE:
            unit = page_alignment_bytes(target.memory_config, spec)
            if wanted is not None and (row := row_bytes(target, wanted.shape[1])) % unit:
                yield (
                    f"Output shard row size {row} bytes must be aligned to {unit} bytes buffer alignment "
                    "requirement\nmemory_config: give wider shards"
                )
            if op.on_one_core:
                yield from _uneven_shards_of_one_core(source, target)
            if (refused := blocks_in_dram(target.memory_config)) is not None:
                yield refused
        case _:
            yield from _refusals_of_copies(op.conversion, source, target, spec)
    blocks = op.blocks(source, target, spec)
    if op.cores is not None and op.cores.empty() and op.conversion is not Conversion.UNTILIZE:
        yield f"{beyond_cores(0)}\nsub_core_grids: name a core, or leave it out for all"
    if blocks is not None and blocks.refusal is not None:
        yield f"{blocks.refusal}\nL1 is full: deallocate tensors, keep them in DRAM, or allow more cores"


def _uneven_shards_of_one_core(source: TensorSpec, target: TensorSpec) -> Iterator[str]:
    """The refusal of shards that one core does not untilize: narrower than tiles, or of different sizes."""
    before, wanted = source.memory_config.shard_spec, target.memory_config.shard_spec
    (high, wide), way_out = source.matrix, "use_multicore: leave it out"
    if wanted is not None and wanted.shape[1] % TILE:
        yield (
            f"Output shard width {wanted.shape[1]} must be a multiple of tile width {TILE} for single core "
            f"implementation\n{way_out}"
        )
    for side, shards in (("input", before), ("output", wanted)):
        if shards is None:
            continue
        for direction, whole, part in (("width", wide, shards.shape[1]), ("height", high, shards.shape[0])):
            if whole % part:
                yield (
                    f"Uneven {side} shard {direction} {part} for tensor {direction} {whole} not supported for single "
                    f"core implementation\n{way_out}"
                )


def _refusals_of_copies(
    conversion: Conversion, source: TensorSpec, target: TensorSpec, spec: DeviceSpec
) -> Iterator[str]:
    match conversion:
        case Conversion.COPY if source.layout is Layout.ROW_MAJOR and source.data_format != target.data_format:
            yield (
                "Only tile layout supports dtype conversion\n"
                f"dtype: leave {target.data_format} out, or give tiles; the tensor has rows"
            )
        case Conversion.RESHARD if target.layout is Layout.ROW_MAJOR:
            if resharded_bytes(target, row_bytes(target, target.shards.shape[1]), spec) == 0:
                yield (
                    "DataflowBufferSpec 'shard' has num_entries = 0. num_entries must be set to a non-zero value.\n"
                    f"input_tensor: its one row of {row_bytes(target)} bytes is no multiple of "
                    f"{spec.l1.alignment_bytes}; give a longer one, or go by way of interleaved memory"
                )
            in_l1 = not (in_dram(source) or in_dram(target))  # another program copies shards of DRAM
            if in_l1 and uneven(source, target) is Uneven.LOST:
                yield (
                    "unordered_map::at\n"
                    f"memory_config: rows of {target.shape[-1]} that do not fill their shards are lost in a grid with "
                    "more columns of cores than they take; give one of just these, or go by way of interleaved memory"
                )


def rows_of(
    spec: TensorSpec, shape: tuple[int, ...], place: MemoryConfig, padded: tuple[int, ...] | None = None
) -> TensorSpec:
    """Tiles once they are rows; raises DeviceError for block floats other than bfloat8_b."""
    return TensorSpec(shape, format_of_rows(spec.data_format), Layout.ROW_MAJOR, place, padded)


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
    by_tile: bool = False,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """Tiles of rows that fill whole tiles, or of rows that the program pads.

    Whole tiles that all cores leave in their scheme in L1 stay in their shards, whatever `place` is. `padded_shape` is
    the shape with padding of an interleaved result; None for the least. ``cores`` are those that may be used; None for
    all.
    """
    spec, tile_format, scheme = source.spec, data_format or source.spec.data_format, place.memory_layout
    shards = spec.memory_config.shard_spec
    padded = padded_shape or TensorSpec(spec.shape, tile_format, Layout.TILE).padded_shape
    in_l1 = BufferType.DRAM not in (spec.memory_config.buffer_type, place.buffer_type)
    stays = in_l1 and spec.memory_config.memory_layout is scheme and cores is None
    if not whole:  # padded rows leave their shards, except WIDTH shards with the same columns and rank
        if padded_shape is None:
            alike = spec.padded_shape[-1] % TILE == 0  # the last shard may be ragged
        else:
            alike = len(padded) == len(spec.shape) and spec.padded_shape[-1] == padded[-1]
        stays = stays and scheme is Scheme.WIDTH_SHARDED and alike
    elif scheme is Scheme.HEIGHT_SHARDED:
        stays = stays and shards is not None and ragged_tiles(shards) is None
    if shards is not None and stays:
        rows = prod(padded[:-1]) if len(spec.shape) > 1 else 1  # rows of a vector are not padded
        shape = shards.shape if whole else (rows, shards.shape[1])
        place = replace(place, shard_spec=ShardSpec(shards.grid, shape, shards.orientation))
    result = TensorSpec(spec.shape, tile_format, Layout.TILE, place, None if place.is_sharded() else padded_shape)
    conversion = Conversion.TILIZE if whole else Conversion.TILIZE_WITH_VAL_PADDING
    options: dict[str, Any] = {"on_one_core": on_one_core, "by_tile": by_tile, "cores": cores}
    return copied(builder, conversion, source, result, name, **options)


def untilized_by(
    builder: PlanBuilder,
    source: PlanTensor,
    target: TensorSpec,
    name: str,
    *,
    on_one_core: bool = False,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """Rows of tiles that keep their padding, except in generated code, which removes it.

    A limited set of ``cores`` works only for a single row of interleaved tiles.
    """
    if cores is not None:
        refused = _some_cores_refusal(source.spec, target, on_one_core=on_one_core)
        return copied(builder, Conversion.UNTILIZE, source, target, name, refused=refused, cores=cores)
    sharded = source.spec.memory_config.is_sharded() or target.memory_config.is_sharded()
    generated = not sharded and not on_one_core and source.spec.data_format in GENERATED_FORMATS
    spec, free = builder.device_spec, builder.free_l1
    by_code = generated and fits_generated_code(source.spec, spec)
    by_code = by_code and generated_depths(source.spec, target, spec, free, expected=True) is not None
    if generated and not by_code and source.spec.shape != source.spec.padded_shape:
        return unpadded_by(builder, source, target.shape, target.memory_config, name, seen=source.spec.padded_shape)
    conversion = Conversion.UNTILIZE_CODEGEN if by_code else Conversion.UNTILIZE
    rows = copied(builder, conversion, source, target, name, on_one_core=on_one_core)
    return _in_more_axes(builder, rows, source.spec.padded_shape)


def _some_cores_refusal(tiles: TensorSpec, rows: TensorSpec, *, on_one_core: bool) -> str | None:
    """Why some cores do not untilize tiles with no padding; None for a row of interleaved tiles."""
    high, way_out = tiles.matrix[0], "sub_core_grids: leave it out"
    for side, tensor in (("Input", tiles), ("Output", rows)):
        if tensor.memory_config.is_sharded():
            first = f"{side} memory layout must be interleaved when sub_core_grid argument provided"
            return f"{first}\n{way_out}"
    if on_one_core:
        return (
            "sub_core_grid implementation only supported when use_multicore flag argument is set to true\n"
            "use_multicore: leave it out"
        )
    if high > TILE:
        return (
            f"sub_core_grid untilize only supports tensors one tile row tall, got height {high} with tile height "
            f"{TILE}\n{way_out}"
        )
    return None


def unpadded_by(
    builder: PlanBuilder,
    source: PlanTensor,
    shape: tuple[int, ...],
    place: MemoryConfig,
    name: str,
    *,
    on_one_core: bool = False,
    cores: CoreRangeSet | None = None,
    seen: tuple[int, ...] | None = None,
) -> PlanTensor:
    """Rows of tiles without the padding, in a shape of the same rank; shards shrink to it.

    A larger shape has rows and columns with unknown values. A single core works only between interleaved memory; a
    limited set of ``cores`` only for interleaved tiles. The library views rows of more than four axes in the shape
    ``seen`` at the end, which is ``shape`` if it is None.
    """
    result = rows_of(source.spec, shape, unpadded_place(source.spec, shape, place))
    refused = unpadding_refusal(source.spec, result, place, cores)
    if refused is None and any(map(gt, shape, source.spec.shape)):
        builder.leave_out_values(
            f"untilize_with_unpadding: ttsim does not simulate what lies behind {list(source.spec.shape)}; keep less"
        )
    alone = on_one_core and not source.spec.memory_config.is_sharded() and not place.is_sharded()
    conversion = Conversion.UNTILIZE_WITH_UNPADDING
    unpadded = copied(builder, conversion, source, result, name, on_one_core=alone, refused=refused, cores=cores)
    return _in_more_axes(builder, unpadded, seen or shape)


def _in_more_axes(builder: PlanBuilder, rows: PlanTensor, seen: tuple[int, ...]) -> PlanTensor:
    """Untilized rows as the library views them in more than four axes; its programs know four.

    A program that is refused makes no rows to view. Raises DeviceError for rows without such a view.
    """
    tensor, last, spec = rows.spec, builder.steps[-1], builder.device_spec
    refused = isinstance(last, Operation) and last.refused
    if refused or len(seen) <= RANK or seen == tensor.padded_shape:
        return rows
    sharded, width = tensor.memory_config.is_sharded(), tensor.padded_shape[-1]
    if sharded and seen[-1] == width:
        return rows
    if sharded and tensor.shards.shape[1] != width:
        refuse_other_width((prod(seen[: 1 - RANK]), *tensor.padded_shape[1 - RANK :]), seen, tensor.shards)
    text = f"untilize: shards wider than their columns, in {len(seen)} axes"
    if sharded and seen == tensor.shape:
        view = PlanTensor(rows.name, viewed(tensor, seen, spec))
        builder.leave_out_values(f"{text}, show their padding, whose numbers ttsim does not simulate; reshape")
        return view
    page_bytes, size = row_bytes(tensor, seen[-1]), tensor.buffer(spec).size_bytes
    way_out = "input_tensor: reshape it to four axes first"
    if size % page_bytes:
        raise DeviceError(
            f"For valid non-interleaved buffers page size {page_bytes} must equal buffer size {size}. For "
            f"interleaved-buffers, buffer size should be divisible by the page size\n{way_out}"
        )
    if not sharded:
        raise DeviceError(f"MeshBuffer must be large enough to hold the tensor.\n{way_out}")
    raise NotSimulatedError(f"{text}, are not simulated; reshape")


def unpadded_place(source: TensorSpec, shape: tuple[int, ...], place: MemoryConfig) -> MemoryConfig:
    """The memory of untilized rows: cores share them in whole tiles along the axes that the scheme splits.

    WIDTH shards stay as wide as they are, and all shards on the cores of the tiles. HEIGHT shards of several whole
    images keep as many. Shards of another scheme go to `place` as it is. Raises DeviceError for rows of a vector that
    would have shards of two axes, and for interleaved tiles if `place` has no shards.
    """
    current, scheme = source.memory_config, place.memory_layout
    if not current.is_sharded():
        require_shard_spec(place, in_rows=False)
    stays = current.memory_layout is scheme
    if not place.is_sharded() or (current.is_sharded() and not stays):
        return place
    if len(shape) < 2 and scheme is not Scheme.WIDTH_SHARDED and not format_of_rows(source.data_format).is_block:
        raise DeviceError(
            "Shard shape must be 1D for 1D tensor!\n"
            "input: the rows of a vector in shards of tiles have shards of two axes; reshape the tensor to rank 2"
        )
    shards = (current if stays else place).shard_spec
    if shards is None:
        return place
    (down, across), (rows, columns) = shard_counts(scheme, shards), (prod(shape[:-1]), shape[-1])
    shard = [round_up(div_up(side, parts), TILE) for side, parts in ((rows, down), (columns, across))]
    if scheme is Scheme.HEIGHT_SHARDED:
        if images := images_of_shard(source):
            shard[0] = images * shape[-2]
        shard[1] = columns if stays else shards.shape[1]
    elif scheme is Scheme.WIDTH_SHARDED:
        shard = [rows, shards.shape[1] if stays else shard[1]]
    return MemoryConfig(scheme, place.buffer_type, ShardSpec(shards.grid, (shard[0], shard[1]), shards.orientation))


def seen_in_four(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape as the programs see it: above rank 4, the leading axes are merged."""
    return (prod(shape[: 1 - RANK]), *shape[1 - RANK :]) if len(shape) > RANK else shape


def unpadding_refusal(
    source: TensorSpec, target: TensorSpec, place: MemoryConfig, cores: CoreRangeSet | None = None
) -> str | None:
    """Why the library cannot remove the padding, if it cannot; checked after the rows are allocated in `place`."""
    before, after = source.memory_config.memory_layout, target.memory_config.memory_layout
    batched, width, out_width = prod(source.padded_shape[:-2]) != 1, source.padded_shape[-1], target.padded_shape[-1]
    unbatched, first, named = "Can only write unbatched output", "", f"TensorMemoryLayout::{after.name}"
    images = zip(*(seen_in_four(shape)[:-2] for shape in (source.padded_shape, target.padded_shape)), strict=True)
    unlike = next(((axis, *sides) for axis, sides in enumerate(images) if sides[0] != sides[1]), None)
    match before, after:
        case Scheme.WIDTH_SHARDED, _ if unlike is not None:
            axis, side, wanted_side = unlike
            first = f"Input tensor padded shape[{axis}] ({side}) must equal output shape[{axis}] ({wanted_side})"
        case _ if source.memory_config.is_sharded() and before is after and in_dram(target):
            first = f"{before.name} -> {after.name} output must be in L1; got buffer_type=BufferType::DRAM"
        case Scheme.HEIGHT_SHARDED, Scheme.WIDTH_SHARDED | Scheme.BLOCK_SHARDED:
            first = f"Output memory config layout must be HEIGHT_SHARDED when output is sharded but got {named}"
        case Scheme.BLOCK_SHARDED, Scheme.HEIGHT_SHARDED:
            first = (
                f"Output memory config layout ({named}) must be BLOCK_SHARDED (or WIDTH_SHARDED with a matching "
                "column shard width) when input is BLOCK_SHARDED and output is sharded"
            )
        case Scheme.WIDTH_SHARDED, Scheme.HEIGHT_SHARDED:
            first = (
                f"Output memory config layout ({named}) must match input tensor memory layout "
                "(TensorMemoryLayout::WIDTH_SHARDED) (or be BLOCK_SHARDED with a matching column shard width)"
            )
        case (Scheme.BLOCK_SHARDED, Scheme.WIDTH_SHARDED) | (Scheme.WIDTH_SHARDED, Scheme.BLOCK_SHARDED):
            current, wanted = source.shards.shape[1], place.shard_spec and place.shard_spec.shape[1]
            if wanted not in (None, current):
                first = (
                    f"{before.name} -> {place.memory_layout.name} requires matching column shard width; "
                    f"got input={current} output={wanted}"
                )
            elif (across := shard_counts(before, source.shards)[1]) != (kept := div_up(out_width, current)):
                first = (
                    f"{before.name} -> {place.memory_layout.name} requires the output to effectively span the same "
                    f"number of column shards as the input ({across}), got {kept} (output width {out_width} / shard "
                    f"width {current}); width-unpadding that reduces the column-shard count is not yet supported"
                )
            elif batched:
                first = f"{unbatched} for {before.name} -> {place.memory_layout.name}"
        case Scheme.BLOCK_SHARDED, Scheme.BLOCK_SHARDED if batched:
            first = f"{unbatched} for BLOCK_SHARDED -> BLOCK_SHARDED"
        case ((Scheme.BLOCK_SHARDED | Scheme.WIDTH_SHARDED), Scheme.INTERLEAVED) if batched:
            first = f"{unbatched} interleaved"
        case Scheme.WIDTH_SHARDED, Scheme.WIDTH_SHARDED:
            if width != out_width and div_up(out_width, source.shards.shape[1]) != source.shards.num_cores():
                first = (
                    f"Input tensor width ({width}) must equal output width ({out_width}) or output width / shard width "
                    "must equal num cores"
                )
        case Scheme.WIDTH_SHARDED, Scheme.INTERLEAVED if (width - out_width) % UNSIGNED >= source.shards.shape[1]:
            first = (
                f"Input tensor width difference ({(width - out_width) % UNSIGNED}) must be less than shard width "
                f"({source.shards.shape[1]})"
            )
    if not first and source.memory_config.is_sharded() and cores is not None:
        first = "Sharded untilize does not support sub core grid specification"
    if not first and source.memory_config.is_sharded() and in_dram(source):
        first = not_in_l1("sh_in", "sh_input")
    return f"{first}\nmemory_config: move the tensor to interleaved memory first" if first else None


def _other_pages(source: TensorSpec, result: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why rows in pages of other lengths, or of another number, are not converted; None for the same pages."""
    pages = []
    for tensor in (source, result):
        buffer = tensor.buffer(spec)
        pages.append((buffer.size_bytes // buffer.page_bytes, buffer.page_bytes // tensor.data_format.storage.itemsize))
    if pages[0] == pages[1]:
        return None
    before, after = (f"{count} pages of {columns} elements" for count, columns in pages)
    return (
        f"Row-major typecast requires matching page geometry, got input {before} and output {after}\n"
        "memory_config: leave it out, and move the result afterwards"
    )


def typecast_by(
    builder: PlanBuilder,
    read: PlanTensor,
    data_format: DataFormat,
    name: str,
    *,
    place: MemoryConfig | None = None,
    into: PlanTensor | None = None,
    cores: CoreRangeSet | None = None,
) -> PlanTensor:
    """A tensor in another format, by default in its own memory; raises DeviceError for another sharding.

    ``into`` is a tensor in any memory that receives the result. ``cores`` may be used, but for shards: if given, these
    are copied page by page on cores of the device.
    """
    source, spec = read.spec, builder.device_spec
    where = source.memory_config if place is None else place
    if into is None:
        require_shard_spec(where, in_rows=source.layout is Layout.ROW_MAJOR)
    result = into or PlanTensor(name, TensorSpec(source.shape, data_format, source.layout, where))
    result.spec.require_on(spec)
    if cores is not None and source.layout is Layout.ROW_MAJOR:
        raise DeviceError(
            "Typecast operation does not support sub_core_grids when input tensor is in Row-Major layout.\n"
            "sub_core_grids: leave it out, or give tiles"
        )
    where = result.spec.memory_config
    if source.memory_config.memory_layout is not where.memory_layout:
        before, after = source.memory_config.memory_layout.name, where.memory_layout.name
        raise DeviceError(
            "Typecast operation requires Input and Output memory layout to match. Input layout: "
            f"TensorMemoryLayout::{before}, Output layout: TensorMemoryLayout::{after}\n"
            "memory_config: leave it out, and move the result afterwards"
        )
    if result.spec.shape != source.shape:
        raise DeviceError(
            "Typecast operation requires input and preallocated output logical shapes to match. Input shape: Shape("
            f"{list(source.shape)}), Preallocated output shape: Shape({list(result.spec.shape)})\n"
            "output_tensor: give one of the input's shape"
        )
    if result.spec.layout is not source.layout:
        before, after = source.layout.name, result.spec.layout.name
        raise DeviceError(
            f"Typecast operation requires input and output layouts to match. Input layout: Layout::{before}, Output "
            f"layout: Layout::{after}\noutput_tensor: give one of the input's layout"
        )
    page_bytes, refused = source.buffer(spec).page_bytes, None
    shards, as_large = source.memory_config.shard_spec, source.data_format.tile_bytes == data_format.tile_bytes
    whole_tiles = shards is not None and (source.layout is Layout.TILE or prod(shards.shape) % TILE**2 == 0)
    in_l1 = not in_dram(source) and not in_dram(result.spec)
    within = cores if shards is None else None  # shards are copied page by page where cores are given, but on any
    # Whole shards are converted in place
    in_place = cores is None and shards is not None and as_large and whole_tiles and in_l1
    if shards is not None and page_bytes % page_alignment_bytes(source.memory_config, spec):
        refused = (
            f"Typecast operation requires sharded input tensor page size ({page_bytes} bytes) to be aligned to L1 "
            f"({spec.l1.alignment_bytes} bytes)\ninput_tensor: give tiles, or wider shards"
        )
    elif source.layout is Layout.ROW_MAJOR and not in_place and (other := _other_pages(source, result.spec, spec)):
        refused = other
    elif not source.volume and source.layout is Layout.ROW_MAJOR:
        refused = "DFB 'out' has no producer\ninput_tensor: empty rows have no pages; use ttnn.to_layout first"
    elif shards is not None and in_place and shards.num_cores() != result.spec.shards.num_cores():
        refused = (
            f"Output tensor should have same number of cores {result.spec.shards.num_cores()} as input tensor "
            f"{shards.num_cores()}\nmemory_config: leave it out, and move the result afterwards"
        )
    if shards is not None and in_place:
        tiles, used = prod(shards.shape) // TILE**2, shards.grid
    else:  # on as many cores as there are tiles, column by column, or rows, row by row
        pages, by_rows = source.buffer(spec).size_bytes // page_bytes, source.layout is Layout.ROW_MAJOR
        tiles, used = BUFFERING, page_cores(pages, spec.grid, row_wise=by_rows or within is not None, within=within)
        require_cores(within, spec, "typecast", unit="typecast_subgrid", used=used)
    buffers = tuple(
        tile_buffer(name, tiles, tensor.spec.data_format, used, tensor.name if in_place else None)
        for name, tensor in (("argument", read), ("result", result))
    )
    op = CopyTensor(Conversion.TYPECAST, (source.data_format, data_format), cores=within)
    ends, written = ([read], result) if into is None else ([read, into], None)
    return builder.run("TypecastDeviceOperation", op, ends, written, buffers, dataflow=True, refused=refused)
