from hypothesis import given
from hypothesis import strategies as st

from device.circular_buffers import Region, place
from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.spec import load_spec

L1 = load_spec("wormhole_n150").l1


def block(left: int, top: int, right: int, bottom: int) -> CoreRange:
    return CoreRange(CoreCoord(left, top), CoreCoord(right, bottom))


def test_disjoint_cores_fill_up_apart() -> None:
    one, other = block(0, 0, 3, 0), block(0, 1, 3, 1)
    placement = place([(64, CoreRangeSet([one])), (32, CoreRangeSet([other])), (32, CoreRangeSet([one]))], L1)
    assert placement.addresses == (L1.base_bytes, L1.base_bytes, L1.base_bytes + 64)
    assert placement.regions == (Region(one, L1.base_bytes + 96), Region(other, L1.base_bytes + 32))


def test_a_buffer_on_two_ranges_has_one_address() -> None:
    one, other = block(0, 0, 3, 0), block(0, 1, 3, 1)
    placement = place([(64, CoreRangeSet([one])), (32, CoreRangeSet([one, other]))], L1)
    assert placement.addresses == (L1.base_bytes, L1.base_bytes + 64)
    assert placement.regions == (Region(one, L1.base_bytes + 96), Region(other, L1.base_bytes + 96))


def test_a_range_inside_another_is_lifted_with_it() -> None:
    all_cores, corner = block(0, 0, 7, 7), block(0, 0, 0, 0)
    placement = place([(64, CoreRangeSet([all_cores])), (32, CoreRangeSet([corner]))], L1)
    assert placement.addresses == (L1.base_bytes, L1.base_bytes + 64)


rectangles = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)).map(
    lambda sides: block(sides[0], sides[1], sides[0] + sides[2], sides[1] + sides[3])
)


@given(st.lists(st.tuples(st.integers(1, 500), rectangles), max_size=6))
def test_buffers_on_one_core_never_overlap_when_ranges_are_equal_or_apart(
    requests: list[tuple[int, CoreRange]],
) -> None:
    chosen: list[tuple[int, CoreRangeSet]] = []
    for size_bytes, cores in requests:
        if all(cores == other.ranges[0] or not cores.overlaps(other.ranges[0]) for _, other in chosen):
            chosen.append((size_bytes, CoreRangeSet([cores])))
    placement = place(chosen, L1)
    for index, (size_bytes, cores) in enumerate(chosen):
        assert placement.addresses[index] % L1.circular_buffer_alignment_bytes == 0
        for later, (_, other) in list(enumerate(chosen))[index + 1 :]:
            if cores == other:
                assert placement.addresses[later] >= placement.addresses[index] + size_bytes
