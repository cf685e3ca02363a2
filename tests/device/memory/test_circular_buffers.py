import pytest
from hypothesis import given, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import CircularBufferError
from device.memory.buffers import Region, check, check_count, place
from device.spec.device_spec import load_spec

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


def test_no_circular_buffers_need_no_room() -> None:
    assert place([], L1).addresses == ()
    assert place([(64, CoreRangeSet())], L1).addresses == (L1.base_bytes,)


def test_what_does_not_fit_is_refused_in_the_real_words() -> None:
    regions = [Region(block(0, 0, 7, 1), L1.bytes + 32)]
    with pytest.raises(CircularBufferError) as error:
        check(regions, L1, lowest_l1_address=None, program=1)
    assert str(error.value).split("\n")[0] == (
        "Statically allocated circular buffers on core range [0-0 - 7-1] grow to 1499168 B which is beyond max L1 size "
        "of 1499136 B"
    )
    regions = [Region(block(0, 0, 7, 1), L1.bytes)]
    with pytest.raises(CircularBufferError) as error:
        check(regions, L1, lowest_l1_address=1497088, program=3)
    first, second = str(error.value).split("\n")
    assert first == (
        "Statically allocated circular buffers in program 3 clash with L1 buffers on core range [0-0 - 7-1]. L1 buffer "
        "allocated at 1497088 and static circular buffer region ends at 1499136"
    )
    assert second.startswith("They overlap by 2048 B: free L1 tensors")
    check(regions, L1, lowest_l1_address=L1.bytes, program=4)


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


def test_a_program_has_no_more_circular_buffers_than_a_core() -> None:
    check_count(32, L1)
    with pytest.raises(CircularBufferError) as error:
        check_count(33, L1)
    first, second = str(error.value).split("\n")
    assert first == "Buffer index (32) exceeds max number of circular buffers per core (32)"
    assert second.startswith("The program has 33 circular buffers: turn a bias")
