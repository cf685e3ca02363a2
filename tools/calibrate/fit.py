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
Case = TypeVar("Case")

SPREAD = 0.04  # expected residual of a good prediction
PRIOR_SPREAD = 0.3  # a constant is within a factor of exp(0.3) of its prior, in two cases of three
LINEAR_BEYOND = 2.0  # spreads
STEP = 0.02  # of the numerical derivative
ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted constants.

    Attributes:
        values: By name.
        pulls: By name, the logarithm of the fitted value over its prior, in prior spreads.
    """

    values: Mapping[str, float]
    pulls: Mapping[str, float]


def fit_constants(
    residuals: Callable[[Mapping[str, float]], Sequence[float]], priors: Mapping[str, float], *, rounds: int = ROUNDS
) -> Fit:
    """Fit constants to residuals.

    Args:
        residuals: Logarithms of predicted over measured, of all cases, for some constants.
        priors: What the constants are expected to be.
        rounds: Most steps of the Levenberg-Marquardt method.
    """
    names = list(priors)
    prior = np.array([priors[name] for name in names])

    def cost_vector(logs: Vector) -> Vector:
        found = np.array(residuals(dict(zip(names, prior * np.exp(logs), strict=True)))) / SPREAD
        size = np.maximum(np.abs(found), 1e-12)
        linear = np.sqrt(np.maximum(2 * LINEAR_BEYOND * size - LINEAR_BEYOND**2, 0.0)) / size
        return np.concatenate([found * np.where(size < LINEAR_BEYOND, 1.0, linear), logs / PRIOR_SPREAD])

    logs = _levenberg_marquardt(cost_vector, np.zeros(len(names)), rounds)
    values = prior * np.exp(logs)
    return Fit(
        values=dict(zip(names, values.tolist(), strict=True)),
        pulls=dict(zip(names, (logs / PRIOR_SPREAD).tolist(), strict=True)),
    )


def _levenberg_marquardt(cost_vector: Callable[[Vector], Vector], start: Vector, rounds: int) -> Vector:
    here, cost, damping = start, cost_vector(start), 1e-2
    unit = np.eye(len(start))
    for _ in range(rounds):
        slopes = np.stack([(cost_vector(here + STEP * axis) - cost) / STEP for axis in unit], axis=1)
        for _ in range(4):
            step = np.linalg.solve(slopes.T @ slopes + damping * unit, -slopes.T @ cost)
            there = cost_vector(here + step)
            if there @ there < cost @ cost:
                break
            damping *= 5
        else:
            return here
        gain = 1 - (there @ there) / (cost @ cost)
        here, cost, damping = here + step, there, damping / 3
        if gain < 1e-4:
            return here
    return here


def folds_of(groups: Sequence[Case], count: int, seed: int) -> list[list[Case]]:
    """Deal groups into folds, in an order that the seed decides."""
    dealt = list(groups)
    random.Random(seed).shuffle(dealt)
    return [dealt[first::count] for first in range(count)]
