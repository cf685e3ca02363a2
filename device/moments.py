"""States of a device, to go back to or on from."""

from typing import NamedTuple

from device.events import Event
from device.memory.free_list import Blocks


class Moment(NamedTuple):
    """The state of a device before a call.

    Attributes:
        buffers: Buffers that it had made.
        programs: Programs in its cache.
        recorders: Who listened.
    """

    buffers: int
    programs: int
    recorders: tuple[list[Event], ...]


class Standing(NamedTuple):
    """How the memories of a device stand.

    Attributes:
        blocks: Of every memory.
        buffers: Buffers that the device has made.
        programs: Programs that it has made.
    """

    blocks: tuple[Blocks, ...]
    buffers: int
    programs: int
