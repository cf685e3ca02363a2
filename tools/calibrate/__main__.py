"""Repeat the fits of the device catalog's figures and show what they used.

usage: python -m tools.calibrate [FOLDER] [--arch NAME ...] [--programs NAME ...] [--seeds N] [--no-unseen]

FOLDER holds rows as tests/data/measured does, which is the default. All programs of an architecture are fitted
together, since they share the figures of the machine. Prints the prior and the fitted value of every figure beside the
catalog's, and errors by program and group: in sample, and cross-validated by configuration (5 folds; of convolutions,
what each core does is the configuration). With several seeds every case counts once for each way to deal the folds.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from tools.calibrate.cases import READERS, Case, cases_in
from tools.calibrate.fit import Fit
from tools.calibrate.joint import PRIORS, changed_specs, cross_validated_errors, fit_jointly
from tools.command import run_tool
from tools.validate.report import Errors, console, error_table, sum_up_errors

ROWS = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured"


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tools.calibrate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROWS, metavar="FOLDER", help="where PROGRAM.csv lie")
    parser.add_argument("--arch", nargs="+", choices=list(PRIORS), metavar="NAME", help=", ".join(PRIORS))
    parser.add_argument("--programs", nargs="+", choices=list(READERS), metavar="NAME", help=", ".join(READERS))
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="ways to deal the folds (default 1)")
    parser.add_argument("--no-unseen", action="store_true", help="no cross-validation, which takes minutes")
    return parser


def constants_table(architecture: str, fit: Fit, priors: dict[str, float], case: Case) -> Table:
    """Every fitted figure with its prior."""
    table = Table(title=f"{architecture}: figures")
    table.add_column("figure")
    for heading in ("prior", "fitted", "pull", "catalog"):
        table.add_column(heading, justify="right")
    catalog = figures(case)
    for name, value in fit.values.items():
        table.add_row(name, f"{priors[name]:g}", f"{value:.4g}", f"{fit.pulls[name]:+.1f}", f"{catalog[name]:g}")
    return table


def figures(case: Case) -> dict[str, float]:
    """The numbers of a case's device, by the names of `DeviceSpec.replace`."""
    return {
        f"{part}_{key}": value
        for part, table in case.spec.to_dict().items()
        if isinstance(table, dict)
        for key, value in table.items()
        if isinstance(value, int | float)
    }


def grouped(errors: Sequence[tuple[Case, float]]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of each program and of each of its groups."""
    found: list[tuple[tuple[str, ...], Errors]] = []
    for program in dict.fromkeys(case.program for case, _ in errors):
        own = [pair for pair in errors if pair[0].program == program]
        found.append(((f"all of {program}",), _sum(own)))
        for group in sorted({case.group for case, _ in own}):
            found.append((group, _sum([pair for pair in own if pair[0].group == group])))
    return found


def _sum(errors: Sequence[tuple[Case, float]]) -> Errors:
    return sum_up_errors([error for _, error in errors], rows=sum(case.rows for case, _ in errors))


def worst(errors: Sequence[tuple[Case, float]], count: int) -> Table:
    """The cases that are predicted worst."""
    table = Table(title="worst")
    for heading in ("program", "configuration", "error %"):
        table.add_column(heading)
    ordered = sorted(errors, key=lambda pair: -abs(pair[1]))
    for case, error in ordered[:count]:
        table.add_row(case.program, " ".join(case.configuration), f"{100 * error:+.1f}")
    return table


def main() -> None:
    """Fit and print."""
    options = build_parser().parse_args()
    cases = cases_in(options.folder, options.programs or ())
    if not cases:
        raise ValueError(f"{options.folder}: no row can be used; give a folder of measured rows, as conv.csv has them")
    screen = console()
    for architecture in options.arch or PRIORS:
        own = [case for case in cases if case.architecture == architecture]
        if not own:
            continue
        priors = dict(PRIORS[architecture])
        fit = fit_jointly(own, priors)
        screen.print(constants_table(architecture, fit, priors, own[0]))
        specs = changed_specs(own, fit.values)
        seen = [(case, case.error(spec)) for case, spec in zip(own, specs, strict=True)]
        screen.print(error_table(f"{architecture}: in sample", grouped(seen)))
        screen.print(worst(seen, 12))
        if options.no_unseen:
            continue
        unseen = [pair for seed in range(options.seeds) for pair in cross_validated_errors(own, priors, seed=seed)]
        screen.print(error_table(f"{architecture}: cross-validated by configuration", grouped(unseen)))


if __name__ == "__main__":
    sys.exit(run_tool("tools.calibrate", main))
