"""ttnn's functions that change the layout or the memory config of a tensor."""

from collections.abc import Sequence
from math import prod
from numbers import Real
from typing import Annotated, Any, get_overloads, overload

from device.cores import CoreCoord, CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import round_up
from ops.planners.partial import shards_on
from ops.planners.to_config import (
    plan_interleaved_to_sharded,
    plan_move,
    plan_reshard,
    plan_sharded_to_interleaved,
    plan_tilize,
    plan_untilize,
    plan_untilize_with_unpadding,
    require_right_rows,
)
from ops.programs.data_movement.conversions import keeps_padding
from ttsim.api.device_calls import (
    LOST,
    cached_plan,
    converted,
    format_of,
    integers_of,
    operation,
    required_device,
)
from ttsim.api.without_elements import is_empty, made
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import integers, signature_of
from ttsim.runtime.types.norm_configs import GridSize
from ttsim.runtime.types.tensors import DataType


@overload
def interleaved_to_sharded(
    input_tensor: Tensor,
    grid: GridSize | CoreRangeSet,
    shard_shape: Annotated[Sequence[int], integers(2)],
    shard_scheme: TensorMemoryLayout,
    shard_orientation: ShardOrientation,
    output_dtype: DataType | None = None,
    *,
    keep_l1_aligned: bool | None = False,
) -> Tensor: ...


@overload
def interleaved_to_sharded(
    input_tensor: Tensor,
    sharded_memory_config: MemoryConfig,
    output_dtype: DataType | None = None,
    *,
    keep_l1_aligned: bool | None = False,
) -> Tensor: ...


@on_device
def interleaved_to_sharded(*arguments: Any, **named: Any) -> Tensor:
    """A sharded copy of an interleaved tensor.

    Args:
        input_tensor: An interleaved tensor on the device.
        sharded_memory_config: Memory of the result, with shards; or give ``grid`` and the three arguments after it.
        grid: A CoreRangeSet, or (columns, rows) of a grid at (0, 0), whose first cores hold the shards.
        shard_shape: Rows and columns of a shard, in elements.
        shard_scheme: HEIGHT_, WIDTH_ or BLOCK_SHARDED.
        shard_orientation: Whether shards are assigned along rows or columns of cores.
        output_dtype: Data type of the result; None for that of the tensor.
        keep_l1_aligned: Accepted as in ttnn; it changes nothing here.

    Returns:
        The tensor in L1, in shards.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        DeviceError: The tensor is sharded or on the host, or the shards do not hold it.
        OutOfMemoryError: A shard does not fit into the free L1.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> place = ttnn.create_sharded_memory_config((64, 32), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
        >>> ttnn.interleaved_to_sharded(tensor, place).memory_config().shard_spec.shape
        [32, 32]
    """
    has_grid = "grid" in named or any(isinstance(grid, CoreCoord | CoreRangeSet | Sequence) for grid in arguments[1:2])
    given = (WITH_GRID if has_grid else WITH_CONFIG).bind(arguments, named)
    if has_grid:
        grid, scheme, orientation = (given[name] for name in ("grid", "shard_scheme", "shard_orientation"))
        shape = tuple(given["shard_shape"])
        if isinstance(grid, CoreCoord):
            matrix = given["input_tensor"].spec.matrix
            place = shards_on("interleaved_to_sharded", matrix, grid, shape, scheme, orientation)
        else:
            place = MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, shape, orientation))
    else:
        place = given["sharded_memory_config"]
    owner, data_format = "interleaved_to_sharded", format_of(given["output_dtype"])
    return converted(owner, plan_interleaved_to_sharded, given["input_tensor"], place, data_format=data_format)


WITH_GRID, WITH_CONFIG = map(signature_of, get_overloads(interleaved_to_sharded))


@operation
def sharded_to_interleaved(
    input_tensor: Tensor, memory_config: MemoryConfig | None = None, output_dtype: DataType | None = None
) -> Tensor:
    """An interleaved copy of a sharded tensor; an interleaved tensor is returned as it is.

    Args:
        memory_config: Memory of the result; None for DRAM.
        output_dtype: Data type of the result; None for that of the tensor.

    Returns:
        The interleaved tensor.

    Examples:
        >>> place = ttnn.create_sharded_memory_config((64, 32), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
        >>> sharded = ttnn.to_memory_config(ttnn.zeros((1, 1, 64, 32), device=device), place)
        >>> ttnn.sharded_to_interleaved(sharded).is_sharded()
        False
    """
    owner, place = "sharded_to_interleaved", DRAM_MEMORY_CONFIG if memory_config is None else memory_config
    required_device(owner, input_tensor)
    if not input_tensor.spec.memory_config.is_sharded():
        return input_tensor
    return converted(owner, plan_sharded_to_interleaved, input_tensor, place, data_format=format_of(output_dtype))


@operation
def reshard(input_tensor: Tensor, output_memory_config: MemoryConfig, output_tensor: Tensor | None = None) -> Tensor:
    """A copy of a sharded tensor in other shards.

    Args:
        input_tensor: A sharded tensor on the device.
        output_memory_config: Shards of the result; ignored if ``output_tensor`` is given.
        output_tensor: A sharded tensor of the same shape that receives the result; None creates a new tensor.

    Returns:
        The tensor in its new shards, or ``output_tensor``.

    Raises:
        ArgumentError: The device is strict, and the real library would misplace parts of rows.
        DeviceError: The tensor is not sharded, or the library has no program for these shards.

    Examples:
        >>> two, four = (
        ...     ttnn.create_sharded_memory_config((1, 1, 128, 32), ttnn.CoreGrid(y=1, x=x), ttnn.ShardStrategy.HEIGHT)
        ...     for x in (2, 4)
        ... )
        >>> sharded = ttnn.to_memory_config(ttnn.zeros((1, 1, 128, 32), device=device), two)
        >>> ttnn.reshard(sharded, four).memory_config().shard_spec.shape
        [32, 32]
    """
    if output_tensor is None:
        return converted("reshard", plan_reshard, input_tensor, output_memory_config, strict=require_right_rows)
    device = required_device("reshard", input_tensor)
    required_device("reshard", output_tensor)
    plan = cached_plan(plan_reshard, device, input_tensor.spec, output_memory_config, target=output_tensor.spec)
    if device.strict:
        require_right_rows(plan)
    with device.function("ttnn.reshard"):
        return run(plan, {"input": input_tensor, "target": output_tensor}, device)["output"]


@operation
def move(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """A tensor moved to the highest free address of its memory; its old buffer is released.

    Args:
        input_tensor: A tensor on the device, which is deallocated.
        memory_config: Memory of the result; None for that of the tensor. A sharded tensor can only move to shards.

    Returns:
        The tensor in its new buffer; ``input_tensor``, unmoved, if another tensor shares its buffer.

    Raises:
        DeviceError: The tensor is on the host or was deallocated, or its shards are shared with another tensor.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
        >>> moved = ttnn.move(tensor)
        >>> tensor.is_allocated(), moved.is_allocated()
        (False, True)
    """
    if input_tensor.shares_buffer and input_tensor.is_allocated():
        if not input_tensor.is_sharded():
            return input_tensor
        raise DeviceError(
            "Expect input tensor to be deallocated after move op. Cannot deallocate before there is probably another "
            "consumer.\nmove: another tensor, such as a view, shares the shards; drop it first"
        )
    return converted("move", plan_move, input_tensor, memory_config, lost=LOST)


def reallocate(tensor: Tensor, memory_config: MemoryConfig | None = None) -> Tensor:
    """Another name of `move`.

    Args:
        tensor: A tensor on the device, which is deallocated.
        memory_config: Memory of the result; None for that of the tensor. A sharded tensor can only move to shards.

    Returns:
        The tensor in its new buffer; ``tensor``, unmoved, if another tensor shares its buffer.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The tensor is on the host or was deallocated, or its shards are shared with another tensor.

    Examples:
        >>> ttnn.reallocate(ttnn.zeros((32, 32), device=device)).is_allocated()
        True
    """
    return move(tensor, memory_config=memory_config)


@operation
def tilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    use_low_perf: bool = False,
    tile: object = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A tensor in ROW_MAJOR layout brought into TILE layout; its rows and shards must be whole tiles.

    Args:
        use_multicore: False tilizes on one core, between interleaved buffers.
        use_low_perf: True tilizes tile by tile on one core, which needs the least L1.
        sub_core_grids: Cores that may be used; None for all.
        tile: `ttnn.Tile` of the only simulated size, 32 x 32; None for the same.

    Returns:
        The tensor in TILE layout.

    Examples:
        >>> ttnn.tilize(ttnn.zeros((1, 1, 32, 64), device=device)).layout
        Layout.TILE
    """
    options: dict[str, Any] = {"place": memory_config, "on_one_core": not use_multicore, "cores": sub_core_grids}
    options["by_tile"] = use_low_perf
    required_device("tilize", input_tensor)
    if is_empty(input_tensor):
        return made(input_tensor, input_tensor.shape, memory_config, dtype=dtype, layout=Layout.TILE)
    return converted("tilize", plan_tilize, input_tensor, data_format=format_of(dtype), **options)


@operation
def tilize_with_val_padding(
    input_tensor: Tensor,
    output_tensor_shape: object,
    pad_value: object,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A tensor in ROW_MAJOR layout padded to a shape and brought into TILE layout.

    Args:
        output_tensor_shape: Padded shape, with sides that are no smaller than those of the tensor.
        pad_value: What the padding holds; it is no part of the result's values.
        use_multicore: False tilizes on one core.
        sub_core_grids: Cores that may be used; None for all.

    Returns:
        The tensor in TILE layout; ``input_tensor`` itself if it is in TILE layout.

    Examples:
        >>> tiles = ttnn.tilize_with_val_padding(ttnn.zeros((1, 1, 30, 40), device=device), (1, 1, 32, 64), 0.0)
        >>> tiles.shape, tiles.padded_shape
        (Shape([1, 1, 30, 40]), Shape([1, 1, 32, 64]))
    """
    owner = "tilize_with_val_padding"
    shape = integers_of("output_tensor_shape", output_tensor_shape)
    required_device(owner, input_tensor)
    if is_empty(input_tensor) and input_tensor.layout is not Layout.TILE:  # the shape becomes that of the elements
        if not isinstance(pad_value, Real):
            raise ArgumentTypeError(f"{owner}: pad_value must be a number, not {shown(pad_value)}")
        return made(input_tensor, shape, memory_config, value=float(pad_value), dtype=dtype, layout=Layout.TILE)
    options: dict[str, Any] = {"padded_shape": shape, "data_format": format_of(dtype), "cores": sub_core_grids}
    return _padded(owner, input_tensor, memory_config, use_multicore, **options)


def in_tiles(tensor: Tensor) -> Tensor:
    """A tensor in TILE layout; a tensor in ROW_MAJOR layout is padded with zeros and tilized."""
    if tensor.spec.layout is Layout.TILE:
        return tensor
    sides = tensor.spec.padded_shape
    shape = [*sides[:-2], *(round_up(side, TILE) for side in sides[-2:])]
    return tilize_with_val_padding(tensor, shape, 0.0, memory_config=tensor.spec.memory_config)


@operation
def tilize_with_zero_padding(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    output_dtype: DataType | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A tensor in ROW_MAJOR layout padded with zeros to whole tiles and brought into TILE layout.

    Args:
        output_dtype: Data type of the result; None for that of the tensor.
        use_multicore: False tilizes on one core.
        sub_core_grids: Cores that may be used; None for all.

    Returns:
        The tensor in TILE layout; ``input_tensor`` itself if it is in TILE layout.

    Examples:
        >>> ttnn.tilize_with_zero_padding(ttnn.zeros((1, 1, 30, 40), device=device)).padded_shape
        Shape([1, 1, 32, 64])
    """
    owner = "tilize_with_zero_padding"
    options: dict[str, Any] = {"data_format": format_of(output_dtype), "cores": sub_core_grids}
    return _padded(owner, input_tensor, memory_config, use_multicore, **options)


def _padded(owner: str, tensor: Tensor, place: MemoryConfig | None, use_multicore: bool, **options: Any) -> Tensor:
    """Rows as tiles with padding; a tensor in tiles itself."""
    required_device(owner, tensor)
    if tensor.layout is Layout.TILE:
        return tensor
    if is_empty(tensor):
        chosen = options.get("data_format")
        dtype = None if chosen is None else DataType.of(chosen)
        return made(tensor, tensor.shape, place, dtype=dtype, layout=Layout.TILE)
    return converted(owner, plan_tilize, tensor, pads=True, place=place, on_one_core=not use_multicore, **options)


@operation
def untilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A tensor in TILE layout brought into ROW_MAJOR layout; block floats become bfloat16.

    Args:
        sub_core_grids: Cores that may remove the padding, of interleaved tensors; None for all.

    Returns:
        The tensor in ROW_MAJOR layout.

    Raises:
        ArgumentError: The call uses a feature that is not simulated; or the device is strict, and the real library
            would return padding between images in shards as rows of the tensor.

    Examples:
        >>> tiles = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.untilize(tiles).layout
        Layout.ROW_MAJOR
    """
    device = required_device("untilize", input_tensor)
    place = input_tensor.spec.memory_config if memory_config is None else memory_config
    if device.strict and keeps_padding(input_tensor.spec, place):
        raise ArgumentError(
            f"untilize: images of {input_tensor.shape[-2]} rows are padded to {input_tensor.padded_shape[-2]} in the "
            "shards, and the library takes the padding for rows of the result; move the tensor to interleaved "
            "memory first, or open the device with strict=False"
        )
    if is_empty(input_tensor) and input_tensor.layout is Layout.TILE:
        return _rows_without_elements(input_tensor, tuple(input_tensor.shape), memory_config)
    options: dict[str, Any] = {"place": memory_config, "on_one_core": not use_multicore, "cores": sub_core_grids}
    return converted("untilize", plan_untilize, input_tensor, **options)


def _rows_without_elements(tensor: Tensor, shape: tuple[int, ...], place: MemoryConfig | None) -> Tensor:
    dtype = DataType.BFLOAT16 if tensor.spec.data_format.is_block else tensor.dtype
    return made(tensor, shape, place, dtype=dtype, layout=Layout.ROW_MAJOR)


@operation
def untilize_with_unpadding(
    input_tensor: Tensor,
    output_tensor_end: object,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """The first rows and columns of a tensor in TILE layout, in ROW_MAJOR layout; block floats become bfloat16.

    Args:
        output_tensor_end: The last index to keep along each axis. Indices beyond the tensor are not simulated.
        use_multicore: False computes the result on one core, between interleaved buffers.
        sub_core_grids: Cores that may be used, of interleaved tiles; None for all.

    Returns:
        The kept part in ROW_MAJOR layout.

    Examples:
        >>> tiles = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.untilize_with_unpadding(tiles, (0, 0, 29, 39)).shape
        Shape([1, 1, 30, 40])
    """
    owner, place = "untilize_with_unpadding", memory_config
    shape = tuple(end + 1 for end in integers_of("output_tensor_end", output_tensor_end))
    required_device(owner, input_tensor)
    if is_empty(input_tensor):
        if prod(shape):
            raise DeviceError(
                f"{owner}: a zero-volume input requires a zero-volume output, got Shape({list(shape)})\n"
                "output_tensor_end: keep no elements"
            )
        return _rows_without_elements(input_tensor, shape, memory_config)
    options: dict[str, Any] = {"place": place, "on_one_core": not use_multicore, "cores": sub_core_grids}
    return converted(owner, plan_untilize_with_unpadding, input_tensor, shape, **options)
