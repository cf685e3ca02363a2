"""ttnn's functions that change the layout or the memory config of a tensor."""

from collections.abc import Sequence
from typing import Annotated, Any, get_overloads, overload

from device.cores import CoreCoord, CoreRangeSet, core_rectangle
from device.errors import ArgumentError
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
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
from ttsim.api.device_calls import LOST, converted, format_of, integers_of, operation, require_left_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import stored_in
from ttsim.runtime.types.call import integers, signature_of
from ttsim.runtime.types.tensors import DataType


@overload
def interleaved_to_sharded(
    input_tensor: Tensor,
    grid: CoreCoord | CoreRangeSet,
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
        arguments: ``input_tensor`` on the device, then either ``sharded_memory_config`` and ``output_dtype``, or
            ``grid`` (a CoreRangeSet, or the columns and rows of a rectangle), ``shard_shape``, ``shard_scheme``,
            ``shard_orientation`` and ``output_dtype``. The output has the format of the input without a dtype.
        named: The same by name; ``keep_l1_aligned`` is accepted as in ttnn and changes nothing here.

    Raises:
        DeviceError: The tensor is sharded, or the shards do not hold it.
    """
    has_grid = "grid" in named or any(isinstance(argument, CoreCoord | CoreRangeSet) for argument in arguments[1:2])
    given = (WITH_GRID if has_grid else WITH_CONFIG).bind(arguments, named)
    if has_grid:
        grid, scheme, orientation = (given[name] for name in ("grid", "shard_scheme", "shard_orientation"))
        cores = core_rectangle(grid.x, grid.y) if isinstance(grid, CoreCoord) else grid
        place = MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, given["shard_shape"], orientation))
    else:
        place = given["sharded_memory_config"]
    owner, data_format = "interleaved_to_sharded", format_of(given["output_dtype"])
    return converted(owner, plan_interleaved_to_sharded, given["input_tensor"], place, data_format=data_format)


WITH_GRID, WITH_CONFIG = map(signature_of, get_overloads(interleaved_to_sharded))


@operation
def sharded_to_interleaved(
    input_tensor: Tensor, memory_config: MemoryConfig | None = None, output_dtype: DataType | None = None
) -> Tensor:
    """An interleaved copy of a sharded tensor, in DRAM by default; an interleaved tensor itself, wherever it lies."""
    owner, place = "sharded_to_interleaved", DRAM_MEMORY_CONFIG if memory_config is None else memory_config
    required_device(owner, input_tensor)
    if not input_tensor.spec.memory_config.is_sharded():
        return input_tensor
    return converted(owner, plan_sharded_to_interleaved, input_tensor, place, data_format=format_of(output_dtype))


@operation
def reshard(input_tensor: Tensor, output_memory_config: MemoryConfig, output_tensor: Tensor | None = None) -> Tensor:
    """A copy of a sharded tensor in other shards, or in an output tensor of the same shape.

    Raises:
        ArgumentError: On a strict device, rows whose parts the real library misplaces.
        DeviceError: A tensor or its shards are not what the program takes.
    """
    dealt = converted("reshard", plan_reshard, input_tensor, output_memory_config, strict=require_right_rows)
    return dealt if output_tensor is None else stored_in(output_tensor, dealt)


@operation
def move(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The tensor released and allocated again, as high in its memory as it can lie.

    Args:
        input_tensor: On the device; it is gone afterwards.
        memory_config: Where it goes; None for where it is. A sharded tensor goes to shards alone.
    """
    return converted("move", plan_move, input_tensor, memory_config, lost=LOST)


def reallocate(tensor: Tensor, memory_config: MemoryConfig | None = None) -> Tensor:
    """`move` under another name."""
    return move(tensor, memory_config=memory_config)


@operation
def tilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    use_low_perf: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Rows as tiles; rows and shards must be whole tiles."""
    require_left_out("tilize", use_low_perf=use_low_perf, sub_core_grids=sub_core_grids)
    on_one_core, data_format = not use_multicore, format_of(dtype)
    place = memory_config
    return converted("tilize", plan_tilize, input_tensor, place=place, on_one_core=on_one_core, data_format=data_format)


@operation
def tilize_with_val_padding(
    input_tensor: Tensor,
    output_tensor_shape: object,
    pad_value: object,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Rows as tiles, padded to a shape that is no smaller; a tensor in tiles itself.

    Args:
        output_tensor_shape: Shape with padding.
        pad_value: What the padding holds; it is no part of the values here, which have no padding.
    """
    owner = "tilize_with_val_padding"
    require_left_out(owner, sub_core_grids=sub_core_grids)
    shape = integers_of("output_tensor_shape", output_tensor_shape)
    return _padded(owner, input_tensor, memory_config, use_multicore, padded_shape=shape, data_format=format_of(dtype))


@operation
def tilize_with_zero_padding(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Rows as tiles, the last of them filled with zeros; a tensor in tiles itself."""
    owner = "tilize_with_zero_padding"
    require_left_out(owner, sub_core_grids=sub_core_grids)
    return _padded(owner, input_tensor, memory_config, use_multicore)


def _padded(owner: str, tensor: Tensor, place: MemoryConfig | None, use_multicore: bool, **options: Any) -> Tensor:
    """Rows as tiles with padding; a tensor in tiles itself."""
    required_device(owner, tensor)
    if tensor.layout is Layout.TILE:
        return tensor
    return converted(owner, plan_tilize, tensor, pads=True, place=place, on_one_core=not use_multicore, **options)


@operation
def untilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Tiles as rows of the same shape; block floats become bfloat16.

    Raises:
        ArgumentError: What is not simulated is asked for, or (on a strict device) the library would take rows of
            padding between the images of shards for rows of the tensor.
    """
    require_left_out("untilize", sub_core_grids=sub_core_grids)
    device = required_device("untilize", input_tensor)
    place = input_tensor.spec.memory_config if memory_config is None else memory_config
    if device.strict and keeps_padding(input_tensor.spec, place):
        raise ArgumentError(
            f"untilize: images of {input_tensor.shape[-2]} rows are padded to {input_tensor.padded_shape[-2]} in the "
            "shards, and the library takes the padding for rows of the result; move the tensor to interleaved "
            "memory first, or open the device with strict=False"
        )
    return converted("untilize", plan_untilize, input_tensor, place=memory_config, on_one_core=not use_multicore)


@operation
def untilize_with_unpadding(
    input_tensor: Tensor,
    output_tensor_end: object,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """The first rows and columns of tiles as rows; block floats become bfloat16.

    Args:
        output_tensor_end: The last index that is kept, on each axis; it lies before the padding.
        use_multicore: False has one core do it, between interleaved places.
    """
    owner, place, sides = "untilize_with_unpadding", memory_config, tuple(input_tensor.shape)
    require_left_out(owner, sub_core_grids=sub_core_grids)
    shape = tuple(end + 1 for end in integers_of("output_tensor_end", output_tensor_end))
    if len(shape) != len(sides) or any(length > side for length, side in zip(shape, sides, strict=True)):
        raise ArgumentError(f"{owner}: output_tensor_end must lie within {list(sides)}, before padding")
    planner, on_one_core = plan_untilize_with_unpadding, not use_multicore
    return converted(owner, planner, input_tensor, shape, place=place, on_one_core=on_one_core)
