"""Outputs at once, worked out by hand; that any convolution comes out as step by step is tested with the programs."""

import numpy as np
import pytest

from device.host.compiling import numba_installed
from device.host.products import sgemm_address
from device.matrix_unit import fast as whole_runs
from device.matrix_unit.fast import RunOperands, Trips
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT16, FLOAT32

needs_loops = pytest.mark.skipif(
    not numba_installed() or sgemm_address() is None, reason="numba is not installed, or numpy has another BLAS"
)


@pytest.fixture
def at_once(monkeypatch):
    """Runs are computed at once, however short."""
    monkeypatch.setattr(whole_runs, "worth_loading", lambda module, seconds: True)


def trips(made, **changes):
    return Trips(**{
        "fidelity_phases": 4, "fp32_dest": False, "partials": BFLOAT16, "accumulates": False, "untilizes": False,
        "relu": False, "made": made, **changes,
    })  # fmt: skip


def outputs(how, activations, weights, depths, bias=None):
    """One row of outputs [2, columns], every other column of a buffer of zeros."""
    result = np.zeros((1, 2, 2, weights.shape[1]), how.made.storage)
    operands = RunOperands(
        activations=activations, weights=weights, depths=depths, bias=bias, packs_last=bias is not None
    )
    whole_runs.whole_runs(how, 1)(operands, result, result[:, :, 1:, :])
    assert not result[:, :, 0].any()
    return result[0, :, 1].astype(np.float32).tolist()


@needs_loops
@pytest.mark.parametrize("held", [np.float32, BFLOAT16.storage], ids=str)
def test_a_16_bit_dst_is_rounded_half_up_after_every_block(at_once, held):
    """256 + 1 is 258, and + 1 again 260; in a 32-bit Dst 258 is right."""
    activations = np.array([[256, 1, 1], [1, 0, 2]], held)
    weights = np.array([[1, -1]] * 3, np.float32)
    assert outputs(trips(BFLOAT16), activations, weights, [2, 1]) == [[260, -260], [3, -3]]
    wide = trips(FLOAT32, fp32_dest=True, partials=FLOAT32)
    assert outputs(wide, activations, weights, [2, 1]) == [[258, -258], [3, -3]]


@needs_loops
def test_partial_sums_are_cut_and_a_bias_is_added_after_the_last_trip(at_once):
    """1 + 2^-12 loses its last bit when a float32 sum is fetched back to a 32-bit Dst."""
    how = trips(FLOAT32, fp32_dest=True, partials=FLOAT32)
    activations, weights = np.array([[1 + 2**-12], [2]], np.float32), np.array([[1, 2]], np.float32)
    assert outputs(how, activations, weights, [1]) == [[1 + 2**-12, 2 + 2**-11], [2, 4]]
    assert outputs(how, activations, weights, [1], np.array([1, -1], np.float32)) == [[2, 1], [3, 3]]


@needs_loops
def test_neighbors_share_an_exponent(at_once):
    """Under 64 there are whole numbers: 1.5 becomes 2, 0.25 nothing."""
    weights = np.zeros((1, 16), np.float32)
    weights[0, :3] = 64, 1.5, 0.25
    (first, second) = outputs(trips(BFLOAT8_B), np.array([[1], [0]], np.float32), weights, [1])
    assert first == [64, 2] + [0] * 14
    assert second == [0] * 16


@needs_loops
def test_negative_outputs_have_no_part_in_a_shared_exponent(at_once):
    """Beside -64 there would be whole numbers; without it 1.515625 stays."""
    weights = np.zeros((1, 16), np.float32)
    weights[0, :2] = -64, 1.515625
    (first,) = outputs(trips(BFLOAT8_B, relu=True), np.array([[1]], np.float32), weights, [1])[:1]
    assert first == [0, 1.515625] + [0] * 14


def test_what_loops_do_not_store_goes_step_by_step(at_once, monkeypatch):
    assert whole_runs.whole_runs(trips(FLOAT16), 1) is None
    monkeypatch.setattr(whole_runs, "sgemm_address", lambda: None)
    assert whole_runs.whole_runs(trips(BFLOAT16), 1) is None
