"""ttnn's functions that change the layout or the memory config of a tensor."""

from collections.abc import Callable, Hashable, Sequence
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
from device.plan import Plan
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
from ttsim.api.device_calls import carried_out, kept_plan, require_left_out, required_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import stored_in
from ttsim.runtime.types.call import Call, checked, function_of, integers, param
from ttsim.runtime.types.tensors import DataType


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


class LayoutChange(Call):
    """What all changes of layout have."""

    input_tensor: Tensor = param("Rows or tiles on the device.", kw_only=False)
    memory_config: MemoryConfig | None = param("Where the result goes; None for where the tensor is.", default=None)
    use_multicore: bool = param("False has one core do it.", default=True)
    sub_core_grids: object = param("Not simulated.", default=None)

    def device(self) -> Device:
        """Where the tensor is; refuses arguments that are not simulated, and a tensor on the host."""
        require_left_out(self._name, sub_core_grids=self.sub_core_grids)
        return required_device(self._name, self.input_tensor)

    def changed(self, planner: Callable[..., Plan], *sizes: Hashable, **options: Hashable) -> Tensor:
        """The result of a plan, by the planner of the tensor's spec, sizes and the spec of the device."""
        device, single_core = self.device(), not self.use_multicore
        plan = kept_plan(
            planner,
            device,
            self.input_tensor.spec,
            *sizes,
            place=self.memory_config,
            on_one_core=single_core,
            **options,
        )
        return carried_out(self._name, plan, self.input_tensor, device)


class Tilize(
    LayoutChange,
    name="tilize",
    parameters="input_tensor memory_config dtype use_multicore use_low_perf sub_core_grids",
):
    """Rows as tiles; they must be whole tiles.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: Rows or shards are no whole tiles.
        OutOfMemoryError: No room.
    """

    dtype: DataType | None = param("Of the tiles; None for that of the rows.", default=None)
    use_low_perf: object = param("Not simulated.", default=None)

    def run(self) -> Tensor:
        """Changes the layout."""
        require_left_out(self._name, use_low_perf=self.use_low_perf)
        return self.changed(plan_tilize, data_format=None if self.dtype is None else self.dtype.format)


class TilizeWithValPadding(
    LayoutChange,
    name="tilize_with_val_padding",
    parameters="input_tensor output_tensor_shape pad_value memory_config dtype use_multicore sub_core_grids",
):
    """Rows as tiles, padded to a shape; a tensor in tiles itself.

    Raises:
        ArgumentError: What is not simulated is asked for.
        DeviceError: The tensor is larger than the shape, or shards are no whole tiles.
        OutOfMemoryError: No room.
    """

    output_tensor_shape: object = param("Shape with padding.", kw_only=False)
    pad_value: object = param(
        "What the padding holds; it is no part of the values here, which have no padding.", kw_only=False
    )
    dtype: DataType | None = param("Of the tiles; None for that of the rows.", default=None)

    def run(self) -> Tensor:
        """Changes the layout."""
        require_left_out(self._name, sub_core_grids=self.sub_core_grids)
        shape = _integers("output_tensor_shape", self.output_tensor_shape)
        self.device()
        if self.input_tensor.layout is Layout.TILE:
            return self.input_tensor
        data_format = None if self.dtype is None else self.dtype.format
        return self.changed(plan_tilize, padded_shape=shape, pads=True, data_format=data_format)


class TilizeWithZeroPadding(LayoutChange, name="tilize_with_zero_padding"):
    """Rows as tiles, the last of them filled with zeros; a tensor in tiles itself."""

    def run(self) -> Tensor:
        """Changes the layout."""
        self.device()
        if self.input_tensor.layout is Layout.TILE:
            return self.input_tensor
        return self.changed(plan_tilize, pads=True)


class Untilize(LayoutChange, name="untilize"):
    """Tiles as rows of the same shape; block floats become bfloat16.

    Raises:
        ArgumentError: What is not simulated is asked for, or (on a strict device) the library would take rows of
            padding between the images of shards for rows of the tensor.
        DeviceError: Shards do not hold the rows.
        OutOfMemoryError: No room.
    """

    def run(self) -> Tensor:
        """Changes the layout."""
        device, tensor = self.device(), self.input_tensor
        place = tensor.spec.memory_config if self.memory_config is None else self.memory_config
        if device.strict and keeps_padding(tensor.spec, place):
            raise ArgumentError(
                f"untilize: images of {tensor.shape[-2]} rows are padded to {tensor.padded_shape[-2]} in the "
                "shards, and the library takes the padding for rows of the result; move the tensor to interleaved "
                "memory first, or open the device with strict=False"
            )
        return self.changed(plan_untilize)


class UntilizeWithUnpadding(
    LayoutChange,
    name="untilize_with_unpadding",
    parameters="input_tensor output_tensor_end memory_config use_multicore sub_core_grids",
):
    """The first rows and columns of tiles as rows; block floats become bfloat16.

    Raises:
        ArgumentTypeError: ``output_tensor_end`` is no sequence of integers.
        ArgumentError: What is not simulated is asked for, or the end lies beyond the tensor.
        OutOfMemoryError: No room.
    """

    output_tensor_end: object = param("The last index that is kept, on each axis; padding is not.", kw_only=False)
    use_multicore: bool = param("False has one core do it, between interleaved places.", default=True)

    def run(self) -> Tensor:
        """Changes the layout."""
        require_left_out(self._name, sub_core_grids=self.sub_core_grids)
        shape = tuple(end + 1 for end in _integers("output_tensor_end", self.output_tensor_end))
        sides = tuple(self.input_tensor.shape)
        if len(shape) != len(sides) or any(length > side for length, side in zip(shape, sides, strict=True)):
            raise ArgumentError(f"{self._name}: output_tensor_end must lie within {list(sides)}, before padding")
        return self.changed(plan_untilize_with_unpadding, shape)


tilize = on_device(function_of(Tilize))
tilize_with_val_padding = on_device(function_of(TilizeWithValPadding))
tilize_with_zero_padding = on_device(function_of(TilizeWithZeroPadding))
untilize = on_device(function_of(Untilize))
untilize_with_unpadding = on_device(function_of(UntilizeWithUnpadding))


def _integers(name: str, values: object) -> tuple[int, ...]:
    if not isinstance(values, Sequence) or not all(isinstance(value, int) for value in values):
        raise ArgumentTypeError(f"{name} must be a sequence of integers, not {shown(values)}")
    return tuple(values)
