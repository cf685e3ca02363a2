"""Shapes that the library gives products of nothing, as its planner answered."""

import pytest

from device.errors import ArgumentError
from ops.planners.matmul.validation import shape_of_nothing


@pytest.mark.parametrize(
    ("first", "second", "product"),
    [
        ((32, 0), (0, 7), (32, 7)),
        ((0, 1), (0, 32), (0, 32)),  # inner sides may differ
        ((0,), (0, 32), (32,)),
        ((32, 0), (0,), (32,)),
        ((0,), (0,), ()),
        ((32,), (1, 1, 0, 32), (1, 1, 32)),
        ((1, 0), (1, 32, 0), (1, 1, 0)),
        ((2, 32, 64), (0, 64, 32), (2, 32, 32)),  # batches of the first ..
        ((1, 32, 0), (2, 0, 32), (2, 32, 32)),  # .. unless it has one, and the second several
        ((1, 32, 64), (0, 64, 32), (1, 32, 32)),
        ((1, 1, 0, 32), (2, 32, 0), (1, 1, 0, 0)),
    ],
)
def test_a_product_of_nothing_has_a_shape(first, second, product):
    assert shape_of_nothing(first, second) == product


def test_a_second_operand_of_nothing_has_no_more_axes():
    with pytest.raises(ArgumentError, match=r"^When in1 rank greater than in0 rank front dimensions need to be 1\n"):
        shape_of_nothing((0, 1), (2, 0, 32))
