"""ttnn.conv2d: checks what the user gave, has it planned and run, and hands back what was asked for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, ConvConfig
from ops.planners.conv.checks import check_sizes
from ops.planners.conv.conv2d import (
    CONV2D,
    check_arguments,
    check_strict,
    conv2d_reads_free_l1,
    left_of,
    output_size,
    plan_conv2d,
    validate,
)
from ops.planners.conv.strict import check_strict_plan
from ttsim.api.convolution_calls import handed_back, misfit_shape, named, operand, planning, told_lost_outputs
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig
from ttsim.types.signature import Padding, Pair, checked, four, two
from ttsim.types.tensors import DataType


@on_device
@checked
def conv2d(
    *,
    input_tensor: Tensor,
    weight_tensor: Tensor,
    device: Device,
    in_channels: int,
    out_channels: int,
    batch_size: int,
    input_height: int,
    input_width: int,
    kernel_size: Pair,
    stride: Pair = (1, 1),
    padding: Padding = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None,
    slice_config: Conv2dSliceConfig | None = None,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
) -> Any:
    """Convolution of a channels-last tensor.

    Args:
        input_tensor: [N, H, W, C] or [1, 1, N*H*W, C], on the host or the device.
        weight_tensor: [O, C / groups, kernel height, kernel width] on the host, or on the device in rows, from where it
            is fetched; or prepared on the device.
        device: Where to run.
        in_channels: C.
        out_channels: O.
        batch_size: N.
        input_height: H.
        input_width: W.
        kernel_size: Height and width.
        stride: Down and across.
        padding: (height, width), or (top, bottom, left, right): zeros around the image.
        dilation: Down and across.
        groups: Groups of channels; 0 counts as 1, as in the real library.
        dtype: Of the output; None for the input's.
        bias_tensor: [1, 1, 1, O], where weight_tensor may be.
        conv_config: Blocks and shards.
        compute_config: Fidelity and accumulators; None for HiFi4, with float32 sums if input and weights are float32.
        memory_config: Place of the output, for inputs in L1.
        slice_config: Slices of inputs in DRAM.
        return_output_dim: Return (height, width), too.
        return_weights_and_bias: Return the prepared weights and bias, too; a later call may take them.

    Returns:
        The output [1, 1, N*OH*OW, O]; or (output, (OH, OW)), or (output, (weights, bias)), or all three.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other, ask for what is not simulated (activation reuse, the depthwise
            convolution of a single row, folded windows of padded shards), or (on a strict device) would give a wrong
            result.
        DeviceError: The call does not fit the device.
    """
    require_allocated(input_tensor, weight_tensor, bias_tensor)
    weight_tensor = fetched(weight_tensor)
    bias_tensor = None if bias_tensor is None else fetched(bias_tensor)
    arguments = ConvCall(
        rules=CONV2D,
        input=operand(input_tensor),
        weight=operand(weight_tensor),
        bias=None if bias_tensor is None else operand(bias_tensor),
        in_channels=in_channels,
        out_channels=out_channels,
        batch_size=batch_size,
        input_height=input_height,
        input_width=input_width,
        kernel_size=two(kernel_size),
        stride=two(stride),
        padding=four(padding),
        dilation=two(dilation),
        groups=groups or 1,
        out_format=None if dtype is None else dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        memory_config=memory_config,
        slice_config=None if slice_config is None else slice_config.argument(),
    )
    tensors = named(input_tensor, weight_tensor, bias_tensor)
    results, output_dim = convolved("ttnn.conv2d", arguments, tensors, device, returns_weights=return_weights_and_bias)
    return handed_back(
        results, output_dim=output_dim if return_output_dim else None, weights_and_bias=return_weights_and_bias
    )


def convolved(
    name: str, arguments: ConvCall, tensors: Mapping[str, Tensor], device: Device, *, returns_weights: bool
) -> tuple[dict[str, Tensor], tuple[int, int]]:
    """Checks a call, has it planned and run.

    Args:
        name: Of the function that was called, as captures have it.
        arguments: The call.
        tensors: Its tensors by their names in its plan.
        device: Where.
        returns_weights: Whether prepared weights and bias are results, too.

    Returns:
        The results by their roles; height and width of the output.
    """
    asked = planning(
        _sound_plan,
        arguments,
        device,
        reads_free_l1=conv2d_reads_free_l1(arguments),
        returns_weights=returns_weights,
    )
    if not asked.is_kept:
        _require_valid(arguments, device)
    device.asked = arguments
    plan = asked.plan()
    with device.function(name), told_lost_outputs(arguments):
        results = run(
            plan,
            tensors,
            device,
            useful_flops=definition_flops(arguments),
            asked=arguments,
            input_shape=misfit_shape(arguments, tensors["input"]),
        )
    return results, output_size(arguments)


def _require_valid(call: ConvCall, device: Device) -> None:
    """Raises ArgumentError for a call that cannot be planned, DeviceError for one that no DRAM holds."""
    validate(call)
    check_arguments(call, free_l1_bytes=free_l1_bytes(device))
    check_sizes(call, device.spec)
    if device.strict:
        check_strict(call)


def _sound_plan(call: ConvCall, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool, strict: bool) -> Plan:
    """The plan of a valid call; raises ArgumentError if it is to be strict and the plan would give a wrong result."""
    plan = plan_conv2d(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    if strict:
        check_strict_plan(plan, left_of(call, plan))
    return plan


def fetched(tensor: Tensor) -> Tensor:
    """Weights or bias as they are prepared: those on the device that still have to be are brought to the host first.

    They lie in rows, or have another shape than a matrix.
    Where there are no values, what is brought is zeros, which nothing reads.
    """
    matrix = tensor.layout is Layout.TILE and tensor.spec.shape[:-2] == (1, 1)
    if tensor.device() is None or matrix:
        return tensor
    if tensor.buffer.written:
        return tensor.cpu()
    spec = tensor.spec
    zeros = np.broadcast_to(spec.data_format.storage.type(0), spec.shape)
    return Tensor.of_host(zeros, TensorSpec(spec.shape, spec.data_format, spec.layout))


def definition_flops(call: ConvCall) -> int:
    """Multiplications and additions of the definition: every output sees every kernel position, padding included."""
    height, width = output_size(call)
    outputs = call.batch_size * height * width * call.out_channels
    return 2 * outputs * (call.in_channels // call.groups) * call.kernel_size[0] * call.kernel_size[1]
