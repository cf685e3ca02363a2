"""The parts of a device description that say what a program costs: constants of the cycle models."""

from dataclasses import dataclass

from device.spec_checks import require_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvCosts:
    """Constants of the block-by-block model of the convolution program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        read_issue_cycles: Between two bursts from the own L1.
        tilise_row_cycles: For every tile row of a block.
        tilise_call_cycles: For every block.
        tilise_factor: Of the cycles in ``reader.tilise``.
        tilise_factor_2025: The same for the software of 2025, whose measurements are still of use.
        unpack_block_float_cycles: Least cycles of a tile product with block float weights.
        unpack_16bit_cycles: Least cycles of a tile product with 16-bit weights.
        matmul_call_cycles: For each K tile of a sub-block.
        subblock_cycles: For each sub-block.
        pack_tile_cycles: For each packed tile.
        block_cycles: For each block, and for bias and untilise passes.
        reload_cycles: For each reload of partials.
        reload_tile_cycles: For each reloaded tile.
        dram_bytes_per_cycle: Rate of all DRAM banks together when weights are read.
        weight_issue_cycles: Between two weight tiles.
        weight_multicast_cycles: Before a multicast of weights.
        weight_receiver_cycles: For each receiver.
        weight_multicast_bytes_per_cycle: Rate of a weights multicast.
        act_multicast_cycles: Before a multicast of activations.
        act_multicast_bytes_per_cycle: Rate of an activations multicast.
        bias_tile_cycles: For each tile that gets a bias.
        untilise_narrow_tile_cycles: For each tile of rows of up to 8 tiles.
        untilise_wide_tile_cycles: For each tile of wider rows.
    """

    start_cycles: int
    read_issue_cycles: int
    tilise_row_cycles: int
    tilise_call_cycles: int
    tilise_factor: float
    tilise_factor_2025: float
    unpack_block_float_cycles: float
    unpack_16bit_cycles: float
    matmul_call_cycles: int
    subblock_cycles: int
    pack_tile_cycles: int
    block_cycles: int
    reload_cycles: int
    reload_tile_cycles: int
    dram_bytes_per_cycle: float
    weight_issue_cycles: int
    weight_multicast_cycles: int
    weight_receiver_cycles: int
    weight_multicast_bytes_per_cycle: float
    act_multicast_cycles: int
    act_multicast_bytes_per_cycle: float
    bias_tile_cycles: int
    untilise_narrow_tile_cycles: int
    untilise_wide_tile_cycles: int

    def __post_init__(self) -> None:
        require_positive("conv_costs", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts:
    """Constants of the model of the halo program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        dram_config_cycles: More, with config tensors in DRAM.
        pad_write_bytes: Most bytes one write of zeros fills.
        pad_write_cycles: For each write of zeros.
        segment_cycles: For each run of padding.
        waiting_share: Part of the bytes on links it shares that a transfer waits for.
        untilise_block_cycles: For each untilised block of 32 rows.
        untilise_narrow_tile_cycles: For each tile of rows that fit one half of the destination registers.
        untilise_wide_tile_cycles: For each tile of wider rows.
    """

    start_cycles: int
    dram_config_cycles: int
    pad_write_bytes: int
    pad_write_cycles: float
    segment_cycles: float
    waiting_share: float
    untilise_block_cycles: int
    untilise_narrow_tile_cycles: int
    untilise_wide_tile_cycles: int

    def __post_init__(self) -> None:
        require_positive("halo_costs", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCosts:
    """Constants of the model of the matmul program, in cycles unless named otherwise.

    Attributes:
        start_cycles: Kernel start.
        overlap_power: p of (compute^p + dram^p + multicast^p)^(1/p).
        unpack_bfloat16_cycles: Least cycles of a tile product of bfloat16.
        unpack_bfloat8_b_cycles: Least cycles of a tile product of bfloat8_b.
        unpack_bfloat4_b_cycles: Least cycles of a tile product of bfloat4_b.
        product_cycles: More, for each tile product.
        pack_tile_cycles: For each output tile.
        multicast_bytes_per_cycle: Rate of a multicast.
        dram_bytes_per_cycle: Rate of all DRAM banks.
        k_tile_cycles: For each K tile.
    """

    start_cycles: int
    overlap_power: float
    unpack_bfloat16_cycles: float
    unpack_bfloat8_b_cycles: float
    unpack_bfloat4_b_cycles: float
    product_cycles: float
    pack_tile_cycles: int
    multicast_bytes_per_cycle: float
    dram_bytes_per_cycle: float
    k_tile_cycles: int

    def __post_init__(self) -> None:
        require_positive("matmul_costs", self)
