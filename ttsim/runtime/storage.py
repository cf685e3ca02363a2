"""The buffers that tensors share."""

from weakref import WeakSet

from device.memory.buffers import Buffer
from ttsim.runtime.device import Device
from ttsim.runtime.turns import in_turn


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
