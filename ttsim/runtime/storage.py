"""Storage of tensor values: on the host, or in buffers on devices, which tensors may share."""

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final
from warnings import warn
from weakref import WeakSet

import ml_dtypes
import numpy as np

from device.cores import PlainEnum
from device.errors import ArgumentError, ArgumentTypeError, DeviceError
from device.host.threads import side_by_side
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, quantize
from device.plan import OperationBegin, OperationEnd, ReadTensor, WrittenTensor
from ops.programs.patch_matmul.gather import copy_in_pieces
from ttsim.runtime.device import Device
from ttsim.runtime.session import current, locked
from ttsim.runtime.tracebacks import user_level
from ttsim.runtime.types.of_torch import TorchTensor
from ttsim.runtime.types.tensors import DataType


class StorageType(PlainEnum):
    """Where the values of a tensor are.

    Examples:
        >>> ttnn.zeros((2, 2)).storage_type()
        StorageType.HOST
    """

    HOST, DEVICE = range(2)


class DeviceStorage:
    """A buffer on a device, freed with the last tensor that shares it; on a mesh, one buffer on each device."""

    __slots__ = ("__weakref__", "buffer", "device", "others", "sharers")
    _ends = staticmethod(sys.is_finalizing)  # bound here: an interpreter that ends may have emptied this module

    def __init__(self, device: Device, buffer: Buffer) -> None:
        self.device = device
        self.buffer = buffer
        self.others: tuple[DeviceStorage, ...] = ()  # Of the further devices of a mesh, in their order
        self.sharers: WeakSet[object] = WeakSet()  # Tensors that share it
        device.machine.own(buffer, self)

    def free(self) -> None:
        """Frees the buffers; calling it twice is harmless."""
        machine = self.device.listened()
        locked(machine, lambda: machine.free(self.buffer))
        for other in self.others:
            other.free()

    def __del__(self) -> None:
        """Frees the buffer; a capture that does not yet listen to the device does not record this.

        It never waits: while another thread uses the device, the next user of the device frees the buffer. At the end
        of the interpreter, modules may already be empty, and nothing is freed.
        """
        buffer: Buffer | None = getattr(self, "buffer", None)
        if self._ends() or buffer is None or not buffer.allocated:
            return
        turn = self.device.machine.turn
        was_mine = turn.mine
        try:
            if turn.take(wait=False):
                self.device.machine.free(buffer)
            if not was_mine:
                turn.give()
        except BaseException:  # an interrupt, wherever it came
            if not was_mine:
                turn.give()
            raise


class FirstStorage(DeviceStorage):
    """The buffer on the first device of a mesh; the storage on all devices owns and frees it."""

    __slots__ = ("whole",)

    def __init__(self, whole: DeviceStorage) -> None:
        self.device, self.buffer, self.others = whole.device, whole.buffer, ()
        self.sharers: WeakSet[object] = WeakSet()
        self.whole = whole

    def __del__(self) -> None:
        """Frees nothing."""


def parts_of(storage: DeviceStorage) -> list[DeviceStorage]:
    """The storage on each device of a mesh; the storage itself on one device."""
    return [FirstStorage(storage), *storage.others] if storage.others else [storage]


def placed(
    device: Device, values: Array | None, spec: TensorSpec, *, by: str, parts: Sequence[Array | None] = ()
) -> DeviceStorage:
    """Allocates a buffer for a tensor in a function of the real library, and writes the values, if any.

    On a mesh every device gets a buffer; devices after the first get the values of ``parts``, or else the same values.
    """
    if parts and len(parts) != len(device.others):
        raise DeviceError(
            f"{by}: a tensor of {1 + len(parts)} parts can not be on a mesh of {device.shape}; distribute it over as "
            "many devices as the mesh has"
        )
    if device.traces.capturing is not None:
        raise DeviceError(
            f"Writes are not supported during trace capture.\n{by}: it is no device operation here; do it before the "
            "capture, on tensors that the trace then reads or that copy_host_to_device_tensor fills"
        )

    def stored() -> DeviceStorage:
        dispatch = current().dispatch
        buffer = device.machine.allocate(spec.buffer(device.spec), "tensor", by=by, placed=dispatch, tensor=spec)
        if values is not None:
            buffer.store(values, spec)
        device.tell_placed(buffer, spec)
        return DeviceStorage(device, buffer)

    storage = locked(device.listened(), stored)
    others = zip(device.others, parts or [values] * len(device.others), strict=True)
    storage.others = tuple(placed(other, part, spec, by=by) for other, part in others)
    return storage


def record_fetched(storage: DeviceStorage, spec: TensorSpec, brought: TensorSpec) -> None:
    """Records that a tensor was copied from ``storage`` to the host as ``brought``."""
    buffer, machine = storage.buffer, storage.device.listened()
    read = ReadTensor(WrittenTensor(buffer.number, buffer.address, spec), buffer.spec)

    def record() -> None:
        machine.record(OperationBegin("Tensor::cpu", read=(read,)))
        machine.record(OperationEnd("Tensor::cpu", hosts=(brought,)))

    locked(machine, record)


def not_allocated(first_line: str = "Tensor is not allocated") -> DeviceError:
    """The error of using a deallocated tensor, with the real library's first line."""
    return DeviceError(
        f"{first_line}\nit was deallocated: by deallocate(), with its device by close_device(), or by an operation "
        "that was told to consume it (deallocate_activation); keep it allocated, or make it again"
    )


UNKNOWN: Final = np.empty(0)  # stands for the values of a host tensor that came from a device that computes none
LARGE_BYTES = 8 << 20  # from which on threads are faster than one: below they only wait for each other
# numpy's types that ttnn stores in another type without being asked
_STORED_AS = {
    "float64": DataType.FLOAT32, "float16": DataType.FLOAT32, "int64": DataType.UINT32, "int16": DataType.UINT16,
}  # fmt: skip


def numbers(data: Any) -> Array:
    """The numbers of an object as an array; raises ArgumentError or ArgumentTypeError for other elements."""
    if masked := np.count_nonzero(np.ma.getmaskarray(data)) if isinstance(data, np.ma.MaskedArray) else 0:
        raise ArgumentError(
            f"Tensor: data has {masked} masked elements, which are no numbers; give them a value with data.filled(...)"
        )
    try:
        values = numpy_from_torch(data) if is_torch(data) else np.asarray(data)
    except ValueError:
        raise ArgumentError("Tensor: the rows of nested lists must be of one length") from None
    if values.dtype.kind not in "fiubV":
        raise ArgumentTypeError(
            f"Tensor: data must be an array of numbers, not {type(data).__name__} of {values.dtype}"
        )
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def default_type(values: Array) -> DataType:
    """The default data type of a tensor made from an array."""
    name = values.dtype.name
    data_type = _STORED_AS.get(name) or DataType.__members__.get(name.upper())
    if data_type is None:
        raise ArgumentTypeError(
            f"Tensor: there is no data type for {name} values; give one, for example data_type=ttnn.bfloat16"
        )
    return data_type


def is_torch(data: object) -> bool:
    """Whether ``data`` is a torch tensor; does not load torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.Tensor)


def numpy_from_torch(tensor: Any) -> Array:
    """The values of a torch tensor; bfloat16 stays bfloat16."""
    torch = import_module("torch")
    host = tensor.detach().cpu().contiguous()
    if host.dtype == torch.bfloat16:
        return np.asarray(host.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(host.numpy())


def contents(data: object) -> Any:
    """For a torch tensor of unknown numbers, a plain torch tensor of its shape and type; None for all other data."""
    unknown = sys.modules.get("ttsim.runtime.unknown")
    return data.stand_in if unknown is not None and isinstance(data, unknown.UnknownTensor) else None


@cache
def warn_of_unknown() -> None:
    """Warns once, at the user's line."""
    text = "values are off: tensors on the host have the right shapes and types, but their numbers are unknown"
    warn(f"{text}; whatever reads a number raises an error", stacklevel=user_level())


def unknown_torch(spec: TensorSpec) -> TorchTensor:
    """A torch tensor of unknown numbers, the counterpart of `torch_from_numpy`."""
    kind = np.dtype(np.float32) if spec.data_format.is_float else spec.data_format.storage
    warn_of_unknown()
    filled = torch_from_numpy(np.full(spec.shape, np.nan if kind.kind == "f" else 0, kind), spec.data_format.name)
    unknown: TorchTensor = import_module("ttsim.runtime.unknown").UnknownTensor(filled)
    return unknown


def torch_from_numpy(values: Array, format_name: str) -> TorchTensor:
    """A torch tensor of float32 or integers; ``format_name`` "bfloat16" makes a bfloat16 tensor of floats."""
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ImportError("to_torch needs torch; install ttsim[torch], or use to_numpy()") from error
    if values.dtype.kind == "u" and values.dtype.itemsize > 1:
        values = values.astype(np.int64)
    tensor: TorchTensor = torch.from_numpy(values)
    return tensor.to(torch.bfloat16) if format_name == "bfloat16" else tensor


def rounded(values: Array, data_format: DataFormat) -> Array:
    """A copy of values, rounded to a format; a broadcast number stays a broadcast view."""
    if values.size > 1 and not any(values.strides):
        single = quantize(values[(slice(1),) * values.ndim], data_format)
        return np.broadcast_to(single, values.shape)
    result = quantize(values, data_format)
    return result.copy() if np.shares_memory(result, values) else result


def padded(values: Array, shape: tuple[int, ...]) -> Array:
    """Values padded with zeros at the end to a larger shape, which may have more axes."""
    result = np.zeros(shape, values.dtype)
    result[(0,) * (len(shape) - values.ndim) + tuple(map(slice, values.shape))] = values
    return result


def frozen(values: Array) -> Array:
    """The array, read-only from now on."""
    values.flags.writeable = False
    return values


def copied(values: Array, kind: np.dtype[Any]) -> Array:
    """A copy as a number type that holds the values; several threads copy a large array to share its page faults."""
    if values.nbytes < LARGE_BYTES:
        return values.astype(kind, order="C")
    array = np.empty(values.shape, kind)
    copy_in_pieces(array, values, side_by_side)
    return array
