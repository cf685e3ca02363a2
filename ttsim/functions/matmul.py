"""ttnn.matmul and ttnn.linear, of interleaved tensors on the device."""

from math import prod
from typing import Any

from device.errors import ArgumentError, DeviceError, shown
from device.memory.memory_config import DRAM_MEMORY_CONFIG, MemoryConfig
from ops.calls.matmul.plan import MatmulArguments, plan_matmul
from ops.calls.matmul.validation import validate
from ttsim.runtime.device import Device
from ttsim.runtime.execution import free_l1_bytes, on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.activations import UnaryOpType, UnaryWithParam
from ttsim.types.compute_config import WormholeComputeKernelConfig
from ttsim.types.dtypes import DataType
from ttsim.types.signature import checked


@checked
@on_device
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
    """The product of two matrices.

    Args:
        input_tensor_a: [..., M, K] tiles on the device, interleaved; leading axes are 1.
        input_tensor_b: [..., K, N] likewise.
        transpose_a: Not simulated; must be False.
        transpose_b: Not simulated; must be False.
        memory_config: Place of the output, interleaved; None for DRAM.
        dtype: Of the output; None for that of the first tensor.
        program_config: Not simulated; None lets the library choose.
        activation: Applied to the output, for example "relu".
        compute_kernel_config: None for the library's default: HiFi2 with L1 accumulation; LoFi for two block floats; a
            32-bit Dst for a float32 output.
        core_grid: Not simulated; None lets the library choose.

    Returns:
        [..., M, N].

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: Arguments contradict each other, or ask for what is not simulated.
        DeviceError: The call does not fit the device.
    """
    _require_plain(transpose_a or transpose_b, program_config, core_grid)
    return _multiply(
        "ttnn.matmul", input_tensor_a, input_tensor_b, None, memory_config, dtype, activation, compute_kernel_config
    )


@checked
@on_device
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
    """The product of two matrices, and a row added to each of its rows.

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
    _require_plain(transpose_a or transpose_b, program_config, core_grid)
    return _multiply(
        "ttnn.linear", input_tensor_a, input_tensor_b, bias, memory_config, dtype, activation, compute_kernel_config
    )


def _require_plain(transposed: bool, program_config: object, core_grid: object) -> None:
    """Raises ArgumentError for what the library could do and this one does not simulate."""
    if transposed:
        raise ArgumentError(
            "matmul: transpose_a and transpose_b are not simulated; transpose the tensor before it goes to the device"
        )
    if program_config is not None or core_grid is not None:
        raise ArgumentError(
            "matmul: program_config and core_grid are not simulated; without them the library makes its own choice"
        )


def _multiply(
    function: str,
    first: Tensor,
    second: Tensor,
    bias: Tensor | None,
    place: MemoryConfig | None,
    dtype: DataType | None,
    activation: str | UnaryWithParam | None,
    compute: WormholeComputeKernelConfig | None,
) -> Tensor:
    tensors = {"input": first, "weight": second} | ({} if bias is None else {"bias": bias})
    require_allocated(*tensors.values())
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
        first=first.spec,
        second=second.spec,
        bias=None if bias is None else bias.spec,
        out_format=None if dtype is None else dtype.format,
        memory_config=DRAM_MEMORY_CONFIG if place is None else place,
        activation=_activation(activation),
        **chosen,
    )
    validate(arguments)
    plan = plan_matmul(arguments, device.spec, free_l1_bytes=free_l1_bytes(device))
    with device.function(function):
        return run(plan, tensors, device, useful_flops=2 * prod(first.spec.shape) * second.spec.shape[-1])["output"]


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
