"""What kind of number a figure of a device is, by its name: its unit, and which way a machine is better.

A field's name ends in its unit, so that rules over names do for a field that is new, too; the few that count things
are listed. A name that no rule knows is refused, for a figure without a unit can not be held to anything.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple

from device.errors import SpecError


class Better(Enum):
    """Which way a machine is better that differs in one figure, for a program that stays as it is."""

    LARGER = "larger"
    SMALLER = "smaller"
    NEITHER = ""


class Dimension(Enum):
    """What becomes of a figure where everything happens in less time: on a faster clock, or in fewer cycles of it."""

    CLOCK = "a rate of the clock"
    RATE = "bytes in a second"
    TIME = "time on a clock of its own"
    CYCLES = "cycles"
    CYCLE_RATE = "bytes in a cycle"
    NUMBER = "a number"


class Kind(NamedTuple):
    """What kind of number a figure is.

    Attributes:
        unit: Of the number; empty of a plain one.
        dimension: Of the number.
        better: Which way a machine is better.
    """

    unit: str
    dimension: Dimension
    better: Better


def kind_of(name: str) -> Kind:
    """What kind of number the figure of a name is: `dram.banks`, `reader.tilize[0].dst_16bit_cycles`.

    Raises:
        SpecError: The name does not tell its unit.
    """
    if kind := _found(name):
        return kind
    raise SpecError(
        f"{name}: nobody knows the unit of this figure; let its name end in one of {', '.join(_ENDINGS)}, or list it"
    )


def has_kind(name: str) -> bool:
    """Whether the name of a figure tells its unit."""
    return _found(name) is not None


def _found(name: str) -> Kind | None:
    return _COUNTED.get(name) or next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


# What is counted, by its whole name: unit and which way is better.
_COUNTED: Final[Mapping[str, Kind]] = MappingProxyType({
    "grid.cols": Kind("cores", Dimension.NUMBER, Better.NEITHER),  # more cores, and longer ways between them
    "grid.rows": Kind("cores", Dimension.NUMBER, Better.NEITHER),
    "l1.circular_buffers": Kind("", Dimension.NUMBER, Better.LARGER),
    "dram.banks": Kind("banks", Dimension.NUMBER, Better.LARGER),
    "noc.cols": Kind("nodes", Dimension.NUMBER, Better.SMALLER),
    "noc.rows": Kind("nodes", Dimension.NUMBER, Better.SMALLER),
    "noc.flit_bytes": Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "data_movement.processors": Kind("processors", Dimension.NUMBER, Better.LARGER),
    "compute.dst_tiles": Kind("tiles", Dimension.NUMBER, Better.LARGER),
    "compute.stationary_tiles": Kind("tiles", Dimension.NUMBER, Better.NEITHER),  # fewer fetches, each waited for
})  # fmt: skip
# The others by how their names end; the first ending that fits counts.
_ENDINGS: Final[Mapping[str, Kind]] = MappingProxyType({
    "_bytes_per_second": Kind("bytes/s", Dimension.RATE, Better.LARGER),
    "_bytes_per_cycle": Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
    "_bytes_per_ns": Kind("bytes/ns", Dimension.RATE, Better.LARGER),
    "_cycles": Kind("cycles", Dimension.CYCLES, Better.SMALLER),
    "wait_share": Kind("", Dimension.NUMBER, Better.SMALLER),
    "waiting_share": Kind("", Dimension.NUMBER, Better.SMALLER),
    "_share": Kind("", Dimension.NUMBER, Better.LARGER),
    "_factor": Kind("", Dimension.NUMBER, Better.SMALLER),  # of what else is to be done
    "_links": Kind("links", Dimension.NUMBER, Better.LARGER),
    "buffer_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "write_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "packet_bytes": Kind("bytes", Dimension.NUMBER, Better.LARGER),
    "_bytes": Kind("bytes", Dimension.NUMBER, Better.NEITHER),
    "bytes": Kind("bytes", Dimension.NUMBER, Better.NEITHER),
    "_ghz": Kind("GHz", Dimension.CLOCK, Better.LARGER),
    "_hz": Kind("Hz", Dimension.CLOCK, Better.LARGER),
    "_ns": Kind("ns", Dimension.TIME, Better.SMALLER),
    "_nanoseconds": Kind("ns", Dimension.TIME, Better.SMALLER),
})  # fmt: skip
