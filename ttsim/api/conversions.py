"""ttnn's functions that move tensors: from and to torch and numpy, devices, layouts, data types, memory."""

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from math import prod
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile, ZipFile

import numpy as np

from device.cores import CoreRangeSet
from device.errors import ArgumentError, ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import Array, round_up
from device.spec.releases import release_of
from ops.planners.shape.to_layout import plan_to_layout
from ops.planners.to_config import plan_to_memory_config, plan_typecast, require_right_rows
from ttsim.api.device_calls import cached_plan, carried_out
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.mesh import MeshToTensor, TensorToMesh
from ttsim.runtime.session import outside_graphs
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import aggregate_tensor, distribute_tensor, stored_in
from ttsim.runtime.types.call import checked_as, require_type, require_type_or_none, required_integer
from ttsim.runtime.types.docs import described
from ttsim.runtime.types.of_torch import TorchTensor, TorchType
from ttsim.runtime.types.tensors import DataType, Tile

Mapped = TypeVar("Mapped", TensorToMesh, MeshToTensor)
_DISTRIBUTED: ContextVar[tuple[object, ...]] = ContextVar("distribute", default=())  # The innermost context last


@contextmanager
def distribute(default: TensorToMesh | MeshToTensor) -> Iterator[None]:
    """A context that sets the default mapper of `from_torch` or the default composer of `to_torch`.

    Args:
        default: The mapper or the composer.

    Returns:
        A context manager.

    Raises:
        ArgumentError: The argument is neither a mapper nor a composer.

    Examples:
        >>> with ttnn.distribute(ttnn.shard_tensor_to_mesh_mapper(device, dim=0)):
        ...     ttnn.from_torch(np.ones((2, 2)), ttnn.bfloat16).shape
        Shape([2, 2])
    """
    if not isinstance(default, TensorToMesh | MeshToTensor):
        raise ArgumentError(
            "Argument must be an instance of either TensorToMesh or MeshToTensor.\ndistribute: give one"
        )
    token = _DISTRIBUTED.set((*_DISTRIBUTED.get(), default))
    try:
        yield
    finally:
        _DISTRIBUTED.reset(token)


def _chosen(function: str, kind: type[Mapped], given: Mapped | None) -> Mapped | None:
    """The mapper or composer of a call, or else of the innermost `distribute`."""
    name = "mesh_mapper" if kind is TensorToMesh else "mesh_composer"
    require_type_or_none(function, kind, **{name: given})
    return given or next((default for default in reversed(_DISTRIBUTED.get()) if isinstance(default, kind)), None)


@outside_graphs
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
    mesh_mapper: TensorToMesh | None = None,
    cq_id: int | None = None,
    preserve_nan_values: bool = False,
    col_tilize: bool = False,
    enable_bfloat_opt: bool = False,
) -> Tensor:
    """A tensor with the values of a torch tensor or a numpy array.

    Args:
        tensor: A torch tensor, a numpy array or nested lists.
        dtype: Data type that values are rounded to; None for the one nearest to the type of ``tensor``.
        spec: Data type, layout and memory; excludes ``dtype``, ``layout`` and ``memory_config``.
        tile: A tile of 32 x 32 elements; None means the same.
        pad_value: Accepted as in ttnn; padding never affects a result.
        layout: Layout; None for ROW_MAJOR, or TILE for block floats.
        device: The device that holds the result; None for the host.
        memory_config: Memory on the device, also for a later ``to``; None for DRAM.
        mesh_mapper: How the tensor is distributed over the devices of a mesh; None copies it to every device.
        cq_id: Accepted as in ttnn; there is one queue.
        preserve_nan_values: Accepted as in ttnn; it does not change how a NaN is rounded.
        col_tilize: Only False: block floats along columns are not simulated.
        enable_bfloat_opt: Accepted as in ttnn, where it speeds up the conversion on the host.

    Returns:
        The tensor, on ``device`` or on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: ``col_tilize`` is True, or ``spec`` is given with an argument that it contains.
        DeviceError: Block floats in ROW_MAJOR layout.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> ttnn.from_torch(np.array([[1.0, 0.3]]), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device).to_list()
        [[1.0, 0.30078125]]
    """
    require_type_or_none("from_torch", Tile, tile=tile)
    require_type("from_torch", bool, col_tilize=col_tilize)
    if col_tilize:
        raise NotSimulatedError("from_torch: col_tilize: block floats along columns are not simulated; leave it out")
    if spec is not None:
        require_type("from_torch", TensorSpec, spec=spec)
        if any(option is not None for option in (dtype, layout, memory_config)):
            raise ArgumentError("from_torch: spec says dtype, layout and memory_config; leave them out")
        dtype, layout = DataType.of(spec.data_format), spec.layout
        memory_config = spec.memory_config
    require_type_or_none("from_torch", DataType, dtype=dtype)
    if dtype is not None and dtype.format.is_block and layout is Layout.ROW_MAJOR:
        raise DeviceError(
            f"ttnn.from_torch: {dtype.format} requires TILE_LAYOUT!\nlayout: leave it out, or give ttnn.TILE_LAYOUT"
        )
    mapper = _chosen("from_torch", TensorToMesh, mesh_mapper)
    if mapper is None:
        return Tensor(tensor, dtype, device, layout, memory_config)
    require_type_or_none("from_torch", Device, device=device)
    distributed = distribute_tensor(Tensor(tensor, dtype, None, layout, memory_config), mapper)
    return distributed if device is None else distributed.to(device, memory_config)


def from_numpy(array: Any, dtype: DataType | None = None, **place: Any) -> Tensor:
    """A tensor with the values of a numpy array.

    Args:
        array: A numpy array, or any object that ``numpy.asarray`` accepts.
        dtype: Data type that values are rounded to; None for the one nearest to the type of ``array``.
        place: Further arguments of `from_torch`: ``layout``, ``device``, ``memory_config``, ``spec``.

    Returns:
        The tensor, on ``device`` or on the host.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Block floats in ROW_MAJOR layout.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> ttnn.from_numpy(np.eye(2), ttnn.bfloat16, device=device).shape
        Shape([2, 2])
    """
    return from_torch(np.asarray(array), dtype, **place)


@outside_graphs
@described(like=from_torch)
def as_tensor(
    tensor: Any,
    dtype: DataType | None = None,
    *,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    cache_file_name: object = None,
    preprocess: Callable[[Any], Any] | None = None,
    mesh_mapper: TensorToMesh | None = None,
    cache_dump_mode: object = None,
) -> Tensor:
    """A tensor with the values of a torch tensor, which may be preprocessed.

    Args:
        cache_file_name: Accepted as in ttnn; files are not cached.
        preprocess: A function of ``tensor`` whose result is converted instead.
        cache_dump_mode: Accepted as in ttnn; files are not cached.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: Block floats in ROW_MAJOR layout.
        OutOfMemoryError: The tensor does not fit into the free part of its memory.

    Examples:
        >>> ttnn.as_tensor(np.ones((2, 4)), ttnn.bfloat16, preprocess=np.transpose).shape
        Shape([4, 2])
    """
    if preprocess is not None and not callable(preprocess):
        raise ArgumentTypeError(f"as_tensor: preprocess must be a function of the values, not {shown(preprocess)}")
    values = tensor if preprocess is None else preprocess(tensor)
    return from_torch(values, dtype, layout=layout, device=device, memory_config=memory_config, mesh_mapper=mesh_mapper)


@outside_graphs
def to_torch(
    tensor: Tensor,
    dtype: TorchType | None = None,
    *,
    torch_rank: int | None = None,
    mesh_composer: MeshToTensor | None = None,
    device: Device | None = None,
    cq_id: int | None = None,
) -> TorchTensor:
    """The values of a tensor as a torch tensor.

    On a device with ``values="off"``, computed values are unknown: the torch tensor has the right shape and type,
    torch operations accept it, and every use that reads a number raises DeviceError.

    Args:
        tensor: A tensor on the host or the device.
        dtype: A torch data type; None for bfloat16, float32 (block floats too) or an integer type.
        torch_rank: Rank of the result: leading sides of length 1 are dropped until the rank is reached.
        mesh_composer: How the parts on the devices of a mesh are joined; required for a tensor of several parts.
        device: Accepted as in ttnn; it has no effect.
        cq_id: Accepted as in ttnn; there is one queue.

    Returns:
        A torch tensor of the tensor's shape.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.
        DeviceError: The tensor was deallocated, or a side to drop is not 1.
        ImportError: torch is not installed.

    Examples:
        >>> ttnn.to_torch(ttnn.ones((1, 2), device=device)).tolist()
        [[1.0, 1.0]]
    """
    require_type("to_torch", Tensor, tensor=tensor)
    composer = _chosen("to_torch", MeshToTensor, mesh_composer)
    result = (tensor if composer is None else aggregate_tensor(tensor, composer)).to_torch()
    if dtype is not None and type(dtype).__module__ != "torch":
        text = f"to_torch: dtype must be a torch.dtype, not {shown(dtype)}"
        raise ArgumentTypeError(f"{text}; typecast gives the tensor another data type first")
    if torch_rank is not None:
        while result.dim() > required_integer("to_torch", "torch_rank", torch_rank):
            if result.shape[0] != 1:
                raise DeviceError(
                    "ttnn: Unable to squeeze to desired rank!\nto_torch: torch_rank: the first side is not 1"
                )
            result = result.squeeze(0)
    return result if dtype is None else result.to(dtype)


@described("ArgumentTypeError", "OutOfMemoryError")
@on_device
def to_device(
    tensor: Tensor, device: Device, memory_config: MemoryConfig | None = None, *, queue_id: int | None = None
) -> Tensor:
    """A tensor of the host copied to a device.

    Args:
        tensor: A tensor on the host.
        device: The device.
        memory_config: Memory on the device; None for DRAM.
        queue_id: Accepted as in ttnn; there is one queue.

    Returns:
        The tensor on ``device``; ``tensor`` itself if it is already on the device, in any memory.

    Raises:
        DeviceError: The tensor was deallocated, or the shards do not hold it.

    Examples:
        >>> ttnn.to_device(ttnn.ones((1, 2)), device).storage_type()
        StorageType.DEVICE
    """
    require_type("to_device", Tensor, tensor=tensor)
    require_type("to_device", Device, device=device)
    with device.function("ttnn.to_device"):
        return tensor.to(device, memory_config or DRAM_MEMORY_CONFIG)


@on_device
def from_device(tensor: Tensor, blocking: bool = True, *, queue_id: int | None = None) -> Tensor:
    """A tensor copied to the host.

    Args:
        tensor: A tensor on the device.
        blocking: Accepted as in ttnn; the copy is always complete on return.
        queue_id: Accepted as in ttnn; there is one queue.

    Returns:
        The tensor on the host; ``tensor`` itself if it is already on the host.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.
        DeviceError: The tensor was deallocated, or its device computes no values.

    Examples:
        >>> ttnn.from_device(ttnn.ones((1, 2), device=device)).storage_type()
        StorageType.HOST
    """
    require_type("from_device", Tensor, tensor=tensor)
    with _function("ttnn.from_device", tensor):
        return tensor.cpu()


@described("ArgumentTypeError", "OutOfMemoryError")
@on_device
def to_layout(
    tensor: Tensor,
    layout: Layout,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    pad_value: float = 0.0,
) -> Tensor:
    """A tensor in another layout; on the device, a device operation converts it.

    Block floats need TILE layout: conversion to ROW_MAJOR returns bfloat16 on the device, and the unchanged tensor on
    the host.

    Args:
        tensor: A tensor on the host or the device.
        layout: TILE_LAYOUT or ROW_MAJOR_LAYOUT.
        dtype: Data type of the result; None for that of the tensor. As in ttnn, ignored for a tensor on the host.
        memory_config: Memory of the result; None for that of the tensor.
        sub_core_grids: Cores that may be used for interleaved tensors; None for all.
        pad_value: Accepted as in ttnn; padding never affects a result.

    Returns:
        The converted tensor; ``tensor`` itself if nothing changes.

    Raises:
        DeviceError: The tensor was deallocated, or the library has no program for its shards.

    Examples:
        >>> ttnn.to_layout(ttnn.ones((30, 32), device=device), ttnn.TILE_LAYOUT).padded_shape
        Shape([32, 32])
    """
    require_type("to_layout", Tensor, tensor=tensor)
    require_type("to_layout", Layout, layout=layout)
    require_type_or_none("to_layout", DataType, dtype=dtype)
    require_type_or_none("to_layout", MemoryConfig, memory_config=memory_config)
    require_type_or_none("to_layout", CoreRangeSet, sub_core_grids=sub_core_grids)
    device = tensor.device()
    if device is not None:
        data_format = None if dtype is None else dtype.format
        options: dict[str, Any] = {"place": memory_config, "data_format": data_format, "cores": sub_core_grids}
        plan = cached_plan(plan_to_layout, device, tensor.spec, layout, **options)
        return carried_out("to_layout", plan, tensor, device)
    changed = tensor if tensor.layout is layout else tensor.to(layout)
    return changed if memory_config is None else to_memory_config(changed, memory_config)


def to_dtype(tensor: Tensor, dtype: DataType) -> Tensor:
    """A tensor of the host rounded to another data type.

    Args:
        tensor: A tensor on the host.
        dtype: The data type.

    Returns:
        The rounded tensor; ``tensor`` itself if it has the data type.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The tensor is on the device (use `typecast`), or it is ROW_MAJOR and its rows do not fill whole
            tiles of block floats. Releases of 2025 accept a device tensor that already has the data type.

    Examples:
        >>> ttnn.to_dtype(ttnn.full((1, 2), 0.3, ttnn.float32), ttnn.bfloat16).to_list()
        [[0.30078125, 0.30078125]]
    """
    require_type("to_dtype", Tensor, tensor=tensor)
    require_type("to_dtype", DataType, dtype=dtype)
    device = tensor.device()
    if device is not None:
        if tensor.dtype is dtype and release_of(device.spec.release).takes_typed:
            return tensor
        raise DeviceError(
            "Expected Tensor with HostStorage, got StorageType::DEVICE\n"
            "to_dtype: the tensor is on the device; typecast changes its data type there"
        )
    if dtype.format.is_block:
        tensor.spec.changed(layout=Layout.TILE)  # refuses ragged shards
        require_whole_tiles("to_dtype", tensor)
    return tensor if tensor.dtype is dtype else tensor.with_dtype(dtype)


@described("ArgumentTypeError", "ArgumentError", "OutOfMemoryError")
@on_device
@checked_as(others={"input_dtype": ["dtype"]})
def typecast(
    input_tensor: Tensor,
    dtype: DataType,
    output_dtype: DataType | None = None,
    *,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """A tensor in another data type; on the device, a device operation converts it.

    Args:
        input_tensor: A tensor on the host or the device.
        dtype: The data type of the result; or, if ``output_dtype`` is given, the data type of the tensor, which may
            also be named ``input_dtype``.
        output_dtype: The data type of the result; None for ``dtype``.
        memory_config: Memory of the result; None for that of the tensor.
        output_tensor: A tensor of the same shape that receives the result; None creates a new tensor.
        sub_core_grids: Cores that may be used, for a tensor in TILE layout; None for all.

    Returns:
        The converted tensor, or ``output_tensor``.

    Raises:
        DeviceError: The tensor was deallocated, or ``output_tensor`` has another shape, data type or layout.

    Examples:
        >>> tensor = ttnn.full((32, 32), 0.3, layout=ttnn.TILE_LAYOUT, device=device)
        >>> ttnn.typecast(tensor, ttnn.bfloat4_b).to_numpy()[0, 0].item()
        0.25
    """
    if output_dtype is not None:
        if dtype is not input_tensor.dtype:
            raise DeviceError(
                "input dtype and input tensor's dtype provided should match\n"
                f"typecast: the tensor is {input_tensor.dtype}, not {dtype}; leave input_dtype out"
            )
        dtype = output_dtype
    device, changed = input_tensor.device(), input_tensor
    if device is not None:
        target = None if output_tensor is None else output_tensor.spec
        options: dict[str, Any] = {"place": memory_config, "target": target, "cores": sub_core_grids}
        plan = cached_plan(plan_typecast, device, input_tensor.spec, dtype.format, **options)
        return carried_out("typecast", plan, input_tensor, device, target=output_tensor)
    if input_tensor.dtype is not dtype:
        changed = input_tensor.with_dtype(dtype)
    return changed if output_tensor is None else stored_in(output_tensor, changed)


@described("ArgumentTypeError", "OutOfMemoryError")
@on_device
def to_memory_config(
    tensor: Tensor, memory_config: MemoryConfig, dtype: DataType | None = None, output_tensor: Tensor | None = None
) -> Tensor:
    """A device tensor copied to another memory by a device operation.

    Args:
        tensor: A tensor on the device.
        memory_config: Memory of the result.
        dtype: Data type of the result; None for that of the tensor.
        output_tensor: A tensor of the same shape that receives the result; None creates a new tensor.

    Returns:
        The moved tensor, or ``output_tensor``; ``tensor`` itself if nothing changes.

    Raises:
        ArgumentError: The device is strict, and the real library would misplace parts of rows.
        DeviceError: The tensor is on the host or was deallocated, or the shards cannot hold it.

    Examples:
        >>> tensor = ttnn.ones((32, 32), device=device)
        >>> ttnn.to_memory_config(tensor, ttnn.L1_MEMORY_CONFIG).memory_config().buffer_type
        BufferType.L1
    """
    require_type("to_memory_config", Tensor, tensor=tensor)
    require_type_or_none("to_memory_config", Tensor, output_tensor=output_tensor)
    require_type("to_memory_config", MemoryConfig, memory_config=memory_config)
    require_type_or_none("to_memory_config", DataType, dtype=dtype)
    device = tensor.device()
    if device is None or tensor.keeps_padding:  # what was prepared keeps its padding
        moved = tensor.with_memory_config(memory_config)
        return moved if output_tensor is None else stored_in(output_tensor, moved)
    data_format, target = None if dtype is None else dtype.format, None if output_tensor is None else output_tensor.spec
    plan = cached_plan(
        plan_to_memory_config, device, tensor.spec, memory_config, data_format=data_format, target=target
    )
    if device.strict:
        require_right_rows(plan)
    return carried_out("to_memory_config", plan, tensor, device, target=output_tensor)


@on_device
def deallocate(tensor: Tensor, force: bool = True) -> None:
    """Frees the memory of a tensor.

    Args:
        tensor: A tensor; freeing it twice is harmless.
        force: False keeps a buffer that other tensors share.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.

    Examples:
        >>> tensor = ttnn.ones((32, 32), device=device)
        >>> ttnn.deallocate(tensor)
        >>> tensor.is_allocated()
        False
    """
    require_type("deallocate", Tensor, tensor=tensor)
    with _function("ttnn.deallocate", tensor):
        tensor.deallocate(force)


def _function(name: str, tensor: Tensor) -> AbstractContextManager[None]:
    """A context that records its body as a call of a ttnn function, for tensors on a device."""
    device = tensor.device()
    return nullcontext() if device is None else device.function(name)


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    """Whether a tensor is on a device.

    Args:
        tensor: A tensor.

    Returns:
        True for a tensor on a device, False for one on the host.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.

    Examples:
        >>> ttnn.is_tensor_storage_on_device(ttnn.ones((32, 32)))
        False
    """
    require_type("is_tensor_storage_on_device", Tensor, tensor=tensor)
    return tensor.device() is not None


def get_memory_config(tensor: Tensor) -> MemoryConfig | None:
    """The memory of a device tensor.

    Args:
        tensor: A tensor.

    Returns:
        The memory config; None for a tensor on the host.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.

    Examples:
        >>> ttnn.get_memory_config(ttnn.ones((32, 32), device=device)).buffer_type
        BufferType.DRAM
    """
    require_type("get_memory_config", Tensor, tensor=tensor)
    return None if tensor.device() is None else tensor.memory_config()


def dump_tensor(file_name: str | Path, tensor: Tensor) -> None:
    """Writes a tensor into a file: values, data type and layout, without its memory.

    Args:
        file_name: Path of the file; nothing is appended to the name.
        tensor: A tensor on the host or the device.

    Raises:
        ArgumentTypeError: ``tensor`` is not a tensor.
        DeviceError: The tensor was deallocated, or its device computes no values.
        TypeError: ``file_name`` is not a path.
        OSError: The file cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ttnn.dump_tensor(f"{folder}/ones", ttnn.ones((1, 2)))
        ...     ttnn.load_tensor(f"{folder}/ones").to_list()
        [[1.0, 1.0]]
    """
    require_type("dump_tensor", Tensor, tensor=tensor)
    kind = json.dumps({"dtype": tensor.dtype.name, "layout": tensor.layout.name})
    with Path(file_name).open("wb") as file:
        np.savez(file, values=tensor.to_numpy(), kind=np.array(kind))


def load_tensor(file_name: str | Path, device: Device | None = None) -> Tensor:
    """Reads a tensor that `dump_tensor` wrote.

    Args:
        file_name: Path of the file.
        device: The device that holds the tensor, in DRAM; None for the host.

    Returns:
        The tensor.

    Raises:
        ArgumentTypeError: ``device`` is not a device.
        ArgumentError: The file is damaged, or `dump_tensor` did not write it; the real library's format differs.
        TypeError: ``file_name`` is not a path.
        OSError: The file cannot be read.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ttnn.dump_tensor(f"{folder}/ones", ttnn.ones((1, 2)))
        ...     ttnn.load_tensor(f"{folder}/ones", device).storage_type()
        StorageType.DEVICE
    """
    require_type_or_none("load_tensor", Device, device=device)
    if not isinstance(file_name, str | Path):
        raise ArgumentTypeError(f"load_tensor: file_name must be a path, not {shown(file_name)}")
    path = Path(file_name)
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            values, kind = (_array(archive, name, path) for name in ("values", "kind"))
        text = json.loads(str(kind))
        dtype, layout = DataType[text["dtype"]], Layout[text["layout"]]
    except (ArgumentError, OSError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, BadZipFile, zlib.error):
        raise ArgumentError(f"load_tensor: {file_name} is no file of ttnn.dump_tensor; write it anew") from None
    return Tensor(values, dtype, device, layout)


def _array(archive: ZipFile, name: str, path: Path) -> Array:
    """Reads an array from a file; checks the length of the file before allocating memory."""
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


def require_whole_tiles(function: str, tensor: Tensor, place: MemoryConfig | None = None) -> None:
    """Raises DeviceError for rows that do not fill whole tiles, which the host does not pad.

    Rows fill them with the padding of their shards. Ragged shards of the memory ``place``, by default the tensor's own,
    are refused afterwards.
    """
    spec = tensor.spec
    rows, high = spec.matrix, TensorSpec(spec.shape, spec.data_format, Layout.TILE).matrix[0]
    tiles = high, round_up(rows[1], TILE)
    if tensor.layout is Layout.ROW_MAJOR and rows != tiles:
        raise DeviceError(
            f"{function}: Converting layout to Layout::TILE implicitly changed physical shape from {rows} to "
            f"{tiles} due to alignment constraints. This is currently unsupported. Please pad the tensor explicitly "
            "before conversion.\n"
            "tensor: give it TILE layout first"
        )
    spec.changed(layout=Layout.TILE, memory_config=place)  # refuses shards that do not hold tiles
