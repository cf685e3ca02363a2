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
        multicast_receiver_cycles: Of a multicast, for each packet and receiver.
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
    matmul_call_cycles: float
    subblock_cycles: float
    block_cycles: float
    reload_cycles: float
    reload_tile_cycles: float
    add_tile_cycles: float
    vector_tile_cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StickCosts(Costs):
    """Reading and writing pages that are waited for, and sticks, in cycles unless named otherwise.

    Measured in data movement programs.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        write_access_ns: Of a write to DRAM, from its arrival at a bank to its acknowledgment.
        page_rate_share: Part of a bank's rate that one core gets for one page.
        wait_share: Part of the pages of all other cores that a page waits behind, each of which is waited for.
        group_wait_share: The same of sticks that are asked for in groups.
        dram_write_share: Part of the DRAM bandwidth that writing cores get.
        dram_stick_share: Part of it that cores reading sticks get.
        stick_cycles: Between two sticks that one core reads, or writes out of a row of tiles.
        stick_write_cycles: Between two sticks of a shard written to DRAM.
    """

    TABLE: ClassVar[str] = "movement_costs"

    start_cycles: float
    write_access_ns: float
    page_rate_share: float
    wait_share: float
    group_wait_share: float
    dram_write_share: float
    dram_stick_share: float
    stick_cycles: float
    stick_write_cycles: float
