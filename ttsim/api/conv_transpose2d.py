"""ttnn.conv_transpose2d: checks what the user gave, has it planned and run, and hands back what was asked for.

``lowering="phase"``, which computes each output phase by itself, is this library's own and not in ttnn.
"""

from collections.abc import Mapping
from typing import Any

from device.errors import ArgumentError, CircularBufferError, OutOfMemoryError, shown
from device.memory.memory_config import MemoryConfig
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.conv.arguments import ConvCall, ConvConfig, output_lengths
from ops.planners.conv.checks import check_sizes
from ops.planners.conv.conv_transpose2d import (
    CONV_TRANSPOSE2D,
    CONV_TRANSPOSE2D_BY_PHASES,
    check_arguments,
    check_phase_weights,
    check_phases,
    check_slices,
    check_strict,
    validate,
)
from ops.planners.conv.phase_program import runs_by_phases
from ops.planners.conv.plan import plan_convolution, reads_free_l1
from ops.planners.conv.strict import check_strict_plan
from ops.planners.onednn.plan import Lowering
from ttsim.api.convolution_calls import handed_back, misfit_shape, named, operand, planning, told_lost_outputs
from ttsim.diagnose import MachineSnapshot, explain_oom
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig
from ttsim.types.signature import Padding, Pair, checked, four, two
from ttsim.types.tensors import DataType


@on_device
@checked
def conv_transpose2d(
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
    output_padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
    dtype: DataType | None = None,
    bias_tensor: Tensor | None = None,
    conv_config: Conv2dConfig | None = None,
    compute_config: WormholeComputeKernelConfig | None = None,
    memory_config: MemoryConfig | None = None,
    dram_slice_config: Conv2dSliceConfig | None = None,
    mirror_kernel: bool = True,
    return_output_dim: bool = False,
    return_weights_and_bias: bool = False,
    lowering: str = "frame",
) -> Any:
    """Transposed convolution of a channels-last tensor.

    Args:
        input_tensor: [N, H, W, C] or [1, 1, N*H*W, C], on the host or the device.
        weight_tensor: [C, O / groups, kernel height, kernel width] on the host, or prepared on the device.
        device: Where to run.
        in_channels: C.
        out_channels: O.
        batch_size: N.
        input_height: H.
        input_width: W.
        kernel_size: Height and width.
        stride: Down and across.
        padding: (height, width), or (top, bottom, left, right): what is cut off the full output.
        output_padding: Rows and columns added at the bottom and on the right.
        dilation: Down and across.
        groups: Groups of channels; 0 counts as 1, as in the real library.
        dtype: Of the output; None for the input's.
        bias_tensor: [1, 1, 1, O] on the host, or prepared on the device.
        conv_config: Blocks and shards.
        compute_config: Fidelity and accumulators; None for HiFi4, with float32 sums if input and weights are float32.
        memory_config: Place of the output, for inputs in L1.
        dram_slice_config: Slices of inputs in DRAM.
        mirror_kernel: False if the kernel was flipped already.
        return_output_dim: Return (height, width), too.
        return_weights_and_bias: Return the prepared weights and bias, too; a later call may take them.
        lowering: An extension of this library that ttnn does not have. "frame" is what ttnn does, a convolution over
            the input with zeros inserted; "phase" computes every output phase by a dense convolution of its own,
            without those zeros, on the same cores, shards and slices. Prepared weights are of one of the two; what it
            cannot do is refused by name.

    Returns:
        The output [1, 1, N*OH*OW, O]; or (output, (OH, OW)), or (output, (weights, bias)), or all three.

    Raises:
        TypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other, or (on a strict device) would give a wrong result.
        DeviceError: The call does not fit the device.
    """
    chosen = lowering_of(lowering)
    arguments = ConvCall(
        rules=CONV_TRANSPOSE2D if chosen is Lowering.FRAME else CONV_TRANSPOSE2D_BY_PHASES,
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
        output_padding=two(output_padding),
        dilation=two(dilation),
        groups=groups or 1,
        out_format=None if dtype is None else dtype.format,
        conv_config=ConvConfig() if conv_config is None else conv_config.argument(),
        compute_config=None if compute_config is None else compute_config.argument(),
        memory_config=memory_config,
        slice_config=None if dram_slice_config is None else dram_slice_config.argument(),
        mirror_kernel=mirror_kernel,
    )
    require_allocated(input_tensor, weight_tensor, bias_tensor)
    results = _run(
        arguments,
        named(input_tensor, weight_tensor, bias_tensor),
        device,
        useful_flops=definition_flops(arguments),
        returns_weights=return_weights_and_bias,
    )
    output_dim = output_lengths(arguments) if return_output_dim else None
    return handed_back(results, output_dim=output_dim, weights_and_bias=return_weights_and_bias)


def _run(
    call: ConvCall,
    tensors: Mapping[str, Tensor],
    device: Device,
    *,
    useful_flops: int,
    returns_weights: bool,
) -> dict[str, Tensor]:
    """Runs a call.

    Args:
        call: Its arguments.
        tensors: "input", "weight" and, if there is one, "bias".
        device: Where.
        useful_flops: Multiplications and additions of the call's definition, for profiles.
        returns_weights: Prepared weights and bias are asked for.

    Returns:
        The "output", and if asked for "weight" and "bias".

    Raises:
        ArgumentError: Arguments contradict each other, or the plan would give a wrong result.
        DeviceError: The call does not fit the device.
    """
    asked = planning(_sound_plan, call, device, reads_free_l1=reads_free_l1(call), returns_weights=returns_weights)
    if not asked.is_kept:
        _require_valid(call, device)
    misfit = misfit_shape(call, tensors["input"])
    held = {name: tensor.buffer for name, tensor in tensors.items() if tensor.device() is not None}
    device.asked = call
    plan: Plan | None = None
    try:
        plan = asked.plan()
        name = "ttsim.conv_transpose2d" if call.rules.by_phases else "ttnn.conv_transpose2d"
        with device.function(name), told_lost_outputs(call):
            return run(plan, tensors, device, useful_flops=useful_flops, asked=call, input_shape=misfit)
    except (OutOfMemoryError, CircularBufferError) as error:
        if not device.suggestions:
            raise
        told = explain_oom(call, MachineSnapshot(device.machine, held, device.strict), planned=plan is not None)
        raise type(error)(f"{error}\n{told}") from error


def _require_valid(call: ConvCall, device: Device) -> None:
    """Raises ArgumentError for a call that cannot be planned, DeviceError for one that no DRAM holds."""
    validate(call)
    check_arguments(call, free_l1_bytes=free_l1_bytes(device))
    check_sizes(call, device.spec)
    check_slices(call)
    if device.strict:
        check_strict(call)
    if runs_by_phases(call):
        check_phases(call)


def _sound_plan(call: ConvCall, spec: DeviceSpec, *, free_l1_bytes: int, returns_weights: bool, strict: bool) -> Plan:
    """The plan of a valid call; raises ArgumentError if it is to be strict and the plan would give a wrong result."""
    plan = plan_convolution(call, spec, free_l1_bytes=free_l1_bytes, returns_weights=returns_weights)
    if strict:
        check_strict_plan(plan, call)
    if call.rules.by_phases:
        check_phase_weights(plan, call)
    return plan


def definition_flops(call: ConvCall) -> int:
    """Multiplications and additions of the definition: every input element meets every kernel position of its group."""
    pixels = call.batch_size * call.input_height * call.input_width
    return (
        2
        * pixels
        * call.in_channels
        * (call.out_channels // (call.groups or 1))
        * call.kernel_size[0]
        * call.kernel_size[1]
    )


def lowering_of(name: str) -> Lowering:
    """The lowering of a name; raises ArgumentError if there is none."""
    known = [one.value for one in Lowering]
    if not isinstance(name, str) or name not in known:
        raise ArgumentError(f"conv_transpose2d: lowering must be one of {', '.join(known)}, not {shown(name)}")
    return Lowering(name)
