"""Least squares with priors, and errors of rows left out, for models of a few positive constants.

Every constant is fitted as a factor of its prior (a published figure, or a guess): the logarithm of the factor is
drawn to zero, so that what the rows do not tell stays where it was. Residuals are logarithms of predicted over
measured; beyond twice the expected spread they count linearly, so that a single odd row does not bend the constants.

What a fit without some rows would give follows from the slopes of all residuals at the fit of all rows: the same least
squares, of the rows that are left, with residuals along these slopes. Its minimum is the only one, wherever a search
begins, so the rows that are left out have no part in it but for the point where the slopes were taken.
"""

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import log
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.spec.device_spec import DeviceSpec
from tools.calibrate.cases import Case

Vector: TypeAlias = NDArray[np.float64]
Residuals: TypeAlias = Callable[[Mapping[str, float], str | None, "Vector | None"], Vector]

SPREAD = 0.04  # expected residual of a good prediction
PRIOR_SPREAD = 0.3  # a constant is within a factor of exp(0.3) of its prior, in two cases of three
LINEAR_BEYOND = 2.0  # spreads
STEP = 0.02  # of the numerical derivative
ROUNDS = 8
TRIES = 8  # of a round, with more damping each time: costs have kinks, beyond which a long step may be worse
LEAST_GAIN = 1e-4
LINEAR_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted constants."""

    values: Mapping[str, float]  # By name
    pulls: Mapping[str, float]  # By name, the logarithm of the fitted value over its prior, in prior spreads
    at: Vector  # Logarithms of constants over their priors where the slopes were taken
    residuals: Vector  # There
    slopes: Vector  # Of every residual (rows) along every constant (columns)

    def without(self, left: NDArray[np.bool_], priors: Mapping[str, float]) -> Mapping[str, float]:
        """The constants of a fit without some residuals, by the slopes of the others."""
        slopes, residuals = self.slopes[~left], self.residuals[~left]
        logs, unit = self.at, np.eye(len(self.at))
        for _ in range(LINEAR_ROUNDS):
            scaled = (residuals + slopes @ (logs - self.at)) / SPREAD
            weights = np.minimum(1.0, LINEAR_BEYOND / np.maximum(np.abs(scaled), 1e-12))  # Huber's
            weighted = (slopes / SPREAD) * weights[:, None]
            matrix = weighted.T @ (slopes / SPREAD) + unit / PRIOR_SPREAD**2
            step = np.linalg.solve(matrix, -(weighted.T @ scaled) - logs / PRIOR_SPREAD**2)
            logs = logs + step
            if np.abs(step).max(initial=0.0) < LEAST_GAIN:
                break
        return values_at(priors, logs)


def values_at(priors: Mapping[str, float], logs: Vector) -> dict[str, float]:
    """Constants by the logarithms of their factors; one whose name ends in ``_share`` is at most 1."""
    pairs = zip(priors, (np.array(list(priors.values())) * np.exp(logs)).tolist(), strict=True)
    return {name: min(value, 1.0) if name.endswith("_share") else value for name, value in pairs}


def fit_constants(
    residuals: Residuals,
    priors: Mapping[str, float],
    *,
    rounds: int = ROUNDS,
    start: Mapping[str, float] | None = None,
) -> Fit:
    """Fits constants to residuals, in at most so many rounds of the Levenberg-Marquardt method.

    Args:
        residuals: Logarithms of predicted over measured, of all cases, for given constants. The function also gets the
            constant that moved and the residuals before, so that it can skip the cases that do not depend on it.
        priors: The expected constants, where the fit begins. One whose name ends in ``_share`` is at most 1.
        rounds: The most rounds.
        start: Where the search begins; None for the priors.
    """
    unit = np.eye(len(priors))

    def costs_of(residuals_there: Vector, logs: Vector) -> Vector:
        scaled = residuals_there / SPREAD
        size = np.maximum(np.abs(scaled), 1e-12)
        linear = np.sqrt(np.maximum(2 * LINEAR_BEYOND * size - LINEAR_BEYOND**2, 0.0)) / size
        return np.concatenate([scaled * np.where(size < LINEAR_BEYOND, 1.0, linear), logs / PRIOR_SPREAD])

    here, damping, gain = np.array([log((start or priors)[name] / priors[name]) for name in priors]), 1e-2, 1.0
    errors = residuals(values_at(priors, here), None, None)
    cost, at, there_errors = costs_of(errors, here), here, errors
    moves = np.zeros((len(errors), len(priors)))
    for _ in range(rounds):
        if gain < LEAST_GAIN:
            break
        slopes, at, there_errors = np.empty((len(cost), len(priors))), here, errors
        for number, name in enumerate(priors):
            moved = here + STEP * unit[number]
            found = residuals(values_at(priors, moved), name, errors)
            moves[:, number] = (found - errors) / STEP
            slopes[:, number] = (costs_of(found, moved) - cost) / STEP
        gain, squares = 0.0, slopes.T @ slopes
        for _ in range(TRIES):
            damped = squares + damping * np.diag(np.diag(squares))
            there = here + np.linalg.solve(damped, -slopes.T @ cost)
            errors_there = residuals(values_at(priors, there), None, None)
            lower = costs_of(errors_there, there)
            if lower @ lower < cost @ cost:
                gain = float(1 - (lower @ lower) / (cost @ cost))
                here, errors, cost, damping = there, errors_there, lower, damping / 3
                break
            damping *= 5
    pulls = dict(zip(priors, (here / PRIOR_SPREAD).tolist(), strict=True))
    return Fit(values_at(priors, here), pulls, at, there_errors, moves)


FOLDS = 5


def changed_specs(cases: Sequence[Case], values: Mapping[str, float]) -> list[DeviceSpec]:
    """The device of each case with other figures."""

    @cache
    def changed(spec: int) -> DeviceSpec:
        return specs[spec].replace(**values)

    specs = {id(case.spec): case.spec for case in cases}
    return [changed(id(case.spec)) for case in cases]


def by_program(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """The cases of each program, in the order of a joint fit's residuals."""
    names = sorted({case.program for case in cases})
    return {program: [case for case in cases if case.program == program] for program in names}


def fit_jointly(cases: Sequence[Case], priors: Mapping[str, float], start: Mapping[str, float] | None = None) -> Fit:
    """Fits figures to cases of one architecture, from what they are expected to be; `start` as of `fit_constants`."""
    programs = by_program(cases)
    reads: dict[tuple[str, str], bool] = {}
    last_rows = np.cumsum([sum(case.count for case in own) for own in programs.values()])

    def residuals(values: Mapping[str, float], moved: str | None, before: Vector | None) -> Vector:
        """All residuals; only those of programs that read the moved figure are worked out anew."""
        known = [None] * len(programs) if before is None else np.split(before, last_rows[:-1])
        rows = []
        for (program, own), same in zip(programs.items(), known, strict=True):
            if same is not None and moved is not None and not reads.get((program, moved), True):
                rows.append(same)
                continue
            pairs = zip(own, changed_specs(own, values), strict=True)
            rows.append(np.array(list(chain.from_iterable(case.residuals(spec) for case, spec in pairs))))
            if same is not None and moved is not None:
                reads[program, moved] = bool((rows[-1] != same).any())
        return np.concatenate(rows)

    return fit_constants(residuals, priors, start=start)


def dealt(cases: Sequence[Case], seed: int) -> Callable[[Case], int]:
    """Which of `FOLDS` folds a case is in; cases of one configuration are in one."""
    folds = list(dict.fromkeys(case.fold for case in cases))
    random.Random(seed).shuffle(folds)
    numbers = {fold: number % FOLDS for number, fold in enumerate(folds)}
    return lambda case: numbers[case.fold]


def left_out_errors(
    cases: Sequence[Case], fit: Fit, priors: Mapping[str, float], key: Callable[[Case], Any]
) -> list[float]:
    """The error of every case with figures of a fit without the cases that agree with it in a key.

    `fit` is the joint fit of the cases that are fitted.
    """
    fitted = [case for own in by_program([case for case in cases if case.prediction.fitted]).values() for case in own]
    owners = [own for case in fitted for own in [key(case)] * case.count]
    errors: dict[int, float] = {}
    for fold in dict.fromkeys(map(key, cases)):
        values = fit.without(np.array([owner == fold for owner in owners], bool), priors)
        left = [case for case in cases if key(case) == fold]
        for case, spec in zip(left, changed_specs(left, values), strict=True):
            errors[id(case)] = case.error(spec)
    return [errors[id(case)] for case in cases]


PRIORS: Final[Mapping[str, Mapping[str, float]]] = tomllib.loads(
    Path(__file__).with_name("priors.toml").read_text(encoding="utf-8")
)  # by architecture and figure
