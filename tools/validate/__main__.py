"""Predict measured rows and show how far off the predictions are.

usage: python -m tools.validate FILE.csv [...] [--json OUT] [--worst N] [--overall]

The name of a file says what its rows measure (conv.csv, ...). Rows of one configuration count as one. Every row is
either predicted or listed with the reason why not. What is printed here uses the constants of the device catalog,
which were fitted to rows of this kind; for errors on configurations that a fit has not seen, run tools.calibrate.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from device.errors import TTSimError
from tools.command import run_tool
from tools.validate.prediction import NotPredicted, NotPredictedError, Prediction, Row
from tools.validate.registry import Validator, validator_of
from tools.validate.report import architecture_errors, console, error_table, group_errors, skipped_table, worst_table
from ttsim.report.formatting import printable

LARGEST = 1 << 20  # of a size in a row; larger ones are no measurement, and would be planned for ever
COUNTS = frozenset(  # columns of which there is at least one
    [
        "M",
        "K",
        "N",
        "batch",
        "cores",
        "cores_nhw",
        "cores_c",
        "cores_c_in",
        "in_h",
        "in_w",
        "in_c",
        "out_c",
        "k",
        "k_h",
        "k_w",
        "s_h",
        "s_w",
        "d_h",
        "d_w",
        "groups",
    ]
) | {"num_transactions", "transaction_bytes", "subordinates"}
LONGEST = 12  # digits of a number that an error shows
UNBOUNDED = ("value", "row", "commit")  # what was measured, the number of a row, and a hash that may be digits alone


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tools.validate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.csv", help="measured rows")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every row with its prediction")
    parser.add_argument("--worst", type=int, default=8, metavar="N", help="configurations listed (default 8)")
    parser.add_argument("--overall", action="store_true", help="one table of all files, by architecture, and no more")
    return parser


def refuse_unreadable(parser: argparse.ArgumentParser, files: list[Path]) -> None:
    """Ends the program, before any work, over a file that is not there or that no validator knows."""
    for path in files:
        try:
            validator_of(path)
        except ValueError as error:
            parser.error(str(error))
        if not path.is_file():
            parser.error(f"{path}: no such file")


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file.

    Raises:
        ValueError: It has none, or is no text.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except csv.Error as error:
        raise ValueError(f"{path}: no CSV file: {error}") from error
    if not rows:
        raise ValueError(f"{path}: there are no rows under its header; give a file with measured rows")
    return rows


def validate(path: Path) -> tuple[list[Prediction], list[NotPredicted]]:
    """Predict all rows of a file that can be predicted; raises what the simulator raises."""
    validator = validator_of(path)
    predicted: list[Prediction] = []
    skipped: list[NotPredicted] = []
    for row in read_rows(path):
        try:
            one = understood(row, validator)
        except NotPredictedError as error:
            skipped.append(NotPredicted(row, str(error)))
            continue
        if not one.predicted_ns > 0:  # worked out here, where what a model raises is no row that is not understood
            raise AssertionError(f"{path}: {' '.join(one.configuration)} is predicted to take {one.predicted_ns} ns")
        predicted.append(one)
    return predicted, skipped


def understood(row: Row, validator: Validator) -> Prediction:
    """What a row says, to be predicted.

    Raises:
        NotPredictedError: It can not or should not be predicted, is not understood, or measured no time.
    """
    require_plausible(row)
    try:
        one = validator(row)
    except NotPredictedError:
        raise
    except (TTSimError, ValueError, LookupError, ArithmeticError) as error:
        raise NotPredictedError(f"the row is not understood: {type(error).__name__}: {error}") from error
    if not 0 < one.measured_ns < float("inf"):
        raise NotPredictedError(f"the measured time must be a positive number of ns, not {one.measured_ns}")
    return one


def require_plausible(row: Row) -> None:
    """Refuses what no measurement can have said.

    Raises:
        NotPredictedError: A field is missing, a size is larger than any that was ever measured, or there is none of
            something.
    """
    for name, value in row.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise NotPredictedError("the row has more or fewer fields than the header")
        if (
            value.isdecimal()
            and not (name.endswith("_ns") or name in UNBOUNDED)
            and (len(value) > LONGEST or int(value) > LARGEST)
        ):
            raise NotPredictedError(f"{name} must be at most {LARGEST}, not {value[:LONGEST]}")
        if name in COUNTS and (value.startswith("-") or value.strip("0") == "" != value):
            raise NotPredictedError(f"{name} must be at least 1, not {value[:LONGEST]}")


def json_rows(path: Path, predicted: list[Prediction], skipped: list[NotPredicted]) -> list[dict[str, Any]]:
    """Every input column, and what became of the row."""
    rows: list[dict[str, Any]] = [
        {
            **one.row,
            "file": path.name,
            "measured_ns": one.measured_ns,
            "predicted_ns": one.predicted_ns,
            "counted": one.counted,
            "remark": one.remark,
        }
        for one in predicted
    ]
    return rows + [{**one.row, "file": path.name, "not_predicted": one.reason} for one in skipped]


def main() -> None:
    """Validate the files of the command line."""
    parser = build_parser()
    options = parser.parse_args()
    refuse_unreadable(parser, options.files)
    screen, rows, overall = console(), [], []
    for path in options.files:
        try:
            predicted, skipped = validate(path)
        except (OSError, ValueError) as error:
            parser.error(printable(str(error)))
        if not predicted:
            reasons = Counter(one.reason for one in skipped)
            parser.error(printable(f"{path}: no row can be predicted; {reasons.most_common(1)[0][0]}"))
        rows += json_rows(path, predicted, skipped)
        overall += [((path.name, *group), errors) for group, errors in architecture_errors(predicted)]
        if options.overall:
            continue
        if predicted:
            screen.print(error_table(f"{path.name}: errors with the constants of the catalog", group_errors(predicted)))
            screen.print(worst_table(predicted, options.worst))
        if skipped:
            screen.print(skipped_table(skipped))
    if options.overall:
        screen.print(error_table("errors with the constants of the catalog", overall))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_tool("tools.validate", main))
