"""Costs that kernels share, worked out by hand: multiplications, pages that are waited for, transfers."""

import pytest

from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs import kernel_costs

N150 = load_spec("wormhole_n150").replace(
    noc_link_share=1.0,
    transfer_costs_multicast_receiver_cycles=1.0,
    transfer_costs_page_issue_cycles=50.0,
    transfer_costs_write_issue_cycles=20.0,
)


@pytest.mark.parametrize(("transfer_bytes", "cycles"), [(100, 3 * 20 + 300 + 10), (400, 3 * 40 + 300 + 40)])
def test_a_burst_is_waited_for_until_its_last_transfer_is_answered(transfer_bytes, cycles):
    assert kernel_costs.burst_cycles(20, 4, transfer_bytes, 300, 10.0) == cycles


def test_linked_multicasts_reserve_their_path_once():
    """Interfaces of 95 cycles and hops of nine, 22 there and back: 293 cycles until an answer, 194 for a path."""
    assert kernel_costs.multicast_burst_cycles(N150, 4, 64, 63, 22, linked=True) == 293 + 194 + 4 * 65
    assert kernel_costs.multicast_burst_cycles(N150, 4, 64, 63, 22, linked=False) == 293 + 4 * 194 + 4 * 65
    # The packets of the last one are not linked.
    assert kernel_costs.multicast_burst_cycles(N150, 4, 16384, 63, 22, linked=True) == 293 + 2 * 194 + 4 * 2 * (
        63 + 256
    )


def test_windows_are_tilized_row_by_row():
    """Two tiles of 9 rows, 20 cycles and 9 times 3 each; or 64 cycles of products, if those take longer."""
    spec = N150.replace(
        compute_costs_subblock_cycles=10.0,
        compute_costs_window_tile_cycles=20.0,
        compute_costs_window_row_cycles=3.0,
    )
    assert kernel_costs.reduce_window_cycles(spec, tiles=2, rows=9, products=16) == 10 + 2 * (20 + 9 * 3)
    assert kernel_costs.reduce_window_cycles(spec, tiles=2, rows=9, products=64) == 10 + 2 * 64


@pytest.mark.parametrize(
    ("stationary", "fed", "waited"),
    [
        # A sub-block of 2 by 4 tiles, 10 cycles each to fetch, products of 16 cycles; two tiles stay, four stream past
        (1, 2 * 40, 0),  # one tile at a time, the next one has the other bank
        (2, 40 + 20 - 10, 20 - 16),  # both banks are taken: two tiles are waited for
        (3, 40, 0),  # one of two tiles has a bank; the other comes behind the last product, as long as a tile streams
        (4, 40, 0),  # two tiles have two banks left
    ],
)
def test_kept_tiles_that_fill_all_banks_are_waited_for(stationary, fed, waited):
    spec = N150.replace(
        compute_stationary_tiles=stationary, compute_unpack_tile_cycles=1.0, compute_phase_cycles=16,
        compute_unpack_bytes_per_cycle=BFLOAT16.tile_bytes / 10,
    )  # fmt: skip
    block = kernel_costs.ProductBlock(
        subblock_height=2, subblock_width=4, subblocks=1, depth=1, first_format=BFLOAT16, second_format=BFLOAT16,
        packed_format=BFLOAT16, fidelity_phases=1,
    )  # fmt: skip
    assert kernel_costs.unpack_cycles(spec, block) == pytest.approx((fed, waited))
