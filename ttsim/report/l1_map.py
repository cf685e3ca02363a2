"""A map of a core's L1 over device operations: the address and the lifetime of each buffer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycles import Ranges
from ttsim.report.rows import Column, Row

CIRCULAR: Final = "circular buffer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A buffer in L1 during a device operation."""

    name: str
    kind: str  # "circular buffer", "L1" or "L1_SMALL"
    address: int  # On every core that has it
    size_bytes: int  # On the core that has most of it
    cores: str = ""  # The cores of a circular buffer, as ttnn prints them; empty for other buffers
    ranges: Ranges = ()  # `cores` as rectangles
    made: str = ""  # Who made it, in words; empty if it is not known


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class L1Block(Row, figures="held first last"):
    """A buffer from one device operation to another; shares are those of a picture, time to the right, addresses up."""

    held: Held
    first: int  # Number of the first device operation that has the buffer
    last: int  # Number of the last one
    operations: int  # How many there are
    end_bytes: int  # Where L1 ends

    # Start and lifetime; all operations are equally wide
    left_share = Column["L1Block", float](lambda block: block.first / block.operations)
    width_share = Column["L1Block", float](lambda block: (block.last - block.first + 1) / block.operations)
    # Distance from the top of L1
    top_share = Column["L1Block", float](
        lambda block: 1 - (block.held.address + block.held.size_bytes) / block.end_bytes
    )
    height_share = Column["L1Block", float](lambda block: block.held.size_bytes / block.end_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Map:
    """L1 of a core over device operations."""

    base_bytes: int  # Start of the L1 that a program can use
    end_bytes: int  # Where L1 ends
    base_share: float  # The former of the latter
    operations: int  # How many there are
    blocks: tuple[L1Block, ...]  # Buffers, in the order of their first operations


def l1_map(moments: Sequence[Sequence[Held]], spec: DeviceSpec) -> L1Map:
    """The map over device operations in sequence, from the L1 buffers during each of them.

    A circular buffer belongs to one operation; any other buffer lives through consecutive operations that have it.
    """
    spans: list[tuple[Held, list[int]]] = []
    alive: dict[Held, list[int]] = {}
    for number, moment in enumerate(moments):
        spanned: dict[Held, list[int]] = {}
        for buffer in moment:
            span = alive.get(buffer) if buffer.kind != CIRCULAR else None
            if span is None:
                span = [number, number]
                spans.append((buffer, span))
            span[1] = number
            spanned[buffer] = span
        alive = spanned
    base, end, count = spec.l1.base_bytes, spec.l1.bytes, len(moments)
    blocks = (
        L1Block(held=buffer, first=first, last=last, operations=count, end_bytes=end) for buffer, (first, last) in spans
    )
    return L1Map(base_bytes=base, end_bytes=end, base_share=base / end, operations=count, blocks=tuple(blocks))
