"""ttnn's functions that change the layout or the memory config of a tensor."""

from collections.abc import Sequence
from typing import Annotated, Any, overload

from device.cores import CoreCoord, CoreRangeSet, core_rectangle
from device.errors import ArgumentError, ArgumentTypeError, shown
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
from ops.programs.data_movement.to_layout import keeps_padding
from ttsim.api.device_calls import carried_out, kept_plan, require_left_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import stored_in
from ttsim.types.signature import checked, integers
from ttsim.types.tensors import DataType


@overload
def interleaved_to_sharded(
    input_tensor: Tensor,
    grid: CoreCoord | CoreRangeSet,
    shard_shape: Sequence[int],
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
        ArgumentTypeError: The arguments are neither list.
        DeviceError: The tensor is sharded, or the shards do not hold it.
        OutOfMemoryError: No room.
    """
    has_grid = "grid" in named or any(isinstance(argument, CoreCoord | CoreRangeSet) for argument in arguments[1:2])
    return (_in_shards_on_grid if has_grid else _in_shards)(*arguments, **named)


@checked
def _in_shards_on_grid(
    input_tensor: Tensor,
    grid: CoreCoord | CoreRangeSet,
    shard_shape: Annotated[Sequence[int], integers(2)],
    shard_scheme: TensorMemoryLayout,
    shard_orientation: ShardOrientation,
    output_dtype: DataType | None = None,
    *,
    keep_l1_aligned: bool | None = False,
) -> Tensor:
    cores = core_rectangle(grid.x, grid.y) if isinstance(grid, CoreCoord) else grid
    place = MemoryConfig(shard_scheme, BufferType.L1, ShardSpec(cores, shard_shape, shard_orientation))
    return _in_shards(input_tensor, place, output_dtype)


@checked
def _in_shards(
    input_tensor: Tensor,
    sharded_memory_config: MemoryConfig,
    output_dtype: DataType | None = None,
    *,
    keep_l1_aligned: bool | None = False,
) -> Tensor:
    device = required_device("interleaved_to_sharded", input_tensor)
    data_format = None if output_dtype is None else output_dtype.format
    place = sharded_memory_config
    plan = kept_plan(plan_interleaved_to_sharded, device, input_tensor.spec, place, data_format=data_format)
    return carried_out("interleaved_to_sharded", plan, input_tensor, device)


_in_shards_on_grid.__name__ = _in_shards.__name__ = interleaved_to_sharded.__name__  # whose arguments errors name


@on_device
@checked
def sharded_to_interleaved(
    input_tensor: Tensor,
    memory_config: MemoryConfig | None = None,
    output_dtype: DataType | None = None,
) -> Tensor:
    """An interleaved copy of a sharded tensor; an interleaved tensor itself, wherever it lies.

    Args:
        input_tensor: On the device.
        memory_config: Where it goes; DRAM by default.
        output_dtype: Of the copy; None for that of the tensor.

    Raises:
        OutOfMemoryError: No room.
    """
    device = required_device("sharded_to_interleaved", input_tensor)
    if not input_tensor.spec.memory_config.is_sharded():
        return input_tensor
    data_format = None if output_dtype is None else output_dtype.format
    place = DRAM_MEMORY_CONFIG if memory_config is None else memory_config
    plan = kept_plan(plan_sharded_to_interleaved, device, input_tensor.spec, place, data_format=data_format)
    return carried_out("sharded_to_interleaved", plan, input_tensor, device)


@on_device
@checked
def reshard(input_tensor: Tensor, output_memory_config: MemoryConfig, output_tensor: Tensor | None = None) -> Tensor:
    """A copy of a sharded tensor in other shards.

    Args:
        input_tensor: On the device.
        output_memory_config: The other shards.
        output_tensor: A tensor of the same shape that takes the result.

    Raises:
        ArgumentError: On a strict device, rows whose parts the real library misplaces.
        DeviceError: A tensor or its shards are not what the program takes, or ``output_tensor`` is another kind of
            tensor.
        OutOfMemoryError: No room.
    """
    device = required_device("reshard", input_tensor)
    plan = kept_plan(plan_reshard, device, input_tensor.spec, output_memory_config)
    if device.strict:
        require_right_rows(plan)
    dealt = carried_out("reshard", plan, input_tensor, device)
    return dealt if output_tensor is None else stored_in(output_tensor, dealt)


@on_device
@checked
def move(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The tensor released and allocated again, as high in its memory as it can lie.

    Args:
        input_tensor: On the device; it is gone afterwards.
        memory_config: Where it goes; None for where it is.

    Raises:
        DeviceError: It is sharded, and the place is not.
        OutOfMemoryError: No room.
    """
    device = required_device("move", input_tensor, lost="Tensor is not allocated")
    plan = kept_plan(plan_move, device, input_tensor.spec, memory_config)
    return carried_out("move", plan, input_tensor, device)


def reallocate(tensor: Tensor, memory_config: MemoryConfig | None = None) -> Tensor:
    """`move` under another name."""
    return move(tensor, memory_config=memory_config)


@on_device
@checked
def tilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    use_multicore: bool = True,
    use_low_perf: object = None,
    sub_core_grids: object = None,
) -> Tensor:
    """Rows as tiles; they must be whole tiles.

    Args:
        input_tensor: Rows on the device.
        memory_config: Where the tiles go; None for where the rows are.
        dtype: Of the tiles; None for that of the rows.
        use_multicore: False has one core do it.
        use_low_perf: Not simulated.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: Rows or shards are no whole tiles.
        OutOfMemoryError: No room.
    """
    require_left_out("tilize", use_low_perf=use_low_perf, sub_core_grids=sub_core_grids)
    device = required_device("tilize", input_tensor)
    data_format = None if dtype is None else dtype.format
    one = not use_multicore
    plan = kept_plan(
        plan_tilize, device, input_tensor.spec, place=memory_config, data_format=data_format, on_one_core=one
    )
    return carried_out("tilize", plan, input_tensor, device)


@on_device
@checked
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
    """Rows as tiles, padded to a shape; a tensor in tiles itself.

    Args:
        input_tensor: Rows on the device.
        output_tensor_shape: Shape with padding.
        pad_value: What the padding holds; it is no part of the values here, which have no padding.
        memory_config: Where the tiles go; None for where the rows are.
        dtype: Of the tiles; None for that of the rows.
        use_multicore: False has one core do it.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: The tensor is larger than the shape, or shards are no whole tiles.
        OutOfMemoryError: No room.
    """
    require_left_out("tilize_with_val_padding", sub_core_grids=sub_core_grids)
    shape = _integers("output_tensor_shape", output_tensor_shape)
    device = required_device("tilize_with_val_padding", input_tensor)
    if input_tensor.layout is Layout.TILE:
        return input_tensor
    data_format = None if dtype is None else dtype.format
    plan = plan_tilize(
        input_tensor.spec,
        device.spec,
        padded_shape=shape,
        pads=True,
        on_one_core=not use_multicore,
        place=memory_config,
        data_format=data_format,
    )
    return carried_out("tilize_with_val_padding", plan, input_tensor, device)


@on_device
@checked
def tilize_with_zero_padding(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Rows as tiles, the last of them filled with zeros; arguments as of `tilize_with_val_padding`."""
    require_left_out("tilize_with_zero_padding", sub_core_grids=sub_core_grids)
    device = required_device("tilize_with_zero_padding", input_tensor)
    if input_tensor.layout is Layout.TILE:
        return input_tensor
    plan = plan_tilize(
        input_tensor.spec,
        device.spec,
        pads=True,
        on_one_core=not use_multicore,
        place=memory_config,
    )
    return carried_out("tilize_with_zero_padding", plan, input_tensor, device)


@on_device
@checked
def untilize(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig | None = None,
    use_multicore: bool = True,
    sub_core_grids: object = None,
) -> Tensor:
    """Tiles as rows of the same shape; block floats become bfloat16.

    Args:
        input_tensor: Tiles on the device.
        memory_config: Where the rows go; None for where the tiles are.
        use_multicore: False has one core do it.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentError: What is not simulated is asked for, or (on a strict device) the library would take rows of
            padding between the images of shards for rows of the tensor.
        DeviceError: Shards do not hold the rows.
        OutOfMemoryError: No room.
    """
    require_left_out("untilize", sub_core_grids=sub_core_grids)
    device = required_device("untilize", input_tensor)
    place = input_tensor.spec.memory_config if memory_config is None else memory_config
    if device.strict and keeps_padding(input_tensor.spec, place):
        raise ArgumentError(
            f"untilize: images of {input_tensor.shape[-2]} rows are padded to {input_tensor.padded_shape[-2]} in the "
            "shards, and the library takes the padding for rows of the result; move the tensor to interleaved memory "
            "first, or open the device with strict=False"
        )
    plan = kept_plan(plan_untilize, device, input_tensor.spec, place=memory_config, on_one_core=not use_multicore)
    return carried_out("untilize", plan, input_tensor, device)


@on_device
@checked
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
        input_tensor: Tiles on the device.
        output_tensor_end: The last index that is kept, on each axis; padding is not.
        memory_config: Where the rows go; None for where the tiles are.
        use_multicore: False has one core do it, between interleaved places.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentTypeError: ``output_tensor_end`` is no sequence of integers.
        ArgumentError: What is not simulated is asked for, or the end lies beyond the tensor.
        OutOfMemoryError: No room.
    """
    require_left_out("untilize_with_unpadding", sub_core_grids=sub_core_grids)
    shape = tuple(end + 1 for end in _integers("output_tensor_end", output_tensor_end))
    sides = tuple(input_tensor.shape)
    if len(shape) != len(sides) or any(kept > side for kept, side in zip(shape, sides, strict=True)):
        raise ArgumentError(f"untilize_with_unpadding: output_tensor_end must lie within {list(sides)}, before padding")
    device = required_device("untilize_with_unpadding", input_tensor)
    one = not use_multicore
    plan = plan_untilize_with_unpadding(input_tensor.spec, shape, device.spec, place=memory_config, on_one_core=one)
    return carried_out("untilize_with_unpadding", plan, input_tensor, device)


def _integers(name: str, given: object) -> tuple[int, ...]:
    if not isinstance(given, Sequence) or not all(isinstance(one, int) for one in given):
        raise ArgumentTypeError(f"{name} must be a sequence of integers, not {shown(given)}")
    return tuple(given)
