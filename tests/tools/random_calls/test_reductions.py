"""How far products on a device may lie from float64."""

import numpy as np
import pytest

from tools.random_calls.reductions import product_and_error


def test_a_product_of_few_numbers_is_rounded_once():
    values, bound = product_and_error(np.array([[2.0, 3.0], [4.0, 5.0]]), 0, "bfloat16", keepdims=False)
    assert values.tolist() == [8.0, 15.0]
    assert bound == pytest.approx([2 * 8 / 256, 2 * 15 / 256], rel=1e-3)


def test_block_floats_meet_other_neighbors_where_the_last_axis_is_multiplied():
    """Beside 64 the numbers 1/64 and 1 are multiples of 1, so they may be anything up to 1 + 1/64 and 2."""
    factors = np.array([[64.0, 1.0], [1 / 64, 1.0]])
    values, bound = product_and_error(factors, 1, "bfloat8_b", keepdims=True)
    assert values.tolist() == [[64.0], [1 / 64]]
    assert bound[1, 0] > (1 / 64 + 1) * (1 + 1 / 64) - 1 / 64
    stays = product_and_error(factors, 0, "bfloat8_b", keepdims=True)[1]
    assert stays == pytest.approx(np.full((1, 2), 3 / 64), rel=1e-3)


@pytest.mark.parametrize(
    ("factors", "least"), [([1e20, 1e20, 1e-20, 1e-20], np.inf), ([1e-20, 1e-20, 1e20, 1e20], 1.0)]
)
def test_a_partial_product_may_leave_float32(factors, least):
    values, bound = product_and_error(np.array(factors), None, "float32", keepdims=False)
    assert values == pytest.approx(1.0)
    assert bound >= least
