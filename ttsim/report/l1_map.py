"""L1 of a core over device operations: which buffer lies where, and from which operation to which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from device.cores import CoreRangeSet
from device.spec.device_spec import DeviceSpec

CIRCULAR: Final = "circular buffer"
Ranges = tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A buffer in L1 while a device operation runs."""

    name: str
    kind: str  # "circular buffer", "L1" or "L1_SMALL"
    address: int  # On every core that has it
    size_bytes: int  # On the core that has most of it
    cores: str = ""  # Where a circular buffer is, as ttnn prints it; empty of others
    ranges: Ranges = ()  # The same as rectangles: first column, first row, last column, last row
    made: str = ""  # Who made it, in words; empty if it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Block:
    """A buffer from one device operation to another. Shares are those of a picture: time to the right, addresses up."""

    held: Held
    first: int  # Number of the first device operation that finds it
    last: int  # Number of the last one
    left_share: float  # Where it begins in time, each operation being as wide as the others
    width_share: float  # How long it lives
    top_share: float  # From the top of L1 down to its end
    height_share: float  # Its size, of all L1


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Map:
    """L1 of a core over device operations."""

    base_bytes: int  # Where the part begins that a program can use
    end_bytes: int  # Where L1 ends
    base_share: float  # The former of the latter
    operations: int  # How many there are
    blocks: tuple[L1Block, ...]  # Buffers, in the order in which operations find them


def ranges_of(cores: CoreRangeSet) -> Ranges:
    """Cores as rectangles."""
    return tuple((one.start.x, one.start.y, one.end.x, one.end.y) for one in cores.merged().ranges)


def l1_map(moments: Sequence[Sequence[Held]], spec: DeviceSpec) -> L1Map:
    """The map over device operations that run one after the other.

    A circular buffer belongs to one operation; any other buffer lives on as long as each operation finds it.

    Args:
        moments: What lies in L1 while each operation runs.
    """
    spans: list[list[int]] = []
    buffers: list[Held] = []
    alive: dict[Held, int] = {}  # where its span is
    for number, moment in enumerate(moments):
        kept: dict[Held, int] = {}
        for one in moment:
            at = alive.get(one) if one.kind != CIRCULAR else None
            if at is None:
                at = len(spans)
                spans.append([number, number])
                buffers.append(one)
            spans[at][1] = number
            kept[one] = at
        alive = kept
    end, count = spec.l1.bytes, len(moments)
    return L1Map(
        base_bytes=spec.l1.base_bytes,
        end_bytes=end,
        base_share=spec.l1.base_bytes / end,
        operations=count,
        blocks=tuple(
            L1Block(
                held=one,
                first=first,
                last=last,
                left_share=first / count,
                width_share=(last - first + 1) / count,
                top_share=1 - (one.address + one.size_bytes) / end,
                height_share=one.size_bytes / end,
            )
            for one, (first, last) in zip(buffers, spans, strict=True)
        ),
    )
