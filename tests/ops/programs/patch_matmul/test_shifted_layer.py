"""How images lie shifted: which layers do, what is folded, and weights as matrices and back."""

import numpy as np
import pytest

from ops.programs.patch_matmul.shifted_layer import Meeting, Slot, bundled, matrices_of, weights_of
from tests.ops.programs.patch_matmul.padded_axes import strided, transposed
from tests.ops.programs.patch_matmul.shifted_layers import DOWN, GROUPS, UP, drawn


def test_a_folded_layer_by_hand():
    """Outputs 2 q - 1 and 2 q are a cell, which inputs q - 1 and q meet under taps 1 and 3, and 0 and 2."""
    layer = bundled(UP, 1, (64, 3), summed=False).layer
    assert layer.folded
    assert layer.pitch == (34, 1)  # 33 cells and the one that the last of them reaches
    assert layer.side_by_side == (1, 2)
    assert layer.planes == (1, 2)
    assert layer.slots == (Slot(0, 0, 1), Slot(0, 0, 0), Slot(1, 0, 1), Slot(1, 0, 0))
    assert layer.positions(33) == 32 * 34 + 33
    assert layer.meetings == (
        Meeting(0, 2, 0, 0), Meeting(0, 3, 0, 1), Meeting(0, 6, 0, 34), Meeting(0, 7, 0, 35),
        Meeting(1, 0, 0, 0), Meeting(1, 1, 0, 1), Meeting(1, 4, 0, 34), Meeting(1, 5, 0, 35),
    )  # fmt: skip


def test_groups_are_folded_where_that_multiplies_fewer_zeros():
    """Two neighbors of eight channels fill the sixteen columns that BLAS multiplies at a time."""
    forward = bundled(UP, 32, (8, 8), summed=False)
    assert (forward.layer.folded, forward.size, forward.widths(8, 8)) == (True, 1, (8, 16))
    data = bundled(DOWN, 32, (8, 8), summed=False)
    assert (data.layer.folded, data.size, data.widths(8, 8)) == (True, 2, (32, 16))
    gradient = bundled(DOWN, 32, (8, 8), summed=True)
    assert (gradient.layer.folded, gradient.size, gradient.widths(8, 8)) == (True, 1, (16, 8))
    even = (transposed(32, 3, 2, 1), transposed(32, 3, 2, 1))  # folded, one tap of four would be zeros
    assert not bundled(even, 4, (32, 32), summed=False).layer.folded


@pytest.mark.parametrize(("axes", "channels"), [
    ((strided(8, 3, 1, 1), strided(8, 3, 1, 1)), (16, 3)),  # 64 positions
    ((strided(16, 3, 1, 1), strided(16, 9, 1, 12, 3)), (16, 3)),  # more zeros than numbers
    ((strided(16, 3, 1, 1), strided(16, 3, 1, 1)), (3, 3)),  # too few channels on both sides
    ((strided(16, 3, 1, 1), strided(16, 3, 1, 1)), (512, 16)),  # too many for a long product
])  # fmt: skip
@pytest.mark.parametrize("summed", [False, True])
def test_other_ways_take_less(axes, channels, summed):
    assert bundled(axes, 1, channels, summed=summed) is None


@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_weights_come_back_from_their_matrices(groups):
    """Transposed, as sums have outputs in rows."""
    count, ins, outs = groups
    one = bundled(DOWN, count, (ins, outs), summed=False)
    weights = drawn(np.random.default_rng(0), count, 4, 4, ins, outs)
    matrices = matrices_of(one, weights)
    assert matrices.shape[2:] == one.widths(ins, outs)
    assert np.count_nonzero(matrices) == weights.size
    back = weights_of(one, matrices.swapaxes(-1, -2), (ins, outs))
    assert np.array_equal(back, weights.reshape(count, 16, ins, outs).swapaxes(-1, -2))
