import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.numbers.formats import BFLOAT16, FLOAT16, FLOAT32
from ops.programs.patch_matmul.op import (
    IN0_BITS,
    IN1_BITS,
    Precision,
    grid_exponent,
    multiplied_whole,
    slices,
    slicing_of,
)

FLOATS = st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=20)


@given(FLOATS, st.sampled_from([IN0_BITS, IN1_BITS]))
def test_slices_are_small_integers_on_one_grid(numbers, bits):
    values = np.array(numbers, np.float32)
    exponent = grid_exponent(values)
    for number, part in enumerate(slices(values, 4, bits, exponent), 1):
        units = part.astype(np.float64) / 2.0 ** (exponent + 1 - number * bits)
        assert np.array_equal(units, np.trunc(units))
        assert np.abs(units).max() < 2**bits


@given(FLOATS)
def test_four_slices_leave_less_than_their_last_unit(numbers):
    values = np.array(numbers, np.float32)
    exponent = grid_exponent(values)
    total = sum(part.astype(np.float64) for part in slices(values, 4, IN0_BITS, exponent))
    assert np.abs(values - total).max() < 2.0 ** (exponent + 1 - 4 * IN0_BITS)


def test_infinities_and_nans_stay_in_the_first_slice():
    values = np.array([np.inf, -np.inf, np.nan, 1.5], np.float32)
    first, *others = slices(values, 3, IN0_BITS, grid_exponent(values))
    assert np.isposinf(first[0])
    assert np.isneginf(first[1])
    assert np.isnan(first[2])
    assert all(not other[:3].any() for other in others)


@pytest.mark.parametrize(("data_format", "passes"), [(FLOAT32, 13), (FLOAT16, 8), (BFLOAT16, 8)], ids=str)
def test_passes_go_from_the_smallest_products_to_the_largest(data_format, passes):
    result = slicing_of(data_format, Precision.IEEE)
    weights = [i * IN0_BITS + j * IN1_BITS for i, j in result.passes]
    assert weights == sorted(weights, reverse=True)
    assert result.passes[-1] == (0, 0)
    assert len(result.passes) == passes
    assert result.fidelity_phases == 1
    assert result.in0_slices == 1 + max(i for i, _ in result.passes)
    assert result.in1_slices == 1 + max(j for _, j in result.passes)


def test_a_single_pass_of_float32_sees_tf32():
    value = np.array([1 + 2.0**-10 + 2.0**-12], np.float32)
    single = slicing_of(FLOAT32, Precision.DEVICE)
    assert multiplied_whole(value, single, weights_side=False)[0] == 1 + 2.0**-10
    assert multiplied_whole(value, single, weights_side=True)[0] == 1
    assert multiplied_whole(value, slicing_of(FLOAT32, Precision.IEEE), weights_side=True)[0] == value[0]
