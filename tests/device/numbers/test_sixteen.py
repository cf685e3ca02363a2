"""The largest exponent of sixteen neighbors, worked out by hand."""

import importlib

import numpy as np
import pytest

from device.host.compiling import compiled, numba_installed


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
def test_neighbors_get_the_largest_exponent_of_them():
    """1.9375 becomes 2 where half of its lowest bit is added; signs and fractions do not count, nor do others."""
    spread = importlib.import_module("device.numbers.sixteen").spread_exponents

    @compiled
    def spread_second(bits, added, tops):
        spread(bits, 16, added, tops)

    values = np.full(48, 256, np.float32)
    values[16:32] = 0.0
    values[[18, 31]] = [1.5, -1.9375]
    for added, largest in ((0, 1.0), (1 << 19, 2.0)):
        tops = np.full(48, 7, np.int32)
        spread_second(values.view(np.int32), np.int32(added), tops)
        assert tops[16:32].view(np.float32).tolist() == [largest] * 16
        assert tops[:16].tolist() == tops[32:].tolist() == [7] * 16
