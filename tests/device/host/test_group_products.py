"""Products of groups, by hand and as chains of additions; shifted layers show that they have the bits of BLAS's."""

import importlib
import importlib.util

import numpy as np
import pytest

from device.host.products import multiplies_in_place

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")


def multiplied(left, right, total, depths):
    loops, made = importlib.import_module("device.host.group_products"), total.copy()
    places = [(one.ctypes.data, one.shape[1]) for one in (left, right, made)]
    loops.product_of_groups(len(left), *places, np.array(depths, np.int64))
    return made


@pytest.mark.parametrize("rows", [1, 11, 12, 30])
def test_every_eight_columns_have_their_rows(rows):
    """Rows 0 and 3 count for columns 0 to 7, rows 1 and 2 for the others; what else there is does not."""
    left = np.arange(4 * rows, dtype=np.float32).reshape(rows, 4) % 7
    right = np.full((4, 16), np.nan, np.float32)
    right[[0, 3], :8], right[[1, 2], 8:] = [[1], [10]], [[100], [1000]]
    made = multiplied(left, right, np.ones((rows, 16), np.float32), [[0, 3], [1, 2]])
    assert np.array_equal(made[:, :8], np.repeat(1 + left[:, [0, 3]] @ [[1], [10]], 8, axis=1))
    assert np.array_equal(made[:, 8:], np.repeat(1 + left[:, [1, 2]] @ [[100], [1000]], 8, axis=1))


@pytest.mark.skipif(not multiplies_in_place(), reason="the kernels of BLAS here sum in another order")
def test_sums_have_the_bits_of_blas_where_others_have_zeros():
    """Two residues of two groups of eight channels, as a shifted layer has them."""
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(shape).astype(np.float32) for shape in ((90, 32), (32, 16)))
    depths = np.arange(32).reshape(2, 2, 8).swapaxes(0, 1).reshape(2, 16)
    right[depths[1], :8] = right[depths[0], 8:] = 0
    total = rng.standard_normal((90, 16)).astype(np.float32)
    assert np.array_equal(multiplied(left, right, total, depths), total + left @ right)
