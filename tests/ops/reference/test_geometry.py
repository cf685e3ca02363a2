import pytest
from hypothesis import given, strategies as st

from ops.reference import Geometry, TransposedAxis, automatic_padding, input_size_of, plan_geometry

AXES = st.builds(
    TransposedAxis,
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
def test_input_size_inverts_output_size(axis):
    assert input_size_of(axis.output_size, axis) == axis.input_size


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_automatic_padding_keeps_the_ratio(size, kernel, stride, dilation, extra_first):
    before, after = automatic_padding(kernel, stride, dilation, extra_first=extra_first)
    axis = TransposedAxis(
        input_size=size, kernel=kernel, stride=stride, dilation=dilation, pad_before=before, pad_after=after
    )
    reaches = axis.span + 1 >= stride
    assert axis.output_size == (stride * size if reaches else stride * (size - 1) + axis.span + 1)
    assert (before - after) in ((0, 1) if extra_first else (0, -1))


def test_asymmetric_padding():
    # 8 inputs, kernel 3, stride 2, padding 1/0, one more output
    axis = TransposedAxis(input_size=8, kernel=3, stride=2, pad_before=1, output_padding=1)
    assert axis.output_size == 17
    assert [axis.reach(tap) for tap in range(3)] == [(1, 8, 1), (0, 8, 0), (0, 8, 1)]


def test_lists_of_three_axes():
    geometry = plan_geometry(
        (2, 3, 4), (3, 2, 1), stride=(1, 2, 3), pad_before=(1, 0, 0), pad_after=(0, 0, 0), dilation=(2, 1, 1)
    )
    assert geometry.input_shape == (2, 3, 4)
    assert geometry.kernel_shape == (3, 2, 1)
    assert geometry.output_shape == (5, 6, 10)
    assert isinstance(geometry, Geometry)
    assert hash(geometry) is not None


def test_refusals():
    with pytest.raises(ValueError, match=r"^stride must be at least 1, not 0$"):
        TransposedAxis(input_size=4, kernel=3, stride=0)
    with pytest.raises(ValueError, match=r"^pad_after must have one entry for each of the 2 spatial axes, not \(1,\)$"):
        plan_geometry((4, 4), (3, 3), stride=(1, 1), pad_before=(1, 1), pad_after=(1,))
