"""Least squares with priors, and cross-validation, for models of a few positive constants.

Every constant is fitted as a factor of its prior (a published figure, or a guess): the logarithm of the factor is
drawn to zero, so that what the rows do not tell stays where it was. Residuals are logarithms of predicted over
measured; beyond twice the expected spread they count linearly, so that a single odd row does not bend the constants.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Residuals: TypeAlias = Callable[[Mapping[str, float], str | None, "Vector | None"], Vector]
Case = TypeVar("Case")

SPREAD = 0.04  # expected residual of a good prediction
PRIOR_SPREAD = 0.3  # a constant is within a factor of exp(0.3) of its prior, in two cases of three
LINEAR_BEYOND = 2.0  # spreads
STEP = 0.02  # of the numerical derivative
ROUNDS = 8
TRIES = 4  # of a round, with more damping each time
LEAST_GAIN = 1e-4


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted constants."""

    values: Mapping[str, float]  # By name
    pulls: Mapping[str, float]  # By name, the logarithm of the fitted value over its prior, in prior spreads


def fit_constants(residuals: Residuals, priors: Mapping[str, float], *, rounds: int = ROUNDS) -> Fit:
    """Fits constants to residuals, in at most so many rounds of the Levenberg-Marquardt method.

    Args:
        residuals: Logarithms of predicted over measured, of all cases, for given constants. The function also gets the
            constant that moved and the residuals before, so that it can skip the cases that do not depend on it.
        priors: The expected constants, where the fit begins. One whose name ends in ``_share`` is at most 1.
        rounds: The most rounds.
    """
    prior, unit = np.array(list(priors.values())), np.eye(len(priors))

    def values_at(logs: Vector) -> dict[str, float]:
        pairs = zip(priors, (prior * np.exp(logs)).tolist(), strict=True)
        return {name: min(value, 1.0) if name.endswith("_share") else value for name, value in pairs}

    def costs_of(residuals_there: Vector, logs: Vector) -> Vector:
        scaled = residuals_there / SPREAD
        size = np.maximum(np.abs(scaled), 1e-12)
        linear = np.sqrt(np.maximum(2 * LINEAR_BEYOND * size - LINEAR_BEYOND**2, 0.0)) / size
        return np.concatenate([scaled * np.where(size < LINEAR_BEYOND, 1.0, linear), logs / PRIOR_SPREAD])

    here, damping, gain = np.zeros(len(priors)), 1e-2, 1.0
    errors = residuals(values_at(here), None, None)
    cost = costs_of(errors, here)
    for _ in range(rounds):
        if gain < LEAST_GAIN:
            break
        slopes = np.empty((len(cost), len(priors)))
        for number, name in enumerate(priors):
            moved = here + STEP * unit[number]
            slopes[:, number] = (costs_of(residuals(values_at(moved), name, errors), moved) - cost) / STEP
        gain = 0.0
        for _ in range(TRIES):
            there = here + np.linalg.solve(slopes.T @ slopes + damping * unit, -slopes.T @ cost)
            errors_there = residuals(values_at(there), None, None)
            lower = costs_of(errors_there, there)
            if lower @ lower < cost @ cost:
                gain = float(1 - (lower @ lower) / (cost @ cost))
                here, errors, cost, damping = there, errors_there, lower, damping / 3
                break
            damping *= 5
    return Fit(values=values_at(here), pulls=dict(zip(priors, (here / PRIOR_SPREAD).tolist(), strict=True)))


def folds_of(groups: Sequence[Case], count: int, seed: int) -> list[list[Case]]:
    """Deal groups into folds, in an order that the seed decides."""
    dealt = list(groups)
    random.Random(seed).shuffle(dealt)
    return [dealt[first::count] for first in range(count)]
