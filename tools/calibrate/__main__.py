"""Repeat the fit of the convolution's constants and show what it used.

usage: python -m tools.calibrate [FILE.csv] [--seeds N]

FILE.csv holds rows as tests/data/measured/conv.csv does, which is the default. Prints the cases used, the prior and the
fitted value of every constant beside the catalog's, and errors by device, shard scheme and fidelity: in sample, and
cross-validated by configuration (5 folds; what each core does is the configuration, so that halves of one image do not
vouch for each other). With several seeds every case counts once for each way to deal the folds.
"""

import argparse
import csv
import sys
from pathlib import Path

from rich.table import Table

from ops.programs.conv2d.costs import ConvCosts
from tools.calibrate.conv import PRIORS, ConvCase, conv_cases, cross_validated_errors, fit_conv, predicted_error
from tools.calibrate.fit import Fit
from tools.command import run_tool
from tools.validate.report import console, error_table
from tools.validate.summary import Errors, sum_up_errors

ROWS = Path(__file__).resolve().parents[2] / "tests" / "data" / "measured" / "conv.csv"


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tools.calibrate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=ROWS, metavar="FILE.csv", help="measured convolutions")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="ways to deal the folds (default 1)")
    return parser


def constants_table(architecture: str, fit: Fit, cases: list[ConvCase]) -> Table:
    """Every fitted constant with its prior."""
    table = Table(title=f"{architecture}: constants of ConvCosts")
    table.add_column("constant")
    for heading in ("prior", "fitted", "pull", "catalog"):
        table.add_column(heading, justify="right")
    spec = next(case.spec for case in cases if case.architecture == architecture and not case.older)
    catalog = spec.costs_of(ConvCosts)
    for name, value in fit.values.items():
        prior = PRIORS[architecture][name]
        table.add_row(name, f"{prior:g}", f"{value:.4g}", f"{fit.pulls[name]:+.1f}", f"{getattr(catalog, name):g}")
    return table


def grouped(errors: list[tuple[ConvCase, float]]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of all cases and of each group."""
    names = [("all",), *sorted({case.group for case, _ in errors})]
    parts = [[pair for pair in errors if name in (("all",), pair[0].group)] for name in names]
    return [
        (name, sum_up_errors([error for _, error in part], rows=sum(case.rows for case, _ in part)))
        for name, part in zip(names, parts, strict=True)
    ]


def main() -> None:
    """Fit and print."""
    options = build_parser().parse_args()
    with options.file.open(encoding="utf-8", newline="") as lines:
        cases = conv_cases(csv.DictReader(lines))
    if not cases:
        raise ValueError(f"{options.file}: no row can be used; give measured convolutions, as conv.csv has them")
    screen = console()
    for architecture in PRIORS:
        own = [case for case in cases if case.architecture == architecture]
        if not own:
            continue
        fit = fit_conv(cases, architecture)
        screen.print(constants_table(architecture, fit, cases))
        seen = [(case, predicted_error(case, fit.values)) for case in own]
        screen.print(error_table(f"{architecture}: in sample", grouped(seen)))
        unseen = [
            pair for seed in range(options.seeds) for pair in cross_validated_errors(cases, architecture, seed=seed)
        ]
        screen.print(error_table(f"{architecture}: cross-validated by configuration", grouped(unseen)))


if __name__ == "__main__":
    sys.exit(run_tool("tools.calibrate", main))
