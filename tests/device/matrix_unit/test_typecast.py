"""Typecast on the device: rounding by hand, and a recorded tensor's rule against exact arithmetic."""

import numpy as np
import pytest

from device.matrix_unit.packer import pack
from device.matrix_unit.typecast import typecast
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32, GROUP, INT32, quantize


@pytest.mark.parametrize("source", [BFLOAT16, FLOAT32])
def test_bfloat8_b_is_rounded_once_half_up_and_limited(source):
    x = quantize((np.random.default_rng(1).standard_normal((64, 64)) * 3).astype(np.float32), source)
    groups = x.astype(np.float64).reshape(-1, GROUP)
    unit = 2.0 ** (np.frexp(np.abs(groups).max(axis=1, keepdims=True))[1] - 7)
    want = np.sign(groups) * np.minimum(np.floor(np.abs(groups) / unit + 0.5), 127) * unit
    got = typecast(x, source, BFLOAT8_B)
    np.testing.assert_array_equal(got.astype(np.float64).reshape(-1, GROUP), want)
    assert got.dtype == BFLOAT8_B.storage
    assert not np.signbit(got[got == 0]).any()


def test_what_lies_just_below_a_half_is_rounded_down():
    below = np.float32(0.5) - np.float32(2.0**-25)
    x = np.array([64.0, below, 0.5, -below, -0.5], np.float32)
    assert typecast(x, FLOAT32, BFLOAT8_B).astype(float).tolist() == [64.0, 0.0, 1.0, 0.0, -1.0]


def test_bfloat4_b_is_rounded_to_seven_bits_and_cut():
    x = quantize(np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32), BFLOAT16)
    np.testing.assert_array_equal(typecast(x, BFLOAT16, BFLOAT4_B).astype(np.float32), pack(
        x.astype(np.float32), BFLOAT4_B, fp32_dest=False
    ))  # fmt: skip
    assert typecast(np.array([4.0, 1.9, 2.1], np.float32), FLOAT32, BFLOAT4_B).astype(float).tolist() == [4.0, 1.0, 2.0]


def test_other_formats_are_rounded_as_the_host_rounds():
    x = np.array([1.00390625, -2.5], np.float32)
    assert typecast(x, FLOAT32, BFLOAT16).tolist() == quantize(x, BFLOAT16).tolist()
    assert typecast(x, FLOAT32, INT32).tolist() == [1, -2]
    assert typecast(np.array([3, 4], np.int32), INT32, BFLOAT8_B).astype(float).tolist() == [3.0, 4.0]


def test_groups_that_are_not_full_are_filled_with_zeros():
    x = np.full((2, 5), 0.75, np.float32).astype(BFLOAT16.storage)
    assert typecast(x, BFLOAT16, BFLOAT8_B).tolist() == x.tolist()


@pytest.mark.parametrize("target", [BFLOAT8_B, BFLOAT4_B], ids=str)
def test_a_large_tensor_is_converted_in_parts(target):
    """65 rows at a time; the rows of a turned array do not lie one after the other."""
    x = np.random.default_rng(3).standard_normal((1000, 2, 70)).astype(np.float32).T
    whole = typecast(x, FLOAT32, target)
    assert whole.shape == (70, 2, 1000)
    for image, rows in zip(whole, x, strict=True):
        for result, row in zip(image, rows, strict=True):
            assert np.array_equal(result, typecast(row, FLOAT32, target))
    assert typecast(x[:0], FLOAT32, target).shape == (0, 2, 1000)
