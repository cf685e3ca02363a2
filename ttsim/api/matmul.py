"""ttnn.matmul and ttnn.linear, of interleaved tensors on the device."""

from collections.abc import Mapping
from math import prod
from typing import Any

from device.errors import ArgumentError, DeviceError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ops.planners.matmul import MatmulArguments, plan_matmul, validate
from ttsim.api.device_calls import require_left_out
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.configs import UnaryOpType, UnaryWithParam, WormholeComputeKernelConfig
from ttsim.types.signature import checked
from ttsim.types.tensors import DataType


@on_device
@checked
def matmul(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: object = None,
    activation: str | UnaryWithParam | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    core_grid: object = None,
) -> Tensor:
    """The product of two matrices, or of each pair of two batches of them.

    Args:
        input_tensor_a: [..., M, K] tiles on the device, interleaved.
        input_tensor_b: [..., K, N] likewise: the same leading axes, or a single matrix for all; where it has several
            and `input_tensor_a` is a single matrix of the same rank, that one serves all.
        transpose_a: `input_tensor_a` is [..., K, M].
        transpose_b: `input_tensor_b` is [..., N, K].
        memory_config: Place of the output, interleaved; None for DRAM.
        dtype: Of the output; None for that of the first tensor.
        program_config: Not simulated; None lets the library choose.
        activation: Applied to the output, for example "relu".
        compute_kernel_config: None for the library's default: HiFi2 with L1 accumulation; LoFi for two block floats; a
            32-bit Dst for a float32 output.
        core_grid: Not simulated; None lets the library choose.

    Returns:
        [..., M, N], of as many axes as the argument that has most.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other, or ask for what is not simulated.
        DeviceError: The call does not fit the device.
    """
    require_left_out("matmul", program_config=program_config, core_grid=core_grid)
    return _multiply(
        "ttnn.matmul",
        {"input": input_tensor_a, "weight": input_tensor_b},
        memory_config,
        dtype,
        activation,
        compute_kernel_config,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


@on_device
@checked
def linear(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    *,
    bias: Tensor | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    memory_config: MemoryConfig | None = None,
    dtype: DataType | None = None,
    program_config: object = None,
    activation: str | UnaryWithParam | None = None,
    compute_kernel_config: WormholeComputeKernelConfig | None = None,
    core_grid: object = None,
) -> Tensor:
    """The product of two matrices, or of each pair of two batches of them, and a row added to each row of it.

    Args:
        input_tensor_a: See matmul.
        input_tensor_b: See matmul.
        bias: [..., 1, N] tiles on the device.
        transpose_a: See matmul.
        transpose_b: See matmul.
        memory_config: See matmul.
        dtype: See matmul.
        program_config: See matmul.
        activation: See matmul; applied after the bias.
        compute_kernel_config: See matmul.
        core_grid: See matmul.

    Returns:
        [..., M, N].

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other, or ask for what is not simulated.
        DeviceError: The call does not fit the device.
    """
    require_left_out("linear", program_config=program_config, core_grid=core_grid)
    return _multiply(
        "ttnn.linear",
        {"input": input_tensor_a, "weight": input_tensor_b} | ({} if bias is None else {"bias": bias}),
        memory_config,
        dtype,
        activation,
        compute_kernel_config,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


def _multiply(
    function: str,
    tensors: Mapping[str, Tensor],
    place: MemoryConfig | None,
    dtype: DataType | None,
    activation: str | UnaryWithParam | None,
    compute: WormholeComputeKernelConfig | None,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Tensor:
    for number, tensor in enumerate(tensors.values()):
        lost = "Input Tensor is not allocated" if number else "Operand to matmul must be on device"
        require_allocated(tensor, first_line=lost)
    device = _device(*tensors.values())
    config = None if compute is None else compute.argument()
    chosen: dict[str, Any] = {}
    if config is not None:
        chosen = {
            "fidelity_phases": config.fidelity_phases,
            "fp32_dest": config.fp32_dest,
            "packer_l1_acc": config.packer_l1_acc,
        }
    arguments = MatmulArguments(
        first=tensors["input"].spec,
        second=tensors["weight"].spec,
        bias=tensors["bias"].spec if "bias" in tensors else None,
        out_format=None if dtype is None else dtype.format,
        memory_config=DRAM_MEMORY_CONFIG if place is None else place,
        activation=_activation(activation),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        **chosen,
    )
    validate(arguments)
    plan = plan_matmul(arguments, device.spec, free_l1_bytes=free_l1_bytes(device))
    useful_flops = 2 * prod(arguments.output_shape) * arguments.first_sides[1]
    with device.function(function):
        return run(plan, tensors, device, useful_flops=useful_flops)["output"]


def _device(*tensors: Tensor) -> Device:
    """The device on which all tensors are."""
    for tensor in tensors:
        home = tensor.device()
        if home is None:
            raise DeviceError("Operand to matmul must be on device\ngive every tensor to the device with .to(device)")
    device = tensors[0].device()
    if device is None:
        raise AssertionError("a tensor on the host was refused above")
    return device


def _activation(given: str | UnaryWithParam | None) -> tuple[str, tuple[float, ...]] | None:
    if given is None:
        return None
    if isinstance(given, UnaryWithParam):
        return given.op_type.name.lower(), given.params
    if given.upper() not in UnaryOpType.__members__:
        raise ArgumentError(f"matmul: there is no activation {shown(given)}; for example 'relu', 'gelu', 'silu'")
    return given.lower(), ()
