"""Preparing weights and bias ahead of a conv2d, laid out as the real library prepares them for it."""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.conv.arguments import (
    ConvCall,
    ConvConfig,
    Folding,
    Operand,
    SliceConfig,
    SliceType,
    is_matmul,
    prepared_as_matmul,
    takes_l1_path,
)
from ops.planners.conv.checks import check_sizes, stride_given
from ops.planners.conv.conv2d import (
    CONV2D,
    check_arguments,
    folded_call,
    folds,
    validate_prepared,
    validate_prepared_blocks,
)
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.preparation import plan_bias_preparation, plan_rows, plan_weights_preparation
from ops.planners.conv.strict import groups_given, refuse_first
from ttsim.api.convolution_calls import operand
from ttsim.api.prepared_operand import as_prepared, future_input, placeholder, prepared_operand, within_reach
from ttsim.runtime.device import Device
from ttsim.runtime.execution import on_device, require_allocated
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig
from ttsim.types.signature import Padding, Pair, checked_as, four, two
from ttsim.types.tensors import DataType


@on_device
@checked_as("")
def prepare_conv_weights(
    *,
    weight_tensor: Tensor,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    weights_format: str,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair,
    has_bias: bool,
    groups: int,
    device: Device,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    slice_config: Conv2dSliceConfig | None = None,
) -> Tensor:
    """The weights as conv2d with the same arguments prepares them, on the device.

    Args:
        weight_tensor: [O, C / groups, kernel height, kernel width].
        input_memory_config: Of the input to come, as the other input_... arguments.
        input_layout: See input_memory_config.
        weights_format: "OIHW".
        in_channels: This and the others: see conv2d.
        out_channels: See there.
        batch_size: See there.
        input_height: See there.
        input_width: See there.
        kernel_size: See there.
        stride: See there.
        padding: See there.
        dilation: See there.
        has_bias: Whether the call will have a bias.
        groups: See there.
        device: See there.
        input_dtype: See input_memory_config.
        output_dtype: ``dtype`` there.
        conv_config: See there.
        compute_config: See there.
        slice_config: See there.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other.
        OutOfMemoryError: No room in DRAM.
    """
    require_allocated(weight_tensor)
    arguments = ConvCall(
        rules=CONV2D,
        input=future_input(
            (batch_size, input_height, input_width, in_channels), input_dtype, input_layout, input_memory_config
        ),
        weight=Operand(spec=weight_tensor.cpu().spec, on_host=True),
        bias=placeholder((1, 1, 1, out_channels)) if has_bias else None,
        in_channels=in_channels,
        out_channels=out_channels,
        batch_size=batch_size,
        input_height=input_height,
        input_width=input_width,
        kernel_size=two(kernel_size),
        stride=two(stride),
        padding=four(padding),
        dilation=two(dilation),
        groups=groups,
        out_format=None if output_dtype is None else output_dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        slice_config=None if slice_config is None else slice_config.argument(),
    )
    return _prepare(arguments, "weight", weight_tensor.cpu(), device, "prepare_conv_weights")


@on_device
@checked_as("")
def prepare_conv_bias(
    *,
    bias_tensor: Tensor,
    input_memory_config: MemoryConfig,
    input_layout: Layout,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Pair,
    stride: Pair,
    padding: Padding,
    dilation: Pair,
    device: Device,
    groups: int,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    slice_config: Conv2dSliceConfig | None = None,
) -> Tensor:
    """The bias as conv2d with the same arguments prepares it, on the device.

    Args:
        bias_tensor: [1, 1, 1, O], on the host.
        input_memory_config: This and the others: see prepare_conv_weights.
        input_layout: See there.
        in_channels: See there.
        out_channels: See there.
        batch_size: See there.
        input_height: See there.
        input_width: See there.
        kernel_size: See there.
        stride: See there.
        padding: See there.
        dilation: See there.
        device: See there.
        groups: See there.
        input_dtype: See there.
        output_dtype: See there.
        conv_config: Needed, with weights_dtype: the bias is prepared in that data type.
        compute_config: See there.
        slice_config: See there.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other.
        OutOfMemoryError: No room in DRAM.
    """
    require_allocated(bias_tensor)
    kernel = two(kernel_size)
    arguments = ConvCall(
        rules=CONV2D,
        input=future_input(
            (batch_size, input_height, input_width, in_channels), input_dtype, input_layout, input_memory_config
        ),
        weight=placeholder((out_channels, in_channels // max(groups, 1), *kernel)),
        bias=operand(bias_tensor),
        in_channels=in_channels,
        out_channels=out_channels,
        batch_size=batch_size,
        input_height=input_height,
        input_width=input_width,
        kernel_size=kernel,
        stride=two(stride),
        padding=four(padding),
        dilation=two(dilation),
        groups=groups,
        out_format=None if output_dtype is None else output_dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        slice_config=None if slice_config is None else slice_config.argument(),
    )
    return _prepare(arguments, "bias", bias_tensor, device, "prepare_conv_bias")


def _prepare(arguments: ConvCall, role: str, tensor: Tensor, device: Device, function: str) -> Tensor:
    refuse_first(function, arguments, (stride_given,))
    arguments = _in_one_piece(_with_kept_shards(as_prepared(arguments)))
    validate_prepared(arguments, role)
    check_arguments(arguments)
    refuse_first(function, arguments, (groups_given,))
    check_sizes(arguments, device.spec)
    arguments = _folded(arguments) if folds(arguments) else arguments
    validate_prepared_blocks(arguments)
    if is_matmul(arguments):
        return prepared_operand(arguments, plan_convolution, role, tensor, device, function)
    planned = plan_weights_preparation if role == "weight" else plan_bias_preparation
    before = None if takes_l1_path(arguments) or prepared_as_matmul(arguments) else plan_rows(arguments, device.spec)
    return prepared_operand(within_reach(arguments), planned, role, tensor, device, function, before=before)


def _in_one_piece(call: ConvCall) -> ConvCall:
    """A convolution of a single row, which the real library takes for one that is never cut into slices."""
    if call.slice_config is not None or call.input_height != 1 or call.kernel_size[0] != 1:
        return call
    return replace(call, slice_config=SliceConfig(slice_type=SliceType.L1_FULL))


def _with_kept_shards(call: ConvCall) -> ConvCall:
    """A call without a shard_layout, whose shards are taken to stay where they are."""
    place, config = call.input.spec.memory_config, call.conv_config
    moved = config.shard_layout is not None or config.reshard_if_not_optimal or config.override_sharding_config
    if moved or is_matmul(call) or place.shard_spec is None:
        return call
    return replace(call, conv_config=replace(config, shard_layout=place.memory_layout))


def _folded(call: ConvCall) -> ConvCall:
    """What is left of a call whose windows are folded into channels."""
    (rows, columns), (top, bottom, left, right), given = call.stride, call.padding, call.input.spec
    height, width = (call.input_height + top + bottom) // rows, (call.input_width + left + right) // columns
    shape = (call.batch_size, height, width, rows * columns * call.in_channels)
    folded = folded_call(call, TensorSpec(shape, given.data_format, given.layout, given.memory_config))
    return replace(folded, folding=Folding(kernel=call.kernel_size, stride=call.stride, weights=True))
