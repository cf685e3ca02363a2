"""Costs that kernels share, worked out by hand: multiplications, pages that are waited for, transfers."""

import pytest

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.programs import kernel_costs

FIGURES = {
    "compute_unpack_bytes_per_cycle": 64.0,
    "compute_unpack_tile_cycles": 16.0,
    "compute_pack_bytes_per_cycle": 64.0,
    "compute_costs_matmul_call_cycles": 5.0,
    "compute_costs_subblock_cycles": 50.0,
    "compute_costs_block_cycles": 100.0,
    "compute_costs_reload_cycles": 30.0,
    "compute_costs_reload_tile_cycles": 20.0,
}
WORMHOLE, BLACKHOLE = (load_spec(name).replace(**FIGURES) for name in ("wormhole_n150", "blackhole_p150"))


def block(height, width, *, phases=1, first=BFLOAT16, second=BFLOAT16, subblocks=3, depth=2):
    return kernel_costs.ProductBlock(
        subblock_height=height,
        subblock_width=width,
        subblocks=subblocks,
        depth=depth,
        first_format=first,
        second_format=second,
        packed_format=BFLOAT16,
        fidelity_phases=phases,
    )


@pytest.mark.parametrize(
    ("spec", "product", "k_tile"),
    [
        # A row stays, eight tiles of 2048 bytes stream past, 32 cycles each, twice as long as LoFi multiplies.
        (WORMHOLE, block(1, 8), 8 * 32),
        (WORMHOLE, block(8, 1), 8 * 32),
        (WORMHOLE, block(1, 8, phases=4), 8 * 64),
        (BLACKHOLE, block(1, 8), 8 * 32),
        # Two stay together: 64 cycles until both are there, less the last product; or one and four that stream.
        (WORMHOLE, block(2, 4, phases=3), 8 * 48 + 64 - 48),
        (WORMHOLE, block(2, 4, phases=1), 8 * 16 + 64 - 16),
        (WORMHOLE, block(2, 4, phases=4), 8 * 64),
        # One after the other, fetched ahead.
        (BLACKHOLE, block(2, 4), 8 * 32),
        # Columns stream past rows unless there are more rows; block floats of 17 cycles, and of no less than 16.
        (WORMHOLE, block(1, 8, second=BFLOAT8_B), 8 * 17),
        (WORMHOLE, block(8, 1, first=BFLOAT4_B), 8 * 16),
        (WORMHOLE, block(3, 3), 2 * 3 * 32 + 64 - 32),
    ],
)
def test_a_k_block_by_hand(spec, product, k_tile):
    task = kernel_costs.multiply_task(spec, product, reload=False)
    subblock = 2 * (k_tile + 5)
    tiles = product.subblock_height * product.subblock_width
    assert subblock > tiles * 32  # the packer is done before the next sub-block
    assert task.cycles == pytest.approx(100 + 3 * (subblock + 50) + tiles * 32)
    assert task.busy[Stage.MATH] == 3 * 2 * tiles * 16 * product.fidelity_phases


def test_what_is_waited_for():
    by_unpackers, by_products = (
        kernel_costs.multiply_task(WORMHOLE, block(1, 8, phases=n), reload=False) for n in (1, 3)
    )
    assert by_unpackers.path[Stage.MATH] == 0 < by_unpackers.busy[Stage.MATH]
    assert by_products.path[Stage.MATH] == by_products.busy[Stage.MATH]
    fetched, kept = (
        kernel_costs.multiply_task(WORMHOLE, block(2, 4), reload=reload).cycles for reload in (True, False)
    )
    assert fetched - kept == 3 * (30 + 8 * 20)  # partial sums
    # Each sub-block takes the 8 * 2048 cycles of its packing; the first is unpacked before
    slow = kernel_costs.multiply_task(WORMHOLE.replace(compute_pack_bytes_per_cycle=1.0), block(1, 8), reload=False)
    assert slow.cycles == pytest.approx(100 + 3 * (8 * 2048 + 50) + 2 * (8 * 32 + 5))


P150 = load_spec("blackhole_p150").replace(
    movement_costs_page_rate_share=0.5,
    movement_costs_wait_share=0.25,
    movement_costs_group_wait_share=0.5,
    movement_costs_stick_cycles=70.0,
    movement_costs_stick_write_cycles=50.0,
    movement_costs_write_access_ns=10.0,
)
ROUND_TRIP = 119 + 9 * (17 + 12)
CORES = 119 + 9 * (17 * 12 / 13 + 12 * 9 / 10)  # of 13 x 10, some share a row or a column
BANKS = 0.742 * 8 * 64e9 / 1.35e9
LINK = 0.952 * 64


def test_a_page_comes_at_half_a_banks_rate_and_behind_a_quarter_of_the_others():
    alone = kernel_costs.waited_read_cycles(P150, 2048, in_dram=True)
    assert alone == pytest.approx(ROUND_TRIP + 78 * 1.35 + 2048 / (0.5 * 64 / 1.35))
    among = kernel_costs.waited_read_cycles(P150, 2048, in_dram=True, readers=20)
    assert among - alone == pytest.approx(0.25 * 20 * 2048 / BANKS)
    assert kernel_costs.waited_read_cycles(P150, 2048, in_dram=False, readers=20) == pytest.approx(CORES + 2048 / LINK)


def test_writes_and_sticks_by_hand():
    assert kernel_costs.write_latency_cycles(P150, in_dram=True) == pytest.approx(ROUND_TRIP + 13.5)
    assert kernel_costs.waited_write_cycles(P150, 2048, in_dram=False) == pytest.approx(CORES + 2048 / LINK)
    assert kernel_costs.write_stick_cycles(P150, 64) == 50.0
    assert kernel_costs.write_stick_cycles(P150, 6400) == pytest.approx(6400 / LINK)
    # sticks are asked for one after the other; a slow link bounds their rate
    alone = kernel_costs.read_stick_cycles(P150, 512)
    assert alone == pytest.approx(70 + 512 / (0.5 * 64 / 1.35))
    assert kernel_costs.read_stick_cycles(P150, 512, readers=20) - alone == pytest.approx(0.5 * 20 * 512 / BANKS)
    assert kernel_costs.read_stick_cycles(P150.replace(noc_flit_bytes=16), 2048) == pytest.approx(
        70 + 2048 / (0.952 * 16)
    )


N150 = load_spec("wormhole_n150").replace(
    noc_link_share=1.0,
    transfer_costs_multicast_receiver_cycles=1.0,
    transfer_costs_page_issue_cycles=50.0,
    transfer_costs_write_issue_cycles=20.0,
)


def test_pages_are_issued_or_on_the_wire():
    """Links of 32 bytes a cycle: 32 cycles for 1024 bytes, 64 for 2048."""
    assert [kernel_costs.read_page_cycles(N150, size) for size in (1024, 2048)] == [50, 64]
    assert [kernel_costs.write_page_cycles(N150, size) for size in (512, 2048)] == [20, 64]


@pytest.mark.parametrize(("transfer_bytes", "cycles"), [(100, 3 * 20 + 300 + 10), (400, 3 * 40 + 300 + 40)])
def test_a_burst_is_waited_for_until_its_last_transfer_is_answered(transfer_bytes, cycles):
    assert kernel_costs.burst_cycles(20, 4, transfer_bytes, 300, 10.0) == cycles


@pytest.mark.parametrize(("sent", "cycles"), [(0, 0), (64, 63 + 2), (8192, 63 + 256), (8224, 2 * 63 + 257)])
def test_every_packet_of_a_multicast_is_taken_in_by_every_core(sent, cycles):
    """Packets of 8192 bytes, on links of 32 bytes a cycle, to 63 cores."""
    assert kernel_costs.multicast_cycles(N150, sent, 63) == cycles


def test_linked_multicasts_reserve_their_path_once():
    """Interfaces of 95 cycles and hops of nine, 22 there and back: 293 cycles until an answer, 194 for a path."""
    assert kernel_costs.multicast_burst_cycles(N150, 4, 64, 63, 22, linked=True) == 293 + 194 + 4 * 65
    assert kernel_costs.multicast_burst_cycles(N150, 4, 64, 63, 22, linked=False) == 293 + 4 * 194 + 4 * 65
    # The packets of the last one are not linked.
    assert kernel_costs.multicast_burst_cycles(N150, 4, 16384, 63, 22, linked=True) == 293 + 2 * 194 + 4 * 2 * (
        63 + 256
    )
