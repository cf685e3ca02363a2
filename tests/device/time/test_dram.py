"""The memory outside the cores: banks bound what it delivers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.spec.device_spec import catalog_names, load_spec
from device.time.dram import bandwidth, page_round_trip_cycles, shared_cycles


@given(st.sampled_from(catalog_names()), st.integers(1, 16), st.integers(1, 10**9))
def test_fewer_banks_are_never_faster(name, banks, moved):
    dram = load_spec(name).replace(dram_banks=banks).dram
    more = load_spec(name).replace(dram_banks=banks + 1).dram
    assert bandwidth(dram) <= bandwidth(more)
    assert shared_cycles(dram, moved) >= shared_cycles(more, moved)
    assert shared_cycles(dram, moved, 0.5) == 2 * shared_cycles(dram, moved)


def test_one_bank_is_slower_than_all():
    spec = load_spec("wormhole_n150")
    assert bandwidth(spec.dram) == spec.dram.achieved_bytes_per_cycle
    assert bandwidth(spec.replace(dram_banks=1).dram) == spec.dram.bank_bytes_per_cycle


@given(st.sampled_from(catalog_names()), st.integers(1, 10**6))
def test_a_round_trip_is_longer_than_the_latency_and_grows(name, size):
    dram = load_spec(name).dram
    assert dram.read_latency_cycles < page_round_trip_cycles(dram, size) < page_round_trip_cycles(dram, size + 1)


def test_figures_by_hand():
    """Wormhole: twelve banks of 24 bytes a cycle, of which 265.5 are achieved."""
    dram = load_spec("wormhole_n150").dram
    assert shared_cycles(dram, 265_500) == pytest.approx(1000, rel=1e-12)
    assert shared_cycles(dram, 265_500, 0.5) == pytest.approx(2000, rel=1e-12)
    assert page_round_trip_cycles(dram, 240) == 381 + 240 / dram.bank_bytes_per_cycle
    more, fewer = (load_spec("wormhole_n150").replace(dram_banks=banks).dram for banks in (13, 11))
    assert bandwidth(more) == bandwidth(dram)  # measured for all banks together, however many more there were
    assert bandwidth(fewer) < bandwidth(dram)
