"""Frozen figures as JSON and CSV text: the same bytes for the same figures."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Final

FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that a spreadsheet runs


def text(document: dict[str, Any]) -> str:
    """Indented, without NaN (which is no JSON): an infinite or undefined figure becomes null."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """A line of column names, then one for each record; what a record does not know is empty.

    A text that a spreadsheet would run as a formula begins with an apostrophe; numbers stay numbers.
    """
    written = StringIO(newline="")
    writer = csv.DictWriter(written, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)
    return written.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def plain(value: Any) -> Any:
    """Only what JSON has."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
