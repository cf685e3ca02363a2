"""ttnn's convolutions: tables of their parameters, and how a call of one is checked, planned and run.

ttnn does not have the lowerings other than zero insertion: ``lowering="phase"`` computes each output phase by itself,
and two lowerings split a call into several calls (`ops/planners/conv/split.py`).
"""

from collections.abc import Mapping
from math import prod
from typing import Any, TypeVar

import numpy as np

from device.errors import ArgumentError, CircularBufferError, DeviceError, OutOfMemoryError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan, ProgramKey
from ops.planners.conv.arguments import (
    CONV2D,
    LOWERINGS,
    ConvCall,
    ConvConfig,
    ConvRules,
    Lowering,
    Operand,
    lowering_of,
)
from ops.planners.conv.plan import check_call, plan_call, reads_free_l1
from ttsim.diagnose import MachineSnapshot, explain_oom
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, Padding, Pair, four, param, two
from ttsim.runtime.types.configs import (
    Conv2dConfig,
    Conv2dDRAMSliceHeight,
    Conv2dSliceConfig,
    WormholeComputeKernelConfig,
)
from ttsim.runtime.types.tensors import DataType

Conv1dConfig = Conv2dConfig
SizeT = TypeVar("SizeT")
Prepared = tuple[Tensor, Tensor | None]  # weights and bias
# Without flags, with return_output_dim, with return_weights_and_bias, with both
Results = Tensor | tuple[Tensor, SizeT] | tuple[Tensor, Prepared] | tuple[Tensor, SizeT, Prepared]


class Convolution(Call):
    """Parameters of all convolutions and of the preparations of their weights and biases."""

    device: Device = param("The device that runs the call.")
    in_channels: int = param("Channels of the input, C.")
    out_channels: int = param("Channels of the output, O.")
    batch_size: int = param("Images, N.")
    groups: int = param("Groups of channels; 0 counts as 1, as in the real library.", default=1)
    conv_config: Conv2dConfig | None = param("Blocks, shards and activation; None for the defaults.", default=None)
    compute_config: WormholeComputeKernelConfig | None = param(
        "Fidelity and accumulators; None for HiFi4, with float32 sums if input and weights are float32.", default=None
    )

    def arguments(
        self, rules: ConvRules, *, out: DataType | None, slices: Conv2dSliceConfig | None, **own: Any
    ) -> ConvCall:
        """The call as the planner's `ConvCall`.

        ``out`` is the data type of the output, None for the input's; ``own`` are further arguments of `ConvCall`.
        """
        config, compute = self.conv_config, self.compute_config
        common: dict[str, Any] = {
            "rules": rules,
            "in_channels": self.in_channels,
            "out_channels": self.out_channels,
            "batch_size": self.batch_size,
            "groups": self.groups,
            "out_format": None if out is None else out.format,
            "conv_config": ConvConfig() if config is None else config.argument(),
            "compute_config": None if compute is None else compute.argument(),
            "slice_config": None if slices is None else slices.argument(),
        }
        return ConvCall(**{**common, **self.window(), **own})

    def window(self) -> dict[str, Any]:
        """Sizes of the image, kernel, stride, padding and dilation."""
        raise NotImplementedError


class Windows2d(Convolution):
    """Parameters of a convolution of images."""

    input_height: int = param("Rows of an image, H.")
    input_width: int = param("Columns of an image, W.")
    kernel_size: Pair = param("Rows and columns of the kernel.")
    stride: Pair = param("Stride down and across.", default=(1, 1))
    padding: Padding = param("Zeros around the image: (height, width), or (top, bottom, left, right).", default=(0, 0))
    dilation: Pair = param("Distance between taps of the kernel, down and across.", default=(1, 1))

    def window(self) -> dict[str, Any]:
        """Sizes of the image, kernel, stride, padding and dilation."""
        return {
            "input_height": self.input_height,
            "input_width": self.input_width,
            "kernel_size": two(self.kernel_size),
            "stride": two(self.stride),
            "padding": four(self.padding),
            "dilation": two(self.dilation),
        }


class OfTensors(
    Convolution,
    parameters="input_tensor weight_tensor device in_channels out_channels batch_size input_height input_width "
    "input_length kernel_size stride padding output_padding dilation groups dtype bias_tensor conv_config "
    "compute_config memory_config dram_slice_config slice_config mirror_kernel return_output_dim "
    "return_weights_and_bias lowering",
):
    """A convolution that runs, in contrast to a preparation."""

    input_tensor: Tensor = param("[N, H, W, C] or [1, 1, N*H*W, C], on the host or the device.")
    weight_tensor: Tensor = param(
        "[O, C / groups, kernel height, kernel width] on the host, or on the device in ROW_MAJOR layout (then it is "
        "copied to the host first); or prepared weights on the device."
    )
    dtype: DataType | None = param("Data type of the output; None for that of the input.", default=None)
    bias_tensor: Tensor | None = param("[1, 1, 1, O], on the host or the device like ``weight_tensor``.", default=None)
    memory_config: MemoryConfig | None = param(
        "Memory of the output, for inputs in L1; None lets the call choose.", default=None
    )
    return_output_dim: bool = param("Return (OH, OW) as well.", default=False)
    return_weights_and_bias: bool = param(
        "Return the prepared weights and bias as well; later calls accept them.", default=False
    )

    def carry_out(
        self, rules: ConvRules, tensors: Mapping[str, Tensor | None], slices: Conv2dSliceConfig | None, **own: Any
    ) -> Results[Any]:
        """Checks, plans and runs a call on the tensors "input", "weight" and "bias"; returns the function's result."""
        operand_tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        operands: dict[str, Any] = {name: operand(tensor) for name, tensor in operand_tensors.items()}
        usual = {"groups": self.groups or 1, "memory_config": self.memory_config}
        call = self.arguments(rules, out=self.dtype, slices=slices, **usual | operands | own)
        require_allocated(*operand_tensors.values())
        name = f"ttnn.{self._name}" if rules.lowering is Lowering.ZERO_INSERTION else f"ttsim.{self._name}"
        results = run_call(name, call, operand_tensors, self.device, returns_weights=self.return_weights_and_bias)
        returned: list[Any] = [results["output"]]
        if self.return_output_dim:
            returned.append(self.output_dim(*call.output_size))
        if self.return_weights_and_bias:
            returned.append((results["weight"], results.get("bias")))
        result: Results[Any] = returned[0] if len(returned) == 1 else tuple(returned)
        return result

    def output_dim(self, height: int, width: int) -> Any:
        """The size of the output as the function returns it."""
        return height, width


class ConvTranspose2d(OfTensors, Windows2d, name="conv_transpose2d"):
    """Transposed convolution of a channels-last tensor.

    The output has OH = (H - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding rows, where padding is
    the sum of both ends; OW columns follow from W in the same way.

    Returns:
        The output [1, 1, N*OH*OW, O]; or (output, (OH, OW)), or (output, (weights, bias)), or all three.

    Raises:
        ArgumentError: Arguments contradict each other, or (on a strict device) would give a wrong result.

    Examples:
        >>> image = ttnn.ones((1, 1, 16, 32), device=device)
        >>> output, (height, width) = ttnn.conv_transpose2d(
        ...     input_tensor=image, weight_tensor=ttnn.ones((32, 16, 2, 2)), device=device, in_channels=32,
        ...     out_channels=16, batch_size=1, input_height=4, input_width=4, kernel_size=(2, 2), stride=(2, 2),
        ...     return_output_dim=True)
        >>> output.shape, height, width, output.to_numpy().max().item()
        (Shape([1, 1, 64, 16]), 8, 8, 32.0)
    """

    weight_tensor: Tensor = param(
        "[C, O / groups, kernel height, kernel width] on the host, or prepared weights on the device."
    )
    bias_tensor: Tensor | None = param("[1, 1, 1, O] on the host, or a prepared bias on the device.", default=None)
    padding: Padding = param(
        "Rows and columns cut off the full output: (height, width), or (top, bottom, left, right).", default=(0, 0)
    )
    output_padding: Pair = param("Rows and columns added at the bottom and on the right.", default=(0, 0))
    dram_slice_config: Conv2dSliceConfig | None = param(
        "Slices for inputs in DRAM; None lets the call choose.", default=None
    )
    mirror_kernel: bool = param("False if the kernel is flipped already.", default=True)
    lowering: str = param(
        'An extension that ttnn does not have. "zero_insertion", as in ttnn, convolves the input with inserted zeros. '
        '"phase" computes every output phase by its own dense convolution without zeros, on the same cores, shards and '
        'slices, with weights prepared for this lowering. "grouped" splits the call into calls of as few groups as '
        'fill tiles, "samples" into calls of as many images as fit L1.',
        default=Lowering.ZERO_INSERTION.value,
    )

    def run(self) -> Results[tuple[int, int]]:
        """Runs the call."""
        return self.carry_out(
            LOWERINGS[lowering_of(self.lowering, "conv_transpose2d")],
            {"input": self.input_tensor, "weight": self.weight_tensor, "bias": self.bias_tensor},
            self.dram_slice_config,
            output_padding=two(self.output_padding),
            mirror_kernel=self.mirror_kernel,
        )


class Conv2d(OfTensors, Windows2d, name="conv2d"):
    """Convolution of a channels-last tensor.

    The output has OH = (H + padding - dilation * (kernel - 1) - 1) / stride + 1 rows, rounded down, where padding is
    the sum of both ends; OW columns follow from W in the same way.

    Returns:
        The output [1, 1, N*OH*OW, O]; or (output, (OH, OW)), or (output, (weights, bias)), or all three.

    Raises:
        ArgumentError: Arguments contradict each other, need a feature that is not simulated (numbers of a depthwise
            convolution of one row without a bias), or (on a strict device) would give a wrong result.

    Examples:
        >>> image = ttnn.ones((1, 1, 64, 32), device=device)
        >>> output = ttnn.conv2d(
        ...     input_tensor=image, weight_tensor=ttnn.ones((16, 32, 3, 3)), device=device, in_channels=32,
        ...     out_channels=16, batch_size=1, input_height=8, input_width=8, kernel_size=(3, 3), padding=(1, 1))
        >>> output.shape, output.to_numpy().max().item()
        (Shape([1, 1, 64, 16]), 288.0)
    """

    slice_config: Conv2dSliceConfig | None = param(
        "Slices for inputs in DRAM; None lets the call choose.", default=None
    )

    def run(self) -> Results[tuple[int, int]]:
        """Runs the call."""
        require_allocated(self.input_tensor, self.weight_tensor, self.bias_tensor)
        tensors = {
            "input": self.input_tensor,
            "weight": fetched(self.weight_tensor),
            "bias": None if self.bias_tensor is None else fetched(self.bias_tensor),
        }
        return self.carry_out(CONV2D, tensors, self.slice_config)


class Conv1d(OfTensors, name="conv1d"):
    """One-dimensional convolution of a channels-last tensor, computed, as in ttnn, by conv2d on images of one row.

    Its outputs were never compared with recordings of the real library; the outputs of conv2d were.

    Returns:
        The output [1, 1, N*OL, O]; or (output, OL), or (output, (weights, bias)), or all three.

    Raises:
        ArgumentError: As for conv2d; for example, numbers of as many groups as channels without a bias are not
            calculated.

    Examples:
        >>> output, length = ttnn.conv1d(
        ...     input_tensor=ttnn.ones((1, 32, 32), device=device), weight_tensor=ttnn.ones((16, 32, 3)), device=device,
        ...     in_channels=32, out_channels=16, batch_size=1, input_length=32, kernel_size=3, padding=1,
        ...     return_output_dim=True)
        >>> output.shape, length
        (Shape([1, 1, 32, 16]), 32)
    """

    input_tensor: Tensor = param("[N, L, C], [N, 1, L, C] or [1, 1, N*L, C], on the host or the device.")
    weight_tensor: Tensor = param(
        "[O, C / groups, kernel] or [O, C / groups, 1, kernel], on the host or in ROW_MAJOR layout on the device; or "
        "prepared weights on the device."
    )
    input_length: int = param("Elements of a row, L.")
    kernel_size: int = param("Taps of the kernel.")
    stride: int = param("Stride along the row.", default=1)
    padding: int | Pair = param("Zeros at both ends, or (left, right).", default=0)
    dilation: int = param("Distance between taps of the kernel.", default=1)
    slice_config: Conv2dSliceConfig | None = param(
        "Slices for inputs in DRAM; None lets the call choose.", default=None
    )
    return_output_dim: bool = param("Return the length of the output, OL, as well.", default=False)

    def window(self) -> dict[str, Any]:
        """Sizes of the equivalent images of one row."""
        left, right = two(self.padding) if not isinstance(self.padding, int) else (self.padding, self.padding)
        return {
            "input_height": 1,
            "input_width": self.input_length,
            "kernel_size": (1, self.kernel_size),
            "stride": (1, self.stride),
            "padding": (0, 0, left, right),
            "dilation": (1, self.dilation),
        }

    def run(self) -> Results[int]:
        """Runs the call."""
        require_allocated(self.input_tensor, self.weight_tensor, self.bias_tensor)
        weight = of_one_row(fetched(self.weight_tensor))
        bias = None if self.bias_tensor is None else fetched(self.bias_tensor)
        image = _image(self.input_tensor, (self.batch_size, 1, self.input_length, self.in_channels))
        if self.slice_config is not None and self.slice_config.slice_type is Conv2dDRAMSliceHeight:
            raise DeviceError(
                "Conv1D does not support DRAM_HEIGHT slicing because the convolution height is always 1. Use "
                "DRAM_WIDTH slicing (slices along input_length) or L1_FULL.\nslice_config: leave it out"
            )
        tensors = {"input": image, "weight": weight, "bias": bias}
        return self.carry_out(CONV2D, tensors, self.slice_config)

    def output_dim(self, height: int, width: int) -> Any:
        """The length of the output."""
        return width


def operand(tensor: Tensor) -> Operand:
    """A tensor as an argument of a plan."""
    return Operand(spec=tensor.spec, on_host=tensor.device() is None, created_by=tensor.created_by)


def of_one_row(weights: Tensor) -> Tensor:
    """Weights [O, C / groups, kernel] on the host with an axis for the one row of images; other weights unchanged."""
    if len(weights.shape) != 3 or weights.device() is not None:
        return weights
    outs, ins, kernel_width = weights.shape
    return weights.reshape(outs, ins, 1, kernel_width)


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


def _image(rows: Tensor, shape: tuple[int, int, int, int]) -> Tensor:
    """Rows of fewer than four axes as images of one row; raises DeviceError if their number of elements differs."""
    if len(rows.shape) >= 4:
        return rows
    if rows.spec.volume != prod(shape):
        refused, small = "Invalid arguments to reshape", rows.spec.volume < prod(shape)
        if rows.device() is not None and not rows.spec.volume:
            refused = "Tensor volume is 0, but shape's volume is not"
        elif rows.device() is not None and (rows.layout is Layout.TILE or rows.shape[-1:] != shape[-1:]):
            refused = "Attempting to reshape between two shapes with different volumes"
        elif rows.device() is not None and small:
            refused = "MeshBuffer must be large enough to hold the tensor."
        raise DeviceError(
            f"{refused}\nconv1d: input_tensor of the shape {list(rows.shape)} has not batch_size x "
            f"input_length x in_channels = {shape[0]} x {shape[2]} x {shape[3]} elements"
        )
    return rows.reshape(shape)


def run_call(
    name: str, call: ConvCall, tensors: Mapping[str, Tensor], device: Device, *, returns_weights: bool
) -> dict[str, Tensor]:
    """Runs a call under the name that captures show; returns its "output" and, on request, "weight" and "bias"."""
    free = free_l1_bytes(device) if reads_free_l1(call) else None
    numbers = repr(call.conv_config.activation)  # the only fractions of a call: 0.0 and -0.0 are equal, not the same
    key = ProgramKey((plan_call, call, numbers, free, returns_weights, device.strict))

    def planned() -> Plan:
        free_bytes, strict = free_l1_bytes(device), device.strict
        return plan_call(call, device.spec, free_l1_bytes=free_bytes, returns_weights=returns_weights, strict=strict)

    if not device.plans.holds(key, device.spec):  # an equal call that was planned was valid
        check_call(call, device.spec, strict=device.strict, free_l1_bytes=free_l1_bytes(device))
    fixed = {name: tensor.buffer for name, tensor in tensors.items() if tensor.device() is not None}
    device.asked = call
    claimed = call.claimed_volume  # sticks and channels that the call says its input has, which may have other ones
    misfit = None if claimed == tensors["input"].logical_volume() else (claimed // call.in_channels, call.in_channels)
    plan = None
    try:
        plan = device.plans.plan_of(key, device.spec, planned)
        with device.function(name):
            return run(plan, tensors, device, useful_flops=useful_flops(call), asked=call, input_shape=misfit)
    except (OutOfMemoryError, CircularBufferError) as error:
        if plan is not None and isinstance(error, OutOfMemoryError) and call.plans_without_outputs:
            raise ArgumentError(f"{str(error).splitlines()[0]}\n{call.describe_no_outputs()}") from error
        if not call.rules.transposed or not device.suggestions:
            raise
        explanation = explain_oom(call, MachineSnapshot(device.machine, fixed, device.strict), planned=plan is not None)
        raise type(error)(f"{error}\n{explanation}") from error


def useful_flops(call: ConvCall) -> int:
    """Multiplications and additions of the definition: each input, or output of conv2d, meets each tap of its group.

    Inputs that padding cuts off count, and so does padding around an image.
    """
    height, width = (call.input_height, call.input_width) if call.rules.transposed else call.output_size
    pixels, kernel_area = call.batch_size * height * width, call.kernel_size[0] * call.kernel_size[1]
    return 2 * pixels * kernel_area * call.in_channels * call.out_channels // call.groups
