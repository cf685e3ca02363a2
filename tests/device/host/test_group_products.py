"""Products of groups, by hand and as chains of additions; shifted layers show that they have the bits of BLAS's."""

import importlib
import importlib.util

import numpy as np
import pytest

from device.host.products import multiplies_in_place

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def multiplied(left, right, total):
    loops, made = importlib.import_module("device.host.group_products"), total.copy()
    places = [(one.ctypes.data, one.shape[1]) for one in (left, right, made)]
    loops.product_of_groups(*left.shape, *places)
    return made


def of_groups(depth, draw):
    """Weights [depth, 16] with zeros where a group meets the columns of the other."""
    right = draw((depth // 16, 2, 8, 2, 8))
    right[:, 0, :, 1] = right[:, 1, :, 0] = 0
    return right.reshape(depth, 16)


@pytest.mark.parametrize("rows", [1, 5, 6, 15])
@pytest.mark.parametrize("depth", [16, 48])
def test_a_product_joins_the_sums(rows, depth):
    """Sums of small whole numbers are exact."""
    rng = np.random.default_rng(rows)

    def whole(shape):
        return rng.integers(-4, 5, shape).astype(np.float32)

    left, right, total = whole((rows, depth)), of_groups(depth, whole), whole((rows, 16))
    assert np.array_equal(multiplied(left, right, total), total + left @ right)


def test_a_group_does_not_meet_the_columns_of_the_other():
    left, right = np.ones((1, 16), np.float32), of_groups(16, np.ones)
    left[0, 3], left[0, 12] = np.inf, 2
    made = multiplied(left, right.astype(np.float32), np.zeros((1, 16), np.float32))
    assert made.tolist() == [[np.inf] * 8 + [9] * 8]


@pytest.mark.skipif(not multiplies_in_place(), reason="the kernels of BLAS here sum in another order")
def test_sums_have_the_bits_of_blas_where_others_have_zeros():
    rng = np.random.default_rng(0)

    def drawn(shape):
        return rng.standard_normal(shape).astype(np.float32)

    left, right, total = drawn((90, 32)), of_groups(32, drawn), drawn((90, 16))
    assert np.array_equal(multiplied(left, right, total), total + left @ right)
