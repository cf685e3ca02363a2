import numpy as np
import pytest
from hypothesis import given, strategies as st

from ttsim.report import accuracy
from ttsim.report.accuracy import measure


@given(st.integers(2, 300), st.integers(0, 2**32 - 1), st.integers(1, 64))
def test_as_numpy_computes_it(size, seed, chunk):
    rng = np.random.default_rng(seed)
    exact = rng.standard_normal(size)
    output = (exact + 0.01 * rng.standard_normal(size)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "CHUNK", chunk)
        found = measure(output, exact)
    error = output.astype(np.float64) - exact
    assert found.pcc == pytest.approx(np.corrcoef(output.astype(np.float64), exact)[0, 1], abs=1e-12)
    assert found.max_abs_error == np.max(np.abs(error))
    assert found.rms_error == pytest.approx(np.sqrt(np.mean(error**2)))
    assert found.exact_std == pytest.approx(np.std(exact))


def test_a_large_offset_does_not_spoil_the_correlation():
    exact = 1e6 + np.arange(1000.0)
    assert measure(exact, exact).pcc == pytest.approx(1)
    assert measure(exact[::-1], exact).pcc == pytest.approx(-1)


def test_constants_shapes_and_nan():
    ones = np.ones(5)
    assert (measure(ones, ones).pcc, measure(ones, 2 * ones).pcc) == (1, 0)
    assert measure(np.zeros((2, 3)), np.zeros(6)).max_abs_error == 0  # shapes may differ, and sizes may not
    for output, exact, rule in ((2, 3, r"size, not \(2,\) and \(3,\)$"), (0, 0, "positive size")):
        with pytest.raises(ValueError, match=f"^accuracy compares arrays of equal, .*{rule}"):
            measure(np.zeros(output), np.zeros(exact))
    found = measure(np.array([1.0, np.nan]), np.array([1.0, 2.0]))
    assert np.isnan([found.max_abs_error, found.pcc]).all()  # not hidden
