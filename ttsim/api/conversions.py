"""ttnn's functions that move tensors: from and to torch and numpy, devices, layouts, data types, memory."""

import json
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import prod
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig
from device.numbers.formats import Array
from ops.planners.to_config import plan_to_layout, plan_to_memory_config, plan_typecast, require_right_rows
from ttsim.api.device_calls import cached_plan, carried_out, require_left_out
from ttsim.runtime.device import Device
from ttsim.runtime.execution import on_device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import stored_in
from ttsim.runtime.types.call import require_type, require_type_or_none
from ttsim.runtime.types.tensors import DataType, Tile


def from_torch(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    spec: TensorSpec | None = None,
    tile: Tile | None = None,
    pad_value: float | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: object = None,
    cq_id: int | None = None,
    preserve_nan_values: bool = False,
    col_tilize: bool = False,
    enable_bfloat_opt: bool = False,
) -> Tensor:
    """A tensor of a torch tensor (numpy arrays are taken too).

    Args:
        dtype: What to round them to; None for what they are.
        spec: Data type, layout and place of another tensor, in place of the three.
        tile: Of 32 x 32 elements.
        pad_value: Accepted as in ttnn; padding never reaches a result.
        layout: ROW_MAJOR by default, TILE for block floats.
        memory_config: Place on the device; DRAM by default.
        mesh_mapper: Accepted as in ttnn; there is one device.
        cq_id: Accepted as in ttnn; there is one queue.
        preserve_nan_values: Accepted as in ttnn; how a NaN is rounded is not changed.
        col_tilize: Block floats along columns: only False.
        enable_bfloat_opt: Accepted as in ttnn, where it changes how fast the host converts.

    Raises:
        DeviceError: Block floats in row-major layout, a memory config without a device, or no room.
        ArgumentError: ``col_tilize``, or a spec beside what it says.
    """
    require_type_or_none("from_torch", Tile, tile=tile)
    if col_tilize:
        raise ArgumentError("from_torch: col_tilize: block floats along columns are not simulated; leave it out")
    if spec is not None:
        require_type("from_torch", TensorSpec, spec=spec)
        if any(option is not None for option in (dtype, layout, memory_config)):
            raise ArgumentError("from_torch: spec says dtype, layout and memory_config; leave them out")
        dtype, layout = DataType.of(spec.data_format), spec.layout
        memory_config = None if device is None else spec.memory_config
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


def as_tensor(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: object = None,
    preprocess: Callable[[Any], Any] | None = None,
    mesh_mapper: object = None,
    cache_dump_mode: object = None,
) -> Tensor:
    """A tensor of a torch tensor; other arguments and errors are those of `from_torch`.

    Args:
        cache_file_name: Accepted as in ttnn, as ``cache_dump_mode`` is; files are not cached.
        preprocess: Called with the values; what it returns is taken.
    """
    values = tensor if preprocess is None else preprocess(tensor)
    return from_torch(values, dtype, layout=layout, device=device, memory_config=memory_config, mesh_mapper=mesh_mapper)


def to_torch(
    tensor: Tensor,
    dtype: Any = None,
    *,
    torch_rank: int | None = None,
    mesh_composer: object = None,
    device: Device | None = None,
    cq_id: int | None = None,
) -> Any:
    """The values as a torch tensor.

    Args:
        dtype: A torch dtype to convert to; None for the nearest of the tensor's.
        torch_rank: Axes to keep: sides of 1 at the front are left out, while there are more.
        mesh_composer: Accepted as in ttnn; there is one device.
        cq_id: Accepted as in ttnn; there is one queue.

    Raises:
        DeviceError: It was deallocated, its device computes no values, or a side to be left out is not 1.
    """
    require_type("to_torch", Tensor, tensor=tensor)
    result = tensor.to_torch()
    if torch_rank is not None:
        while result.dim() > torch_rank:
            if result.shape[0] != 1:
                raise DeviceError(
                    "ttnn: Unable to squeeze to desired rank!\nto_torch: torch_rank: the first side is not 1"
                )
            result = result.squeeze(0)
    return result if dtype is None else result.to(dtype)


@on_device
def to_device(
    tensor: Tensor, device: Device, memory_config: MemoryConfig | None = None, *, queue_id: int | None = None
) -> Tensor:
    """The tensor on a device, in DRAM by default, by whatever queue; raises DeviceError when there is no room."""
    require_type("to_device", Tensor, tensor=tensor)
    require_type("to_device", Device, device=device)
    with device.function("ttnn.to_device"):
        return tensor.to(device, memory_config)


@on_device
def from_device(tensor: Tensor, blocking: bool = True, *, queue_id: int | None = None) -> Tensor:
    """The tensor on the host, at once and by whatever queue; itself if it is there."""
    require_type("from_device", Tensor, tensor=tensor)
    with _function("ttnn.from_device", tensor):
        return tensor.cpu()


@on_device
def to_layout(
    tensor: Tensor,
    layout: Layout,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: object = None,
    pad_value: float = 0.0,
) -> Tensor:
    """The tensor in another layout, and data type and place if given; itself if it has the layout.

    On a device this is a device operation. Padding (``pad_value``) never reaches a result. Block floats exist in tiles
    only: in rows they become bfloat16. Raises ArgumentError for ``sub_core_grids``, which is not simulated.
    """
    require_left_out("to_layout", sub_core_grids=sub_core_grids)
    require_type("to_layout", Tensor, tensor=tensor)
    require_type("to_layout", Layout, layout=layout)
    require_type_or_none("to_layout", DataType, dtype=dtype)
    require_type_or_none("to_layout", MemoryConfig, memory_config=memory_config)
    device = tensor.device()
    if device is not None:
        data_format = None if dtype is None else dtype.format
        plan = cached_plan(plan_to_layout, device, tensor.spec, layout, place=memory_config, data_format=data_format)
        return carried_out("to_layout", plan, tensor, device)
    if layout is Layout.ROW_MAJOR and tensor.dtype.format.is_block:
        tensor = tensor.with_dtype(DataType.BFLOAT16)
    changed = tensor if tensor.layout is layout else tensor.to(layout)
    if dtype is not None and changed.dtype is not dtype:
        changed = changed.with_dtype(dtype)
    return changed if memory_config is None else to_memory_config(changed, memory_config)


def to_dtype(tensor: Tensor, dtype: DataType) -> Tensor:
    """The host tensor rounded to another data type; itself if it has it; raises DeviceError for a device tensor."""
    require_type("to_dtype", Tensor, tensor=tensor)
    require_type("to_dtype", DataType, dtype=dtype)
    if tensor.device() is not None:
        raise DeviceError(
            "Expected Tensor with HostStorage, got StorageType::DEVICE\n"
            "to_dtype: the tensor is on the device; typecast changes its data type there"
        )
    rows, tiles = tensor.spec.matrix, TensorSpec(tensor.shape, dtype.format, Layout.TILE).matrix
    if dtype.format.is_block and tensor.layout is Layout.ROW_MAJOR and rows != tiles:
        raise DeviceError(
            f"to_dtype: Converting layout to Layout::TILE implicitly changed physical shape from {rows} to "
            f"{tiles} due to alignment constraints. This is currently unsupported. Please pad the tensor explicitly "
            "before conversion.\n"
            "tensor: give it TILE layout first"
        )
    return tensor if tensor.dtype is dtype else tensor.with_dtype(dtype)


@on_device
def typecast(
    input_tensor: Tensor,
    dtype: DataType,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: object = None,
) -> Tensor:
    """The tensor in another data type: on a device by a device operation, whatever type it has.

    Args:
        memory_config: Place of the result; None for that of the tensor.
        output_tensor: A tensor of the same shape that takes the result; raises DeviceError for another kind of tensor.
        sub_core_grids: Not simulated.
    """
    require_left_out("typecast", sub_core_grids=sub_core_grids)
    require_type("typecast", Tensor, input_tensor=input_tensor)
    require_type("typecast", DataType, dtype=dtype)
    require_type_or_none("typecast", MemoryConfig, memory_config=memory_config)
    device, changed = input_tensor.device(), input_tensor
    if device is not None:
        plan = cached_plan(plan_typecast, device, input_tensor.spec, dtype.format, place=memory_config)
        changed = carried_out("typecast", plan, input_tensor, device)
    elif input_tensor.dtype is not dtype:
        changed = input_tensor.with_dtype(dtype)
    return changed if output_tensor is None else stored_in(output_tensor, changed)


@on_device
def to_memory_config(
    tensor: Tensor, memory_config: MemoryConfig, dtype: DataType | None = None, output_tensor: Tensor | None = None
) -> Tensor:
    """The device tensor in another place, by a device operation; itself if it is there and its data type stays.

    An ``output_tensor`` of the same shape takes the result. A strict device raises ArgumentError for rows of which the
    real library misplaces parts.
    """
    if output_tensor is not None:
        return stored_in(output_tensor, to_memory_config(tensor, memory_config, dtype))
    require_type("to_memory_config", Tensor, tensor=tensor)
    require_type("to_memory_config", MemoryConfig, memory_config=memory_config)
    require_type_or_none("to_memory_config", DataType, dtype=dtype)
    device = tensor.device()
    if device is None or tensor.created_by is not None:  # what was prepared keeps its padding
        return tensor.with_memory_config(memory_config)
    data_format = None if dtype is None else dtype.format
    plan = cached_plan(plan_to_memory_config, device, tensor.spec, memory_config, data_format=data_format)
    if device.strict:
        require_right_rows(plan)
    return carried_out("to_memory_config", plan, tensor, device)


@on_device
def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Frees a tensor's memory; doing so twice is harmless."""
    require_type("deallocate", Tensor, tensor=tensor)
    with _function("ttnn.deallocate", tensor):
        tensor.deallocate(force)


def _function(name: str, tensor: Tensor) -> AbstractContextManager[None]:
    """Marks what happens inside as a function of the library, if it is about a tensor on a device."""
    device = tensor.device()
    return nullcontext() if device is None else device.function(name)


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    """Whether the tensor lives on a device."""
    require_type("is_tensor_storage_on_device", Tensor, tensor=tensor)
    return tensor.device() is not None


def get_memory_config(tensor: Tensor) -> MemoryConfig | None:
    """Where a device tensor lives; None for a host tensor."""
    require_type("get_memory_config", Tensor, tensor=tensor)
    return None if tensor.device() is None else tensor.memory_config()


def dump_tensor(file_name: str | Path, tensor: Tensor) -> None:
    """Writes a tensor, but for its place on a device, into a file of exactly this name.

    Raises DeviceError for a tensor that was deallocated, or whose device computes no values.
    """
    require_type("dump_tensor", Tensor, tensor=tensor)
    kind = json.dumps({"dtype": tensor.dtype.name, "layout": tensor.layout.name})
    with Path(file_name).open("wb") as file:
        np.savez(file, values=tensor.to_numpy(), kind=np.array(kind))


def load_tensor(file_name: str | Path, device: Device | None = None) -> Tensor:
    """A tensor that `dump_tensor` wrote, in DRAM of a device or on the host.

    Raises ArgumentError for another file (those of the real library have another format), or one that was cut short.
    """
    require_type_or_none("load_tensor", Device, device=device)
    path = Path(file_name)
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            values, kind = (_array(archive, name, path) for name in ("values", "kind"))
        text = json.loads(str(kind))
        dtype, layout = DataType[text["dtype"]], Layout[text["layout"]]
    except (ArgumentError, OSError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, BadZipFile, zlib.error):
        raise ArgumentError(f"load_tensor: {file_name} is no file of ttsim.dump_tensor; write it anew") from None
    return Tensor(values, dtype, device, layout)


def _array(archive: ZipFile, name: str, path: Path) -> Array:
    """An array of a file; no memory is taken before the file is known to be long enough."""
    with archive.open(f"{name}.npy") as member:
        wide = np.lib.format.read_magic(member) > (1, 0)
        read = np.lib.format.read_array_header_2_0 if wide else np.lib.format.read_array_header_1_0
        shape, _, dtype = read(member)
    needed, there = prod(shape) * dtype.itemsize, path.stat().st_size
    if needed > there:
        raise ArgumentError(
            f"load_tensor: {path} claims {name} of the shape {list(shape)}, {needed:,} bytes, and has {there:,}; "
            "write it anew"
        )
    with archive.open(f"{name}.npy") as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
