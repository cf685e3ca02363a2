"""Where long sums are split."""

import numpy as np
import pytest

from device.host.pieces import depth_of_part
from device.host.products import multiplies_in_place
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.fast import product


def parts(depth):
    """All of them, in order."""
    result = []
    while depth:
        result.append(depth_of_part(depth))
        depth -= result[-1]
    return result


@pytest.mark.parametrize(
    ("depth", "wanted"),
    [
        (16, [16]),
        (448, [448]),
        (449, [224, 225]),
        (768, [384, 384]),
        (1536, [448, 448, 320, 320]),
        (2300, [448] * 4 + [256, 252]),
    ],
)
def test_parts_are_full_until_the_rest_is_two_halves(depth, wanted):
    assert parts(depth) == wanted


@pytest.mark.skipif(
    not multiplies_in_place() or np.lib.NumpyVersion(np.__version__) < "2.1.0",
    reason="OpenBLAS's kernels for this processor sum by the place, or numpy comes with older ones",
)
def test_a_sum_depends_on_its_own_products_alone():
    """The same bits in a matrix of two rows and sixteen columns, which BLAS does not copy, as in a larger one."""
    rng = np.random.default_rng(5)
    left, right = (rng.standard_normal(shape, dtype=np.float32) for shape in [(300, 1000), (1000, 80)])
    mode = MatrixUnitMode(fidelity_phases=1, fp32_dest=True, minus_one_quirk=False)
    whole, few = product(left, right, mode=mode), product(left[5:7], right[:, 16:32], mode=mode)
    assert np.array_equal(whole[5:7, 16:32], few)
