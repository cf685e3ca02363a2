"""Who keeps a buffer, and buffers whose keeper died before anybody freed them."""

from collections import deque
from collections.abc import Callable
from weakref import ReferenceType

from device.memory.buffers import Buffer


class _Owner(ReferenceType[object]):
    """A weak reference to whoever keeps a buffer; when that one dies, the buffer joins the orphans.

    The callback is a method of C, so that no interrupt comes between.
    """

    __slots__ = ("buffer",)

    buffer: Buffer


class Owners:
    """The owners of a device's buffers; true while it knows of buffers whose owner died."""

    __slots__ = ("_orphans",)

    def __init__(self) -> None:
        self._orphans: deque[_Owner] = deque()

    def __bool__(self) -> bool:
        return bool(self._orphans)

    def own(self, buffer: Buffer, owner: object) -> None:
        """From now on a buffer lives as long as its owner."""
        reference = _Owner(owner, self._orphans.append)
        reference.buffer = buffer
        buffer.owner = reference

    def collect(self, free: Callable[[Buffer], None]) -> None:
        """Frees the buffers of dead owners, oldest first; one is forgotten once it is free, whatever interrupts."""
        while self._orphans:
            free(self._orphans[0].buffer)
            self._orphans.popleft()
