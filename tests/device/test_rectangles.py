"""Areas put together, held against sets of their places."""

from operator import and_, or_

from hypothesis import given, strategies as st

from device.cores import combined, without

OPERATIONS = ((or_, set.union), (and_, set.intersection), (without, set.difference))
rectangles = st.tuples(*[st.integers(0, 6)] * 4).map(
    lambda drawn: (min(drawn[0], drawn[2]), min(drawn[1], drawn[3]), max(drawn[0], drawn[2]), max(drawn[1], drawn[3]))
)
areas = st.lists(rectangles, max_size=4)


def places(area):
    return {(x, y) for left, top, right, bottom in area for x in range(left, right + 1) for y in range(top, bottom + 1)}


@given(areas, areas, st.sampled_from(OPERATIONS))
def test_the_places_are_those_of_the_set_operation_each_once(one, other, operation):
    of_columns, of_places = operation
    found = combined(one, other, of_columns)
    assert places(found) == of_places(places(one), places(other))
    assert len(places(found)) == sum((right - left + 1) * (bottom - top + 1) for left, top, right, bottom in found)
    assert found == sorted(found, key=lambda each: (each[1], each[0]))


def test_equal_runs_of_neighboring_rows_are_one_rectangle():
    assert combined([(0, 0, 7, 3)], [(0, 4, 7, 5)], or_) == [(0, 0, 7, 5)]
    assert combined([(0, 0, 7, 3)], [(0, 5, 7, 5)], or_) == [(0, 0, 7, 3), (0, 5, 7, 5)]
    assert combined([(0, 0, 7, 7)], [(0, 0, 0, 0)], without) == [(1, 0, 7, 0), (0, 1, 7, 7)]


def test_sizes_do_not_matter():
    far = 1 << 62
    assert combined([(0, 0, far, far)], [(3, 0, far, far)], without) == [(0, 0, 2, far)]
