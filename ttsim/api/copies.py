"""ttnn's functions that copy a tensor."""

from typing import Any, get_overloads, overload

from device.memory.memory_config import MemoryConfig
from ops.planners.copies import plan_assign, plan_clone, plan_copy, require_floats
from ttsim.api.device_calls import (
    cached_plan,
    converted,
    format_of,
    operation,
    operation_as,
    required_device,
)
from ttsim.runtime.calls import on_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import signature_of
from ttsim.runtime.types.configs import DeviceComputeKernelConfig
from ttsim.runtime.types.tensors import DataType


@operation
def clone(
    input: Tensor,
    *,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    compute_kernel_config: DeviceComputeKernelConfig | None = None,
) -> Tensor:
    """A copy of a tensor in a new buffer.

    Args:
        input: A tensor on the device.
        dtype: Data type of the copy, for tensors in TILE layout; None for that of the tensor.
        compute_kernel_config: Accepted as in ttnn; the values of a copy do not depend on it.

    Returns:
        The copy.

    Raises:
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.
        DeviceError: The tensor is on the host, or the copy would have other shards.

    Examples:
        >>> tensor = ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.clone(tensor, dtype=ttnn.float32, memory_config=ttnn.L1_MEMORY_CONFIG).dtype
        DataType.FLOAT32
    """
    place, data_format = memory_config, format_of(dtype)
    strict = lambda plan: require_floats("clone", plan)  # noqa: E731
    return converted("clone", plan_clone, input, strict=strict, place=place, data_format=data_format)


@operation
def copy(input_a: Tensor, input_b: Tensor) -> Tensor:
    """Copies the numbers of a tensor into another one.

    Args:
        input_a: The tensor to read, on the device.
        input_b: The tensor to write, of the same shape and layout; in TILE layout its data type may differ.

    Returns:
        ``input_b``.

    Raises:
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.
        DeviceError: Shape or layout differ, or a tensor is on the host.

    Examples:
        >>> source, target = ttnn.ones((1, 2), device=device), ttnn.zeros((1, 2), device=device)
        >>> ttnn.copy(source, target).to_list() == target.to_list() == [[1.0, 1.0]]
        True
    """
    return _copied("copy", input_a, input_b)


def _copied(owner: str, source: Tensor, target: Tensor) -> Tensor:
    device = required_device(owner, source)
    required_device(owner, target)
    plan = cached_plan(plan_copy, device, source.spec, target.spec)
    if device.strict:
        require_floats(owner, plan)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": source, "target": target}, device)["output"]


@overload
def assign(
    input_tensor: Tensor,
    *,
    memory_config: MemoryConfig,
    dtype: DataType | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor: ...


@overload
def assign(input_a: Tensor, input_b: Tensor) -> Tensor: ...


@on_device
def assign(*arguments: Any, **named: Any) -> Tensor:
    """A copy of a tensor in a given memory, or in another tensor like `copy`.

    Args:
        input_tensor: A tensor on the device; alternatively give ``input_a`` and ``input_b``.
        memory_config: Memory of the copy.
        dtype: Data type of the copy; None for that of the tensor.
        output_tensor: A tensor of this memory and data type that receives the copy and is returned.
        input_a: The tensor to read.
        input_b: The tensor to write.

    Returns:
        The copy.

    Raises:
        ArgumentTypeError: An argument is unknown, missing or of the wrong type.
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.
        DeviceError: A tensor is on the host, or shapes or layouts differ.
        OutOfMemoryError: There is no room for the copy.

    Examples:
        >>> tensor = ttnn.ones((1, 2), device=device)
        >>> ttnn.assign(tensor, memory_config=ttnn.L1_MEMORY_CONFIG).memory_config() == ttnn.L1_MEMORY_CONFIG
        True
    """
    if len(arguments) > 1 or "input_b" in named or "input_a" in named:
        tensors = INTO_TENSOR.bind(arguments, named)
        return _copied("assign", tensors["input_a"], tensors["input_b"])
    given = INTO_MEMORY.bind(arguments, named)
    tensor, place, data_format = given["input_tensor"], given["memory_config"], format_of(given["dtype"])
    strict = lambda plan: require_floats("assign", plan)  # noqa: E731
    target = given["output_tensor"]
    return converted("assign", plan_assign, tensor, place, strict=strict, data_format=data_format, target=target)


@operation_as("ttnn.experimental.")
def typecast(
    input_tensor: Tensor,
    dtype: DataType,
    memory_config: MemoryConfig | None = None,
    optional_output_tensor: Tensor | None = None,
) -> Tensor:
    """A copy of a tensor in another data type, as `ttnn.assign` makes it.

    Args:
        input_tensor: A tensor on the device.
        dtype: Data type of the copy.
        memory_config: Memory of the copy; None for that of the tensor.
        optional_output_tensor: A tensor of this memory and data type that receives the copy and is returned.

    Returns:
        The copy.

    Raises:
        ArgumentError: The device is strict, and the real library would copy bits without a conversion.

    Examples:
        >>> tensor = ttnn.ones((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.experimental.typecast(tensor, ttnn.bfloat8_b).dtype
        DataType.BFLOAT8_B
    """
    owner = "experimental.typecast"
    place = input_tensor.memory_config() if memory_config is None else memory_config
    strict = lambda plan: require_floats(owner, plan)  # noqa: E731
    return converted(
        owner,
        plan_assign,
        input_tensor,
        place,
        strict=strict,
        data_format=dtype.format,
        target=optional_output_tensor,
    )


INTO_MEMORY, INTO_TENSOR = map(signature_of, get_overloads(assign))
