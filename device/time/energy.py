"""Energy of actions, static power, and area of a device: tables of its file, each entry with its source.

Entries are whole numbers, so that energies are sums of whole femtojoules. Nothing here was measured on a card: an entry
is a published figure of a technology, or a guess, as its comment in the file says.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from device.spec.device_spec import Costs, DeviceSpec
from device.time.network import torus_of

JOULE: Final = 10**15  # femtojoules
MEBIBYTE: Final = 1 << 20
UNVALIDATED: Final = (
    "no entry of the table was measured on a card; sums are unvalidated, and only held to be below the limit of the "
    "board"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCosts(Costs):
    """Energy of each action, and power while nothing happens."""

    TABLE: ClassVar[str] = "energy_costs"

    multiply_add_femtojoules: int  # Of a multiply-add of the matrix unit, for each fidelity phase
    register_femtojoules: int  # Of a number that is read from registers, or written to them
    unpack_byte_femtojoules: int  # Of a byte that is converted on its way to registers, besides reading L1
    pack_byte_femtojoules: int  # Of a byte that is converted on its way from registers, besides writing L1
    l1_read_byte_femtojoules: int  # Of a byte read from L1
    l1_write_byte_femtojoules: int  # Of a byte written to L1
    dram_read_byte_femtojoules: int  # Of a byte read from DRAM, with both ends of its interface
    dram_write_byte_femtojoules: int  # Of a byte written to DRAM
    link_byte_femtojoules: int  # Of a byte that passes a link of a network and the router behind it
    busy_core_cycle_femtojoules: int  # Of a cycle in which a core works, besides all of the above
    waiting_core_cycle_femtojoules: int  # Of a cycle in which a core waits
    core_milliwatts: int  # Of each worker core at any time
    dram_bank_milliwatts: int  # Of each bank of DRAM at any time, refresh among it
    board_milliwatts: int  # Of the rest of the board at any time
    board_limit_milliwatts: int  # The most that the board may take, by its data sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaCosts(Costs):
    """Area of each part of the chip."""

    TABLE: ClassVar[str] = "area_costs"

    core_square_micrometers: int  # Of a worker core without its L1
    l1_mebibyte_square_micrometers: int  # Of a MiB of L1
    dram_bank_square_micrometers: int  # Of the controller and the interface of a bank of DRAM
    router_square_micrometers: int  # Of a node of both networks
    other_square_micrometers: int  # Of everything else: host interface, Ethernet, management


def static_milliwatts(spec: DeviceSpec) -> int:
    """The power of a device while nothing happens."""
    costs = spec.costs_of(EnergyCosts)
    cores, banks = spec.grid.cores * costs.core_milliwatts, spec.dram.banks * costs.dram_bank_milliwatts
    return cores + banks + costs.board_milliwatts


def static_femtojoules(milliwatts: int, cycles: int, clock_hz: int) -> int:
    """The energy of static power over some cycles, whole femtojoules for each, so that parts add up exactly."""
    return cycles * (milliwatts * 10**12 // clock_hz)  # a milliwatt second is 1e12 fJ


def area_square_millimeters(spec: DeviceSpec) -> float:
    """The area of the worker cores that programs can use, of DRAM, networks and the rest of the chip."""
    costs, torus = spec.costs_of(AreaCosts), torus_of(spec)
    core = costs.core_square_micrometers + Fraction(spec.l1.bytes * costs.l1_mebibyte_square_micrometers, MEBIBYTE)
    parts = spec.grid.cores * core + spec.dram.banks * costs.dram_bank_square_micrometers
    parts += torus.cols * torus.rows * costs.router_square_micrometers + costs.other_square_micrometers
    return float(parts / 10**6)
