import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ops.reference import conv_transpose, data_gradient, plan_geometry, weights_gradient

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


@pytest.mark.parametrize("gradient", [data_gradient, weights_gradient])
def test_results_are_float64(gradient):
    geometry = plan_geometry([2], [1], stride=[1], pad_before=[0], pad_after=[0])
    first, second = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 2 if gradient is weights_gradient else 1))
    assert gradient(first, second, geometry).dtype == np.float64
