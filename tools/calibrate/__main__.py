"""Repeat the fits of the device catalog's figures and show what they used.

usage: python -m tools.calibrate [FOLDER] [--arch NAME ...] [--programs NAME ...] [--seeds N] [--no-unseen]
                                [--sources] [--bars]

FOLDER holds rows as tests/data/measured does, which is the default. All programs of an architecture are fitted
together, since they share the figures of the machine. Prints the prior and the fitted value of every figure beside the
catalog's, and errors by program and group: in sample, and cross-validated by configuration (5 folds; of convolutions,
what each core does is the configuration). With several seeds every case counts once for each way to deal the folds.
--sources also leaves out each source (a network, a thread) whole; --bars prints the error bars that reports state.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from tools.calibrate.bars import bars, bars_text
from tools.calibrate.cases import PROGRAMS, Case, cases_in
from tools.calibrate.fit import PRIORS, Fit, changed_specs, cross_validated_errors, fit_jointly, left_out_errors
from tools.command import run_tool, tool_parser
from tools.validate.report import Errors, console, error_table, sum_up_errors, table
from tools.validate.rows import MEASURED


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


def main() -> None:
    """Fit and print."""
    parser = tool_parser("tools.calibrate", __doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=MEASURED, metavar="FOLDER", help="where PROGRAM.csv lie"
    )
    parser.add_argument("--arch", nargs="+", choices=list(PRIORS), metavar="NAME", help=", ".join(PRIORS))
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="ways to deal the folds (default 1)")
    parser.add_argument("--no-unseen", action="store_true", help="no cross-validation, which takes minutes")
    parser.add_argument("--sources", action="store_true", help="also leave out each source (a network) whole")
    parser.add_argument("--bars", action="store_true", help="print the tables of ops/passes/expected_errors.toml")
    options = parser.parse_args()
    cases = cases_in(options.folder, options.programs or ())
    if not cases:
        raise ValueError(f"{options.folder}: no row can be used; give a folder of measured rows, as conv.csv has them")
    screen = console()
    evidence: list[tuple[Case, float]] = []
    for architecture in options.arch or PRIORS:
        own = [case for case in cases if case.spec.arch == architecture]
        if not own:
            continue
        priors, fitted = PRIORS[architecture], [case for case in own if case.prediction.fitted]
        fit = fit_jointly(fitted, priors)
        screen.print(constants_table(architecture, fit, priors, own[0]))
        specs = changed_specs(own, fit.values)
        seen = [(case, case.error(spec)) for case, spec in zip(own, specs, strict=True)]
        screen.print(error_table(f"{architecture}: in sample", grouped(seen)))
        screen.print(worst(seen, 12))
        if options.no_unseen:
            continue
        unseen = [pair for seed in range(options.seeds) for pair in cross_validated_errors(own, priors, seed=seed)]
        screen.print(error_table(f"{architecture}: cross-validated by configuration", grouped(unseen)))
        evidence += unseen
        if options.sources:
            sources = [{source} for source in dict.fromkeys(case.source for case in own)]
            alone = left_out_errors(own, priors, sources, lambda case: case.source)
            screen.print(error_table(f"{architecture}: each source left out whole", grouped(alone)))
    if options.bars:
        print(bars_text(bars(evidence)))


if __name__ == "__main__":
    sys.exit(run_tool("tools.calibrate", main))
