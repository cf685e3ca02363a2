"""Energy of device operations: the number of actions times the energy of an action in the device's table.

Energies are whole femtojoules, so energies of parts, operations and calls add up exactly.
"""

from collections.abc import Iterable, Mapping
from math import fsum
from types import MappingProxyType
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.energy import JOULE, UNVALIDATED, EnergyCosts, static_femtojoules, static_milliwatts
from device.time.stages import nanoseconds
from ops.passes.counts import ActionCounts
from ttsim.report.rows import Column, Row

# The counts of each part of the machine, each with the entry of the table that prices it
ENTRIES: Final[Mapping[str, tuple[tuple[str, str], ...]]] = MappingProxyType(
    {
        "math": (
            ("passes", "multiply_add_femtojoules"),
            ("register_reads", "register_femtojoules"),
            ("register_writes", "register_femtojoules"),
        ),
        "unpack": (("unpacked_bytes", "unpack_byte_femtojoules"),),
        "pack": (("packed_bytes", "pack_byte_femtojoules"),),
        "L1": (
            ("l1_read_bytes", "l1_read_byte_femtojoules"),
            ("l1_written_bytes", "l1_write_byte_femtojoules"),
        ),
        "network": (
            ("first_network_link_bytes", "link_byte_femtojoules"),
            ("second_network_link_bytes", "link_byte_femtojoules"),
        ),
        "DRAM": (
            ("dram_read_bytes", "dram_read_byte_femtojoules"),
            ("dram_written_bytes", "dram_write_byte_femtojoules"),
        ),
        "cores": (
            ("busy_core_cycles", "busy_core_cycle_femtojoules"),
            ("waiting_core_cycles", "waiting_core_cycle_femtojoules"),
        ),
    }
)
STATIC: Final = "static"  # the part of power that is there at any time


class EnergyPart(Row, figures="name femtojoules"):
    """The energy of one part of the machine."""

    of_femtojoules: int
    name: str  # "math", "unpack", "pack", "L1", "network", "DRAM", "cores" or "static"
    femtojoules: int

    share = Column[float](lambda part: part.femtojoules / part.of_femtojoules if part.of_femtojoules else 0.0)


class Energy(Row, kw_only=True):
    """The energy of operations in sequence; `basis` states the source of the figures."""

    by_part: Mapping[str, int]  # Femtojoules of each part of the machine
    taken_nanoseconds: float  # Kernel time of the operations
    basis: str = UNVALIDATED

    femtojoules = Column[int](lambda energy: sum(energy.by_part.values()))
    joules = Column[float](lambda energy: energy.femtojoules / JOULE)
    # Mean power over the time of kernels; what passes between them is not counted
    average_watts = Column[float](
        lambda energy: energy.joules / energy.taken_nanoseconds * 1e9 if energy.taken_nanoseconds else 0.0
    )
    energy_delay_joule_seconds = Column[float](lambda energy: energy.joules * energy.taken_nanoseconds / 1e9)
    parts = Column[tuple[EnergyPart, ...]](
        lambda energy: tuple(EnergyPart(energy.femtojoules, *part) for part in energy.by_part.items())
    )


def action_femtojoules(counts: ActionCounts, spec: DeviceSpec) -> dict[str, int]:
    """The energy of actions by part of the machine."""
    costs = spec.costs_of(EnergyCosts)
    return {
        part: sum(getattr(counts, count) * getattr(costs, entry) for count, entry in entries)
        for part, entries in ENTRIES.items()
    }


def energy_of(counts: ActionCounts, cycles: int, spec: DeviceSpec) -> Energy:
    """The energy of one operation: its actions, plus static power over its cycles."""
    static = static_femtojoules(static_milliwatts(spec), cycles, spec.clock_hz)
    return Energy(
        by_part={**action_femtojoules(counts, spec), STATIC: static},
        taken_nanoseconds=nanoseconds(cycles, spec.clock_hz),
    )


def energy_together(energies: Iterable[Energy]) -> Energy:
    """The exact sum of the energies of operations in sequence."""
    energies = tuple(energies)
    parts = {part: sum(each.by_part[part] for each in energies) for part in (*ENTRIES, STATIC)}
    return Energy(by_part=parts, taken_nanoseconds=fsum(each.taken_nanoseconds for each in energies))
