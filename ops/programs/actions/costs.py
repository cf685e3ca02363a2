"""What programs of several kinds do alike costs them alike: constants of the processors, one for each action.

The machine's own figures (rates, widths, latencies) are parts of a device; what stands here is fitted or measured, for
each instruction or call of a kernel, in cycles of the worker cores.
"""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferCosts(Costs):
    """What a data movement processor spends on each transfer.

    Attributes:
        read_issue_cycles: Between two reads whose addresses are worked out.
        stateful_issue_cycles: Between two transfers that repeat the settings of the one before.
        write_issue_cycles: Between two writes whose addresses are worked out.
        page_issue_cycles: Between two reads of pages of an interleaved buffer, whose banks are worked out as well.
        multicast_receiver_cycles: Of a multicast, for each receiver.
    """

    TABLE: ClassVar[str] = "transfer_costs"

    read_issue_cycles: float
    stateful_issue_cycles: float
    write_issue_cycles: float
    page_issue_cycles: float
    multicast_receiver_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCosts(Costs):
    """What the compute threads spend on each call, besides what the widths of `ComputeSpec` take.

    Attributes:
        tilize_tile_cycles: Of tilizing, for each tile.
        tilize_row_cycles: For each row of tiles.
        tilize_call_cycles: For each block.
        untilize_block_cycles: Of untilizing, for each row of tiles.
        untilize_narrow_tile_cycles: For each tile of rows that fit one half of the destination registers.
        untilize_wide_tile_cycles: For each tile of wider rows.
        stationary_tile_cycles: For each tile of a group that stays in the matrix unit while others stream past, where
            `ComputeSpec.stationary_tiles` is more than one: no other group can be fetched meanwhile.
        matmul_call_cycles: For each K tile of a sub-block.
        subblock_cycles: For each sub-block.
        block_cycles: For each block, and for bias and untilize passes.
        reload_cycles: For each reload of partials.
        reload_tile_cycles: For each reloaded tile.
        add_tile_cycles: For each tile that is added to another, as a bias is.
        vector_tile_cycles: For each tile that passes through the vector unit once.
    """

    TABLE: ClassVar[str] = "compute_costs"

    tilize_tile_cycles: float
    tilize_row_cycles: float
    tilize_call_cycles: float
    untilize_block_cycles: float
    untilize_narrow_tile_cycles: float
    untilize_wide_tile_cycles: float
    stationary_tile_cycles: float
    matmul_call_cycles: float
    subblock_cycles: float
    block_cycles: float
    reload_cycles: float
    reload_tile_cycles: float
    add_tile_cycles: float
    vector_tile_cycles: float


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

    start_cycles: float
    dram_write_share: float
    dram_stick_share: float
    stick_read_cycles: float
    stick_read_bytes_per_cycle: float
    stick_write_cycles: float
