"""Errors in a few numbers."""

import pytest

from tools.validate.prediction import Prediction
from tools.validate.report import sum_up


def prediction(name, measured, predicted):
    return Prediction(
        row={},
        measured_ns=measured,
        predict_ns=lambda: predicted,
        group=("g",),
        architecture="a",
        configuration=(name,),
    )


def test_configurations_count_once_with_their_median_row():
    errors = sum_up(
        [prediction("x", 100, 110), prediction("x", 100, 120), prediction("x", 100, 300), prediction("y", 100, 90)]
    )
    assert (errors.rows, errors.configurations) == (4, 2)
    assert errors.mean == pytest.approx(0.15)
    assert errors.median == pytest.approx(0.15)
    assert errors.bias == pytest.approx(0.05)
    assert errors.worst == pytest.approx(0.2)
