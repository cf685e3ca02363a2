"""What data movement programs cost: constants of their model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class MovementCosts(Costs):
    """Constants of the model of data movement programs, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        waited_page_cycles: More than the round trip, for each page that is waited for before the next is asked for.
        write_round_trip_cycles: A page written to DRAM and waited for.
        bounce_cycles: For each stick that is read to one place of L1 and copied to another.
        dram_read_share: Part of the DRAM bandwidth that cores reading tiles get.
        dram_write_share: Part of it that cores writing tiles get.
        dram_stick_share: Part of it that cores reading sticks get.
        stick_read_cycles: Between two sticks read from DRAM by one core.
        stick_read_bytes_per_cycle: Rate at which one core gets the bytes of sticks.
        stick_write_cycles: Between two sticks of a shard written to DRAM.
        box_stick_cycles: Between two sticks written into a box of an image, or of a row of tiles.
        box_tile_cycles: Between two tiles written into a box of an image.
        local_stick_cycles: Between two sticks copied within a core.
        reshard_cycles: Setting up the copies of a reshard.
        reshard_bytes_per_cycle: Rate of one core of a reshard.
        segment_cycles: For each segment of a reshape of tiles.
    """

    TABLE: ClassVar[str] = "movement_costs"

    start_cycles: float
    waited_page_cycles: float
    write_round_trip_cycles: float
    bounce_cycles: float
    dram_read_share: float
    dram_write_share: float
    dram_stick_share: float
    stick_read_cycles: float
    stick_read_bytes_per_cycle: float
    stick_write_cycles: float
    box_stick_cycles: float
    box_tile_cycles: float
    local_stick_cycles: float
    reshard_cycles: float
    reshard_bytes_per_cycle: float
    segment_cycles: float
