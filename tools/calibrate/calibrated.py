"""The fit of an architecture: its figures, errors in sample, and what is known of every measured configuration."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table

from tools.calibrate.cases import Case, cases_in
from tools.calibrate.evidence import Evidence, family_of
from tools.calibrate.fit import PRIORS, Fit, changed_specs, dealt, fit_jointly, left_out_errors
from tools.validate.prediction import LaterKernels
from tools.validate.report import Errors, error_table, sum_up_errors, table


def constants_table(architecture: str, fit: Fit, priors: Mapping[str, float], case: Case) -> Table:
    """Every fitted figure with its prior."""
    catalog = figures(case)
    cells = [
        (name, f"{priors[name]:g}", f"{value:.4g}", f"{fit.pulls[name]:+.1f}", f"{catalog[name]:g}")
        for name, value in fit.values.items()
    ]
    return table(f"{architecture}: figures", ["figure"], ["prior", "fitted", "pull", "catalog"], cells)


def figures(case: Case) -> dict[str, float]:
    """The numbers of a case's device, by the names of `DeviceSpec.replace`."""
    parts = {part: values for part, values in case.spec.to_dict().items() if isinstance(values, dict)}
    named = {f"{part}_{key}": value for part, values in parts.items() for key, value in values.items()}
    return {name: value for name, value in named.items() if isinstance(value, int | float)}


def grouped(errors: Sequence[tuple[Case, float]]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of each program and of each of its groups."""
    groups: dict[tuple[str, ...], list[tuple[Case, float]]] = {}
    for program in dict.fromkeys(case.program for case, _ in errors):
        groups[(f"all of {program}",)] = own = [pair for pair in errors if pair[0].program == program]
        for pair in sorted(own, key=lambda pair: pair[0].prediction.group):
            groups.setdefault(pair[0].prediction.group, []).append(pair)
    return [
        (group, sum_up_errors([error for _, error in pairs], rows=sum(case.rows for case, _ in pairs)))
        for group, pairs in groups.items()
    ]


def worst(errors: Sequence[tuple[Case, float]], count: int) -> Table:
    """The cases that are predicted worst."""
    ordered = sorted(errors, key=lambda pair: -abs(pair[1]))[:count]
    cells = [(case.program, " ".join(case.prediction.configuration), f"{100 * error:+.1f}") for case, error in ordered]
    return table("worst", ["program", "configuration", "error %"], [], cells)


def evidence_of(cases: Sequence[Case], fit: Fit, priors: Mapping[str, float]) -> list[Evidence]:
    """What is known of each case of an architecture, which may have been measured on several devices."""
    left_out = partial(left_out_errors, cases, fit, priors)
    kinds = (left_out(dealt(cases, 0)), left_out(lambda case: case.source), left_out(lambda case: case.network))
    own_kernels = [
        Evidence(
            family=family_of(case),
            architecture=case.spec.arch,
            kind=case.prediction.evidence[0],
            place=case.prediction.evidence[1],
            rows=case.rows,
            catalog=case.error(case.spec),
            unseen=unseen,
            without_source=source,
            without_network=network,
        )
        for case, unseen, source, network in zip(cases, *kinds, strict=True)
    ]
    return own_kernels + [_later(case, case.prediction.later) for case in cases if case.prediction.later is not None]


def _later(case: Case, kernels: LaterKernels) -> Evidence:
    """How far today's kernels, to which no row was fitted, are off a row of older ones."""
    error, (kind, place) = kernels.cycles() / case.measured - 1.0, kernels.evidence
    return Evidence(
        family=family_of(case),
        architecture=case.spec.arch,
        kind=kind,
        place=place,
        rows=case.rows,
        catalog=error,
        unseen=error,
        without_source=error,
        without_network=error,
        older_release=kernels.measured_release,
    )


def calibrated(folder: Path, programs: Sequence[str], architecture: str) -> tuple[list[Table], list[Evidence]]:
    """Tables of the fit of an architecture, and what is known of its cases; none if there are no cases."""
    own = [case for case in cases_in(folder, programs) if case.spec.arch == architecture]
    if not own:
        return [], []
    priors, fitted = PRIORS[architecture], [case for case in own if case.prediction.fitted]
    catalog = figures(own[0])
    fit = fit_jointly(fitted, priors, start={name: catalog[name] for name in priors})
    specs = changed_specs(own, fit.values)
    seen = [(case, case.error(spec)) for case, spec in zip(own, specs, strict=True)]
    tables = [
        constants_table(architecture, fit, priors, own[0]),
        error_table(f"{architecture}: in sample", grouped(seen)),
        worst(seen, 12),
    ]
    return tables, evidence_of(own, fit, priors)
