"""Repeat the fits of the device catalog's figures and show what they used.

usage: python -m tools.calibrate [FOLDER] [--arch NAME ...] [--programs NAME ...] [--write]

FOLDER holds rows as tests/data/measured does, which is the default. All programs of an architecture are fitted
together, since they share the figures of the machine. Prints the prior and the fitted value of every figure beside the
catalog's; errors by program and group in sample; and errors by family: with the catalog's figures, cross-validated by
configuration (5 folds; of convolutions, what each core does is the configuration), and with each source (a file of a
repository, a thread) and each network left out whole. --write writes error bars (ops/passes/expected_errors.toml) and
the table of docs/reference/cycles.md.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tools.calibrate.bars import bars, bars_text
from tools.calibrate.calibrated import calibrated
from tools.calibrate.cases import PROGRAMS
from tools.calibrate.evidence import HEADINGS, Evidence, cells_of, markdown, summed
from tools.calibrate.fit import PRIORS
from tools.command import run_tool, tool_parser
from tools.validate.report import console, table
from tools.validate.rows import MEASURED

ROOT: Final = Path(__file__).resolve().parents[2]
BARS: Final = ROOT / "ops" / "passes" / "expected_errors.toml"
DOCUMENT: Final = ROOT / "docs" / "reference" / "cycles.md"
BEGIN, END = "<!-- python -m tools.calibrate --write -->\n", "<!-- end -->\n"


def write(evidence: Sequence[Evidence]) -> None:
    """Writes the error bars below the comment of their file, and the table of the document."""
    comment = BARS.read_text(encoding="utf-8").partition("\n\n")[0]
    BARS.write_text(f"{comment}\n\n{bars_text(bars(evidence))}\n", encoding="utf-8")
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    text = f"{before}{BEGIN}\n{markdown(summed(evidence, shares_of(evidence)))}\n{END}{rest.partition(END)[2]}"
    DOCUMENT.write_text(text, encoding="utf-8")


def shares_of(evidence: Sequence[Evidence]) -> dict[tuple[str, str, str], float]:
    """The error bar of each class of programs, as `ops.passes.cycles.ExpectedError.share`."""
    return {key: max(bar.mean, bar.within / 2) for key, bar in bars(evidence).items()}


def main() -> None:
    """Fit and print."""
    parser = tool_parser("tools.calibrate", __doc__)
    parser.add_argument(
        "folder", nargs="?", type=Path, default=MEASURED, metavar="FOLDER", help="where PROGRAM.csv lie"
    )
    parser.add_argument("--arch", nargs="+", choices=list(PRIORS), metavar="NAME", help=", ".join(PRIORS))
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--write", action="store_true", help="write the error bars and the table of the document")
    options = parser.parse_args()
    work, architectures = partial(calibrated, options.folder, options.programs or ()), options.arch or list(PRIORS)
    if len(architectures) == 1:
        found = [work(architectures[0])]
    else:
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as team:
            found = list(team.map(work, architectures))
    evidence = [case for _, own in found for case in own]
    if not evidence:
        raise ValueError(f"{options.folder}: no row can be used; give a folder of measured rows, as conv.csv has them")
    screen = console()
    for printed in (printed for tables, _ in found for printed in tables):
        screen.print(printed)
    rows = summed(evidence, shares_of(evidence))
    screen.print(table("errors by family", HEADINGS[:2], HEADINGS[2:], map(cells_of, rows)))
    if options.write:
        write(evidence)


if __name__ == "__main__":
    sys.exit(run_tool("tools.calibrate", main))
