"""Copies into existing tensors: between host and device, and into preallocated outputs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import quantize
from ops.builder import CREATED
from ops.programs.conv2d.weights import AsWanted
from ttsim.runtime.device import Device, MeshShape
from ttsim.runtime.mesh import MeshToTensor, TensorToMesh
from ttsim.runtime.session import current, locked
from ttsim.runtime.storage import UNKNOWN
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import require_type, require_type_or_none
from ttsim.runtime.types.tensors import DataType, TensorDescription

DESCRIPTIONS: Final = TensorDescription | TensorSpec  # of tensors without values


def stored_in(output_tensor: Tensor, result: Tensor, *, argument: str = "output_tensor") -> Tensor:
    """Copies a tensor into ``output_tensor``; raises DeviceError unless shape, data type and layout are equal.

    ``argument`` is the name of ``output_tensor`` in errors.
    """
    require_type("output_tensor", Tensor, output_tensor=output_tensor)
    _require_same_spec(argument, output_tensor, result)
    device = output_tensor.device()
    if device is not None:
        targets, sources = output_tensor.each(), result.each()
        sources = sources * len(targets) if len(sources) == 1 else sources
        if len(sources) != len(targets):
            raise DeviceError(f"{argument} has {len(targets)} parts on its mesh, not {len(sources)}")
        for target, source in zip(targets, sources, strict=True):
            buffer, left_out = target.buffer, source.left_out and device.values == "off"
            store = buffer.forget if left_out else partial(buffer.store, source.values(), target.spec)
            home = target.device()
            locked((home or device).listened(), store)
    return output_tensor


def copy_host_to_device_tensor(host_tensor: Tensor, device_tensor: Tensor, cq_id: int | None = None) -> None:
    """Copies the values of a host tensor into an existing device tensor.

    Args:
        host_tensor: The tensor to read.
        device_tensor: The tensor to write, of the same shape, data type and layout.
        cq_id: Accepted as in ttnn; there is one queue.

    Raises:
        ArgumentTypeError: An argument is not a tensor.
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
        ArgumentTypeError: An argument is not a tensor.
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
        place: After a TensorSpec, the device; after a shape, the data type, layout, device and optionally the memory
            config (default: DRAM).

    Returns:
        The tensor; reading it before it is written raises a DeviceError.

    Raises:
        ArgumentTypeError: The arguments match neither form.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> tensor = ttnn.allocate_tensor_on_device((32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
        >>> tensor.shape, tensor.is_allocated()
        (Shape([32, 32]), True)
    """
    tensor_spec, device = _described("allocate_tensor_on_device", spec, place)
    first, *others = [_allocated(each, tensor_spec) for each in device.devices]
    first.spread(others)
    return first


def _allocated(device: Device, spec: TensorSpec, name: str = "tensor") -> Tensor:
    machine = device.listened()
    dispatch = current().dispatch
    buffer = locked(machine, lambda: machine.allocate(spec.buffer(device.spec), name, by=CREATED, placed=dispatch))
    device.tell_placed(buffer, spec)
    return Tensor.of_buffer(device, buffer, spec)


def allocate_tensor_on_host(spec: TensorSpec | Sequence[int], *place: Any) -> Tensor:
    """A host tensor of zeros, which `copy_device_to_host_tensor` can fill.

    Args:
        spec: A TensorSpec; or the shape.
        place: After a TensorSpec, the device whose tensors are copied; after a shape, the data type, layout, device and
            optionally the memory config.

    Returns:
        The tensor on the host.

    Raises:
        ArgumentTypeError: The arguments match neither form.

    Examples:
        >>> tensor = ttnn.ones((32, 32), device=device)
        >>> ttnn.allocate_tensor_on_host(tensor.spec, device).to_numpy().max().item()
        0.0
    """
    wanted, _ = _described("allocate_tensor_on_host", spec, place)
    tensor = Tensor(np.zeros(wanted.shape, np.float32), DataType.of(wanted.data_format), layout=wanted.layout)
    return Tensor.of_host(tensor.values(), TensorSpec(wanted.shape, wanted.data_format, wanted.layout))


def _described(name: str, spec: object, place: Sequence[Any]) -> tuple[TensorSpec, Device]:
    """The tensor and the device of ``spec, device`` or of ``shape, dtype, layout, device, memory_config``."""
    if not isinstance(spec, TensorSpec):
        if not isinstance(spec, Sequence) or len(place) not in (3, 4):
            raise ArgumentTypeError(f"{name}: give shape, dtype, layout, device and memory_config")
        dtype, layout, config = place[0], place[1], place[3] if len(place) == 4 else DRAM_MEMORY_CONFIG
        require_type(name, DataType, dtype=dtype)
        require_type(name, Layout, layout=layout)
        require_type(name, MemoryConfig, memory_config=config)
        return _described(name, TensorSpec(tuple(spec), dtype.format, layout, config), place[2:3])
    if len(place) != 1:
        raise ArgumentTypeError(f"{name}: give a spec and a device")
    require_type(name, Device, device=place[0])
    return spec, place[0]


def from_host_shards(tensors: Sequence[Tensor], mesh_shape: MeshShape) -> Tensor:
    """A tensor of a mesh from its parts on the host.

    Args:
        tensors: The part of each device, in row-major order; all of one shape, data type and layout.
        mesh_shape: Rows and columns of the mesh.

    Returns:
        The distributed tensor on the host; on one device, the part itself.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: There are more or fewer parts than devices, or a part is on a device.
        DeviceError: Parts differ in shape, data type or layout.

    Examples:
        >>> ttnn.from_host_shards([ttnn.ones((1, 2))], ttnn.MeshShape(1, 1)).shape
        Shape([1, 2])
    """
    require_type("from_host_shards", MeshShape, mesh_shape=mesh_shape)
    parts = _same_tensors("from_host_shards", tensors)
    if len(parts) != mesh_shape.mesh_size() or any(part.device() is not None for part in parts):
        raise ArgumentError(
            f"from_host_shards: {mesh_shape} needs {mesh_shape.mesh_size()} parts on the host, not {len(parts)} parts"
        )
    return parts[0] if len(parts) == 1 else parts[0].joined_by(parts[1:])


def _same_tensors(function: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a tensor as a list; raises an error if the list is empty, or a part differs from the first."""
    parts = list(tensors) if isinstance(tensors, Sequence) else []
    if not parts or not all(isinstance(part, Tensor) for part in parts):
        raise ArgumentTypeError(f"{function}: tensors must be a sequence of tensors, not {shown(tensors)}")
    for part in parts[1:]:
        _require_same_spec(f"{function}: every part", part, parts[0])
    return parts


def get_device_tensors(tensor: Tensor) -> list[Tensor]:
    """The parts of a tensor on each device of a mesh.

    Args:
        tensor: A tensor.

    Returns:
        The part of each device, which shares the tensor's memory; the tensor itself in a list if it has one part.

    Raises:
        ArgumentTypeError: The argument is not a tensor.

    Examples:
        >>> tensor = ttnn.ones((1, 2), device=device)
        >>> ttnn.get_device_tensors(tensor)[0] is tensor
        True
    """
    require_type("get_device_tensors", Tensor, tensor=tensor)
    return tensor.each()


def combine_device_tensors(*, tensors: Sequence[Tensor]) -> Tensor:
    """A tensor of a mesh from its parts.

    Args:
        tensors: The part of each device, from `get_device_tensors`, or parts on the host.

    Returns:
        The tensor, which shares the memory of its parts.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Parts differ in shape, data type or layout.
        NotSimulatedError: Parts of several tensors on devices.

    Examples:
        >>> tensor = ttnn.ones((1, 2), device=device)
        >>> ttnn.combine_device_tensors(tensors=ttnn.get_device_tensors(tensor)) is tensor
        True
    """
    parts = _same_tensors("combine_device_tensors", tensors)
    if all(part.device() is None for part in parts) or len(parts) == 1:
        return parts[0] if len(parts) == 1 else parts[0].joined_by(parts[1:])
    whole = parts[0].whole()
    if whole is None or [part.buffer for part in whole.each()] != [part.buffer for part in parts]:
        raise NotSimulatedError(
            "combine_device_tensors: parts of several tensors on devices are not simulated; bring the parts to the host"
        )
    return whole


def distribute_tensor(tensor: Tensor, mapper: TensorToMesh, mesh_device: Device | None = None) -> Tensor:
    """A tensor of the host distributed over the devices of a mesh.

    Args:
        tensor: The tensor.
        mapper: The mapper, from `create_mesh_mapper` or a similar function.
        mesh_device: The mesh that holds the result; None for the host.

    Returns:
        The distributed tensor, whose shape is that of a part.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The mapper names an axis that the tensor does not have.
        DeviceError: The tensor is on a device, or its parts have different shapes.
        NotSimulatedError: There are fewer parts than devices.

    Examples:
        >>> mapper = ttnn.shard_tensor_to_mesh_mapper(device, dim=0)
        >>> ttnn.distribute_tensor(ttnn.ones((2, 4)), mapper, device).shape
        Shape([2, 4])
    """
    require_type("distribute_tensor", Tensor, tensor=tensor)
    require_type("distribute_tensor", TensorToMesh, mapper=mapper)
    require_type_or_none("distribute_tensor", Device, mesh_device=mesh_device)
    if tensor.device() is not None:
        raise DeviceError(
            f"TensorToMesh only supports host tensors; got storage type: {tensor.storage_type()}\n"
            "distribute_tensor: bring the tensor to the host first, with .cpu()"
        )
    unknown = tensor.left_out
    values = np.broadcast_to(np.zeros((), np.float32), tensor.spec.shape) if unknown else tensor.values()
    first, *others = [
        part if part.shape == tensor.spec.shape else np.ascontiguousarray(part) for part in mapper.parts(values)
    ]
    spec = TensorSpec(first.shape, tensor.spec.data_format, tensor.layout)
    arrays = (
        [UNKNOWN] * (1 + len(others)) if unknown else [quantize(part, spec.data_format) for part in (first, *others)]
    )
    result = Tensor.of_host(arrays[0], spec, parts=arrays[1:])
    return result if mesh_device is None else result.to(mesh_device, tensor.spec.memory_config)


def aggregate_tensor(tensor: Tensor, composer: MeshToTensor) -> Tensor:
    """The parts of a tensor on all devices of a mesh, joined on the host.

    Args:
        tensor: The tensor.
        composer: The composer, from `create_mesh_composer` or a similar function.

    Returns:
        The tensor on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The composer names an axis that the parts do not have.
        DeviceError: The tensor was deallocated, or has another number of parts than the composer joins.

    Examples:
        >>> composer = ttnn.concat_mesh_to_tensor_composer(device, dim=0)
        >>> ttnn.aggregate_tensor(ttnn.ones((1, 2), device=device), composer).to_list()
        [[1.0, 1.0]]
    """
    require_type("aggregate_tensor", Tensor, tensor=tensor)
    require_type("aggregate_tensor", MeshToTensor, composer=composer)
    parts = tensor.each()
    unknown = any(part.left_out for part in parts)
    nothing = np.broadcast_to(np.zeros((), np.float32), tensor.spec.shape)
    whole = composer.whole([nothing if unknown else part.values() for part in parts])
    spec = TensorSpec(whole.shape, tensor.spec.data_format, tensor.layout)
    return Tensor.of_host(UNKNOWN if unknown else quantize(whole, spec.data_format), spec)


def _require_same_spec(name: str, output_tensor: Tensor, result: Tensor) -> None:
    """Raises DeviceError, with the name of the first tensor, if it cannot hold the values of the second tensor."""
    target, source = output_tensor.spec, result.spec
    if (target.shape, target.data_format, target.layout) != (source.shape, source.data_format, source.layout):
        raise DeviceError(
            f"{name} must have shape {list(source.shape)}, {result.dtype} and {source.layout}, not "
            f"{list(target.shape)}, {output_tensor.dtype} and {target.layout}"
        )


def tensor_like(tensor: Tensor | TensorDescription | TensorSpec, device: Device) -> Tensor:
    """A tensor without values with the spec of a tensor or a description, on the device or on the host.

    Without dispatch it takes no memory. A described tensor is accepted as prepared weights of any call.
    """
    on_host = isinstance(tensor, Tensor) and tensor.device() is None
    if isinstance(tensor, TensorDescription):
        on_host = tensor.memory_config is None
        place = tensor.memory_config or DRAM_MEMORY_CONFIG
        tensor = TensorSpec(tensor.shape, tensor.dtype.format, tensor.layout, place)
    spec = tensor.spec if isinstance(tensor, Tensor) else tensor
    if on_host:
        return Tensor.of_host(np.broadcast_to(np.zeros((), spec.data_format.storage), spec.shape), spec)
    result = _allocated(device, spec, name="input")
    result.created_by = tensor.created_by if isinstance(tensor, Tensor) else AsWanted()
    return result
