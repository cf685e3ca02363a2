"""The results of a check: a table, JSON, JUnit XML, and annotations of GitHub's workflows."""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from ttsim.report.formatting import TableColumn, percent, printable, short_name, table_lines, text, wrapped
from ttsim.study.check.budgets import OF_KERNELS, BudgetFile
from ttsim.study.check.verdicts import Finding, Verdict, band_text, counts_of, described, names_of, plain_figure
from ttsim.study.store import model_version

FORMAT: Final = 1  # raised when a field changes its meaning or goes
NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 cannot hold
WORKSPACE_VARIABLE: Final = "GITHUB_WORKSPACE"  # the folder of the repository, from which annotations name files


def error_text(finding: Finding) -> str:
    """The expected error of a figure of kernel time; empty for other figures."""
    report = finding.report
    if finding.figure not in OF_KERNELS or report is None:
        return ""
    return "unmeasured" if report.error_share is None else percent(report.error_share)


TABLE: Final = (
    TableColumn[Finding]("name", lambda row: short_name(row.budget.name), words=True),
    TableColumn[Finding]("figure", lambda row: row.figure, words=True),
    TableColumn[Finding]("budget", lambda row: described(row.limit)),
    TableColumn[Finding]("measured", lambda row: "" if row.measured is None else described(row.measured)),
    TableColumn[Finding]("change", lambda row: "" if row.share is None else f"{100 * row.share:+.2f} %", goes=4),
    TableColumn[Finding]("band", lambda row: band_text(row.budget, row.figure), goes=2),
    TableColumn[Finding]("error expected", error_text, goes=1),
    TableColumn[Finding]("device", lambda row: row.report.device if row.report else "", words=True, goes=3),
    TableColumn[Finding]("verdict", lambda row: row.verdict.value, words=True),
)


def table(file: BudgetFile, findings: Sequence[Finding], width: int | None) -> str:
    """A table with a line per figure, then a sentence per figure that does not hold, and the counts."""
    lines = table_lines(TABLE, findings, width)
    lines += [line for finding in broken(findings) for line in wrapped(_sentence(file, finding), width, indent=2)]
    return "\n".join([*lines, counts_of(findings), ""])


def broken(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that do not hold."""
    return [finding for finding in findings if finding.verdict is not Verdict.HOLDS]


def _sentence(file: BudgetFile, finding: Finding) -> str:
    return printable(f"{file.path}:{finding.budget.line}: {finding.budget.name}: {finding.text}")


def as_json(file: BudgetFile, findings: Sequence[Finding]) -> str:
    """All findings by entry; the same bytes for the same file and model."""
    entries = [_entry(list(own)) for _, own in groupby(findings, key=lambda finding: finding.budget.name)]
    document = {"format": FORMAT, "file": str(file.path), "model": model_version(), "budgets": entries}
    return text(document) + "\n"


def _entry(findings: Sequence[Finding]) -> dict[str, Any]:
    first = findings[0]
    report = first.report
    return {
        "name": first.budget.name,
        "line": first.budget.line,
        "device": None if report is None else report.device,
        "band_percent": float(100 * first.budget.band),
        "error_share": None if report is None else report.error_share,
        "unmeasured_share": None if report is None else report.unmeasured_share,
        "untimed_operations": None if report is None else sum(op.nanoseconds is None for op in report.operations),
        "operations": None if report is None else list(names_of(report)),
        "error": first.error or None,
        "figures": [
            {
                "figure": finding.figure,
                "budget": plain_figure(finding.limit),
                "measured": plain_figure(finding.measured),
                "share": finding.share,
                "verdict": finding.verdict.value,
                "changes": list(finding.changes),
            }
            for finding in findings
        ],
    }


def junit(file: BudgetFile, findings: Sequence[Finding]) -> str:
    """JUnit XML with a test case for each figure; the same bytes for the same file and model."""
    wrong = broken(findings)
    errors = sum(finding.verdict is Verdict.DOES_NOT_RUN for finding in wrong)
    counts = {"tests": len(findings), "failures": len(wrong) - errors, "errors": errors}
    root = ElementTree.Element("testsuites", _texts(name="ttsim check", **counts))
    suite = ElementTree.SubElement(root, "testsuite", _texts(name=file.path, **counts))
    for finding in findings:
        names = _texts(classname=finding.budget.name, name=finding.figure, file=file.path, line=finding.budget.line)
        case = ElementTree.SubElement(suite, "testcase", names)
        properties = ElementTree.SubElement(case, "properties")
        for name, value in _properties(finding):
            ElementTree.SubElement(properties, "property", _texts(name=name, value=value))
        if finding.verdict is not Verdict.HOLDS:
            kind = "error" if finding.verdict is Verdict.DOES_NOT_RUN else "failure"
            said = ElementTree.SubElement(case, kind, _texts(message=finding.text, type=finding.verdict.value))
            said.text = _xml(f"{file.path}:{finding.budget.line}: {finding.budget.name}: {finding.text}")
    ElementTree.indent(root, " ")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"


def _properties(finding: Finding) -> Iterator[tuple[str, str]]:
    for name, figure in (("budget", finding.limit), ("measured", finding.measured)):
        yield name, "" if figure is None else described(figure).replace(",", "")  # programs read it
    if band := band_text(finding.budget, finding.figure):
        yield "band", band
    if error := error_text(finding):
        yield "error expected", error


def _texts(**attributes: object) -> dict[str, str]:
    return {name: _xml(str(value)) for name, value in attributes.items()}


def _xml(text: str) -> str:
    """A text in which characters that XML cannot contain are escaped."""
    return NO_XML.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def annotations(file: BudgetFile, findings: Sequence[Finding]) -> str:
    """A workflow command of GitHub for each finding that does not hold, which marks the entry's line in the file."""
    lines = (
        f"::error file={_property(_in_workspace(file.path))},line={finding.budget.line},"
        f"title={_property(f'{finding.budget.name}: {finding.figure}')}::{_data(finding.text)}\n"
        for finding in broken(findings)
    )
    return "".join(lines)


def _in_workspace(path: Path) -> str:
    """A path for annotations: relative to the repository, if one is checked out."""
    workspace = os.environ.get(WORKSPACE_VARIABLE)
    absolute = path.resolve()
    if workspace and absolute.is_relative_to(Path(workspace).resolve()):
        return absolute.relative_to(Path(workspace).resolve()).as_posix()
    return path.as_posix()


def _data(text: str) -> str:
    """A text in a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
