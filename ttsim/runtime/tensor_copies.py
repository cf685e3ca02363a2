"""Copies into tensors that are there already: between host and device, and into preallocated outputs."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from ops.builder import CREATED
from ops.programs.conv2d.weights import AsWanted
from ttsim.runtime.device import Device, MeshShape
from ttsim.runtime.session import locked
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type
from ttsim.runtime.types.tensors import DataType, TensorDescription


def stored_in(output_tensor: Tensor, result: Tensor, *, argument: str = "output_tensor") -> Tensor:
    """``output_tensor`` with the values of a tensor of the same shape, data type and layout; others raise DeviceError.

    Errors call ``output_tensor`` by the name ``argument``.
    """
    require_type("output_tensor", Tensor, output_tensor=output_tensor)
    _require_same_spec(argument, output_tensor, result)
    device = output_tensor.device()
    if device is not None:
        buffer, left_out = output_tensor.buffer, result.left_out and device.values == "off"
        store = buffer.forget if left_out else partial(buffer.store, result.values(), output_tensor.spec)
        locked(device.listened(), store)
    return output_tensor


def copy_host_to_device_tensor(host_tensor: Tensor, device_tensor: Tensor, cq_id: int | None = None) -> None:
    """Copies the values of a host tensor into a device tensor, at the address of the device tensor.

    Args:
        host_tensor: The tensor to read.
        device_tensor: The tensor to write, of the same shape, data type and layout.
        cq_id: Accepted as in ttnn; there is one queue.

    Raises:
        ArgumentTypeError: An argument is no tensor.
        DeviceError: ``host_tensor`` is on a device, or shape, data type or layout differ.

    Examples:
        >>> tensor = ttnn.zeros((1, 2), device=device)
        >>> ttnn.copy_host_to_device_tensor(ttnn.ones((1, 2)), tensor)
        >>> tensor.to_list()
        [[1.0, 1.0]]
    """
    require_type("copy_host_to_device_tensor", Tensor, host_tensor=host_tensor, device_tensor=device_tensor)
    if host_tensor.device() is not None:
        raise DeviceError("copy_host_to_device_tensor: host_tensor is on a device; use ttnn.to_memory_config")
    stored_in(device_tensor, host_tensor, argument="copy_host_to_device_tensor: device_tensor")


def copy_device_to_host_tensor(
    device_tensor: Tensor, host_tensor: Tensor, blocking: bool = True, cq_id: int | None = None
) -> None:
    """Copies the values of a device tensor into a host tensor.

    Args:
        device_tensor: The tensor to read.
        host_tensor: The tensor to write, of the same shape, data type and layout.
        blocking: Accepted as in ttnn; the copy is always complete on return.
        cq_id: Accepted as in ttnn; there is one queue.

    Raises:
        ArgumentTypeError: An argument is no tensor.
        DeviceError: A tensor is on the wrong side, or shape, data type or layout differ.

    Examples:
        >>> tensor = ttnn.zeros((1, 2))
        >>> ttnn.copy_device_to_host_tensor(ttnn.ones((1, 2), device=device), tensor)
        >>> tensor.to_list()
        [[1.0, 1.0]]
    """
    require_type("copy_device_to_host_tensor", Tensor, device_tensor=device_tensor, host_tensor=host_tensor)
    if host_tensor.device() is not None or device_tensor.device() is None:
        raise DeviceError("copy_device_to_host_tensor: it goes from a device tensor to a host tensor, in this order")
    _require_same_spec("copy_device_to_host_tensor: host_tensor", host_tensor, device_tensor)
    host_tensor.take(device_tensor)


def allocate_tensor_on_device(spec: TensorSpec | Sequence[int], *place: Any) -> Tensor:
    """A device tensor that has memory but no values yet.

    Args:
        spec: A TensorSpec; or the shape.
        place: After a TensorSpec, the device; after a shape, data type, layout, device and perhaps memory config
            (DRAM by default).

    Returns:
        The tensor; reading it before it is written raises a DeviceError.

    Raises:
        ArgumentTypeError: The arguments are neither of the two lists.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> tensor = ttnn.allocate_tensor_on_device((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
        >>> tensor.shape, tensor.is_allocated()
        (Shape([32, 32]), True)
    """
    if not isinstance(spec, TensorSpec):
        if len(place) not in (3, 4):
            raise ArgumentTypeError("allocate_tensor_on_device: give shape, dtype, layout, device and memory_config")
        dtype, layout, config = place[0], place[1], place[3] if len(place) == 4 else DRAM_MEMORY_CONFIG
        require_type("allocate_tensor_on_device", DataType, dtype=dtype)
        require_type("allocate_tensor_on_device", Layout, layout=layout)
        require_type("allocate_tensor_on_device", MemoryConfig, memory_config=config)
        return allocate_tensor_on_device(TensorSpec(tuple(spec), dtype.format, layout, config), place[2])
    if len(place) != 1:
        raise ArgumentTypeError("allocate_tensor_on_device: give a spec and a device")
    device, tensor_spec = place[0], spec
    require_type("allocate_tensor_on_device", Device, device=device)
    machine = device.listened()
    buffer = locked(machine, lambda: machine.allocate(tensor_spec.buffer(device.spec), "tensor", by=CREATED))
    return Tensor.of_buffer(device, buffer, tensor_spec)


def allocate_tensor_on_host(spec: TensorSpec, device: Device) -> Tensor:
    """A host tensor of zeros, which `copy_device_to_host_tensor` can fill.

    Args:
        spec: Shape, data type and layout.
        device: The device whose tensors are copied.

    Returns:
        The tensor on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> tensor = ttnn.ones((32, 32), device=device)
        >>> ttnn.allocate_tensor_on_host(tensor.spec, device).to_numpy().max().item()
        0.0
    """
    require_type("allocate_tensor_on_host", TensorSpec, spec=spec)
    require_type("allocate_tensor_on_host", Device, device=device)
    tensor = Tensor(np.zeros(spec.shape, np.float32), DataType.of(spec.data_format), layout=spec.layout)
    return Tensor.of_host(tensor.values(), TensorSpec(spec.shape, spec.data_format, spec.layout))


def from_host_shards(tensors: Sequence[Tensor], mesh_shape: MeshShape) -> Tensor:
    """The tensor of a mesh, composed of its parts; a mesh of one device has one part.

    Args:
        tensors: The parts: one tensor.
        mesh_shape: Rows and columns of the mesh: MeshShape(1, 1).

    Returns:
        The one part.

    Raises:
        ArgumentTypeError: ``mesh_shape`` is no MeshShape.
        ArgumentError: The mesh or the list is larger.

    Examples:
        >>> ttnn.from_host_shards([ttnn.ones((1, 2))], ttnn.MeshShape(1, 1)).shape
        Shape([1, 2])
    """
    require_type("from_host_shards", MeshShape, mesh_shape=mesh_shape)
    if len(tensors) != 1 or mesh_shape.mesh_size() != 1:
        raise ArgumentError(f"from_host_shards: ttsim simulates one device, not {mesh_shape} of {len(tensors)} parts")
    return tensors[0]


def get_device_tensors(tensor: Tensor) -> list[Tensor]:
    """The parts of a tensor on each device.

    Args:
        tensor: A tensor.

    Returns:
        The tensor itself in a list, since there is one device.

    Raises:
        ArgumentTypeError: The argument is no tensor.

    Examples:
        >>> tensor = ttnn.ones((1, 2), device=device)
        >>> ttnn.get_device_tensors(tensor)[0] is tensor
        True
    """
    require_type("get_device_tensors", Tensor, tensor=tensor)
    return [tensor]


def _require_same_spec(name: str, output_tensor: Tensor, result: Tensor) -> None:
    """Raises DeviceError, with the name of the first tensor, where it can not take the values of the second."""
    target, source = output_tensor.spec, result.spec
    if (target.shape, target.data_format, target.layout) != (source.shape, source.data_format, source.layout):
        raise DeviceError(
            f"{name} must have shape {list(source.shape)}, {result.dtype} and {source.layout}, not "
            f"{list(target.shape)}, {output_tensor.dtype} and {target.layout}"
        )


def tensor_like(tensor: Tensor | TensorDescription, device: Device) -> Tensor:
    """A tensor without values like the one given or described, on the device or on the host."""
    if isinstance(tensor, Tensor):
        spec, on_host = tensor.spec, tensor.device() is None
    else:
        on_host = tensor.memory_config is None
        place = tensor.memory_config or DRAM_MEMORY_CONFIG
        spec = TensorSpec(tensor.shape, tensor.dtype.format, tensor.layout, place)
    if on_host:
        return Tensor.of_host(np.broadcast_to(np.zeros((), spec.data_format.storage), spec.shape), spec)
    created_by = tensor.created_by if isinstance(tensor, Tensor) else AsWanted()
    return Tensor.of_buffer(
        device, device.machine.allocate(spec.buffer(device.spec), "input"), spec, created_by=created_by
    )
