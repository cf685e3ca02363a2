"""Where the values of tensors are: on the host, or in buffers on devices, which tensors share."""

from weakref import WeakSet

from device.bindings import PlainEnum
from device.errors import DeviceError
from device.events import MadeTensor, OperationBegin, OperationEnd, ReadTensor
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from ttsim.runtime.device import Device
from ttsim.runtime.turns import in_turn


class StorageType(PlainEnum):
    """Where the values of a tensor are."""

    HOST = 0
    DEVICE = 1


class DeviceStorage:
    """A buffer on a device, freed with the last tensor that shares it.

    Attributes:
        device: The device.
        buffer: The buffer.
        sharers: Tensors that share it.
    """

    __slots__ = ("__weakref__", "buffer", "device", "sharers")

    def __init__(self, device: Device, buffer: Buffer) -> None:
        self.device = device
        self.buffer = buffer
        self.sharers: WeakSet[object] = WeakSet()
        device.machine.own(buffer, self)

    def free(self) -> None:
        """Gives the buffer back; doing so twice is harmless."""
        machine = self.device.listened()
        in_turn(machine, lambda: machine.free(self.buffer))

    def __del__(self) -> None:
        """Frees the buffer; a capture that has not met the device yet does not see it, as this may happen any time.

        It never waits: while another thread uses the device, the buffer is left to whoever uses the device next.
        """
        buffer: Buffer | None = getattr(self, "buffer", None)
        if buffer is None or not buffer.allocated:
            return
        turn = self.device.machine.turn
        held = turn.mine
        try:
            if turn.take(wait=False):
                self.device.machine.free(buffer)
            if not held:
                turn.give()
        except BaseException:  # an interrupt, wherever it came
            if not held:
                turn.give()
            raise


def placed(device: Device, values: Array | None, spec: TensorSpec, *, by: str) -> DeviceStorage:
    """A new buffer for a tensor, with values if there are any.

    Args:
        device: Where it goes.
        values: In storage of the format, in the logical or the padded shape.
        by: The function of the real library that asks for it.
    """
    if device.traces.capturing is not None:
        raise DeviceError(
            f"Writes are not supported during trace capture.\n{by}: it is no device operation here; do it before the "
            "capture, on tensors that the trace then reads or that copy_host_to_device_tensor fills"
        )

    def stored() -> DeviceStorage:
        buffer = device.machine.allocate(spec.buffer(device.spec), "tensor", by=by, tensor=spec)
        if values is not None:
            buffer.store(values, spec)
        return DeviceStorage(device, buffer)

    return in_turn(device.listened(), stored)


def record_fetched(storage: DeviceStorage, spec: TensorSpec, brought: TensorSpec) -> None:
    """Tells whoever listens that a tensor was brought to the host.

    Args:
        storage: Where it lies.
        brought: The same on the host.
    """
    buffer, machine = storage.buffer, storage.device.listened()
    read = ReadTensor(MadeTensor(buffer.number, buffer.address, spec), buffer.spec)

    def record() -> None:
        machine.record(OperationBegin("Tensor::cpu", read=(read,)))
        machine.record(OperationEnd("Tensor::cpu", hosts=(brought,)))

    in_turn(machine, record)


def not_allocated(first_line: str = "Tensor is not allocated") -> DeviceError:
    """What using a deallocated tensor raises, with the real library's first line."""
    return DeviceError(
        f"{first_line}\nit was deallocated, by deallocate() or because an operation was told to consume it "
        "(deallocate_activation); keep it allocated, or make it again"
    )
