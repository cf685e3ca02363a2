"""Loads of links, held against counting them link by link."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.spec.device_spec import load_spec
from device.time.links import (
    bank_points,
    busiest_link_bytes,
    crossing_cycles,
    link_shares,
    multicast_transfer,
    routed_transfer,
    spread_link_bytes,
    spread_transfer,
)
from device.time.network import FIRST, NETWORKS, SECOND, Places, legs, routes, torus_of
from device.time.stages import Transfer

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
TORUS = torus_of(WORMHOLE)
points = st.tuples(st.integers(0, TORUS.cols - 1), st.integers(0, TORUS.rows - 1))
transfers = st.lists(st.tuples(points, points, st.integers(1, 9)), min_size=1, max_size=12)


def ends(drawn):
    """Sources, destinations and bytes of drawn transfers."""
    return (*(Places(*np.array([transfer[end] for transfer in drawn]).T) for end in (0, 1)),
            np.array([sent for *_, sent in drawn], float))  # fmt: skip


@given(transfers, st.sampled_from(NETWORKS))
def test_the_busiest_link_is_that_of_counted_routes(drawn, network):
    sources, destinations, sent = ends(drawn)
    loads = Counter()
    for links, count in zip(routes(TORUS, network, sources, destinations), sent, strict=True):
        loads.update(dict.fromkeys(links, count))
    legs_of_routes = legs(TORUS, network, sources, destinations)
    assert busiest_link_bytes(legs_of_routes, sent) == max(loads.values(), default=0)


def test_placed_and_crossed_networks():
    """All 64 workers of Wormhole and 12 banks, of 1,000 bytes on the busiest link.

    Over the first network answers leave along the rows of the banks, so that an eighth passes the busiest column of
    workers. Over the second network they leave along the columns of the banks: all of the four in column 0 meet.
    """
    cores = first_cores(64, 8, 8)

    def busiest(**how):
        return spread_link_bytes(WORMHOLE, cores, 1000, in_dram=True, **how)

    placed = busiest(writes=False)
    assert placed == pytest.approx(busiest(writes=True)) == pytest.approx(125)
    crossed = busiest(writes=False, crossed=True)
    assert crossed == pytest.approx(busiest(writes=True, crossed=True)) == pytest.approx(1000 * 4 / 12)


def test_pages_in_the_l1_of_all_cores():
    """64 workers to 64 workers: 3.5 of 64 parts on the busiest link of each network."""
    cores = first_cores(64, 8, 8)
    for writes in (False, True):
        found = spread_link_bytes(WORMHOLE, cores, 64, in_dram=False, writes=writes)
        assert found == pytest.approx(3.5)
    one = spread_link_bytes(WORMHOLE, first_cores(1, 8, 8), 64, in_dram=False, writes=True)
    assert one == pytest.approx(56)  # a column's 8 stay in its column, 56 leave along the row


def test_banks_without_a_place_load_no_link():
    bare = WORMHOLE.replace(noc_dram_cols=(), noc_dram_rows=(), noc_dram_second_rows=())
    assert bank_points(bare, FIRST) == ()
    assert spread_link_bytes(bare, first_cores(64, 8, 8), 1000, in_dram=True, writes=False) == 0


def test_more_banks_than_known_nodes_answer_at_free_ones():
    more = bank_points(BLACKHOLE.replace(dram_banks=10), SECOND)
    assert more[:8] == bank_points(BLACKHOLE, SECOND)
    assert more[8:] == ((0, 0), (9, 2))  # Rows without a bank, then the other column
    assert len(set(bank_points(BLACKHOLE.replace(dram_banks=24), FIRST))) == 24
    shared = bank_points(BLACKHOLE.replace(dram_banks=25), FIRST)
    assert shared[24] in shared[:24]


@pytest.mark.parametrize("spec", [WORMHOLE, BLACKHOLE])
def test_one_more_bank_takes_from_the_busiest_link(spec):
    cores = first_cores(64, 8, 8)
    loads = [
        spread_link_bytes(spec.replace(dram_banks=banks), cores, 1, in_dram=True, writes=False)
        for banks in range(spec.dram.banks, 21)
    ]
    assert loads == sorted(loads, reverse=True)
    assert loads[1] < loads[0]


def test_a_page_passes_the_busiest_link_behind_a_gap():
    """A third of 96 pages of 2,048 bytes passes it, at 30 bytes a cycle and with a gap of five cycles."""
    spec, cores = WORMHOLE.replace(noc_crossing_cycles=5.0, noc_merging_share=0.5), first_cores(64, 8, 8)
    read, written = (
        crossing_cycles(spec, cores, 96, 2048, in_dram=True, writes=writes, crossed=True) for writes in (False, True)
    )
    assert read == pytest.approx(32 * (2048 / 30 + 5))
    assert written == pytest.approx(32 * (2048 / 15 + 5))


def test_transfers_pass_the_links_of_their_routes():
    spec, cores = WORMHOLE, first_cores(1, 8, 8)
    # Core 0-0 is node 1-1 of a torus 10 wide and 12 high; the first network runs right, then down
    links = [(row - 1) % 12 + (col - 1) % 10 for col, row in zip(spec.noc.dram_cols, spec.noc.dram_rows, strict=True)]
    written = spread_transfer(spec, cores, 12_000, in_dram=True, writes=True, crossed=True)
    assert written == Transfer(0, 12_000, 1_000 * sum(links), 12_000, to_dram=True)
    line = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)))  # node columns 1 to 9
    sent = multicast_transfer(spec, FIRST, [(CoreCoord(0, 0), line)], 100)
    assert sent == Transfer(0, 100, 100 * 8, 100 * 7)
    box = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(1, 1)))
    assert multicast_transfer(spec, FIRST, [(CoreCoord(0, 0), box)], 1).link_bytes == 3  # right, then down twice
    torus = TORUS
    sides = (torus.places(np.array([0, 1]), np.array([0, 0])), torus.places(np.array([1, 0]), np.array([0, 0])))
    assert routed_transfer(spec, FIRST, *sides, np.array([5, 7])) == Transfer(0, 12, 5 * 1 + 7 * 9, 12)


@given(transfers, st.sampled_from(NETWORKS))
def test_shares_of_links_are_those_of_counted_routes(drawn, network):
    """The sum over all links is the links that a byte passes, and a way passes the links of its route."""
    sources, destinations, sent = ends(drawn)
    ways = routed_transfer(WORMHOLE, network, sources, destinations, sent.astype(int)).ways()
    passed = routes(TORUS, network, sources, destinations)
    loads = np.zeros((2, TORUS.rows, TORUS.cols))
    for links, count in zip(passed, sent / sent.sum(), strict=True):
        for link in links:
            loads[0 if link.along_row else 1, link.row, link.col] += count
    assert link_shares(ways) == pytest.approx(loads)
    every = {link for links in passed for link in links}
    for link in every:
        assert ways.passing(link).tolist() == [link in links for links in passed]


def test_a_multicast_passes_each_link_once():
    """Two senders in a row of their own, half of the bytes each, to three cores: their two links, and no others."""
    groups = [(CoreCoord(0, row), CoreRangeSet(CoreRange(CoreCoord(0, row), CoreCoord(2, row)))) for row in (0, 1)]
    sent = multicast_transfer(WORMHOLE, FIRST, groups, 100)
    shares = link_shares(sent.ways())
    assert np.argwhere(shares).tolist() == [[0, 1, 1], [0, 1, 2], [0, 2, 1], [0, 2, 2]]
    assert set(shares[shares > 0]) == {0.5}
    assert 100 * shares.sum() == sent.link_bytes == 200


@pytest.mark.parametrize("in_dram", [True, False])
@pytest.mark.parametrize("writes", [True, False])
def test_spread_bytes_load_links_as_the_busiest_of_them(in_dram, writes):
    spec, cores = BLACKHOLE, first_cores(20, 12, 10)
    sent = spread_transfer(spec, cores, 10**6, in_dram=in_dram, writes=writes)
    shares = link_shares(sent.ways())
    assert 10**6 * shares.max() == pytest.approx(spread_link_bytes(spec, cores, 10**6, in_dram=in_dram, writes=writes))
    assert 10**6 * shares.sum() == pytest.approx(sent.link_bytes, abs=1)
