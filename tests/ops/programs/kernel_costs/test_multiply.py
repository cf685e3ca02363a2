"""The multiply step that convolutions and matmuls share, worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.programs.kernel_costs import ProductBlock, multiply_task

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
    return ProductBlock(
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
    ("spec", "one", "k_tile"),
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
def test_a_k_block_by_hand(spec, one, k_tile):
    found = multiply_task(spec, one, reload=False)
    subblock = 2 * (k_tile + 5)
    tiles = one.subblock_height * one.subblock_width
    assert subblock > tiles * 32  # the packer is done before the next sub-block
    assert found.cycles == pytest.approx(100 + 3 * (subblock + 50) + tiles * 32)
    assert found.busy[Stage.MATH] == 3 * 2 * tiles * 16 * one.fidelity_phases


def test_slower_unpackers_are_what_is_waited_for():
    by_unpackers, by_products = (multiply_task(WORMHOLE, block(1, 8, phases=n), reload=False) for n in (1, 3))
    assert by_unpackers.path[Stage.MATH] == 0 < by_unpackers.busy[Stage.MATH]
    assert by_products.path[Stage.MATH] == by_products.busy[Stage.MATH]


def test_partial_sums_that_are_fetched_back():
    one = block(2, 4)
    more = multiply_task(WORMHOLE, one, reload=True).cycles - multiply_task(WORMHOLE, one, reload=False).cycles
    assert more == 3 * (30 + 8 * 20)


def test_a_slow_packer_is_waited_for():
    slow = WORMHOLE.replace(compute_pack_bytes_per_cycle=1.0)
    found = multiply_task(slow, block(1, 8), reload=False)
    # Each sub-block takes the 8 * 2048 cycles of its packing; the first is unpacked before.
    assert found.cycles == pytest.approx(100 + 3 * (8 * 2048 + 50) + 2 * (8 * 32 + 5))


sides = st.integers(1, 8)
formats = st.sampled_from([BFLOAT4_B, BFLOAT8_B, BFLOAT16])


@given(st.sampled_from([WORMHOLE, BLACKHOLE]), sides, sides, st.integers(1, 4), formats, formats, st.booleans())
def test_a_better_machine_is_never_slower(spec, height, width, phases, first, second, reload):
    one = block(height, width, phases=phases, first=first, second=second)
    found = multiply_task(spec, one, reload=reload)
    assert found.cycles >= found.busy[Stage.MATH]
    better = {
        "compute_phase_cycles": 8,
        "compute_unpack_tile_cycles": 2.0,
        "compute_unpack_bytes_per_cycle": 128.0,
        "compute_pack_bytes_per_cycle": 128.0,
        "compute_costs_matmul_call_cycles": 2.0,
    }
    for figure, value in better.items():
        assert multiply_task(spec.replace(**{figure: value}), one, reload=reload).cycles <= found.cycles + 1e-9
    fewer = replace(one, fidelity_phases=max(1, phases - 1))
    assert multiply_task(spec, fewer, reload=reload).cycles <= found.cycles
