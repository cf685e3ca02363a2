"""ttnn.permute, transpose, pad, and the two conversions of ttnn.experimental."""

from collections.abc import Sequence
from numbers import Real

from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.shape.pad import plan_pad, require_right_padding
from ops.planners.shape.permute import plan_permute, plan_transpose, require_known_numbers
from ops.planners.shape.plan import (
    axes_of,
    axis_of,
    plan_convert_to_chw,
    plan_convert_to_hwc,
    require_written_channels,
)
from ttsim.api.device_calls import carried_out, kept_plan, require_left_out, required_device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType
from ttsim.types.signature import checked, checked_as, require_type, require_type_or_none, required_integer


@on_device
@checked
def permute(
    input_tensor: Tensor, dims: object, *, memory_config: MemoryConfig | None = None, pad_value: object = None
) -> Tensor:
    """The axes in another order.

    Args:
        input_tensor: On the device.
        dims: The axis of the tensor that each axis of the result is.
        memory_config: Where the result goes; None for where the tensor is.
        pad_value: Accepted as in ttnn; padding is no part of the values here.

    Raises:
        ArgumentError: What is not simulated is asked for, or (on a strict device) what gives wrong numbers.
        DeviceError: ``dims`` is no order of the axes, or the tensor is on the host.
        OutOfMemoryError: No room.
    """
    if not isinstance(dims, Sequence):
        raise ArgumentTypeError(f"permute: dims must be a sequence of integers, not {shown(dims)}")
    device = required_device("permute", input_tensor)
    order = axes_of([required_integer("permute", "dims", one) for one in dims], len(input_tensor.shape))
    plan = kept_plan(plan_permute, device, input_tensor.spec, order, place=memory_config)
    if device.strict:
        require_known_numbers(plan)
    return carried_out("permute", plan, input_tensor, device)


@on_device
def transpose(
    input_tensor: Tensor,
    dim1: int,
    dim2: int,
    *,
    memory_config: MemoryConfig | None = None,
    pad_value: object = None,
) -> Tensor:
    """Two axes swapped; arguments and errors as of `permute`."""
    require_type("transpose", Tensor, input_tensor=input_tensor)
    require_type_or_none("transpose", MemoryConfig, memory_config=memory_config)
    rank = len(input_tensor.shape)
    first, second = (required_integer("transpose", name, one) for name, one in (("dim1", dim1), ("dim2", dim2)))
    device = required_device("transpose", input_tensor)
    axes = axis_of(first, rank, "dim1"), axis_of(second, rank, "dim2")
    plan = kept_plan(plan_transpose, device, input_tensor.spec, *axes, place=memory_config)
    if device.strict:
        require_known_numbers(plan)
    return carried_out("transpose", plan, input_tensor, device)


@on_device
@checked
def pad(
    input_tensor: Tensor,
    padding: object,
    value: object = 0.0,
    *,
    use_multicore: bool = True,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """A number around a tensor.

    Args:
        input_tensor: On the device; rows, or tiles that are padded behind alone.
        padding: (before, behind) for each of the last axes.
        value: The number.
        use_multicore: False, which has one core pad, changes nothing for shards, and is not simulated of others.
        memory_config: Where the result goes; None for where the tensor is.
        sub_core_grids: Not simulated.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The library takes programs that are not simulated, or (on a strict device) would write another
            number, or lose numbers of the tensor.
        DeviceError: Tiles are padded in front, or the tensor is on the host.
        OutOfMemoryError: No room.
    """
    require_left_out("pad", sub_core_grids=sub_core_grids)
    rows_in_shards = input_tensor.spec.memory_config.is_sharded() and input_tensor.layout is Layout.ROW_MAJOR
    if not use_multicore and not rows_in_shards:
        raise ArgumentError("pad: use_multicore=False is simulated of rows in shards alone; leave it out")
    rank = len(input_tensor.shape)
    if not isinstance(padding, Sequence) or len(padding) > rank or not isinstance(value, Real):
        raise ArgumentTypeError(f"pad: padding must be pairs for at most {rank} axes, not {shown(padding)}")
    pairs = [tuple(required_integer("pad", "padding", one) for one in pair) for pair in padding]
    if any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise ArgumentTypeError(f"pad: padding must be pairs of numbers of at least 0, not {shown(padding)}")
    around = tuple([(0, 0)] * (rank - len(pairs)) + [(pair[0], pair[1]) for pair in pairs])
    device = required_device("pad", input_tensor)
    plan = plan_pad(input_tensor.spec, around, float(value), device.spec, place=memory_config)
    if device.strict:
        require_right_padding(plan, input_tensor.spec, around, float(value))
    return carried_out("pad", plan, input_tensor, device)


@on_device
@checked_as("ttnn.experimental.")
def convert_to_hwc(
    input: Tensor, *, memory_config: MemoryConfig | None = None, dtype: DataType | None = None
) -> Tensor:
    """[1, B, C, H*W] as [1, 1, B*H*W, C], with channels up to a multiple of 16 bytes.

    The channels behind those of the tensor are what lay in memory before: a strict device refuses them, and else they
    are zeros here.

    Args:
        input: Rows in WIDTH shards, in L1 or DRAM.
        memory_config: HEIGHT shards of the result; None for the cores of the tensor.
        dtype: Of the result; None for that of the tensor.

    Raises:
        ArgumentError: On a strict device, C fills no multiple of 16 bytes.
        DeviceError: The tensor is sharded in another way, or on the host.
        OutOfMemoryError: No room.
    """
    device = required_device("convert_to_hwc", input)
    data_format = None if dtype is None else dtype.format
    plan = plan_convert_to_hwc(input.spec, device.spec, place=memory_config, data_format=data_format)
    if device.strict:
        require_written_channels(input.spec, plan.tensors["output"])
    return carried_out("experimental.convert_to_hwc", plan, input, device)


@on_device
@checked_as("ttnn.experimental.")
def convert_to_chw(input: Tensor, *, dtype: DataType | None = None) -> Tensor:
    """[1, 1, H*W, C] as [1, 1, C, H*W].

    Args:
        input: Tiles in HEIGHT shards, in L1.
        dtype: Of the result; None for that of the tensor.

    Raises:
        DeviceError: The tensor is sharded in another way, on the host, or a block float without a dtype.
        OutOfMemoryError: No room.
    """
    device = required_device("convert_to_chw", input)
    plan = plan_convert_to_chw(input.spec, device.spec, data_format=None if dtype is None else dtype.format)
    return carried_out("experimental.convert_to_chw", plan, input, device)
