"""The loops are the definition; the vectorized twin equals them, and both equal PyTorch where PyTorch is installed."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from ops.reference import (
    Geometry,
    TransposedAxis,
    automatic_padding,
    conv_transpose,
    conv_transpose_channels_last,
    input_size_of,
    plan_geometry,
)
from tests.gradients import data_gradient, weights_gradient

SMALL_AXES = st.builds(
    TransposedAxis,
    input_size=st.integers(1, 4),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    dilation=st.integers(1, 2),
    pad_before=st.integers(0, 2),
    pad_after=st.integers(0, 2),
    output_padding=st.integers(0, 2),
)


def conv_transpose_loops(src, weights, geometry, *, bias=None, groups=1):
    """Transposed convolution, one multiplication at a time in Python floats: the definition itself, and very slow.

    Returns:
        float64 [N, O, *output].
    """
    batch, in_channels = src.shape[:2]
    out_per_group = weights.shape[1]
    dst = np.zeros((batch, groups * out_per_group, *geometry.output_shape))
    for channel in range(groups * out_per_group):
        dst[:, channel] = 0.0 if bias is None else float(bias[channel])
    for image, in_channel, out_in_group in product(range(batch), range(in_channels), range(out_per_group)):
        out_channel = in_channel // (in_channels // groups) * out_per_group + out_in_group
        for position in np.ndindex(*geometry.input_shape):
            for tap in np.ndindex(*geometry.kernel_shape):
                target = tuple(
                    p * axis.stride + k * axis.dilation - axis.pad_before
                    for p, k, axis in zip(position, tap, geometry.axes, strict=True)
                )
                if all(0 <= t < size for t, size in zip(target, geometry.output_shape, strict=True)):
                    value = float(src[(image, in_channel, *position)]) * float(
                        weights[(in_channel, out_in_group, *tap)]
                    )
                    dst[(image, out_channel, *target)] += value
    return dst


def integers(seed, *shape):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def operands(seed, geometry, batch, groups, in_per_group, out_per_group):
    src = integers(seed, batch, groups * in_per_group, *geometry.input_shape)
    weights = integers(seed + 1, groups * in_per_group, out_per_group, *geometry.kernel_shape)
    return src, weights, integers(seed + 2, groups * out_per_group)


@settings(deadline=None)
@given(
    st.lists(SMALL_AXES, min_size=1, max_size=2),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 2),
)
def test_twins_agree(axes, batch, groups, in_per_group, out_per_group):
    geometry = Geometry(tuple(axes))
    assume(min(geometry.output_shape) > 0)
    src, weights, bias = operands(7, geometry, batch, groups, in_per_group, out_per_group)
    slow = conv_transpose_loops(src, weights, geometry, bias=bias, groups=groups)
    assert np.array_equal(conv_transpose(src, weights, geometry, bias=bias, groups=groups), slow)  # integers: exact
    last = conv_transpose_channels_last(np.moveaxis(src, 1, -1), weights, geometry, bias=bias, groups=groups)
    assert np.array_equal(last, np.moveaxis(slow, 1, -1))


def test_by_hand():
    # 1, 2 with taps 10, 20, 30 at stride 2: 10 20 30+20 40 60, then one cut off in front and two more after.
    geometry = Geometry((TransposedAxis(input_size=2, kernel=3, stride=2, pad_before=1, output_padding=2),))
    src, weights = np.array([[[1, 2]]]), np.array([[[10, 20, 30]]])
    expected = [[[20, 50, 40, 60, 0, 0]]]
    assert conv_transpose_loops(src, weights, geometry).tolist() == expected
    assert conv_transpose(src, weights, geometry).tolist() == expected


def test_groups_of_the_published_unit_test():
    # oneDNN: 4 channels in two groups, weights [4, 4, 1, 1] make 8 outputs.
    geometry = Geometry((TransposedAxis(input_size=1, kernel=1), TransposedAxis(input_size=1, kernel=1)))
    src = np.array([1.0, 2, 3, 4]).reshape(1, 4, 1, 1)
    weights = np.array([1.0, 0, 1, 0] * 4).reshape(4, 4, 1, 1)
    assert conv_transpose(src, weights, geometry, groups=2).ravel().tolist() == [3, 0, 3, 0, 7, 0, 7, 0]


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


def test_refusals():
    with pytest.raises(ValueError, match=r"^stride must be at least 1, not 0$"):
        TransposedAxis(input_size=4, kernel=3, stride=0)
    with pytest.raises(ValueError, match=r"^pad_after must have one entry for each of the 2 spatial axes, not \(1,\)$"):
        plan_geometry((4, 4), (3, 3), stride=(1, 1), pad_before=(1, 1), pad_after=(1,))


lists = lambda axes, low, high: st.lists(st.integers(low, high), min_size=axes, max_size=axes)  # noqa: E731


@given(st.data(), st.integers(1, 3), st.sampled_from([1, 2]))
@settings(max_examples=40, deadline=None)
def test_gradients_are_the_adjoints_of_the_operation(data, axes, groups):
    draw = data.draw
    geometry = plan_geometry(
        draw(lists(axes, 1, 4)),
        draw(lists(axes, 1, 3)),
        stride=draw(lists(axes, 1, 3)),
        pad_before=draw(lists(axes, 0, 2)),
        pad_after=draw(lists(axes, 0, 2)),
        output_padding=draw(lists(axes, 0, 3)),
        dilation=draw(lists(axes, 1, 2)),
    )
    if min(geometry.output_shape) < 1:
        return
    rng = np.random.default_rng(0)
    src = rng.integers(-5, 6, (2, 2 * groups, *geometry.input_shape))
    weights = rng.integers(-5, 6, (2 * groups, 3, *geometry.kernel_shape))
    diff = rng.integers(-5, 6, (2, 3 * groups, *geometry.output_shape))
    product = (conv_transpose(src, weights, geometry, groups=groups) * diff).sum()
    assert product == (src * data_gradient(diff, weights, geometry, groups=groups)).sum()
    assert product == (weights * weights_gradient(src, diff, geometry, groups=groups)).sum()
