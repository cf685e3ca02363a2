"""One fit of all programs of an architecture: what they share is fitted to all of them.

A program that does not read a figure does not change with it, so that most of the numerical derivatives are known to be
zero after the first round.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from device.spec.device_spec import DeviceSpec
from tools.calibrate.cases import Case
from tools.calibrate.fit import Fit, Vector, fit_constants, folds_of

FOLDS = 5


def changed_specs(cases: Sequence[Case], values: Mapping[str, float]) -> list[DeviceSpec]:
    """The device of each case with other figures."""
    made: dict[tuple[int, frozenset[str]], DeviceSpec] = {}
    for case in cases:
        key = (id(case.spec), case.held)
        if key not in made:
            changes = {name: one for name, one in values.items() if name not in case.held}
            made[key] = case.spec.replace(**changes)
    return [made[id(case.spec), case.held] for case in cases]


def fit_jointly(cases: Sequence[Case], priors: Mapping[str, float]) -> Fit:
    """Fit figures to cases of one architecture, from what they are expected to be."""
    programs = sorted({case.program for case in cases})
    parts = {program: [case for case in cases if case.program == program] for program in programs}
    reads: dict[tuple[str, str], bool] = {}

    def of_program(program: str, values: Mapping[str, float]) -> Vector:
        part = parts[program]
        specs = changed_specs(part, values)
        return np.array(list(chain.from_iterable(c.residuals(s) for c, s in zip(part, specs, strict=True))))

    def residuals(values: Mapping[str, float], moved: str | None, before: Vector | None) -> Vector:
        """All residuals; only those of programs that read the moved figure are worked out anew."""
        made, at = [], 0
        for program in programs:
            known = None if before is None else before[at : at + sizes[program]]
            at += sizes[program]
            if known is None or moved is None or reads.get((program, moved), True):
                found = of_program(program, values)
                if moved is not None and known is not None:
                    reads[program, moved] = bool((found != known).any())
                known = found
            made.append(known)
        return np.concatenate(made)

    sizes = {program: len(of_program(program, priors)) for program in programs}
    return fit_constants(residuals, priors)


def cross_validated_errors(
    cases: Sequence[Case], priors: Mapping[str, float], *, seed: int
) -> list[tuple[Case, float]]:
    """Errors of every case with figures that were fitted without its fold.

    Every fit begins at the priors: one that began at the fit of all cases, and found nothing better nearby, would have
    seen what it is to predict.
    """
    names = list(dict.fromkeys((case.program, case.fold) for case in cases))
    errors: list[tuple[Case, float]] = []
    for fold in folds_of(names, FOLDS, seed):
        unseen = set(fold)
        seen = [case for case in cases if (case.program, case.fold) not in unseen]
        values = fit_jointly(seen, priors).values
        left = [case for case in cases if (case.program, case.fold) in unseen]
        errors += [(case, case.error(spec)) for case, spec in zip(left, changed_specs(left, values), strict=True)]
    return errors
