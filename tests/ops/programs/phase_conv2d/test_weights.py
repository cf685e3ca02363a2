"""Weights parted by output phase."""

import numpy as np
import pytest

from device.numbers.formats import BFLOAT16
from device.plan import Allocate
from ops.programs.phase_conv2d.values import PreparePhaseWeights, prepared_phase_weights


def prepared(planned):
    return next(one.op for one in planned.plan.steps if isinstance(one, Allocate) and one.tensor == "weight.prepared")


def test_each_class_of_taps_has_a_matrix(planned):
    op = prepared(planned(kernel=(3, 3)))
    assert isinstance(op, PreparePhaseWeights)
    even, odd = range(0, 3, 2), range(1, 2)
    ends = {(even, even): 128, (even, odd): 192, (odd, even): 256, (odd, odd): 288}
    assert {taps: rows.stop for taps, rows in op.rows.items()} == ends
    assert op.spec.padded_shape == (1, 1, 288, 32)
    assert op.spec.shape == (1, 1, 288, 32)


@pytest.mark.parametrize("mirror", [True, False])
def test_rows_are_taps_and_channels_of_the_flipped_kernel(planned, mirror):
    weights = np.arange(32 * 32 * 4, dtype=np.float32).reshape(32, 32, 2, 2) % 251
    op = prepared(planned())
    op = PreparePhaseWeights(kernel=op.kernel, mirror=mirror, parts=op.parts)
    matrix = prepared_phase_weights(op, weights)[0, 0].astype(np.float32)
    taps = weights[..., ::-1, ::-1] if mirror else weights
    assert np.array_equal(matrix, np.concatenate([taps[:, :, i, j] for i in (0, 1) for j in (0, 1)]))


def test_a_bias_is_the_micro_op_s(planned):
    made = planned(bias=True)
    row = next(one for one in made.plan.steps if isinstance(one, Allocate) and one.tensor == "bias.prepared")
    assert made.plan.tensors["bias.prepared"].padded_shape == (1, 1, 32, 32)
    assert row.op.layout.data_format == BFLOAT16
