"""The program of ttnn.group_norm for interleaved images, and the checks of its cores."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from device.errors import NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, BufferType, Layout
from device.numbers.formats import FLOAT32, div_up
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_grids import Images, interleaved_grid, shared_rows, virtual_columns, widest_span
from ops.programs.buffer_shapes import BUFFERING
from ops.programs.data_movement.conversions import tilized_by, untilized_by
from ops.programs.normalization.group_norm import GroupNorm
from ops.programs.normalization.group_rows import Blocks, chosen_blocks, cores_of, row_buffers

KEPT_SHARE = 0.95  # of a core's L1, within which the program of two passes keeps its input
BLOCK_BUFFERS, SPARE_TILES = 9, 32  # of the program that makes rows of its result, by the library's estimate
MOST_GROUPS = 16  # of a core, in that program


def _images(call: GroupNormArguments) -> Images:
    return Images(channels=call.source.padded_shape[3], groups=call.groups, pixels=call.source.matrix[0])


def grid_faults(call: GroupNormArguments, spec: DeviceSpec) -> Iterator[str]:
    """The real library's error text for cores that do not share the rows of tiles of interleaved images evenly."""
    source = call.source
    if source.memory_config.is_sharded():
        return
    images, batches = _images(call), source.shape[0]
    if call.grid is None:
        if interleaved_grid((spec.grid.cols, spec.grid.rows), images, batches) is None:
            yield (
                f"group_norm: Could not determine a valid DRAM core grid for channels={images.channels}, "
                f"num_groups={images.groups}, nhw={images.pixels}. Specify core_grid explicitly or adjust "
                "configuration.\ncore_grid: give one"
            )
        if call.blocks is not None:
            yield (
                "group_norm: num_out_blocks cannot be specified when core_grid is auto-selected. Either provide an "
                "explicit core_grid or omit num_out_blocks."
            )
        return
    rows, columns = shared_rows(call.grid, images), virtual_columns(call.grid[0], images)
    height = images.pixels // TILE
    if rows and height % rows == 0 and (rows < batches or rows % batches == 0):
        return
    found = interleaved_grid(call.grid, images, batches)
    if found is None:
        raise NotSimulatedError(
            f"group_norm: no cores of {call.grid} share {height} rows of tiles; give another core_grid"
        )
    sides = f"(Ht={height}, W={images.channels}, num_groups={images.groups}, num_batches={batches})"
    yield (
        f"group_norm: Requested core_grid (x={call.grid[0]}, y={call.grid[1]}) is invalid for the input dimensions "
        f"{sides}. The grid must satisfy: num_virtual_rows = (grid_x / num_virtual_cols) * grid_y <= Ht, Ht must be "
        "divisible by num_virtual_rows, and num_virtual_rows must be divisible by num_batches (for uniform multicast "
        f"groups). Computed num_virtual_rows={rows}, num_virtual_cols={columns}. The largest valid grid that fits is "
        f"(x={found[0]}, y={found[1]}).\ncore_grid: leave it out"
    )


def write_interleaved(
    builder: PlanBuilder, call: GroupNormArguments, tensors: Sequence[PlanTensor], l1_bytes: int
) -> PlanTensor:
    """Writes the program for tiles; raises NotSimulatedError for calls of other programs."""
    if call.source.layout is Layout.ROW_MAJOR:
        return _of_rows(builder, call, tensors, l1_bytes)
    source, spec, images = call.source, builder.device_spec, _images(call)
    batches, place = source.shape[0], call.place or DRAM_MEMORY_CONFIG
    grid = call.grid or interleaved_grid((spec.grid.cols, spec.grid.rows), images, batches)
    assert grid is not None  # grid_faults
    rows, columns = shared_rows(grid, images), virtual_columns(grid[0], images)
    _require_simulated(call, rows)
    high, wide = images.pixels // TILE // rows, images.channels // columns
    image_high = high // max(1, batches // rows)
    span = widest_span(wide, images.channels // images.groups)
    count = call.blocks if call.blocks is not None else 1
    if call.grid is None or call.blocks == -1:
        count = chosen_blocks(image_high, span, source.data_format, few=not call.welford)
    refused = _fault(call, count, image_high, span, columns, whole_images=batches >= rows)
    rows_written, group = call.written_layout is Layout.ROW_MAJOR, images.channels // images.groups
    if rows_written and not _has_room_for_rows(call, image_high // count * span, span, wide, spec):
        return _rows_behind(builder, call, tensors, l1_bytes)
    if rows_written and group < TILE and TILE % group:
        count = image_high  # groups that span tiles are written a row of tiles at a time
    blocks = Blocks(high=image_high, wide=span, count=count if refused is None else 1)
    op = GroupNorm(
        shape=(batches, 1, source.shape[2], source.shape[3]),
        groups=call.groups,
        epsilon=call.epsilon,
        data_format=source.data_format,
        weight_format=None if call.weight is None else call.weight.data_format,
        bias_format=None if call.bias is None else call.bias.data_format,
        mask_format=call.mask_format,
        negative_mask_format=None,
        fidelity_phases=call.fidelity_phases,
        fp32_dest=call.wide,
        cores=cores_of(grid, columns),
        core_tiles=(high, -(-wide // TILE)),
        block_tiles=(image_high, span),
        parts=columns,
        partners=max(1, rows // batches),
        from_rows=False,
        to_rows=rows_written,
        passes=3,
        padded=call.padded,
        welford=call.welford,
    )
    output = PlanTensor("output", source.changed(layout=call.written_layout, memory_config=place))
    room = 0
    if call.welford:
        room = int(KEPT_SHARE * (l1_bytes - sum(_bank_bytes(tensor.spec, spec) for tensor in (*tensors, output))))
    buffers = () if refused is not None else row_buffers(op, blocks, whole_images=batches >= rows, room=room)
    key = ("group_norm", call, output.spec)
    return builder.run("GroupNormDeviceOperation", op, tensors, output, buffers, key=key, refused=refused)


def _of_rows(
    builder: PlanBuilder, call: GroupNormArguments, tensors: Sequence[PlanTensor], l1_bytes: int
) -> PlanTensor:
    """The result of rows, which become tiles first."""
    given, *others = tensors
    place, whole = call.source.memory_config, call.source.shape[-1] % TILE == 0
    tiles = tilized_by(builder, given, "input.tiles", place=place, whole=whole)
    of_tiles = replace(call, source=tiles.spec, out_layout=call.written_layout)
    result = write_interleaved(builder, of_tiles, [tiles, *others], l1_bytes)
    builder.free_own(tiles, keep=[result])
    return result


def _rows_behind(
    builder: PlanBuilder, call: GroupNormArguments, tensors: Sequence[PlanTensor], l1_bytes: int
) -> PlanTensor:
    """The result in tiles, which a later program untilizes."""
    tiles = write_interleaved(builder, replace(call, out_layout=Layout.TILE), tensors, l1_bytes)
    result = untilized_by(builder, tiles, tiles.spec.changed(layout=Layout.ROW_MAJOR), "output.rows")
    builder.free_own(tiles, keep=[result])
    return result


def _require_simulated(call: GroupNormArguments, rows: int) -> None:
    """Raises NotSimulatedError for weights in tiles, and for images that the rows of cores do not share evenly."""
    if any(vector is not None and vector.layout is Layout.TILE for vector in (call.weight, call.bias)):
        raise NotSimulatedError("group_norm: weights in TILE layout are not simulated; give ROW_MAJOR_LAYOUT")
    batches = call.source.shape[0]
    if batches > rows and batches % rows:
        raise NotSimulatedError(
            f"group_norm: {batches} images on {rows} rows of cores are not simulated; give a core_grid"
        )


def _has_room_for_rows(call: GroupNormArguments, block: int, span: int, wide: int, spec: DeviceSpec) -> bool:
    """Whether the program makes rows of its tiles by itself, by the library's count of buffers of a block's tiles."""
    vectors = sum(vector is not None for vector in (call.weight, call.bias))
    tiles = BLOCK_BUFFERS * block + vectors * div_up(wide, TILE) + BUFFERING * span + SPARE_TILES
    return tiles * call.source.data_format.tile_bytes <= KEPT_SHARE * spec.l1.usable_bytes


def _bank_bytes(tensor: TensorSpec, spec: DeviceSpec) -> int:
    in_l1 = tensor.memory_config.buffer_type is BufferType.L1
    return tensor.buffer(spec).bank_bytes if in_l1 else 0


def _fault(
    call: GroupNormArguments, count: int, high: int, span: int, columns: int, *, whole_images: bool
) -> str | None:
    width, own_groups = span * TILE, call.groups // columns
    if call.welford and own_groups > MOST_GROUPS:
        return (
            f"num_groups_per_core ({own_groups}) must be <= {MOST_GROUPS} when use_welfords is true. Increase the "
            "width of core grid to address this."
        )
    if not 0 < count <= high:
        return (
            f"num_out_blocks ({count}) must be in [1, block_h ({high})]. Reduce num_out_blocks or increase input "
            "spatial dimensions."
        )
    own = width if call.mask is None else call.mask.padded_shape[-1]
    if own != width:
        unit = "tile_width" if whole_images else "TILE_WIDTH"  # two programs say so
        return f"input mask width ({own}) must have the same width as block_wt * {unit} ({width})"
    if call.source.data_format == FLOAT32 and not call.wide:
        return (
            "group_norm with Float32 input requires fp32_dest_acc_en=true in the compute kernel config; otherwise the "
            "DEST accumulator is bfloat16 and intermediate/accumulated results are silently rounded to bf16."
        )
    return None
