"""What the halo program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts(Costs):
    """Constants of the model of the halo program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        dram_config_cycles: More, with config tensors in DRAM.
        pad_write_bytes: Most bytes one write of zeros fills.
        pad_write_cycles: For each write of zeros.
        segment_cycles: For each run of padding.
        waiting_share: Part of the bytes on links it shares that a transfer waits for.
        untilize_block_cycles: For each untilized block of 32 rows.
        untilize_narrow_tile_cycles: For each tile of rows that fit one half of the destination registers.
        untilize_wide_tile_cycles: For each tile of wider rows.
    """

    TABLE: ClassVar[str] = "halo_costs"

    start_cycles: int
    dram_config_cycles: int
    pad_write_bytes: int
    pad_write_cycles: float
    segment_cycles: float
    waiting_share: float
    untilize_block_cycles: int
    untilize_narrow_tile_cycles: int
    untilize_wide_tile_cycles: int
