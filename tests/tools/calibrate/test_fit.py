"""Least squares with priors."""

import math

import numpy as np
import pytest

from tools.calibrate.fit import PRIOR_SPREAD, fit_constants, folds_of


def line(values, points):
    return np.array([math.log((values["a"] + values["b"] * x) / y) for x, y in points])


def test_constants_of_exact_rows_are_found():
    points = [(x, 50 + 7 * x) for x in range(1, 60)]
    fit = fit_constants(lambda values, moved, before: line(values, points), {"a": 40.0, "b": 6.0})
    assert fit.values["a"] == pytest.approx(50, rel=0.01)
    assert fit.values["b"] == pytest.approx(7, rel=0.01)


def test_what_rows_do_not_tell_stays_at_its_prior():
    fit = fit_constants(
        lambda values, moved, before: np.array([math.log(values["a"] / 10)]), {"a": 10.0, "unseen": 3.0}
    )
    assert fit.values["unseen"] == pytest.approx(3.0)
    assert fit.pulls["unseen"] == pytest.approx(0.0, abs=1e-9)


def test_one_odd_row_does_not_bend_the_constants():
    points = [(x, 50 + 7 * x) for x in range(1, 60)] + [(30, 900.0)]
    fit = fit_constants(lambda values, moved, before: line(values, points), {"a": 50.0, "b": 7.0})
    assert fit.values["b"] == pytest.approx(7, rel=0.02)


def test_pulls_are_in_prior_spreads():
    fit = fit_constants(lambda values, moved, before: np.array([math.log(values["a"] / 20)] * 100), {"a": 10.0})
    assert fit.pulls["a"] == pytest.approx(math.log(fit.values["a"] / 10) / PRIOR_SPREAD)


def test_folds_hold_every_group_once_and_depend_on_the_seed():
    groups = list(range(13))
    folds = folds_of(groups, 5, seed=0)
    assert sorted(group for fold in folds for group in fold) == groups
    assert {len(fold) for fold in folds} == {2, 3}
    assert folds != folds_of(groups, 5, seed=1)
    assert groups == list(range(13))


def test_a_fit_tells_which_constant_it_moved_and_what_came_out_before():
    told = []

    def residuals(values, moved, before):
        told.append((moved, before is None))
        return np.array([math.log(values["a"] / 20), math.log(values["b"] / 3)])

    fit = fit_constants(residuals, {"a": 10.0, "b": 3.0}, rounds=1)
    assert told[:3] == [(None, True), ("a", False), ("b", False)]
    assert fit.values["b"] == pytest.approx(3.0)
