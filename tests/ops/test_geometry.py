import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ops.geometry import (
    Axis,
    Geometry,
    automatic_padding,
    frame_sources,
    input_size_of,
    output_phases,
    plan_geometry,
)

AXES = st.builds(
    Axis,
    input_size=st.integers(1, 8),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 5),
    dilation=st.integers(0, 3),
    pad_before=st.integers(0, 6),
    pad_after=st.integers(0, 6),
    output_padding=st.integers(0, 4),
)


def meetings(axis):
    """Every (output, tap, input) that meets, straight from the tap rule."""
    return {
        (p * axis.stride + k * axis.dilation - axis.pad_before, k, p)
        for p in range(axis.input_size)
        for k in range(axis.kernel)
        if 0 <= p * axis.stride + k * axis.dilation - axis.pad_before < axis.output_size
    }


@given(AXES)
def test_reach_is_the_tap_rule(axis):
    found = set()
    for tap in range(axis.kernel):
        reach = axis.reach(tap)
        for step in range(reach.inputs):
            found.add((reach.output_start + step * axis.stride, tap, reach.input_start + step))
    assert found == meetings(axis)


@given(AXES)
def test_phases_hold_every_meeting_once(axis):
    phases = output_phases(axis)
    assert sum(phase.count for phase in phases) == max(axis.output_size, 0)
    found = [
        (phase.start + m * axis.stride, tap.kernel, m + tap.offset)
        for phase in phases
        for tap in phase.taps
        for m in range(tap.start, tap.stop)
    ]
    assert len(found) == len(set(found))
    assert set(found) == meetings(axis)
    assert all(0 <= tap.start < tap.stop <= phase.count for phase in phases for tap in phase.taps)


@given(AXES)
def test_frame_is_the_same_sum_seen_from_the_output(axis):
    assume(axis.output_size > 0)
    sources = frame_sources(axis)
    assert len(sources) == axis.frame_size
    assert axis.frame_size == axis.frame_before + axis.strided_size + axis.frame_after + axis.output_padding
    found = {
        (t, axis.kernel - 1 - i, int(sources[t + i * axis.dilation]))
        for t in range(axis.output_size)
        for i in range(axis.kernel)
        if sources[t + i * axis.dilation] >= 0
    }
    assert found == meetings(axis)
    if not axis.overpadded:
        assert sorted(sources[sources >= 0]) == list(range(axis.input_size))


@given(AXES)
def test_input_size_inverts_output_size(axis):
    assert input_size_of(axis.output_size, axis) == axis.input_size


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_automatic_padding_keeps_the_ratio(size, kernel, stride, dilation, extra_first):
    before, after = automatic_padding(kernel, stride, dilation, extra_first=extra_first)
    axis = Axis(input_size=size, kernel=kernel, stride=stride, dilation=dilation, pad_before=before, pad_after=after)
    reaches = axis.span + 1 >= stride
    assert axis.output_size == (stride * size if reaches else stride * (size - 1) + axis.span + 1)
    assert (before - after) in ((0, 1) if extra_first else (0, -1))


def test_asymmetric_frame():
    # 8 inputs, kernel 3, stride 2, padding 1/0, one more output: 0 x0 0 x1 ... x7 0 0 + 1
    axis = Axis(input_size=8, kernel=3, stride=2, pad_before=1, output_padding=1)
    assert (axis.output_size, axis.frame_size) == (17, 19)
    assert (axis.frame_before, axis.frame_after) == (1, 2)
    assert frame_sources(axis).tolist() == [-1, 0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1, -1, -1]


def test_lists_of_three_axes():
    geometry = plan_geometry(
        (2, 3, 4), (3, 2, 1), stride=(1, 2, 3), pad_before=(1, 0, 0), pad_after=(0, 0, 0), dilation=(2, 1, 1)
    )
    assert geometry.input_shape == (2, 3, 4)
    assert geometry.kernel_shape == (3, 2, 1)
    assert geometry.output_shape == (5, 6, 10)
    assert geometry.frame_shape == (9, 7, 10)
    assert isinstance(geometry, Geometry)
    assert hash(geometry) is not None


def test_refusals():
    with pytest.raises(ValueError, match=r"^stride must be at least 1, not 0$"):
        Axis(input_size=4, kernel=3, stride=0)
    with pytest.raises(ValueError, match=r"^pad_after must have one entry for each of the 2 spatial axes, not \(1,\)$"):
        plan_geometry((4, 4), (3, 3), stride=(1, 1), pad_before=(1, 1), pad_after=(1,))


def test_empty_output_has_no_phases():
    axis = Axis(input_size=1, kernel=1, pad_before=1)
    assert axis.output_size == 0
    assert output_phases(axis) == ()
    assert np.array_equal(frame_sources(axis), np.zeros(0))
