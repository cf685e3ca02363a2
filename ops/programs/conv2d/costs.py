"""What the convolution program costs: constants of its model, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts(Costs):
    """Constants of the block-by-block model of the convolution program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        read_latency_cycles: Round trip of a read from the own L1.
        read_issue_cycles: Between two bursts from the own L1.
        tilize_row_cycles: For every tile row of a block.
        tilize_call_cycles: For every block.
        tilize_factor: Of the cycles in ``reader.tilize``, which the real planner counts with.
        tilize_factor_2025: The same for the software of 2025, whose measurements are still of use.
        unpack_block_float_cycles: For each block float tile that streams into the matrix unit.
        unpack_16bit_cycles: For each 16-bit tile that does; 32-bit tiles take twice as long.
        stationary_tile_cycles: For each tile of a group that stays in the matrix unit while others stream past, where
            `ComputeSpec.stationary_tiles` is more than one: no other group can be fetched meanwhile.
        matmul_call_cycles: For each K tile of a sub-block.
        subblock_cycles: For each sub-block.
        pack_tile_cycles: For each packed tile.
        block_cycles: For each block, and for bias and untilize passes.
        reload_cycles: For each reload of partials.
        reload_tile_cycles: For each reloaded tile.
        dram_bytes_per_cycle: Rate of all DRAM banks together when weights are read.
        weight_issue_cycles: Between two weight tiles.
        weight_multicast_cycles: Before a multicast of weights.
        weight_receiver_cycles: For each receiver.
        act_multicast_cycles: Before a multicast of activations.
        act_multicast_bytes_per_cycle: Rate of an activations multicast.
        bias_tile_cycles: For each tile that gets a bias.
        untilize_narrow_tile_cycles: For each tile of rows of up to 8 tiles.
        untilize_wide_tile_cycles: For each tile of wider rows.
    """

    TABLE: ClassVar[str] = "conv_costs"

    start_cycles: float
    read_latency_cycles: float
    read_issue_cycles: float
    tilize_row_cycles: float
    tilize_call_cycles: float
    tilize_factor: float
    tilize_factor_2025: float
    unpack_block_float_cycles: float
    unpack_16bit_cycles: float
    stationary_tile_cycles: float
    matmul_call_cycles: float
    subblock_cycles: float
    pack_tile_cycles: float
    block_cycles: float
    reload_cycles: float
    reload_tile_cycles: float
    dram_bytes_per_cycle: float
    weight_issue_cycles: float
    weight_multicast_cycles: float
    weight_receiver_cycles: float
    act_multicast_cycles: float
    act_multicast_bytes_per_cycle: float
    bias_tile_cycles: float
    untilize_narrow_tile_cycles: float
    untilize_wide_tile_cycles: float
