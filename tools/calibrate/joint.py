"""One fit of all programs of an architecture: what they share is fitted to all of them.

A program that does not read a figure does not change with it: after the first round most numerical derivatives are
known to be zero.
"""

import tomllib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from device.spec.device_spec import DeviceSpec
from tools.calibrate.cases import Case
from tools.calibrate.fit import Fit, Vector, fit_constants, folds_of

FOLDS = 5


def changed_specs(cases: Sequence[Case], values: Mapping[str, float]) -> list[DeviceSpec]:
    """The device of each case with other figures."""
    changed: dict[tuple[int, frozenset[str]], DeviceSpec] = {}
    keys = [(id(case.spec), case.prediction.fixed) for case in cases]
    for case, key in zip(cases, keys, strict=True):
        if key not in changed:
            changes = {name: value for name, value in values.items() if name not in case.prediction.fixed}
            changed[key] = case.spec.replace(**changes)
    return [changed[key] for key in keys]


def fit_jointly(cases: Sequence[Case], priors: Mapping[str, float]) -> Fit:
    """Fits figures to cases of one architecture, from what they are expected to be."""
    programs = {
        program: [case for case in cases if case.program == program]
        for program in sorted({case.program for case in cases})
    }
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
    """Errors of every case with figures that were fitted without its fold.

    Every fit begins at the priors: a fit that begins at the fit of all cases, and finds nothing better nearby, would
    have seen the cases that it predicts.
    """
    errors: list[tuple[Case, float]] = []
    for fold in folds_of(list(dict.fromkeys(case.fold for case in cases)), FOLDS, seed):
        seen, left = ([case for case in cases if (case.fold in fold) is unseen] for unseen in (False, True))
        values = fit_jointly(seen, priors).values
        errors += [(case, case.error(spec)) for case, spec in zip(left, changed_specs(left, values), strict=True)]
    return errors


PRIORS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    tomllib.loads(Path(__file__).with_name("priors.toml").read_text(encoding="utf-8"))
)  # by architecture and figure
