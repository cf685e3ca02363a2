"""Where rows go that were tiles with padding, and which places the program that cuts it off does not take.

Source: ttnn 0.81.1 (untilize_with_unpadding), compared with recorded plans.
"""

from math import prod

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.block_floats import div_up, round_up

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


def images_of_shard(source: TensorSpec) -> int:
    """Whole images that a HEIGHT shard holds, if it holds several, whatever is left over; otherwise 0."""
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not HEIGHT:
        return 0
    images = shards.shape[0] // source.padded_shape[-2]
    return images if images > 1 else 0


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
