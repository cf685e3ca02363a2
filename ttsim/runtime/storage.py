"""The buffer behind the tensors that share it."""

from weakref import WeakSet

from device.memory.buffers import Buffer
from ttsim.runtime.device import Device


class DeviceStorage:
    """A buffer on a device, freed with the last tensor that shares it.

    Attributes:
        device: The device.
        buffer: The buffer.
        sharers: Tensors that share it.
    """

    __slots__ = ("buffer", "device", "sharers")

    def __init__(self, device: Device, buffer: Buffer) -> None:
        self.device = device
        self.buffer = buffer
        self.sharers: WeakSet[object] = WeakSet()

    def free(self) -> None:
        """Gives the buffer back; doing so twice is harmless."""
        self.device.listened().free(self.buffer)

    def __del__(self) -> None:
        """Frees the buffer; a capture that has not met the device yet does not see it, as this may happen any time."""
        if self.buffer.allocated:
            self.device.machine.free(self.buffer)
