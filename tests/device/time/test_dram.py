"""The memory outside the cores: banks bound what it delivers, by the second."""

import pytest
from hypothesis import given, strategies as st

from device.spec.device_spec import catalog_names, load_spec
from device.time.network import bandwidth, page_round_trip_cycles, read_latency_cycles, shared_cycles


@given(st.sampled_from(catalog_names()), st.integers(1, 16), st.integers(1, 10**9))
def test_fewer_banks_are_never_faster(name, banks, moved):
    fewer, more = (load_spec(name).replace(dram_banks=count) for count in (banks, banks + 1))
    assert bandwidth(fewer) < bandwidth(more)
    assert shared_cycles(fewer, moved) >= shared_cycles(more, moved)
    assert shared_cycles(fewer, moved, 0.5) == pytest.approx(2 * shared_cycles(fewer, moved))


@given(st.sampled_from(catalog_names()), st.integers(1, 10**6))
def test_a_round_trip_is_longer_than_the_latency_and_grows(name, size):
    spec = load_spec(name)
    assert read_latency_cycles(spec) < page_round_trip_cycles(spec, size) < page_round_trip_cycles(spec, size + 1)


def test_figures_by_hand():
    """Wormhole: twelve banks of 24 GB/s, of which 92.2 % are achieved; 88 ns in a bank, 293 cycles on the way."""
    spec = load_spec("wormhole_n150")
    assert bandwidth(spec) == pytest.approx(12 * 24 * 0.922)
    assert shared_cycles(spec, 265_536) == pytest.approx(1000)
    assert shared_cycles(spec, 265_536, 0.5) == pytest.approx(2000)
    assert read_latency_cycles(spec) == 293 + 88
    assert page_round_trip_cycles(spec, 240) == pytest.approx(381 + 240 / 24)


def test_memory_has_a_clock_of_its_own():
    """At twice the clock the banks deliver half as much in a cycle, and a request is twice as many cycles in them."""
    spec = load_spec("wormhole_n150")
    fast = spec.replace(clock_hz=2 * spec.clock_hz)
    assert bandwidth(fast) == bandwidth(spec) / 2
    assert read_latency_cycles(fast) == 293 + 2 * 88


def test_a_page_that_is_waited_for_is_bound_by_its_link_where_that_is_slower():
    spec = load_spec("wormhole_n150").replace(dram_bank_bytes_per_second=1e12)
    assert page_round_trip_cycles(spec, 300) == pytest.approx(381 + 300 / 30)
