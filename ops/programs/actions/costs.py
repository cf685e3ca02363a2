"""What programs of several kinds do alike costs them alike: untilizing, moving sticks, work within a core.

Each figure stands in the table of the program by whose measurements it was fitted, which describes it too; here it is
read by the others.
"""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class UntilizeCosts(Costs):
    """Untilizing rows of tiles, in cycles: measured in halos.

    Attributes:
        untilize_block_cycles: For each row of tiles.
        untilize_narrow_tile_cycles: For each tile of rows that fit one half of the destination registers.
        untilize_wide_tile_cycles: For each tile of wider rows.
    """

    TABLE: ClassVar[str] = "halo_costs"

    untilize_block_cycles: int
    untilize_narrow_tile_cycles: int
    untilize_wide_tile_cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StickCosts(Costs):
    """Reading and writing sticks, in cycles unless named otherwise: measured in data movement programs.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        dram_write_share: Part of the DRAM bandwidth that writing cores get.
        dram_stick_share: Part of it that cores reading sticks get.
        stick_read_cycles: Between two sticks read from DRAM by one core.
        stick_read_bytes_per_cycle: Rate at which one core gets the bytes of sticks.
        stick_write_cycles: Between two sticks written to DRAM.
    """

    TABLE: ClassVar[str] = "movement_costs"

    start_cycles: int
    dram_write_share: float
    dram_stick_share: float
    stick_read_cycles: float
    stick_read_bytes_per_cycle: float
    stick_write_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreCosts(Costs):
    """What a core does within its own L1, in cycles unless named otherwise: measured in convolutions.

    Attributes:
        read_issue_cycles: Between two bursts from the own L1.
        tilize_factor: Of the cycles in ``reader.tilize``, which the real planner reckons with.
        bias_tile_cycles: For each tile that is added to another.
    """

    TABLE: ClassVar[str] = "conv_costs"

    read_issue_cycles: float
    tilize_factor: float
    bias_tile_cycles: float
