"""ttnn's functions that move tensors: from and to torch and numpy, devices, layouts, data types, memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from device.errors import DeviceError
from device.memory.memory_config import Layout, MemoryConfig
from device.plan import Plan
from ops.calls.relaying.layouts import plan_to_layout, plan_typecast
from ops.calls.relaying.places import plan_to_memory_config
from ttsim.runtime.device import Device
from ttsim.runtime.execution import on_device, require_allocated, run
from ttsim.runtime.tensor import Tensor
from ttsim.types.dtypes import DataType
from ttsim.types.signature import require_type, require_type_or_none


def from_torch(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: object = None,
    pad_value: float | None = None,
) -> Tensor:
    """A tensor of a torch tensor (numpy arrays are taken too).

    Args:
        tensor: The values.
        dtype: What to round them to; None for what they are.
        layout: ROW_MAJOR by default, TILE for block floats.
        device: Where to put it; None for the host.
        memory_config: Place on the device; DRAM by default.
        mesh_mapper: Accepted as in ttnn; there is one device.
        pad_value: Accepted as in ttnn; padding never reaches a result.

    Raises:
        DeviceError: Block floats in row-major layout, a memory config without a device, or no room.
    """
    require_type_or_none("from_torch", DataType, dtype=dtype)
    if dtype is not None and dtype.format.is_block and layout is Layout.ROW_MAJOR:
        raise DeviceError(
            f"ttnn.from_torch: {dtype.format} requires TILE_LAYOUT!\nlayout: leave it out, or give ttsim.TILE_LAYOUT"
        )
    if memory_config is not None and device is None:
        raise DeviceError(
            "device must be specified if memory_config is specified\ngive device=..., or leave memory_config out"
        )
    return Tensor(tensor, dtype, device, layout, memory_config)


def from_numpy(array: Any, dtype: DataType | None = None, **place: Any) -> Tensor:
    """A tensor of a numpy array; the other arguments are those of from_torch."""
    return from_torch(np.asarray(array), dtype, **place)


def as_tensor(tensor: Any, dtype: DataType | None = None, *, cache_file_name: object = None, **place: Any) -> Tensor:
    """from_torch under another name; files are not cached, so ``cache_file_name`` changes nothing."""
    return from_torch(tensor, dtype, **place)


def to_torch(tensor: Tensor, dtype: Any = None, **ignored: object) -> Any:
    """The values as a torch tensor.

    Args:
        tensor: The tensor.
        dtype: A torch dtype to convert to; None for the nearest of the tensor's.
        ignored: Mesh composers and the like: there is one device.

    Raises:
        DeviceError: It was deallocated, or its device computes no values.
        ImportError: torch is not installed.
    """
    require_type("to_torch", Tensor, tensor=tensor)
    result = tensor.to_torch()
    return result if dtype is None else result.to(dtype)


def to_device(tensor: Tensor, device: Device, memory_config: MemoryConfig | None = None) -> Tensor:
    """The tensor on a device, in DRAM by default; raises DeviceError when there is no room."""
    require_type("to_device", Tensor, tensor=tensor)
    require_type("to_device", Device, device=device)
    return tensor.to(device, memory_config)


def from_device(tensor: Tensor, blocking: bool = True) -> Tensor:
    """The tensor on the host; itself if it is there."""
    require_type("from_device", Tensor, tensor=tensor)
    return tensor.cpu()


def to_layout(
    tensor: Tensor,
    layout: Layout,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """The tensor in another layout, and data type and place if given; itself if it has the layout.

    On a device this is a device operation. Block floats exist in tiles only: in rows they become bfloat16.
    """
    require_type("to_layout", Tensor, tensor=tensor)
    require_type("to_layout", Layout, layout=layout)
    require_type_or_none("to_layout", DataType, dtype=dtype)
    device = tensor.device()
    if device is not None:
        data_format = None if dtype is None else dtype.format
        plan = plan_to_layout(tensor.spec, layout, device.spec, place=memory_config, data_format=data_format)
        return _carried_out("to_layout", plan, tensor, device)
    if layout is Layout.ROW_MAJOR and tensor.dtype.format.is_block:
        tensor = tensor.with_dtype(DataType.BFLOAT16)
    changed = tensor if tensor.layout is layout else tensor.to(layout)
    if dtype is not None and changed.dtype is not dtype:
        changed = changed.with_dtype(dtype)
    return changed if memory_config is None else to_memory_config(changed, memory_config)


def to_dtype(tensor: Tensor, dtype: DataType) -> Tensor:
    """The tensor rounded to another data type; itself if it has it."""
    require_type("to_dtype", Tensor, tensor=tensor)
    require_type("to_dtype", DataType, dtype=dtype)
    return tensor if tensor.dtype is dtype else tensor.with_dtype(dtype)


def typecast(tensor: Tensor, dtype: DataType, *, memory_config: MemoryConfig | None = None) -> Tensor:
    """The tensor in another data type: on a device by a device operation, whatever type it has."""
    require_type("typecast", Tensor, tensor=tensor)
    require_type("typecast", DataType, dtype=dtype)
    device = tensor.device()
    if device is None:
        return to_dtype(tensor, dtype)
    plan = plan_typecast(tensor.spec, dtype.format, device.spec, place=memory_config)
    return _carried_out("typecast", plan, tensor, device)


def to_memory_config(tensor: Tensor, memory_config: MemoryConfig, dtype: DataType | None = None) -> Tensor:
    """The device tensor in another place, by a device operation; itself if it is there and its data type stays."""
    require_type("to_memory_config", Tensor, tensor=tensor)
    require_type("to_memory_config", MemoryConfig, memory_config=memory_config)
    require_type_or_none("to_memory_config", DataType, dtype=dtype)
    device = tensor.device()
    if device is None or tensor.made_by is not None:  # what was prepared keeps its padding
        return tensor.with_memory_config(memory_config)
    data_format = None if dtype is None else dtype.format
    plan = plan_to_memory_config(tensor.spec, memory_config, device.spec, data_format=data_format)
    return _carried_out("to_memory_config", plan, tensor, device)


@on_device
def _carried_out(owner: str, plan: Plan, tensor: Tensor, device: Device) -> Tensor:
    """The result of a plan of one tensor, "input"."""
    require_allocated(tensor)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": tensor}, device)["output"]


def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Frees a tensor's memory; doing so twice is harmless."""
    require_type("deallocate", Tensor, tensor=tensor)
    tensor.deallocate(force)


def reshape(tensor: Tensor, shape: Sequence[int], memory_config: MemoryConfig | None = None) -> Tensor:
    """The same elements in another shape; raises DeviceError when the volumes differ."""
    require_type("reshape", Tensor, tensor=tensor)
    changed = tensor.reshape(shape)
    return changed if memory_config is None else to_memory_config(changed, memory_config)


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    """Whether the tensor lives on a device."""
    require_type("is_tensor_storage_on_device", Tensor, tensor=tensor)
    return tensor.device() is not None
