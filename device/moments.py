"""States of a device, to go back to or on from."""

from typing import NamedTuple

from device.events import Event
from device.memory.free_list import Blocks


class Moment(NamedTuple):
    """The state of a device before a call."""

    buffers: int  # Buffers that it had made
    programs: int
    recorders: tuple[list[Event], ...]  # Who listened


class Standing(NamedTuple):
    """How the memories of a device stand."""

    blocks: tuple[Blocks, ...]  # Of every memory
    buffers: int  # Buffers that the device has made
    programs: int  # Programs that it has made
