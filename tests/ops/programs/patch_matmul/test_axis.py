import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.programs.patch_matmul.axis import PatchAxis, dense_phases, index_of

AXES = st.builds(
    PatchAxis,
    input_size=st.integers(1, 7),
    outputs=st.integers(1, 12),
    taps=st.integers(1, 5),
    start=st.integers(-9, 9),
    spacing=st.integers(-4, 4).filter(bool),
    step=st.integers(1, 4),
    insertion=st.integers(1, 4),
)


def meetings(axis):
    """(output, tap, input) for every tap that meets an image position, by the definition."""
    found = set()
    for output in range(axis.outputs):
        for tap in range(axis.taps):
            place = output * axis.step + axis.start + tap * axis.spacing
            if place % axis.insertion == 0 and 0 <= place // axis.insertion < axis.input_size:
                found.add((axis.first + output * axis.distance, tap, place // axis.insertion))
    return found


@given(AXES)
def test_phases_hold_every_output_once_and_every_meeting(axis):
    outputs, met = [], set()
    for phase in dense_phases(axis):
        outputs += [phase.axis.first + n * phase.axis.distance for n in range(phase.axis.outputs)]
        assert phase.axis.insertion == 1
        met |= {(output, phase.taps[tap], place) for output, tap, place in meetings(phase.axis)}
    assert sorted(outputs) == list(range(axis.outputs))
    assert met == meetings(axis)


@given(AXES)
def test_taps_that_never_meet_the_image_are_left_out_at_the_ends(axis):
    for phase in dense_phases(axis):
        dense = phase.axis
        for tap in {0, dense.taps - 1} if dense.taps else set():
            begin = dense.start + tap * dense.spacing
            assert begin < dense.input_size
            assert begin + (dense.outputs - 1) * dense.step >= 0


@given(AXES)
def test_low_and_high_are_the_ends_of_what_patches_hold(axis):
    places = [m * axis.step + axis.start + tap * axis.spacing for m in range(axis.outputs) for tap in range(axis.taps)]
    assert (axis.low, axis.high) == (min(places), max(places))


@pytest.mark.parametrize("numbers", [range(0), range(3), range(1, 8, 2), range(4, -1, -1), range(5, -1, -3)])
def test_a_range_picks_its_own_indices(numbers):
    assert list(range(10))[index_of(numbers)] == list(numbers)
