"""Where the circular buffers of a program go: upward from the base of L1, one address on all cores of a buffer."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from device.cores import CoreRange, CoreRangeSet
from device.errors import CircularBufferError
from device.numbers.integers import round_up
from device.spec.parts import L1Spec


class Region(NamedTuple):
    """How far circular buffers reach on a range of cores."""

    cores: CoreRange
    end: int  # First address behind its last circular buffer


class Placement(NamedTuple):
    """Circular buffers with their addresses."""

    addresses: tuple[int, ...]  # One for each request, in order
    regions: tuple[Region, ...]  # One for each distinct range of cores, in the order in which the requests name them


def place(requests: Sequence[tuple[int, CoreRangeSet]], l1: L1Spec) -> Placement:
    """Stack circular buffers, in the order of tt-metal's program (program.cpp).

    A fill level is kept for each distinct range of cores. A buffer starts at the highest level of its own ranges,
    aligned, and lifts every range that shares a core with it, unless that range is another one and already filled
    beyond the buffer's start.

    Args:
        requests: Size in bytes on each core, and cores, of each circular buffer that is no view of a tensor.
    """
    levels = {one: l1.base_bytes for _, cores in requests for one in cores.ranges}
    addresses = []
    for size_bytes, cores in requests:
        level = max((levels[one] for one in cores.ranges), default=l1.base_bytes)
        address = round_up(level, l1.circular_buffer_alignment_bytes)
        for own in cores.ranges:
            for other, filled in levels.items():
                if own.overlaps(other) and (own == other or address >= filled):
                    levels[other] = address + size_bytes
        addresses.append(address)
    return Placement(tuple(addresses), tuple(Region(cores, end) for cores, end in levels.items()))


def check_count(count: int, l1: L1Spec, *, noun: str = "circular buffer") -> None:
    """Refuse a program of more circular buffers than a core has.

    Args:
        count: Of the program, numbered from 0.
        noun: What the real library calls these buffers.

    Raises:
        CircularBufferError: With the real library's text in the first line (tt-metal, circular_buffer_config.cpp).
    """
    if count > l1.circular_buffers:
        raise CircularBufferError(
            f"Buffer index ({l1.circular_buffers}) exceeds max number of circular buffers per core "
            f"({l1.circular_buffers})\nThe program has {count} {noun}s: turn a bias, a split reader or config tensors "
            "in DRAM off, or give the device more (l1.circular_buffers)"
        )


def check(
    regions: Iterable[Region],
    l1: L1Spec,
    *,
    lowest_l1_address: int | None,
    program: int,
    noun: str = "circular buffer",
) -> None:
    """Refuse circular buffers that leave L1 or reach into the L1 buffers.

    Args:
        regions: Of one program.
        lowest_l1_address: Where the lowest L1 buffer begins; None if there is none.
        program: Running number, for the message.
        noun: What the real library calls these buffers.

    Raises:
        CircularBufferError: With the real library's text in the first line.
    """
    for cores, end in regions:
        if end > l1.bytes:
            raise CircularBufferError(
                f"Statically allocated {noun}s on core range {cores} grow to {end} B which is beyond max L1 "
                f"size of {l1.bytes} B\nThey are {end - l1.bytes} B too large even for empty L1: make the blocks of "
                "the operation smaller, turn double buffering off, or use smaller data formats"
            )
        if lowest_l1_address is not None and lowest_l1_address < end:
            raise CircularBufferError(
                f"Statically allocated {noun}s in program {program} clash with L1 buffers on core range "
                f"{cores}. L1 buffer allocated at {lowest_l1_address} and static {noun} region ends at {end}\n"
                f"They overlap by {end - lowest_l1_address} B: free L1 tensors that are not needed any more, make the "
                "blocks of the operation smaller, turn double buffering off, or spread the tensors over more cores"
            )
