"""ttnn.matmul and ttnn.linear, of interleaved tensors on the device."""

from math import prod
from typing import Any

from device.errors import ArgumentError, DeviceError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ops.planners.matmul import MatmulArguments, plan_matmul, validate
from ttsim.api.device_calls import format_of, require_left_out
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import Call, function_of, param
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam, WormholeComputeKernelConfig
from ttsim.runtime.types.tensors import DataType


class Matmul(Call, name="matmul"):
    """The product of two matrices, or of each pair of two batches of matrices.

    Returns:
        [..., M, N], of the higher rank of the two tensors.

    Examples:
        >>> a = ttnn.full((32, 64), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> b = ttnn.ones((64, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> product = ttnn.matmul(a, b)
        >>> product.shape, product.to_numpy()[0, 0].item()
        (Shape([32, 32]), 32.0)
    """

    input_tensor_a: Tensor = param("[..., M, K] on the device, in TILE layout, interleaved.", kw_only=False)
    input_tensor_b: Tensor = param(
        "[..., K, N], also in TILE layout and interleaved, with the same leading axes; or one of the two is a single "
        "matrix that multiplies all matrices of the other.",
        kw_only=False,
    )
    transpose_a: bool = param("`input_tensor_a` is [..., K, M].", default=False)
    transpose_b: bool = param("`input_tensor_b` is [..., N, K].", default=False)
    memory_config: MemoryConfig | None = param("Memory of the output, interleaved; None for DRAM.", default=None)
    dtype: DataType | None = param("Data type of the output; None for that of the first tensor.", default=None)
    program_config: object = param("Not simulated; None lets the library choose.", default=None)
    activation: str | UnaryWithParam | None = param('Applied to the output, for example "relu".', default=None)
    compute_kernel_config: WormholeComputeKernelConfig | None = param(
        "None for the library's default: HiFi2 with L1 accumulation; LoFi for two block floats; a 32-bit Dst for a "
        "float32 output.",
        default=None,
    )
    core_grid: object = param("Not simulated; None lets the library choose.", default=None)

    bias: Tensor | None = None  # A parameter of `Linear` alone

    def run(self) -> Tensor:
        """The product, and a bias added to each row of it before the activation."""
        require_left_out(self._name, program_config=self.program_config, core_grid=self.core_grid)
        operands = {"input": self.input_tensor_a, "weight": self.input_tensor_b, "bias": self.bias}
        tensors = {name: tensor for name, tensor in operands.items() if tensor is not None}
        for number, tensor in enumerate(tensors.values()):
            lost = "Input Tensor is not allocated" if number else "Operand to matmul must be on device"
            require_allocated(tensor, first_line=lost)
        device = _device(*tensors.values())
        config, fields = self.compute_kernel_config, ("fidelity_phases", "fp32_dest", "packer_l1_acc")
        chosen: dict[str, Any] = {} if config is None else {name: getattr(config.argument(), name) for name in fields}
        arguments = MatmulArguments(
            first=tensors["input"].spec,
            second=tensors["weight"].spec,
            bias=None if self.bias is None else self.bias.spec,
            out_format=format_of(self.dtype),
            memory_config=DRAM_MEMORY_CONFIG if self.memory_config is None else self.memory_config,
            activation=_activation(self.activation),
            transpose_a=self.transpose_a,
            transpose_b=self.transpose_b,
            **chosen,
        )
        validate(arguments)
        plan = plan_matmul(arguments, device.spec, free_l1_bytes=free_l1_bytes(device))
        useful_flops = 2 * prod(arguments.output_shape) * arguments.first_sides[1]
        with device.function(f"ttnn.{self._name}"):
            return run(plan, tensors, device, useful_flops=useful_flops)["output"]


class Linear(
    Matmul,
    name="linear",
    parameters="input_tensor_a input_tensor_b bias transpose_a transpose_b memory_config dtype program_config "
    "activation compute_kernel_config core_grid",
):
    """The product of `matmul` plus a bias row: ``input_tensor_a @ input_tensor_b + bias``.

    Returns:
        [..., M, N], of the higher rank of the two tensors.

    Examples:
        >>> a = ttnn.full((32, 64), 0.5, layout=ttnn.TILE_LAYOUT, device=device)
        >>> b, bias = (ttnn.ones((rows, 32), layout=ttnn.TILE_LAYOUT, device=device) for rows in (64, 1))
        >>> ttnn.linear(a, b, bias=bias).to_numpy()[0, 0].item()
        33.0
    """

    bias: Tensor | None = param("[..., 1, N] on the device, in TILE layout.", default=None)


matmul = on_device(function_of(Matmul))
linear = on_device(function_of(Linear))


def _device(first: Tensor, *others: Tensor) -> Device:
    device = first.device()
    if device is None or any(tensor.device() is None for tensor in others):
        raise DeviceError("Operand to matmul must be on device\ngive every tensor to the device with .to(device)")
    return device


def _activation(activation: str | UnaryWithParam | None) -> tuple[str, tuple[float, ...]] | None:
    if activation is None:
        return None
    if isinstance(activation, UnaryWithParam):
        return activation.op_type.name.lower(), activation.params
    if activation.upper() not in UnaryOpType.__members__:
        raise ArgumentError(f"matmul: there is no activation {shown(activation)}; for example 'relu', 'gelu', 'silu'")
    return activation.lower(), ()
