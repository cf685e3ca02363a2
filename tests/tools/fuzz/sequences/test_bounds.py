import numpy as np
import pytest

from device.numbers.formats import FORMATS, quantize
from tools.fuzz.sequences.references import moving, regrouped, rounding, sum_error

NUMBERS = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32) * np.float32(37)


@pytest.mark.parametrize("name", ["bfloat16", "bfloat8_b", "bfloat4_b"])
def test_a_rounding_stays_within_its_bound_and_near_it(name):
    rounded = quantize(NUMBERS, FORMATS[name]).astype(np.float64)
    error, bound = np.abs(rounded - NUMBERS), rounding(NUMBERS, name)
    assert (error <= bound).all()
    assert (error / bound).max() > 0.45


def test_the_unit_of_a_block_float_is_that_of_its_largest_neighbor():
    values = np.zeros((1, 20))
    values[0, 3], values[0, 17] = 4.0, 0.5
    bound = rounding(values, "bfloat8_b")[0]
    assert bound[:16] == pytest.approx(2.0**-4)
    assert bound[16:] == pytest.approx(2.0**-7)
    assert regrouped(values, "bfloat8_b") == pytest.approx(2.0**-4)


def test_a_number_that_is_moved_keeps_its_bits():
    assert not moving(NUMBERS, "bfloat16").any()
    assert not moving(NUMBERS, "uint32").any()
    assert moving(NUMBERS, "float32").max() <= np.abs(NUMBERS).max() * 2.0**-10 * 1.001
    assert np.ptp(moving(NUMBERS, "bfloat8_b")) == 0
    assert moving(np.zeros((0, 3)), "bfloat8_b").shape == (0, 3)


def test_the_error_of_a_sum_shows_a_single_wrong_element():
    """A sum of 288 products of normal numbers, of a spread of 17: one that is zero instead is mostly seen."""
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((64, 288)), generator.standard_normal((288, 64))
    values = a @ b
    error = sum_error(values, np.abs(a) @ np.abs(b), a**2 @ b**2, 288, "bfloat16", low_fidelity=False)
    assert (np.abs(values) > error).mean() > 0.6
