"""Least squares with priors, and cross-validation, for models of a few positive constants.

Every constant is fitted as a factor of its prior (a published figure, or a guess): the logarithm of the factor is
drawn to zero, so that what the rows do not tell stays where it was. Residuals are logarithms of predicted over
measured; beyond twice the expected spread they count linearly, so that a single odd row does not bend the constants.
"""

import random
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
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


FOLDS = 5


def changed_specs(cases: Sequence[Case], values: Mapping[str, float]) -> list[DeviceSpec]:
    """The device of each case with other figures."""

    @cache
    def changed(spec: int) -> DeviceSpec:
        return specs[spec].replace(**values)

    specs = {id(case.spec): case.spec for case in cases}
    return [changed(id(case.spec)) for case in cases]


def fit_jointly(cases: Sequence[Case], priors: Mapping[str, float]) -> Fit:
    """Fits figures to cases of one architecture, from what they are expected to be."""
    names = sorted({case.program for case in cases})
    programs = {program: [case for case in cases if case.program == program] for program in names}
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

    return fit_constants(residuals, priors)


def cross_validated_errors(
    cases: Sequence[Case], priors: Mapping[str, float], *, seed: int
) -> list[tuple[Case, float]]:
    """Errors of every case with figures that were fitted without its fold, of `FOLDS` by configuration."""
    folds = list(dict.fromkeys(case.fold for case in cases))
    random.Random(seed).shuffle(folds)
    return left_out_errors(cases, priors, [set(folds[first::FOLDS]) for first in range(FOLDS)], lambda case: case.fold)


def left_out_errors(
    cases: Sequence[Case], priors: Mapping[str, float], folds: Sequence[Collection[Any]], key: Callable[[Case], Any]
) -> list[tuple[Case, float]]:
    """Errors of every case with figures that were fitted without the cases whose key is in the same fold.

    Every fit begins at the priors: a fit that begins at the fit of all cases, and finds nothing better nearby, would
    have seen the cases that it predicts.
    """
    errors: list[tuple[Case, float]] = []
    for fold in folds:
        seen, left = ([case for case in cases if (key(case) in fold) is unseen] for unseen in (False, True))
        values = fit_jointly([case for case in seen if case.prediction.fitted], priors).values
        errors += [(case, case.error(spec)) for case, spec in zip(left, changed_specs(left, values), strict=True)]
    return errors


PRIORS: Final[Mapping[str, Mapping[str, float]]] = tomllib.loads(
    Path(__file__).with_name("priors.toml").read_text(encoding="utf-8")
)  # by architecture and figure
