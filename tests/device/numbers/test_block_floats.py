"""Groups of 16 neighbors: their largest exponents, and rounding under them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.compiling import numba_installed
from device.numbers import formats as block_floats
from device.numbers.formats import BFLOAT16, GROUP, largest_exponents, round_groups, spread


@given(st.integers(0, 3), st.integers(0, 10**6))
def test_largest_exponents(groups, seed):
    bits = np.random.default_rng(seed).integers(0, 1 << 32, (groups, GROUP), np.uint32)
    expected = (bits & np.uint32(0x7F800000)).max(axis=1, initial=0)
    assert largest_exponents(bits).tolist() == expected.tolist()


def test_spread():
    assert spread(np.array([1, 2])).tolist() == [[1] * 16, [2] * 16]


@pytest.mark.parametrize("mantissa_bits", [3, 7])
@pytest.mark.parametrize("exponent", [0, 1, 3, 8, 9, 127, 230])
def test_both_widths_of_rounding_give_the_same(mantissa_bits, exponent):
    """A group with a number too large for float32 sums, far away from it, sends the chunk the other way."""
    rng = np.random.default_rng(exponent)
    fields = np.maximum(exponent - rng.integers(0, 12, (64, GROUP)), 0).astype(np.uint32)
    signs = rng.integers(0, 2, (64, GROUP), np.uint32) << np.uint32(31)
    groups = (signs | fields << np.uint32(23) | rng.integers(0, 1 << 23, (64, GROUP), np.uint32)).view(np.float32)
    narrow, wide = np.empty_like(groups), np.empty((65, GROUP), np.float32)
    round_groups(groups, mantissa_bits, narrow)
    round_groups(np.concatenate([groups, np.full((1, GROUP), 3e38, np.float32)]), mantissa_bits, wide)
    assert np.array_equal(narrow, wide[:64])


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize("mantissa_bits", [3, 7])
@pytest.mark.parametrize("exponent", [0, 1, 3, 8, 9, 127, 230, 250])
def test_compiled_loops_round_the_same(monkeypatch, mantissa_bits, exponent):
    """Denormals are dropped and ties go to even; numbers too large for the loops are left to numpy.

    Loops round 64 groups at a time.
    """
    rng = np.random.default_rng(exponent)
    fields = np.maximum(exponent - rng.integers(0, 12, (80, GROUP)), 0).astype(np.uint32)
    groups = (fields << np.uint32(23) | rng.integers(0, 1 << 23, (80, GROUP), np.uint32)).view(np.float32)
    groups[1] = np.float32(2.0) ** np.arange(-8, 8) + np.float32(0.5)
    groups[::3] *= -1
    kept, result = groups.copy(), []
    for loops in (False, True):
        monkeypatch.setattr(block_floats, "worth_loading", lambda module, seconds, loops=loops: loops)
        result.append(np.empty(groups.shape, BFLOAT16.storage))
        round_groups(groups, mantissa_bits, result[-1])
    assert np.array_equal(result[0].view(np.uint16), result[1].view(np.uint16))
    assert np.array_equal(groups, kept)
