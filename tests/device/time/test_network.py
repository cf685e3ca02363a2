"""Routes of the networks, held against walking them link by link."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from device.spec.device_spec import load_spec
from device.time.network import (
    NETWORKS,
    Places,
    passing_bytes,
    sharing,
    worker_places,
)

NOC = load_spec("blackhole_p100").noc


def walked(network, source, destination):
    """The links of a route, one by one."""
    (col, row), (last_col, last_row) = source, destination
    links = []

    def along_row():
        nonlocal col
        while col != last_col:
            links.append(("row", row, col))
            col = (col + network.step) % NOC.cols

    def along_column():
        nonlocal row
        while row != last_row:
            links.append(("column", col, row))
            row = (row + network.step) % NOC.rows

    for leg in (along_row, along_column) if network.along_row_first else (along_column, along_row):
        leg()
    return links


points = st.tuples(st.integers(0, NOC.cols - 1), st.integers(0, NOC.rows - 1))
routes = st.lists(st.tuples(points, points), min_size=1, max_size=12)
networks = st.sampled_from(NETWORKS)


def places(points_of_routes, end):
    array = np.array([route[end] for route in points_of_routes])
    return Places(array[:, 0], array[:, 1])


@given(networks, routes)
def test_routes_share_a_link_when_walking_them_finds_one(network, drawn):
    walks = [set(walked(network, *route)) for route in drawn]
    found = sharing(NOC, network, places(drawn, 0), places(drawn, 1))
    expected = [[one is other or bool(one & other) for other in walks] for one in walks]
    assert found.tolist() == expected


def test_workers_lie_where_the_spec_says():
    found = worker_places(NOC, np.array([0, 7]), np.array([0, 9]))
    assert (found.col.tolist(), found.row.tolist()) == ([1, 10], [2, 11])


@given(networks, routes, st.integers(1, 50))
def test_what_passes_is_at_least_the_own_and_grows_with_what_is_sent(network, drawn, size):
    shared = sharing(NOC, network, places(drawn, 0), places(drawn, 1))
    sent = np.full((len(drawn), 2), float(size))
    passing = passing_bytes(shared, sent)
    assert np.all(passing >= sent)
    assert np.all(passing_bytes(shared, sent + 1) >= passing)
    sent[:, 1] = 0
    assert np.all(passing_bytes(shared, sent)[:, 1] == 0)
