"""The vector unit's steps, against hand-worked figures and against float64."""

import numpy as np
import pytest

from device.numbers.vector_unit import (
    cut_to_bfloat16,
    long_exponential,
    multiply_add,
    polynomial,
    reciprocal,
    rounded_to_bfloat16,
    rounded_to_even_bfloat16,
    short_exponential,
    square_root,
)

ALL_EXPONENTS = np.exp2(np.linspace(-120, 120, 4001)).astype(np.float32)


def array(*values):
    return np.array(values, np.float32)


def test_a_multiplication_with_addition_rounds_once():
    # (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24, whose last bit a rounded product would have lost.
    factor = array(1 + 2.0**-12)
    assert multiply_add(factor, factor, -1 - 2.0**-11).tolist() == [2.0**-24]


def test_denormals_are_zeros():
    assert multiply_add(array(2.0**-100, 2.0**-63), array(2.0**-100, 2.0**-63), 0.0).tolist() == [0.0, 2.0**-126]


def test_polynomials():
    assert polynomial(array(2.0, -1.0), (1.0, 0.0, 3.0)).tolist() == [13.0, 4.0]


def test_three_ways_to_bfloat16():
    # Of 8 significant bits: 257 and 259 lie in the middle between 256, 258 and 260.
    x = array(257.0, 259.0, -257.0, 256.5)
    assert rounded_to_bfloat16(x).tolist() == [258.0, 260.0, -258.0, 256.0]
    assert rounded_to_even_bfloat16(x).tolist() == [256.0, 260.0, -256.0, 256.0]
    assert cut_to_bfloat16(x).tolist() == [256.0, 258.0, -256.0, 256.0]


@pytest.mark.parametrize(("function", "relative"), [(short_exponential, 2.0**-9), (long_exponential, 2.0**-23)])
def test_exponentials(function, relative):
    x = np.linspace(-80, 80, 3001).astype(np.float32)
    np.testing.assert_allclose(function(x), np.exp(x.astype(np.float64)), rtol=relative)


def test_exponentials_end():
    assert short_exponential(array(-200.0)).tolist() == [0.0]
    assert long_exponential(array(-200.0, 0.0, 200.0)).tolist() == [0.0, 1.0, np.inf]


@pytest.mark.parametrize("from_table", [False, True])
@pytest.mark.parametrize(("steps", "relative"), [(0, 2.0**-6), (1, 2.0**-12), (2, 2.0**-22)])
def test_reciprocals(from_table, steps, relative):
    for x in (ALL_EXPONENTS, -ALL_EXPONENTS):
        got = reciprocal(x, steps=steps, from_table=from_table)
        np.testing.assert_allclose(got, 1 / x.astype(np.float64), rtol=relative)


def test_the_table_of_reciprocals():
    # 1.5 lies in the 64th part, whose middle is 1.50390625: 256 / 1.50390625 - 128 = 42.2, so 1.010.1010 * 2**-1.
    got = reciprocal(array(1.0, 1.5, -3.0, 0.0, 2.0**126), steps=0, from_table=True)
    assert got.tolist() == [255 / 256, (128 + 42) / 256, -(128 + 42) / 512, np.inf, 0.0]


def test_reciprocals_at_the_ends():
    # Newton's method has nothing to work with there: zero times infinity.
    with np.errstate(invalid="ignore"):
        got = reciprocal(array(0.0, np.inf), steps=2, from_table=True)
    assert got.tolist() == [np.inf, 0.0]


def test_square_roots():
    np.testing.assert_allclose(square_root(ALL_EXPONENTS), np.sqrt(ALL_EXPONENTS.astype(np.float64)), rtol=2.0**-23)
    assert square_root(array(0.0, 4.0)).tolist() == [0.0, 2.0]
    assert np.isnan(square_root(array(-1.0))[0])
