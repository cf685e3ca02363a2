"""Tensors: shape, data type, layout and memory, with values on the host or in a buffer of a device.

A host tensor keeps its values in logical order, rounded to its format. A device tensor owns a buffer.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from math import prod
from typing import Any, SupportsIndex, cast, overload

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.matrix_unit.packer import typecast
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout, MemoryConfig
from device.numbers.formats import Array, quantize, round_up
from device.plan import DeviceOp
from ops.builder import CREATED
from ops.op_model import UNWRITTEN
from ops.programs.conv2d.weights import AsWanted
from ops.programs.data_movement.placement import view_place
from ops.programs.data_movement.reshape import memory_after
from ttsim.runtime.device import Device, MeshShape
from ttsim.runtime.operators import Operators, library_function
from ttsim.runtime.session import current, outside_graphs, remember
from ttsim.runtime.storage import (
    UNKNOWN,
    DeviceStorage,
    FirstStorage,
    StorageType,
    contents,
    copied,
    default_type,
    frozen,
    not_allocated,
    numbers,
    padded,
    parts_of,
    placed,
    record_fetched,
    rounded,
    torch_from_numpy,
    unknown_torch,
)
from ttsim.runtime.types.call import incompatible, require_type_or_none, required_sides
from ttsim.runtime.types.of_torch import TorchTensor
from ttsim.runtime.types.tensors import DataType, Shape, Tile, resolved_shape

EDGE_ITEMS = 2  # shown of each end of an axis of more than twice as many
HEAD = "ttnn.Tensor("
LARGEST_RATIO, LARGEST, SMALLEST = 1000, 1e8, 1e-4  # beyond these, numbers are printed with exponents
INTEGER = "{:5d}"
FIXED, SCIENTIFIC = "{:7.4f}", "{:11.4e}"
LINE = 10**9  # characters: a row is one line


def printed(values: Array) -> str:
    """Values as a tensor prints them: axes of five or more elements are shortened to the first and last two."""
    number = _number_format(values).format
    text = np.array2string(values, LINE, separator=", ", prefix=HEAD, formatter={"all": number}, threshold=0,
                           edgeitems=EDGE_ITEMS)  # fmt: skip
    return text.replace(", ..., ", ",  ..., ")


def _number_format(values: Array) -> str:
    """The print format of each number; it depends on all numbers of the tensor."""
    if values.dtype.kind != "f":
        return INTEGER
    magnitudes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not magnitudes.size:
        return FIXED
    low, high = float(magnitudes.min()), float(magnitudes.max())
    return SCIENTIFIC if high > LARGEST_RATIO * low or high > LARGEST or low < SMALLEST else FIXED


class Tensor(Operators):
    """A tensor of ttnn, with values on the host or in a buffer of a device.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 0.3]]), ttnn.bfloat16)
        >>> tiles = tensor.to(device).to(ttnn.TILE_LAYOUT)
        >>> tiles.shape, tiles.padded_shape, tiles.memory_config().buffer_type
        (Shape([1, 2]), Shape([32, 32]), BufferType.DRAM)
        >>> tiles.cpu().to_list(), (tiles + 1).to_numpy().max().item()
        ([[1.0, 0.30078125]], 2.0)
        >>> tiles.reshape(2, 1).shape, tiles.volume(), tiles.logical_volume(), tiles.buffer_num_pages()
        (Shape([2, 1]), 1024, 2, 1)
        >>> tiles.deallocate()
        >>> tiles.is_allocated()
        False
    """

    __slots__ = ("__weakref__", "_id", "_parts", "_storage", "_values", "created_by", "spec")

    _id: int
    spec: TensorSpec  # Shape, format, layout and place
    # The operation that prepared it as weights or bias of a convolution, with their layout; None of all other tensors.
    # Copies to other places keep it, and the padding that is part of prepared weights.
    created_by: DeviceOp | None
    _values: Array | None  # Of a host tensor; None once it is deallocated
    _parts: tuple[Array, ...]  # Of a host tensor that is distributed: the values for each device behind the first
    _storage: DeviceStorage | None  # Of a device tensor

    @overload
    def __init__(
        self,
        data: Any,
        data_type: DataType | None = None,
        device: Device | None = None,
        layout: Layout | None = None,
        mem_config: MemoryConfig | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        data: Sequence[float],
        shape: Sequence[int],
        data_type: DataType,
        layout: Layout,
        device: Device | None = None,
        memory_config: MemoryConfig | None = None,
    ) -> None: ...

    @outside_graphs
    def __init__(self, data: Any, *args: Any, **kwargs: Any) -> None:
        """A tensor of a numpy array, a torch tensor or nested lists; or of a list of numbers and a shape.

        Args:
            data: The values, in logical order.
            shape: The shape, if ``data`` is a flat list of numbers; data_type and layout follow it.
            data_type: Data type that values are rounded to; None for the type of the array. Integer types truncate the
                numbers of a list.
            device: The device; None for the host.
            layout: Layout; None for ROW_MAJOR, or TILE for block floats.
            mem_config: Memory on the device, also for a later ``to(device)``; None for DRAM. For a list, the keyword is
                ``memory_config``.

        Raises:
            ArgumentTypeError: An argument is of the wrong type.
            DeviceError: Block floats in ROW_MAJOR layout, or a list whose length is not the volume of the shape.
            OutOfMemoryError: The tensor does not fit into the free part of its memory.
        """
        listed = "shape" in kwargs or isinstance(args[0] if args else None, list | tuple)
        make = self._of_list if listed else self._of_array
        try:
            make(data, *args, **kwargs)
        except TypeError:
            try:
                signature(make).bind(data, *args, **kwargs)
            except TypeError as error:
                raise ArgumentTypeError(f"{incompatible('__init__')}\nTensor: {error}") from None
            raise

    def _of_list(
        self,
        data: Sequence[float],
        shape: Sequence[int],
        data_type: DataType,
        layout: Layout,
        device: Device | None = None,
        memory_config: MemoryConfig | None = None,
    ) -> None:
        values, sides = numbers(data), required_sides("Tensor", shape)
        if isinstance(data_type, DataType) and data_type.format.is_block and layout is Layout.ROW_MAJOR:
            raise DeviceError(
                f"Only TILE layout is supported for {data_type.name} dtype!\n"
                f"layout: {data_type.format} has no rows; use TILE_LAYOUT, or bfloat16"
            )
        if values.size != prod(sides):
            raise DeviceError(
                f"Buffer size {values.size} differs from shape volume {prod(sides)}\n"
                f"the shape is {list(sides)}; give as many numbers"
            )
        whole = isinstance(data_type, DataType) and not data_type.format.is_float
        if whole and values.dtype.kind == "f":
            values = np.trunc(values).astype(np.int64)
        self._of_array(values.reshape(sides), data_type, device, layout, memory_config)

    def _of_array(
        self,
        data: Any,
        data_type: DataType | None = None,
        device: Device | None = None,
        layout: Layout | None = None,
        mem_config: MemoryConfig | None = None,
    ) -> None:
        if isinstance(data, Tensor):
            raise ArgumentTypeError("Tensor: data is a tensor already; to_dtype, to_layout and to_device change it")
        known = contents(data)
        values = numbers(data if known is None else known)
        chosen = default_type(values) if data_type is None else data_type
        if not isinstance(chosen, DataType):
            raise ArgumentTypeError(f"Tensor: data_type must be a DataType such as ttnn.bfloat16, not {shown(chosen)}")
        require_type_or_none("Tensor", Device, device=device)
        require_type_or_none("Tensor", Layout, layout=layout)
        require_type_or_none("Tensor", MemoryConfig, mem_config=mem_config)
        data_format = chosen.format
        order = layout or (Layout.TILE if data_format.is_block else Layout.ROW_MAJOR)
        if data_format.is_block and order is not Layout.TILE:
            raise DeviceError(
                "Layout must be Layout::TILE for bfloat8_b or bfloat4_b!\n"
                f"layout: {data_format} has no rows; use TILE_LAYOUT, or bfloat16"
            )
        host = UNKNOWN if known is not None else frozen(rounded(values, data_format))
        self._set(TensorSpec(values.shape, data_format, order), values=host)
        if device is None and mem_config is not None:
            self._set(self._spec_in(mem_config), values=host)
        elif device is not None:
            there = self.to(device, mem_config)
            self._set(there.spec, storage=there._storage)

    def _set(
        self,
        spec: TensorSpec,
        created_by: DeviceOp | None = None,
        *,
        values: Array | None = None,
        parts: Sequence[Array] = (),
        storage: DeviceStorage | None = None,
    ) -> "Tensor":
        """Sets these fields and returns the tensor, which may share its buffer."""
        self.spec, self.created_by, self._values, self._storage = spec, created_by, values, storage
        self._parts = tuple(parts)
        if storage is not None:
            storage.sharers.add(self)
        return self

    @classmethod
    def of_host(
        cls, values: Array, spec: TensorSpec, *, created_by: DeviceOp | None = None, parts: Sequence[Array] = ()
    ) -> "Tensor":
        """A host tensor of rounded, immutable values in spec.shape or, if prepared, spec.padded_shape.

        ``parts`` are the values for the devices of a mesh after the first.
        """
        first, *others = (part if part is UNKNOWN else frozen(part) for part in (values, *parts))
        return cls.__new__(cls)._set(spec, created_by, values=first, parts=others)

    @classmethod
    def of_buffer(
        cls, device: Device, buffer: Buffer, spec: TensorSpec, *, created_by: DeviceOp | None = None
    ) -> "Tensor":
        """A device tensor that takes ownership of ``buffer``."""
        return cls._sharing(DeviceStorage(device, buffer), spec, created_by)

    @classmethod
    def _sharing(cls, storage: DeviceStorage, spec: TensorSpec, created_by: DeviceOp | None = None) -> "Tensor":
        return cls.__new__(cls)._set(spec, created_by, storage=storage)

    @property
    def distributed(self) -> bool:
        """Whether the tensor has a part for each device of a mesh of several devices."""
        return bool(self._parts if self._storage is None else self._storage.others)

    def each(self) -> "list[Tensor]":
        """The part of each device of a mesh, sharing memory; the tensor itself if it is not distributed."""
        if not self.distributed:
            return [self]
        if self._storage is None:
            arrays = [given for given in (self._values, *self._parts) if given is not None]
            return [Tensor.of_host(array, self.spec, created_by=self.created_by) for array in arrays]
        return [Tensor._sharing(part, self.spec, self.created_by) for part in parts_of(self._storage)]

    def take_buffer(self, other: "Tensor") -> None:
        """Takes over the buffer and spec of another tensor; tensors that share the old buffer keep it."""
        if self._storage is not other._storage:  # joining its own sharers again would compare it element by element
            self._set(other.spec, other.created_by, storage=other._storage)

    def joined_by(self, others: "Sequence[Tensor]") -> "Tensor":
        """The host tensor of a mesh with this part for the first device and ``others`` for the other devices."""
        return Tensor.of_host(
            self._brought(), self.spec, created_by=self.created_by, parts=[other._brought() for other in others]
        )

    def spread(self, others: "Sequence[Tensor]") -> None:
        """Adds the parts on the other devices of a mesh to a result on the first device, unless it has parts."""
        assert self._storage is not None
        if not self._storage.others:
            self._storage.others = tuple(other._storage for other in others if other._storage is not None)

    def whole(self) -> "Tensor | None":
        """The tensor of a mesh of which this is the part on the first device; None for any other tensor."""
        first = self._storage
        return Tensor._sharing(first.whole, self.spec, self.created_by) if isinstance(first, FirstStorage) else None

    def __copy__(self) -> "Tensor":
        """A tensor of the same values; on a device it shares the buffer, which lives as long as either tensor."""
        if self._storage is None:
            parts = [part._brought() for part in self.each()]
            return Tensor.of_host(parts[0], self.spec, created_by=self.created_by, parts=parts[1:])
        return Tensor._sharing(self._storage, self.spec, self.created_by)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        """A tensor with its own values, and on a device its own buffer."""
        if self._storage is None:
            parts = [part._brought() if part.left_out else part._carried().copy() for part in self.each()]
            return Tensor.of_host(parts[0], self.spec, created_by=self.created_by, parts=parts[1:])
        return self.with_memory_config(self.spec.memory_config)

    def __reduce__(self) -> Any:
        """Pickles a host tensor; raises DeviceError for a device tensor."""
        if self._storage is not None:
            raise DeviceError("a tensor on a device cannot be pickled; bring it to the host first, with .cpu()")
        return partial(Tensor.of_host, created_by=self.created_by), (self._carried(), self.spec)

    @property
    def shape(self) -> Shape:
        """Logical shape."""
        return Shape(self.spec.shape)

    @property
    def padded_shape(self) -> Shape:
        """Shape with padding."""
        return Shape(self.spec.padded_shape)

    @property
    def dtype(self) -> DataType:
        """Data type."""
        return DataType.of(self.spec.data_format)

    @property
    def layout(self) -> Layout:
        """TILE or ROW_MAJOR."""
        return self.spec.layout

    @property
    def tensor_id(self) -> int:
        """A number that is unique in this thread, assigned when it is first read."""
        if not hasattr(self, "_id"):
            self._id = current().tensors
            remember(replace(current(), tensors=self._id + 1))
        return self._id

    @property
    def tile(self) -> Tile:
        """The tile, always 32 x 32."""
        return Tile()

    def get_tile(self) -> Tile:
        """``tile`` under its older name."""
        return self.tile

    def get_dtype(self) -> DataType:
        """``dtype`` under its older name."""
        return self.dtype

    def get_layout(self) -> Layout:
        """``layout`` under its older name."""
        return self.layout

    def is_sharded(self) -> bool:
        """Whether the tensor is sharded."""
        return self.spec.memory_config.is_sharded()

    def volume(self) -> int:
        """Number of elements of the padded shape."""
        return prod(self.spec.padded_shape)

    def logical_volume(self) -> int:
        """Number of elements of the logical shape."""
        return self.spec.volume

    def element_size(self) -> int:
        """Bytes of an element; 1 for block floats."""
        return self.spec.data_format.element_bytes or 1

    def buffer_page_size(self) -> int:
        """Bytes of a page of its buffer; raises DeviceError for a host tensor or a deallocated one."""
        return self.buffer.spec.page_bytes

    def buffer_num_pages(self) -> int:
        """Number of pages of the buffer; raises like `buffer_page_size`."""
        return self.buffer.spec.size_bytes // self.buffer.spec.page_bytes

    def buffer_aligned_page_size(self) -> int:
        """Bytes from one page to the next; raises like `buffer_page_size`."""
        spec = self.buffer.spec
        return aligned_page_bytes(spec.page_bytes, spec.buffer_type, self.buffer.device_spec)

    def memory_config(self) -> MemoryConfig:
        """The memory config; for a host tensor, the default memory."""
        return self.spec.memory_config.reported()

    def storage_type(self) -> StorageType:
        """Host or device."""
        return StorageType.HOST if self._storage is None else StorageType.DEVICE

    def device(self) -> Device | None:
        """The device of the tensor; None for a host tensor."""
        return None if self._storage is None else self._storage.device

    def is_allocated(self) -> bool:
        """Whether the tensor has not been deallocated."""
        return self._values is not None if self._storage is None else self._storage.buffer.allocated

    @property
    def buffer(self) -> Buffer:
        """The buffer of a device tensor; raises DeviceError for a host tensor or a deallocated one."""
        if self._storage is None:
            raise DeviceError(
                "Device Operations expect device tensors as inputs\nthe tensor is on the host; use .to(device) first"
            )
        if not self._storage.buffer.allocated:
            raise not_allocated()
        return self._storage.buffer

    def buffer_address(self) -> int:
        """Address of its buffer in every bank; raises DeviceError for a host tensor or a deallocated one."""
        if self._storage is None:
            raise DeviceError("StorageType::HOST doesn't support buffer_address method\nuse .to(device) first")
        return self.buffer.address

    def values(self, *, unwritten: bool = False) -> Array:
        """Read-only values in the format's storage type, in the logical shape, wherever the tensor is.

        Raises DeviceError if the tensor was deallocated, or its device computes no values; ArgumentError if an
        operation left elements unwritten, unless ``unwritten`` is true.
        """
        if not self.is_allocated():
            raise not_allocated()
        if not unwritten and self._storage is not None and self.buffer.unwritten:
            raise ArgumentError(self.buffer.unwritten.text)
        if self.distributed:
            raise DeviceError(
                f"Can't convert a tensor distributed on {self.mesh_shape()} mesh to row-major logical tensor. Supply a "
                "mesh composer to concatenate multi-device shards.\nto_torch(mesh_composer=...) joins the parts, and "
                "get_device_tensors gives each"
            )
        if not self.known:
            raise DeviceError(
                "the tensor has no values: its device was opened with values='off', which plans memory and cycles "
                "only; open it with values='fast' (--values fast, TTSIM_VALUES=fast)"
                if self.left_out
                else UNWRITTEN
            )
        return self._logical(self.buffer.values if self._values is None else self._values)

    def mesh_shape(self) -> MeshShape:
        """Rows and columns of the tensor's devices, or of the devices that a distributed host tensor is for."""
        return MeshShape(1, 1 + len(self._parts)) if self._storage is None else self._storage.device.shape

    @property
    def known(self) -> bool:
        """Whether the tensor has values; raises DeviceError for a deallocated device tensor."""
        return self._values is not UNKNOWN if self._storage is None else self.buffer.written

    @property
    def left_out(self) -> bool:
        """Whether the values are unknown because a device with ``values="off"`` did not compute them."""
        return not self.known and (self._storage is None or self._storage.device.values == "off")

    def _logical(self, stored: Array) -> Array:
        """The stored values without padding."""
        sides = self.spec.shape
        if stored.size == self.spec.volume:
            return frozen(stored.reshape(sides))
        for axes in (1, 2) if len(sides) > 1 else ():  # a view of rows, or of tiles, that were filled up
            if prod(sides[:-axes]) == prod(stored.shape[:-axes]):
                stored = stored.reshape(*sides[:-axes], *stored.shape[-axes:])
                break
        logical = stored[(0,) * (stored.ndim - len(sides)) + tuple(map(slice, sides))]
        if logical.shape != sides:
            raise DeviceError(
                f"the tensor of shape {list(sides)} shares its memory with a tensor of shape {list(stored.shape)}, "
                "which was written in place since: the numbers around the smaller tensor are not simulated; "
                "ttnn.clone the tensor before the other one is written"
            )
        return frozen(logical)

    def padded_values(self) -> Array:
        """Like ``values``, in the padded shape; unwritten padding is zero."""
        values = self.values()
        stored = self._values if self._storage is None else self.buffer.values
        if stored is not None and stored.shape == self.spec.padded_shape:
            return stored
        return padded(values, self.spec.padded_shape)

    @property
    def keeps_padding(self) -> bool:
        """Whether the tensor is prepared weights or bias, whose padding is stored; False for a description."""
        return self.created_by is not None and not isinstance(self.created_by, AsWanted)

    def _carried(self) -> Array:
        """The values to copy to another memory; for prepared weights and bias, including padding."""
        return self.padded_values() if self.keeps_padding else self.values()

    def _brought(self) -> Array:
        """``_carried``, or UNKNOWN."""
        return UNKNOWN if self.left_out else self._carried()

    def _spec_in(self, place: MemoryConfig) -> TensorSpec:
        """The spec of the tensor in another memory."""
        spec = self.spec
        padded_shape = spec.padded_shape if self.keeps_padding else None
        in_rows = self.layout is Layout.ROW_MAJOR and padded_shape is None
        alignment = spec.alignment if in_rows and self._storage is None else None
        moved = TensorSpec(spec.shape, spec.data_format, self.layout, place, padded_shape, alignment)
        columns = moved.memory_config.shard_spec and moved.shards.shape[1]
        if alignment is not None and columns and columns % moved.alignment[-1]:
            raise DeviceError(
                f"Alignment mismatch for sharded tensor: Expected physical shard shape {columns} to be aligned to "
                f"{moved.alignment[-1]} along the width for Row Major layout.\n"
                f"mem_config: rows of a host tensor keep the width of {spec.alignment[-1]} elements of their shards"
            )
        return moved

    def to_numpy(self) -> Array:
        """A copy of the values: float32 for floats, else integers; raises like ``values``."""
        values = self.values()
        return copied(values, np.dtype(np.float32) if self.spec.data_format.is_float else values.dtype)

    # Of a numpy scalar or array and a tensor, the tensor's operator is asked
    __array_priority__ = 1000

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The values of `to_numpy` for ``numpy.asarray``, converted to the requested type.

        ``copy=False`` gives a read-only view, which exists for float32 and integers; raises like ``values``.
        """
        values = self.values()
        kind = np.dtype(dtype or (np.float32 if self.spec.data_format.is_float else values.dtype))
        if copy is not False:
            return self.to_numpy().astype(kind, copy=False)
        if kind != values.dtype:
            raise ValueError(f"a {self.dtype.name} tensor has no {kind} values without a copy; leave copy=False out")
        return values

    def to_list(self) -> list[Any]:
        """The values as nested lists; raises like ``values``."""
        nested: list[Any] = self.to_numpy().tolist()
        return nested

    def item(self) -> float:
        """The only value of a tensor with one element; raises DeviceError for any other tensor."""
        if self.spec.volume != 1:
            raise DeviceError(
                f"tensor.item() requires tensor to have exactly one element, but got {self.spec.volume} elements\n"
                "item: use to_list()"
            )
        value: float = self.to_numpy().item()
        return value

    @outside_graphs
    def to_torch(self) -> TorchTensor:
        """The values as a torch tensor: bfloat16, float32 (block floats too) or integers.

        On a device with ``values="off"``, computed values are a tensor of unknown numbers: shape and type are right,
        torch operations accept it, and reading a number raises DeviceError.

        Raises DeviceError if the tensor was deallocated.
        """
        if self.left_out and not self.distributed:
            return unknown_torch(self.spec)
        return torch_from_numpy(self.to_numpy(), self.spec.data_format.name)

    @outside_graphs
    def to(
        self,
        target: Device | Layout | None = None,
        mem_config: MemoryConfig | None = None,
        cq_id: int | None = None,
        *,
        device: Device | None = None,
        target_layout: Layout | None = None,
    ) -> "Tensor":
        """The tensor on a device, or in another layout; the tensor itself if it is already on the device.

        Args:
            target: A device or a layout, also by the keyword ``device`` or ``target_layout``. A device operation
                converts the layout of a device tensor.
            mem_config: Memory on the device; by default the memory given when the host tensor was created, else DRAM.
            cq_id: Accepted as in ttnn; there is one queue.

        Raises DeviceError if the shards do not fit the tensor or the device, or the tensor was deallocated.
        """
        targets = [argument for argument in (target, device, target_layout) if argument is not None]
        target = targets[0] if len(targets) == 1 else None
        if isinstance(target, Layout):
            if self._storage is not None and not self.keeps_padding:
                return cast("Tensor", library_function("to_layout")(self, target))
            if self._storage is None and (self.layout is target or self.spec.data_format.is_block):
                if self.layout is not target and self.spec.shape != self.spec.padded_shape:
                    raise DeviceError(
                        "Tensor layout must be ROW_MAJOR for unpadding\n"
                        f"to: {self.spec.data_format} has no rows; use with_dtype or ttnn.to_dtype before"
                    )
                return self  # block floats have no rows, and the real library leaves them as they are
            spec = self.spec.changed(layout=target)
            if target is Layout.ROW_MAJOR or spec.matrix != self.spec.matrix:  # a copy with other padding
                spec = spec.changed(memory_config=DRAM_MEMORY_CONFIG)
            return self._changed(spec)
        if not isinstance(target, Device):
            raise ArgumentTypeError(f"to: the target must be a device or a layout, not {type(target).__name__}")
        require_type_or_none("to", MemoryConfig, mem_config=mem_config)
        if self._storage is not None and self._storage.device is target and self.is_allocated():
            return self
        own = self.spec.memory_config if self._storage is None else DRAM_MEMORY_CONFIG
        spec = self._spec_in(mem_config or own)
        off = target.values == "off"
        values, *parts = [None if part.left_out and off else part._carried() for part in self.each()]
        return Tensor._sharing(placed(target, values, spec, by="Tensor::to_device", parts=parts), spec, self.created_by)

    def cpu(self, blocking: bool = True, cq_id: int | None = None) -> "Tensor":
        """The tensor on the host; the tensor itself if it is on the host. The copy is complete on return.

        The copy remembers the memory on the device as the default of `to`.
        """
        if self._storage is None:
            return self
        first, *others = [part._brought() for part in self.each()]
        brought = Tensor.of_host(first, self.spec, created_by=self.created_by, parts=others)
        record_fetched(self._storage, self.spec, brought.spec)
        return brought

    def with_memory_config(self, mem_config: MemoryConfig) -> "Tensor":
        """A device tensor in another memory; raises DeviceError for a host tensor, or if it does not fit."""
        values, *parts = [part._carried() if part.buffer.written else None for part in self.each()]
        assert self._storage is not None
        spec = self._spec_in(mem_config)
        home = self._storage.device
        return Tensor._sharing(placed(home, values, spec, by=CREATED, parts=parts), spec, self.created_by)

    def with_dtype(self, dtype: DataType) -> "Tensor":
        """The values rounded to another data type, as host or device round; block floats get TILE layout."""
        layout = Layout.TILE if dtype.format.is_block else self.layout
        return self._changed(TensorSpec(self.spec.shape, dtype.format, layout, self.spec.memory_config))

    def reshape(self, *shape: SupportsIndex | Sequence[int]) -> "Tensor":
        """The tensor in another shape, one side of which may be -1; raises DeviceError for another volume.

        On the device, as in ttnn, this is `ttnn.reshape`, except for prepared weights.
        """
        wanted = resolved_shape(shape, self.spec.volume)
        if self._storage is not None and not self.keeps_padding:
            return cast("Tensor", library_function("reshape")(self, wanted))
        if self._storage is None:
            return self._changed(self.spec.changed(shape=wanted, memory_config=view_place(self.spec, wanted)))
        spec = TensorSpec(wanted, self.spec.data_format, self.layout, memory_after(self.spec, wanted))
        whole = not self.buffer.written or self.buffer.values.size == self.spec.volume
        if whole and spec.matrix == self.spec.matrix and spec.memory_config == self.spec.memory_config:
            return Tensor._sharing(self._storage, spec)
        return self._changed(spec)

    def pad_to_tile(self, pad_value: float) -> "Tensor":
        """The host tensor with its last two axes padded to whole tiles; a tensor of rank 1 counts as a row.

        A tensor in TILE layout is returned unchanged. ``pad_value`` fills the padding and never affects a result.
        """
        if self.layout is Layout.TILE:
            return self
        self._require_host("pad_to_tile")
        spec = self.spec
        *outer, height, width = spec.shape if len(spec.shape) > 1 else (1, *spec.shape)
        filled = (*outer, round_up(height, TILE), round_up(width, TILE))
        padded_spec = spec.changed(padded_shape=filled, memory_config=DRAM_MEMORY_CONFIG)
        return Tensor.of_host(UNKNOWN if self.left_out else self.values(), padded_spec)

    def pad(self, output_tensor_shape: Sequence[int], input_tensor_start: Sequence[int], pad_value: float) -> "Tensor":
        """A ROW_MAJOR host tensor padded to a larger shape; as in ttnn, only its padded shape grows.

        So if the tensor is placed after the first element, the values of the result begin with padding.
        Raises DeviceError if the shape cannot hold the tensor, or the tensor is on the device or in TILE layout.
        """
        self._require_host("pad")
        self._require_rows("pad", "padding")
        axes = list(zip(input_tensor_start, self.shape, output_tensor_shape, strict=False))
        fits = len(axes) == len(output_tensor_shape) == len(self.shape) == len(input_tensor_start)
        if not fits or any(begin < 0 or begin + side > whole for begin, side, whole in axes):
            raise DeviceError(
                "Output shape must hold the input tensor at its start\n"
                f"pad: {shown(output_tensor_shape)} does not hold {list(self.shape)} at {shown(input_tensor_start)}"
            )
        spec = self.spec.changed(padded_shape=tuple(output_tensor_shape))
        if self.left_out or not any(input_tensor_start):
            return Tensor.of_host(UNKNOWN if self.left_out else self.values(), spec)
        around, values = [(begin, whole - side - begin) for begin, side, whole in axes], self.values()
        filled = np.pad(values, around, constant_values=np.asarray(pad_value, values.dtype))
        return Tensor.of_host(filled[tuple(map(slice, self.shape))].copy(), spec)

    def unpad(self, output_tensor_start: Sequence[int], output_tensor_end: Sequence[int]) -> "Tensor":
        """The part of a ROW_MAJOR host tensor from a first index (included) to an end index (excluded).

        Raises DeviceError if the indices exceed the tensor, or the tensor is on the device or in TILE layout.
        """
        self._require_host("unpad")
        self._require_rows("unpad", "unpadding")
        axes = list(zip(output_tensor_start, output_tensor_end, self.shape, strict=False))
        fits = len(axes) == len(output_tensor_start) == len(output_tensor_end) == len(self.shape)
        if not fits or any(not 0 <= begin < end <= side for begin, end, side in axes):
            raise DeviceError(
                "Output end must be within the input tensor\n"
                f"unpad: {shown(output_tensor_start)} to {shown(output_tensor_end)} leaves {list(self.shape)}"
            )
        spec = TensorSpec([end - begin for begin, end, _ in axes], self.spec.data_format, self.layout)
        part = tuple(slice(begin, end) for begin, end, _ in axes)
        return Tensor.of_host(UNKNOWN if self.left_out else self.values()[part].copy(), spec)

    def _require_rows(self, name: str, doing: str) -> None:
        if self.layout is not Layout.ROW_MAJOR:
            raise DeviceError(f"Tensor layout must be ROW_MAJOR for {doing}\n{name}: use to(ROW_MAJOR_LAYOUT)")

    def unpad_from_tile(self, output_tensor_shape: Sequence[int]) -> "Tensor":
        """The top left part of a ROW_MAJOR host tensor; its shape must need the same tiles as this tensor.

        Raises DeviceError for any other shape; only the last two axes may differ.
        """
        self._require_host("unpad_from_tile")
        spec = self.spec
        self._require_rows("unpad_from_tile", "unpadding")
        wanted = tuple(int(side) for side in output_tensor_shape)
        wanted = (1,) * (len(spec.shape) - len(wanted)) + wanted
        if wanted[:-2] != spec.shape[:-2]:
            raise DeviceError(
                "Input shape must match output shape apart from last 2 dims\n"
                f"unpad_from_tile: {shown(wanted)} differs from {list(spec.shape)} in another axis"
            )
        sides = zip(wanted[-2:], spec.shape[-2:], spec.padded_shape[-2:], strict=True)
        if any(part > side or round_up(part, TILE) < filled for part, side, filled in sides):
            raise DeviceError(
                "Last 2 dims of output must be within range to have been padded to input\n"
                f"unpad_from_tile: {shown(wanted)} does not fill the tiles of {list(spec.shape)}"
            )
        part = self.values()[..., : wanted[-2], : wanted[-1]].copy()
        return Tensor.of_host(part, TensorSpec(wanted, spec.data_format, spec.layout))

    def _require_host(self, name: str) -> None:
        if self._storage is not None:
            raise DeviceError(f"Tensor must be on host for {name} conversion\n{name}: use .cpu() first")

    def seen_as(self, spec: TensorSpec) -> "Tensor":
        """A view of a device tensor with another shape, sharing its buffer."""
        assert self._storage is not None
        return Tensor._sharing(self._storage, spec)

    @property
    def shares_buffer(self) -> bool:
        """Whether other tensors, such as views, share the buffer of this device tensor."""
        return self._storage is not None and len(self._storage.sharers) > 1

    def deallocate(self, force: bool = False) -> None:
        """Frees the tensor's memory; calling it twice is harmless.

        Without ``force``, a buffer that other tensors share is kept. (``ttnn.deallocate`` forces by default.)
        """
        if self._storage is None:
            self._values, self._parts = None, ()
        elif force or not self.shares_buffer:
            self._storage.free()

    def take(self, tensor: "Tensor") -> None:
        """Replaces the values of a host tensor by the values of another tensor of its format."""
        first, *others = [UNKNOWN if part.left_out else frozen(part.values().copy()) for part in tensor.each()]
        self._values, self._parts = first, tuple(others)

    def _changed(self, spec: TensorSpec) -> "Tensor":
        """The values in a new tensor of ``spec``; block floats are rounded again if their blocks change."""
        stays = (self.spec.data_format, self.spec.shape[-1:]) == (spec.data_format, spec.shape[-1:])

        def on_host(part: Tensor) -> Array:
            return UNKNOWN if part.left_out else quantize(part.values().reshape(spec.shape), spec.data_format)

        def on_device(part: Tensor) -> Array | None:
            if not part.buffer.written:
                return None
            values = part.values().reshape(spec.shape)
            return values if stays else typecast(values, self.spec.data_format, spec.data_format)

        if self._storage is None:
            first, *others = map(on_host, self.each())
            return Tensor.of_host(first, spec, parts=others)
        values, *parts = map(on_device, self.each())
        return Tensor._sharing(placed(self._storage.device, values, spec, by=CREATED, parts=parts), spec)

    def __repr__(self) -> str:
        """Values (shortened), shape, data type and layout, as the real library prints them."""
        name = self.dtype.name
        if not self.is_allocated():
            shown = "<buffer is not allocated>"
        elif self.distributed:
            texts = [repr(part) for part in self.each()]
            return "\n".join(f"device {number}: {text}" for number, text in enumerate(texts))
        elif not self.known:
            shown = "<no values>"
        else:
            shown = printed(self.to_numpy())
        return f"ttnn.Tensor({shown}, shape={self.shape}, dtype=DataType::{name}, layout=Layout::{self.layout.name})"
