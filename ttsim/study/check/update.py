"""Writes new budgets into a file in place of the old budgets; comments, order and everything else stay."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

from device.errors import ArgumentError, shown
from ttsim.study.check.budgets import OPERATION_CYCLES, OPERATIONS, BudgetFile, Names, Number, entry_spans
from ttsim.study.check.verdicts import Finding, Verdict, cycles_of, described, plain_figure

LONGEST_LINE: Final = 120  # characters of a list on one line
BYTE_ORDER_MARK: Final = "\ufeff"
# The value behind a key: a number, or a list of numbers and names without comments; a comment may follow
VALUE: Final = r"""[-+\w.]+|\[(?:[-+\w.,\s]|"[^"\\\n]*"|'[^'\n]*')*\]"""

Value = Number | Names | tuple[int, ...]


def updated(file: BudgetFile, findings: Sequence[Finding]) -> tuple[str, int]:
    """The text of a file in which measured figures replace budgets that do not hold, and the number of changes.

    Raises ArgumentError, which names the entry and the figure, if a figure cannot be replaced safely.
    """
    spans = entry_spans(file.text, len(file.budgets))
    text, expected, count = file.text, deepcopy(file.document), 0
    for number, budget in reversed([*enumerate(file.budgets)]):  # from the end, so that earlier places stay
        values = dict(_new_values([finding for finding in findings if finding.budget is budget]))
        where = f"{file.path}:{budget.line}: budget {shown(budget.name)}"
        if values and not spans:
            raise ArgumentError(f"{where}: --update reads [[budget]] tables only; write every entry as one")
        start, end = spans[number] if spans else (0, 0)
        section = text[start:end]
        for name, value in values.items():
            section, found = _replaced(section, name, value)
            if found != 1:
                raise ArgumentError(
                    f"{where}: --update finds no plain {name} = ... on a line of its own; write {name} so, a list "
                    "without comments, or change it by hand"
                )
        text = text[:start] + section + text[end:]
        expected["budget"][number] |= {name: plain_figure(value) for name, value in values.items()}
        count += len(values)
    if tomllib.loads(text.removeprefix(BYTE_ORDER_MARK)) != expected:
        raise ArgumentError(f"{file.path}: --update would change more than figures; change them by hand")
    return text, count


def _new_values(findings: Sequence[Finding]) -> Iterator[tuple[str, Value]]:
    """The figures of an entry to write, by key."""
    wrong = [finding for finding in findings if finding.verdict is not Verdict.HOLDS]
    for finding in wrong:
        if finding.measured is not None:
            yield finding.figure, finding.measured
    budget, report = findings[0].budget, findings[0].report
    if report is None or budget.operation_cycles is None:
        return
    if wrong or (not budget.operation_cycles and budget.figures[OPERATIONS]):
        yield OPERATION_CYCLES, cycles_of(report)


def _replaced(section: str, name: str, value: Value) -> tuple[str, int]:
    """The text of an entry with another value of a key, and how often the key was found."""
    line_end = "\r\n" if "\r\n" in section else "\n"
    key = rf"""^(?P<key>[ \t]*(?P<quote>["']?){name}(?P=quote)[ \t]*=[ \t]*)(?:{VALUE})(?=[ \t]*(?:#.*)?\r?$)"""
    return re.subn(key, lambda found: _written(found["key"], value, line_end), section, flags=re.MULTILINE)


def _written(key: str, value: Value, line_end: str) -> str:
    """A key and its value in TOML; a list that is too long for one line gets one line per item."""
    if not isinstance(value, tuple):
        return key + described(value).replace(",", "_")
    items = [f"{item:_}" if isinstance(item, int) else f'"{item}"' for item in value]
    line = f"{key}[{', '.join(items)}]"
    if len(line) <= LONGEST_LINE:
        return line
    return line_end.join([f"{key}[", *(f"    {item}," for item in items), "]"])
