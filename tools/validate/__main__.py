"""Predict measured rows and show how far off the predictions are.

usage: python -m tools.validate FILE.csv [...] [--worst N] [--overall]

The name of a file says what its rows measure (conv.csv, ...). Rows of one configuration count as one. Every row is
either predicted or listed with the reason why not. What is printed here uses the constants of the device catalog,
which were fitted to rows of this kind; for errors on configurations that a fit has not seen, run tools.calibrate.
"""

import sys
from collections import Counter
from pathlib import Path

from tools.command import run_tool, tool_parser
from tools.validate.report import architecture_errors, console, error_table, group_errors, skipped_table, worst_table
from tools.validate.rows import validate, validator_of
from ttsim.report.formatting import printable


def main() -> None:
    """Validates the files of the command line."""
    parser = tool_parser("tools.validate", __doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv", help="measured rows")
    parser.add_argument("--worst", type=int, default=8, metavar="N", help="configurations listed (default 8)")
    parser.add_argument("--overall", action="store_true", help="one table of all files, by architecture, and no more")
    options = parser.parse_args()
    for path in options.files:  # before any work
        try:
            validator_of(path)
        except ValueError as error:
            parser.error(str(error))
        if not path.is_file():
            parser.error(f"{path}: no such file")
    screen, overall = console(), []
    for path in options.files:
        try:
            predicted, skipped = validate(path)
        except (OSError, ValueError) as error:
            parser.error(printable(str(error)))
        if not predicted:
            ((reason, _),) = Counter(reason for _, reason in skipped).most_common(1)
            parser.error(printable(f"{path}: no row can be predicted; {reason}"))
        overall += [((path.name, *group), errors) for group, errors in architecture_errors(predicted)]
        if not options.overall:
            screen.print(error_table(f"{path.name}: errors with the constants of the catalog", group_errors(predicted)))
            screen.print(worst_table(predicted, options.worst))
            if skipped:
                screen.print(skipped_table(skipped))
    if options.overall:
        screen.print(error_table("errors with the constants of the catalog", overall))


if __name__ == "__main__":
    sys.exit(run_tool("tools.validate", main))
