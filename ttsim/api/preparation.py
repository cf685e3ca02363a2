"""Preparing weights and bias ahead of a transposed convolution, laid out as the call itself would."""

from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.conv.arguments import ConvCall, ConvConfig, Operand
from ops.planners.conv.checks import check_sizes, stride_given
from ops.planners.conv.conv_transpose2d import (
    CONV_TRANSPOSE2D,
    check_arguments,
    check_slices,
    plans_in_dram,
    validate_bias_preparation,
    validate_weights_preparation,
)
from ops.planners.conv.preparation import plan_bias_preparation, plan_rows, plan_weights_preparation
from ops.planners.conv.strict import groups_given, raw_weight, refuse_first
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
def prepare_conv_transpose2d_weights(
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
    output_padding: Pair = (0, 0),
    dilation: Pair,
    has_bias: bool,
    groups: int,
    device: Device,
    input_dtype: DataType,
    output_dtype: DataType | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    mirror_kernel: bool = True,
) -> Tensor:
    """The weights as conv_transpose2d with the same arguments prepares them, on the device.

    Args:
        weight_tensor: [C, O / groups, kernel height, kernel width].
        input_memory_config: Of the input to come, as the other input_... arguments.
        input_layout: See input_memory_config.
        weights_format: "IOHW"; accepted as in ttnn, which does not read it.
        in_channels: This and the others: see conv_transpose2d.
        out_channels: See there.
        batch_size: See there.
        input_height: See there.
        input_width: See there.
        kernel_size: See there.
        stride: See there.
        padding: See there.
        output_padding: See there.
        dilation: See there.
        has_bias: Whether the call will have a bias.
        groups: See there.
        device: See there.
        input_dtype: See input_memory_config.
        output_dtype: ``dtype`` there.
        conv_config: See there.
        compute_config: See there.
        dram_slice_config: See there.
        mirror_kernel: See there.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other.
        OutOfMemoryError: No room in DRAM.
    """
    require_allocated(weight_tensor)
    arguments = ConvCall(
        rules=CONV_TRANSPOSE2D,
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
        output_padding=two(output_padding),
        dilation=two(dilation),
        groups=groups,
        out_format=None if output_dtype is None else output_dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        slice_config=None if dram_slice_config is None else dram_slice_config.argument(),
        mirror_kernel=mirror_kernel,
    )
    arguments = as_prepared(arguments)
    validate_weights_preparation(arguments)
    return _prepare(arguments, "weight", weight_tensor.cpu(), device, "prepare_conv_transpose2d_weights")


@on_device
@checked_as("")
def prepare_conv_transpose2d_bias(
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
    dram_slice_config: Conv2dSliceConfig | None = None,
) -> Tensor:
    """The bias as conv_transpose2d with the same arguments prepares it, on the device.

    Args:
        bias_tensor: [1, 1, 1, O], on the host.
        input_memory_config: This and the others: see prepare_conv_transpose2d_weights.
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
        dram_slice_config: See there.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other.
        OutOfMemoryError: No room in DRAM.
    """
    require_allocated(bias_tensor)
    kernel = two(kernel_size)
    arguments = ConvCall(
        rules=CONV_TRANSPOSE2D,
        input=future_input(
            (batch_size, input_height, input_width, in_channels), input_dtype, input_layout, input_memory_config
        ),
        weight=placeholder((in_channels, out_channels // max(groups, 1), *kernel)),
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
        slice_config=None if dram_slice_config is None else dram_slice_config.argument(),
    )
    arguments = as_prepared(arguments)
    validate_bias_preparation(arguments)
    return _prepare(arguments, "bias", bias_tensor, device, "prepare_conv_transpose2d_bias")


def _prepare(arguments: ConvCall, role: str, tensor: Tensor, device: Device, function: str) -> Tensor:
    refuse_first(function, arguments, (stride_given,))
    check_arguments(arguments)
    refuse_first(function, arguments, (groups_given, raw_weight))
    check_sizes(arguments, device.spec)
    arguments = within_reach(arguments)
    check_slices(arguments)
    planned = plan_weights_preparation if role == "weight" else plan_bias_preparation
    before = plan_rows(arguments, device.spec) if role == "bias" and plans_in_dram(arguments) else None
    return prepared_operand(arguments, planned, role, tensor, device, function, before=before)
