"""Routes of the networks, held against walking them link by link."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.errors import SpecError
from device.spec.device_spec import catalog_names, load_spec
from device.time.network import (
    NETWORKS,
    Link,
    Places,
    answer_cycles,
    bandwidth,
    hands,
    legs,
    meetings,
    page_round_trip_cycles,
    passing_bytes,
    read_latency_cycles,
    round_links,
    routes,
    shared_cycles,
    shared_read_cycles,
    sharing,
    side_by_side_cycles,
    torus_of,
)

TORUS = torus_of(load_spec("blackhole_p100"))


def walked(network, source, destination):
    """The links of a route, one by one."""
    (col, row), (last_col, last_row) = source, destination
    links = []

    def along_row():
        nonlocal col
        while col != last_col:
            links.append(("row", row, col))
            col = (col + network.step) % TORUS.cols

    def along_column():
        nonlocal row
        while row != last_row:
            links.append(("column", col, row))
            row = (row + network.step) % TORUS.rows

    for leg in (along_row, along_column) if network.along_row_first else (along_column, along_row):
        leg()
    return links


points = st.tuples(st.integers(0, TORUS.cols - 1), st.integers(0, TORUS.rows - 1))
drawn_routes = st.lists(st.tuples(points, points), min_size=1, max_size=12)
networks = st.sampled_from(NETWORKS)


def places(points_of_routes, end):
    array = np.array([route[end] for route in points_of_routes])
    return Places(array[:, 0], array[:, 1])


@given(networks, drawn_routes)
def test_routes_share_a_link_when_walking_them_finds_one(network, drawn):
    walks = [set(walked(network, *route)) for route in drawn]
    found = sharing(TORUS, network, places(drawn, 0), places(drawn, 1))
    expected = [[walk is other or bool(walk & other) for other in walks] for walk in walks]
    assert found.tolist() == expected


@given(networks, drawn_routes)
def test_what_is_known_of_routes_is_what_follows_from_them(network, drawn):
    ends = places(drawn, 0), places(drawn, 1)
    first, again = (meetings(TORUS, network, *ends) for _ in range(2))
    assert first is again
    assert first.shared.tolist() == sharing(TORUS, network, *ends).tolist()
    assert first.round_links.tolist() == round_links(TORUS, *ends).tolist()
    for leg, wanted in zip(first.legs, legs(TORUS, network, *ends), strict=True):
        assert [np.asarray(part).tolist() for part in leg] == [np.asarray(part).tolist() for part in wanted]


def test_workers_lie_where_the_spec_says():
    found = TORUS.places(np.array([0, 7]), np.array([0, 9]))
    assert (found.col.tolist(), found.row.tolist()) == ([1, 10], [2, 11])


@given(networks, drawn_routes, st.integers(1, 50))
def test_what_passes_is_at_least_the_own_and_grows_with_what_is_sent(network, drawn, size):
    shared = sharing(TORUS, network, places(drawn, 0), places(drawn, 1))
    sent = np.full((len(drawn), 2), float(size))
    passing = passing_bytes(shared, sent)
    assert np.all(passing >= sent)
    assert np.all(passing_bytes(shared, sent + 1) >= passing)
    sent[:, 1] = 0
    assert np.all(passing_bytes(shared, sent)[:, 1] == 0)


def test_a_grid_that_is_no_cards_gets_a_torus_of_its_own():
    """Wormhole has two columns and two rows of nodes besides its workers'; they come first."""
    spec = load_spec("wormhole_n150")
    wide = torus_of(spec.replace(grid_cols=20, grid_rows=10))
    assert (wide.cols, wide.worker_cols) == (22, tuple(range(2, 22)))
    assert (wide.rows, wide.worker_rows) == (12, spec.noc.worker_rows)
    bare = torus_of(spec.replace(noc_worker_cols=(), noc_worker_rows=(), grid_cols=9, grid_rows=16))
    assert (bare.cols, bare.worker_cols) == (10, tuple(range(1, 10)))
    assert (bare.rows, bare.worker_rows) == (16, tuple(range(16)))


def test_a_round_trip_passes_both_rings():
    """95 cycles of interfaces, and nine for each of 10 + 12 hops; a larger torus takes longer."""
    spec = load_spec("wormhole_n150")
    assert torus_of(spec).round_trip_cycles == 95 + 9 * (10 + 12)
    assert torus_of(spec.replace(grid_cols=20)).round_trip_cycles == 95 + 9 * (22 + 12)


@given(networks, drawn_routes)
def test_a_request_and_its_answer_pass_what_walking_there_and_back_passes(network, drawn):
    walks = [len(walked(network, here, there)) + len(walked(network, there, here)) for here, there in drawn]
    assert round_links(TORUS, places(drawn, 0), places(drawn, 1)).tolist() == walks


def test_an_answer_takes_as_long_as_its_links():
    """Figures of Blackhole: 119 cycles of interfaces, nine for each of 17 + 12 hops."""
    noc = load_spec("blackhole_p100").noc
    assert answer_cycles(noc, 0) == 119
    assert answer_cycles(noc, TORUS.cols + TORUS.rows) == TORUS.round_trip_cycles == 119 + 9 * 29


def walk_of(network, source, destination):
    (result,) = routes(TORUS, network, places([(source, destination)], 0), places([(source, destination)], 1))
    return result


@given(networks, st.tuples(points, points))
def test_a_route_is_what_a_walk_passes(network, ends):
    found = [
        ("row", one.row, one.col) if one.along_row else ("column", one.col, one.row) for one in walk_of(network, *ends)
    ]
    assert found == walked(network, *ends)


def test_a_neighbor_on_the_wrong_side_is_reached_round_the_ring():
    first, second = (walk_of(network, (3, 2), (2, 2)) for network in NETWORKS)
    assert [one.col for one in first] == [*range(3, TORUS.cols), 0, 1]
    assert second == (Link(col=3, row=2, along_row=True),)


SPEC = load_spec("wormhole_n150")


def test_there_are_no_more_hands_than_processors_and_two_roles_take_turns_on_one():
    assert [hands(SPEC.replace(data_movement_processors=count), 2) for count in (1, 2, 3)] == [1, 2, 2]
    assert side_by_side_cycles(SPEC, 10.0, 6.0) == 10.0
    assert side_by_side_cycles(SPEC.replace(data_movement_processors=1), 10.0, 6.0) == 16.0
    with pytest.raises(SpecError, match="data_movement: processors must be a number above zero"):
        SPEC.replace(data_movement_processors=0)


@given(st.sampled_from(catalog_names()), st.integers(1, 16), st.integers(1, 10**9))
def test_fewer_banks_are_never_faster(name, banks, moved):
    fewer, more = (load_spec(name).replace(dram_banks=count) for count in (banks, banks + 1))
    assert bandwidth(fewer) < bandwidth(more)
    assert shared_cycles(fewer, moved) >= shared_cycles(more, moved)
    assert shared_cycles(fewer, moved, 0.5) == pytest.approx(2 * shared_cycles(fewer, moved))


def test_small_pages_wait_for_the_banks_to_take_their_requests():
    """Eight banks take a request each 10 cycles: pages of 64 bytes come at 51.2 bytes a cycle, however wide the banks.

    Pages of 32 KiB are asked for in two packets of 16 KiB; their bytes take longer than their requests.
    """
    spec = load_spec("blackhole_p150").replace(clock_hz=1e9, dram_request_ns=10)
    assert shared_read_cycles(spec, 512_000, 64) == pytest.approx(10_000)
    assert shared_read_cycles(spec, 512_000, 64) > shared_cycles(spec, 512_000, 0.5)
    slow = spec.replace(dram_request_ns=1_000_000)
    assert shared_read_cycles(slow, 2**20, 2**15) == pytest.approx(64 / 8 * 1e6)
    assert shared_read_cycles(spec, 2**20, 2**15, 0.5) == shared_cycles(spec, 2**20, 0.5)


@given(st.sampled_from(catalog_names()), st.integers(1, 10**6))
def test_a_round_trip_is_longer_than_the_latency_and_grows(name, size):
    spec = load_spec(name)
    assert read_latency_cycles(spec) < page_round_trip_cycles(spec, size) < page_round_trip_cycles(spec, size + 1)


def test_figures_by_hand():
    """Wormhole: twelve banks of 24 GB/s, of which 92.2 % are achieved; 88 ns in a bank, 293 cycles on the way.

    At twice the clock the banks deliver half as much in a cycle, and a request is twice as many cycles in them. A page
    that is waited for is bound by its link where the link is slower.
    """
    assert bandwidth(SPEC) == pytest.approx(12 * 24 * 0.922)
    assert shared_cycles(SPEC, 265_536) == pytest.approx(1000)
    assert shared_cycles(SPEC, 265_536, 0.5) == pytest.approx(2000)
    assert read_latency_cycles(SPEC) == 293 + 88
    assert page_round_trip_cycles(SPEC, 240) == pytest.approx(381 + 240 / 24)
    fast = SPEC.replace(clock_hz=2 * SPEC.clock_hz)
    assert bandwidth(fast) == bandwidth(SPEC) / 2
    assert read_latency_cycles(fast) == 293 + 2 * 88
    wide = SPEC.replace(dram_bank_bytes_per_second=1e12)
    assert page_round_trip_cycles(wide, 300) == pytest.approx(381 + 300 / 30)
