import pytest
from hypothesis import given, strategies as st

from device.cores import CalledList, CoreCoord, CoreGrid, CoreRange, CoreRangeSet, FrozenList, first_cores
from device.errors import ArgumentError, ArgumentTypeError
from device.memory.memory_config import Layout, ShardSpec


def rectangle(x0, y0, x1, y1):
    return CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1))


def test_text_is_that_of_the_real_library():
    cores = CoreRangeSet({rectangle(0, 3, 2, 3), rectangle(0, 0, 7, 2)})
    assert str(cores) == repr(cores) == "{[0-0 - 7-2], [0-3 - 2-3]}"
    assert str(CoreCoord(1, 2)) == "1-2"
    assert repr(CoreGrid(x=8, y=7)) == "ttnn.CoreGrid(x=8, y=7)"


@pytest.mark.parametrize(
    ("count", "row_wise", "text"),
    [
        (1, True, "{[0-0 - 0-0]}"),
        (8, True, "{[0-0 - 7-0]}"),
        (27, True, "{[0-0 - 7-2], [0-3 - 2-3]}"),
        (64, True, "{[0-0 - 7-7]}"),
        (10, False, "{[0-0 - 0-7], [1-0 - 1-1]}"),
    ],
)
def test_cores_are_filled_line_by_line(count, row_wise, text):
    assert str(first_cores(count, 8, 8, row_wise)) == text


@given(st.integers(1, 13), st.integers(1, 10), st.booleans(), st.data())
def test_first_cores_are_the_first_of_the_grid(cols, rows, row_wise, data):
    count = data.draw(st.integers(1, cols * rows))
    cores = first_cores(count, cols, rows, row_wise)
    assert first_cores(count, cols, rows, row_wise) is cores
    whole = CoreGrid(x=cols, y=rows).core_range_set().cores(row_wise)
    assert cores.cores(row_wise) == whole[:count]
    assert cores.num_cores() == count
    assert len(cores.ranges) <= 2


core_sets = st.sets(st.builds(CoreCoord, st.integers(0, 7), st.integers(0, 7)), min_size=1)


@given(core_sets, core_sets)
def test_a_union_has_the_cores_of_both(left, right):
    union = CoreRangeSet(CoreRange(core, core) for core in left).union(
        CoreRangeSet(CoreRange(core, core) for core in right)
    )
    assert set(union.cores()) == left | right
    assert union.num_cores() == len(left | right)


places = st.integers(0, 4)
rectangles = st.builds(lambda x, y, cols, rows: rectangle(x, y, x + cols, y + rows), places, places, places, places)


def test_what_two_sets_share_and_what_one_lacks():
    square, column = CoreRangeSet(rectangle(0, 0, 3, 3)), CoreRangeSet(rectangle(3, 0, 3, 7))
    assert str(square.shared(column)) == "{[3-0 - 3-3]}"
    assert str(square.without(column)) == "{[0-0 - 2-3]}"
    assert str(column.without(square)) == "{[3-4 - 3-7]}"
    assert square.without(square).empty()


@given(rectangles, rectangles)
def test_two_rectangles_in_any_place_share_and_lack_cores(one, other):
    left, right = CoreRangeSet(one), CoreRangeSet(other)
    mine, theirs = set(left.cores()), set(right.cores())
    for found, cores in ((left.shared(right), mine & theirs), (left.without(right), mine - theirs)):
        in_rows = sorted(cores, key=lambda core: (core.y, core.x))
        assert found == CoreRangeSet(CoreRange(core, core) for core in in_rows).merged()


def test_a_union_is_told_in_few_ranges():
    left, right = CoreRangeSet(rectangle(0, 0, 3, 3)), CoreRangeSet(rectangle(4, 0, 5, 3))
    assert str(left.union(right)) == "{[0-0 - 5-3]}"
    assert str(CoreRangeSet(rectangle(0, 0, 0, 1)).union(CoreRangeSet(rectangle(0, 3, 0, 4)))) == (
        "{[0-0 - 0-1], [0-3 - 0-4]}"
    )
    assert first_cores(20, 8, 8).union(first_cores(3, 8, 8)) == first_cores(20, 8, 8)


def test_containment_and_bounding_box():
    cores = first_cores(10, 8, 8)
    assert [cores.contains(part) for part in (CoreCoord(1, 1), CoreCoord(2, 1), rectangle(0, 0, 1, 1))] == [1, 0, 1]
    assert cores.bounding_box() == rectangle(0, 0, 7, 1)
    assert cores.bounding_box().grid_size() == CoreCoord(8, 2)


@pytest.mark.parametrize(
    ("mistake", "kind", "message"),
    [
        (
            lambda: CoreRangeSet([rectangle(0, 0, 3, 3), rectangle(3, 3, 4, 4)]),
            ValueError,
            r"^Cannot create CoreRangeSet with specified core ranges because core ranges \[0-0 - 3-3\] and \[3-3 - ",
        ),
        (lambda: rectangle(2, 0, 1, 0), ValueError, "Invalid core range for start_coord: 2-0, end_coord: 1-0\n"),
        (lambda: first_cores(65, 8, 8), ValueError, "count must be 0 to 64"),
        (lambda: CoreRangeSet().bounding_box(), ValueError, "no bounding box"),
        (lambda: CoreRangeSet([(0, 0)]), TypeError, "must be CoreRange objects, not tuple"),
        (lambda: CoreGrid(x=0, y=1), ValueError, "at least 1"),
        (lambda: CoreCoord(-1, 0), ValueError, "must not be negative"),
    ],
)
def test_mistakes_are_named(mistake, kind, message):
    with pytest.raises(kind, match=message):
        mistake()


def test_single_cores_become_rectangles():
    apart = CoreRangeSet(CoreRange(CoreCoord(x, y), CoreCoord(x, y)) for y in range(1, 9) for x in range(8))
    assert str(apart.merged()) == "{[0-1 - 7-8]}"
    assert set(apart.merged().cores()) == set(apart.cores())
    assert str(first_cores(11, 8, 8).merged()) == "{[0-0 - 7-0], [0-1 - 2-1]}"


def test_enumerations_print_alike_in_lists():
    assert f"{Layout.TILE} {[Layout.ROW_MAJOR]}" == "Layout.TILE [Layout.ROW_MAJOR]"


def test_a_frozen_list_is_equal_to_a_list():
    assert FrozenList((1, 2)) == [1, 2] == FrozenList((1, 2))
    assert FrozenList((1, 2)) != [2, 1]
    assert repr(FrozenList((1, 2))) == "[1, 2]"
    assert len({FrozenList((1, 2)), (1, 2)}) == 1


def test_ranges_are_an_attribute_and_a_method():
    one = CoreRange(CoreCoord(0, 0), CoreCoord(3, 1))
    cores = CoreRangeSet([one])
    assert cores.ranges() == [one] == list(cores.ranges)
    assert isinstance(cores.ranges, CalledList)
    assert ShardSpec(cores, [32, 64]).shape == [32, 64]


def test_a_rectangle_that_no_device_has_is_refused():
    """Planners look at every core of it."""
    assert CoreRange(CoreCoord(0, 0), CoreCoord(1023, 1023)).num_cores() == 1 << 20
    with pytest.raises(ArgumentError, match="0-0 to 9223372036854775808-1 has more than 1,048,576 cores"):
        CoreRange(CoreCoord(0, 0), CoreCoord(1 << 63, 1))


def test_pairs_are_corners():
    assert CoreRange((1, 0), [1, 6]) == CoreRange(CoreCoord(1, 0), CoreCoord(1, 6))
    with pytest.raises(ArgumentTypeError, match=r"start and end must be CoreCoord, not \(1.0, 0\)"):
        CoreRange((1.0, 0), (1, 6))


def test_subtract_leaves_the_cores_of_the_first_set():
    """A hole of 2 x 3 in a square of 4 x 4 that is open below leaves 10 cores."""
    left = CoreRangeSet(rectangle(0, 0, 3, 3)).subtract(CoreRangeSet(rectangle(1, 1, 2, 5)))
    assert left.num_cores() == 10
    assert not left.contains(CoreCoord(1, 1))
    assert left.contains(rectangle(0, 0, 3, 0))
